"""Two views of the same things: which variables of each view say most about the other?

The views are the left and the right half of handwritten digits (MNIST), as in the paper on ProjSe,
where ../shared/data holds them; elsewhere, generated pictures of a few hidden causes. Each half is
the target of the other. How much the few selected pixels share is told by the canonical
correlations between the two selections.
"""

from pathlib import Path

import numpy as np

from streamsel import ProjSe
from streamsel.evaluate import canonical_correlations

DIGITS = Path(__file__).parents[2] / "shared" / "data" / "mnist_10k.npz"
SIDE = 28
K = 20


def load() -> np.ndarray:
    if DIGITS.is_file():
        print("MNIST, 10,000 digits, left and right halves")
        return np.load(DIGITS, allow_pickle=False)["X"].reshape(-1, SIDE, SIDE)
    print(f"no {DIGITS.name}: 2,000 generated pictures, left and right halves")
    rng = np.random.default_rng(3)
    causes = rng.standard_normal((2_000, 8))
    patterns = np.zeros((8, SIDE, SIDE))
    # Every cause shows in a small patch of either half; the rest of a picture is noise.
    for pattern in patterns:
        for half in (0, SIDE // 2):
            row, column = rng.integers(0, SIDE - 3), half + rng.integers(0, SIDE // 2 - 3)
            pattern[row : row + 3, column : column + 3] = 1.5
    pictures = np.tensordot(causes, patterns, axes=1)
    return pictures + rng.standard_normal(pictures.shape)


def select(variables: np.ndarray, target: np.ndarray) -> ProjSe:
    model = ProjSe(k=K, target_type="numeric")
    model.learn_target(target)
    model.learn_columns(variables)
    return model


def draw(left: ProjSe, right: ProjSe) -> None:
    """Print where the selected pixels lie, in each half."""
    picture = np.full((SIDE, SIDE), "·")
    half = SIDE // 2
    for model, offset in ((left, 0), (right, half)):
        for pixel in model.selected:
            picture[pixel // half, pixel % half + offset] = "#"
    for row in picture:
        print("  " + "".join(row[:half]) + " | " + "".join(row[half:]))


def main() -> None:
    pictures = load()
    n = len(pictures)
    half = SIDE // 2
    A = pictures[:, :, :half].reshape(n, -1).astype(float)
    B = pictures[:, :, half:].reshape(n, -1).astype(float)
    left, right = select(A, B), select(B, A)
    draw(left, right)

    print(f"\ncanonical correlations between the first k pixels of each side, of {A.shape[1]}:")
    for k in (1, 5, 10, K):
        shared = canonical_correlations(A[:, left.selected[:k]], B[:, right.selected[:k]])
        print(f"  k = {k:>2}   first {shared[0]:.3f}   sum {shared.sum():6.3f}")
    rng = np.random.default_rng(0)
    lit_left, lit_right = (np.flatnonzero(view.std(axis=0) > 0) for view in (A, B))
    chance = canonical_correlations(
        A[:, rng.choice(lit_left, K, replace=False)], B[:, rng.choice(lit_right, K, replace=False)]
    )
    print(f"  {K} pixels a side at random:   first {chance[0]:.3f}   sum {chance.sum():6.3f}")


if __name__ == "__main__":
    main()

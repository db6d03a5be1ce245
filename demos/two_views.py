"""Two views of the same samples: which variables of each view are most relevant for the other?

The views are the left and right halves of handwritten digits (MNIST), as in the paper on ProjSe.
Without the file ../shared/data/mnist_10k.npz they are the halves of generated images, which depend
on a few latent variables. Each half is the target of the other. The canonical correlations between
the selected pixels of both halves show how much the selections have in common.
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
    print(f"no {DIGITS.name}: 2,000 generated images, left and right halves")
    rng = np.random.default_rng(3)
    latent = rng.standard_normal((2_000, 8))
    patterns = np.zeros((8, SIDE, SIDE))
    # Each latent variable is added to a small patch of both halves; the rest is noise.
    for pattern in patterns:
        for half in (0, SIDE // 2):
            row, column = rng.integers(0, SIDE - 3), half + rng.integers(0, SIDE // 2 - 3)
            pattern[row : row + 3, column : column + 3] = 1.5
    images = np.tensordot(latent, patterns, axes=1)
    return images + rng.standard_normal(images.shape)


def select(variables: np.ndarray, target: np.ndarray) -> ProjSe:
    model = ProjSe(k=K, target_type="numeric")
    model.learn_target(target)
    model.learn_columns(variables)
    return model


def draw(left: ProjSe, right: ProjSe) -> None:
    """Print the positions of the selected pixels in each half."""
    image = np.full((SIDE, SIDE), "·")
    half = SIDE // 2
    for model, offset in ((left, 0), (right, half)):
        for pixel in model.selected:
            image[pixel // half, pixel % half + offset] = "#"
    for row in image:
        print("  " + "".join(row[:half]) + " | " + "".join(row[half:]))


def main() -> None:
    images = load()
    n = len(images)
    half = SIDE // 2
    A = images[:, :, :half].reshape(n, -1).astype(float)
    B = images[:, :, half:].reshape(n, -1).astype(float)
    left, right = select(A, B), select(B, A)
    draw(left, right)

    print(f"\ncanonical correlations of the first k pixels selected per half (of {A.shape[1]}):")
    for k in (1, 5, 10, K):
        shared = canonical_correlations(A[:, left.selected[:k]], B[:, right.selected[:k]])
        print(f"  k = {k:>2}   first {shared[0]:.3f}   sum {shared.sum():6.3f}")
    rng = np.random.default_rng(0)
    random_pixels = (
        view[:, rng.choice(np.flatnonzero(view.std(axis=0) > 0), K, replace=False)]
        for view in (A, B)
    )
    chance = canonical_correlations(*random_pixels)
    print(f"  {K} random pixels per half:   first {chance[0]:.3f}   sum {chance.sum():6.3f}")


if __name__ == "__main__":
    main()

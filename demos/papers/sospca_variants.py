"""What does each of its three rules cost SOSPCA, and which change would help?

SOSPCA has a higher error than PLS (`sospca_errors.py`). This ablation changes its rules one after
another:

1. A column joins if it is more relevant than the least relevant component. *Admission*: every
   column whose relevance is significant, p < 0.01 for a single column (under no association
   relevance² ~ Beta(r/2, (n - 1 - r)/2)); *noise floor*: 0.05 for the best of all p columns
   (Bonferroni).
2. The angle makes the two components uncorrelated, and the more relevant one survives. *Angle*: the
   direction of most covariance with the target space survives. For one target, r = 1, it keeps all
   covariance: theta = atan2(c_b, c_a).
3. The pair is the two least relevant components. *Pair*: the component that adds least to the
   multiple correlation with the target space, and the one with which it correlates most.

The functions `adds_least`, `survivor` and `loadings` are the specification. In every variant two
components z_a, z_b become one, z_a cos(theta) + z_b sin(theta), and so do their loadings. Columns
of B are at first unit vectors e_j of different j; a unit vector in the plane of two orthonormal
columns is orthogonal to all others. So B's columns stay orthonormal, whatever the rules.

A significance level holds from the first column on, so that fewer than q components are possible,
or none: then the prediction is the larger class. Order of the columns: that of the file.

Data, scaling, folds and classifiers are those of `sospca_errors.py`, without the SVM with sigma =
0.3. Means are over its ten datasets of two classes; the two with more are reported separately.
Relevance and correlation are means over components, and pairs of them, without their sign. In few
test rows relevance is high by chance: with r target columns and m rows about sqrt(r/(m - 1)).
"SOSPCA" is the package's own; the tests compare these functions with it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _curves import add_legend, curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, machine, table
from scipy.stats import wilcoxon
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC
from sospca_errors import (
    BINARY,
    LEVEL,
    SHOWN,
    fitted_pls,
    fold_of,
    over_folds,
    p_value,
)

from streamsel import SOSPCA
from streamsel.base.null import noise_floor

QS = (1, 2, 5, 10)
CLASSIFIERS = ["LDA", "1-NN", SHOWN]
# Equal columns (words) are no pair of components: their correlations need not be invertible.
RIDGE = 1e-6
VANISHED = 1e-12


class Rules(NamedTuple):
    """Admission ("weakest", or significant: "single", "noise floor"); changed angle and pair."""

    admission: str = "weakest"
    angle: bool = False
    pair: bool = False


ORIGINAL = Rules()
VARIANTS = {
    "angle": Rules(angle=True),
    "admission": Rules("single"),
    "admission, angle": Rules("single", angle=True),
    "admission, angle, pair": Rules("single", angle=True, pair=True),
    "noise floor, angle, pair": Rules("noise floor", angle=True, pair=True),
}
UNDRAWN = "angle"  # nearly the same as SOSPCA
STYLES = {
    "SOSPCA": (COLOURS[0], "o-"),
    "angle": (COLOURS[5], "x-"),
    "admission": (COLOURS[2], "^-"),
    "admission, angle": (COLOURS[3], "v-"),
    "admission, angle, pair": (COLOURS[1], "s-"),
    "noise floor, angle, pair": (COLOURS[1], "s:"),
    "PLS": (COLOURS[4], "D-"),
}


class Components:
    """At most q components, with one index each, and one more for the column that joins them.

    Z (n, q + 1) centred scores, B (p, q + 1) loadings, C = U'Z (r, q + 1) covariances with the
    target space, M = Z'Z. The first `count` indices are in use.
    """

    def __init__(self, n: int, p: int, r: int, q: int) -> None:
        self.count = 0
        self.Z, self.B, self.C = (np.zeros((size, q + 1), order="F") for size in (n, p, r))
        self.M = np.zeros((q + 1, q + 1))

    def relevance(self) -> np.ndarray:
        return relevance(self.C[:, : self.count], np.diag(self.M)[: self.count])

    def join(self, j: int, x: np.ndarray, c: np.ndarray) -> None:
        """Column j, centred, becomes a component: O(n q)."""
        k = self.count
        self.Z[:, k], self.B[:, k], self.C[:, k] = x, 0.0, c
        self.B[j, k] = 1.0
        self.M[k] = self.M[:, k] = self.Z.T @ x
        self.count += 1

    def merge(self, a: int, b: int, v: np.ndarray) -> None:
        """Components a < b become one, in the direction v of their plane, ‖v‖ = 1: O(n q).

        It gets index a, the last component index b. (B is dense here: O(p) more.)
        """
        last = self.count - 1
        for A in (self.Z, self.B, self.C):
            A[:, a] = v[0] * A[:, a] + v[1] * A[:, b]
            A[:, b] = A[:, last]
        self.M[b] = self.M[last]
        self.M[:, b] = self.M[:, last]
        self.M[a] = self.M[:, a] = self.Z.T @ self.Z[:, a]
        self.count = last


def target_space(y: np.ndarray) -> np.ndarray:
    """Return U (n, r), an orthonormal basis of the centred indicators of classes."""
    indicators = (y[:, None] == np.unique(y)[1:]).astype(float)
    return np.linalg.qr(indicators - indicators.mean(0))[0]


def relevance(C: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return ‖U'z‖ / ‖z‖ of every z, given U'z (r, m) and ‖z‖²; rounded, so that ties are ties."""
    return np.round(np.linalg.norm(C, axis=0) / np.sqrt(squares), 12)


def least_relevant(state: Components) -> list[int]:
    return sorted(np.argsort(state.relevance(), kind="stable")[:2])


def adds_least(state: Components) -> list[int]:
    """Return the component that adds least to the multiple correlation, and the one nearest to it.

    With G the correlations of the components, H (q + 1, r) those with the target space and
    beta = G⁻¹ H, the squared multiple correlations lose ‖beta_k‖² / (G⁻¹)_kk without component k.
    """
    norms = np.sqrt(np.diag(state.M))
    G = state.M / np.outer(norms, norms)
    inverse = np.linalg.inv(G + RIDGE * np.eye(len(G)))
    beta = inverse @ (state.C / norms).T
    k = ((beta**2).sum(1) / np.diag(inverse)).argmin()
    G[k, k] = 0.0
    return sorted([k, np.abs(G[k]).argmax()])


def leading(S: np.ndarray) -> np.ndarray:
    """Return the leading eigenvector (cos theta, sin theta) of a symmetric 2 x 2 matrix."""
    theta = 0.5 * np.arctan2(2.0 * S[0, 1], S[0, 0] - S[1, 1])
    return np.array([np.cos(theta), np.sin(theta)])


def survivor(M: np.ndarray, C: np.ndarray, *, angle: bool) -> np.ndarray:
    """Return the direction v (2,) that remains of two components, given their Z'Z and U'Z (r, 2).

    Changed angle: that of most covariance, ‖C v‖². Else of the two uncorrelated directions, the
    eigenvectors of M, the more relevant one.
    """
    if angle:
        return leading(C.T @ C)
    cos, sin = leading(M)
    V = np.array([[cos, -sin], [sin, cos]])
    squares = ((M @ V) * V).sum(0)
    exists = squares > VANISHED * np.diag(M).min()
    of_a, of_b = np.where(exists, relevance(C @ V, np.where(exists, squares, 1.0)), -1.0)
    return V[:, 0] if of_a > of_b else V[:, 1]


def loadings(X: np.ndarray, y: np.ndarray, q: int, rules: Rules) -> np.ndarray:
    """Return B (p, q or fewer) after one pass over the columns of X (n, p).

    A column that does not join costs O(n r), one that joins O(n q + q³) more.
    """
    X = np.asfortranarray(X - X.mean(0))
    U = target_space(y)
    (n, p), r = X.shape, U.shape[1]
    C = U.T @ X
    relevances = relevance(C, (X**2).sum(0))
    levels = {"single": noise_floor(n, r, 1, 0.01), "noise floor": noise_floor(n, r, p, 0.05)}
    threshold = levels.get(rules.admission, -1.0)
    state = Components(n, p, r, q)
    for j in range(p):
        if relevances[j] <= threshold:
            continue
        state.join(j, X[:, j], C[:, j])
        if state.count > q:
            pair = adds_least(state) if rules.pair else least_relevant(state)
            M, of_pair = state.M[np.ix_(pair, pair)], state.C[:, pair]
            state.merge(*pair, survivor(M, of_pair, angle=rules.angle))
        if rules.admission == "weakest" and state.count == q:
            threshold = state.relevance().min()
    return state.B[:, : state.count]


def all_loadings(
    X: np.ndarray, y: np.ndarray, qs: tuple[int, ...]
) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield (variant, q, B)."""
    n, p = X.shape
    targets = (y[:, None] == np.unique(y)[1:]).astype(float)
    pls, n_pls = fitted_pls(X, targets, min(max(qs), p, n - 1))
    rotations = pls.x_rotations_[:, :n_pls]
    for q in qs:
        model = SOSPCA(q, target_type="class")
        model.learn_target(y)
        model.learn_columns(X)
        yield "SOSPCA", q, model.to_matrix(range(p)).toarray()
        for name, rules in VARIANTS.items():
            yield name, q, loadings(X, y, q, rules)
        yield "PLS", q, rotations[:, :q]


def mean_relevance(Z: np.ndarray, y: np.ndarray) -> float:
    Z = Z - Z.mean(0)
    squares = (Z**2).sum(0)
    varies = squares > 0.0
    found = relevance(target_space(y).T @ Z[:, varies], squares[varies])
    return float(found.sum() / squares.size)


def mean_correlation(Z: np.ndarray) -> float:
    if Z.shape[1] < 2:
        return np.nan
    return float(np.abs(np.corrcoef(Z.T)[np.triu_indices(Z.shape[1], 1)]).mean())


def measures(A: np.ndarray, y: np.ndarray, T: np.ndarray, t: np.ndarray) -> dict[str, float]:
    """Return errors of components, with relevance and correlation in training and test rows."""
    if not A.shape[1]:
        majority = float(np.mean(t != np.bincount(y).argmax()))
        return dict.fromkeys(CLASSIFIERS, majority)
    # Components of a few words have ties; rounding errors must not choose among them.
    among, to = (euclidean_distances(rows, A, squared=True) for rows in (A, T))
    gamma = 1.0 / (A.shape[1] * A.var())
    predictions = (
        LinearDiscriminantAnalysis().fit(A, y).predict(T),
        y[to.round(9).argmin(1)],
        SVC(kernel="precomputed").fit(np.exp(-gamma * among), y).predict(np.exp(-gamma * to)),
    )
    errors = {
        name: float(np.mean(made != t)) for name, made in zip(CLASSIFIERS, predictions, strict=True)
    }
    of_rows = {"relevance": mean_relevance(A, y), "relevance_test": mean_relevance(T, t)}
    return errors | of_rows | {"correlation": mean_correlation(A)}


def rows_of_fold(
    datasets: dict[str, Dataset], qs: tuple[int, ...], most_rows: int, name: str, fold: int
) -> list[dict[str, Any]]:
    (A, y), (T, t) = fold_of(datasets[name], most_rows, fold)
    A, T = A - A.mean(0), T - A.mean(0)
    shape = {"dataset": name, "fold": fold, "n": y.size + t.size, "p": A.shape[1]}
    return [
        shape
        | {"variant": variant, "q": q, "components": B.shape[1]}
        | {"support": int(B.any(axis=1).sum())}
        | measures(A @ B, y, T @ B, t)
        for variant, q, B in all_loadings(A, y, qs)
    ]


def of_datasets(frame: pd.DataFrame, variant: str, q: int, measure: str) -> pd.Series:
    """Return a measure per dataset, the mean over folds."""
    rows = frame[(frame.variant == variant) & (frame.q == q)]
    return rows.groupby("dataset")[measure].mean()


def mean_errors(binary: pd.DataFrame, qs: list[int]) -> str:
    """Return the table of mean errors, marked if they differ from those of SOSPCA and PLS."""
    lines = []
    for variant in STYLES:
        line = [variant]
        for classifier in CLASSIFIERS:
            for q in qs:
                ours = 100 * of_datasets(binary, variant, q, classifier)
                differs = {
                    rival: p_value(
                        wilcoxon,
                        (ours - 100 * of_datasets(binary, rival, q, classifier)).round(9),
                    )
                    < LEVEL
                    for rival in ("SOSPCA", "PLS")
                }
                bold = "**" if differs["SOSPCA"] else ""
                line.append(f"{bold}{ours.mean():.1f}{bold}{' †' if differs['PLS'] else ''}")
        lines.append(line)
    head = [f"{classifier}, q = {q}" for classifier in CLASSIFIERS for q in qs]
    return table(pd.DataFrame(lines, columns=["mean error, %", *head]))


def explanations(binary: pd.DataFrame, others: dict[str, pd.DataFrame], q: int) -> str:
    """Return the table of properties of the components, and of datasets with more classes."""
    measured = ["support", "correlation", "relevance", "relevance_test"]
    lines = []
    for variant in STYLES:
        means = [of_datasets(binary, variant, q, measure).mean() for measure in measured]
        line = [variant, f"{means[0]:,.0f}", *(f"{mean:.2f}" for mean in means[1:])]
        for name, frame in others.items():
            error, support = (of_datasets(frame, variant, q, of)[name] for of in ("LDA", "support"))
            line.append(f"{100 * error:.1f} ({support:,.0f})")
        lines.append(line)
    head = ["support", "\\|correlation\\|", "relevance, training rows", "relevance, test rows"]
    of_others = [f"LDA, {name} (support)" for name in others]
    return table(pd.DataFrame(lines, columns=[f"q = {q}", *head, *of_others]))


def draw(experiment: Experiment, binary: pd.DataFrame, qs: tuple[int, ...]) -> str:
    drawn = {variant: style for variant, style in STYLES.items() if variant != UNDRAWN}
    figure, axes = panels([*CLASSIFIERS, "support, mean number of variables"], 2, 2.6)
    for panel, measure in zip(axes, [*CLASSIFIERS, "support"], strict=False):
        found = binary.pivot_table(measure, "dataset", ["q", "variant"])
        # On a logarithmic scale an interval about the mean would reach below zero.
        alone = found.mean().to_frame().T
        found = alone if measure == "support" else without_unit_effect(100.0 * found)
        curves(panel, found, drawn, qs)
    top = max(panel.get_ylim()[1] for panel in axes[:3])
    for panel in axes[:3]:
        panel.set_ylim(0.0, top)
    axes[3].set_yscale("log")
    axes[3].set_ylabel("variables")
    add_legend(axes, 3)
    return experiment.draw(figure)


def text(results: pd.DataFrame, qs: tuple[int, ...], figure: str) -> str:
    binary = results[results.dataset.isin(BINARY)]
    others = {
        name: frame for name, frame in results.groupby("dataset", sort=False) if name not in BINARY
    }
    return f"""
The {binary.dataset.nunique()} datasets of two classes and the protocol are the same as in the
section before. Three rules of SOSPCA are changed, the first in two ways. With *admission*, every
column with p < 0.01 joins. With *noise floor*, every column above the noise floor of all p columns
joins. With *angle*, two components are merged into the direction of largest covariance with the
target space. With *pair*, the component that adds least to the multiple correlation is merged into
the component with which it correlates most.

![Mean error and support against the number of components q, one line per method.]({figure})

Error bars are 95 % intervals of the mean over datasets, after differences between datasets are
removed. The variant *angle* is only in the table.

{mean_errors(binary, [q for q in qs if q in (2, 10)])}

A bold error differs from the error of SOSPCA, and an error with † differs from the error of PLS
(Wilcoxon test over the datasets' means, 95 %).

{explanations(binary, others, max(qs))}

*Support* is the number of variables with a loading. The correlation is a mean over pairs of
components, without sign. *Relevance* is the mean over components. With few test rows, it is high by
chance.

[All numbers](sospca-variants.csv) were made by `python demos/papers/sospca_variants.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("sospca-variants", __doc__)
    qs = experiment.small(QS, (1, 2, 10))
    results = over_folds(experiment, rows_of_fold, qs)
    binary = results[results.dataset.isin(BINARY)]
    experiment.publish(text(results, qs, draw(experiment, binary, qs)))


if __name__ == "__main__":
    main()

"""PrivateFeatures: components with a sensitive attribute projected out, and their leakage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel.base.river import Supervised
from streamsel.extraction._gram import GramExtractor
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.view import GramScale, GramView
from streamsel.targets.target import Target

# Numbers of nearest neighbours of the attackers.
_NEIGHBOURS = (1, 5)
# A target column with less than this part of the largest singular value is rounding.
_ZERO_TOL = 1e-10


class Leakage(NamedTuple):
    """Accuracy of attackers that predict a sensitive attribute, on rows not used for the features.

    Parameters
    ----------
    measure
        `"accuracy"`, the share of rows whose class is predicted; or `"r2"`, the share of variance
        explained for numbers, which is negative for an attacker worse than the mean.
    chance
        The measure without the features: the accuracy of the most frequent class, or 0 for the
        mean.
    trained
        Attacker, `"linear"`, `"1-NN"` or `"5-NN"` -> its measure, when trained on the rows that the
        features were fitted on. On these, the features have no linear information.
    fresh
        The same, when trained on other rows.
    """

    measure: str
    chance: float
    trained: dict[str, float]
    fresh: dict[str, float]


class SensitiveAttribute:
    """A sensitive attribute, as target of the attackers.

    Parameters
    ----------
    columns
        (n, c) numbers, or indicators of classes.
    is_class
        Whether the columns are indicators.
    """

    def __init__(self, columns: Floats, *, is_class: bool) -> None:
        self.is_class = is_class
        spread = columns.std(axis=0)
        varying = columns[:, spread > 0.0]
        # All numbers have the same weight.
        self.columns: Floats = columns if is_class else varying / spread[spread > 0.0]

    def folds(self, count: int, seed: int) -> NDArray[np.intp]:
        """Return the fold of each row, (n,), stratified by class."""
        order = np.random.default_rng(seed).permutation(len(self.columns))
        if self.is_class:
            order = order[np.argsort(self.columns[order].argmax(axis=1), kind="stable")]
        folds = np.empty(len(order), dtype=np.intp)
        folds[order] = np.arange(len(order)) % count
        return folds

    def loss(self, predicted: Floats, rows: Indices) -> float:
        """Return the number of misclassified rows, or the sum of squared errors."""
        truth = self.columns[rows]
        if self.is_class:
            return float(np.count_nonzero(predicted.argmax(axis=1) != truth.argmax(axis=1)))
        return float(np.square(predicted - truth).sum())


def measure_leakage(
    inner: GramView,
    attribute: SensitiveAttribute,
    duals: Callable[[GramView, int], Floats],
    q: int,
    folds: int,
    seed: int,
) -> Leakage:
    """Return how well attackers predict an attribute from at most q features, by cross-validation.

    Parameters
    ----------
    inner
        Inner products of all rows.
    duals
        Returns the duals of features, from inner products and their maximum number.
    """
    fold_of = attribute.folds(folds, seed)
    by_chance = 0.0
    losses_of: dict[tuple[str, str], float] = {}
    for fold in range(folds):
        test, fresh = fold_of == fold, fold_of == (fold + 1) % folds
        fitted, other, tested = (np.flatnonzero(rows) for rows in (~test & ~fresh, fresh, test))
        alpha = duals(_subset_gram(inner, fitted, attribute), q)
        features = {
            rows: _centred_cross_gram(inner, some, fitted) @ alpha
            for rows, some in (("trained", fitted), ("fresh", other), ("tested", tested))
        }
        mean = attribute.columns[fitted].mean(axis=0)
        by_chance += attribute.loss(np.tile(mean, (tested.size, 1)), tested)
        for learnt, rows in (("trained", fitted), ("fresh", other)):
            guesses = _attacks(features[learnt], attribute.columns[rows], features["tested"])
            for attacker, guess in guesses:
                key = learnt, attacker
                losses_of[key] = losses_of.get(key, 0.0) + attribute.loss(guess, tested)
    n = len(attribute.columns)
    measure, chance = ("accuracy", 1.0 - by_chance / n) if attribute.is_class else ("r2", 0.0)
    whole = float(n) if attribute.is_class else by_chance
    scores: dict[str, dict[str, float]] = {"trained": {}, "fresh": {}}
    for (learnt, attacker), losses in losses_of.items():
        scores[learnt][attacker] = 1.0 - losses / whole
    return Leakage(measure, chance, **scores)


def _subset_gram(inner: GramView, rows: Indices, attribute: SensitiveAttribute) -> GramView:
    """Return the inner products of some rows, about their own means, with their attribute."""
    K = _centred_cross_gram(inner, rows, rows)
    Y = attribute.columns[rows] - attribute.columns[rows].mean(axis=0)
    U, lengths, _ = np.linalg.svd(Y, full_matrices=False)
    U = U[:, lengths > _ZERO_TOL * lengths.max(initial=0.0)]
    n = float(rows.size)
    return GramView(K, U, Y, GramScale(n, n, n - 1.0, inner.p, inner.n_effective_columns, Y.T @ Y))


def _centred_cross_gram(inner: GramView, rows: Indices, fitted: Indices) -> Floats:
    """Return the inner products of rows with those used for fitting, about the means of these."""
    cross, own = inner.K[np.ix_(rows, fitted)], inner.K[np.ix_(fitted, fitted)]
    about: Floats = cross - cross.mean(axis=1, keepdims=True) - own.mean(axis=0) + own.mean()
    return about


def _attacks(learnt: Floats, Y: Floats, new: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield the predictions for new features, by attackers trained on features and attribute."""
    spread = learnt.std(axis=0)
    scaled = np.where(spread > 0.0, spread, 1.0)
    train, test = (np.column_stack([np.ones(len(X)), X / scaled]) for X in (learnt, new))
    yield "linear", test @ np.linalg.lstsq(train, Y, rcond=None)[0]
    distances = (
        np.square(new).sum(axis=1)[:, None] - 2.0 * new @ learnt.T + np.square(learnt).sum(axis=1)
    )
    nearest = distances.argsort(axis=1, kind="stable")
    for count in _NEIGHBOURS:
        yield f"{count}-NN", Y[nearest[:, :count]].mean(axis=1)


# Eigenvalues below this part of the variance of all columns are rounding.
_RANK_TOL = 1e-12
# The sensitive attribute is unrelated to the columns if their covariance is below this part.
_UNRELATED_TOL = 1e-15


class PrivateFeatures(GramExtractor, Supervised):
    r"""Components of most variance, with a sensitive attribute projected out.

    The target *is* the sensitive attribute: one or several numbers, or classes. The features are
    linear combinations of the columns that are uncorrelated with it, of largest variance: principal
    components orthogonal to the attribute. A transform takes only the columns of new rows; their
    sensitive attribute need not be known.

    Parameters
    ----------
    n_components
        The number $q$ of features; there are fewer if the columns have fewer directions left.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Method.** With $X$ the centred columns and $U$ an orthonormal basis of the sensitive
    attribute, the features are $Xw$ with $U^T X w = 0$, of largest variance for $w$ of length 1,
    each $w$ orthogonal to the previous ones. With $K = XX^T$ and $R = KU (U^T K U)^{-1/2}$ they are
    $\sqrt{\lambda} e$ for the leading eigenvalues $\lambda$ and eigenvectors $e$ of $K - RR^T$.
    This removes at most as many directions as the attribute has dimensions.

    **Guarantee and its limits.** On the rows learnt no linear model predicts the attribute from the
    features better than its mean: their correlation with it is 0 to 1e-10, for any number of
    features. This is not differential privacy. Two kinds of models may still predict it: nonlinear
    ones; and, if columns outnumber rows, linear ones trained on rows that the features were not
    fitted on, because the projected direction is only estimated from the rows. `leakage` measures
    how well; if too well, use fewer features or more rows.

    **Measured** on eleven real sets of 50 to 1,000 rows, with half of the classes as the attribute
    (chance 57.8 %): 20 features of standardised columns keep 87 % of the variance of as many
    principal components. The table has the average accuracy of attackers by `leakage`, in %:

    | attacker, trained on | PCA | PrivateFeatures | `RankedPCA`, private |
    |---|---|---|---|
    | linear, same rows | 77.8 | 57.8 | 58.5 |
    | linear, other rows | 73.2 | 63.7 | 59.4 |
    | 5-NN, same rows | 81.2 | 76.2 | 64.4 |
    | 5-NN, other rows | 75.1 | 70.8 | 60.1 |

    So nonlinear information is hardly removed. RankedPCA with `rank_by="private"` takes the
    components least related to the attribute, mostly of small variance: it hides more by keeping
    less. LDA predicts the class within its half about as well from these features as from principal
    components, in 83.7 and 84.5 % of rows (four sets of many classes).

    **Cost.** $n^2$ per column. Computing components takes $O(n^2 q)$, and $O(n^3)$ below 1,500 rows
    or for many components.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $29 n^2$ while components are
    computed; $16 n m$ for the pool, $m$ being `max_loadings`. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Loadings.** While the pool holds all columns, loadings are exact. Otherwise the features are
    regressed on some of the columns, those of the pool or, after `learn_loadings`, the largest; the
    attribute is projected out of the result again, so the guarantee holds for every transform.

    **Many rows.** With more rows than `max_gram_rows`, the leading principal axes represent the
    columns, unless the pool holds all of them: features are combinations of these axes. The
    covariances of the columns with the sensitive attribute are still summed exactly, and the
    guarantee holds. `leakage` needs the Gram matrix.

    **Rows.** The joint moments of the variables give the same features as their columns. A row is
    learnt with its sensitive attribute. The guarantee holds for `loadings` over all rows so far.
    For transforms, which use `in_use`, it holds over the rows up to the last refresh;
    `refresh_factor=1` refreshes at every row.

    **Vocabulary.** When `max_features` leaves no room for a new variable, the variables of smallest
    variance are evicted, not the least relevant.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Jung, A. (2022). Machine Learning: The Basics, chapter 9, Feature Learning. Springer.

    [^2]: Ravfogel, S., Elazar, Y., Gonen, H., Twiton, M. and Goldberg, Y. (2020). Null it out:
    guarding protected attributes by iterative nullspace projection. ACL, 7237-7256.

    Examples
    --------
    Half of the columns contain the sensitive attribute, and all a useful signal:

    >>> import numpy as np
    >>> from streamsel import PrivateFeatures

    >>> rng = np.random.default_rng(0)
    >>> secret = np.array(["a", "b"])[rng.integers(2, size=400)]
    >>> useful = rng.normal(size=400)
    >>> X = 0.5 * rng.normal(size=(400, 30)) + useful[:, None]
    >>> X[:, :15] += 2.0 * (secret == "a")[:, None]

    >>> model = PrivateFeatures(n_components=3)
    >>> model.learn_target(secret)
    >>> model.learn_columns(X)
    >>> max(model.relevance.values()) < 1e-10
    True

    The features keep the signal, and on other rows they do not predict the attribute:

    >>> bool(abs(np.corrcoef(model.embedding[:, 0], useful)[0, 1]) > 0.95)
    True
    >>> found = model.leakage()
    >>> found.measure, found.fresh["linear"] < found.chance + 0.1
    ('accuracy', True)
    """

    _needs_target_products: ClassVar[bool] = True
    _excludes_target: ClassVar[bool] = True
    _report_details: ClassVar[dict[str, Any]] = {"target_is_sensitive": True}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2}
        yield {
            "n_components": 2,
            "scale": True,
            "fading_factor": 0.05,
            "max_features": 8,
            "grace_period": 20,
        }

    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        return private_duals(inner, q)

    @property
    def _stop_reason(self) -> str:
        return "apart from the sensitive attribute the columns vary in no more directions"

    def leakage(self, folds: int = 5, seed: int = 0) -> Leakage:
        """Return how well the sensitive attribute can be predicted from the features.

        Features are fitted again in every fold, without its test rows. Three attackers then learn
        to predict the attribute: a linear model, the nearest and the five nearest neighbours. Each
        learns once from the rows that the features were fitted on, once from others.

        Parameters
        ----------
        folds
            Number of parts of the rows, at least 3: each serves for testing once, the next one for
            training attackers on other rows, and the rest for fitting the features.
        seed
            Seed of the split.

        Returns
        -------
        A `Leakage`: the scores of the attackers, and those of guesses without features.

        Raises
        ------
        ValueError
            For fewer than 3 folds, or more than half the number of rows; before columns were
            learnt; after rows, which are not stored; with weights; and for more rows than
            `max_gram_rows`.

        Notes
        -----
        Everything is computed from the Gram matrix, without another pass over the columns. Costs
        `folds` times the computation of the components. With `scale=True` the columns' variances
        are those of all rows.

        Examples
        --------
        The attribute shifts five of 30 columns. From the features, no attacker predicts it better
        than a guess does, which is always the larger group:

        >>> import numpy as np
        >>> from streamsel import PrivateFeatures
        >>> rng = np.random.default_rng(0)
        >>> group = rng.integers(0, 2, size=200)
        >>> X = rng.normal(size=(200, 30))
        >>> X[:, :5] += 2 * group[:, None]
        >>> model = PrivateFeatures(3)
        >>> model.learn_target(group)
        >>> model.learn_columns(X)
        >>> leakage = model.leakage()
        >>> leakage.measure, round(leakage.chance, 2), round(max(leakage.fresh.values()), 2)
        ('accuracy', 0.55, 0.51)
        """
        rule = params.IntRule(3)
        params.check("leakage", {"folds": rule}, {"folds": folds})
        state, target = self._gram_state, self._target
        self._refuse_after_rows()
        if state is None or not isinstance(target, Target) or not state.n_varying:
            raise ValueError(
                "Expected a model that has learnt columns that vary. Got: none.\n"
                "Hint: learn_columns(X) first."
            )
        if state.rank is not None:
            raise ValueError(
                f"Expected a Gram matrix, of at most {self.max_gram_rows} rows. Got: the leading "
                f"axes of {target.n} rows.\n"
                "Hint: a larger max_gram_rows, or a part of the rows."
            )
        if target.row_transform is not None:
            raise ValueError(
                "Expected observations of equal weight, to train on some and test on others. "
                "Got: weights.\nHint: fit an attacker to transform_many(X) of other rows."
            )
        if 2 * folds > target.n:
            raise ValueError(
                f"Expected at most {target.n // 2} folds of {target.n} rows. Got: folds={folds}."
            )
        attribute = SensitiveAttribute(target.columns(), is_class=target.is_class)
        return measure_leakage(
            state.inner(), attribute, private_duals, self.n_components, folds, seed
        )


def private_duals(inner: GramView, q: int) -> Floats:
    """Return the duals of at most q features that are uncorrelated with the target.

    With B = U(UᵀKU)^-½ and R = KB, RRᵀ is the part of K that covaries with the target. The features
    are the leading eigenvectors e of K - RRᵀ; their duals are e / √λ, orthogonalised to B.
    """
    seen = inner.matmul(inner.U)
    squares, eigenvectors = np.linalg.eigh(inner.U.T @ seen)
    some = squares > _UNRELATED_TOL * inner.trace
    roots = np.sqrt(squares[some])
    B, R = inner.U @ eigenvectors[:, some] / roots, seen @ eigenvectors[:, some] / roots
    K = np.diag(inner.K) if inner.K.ndim == 1 else inner.K
    about = GramScale(
        inner.n, inner.rows, inner.weight, inner.p, inner.n_effective_columns, inner.cyy
    )
    d, E = GramView(K - R @ R.T, inner.U, inner.Y, about).axes(q)
    count = np.count_nonzero(d > _RANK_TOL * inner.trace)
    duals: Floats = E[:, :count] / np.sqrt(d[:count])
    # Twice, for full precision.
    for _ in range(2):
        duals = duals - B @ (R.T @ duals)
    return duals

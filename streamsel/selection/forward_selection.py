"""ForwardSelection: greedy forward selection (orthogonal least squares, ridge, or a wrapper)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel._utils.optional import import_sklearn
from streamsel.base.certified_selector import CertifiedSelector
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.river import Supervised
from streamsel.params import param
from streamsel.selection._forward import ForwardSolver, select_from_correlations
from streamsel.selection._group_forward import GroupForwardSolver
from streamsel.state.base import ColumnState, Floats, VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.pool import NO_PICKS, Picks
from streamsel.targets.target import Target

_WHAT_FOR = "Estimators"


def select_by_cross_validation(
    unit: Floats, target: Target, k: int, estimator: Any, cv: Any
) -> Picks:
    """Return the picks of greedy forward selection by a model's cross-validation score.

    Parameters
    ----------
    unit
        (p, n) the variables, centred and of length 1; scaled to variance 1 for the model.
    target
        Classes, or columns of numbers.
    k
        Number of picks.
    estimator, cv
        A scikit-learn model, which is cloned, and the folds as `cross_val_score` takes them.

    Raises
    ------
    ValueError
        If the model cannot be fitted to any of the variables.
    """
    clone = import_sklearn("base", _WHAT_FOR).clone
    cross_val_score = import_sklearn("model_selection", _WHAT_FOR).cross_val_score
    X = unit.T * np.sqrt(unit.shape[1])
    columns = target.columns()
    if target.is_class:
        y = columns.argmax(axis=1)
    else:
        y = columns[:, 0] if columns.shape[1] == 1 else columns
    if isinstance(cv, tuple):
        cv = [tuple(map(np.array, pair)) for pair in cv]
    picks = Picks([], [], [])
    remaining = list(range(len(unit)))
    while remaining and len(picks.indices) < k:
        scores = [
            float(np.mean(cross_val_score(clone(estimator), X[:, [*picks.indices, j]], y, cv=cv)))
            for j in remaining
        ]
        if np.isnan(scores).all():
            raise ValueError(
                f"Expected an estimator that can be fitted to {len(picks.indices) + 1} of the "
                f"variables and scored. Got: {estimator!r}, which always fails.\n"
                "Hint: sklearn.model_selection.cross_val_score(error_score='raise') shows why."
            )
        best = int(np.nanargmax(scores))
        picks.indices.append(remaining.pop(best))
        picks.scores.append(scores[best])
        picks.rounds.append(0)
    return picks


class ForwardSelection(CertifiedSelector, Supervised):
    r"""Greedy forward selection (orthogonal least squares, ridge).

    The first pick is the variable most relevant to the target. It is then projected out
    of the target and of all other variables, the next pick is the variable most relevant to the
    residual, and so on. A ridge penalises variables with a small residual, whose
    fit is mostly noise.

    With $x$ the variables, centred and of length 1, $U$ an orthonormal basis of the target, and
    $R = \lambda (\lambda I + \sum x x^T)^{-1}$ over the picks so far, each pick maximises
    $\|U^T R x\|^2 / (\lambda + x^T R x)$. The selection is invariant to invertible linear maps of
    the target's columns.

    Parameters
    ----------
    k
        Number of variables to select.
    ridge
        Penalty $\lambda$, in units of a variable's sum of squares. 0 gives orthogonal least
        squares: each pick minimises the squared error.
    swaps
        Maximum number of sweeps after k picks. A sweep replaces each pick in turn by the best
        variable given the other picks; on ties the pick stays. Sweeps end when one changes nothing.
        The squared error never increases. 0 keeps the picks.
    estimator
        scikit-learn model, which makes this a wrapper: each pick is the tracked variable that,
        added to the picks, gives the best cross-validation score. Nothing is certified then, and
        `max_candidates` bounds the running time.
    cv
        With `estimator`: folds of the cross-validation, as in scikit-learn: a number, a splitter,
        or a list of pairs of row numbers, (train, test).
    window_size
        On rows, with an estimator or after groups of columns: number of rows buffered before they
        are learnt as columns.

    Attributes
    ----------
    scores
        Decrease of the penalised squared error when each selected variable is added to those before
        it. After swaps the selected variables are in the order of forward selection among them.
    n_passes
        Number of passes over the columns, with fractions.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A kept column costs a copy; once the pool is full, every column costs one product with
    each pick, $O(n k)$, and $O(k r)$ more, with $r$ the rank of the target. Solving costs
    $O(k n m)$ for $m$ candidates, each time the pool overflows, and a sweep of swaps
    $O(k^2 (m + n))$. Learning a row of $f$ features costs $O(f^2)$ at most, transforming one
    $O(k)$.

    **Memory.** $8 n$ bytes per kept column, and at most `max_pool_bytes` for any number of columns.
    On rows $2 m^2$ numbers, $m$ at most `max_features`.

    **Exactness.** While all columns fit into the pool, the picks are those over all columns.
    Otherwise `n_certified` is the number of leading picks that are certified. `exact=True` passes
    over the source again, usually two to four times, until all are. With `ridge=0` and hardly more
    rows than picks, more passes are needed. With `swaps` exchanges are certified like picks, and
    `n_certified` is k or 0; the pool keeps at least $k (1 + s) / 2$ columns for s sweeps.

    **Rows.** The picks depend only on the joint moments of the variables, which rows accumulate:
    they equal the picks over the columns of the same rows, of at most `max_features` variables.
    With an estimator they are those of the last window of rows.

    **Ties** go to the column that arrived first. Scores within 1e-12 of each other, relatively, are
    ties. `ridge=0` divides rounding errors by the residual of a variable: then scores within 1e-9
    times their square root are ties, and variables with a residual below 1e-10 are excluded (1e-6
    on rows, where only products are known). If the picks leave a single direction of the
    observations, all variables tie, and the first that is not excluded is picked. The selection
    ends when the target is fully explained, or all variables are excluded.

    **Groups of columns** (`learn_group`, `stream.grouped`): with $Q$ an orthonormal basis of a
    group of dimension $q$, each pick maximises $\mathrm{tr}\, U^T R Q (\lambda I + Q^T R Q)^{-1}
    Q^T R U / q$, the gain per degree of freedom. With `ridge=0` only the degrees of freedom that
    the picks leave count: those with a squared residual of at least 1e-8. The pool counts $q$ times
    $8 n$ bytes per group, and a pick costs $q$ products with all candidates. Rows after groups are
    learnt by windows. `swaps` and `estimator` do not support groups.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None means not observed, and counts as the variable's mean; a new
    variable, class or target counts as 0 in earlier rows. A transform keeps the features in use
    that are present.

    References
    ----------
    [^1]: Chen, S., Cowan, C. F. N. and Grant, P. M. (1991). Orthogonal least squares learning
    algorithm for radial basis function networks. IEEE Transactions on Neural Networks 2, 302-309.
    [^2]: Zhang, S. and Lang, Z.-Q. (2022). Orthogonal least squares based fast feature selection
    for linear classification. Pattern Recognition 123, 108419.

    Examples
    --------
    A target is the sum of two parts, and two variables measure the same part:

    >>> import numpy as np
    >>> from streamsel import ForwardSelection

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 100))
    >>> model = ForwardSelection(k=2)
    >>> model.learn_target(a + b)
    >>> model.learn_column("strong", a + 0.1 * rng.normal(size=100))
    >>> model.learn_column("alike", a + 0.2 * rng.normal(size=100))
    >>> model.learn_column("other", b + 0.3 * rng.normal(size=100))
    >>> model.selected
    ['strong', 'other']

    The pool holds 60 of 10,000 columns. One pass certifies at least the first pick, further passes
    over a re-iterable source certify all:

    >>> X = np.asfortranarray(rng.normal(size=(100, 10_000)))
    >>> y = X[:, -4:] @ [3.0, -2.0, 2.0, 1.5] + rng.normal(size=100)
    >>> model = ForwardSelection(k=4, max_candidates=30, exact=True)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> sorted(model.selected), model.n_certified
    ([9996, 9997, 9998, 9999], 4)
    >>> 1 < model.n_passes <= 3
    True
    """

    _row_state_type = CrossMoments

    k: int = param(params.IntRule(1), default=20, kw_only=False)
    ridge: float = param(params.FloatRule(0.0), default=1.0)
    swaps: int = param(params.IntRule(0), default=0)
    estimator: Any = param(params.EstimatorRule(), default=None)
    cv: Any = param(params.FoldsRule(), default=5)
    window_size: int = param(params.IntRule(2), default=200)
    max_features: int | None = max_joint_features()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "fading_factor": 0.05}
        yield {"k": 3, "ridge": 0.0, "max_candidates": 6, "max_features": 4, "grace_period": 20}
        yield {"k": 3, "max_candidates": 3, "exact": True}
        yield {"k": 3, "swaps": 2, "max_candidates": 3, "exact": True}

    @property
    def _by_window(self) -> bool:
        return self.estimator is not None

    @property
    def _score_meaning(self) -> str:
        return (
            "decrease of the penalized squared error of the target when the variable is added to "
            "those before it"
            if self.estimator is None
            else "cross-validation score of the model once the variable is added"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator is not None and self.exact:
            raise ValueError(
                "Expected exact=False with an estimator, whose picks cannot be certified. Got: "
                "exact=True.\nHint: leave out estimator, or set exact=False."
            )
        if self.estimator is not None and self.swaps:
            raise ValueError(
                "Expected swaps=0 with an estimator, whose picks are not exchanged. Got: "
                f"swaps={self.swaps}.\nHint: leave out estimator or swaps."
            )

    def _pool_capacity(self, n: int) -> int:
        # Less than half the columns of a full pool are picks and what was exchanged for them.
        return max(super()._pool_capacity(n), (1 + self.swaps) * self.k // 2 + 1)

    def _new_groups(self, n: int) -> ColumnState:
        for name, default in (("estimator", None), ("swaps", 0)):
            if (value := getattr(self, name)) != default:
                expected = f"{default} with groups of columns"
                raise params.parameter_error(type(self).__name__, name, expected, value)
        return self._new_group_certifier(n, GroupForwardSolver(self.k, self.ridge))

    def _solver(self) -> ForwardSolver:
        return ForwardSolver(self.k, self.ridge, self.swaps, self.k)

    def _select(self, view: Any, k: int) -> Picks:
        if self.estimator is None:
            return super()._select(view, k)
        target = self._target
        if not isinstance(target, Target):
            return NO_PICKS
        unit = view.samples(np.arange(len(view.names)))
        return select_by_cross_validation(unit, target, k, self.estimator, self.cv)

    def _select_on_rows(self, view: VariableState, k: int) -> Picks:
        return select_from_correlations(view, k, self.ridge, self.swaps, self.k)

    @property
    def n_certified(self) -> int:
        """Number of leading picks certified to be those over all columns; 0 with an estimator."""
        return super().n_certified if self.estimator is None else 0

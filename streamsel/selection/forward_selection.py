"""ForwardSelection: each pick explains most of the target beside those before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.pool import Picks
from streamsel.held.stage_pool import StagePool
from streamsel.learner.jointly import Jointly
from streamsel.learner.river import Supervised
from streamsel.learner.staged import Staged
from streamsel.params import param
from streamsel.selection._forward import ForwardPlan, from_products
from streamsel.selection._greedy_plan import picked
from streamsel.selection._wrapper import by_cross_validation
from streamsel.target.target import Target


class ForwardSelection(Jointly, Staged[ForwardPlan], Supervised):
    r"""Forward selection: each pick explains most of the target beside those before it.

    The first pick is the variable most relevant to the target. What it explains is then taken out
    of the target and out of all other variables, and the next is the most relevant of what is
    left, and so on. A ridge holds back from variables of which hardly anything is left: what
    remains of these is mostly noise, and fits by chance.

    With $x$ the variables, centred and of length 1, $U$ an orthonormal basis of the target, and $R
    = \lambda (\lambda I + \sum x x^T)^{-1}$ over the picks so far, each pick maximises $\|U^T R
    x\|^2 / (\lambda + x^T R x)$. Any invertible mixing of the target's columns gives the same.

    Parameters
    ----------
    k
        How many variables to select.
    ridge
        $\lambda$, in units of a variable's sum of squares. At 0 this is orthogonal least squares:
        each pick is the variable that lessens the squared error most.
    estimator
        A scikit-learn model, which makes this a wrapper: each pick is the variable, of those held,
        beside which the model does best in cross-validation. Nothing is proven then, and
        `max_candidates` bounds the patience that it takes.
    cv
        estimator: the folds of the cross-validation, as scikit-learn takes them: a number, a
        splitter, or a list of pairs of row numbers, (train, test).
    window_size
        estimator, on rows: how many rows are gathered before they are learnt, as columns.

    Attributes
    ----------
    n_passes
        How often the columns were read, in fractions of a reading.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A column that is kept costs a copy; once the pool is full every column costs one
    product with each pick, $O(n k)$, and $O(k r)$ more, $r$ the rank of the target. Plans cost
    $O(k n m)$ for $m$ candidates, as often as the pool overflows. A row of $f$ features costs
    $O(f^2)$ at most, a row transformed $O(k)$.

    **Memory.** $8 n$ bytes a column kept, at most `max_pool_bytes`; then constant, however many
    columns come. On rows $2 m^2$ numbers, $m$ at most `max_features`.

    **Exactness.** As long as all columns fit into the pool the picks are those over all columns.
    Beyond, `n_certified` says how many leading picks are proven, and `exact=True` reads the source
    again, two to four times mostly, until all are. With `ridge=0` and hardly more rows than picks
    it takes more readings.

    **Rows.** The picks are a function of the joint moments of the variables, which rows accumulate:
    after any rows they are those over the columns of the same rows, of `max_features` variables at
    most. Beside an estimator they are those of the last window of rows.

    **Ties** go to the column that arrived first. Scores within 1e-12 of each other, relatively, are
    ties; with `ridge=0`, where rounding is divided by what the picks leave of a variable, those
    within 1e-9 times their square root. A variable of which the picks leave less than 1e-10 is
    spent then (1e-6 on rows, where only products are known). Where the picks leave a single
    direction of the observations all variables tie, and the first that is not spent is picked; the
    selection ends where the target is explained in full, or all variables are spent.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform keeps the standing features that are there.

    References
    ----------
    [^1]: Chen, S., Cowan, C. F. N. and Grant, P. M. (1991). Orthogonal least squares learning
    algorithm for radial basis function networks. IEEE Transactions on Neural Networks 2, 302-309.
    [^2]: Zhang, S. and Lang, Z.-Q. (2022). Orthogonal least squares based fast feature selection
    for linear classification. Pattern Recognition 123, 108419.

    Examples
    --------
    A target of two parts, of which one is told twice:

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

    Ten thousand columns, of which the pool holds sixty: one reading proves the first pick, or more;
    a source that can be read again, all:

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

    k: int = param(params.Whole(1), default=20, kw_only=False)
    ridge: float = param(params.Real(0.0), default=1.0)
    estimator: Any = param(params.Estimator(), default=None)
    cv: Any = param(params.Folds(), default=5)
    window_size: int = param(params.Whole(2), default=200)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "fading_factor": 0.05}
        yield {"k": 3, "ridge": 0.0, "max_candidates": 6, "max_features": 4, "grace_period": 20}
        yield {"k": 3, "max_candidates": 3, "exact": True}

    @property
    def _by_window(self) -> bool:
        return self.estimator is not None

    @property
    def _score_meaning(self) -> str:
        return (
            "decrease of the penalized squared error of the target when the variable is added"
            if self.estimator is None
            else "cross-validation score of the model once the variable is added"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator is not None and self.exact:
            raise ValueError(
                "Expected exact=False beside an estimator: what it selects cannot be proven. Got "
                "exact=True.\nHint: without an estimator ForwardSelection is exact."
            )

    def _select(self, held: Any, k: int) -> Picks:
        if self.estimator is not None:
            return self._wrapped(held, k)
        if not isinstance(held, StagePool):
            return from_products(held, k, self.ridge)
        return held.answer() if k == self.k else ForwardPlan(held, k, self.ridge).picks

    def _wrapped(self, held: StagePool, k: int) -> Picks:
        assert isinstance(self._target, Target)  # noqa: S101
        unit = held.samples(np.arange(len(held.names)))
        return by_cross_validation(unit, self._target, k, self.estimator, self.cv)

    def _plan(self, pool: StagePool, before: ForwardPlan | None, n_proven: int) -> ForwardPlan:
        return ForwardPlan(pool, self.k, self.ridge, before, n_proven)

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> ForwardPlan:
        return ForwardPlan(pool, self.k, self.ridge, given=picked(pool, state))

    @property
    def n_certified(self) -> int:
        """How many leading picks are proven those over all columns; none beside an estimator."""
        return super().n_certified if self.estimator is None else 0

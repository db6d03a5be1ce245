"""BackwardElimination: from all variables held, whoever is missed least goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.pool import Picks, Pool, SamplePool
from streamsel.learner.jointly import Jointly
from streamsel.learner.river import Supervised
from streamsel.learner.selector import Selector
from streamsel.params import param
from streamsel.selection._elimination import last_to_go
from streamsel.ties import most_relevant_first


class BackwardElimination(Jointly, Selector[Any], Supervised):
    r"""Backward elimination: whoever is missed least goes, until k are left.

    The target is regressed on all variables held. The one without which that becomes worse by least
    goes, and the target is regressed on the others; and so on, until k are left. A variable is
    judged beside all that are there, so two that tell of the target only together are found, which
    no selection sees that begins with nothing. But it takes more company than a stream has room
    for: of many columns the most relevant are held, and the others never judged.

    With $X$ the variables, centred and of length 1, $U$ an orthonormal basis of the target, $C =
    X^T X + \lambda I$ and $B = C^{-1} X^T U$, each time the variable of the smallest $\|b_j\|^2 /
    (C^{-1})_{jj}$ goes. That is by how much its going raises the least of $\|U - X B\|^2 + \lambda
    \|B\|^2$. Any invertible mixing of the target's columns gives the same.

    Parameters
    ----------
    k
        How many variables to select.
    ridge
        $\lambda$, in units of a variable's sum of squares. At 0 this is the elimination of ordinary
        least squares, for variables of which none is explained by others.
    max_candidates
        Among how many columns the elimination begins: the most relevant, at least k. As many stay
        when twice as many are held. None keeps all, for which neither time nor memory has a bound.

    Attributes
    ----------
    scores
        What it cost to remove each of the selected, and all after it had gone: in order, the last
        to go first. In all, at most the rank of the target. Costs may fall as variables go.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A column that is let go costs its relevance, one that is kept a copy. The answer costs
    $O(p^2 (n + p))$ for $p < 2m$ variables held: a tenth of a second for 1,000. A row learnt costs
    $O(p^2)$ for the $p$ variables it names, a row transformed $O(k)$.

    **Memory.** $16 n m$ bytes at most for $m$ candidates, however many columns come, and $O(p^2)$
    while an answer is made; on rows $O(p^2)$ always.

    **Exactness.** The variables held are the most relevant of all columns: as long as fewer than
    $2m$ came, all that vary, and then the answer is that over all columns. Once a column was let go
    nothing is proven, and `n_certified` is 0: a column that tells nothing by itself may make
    another worth keeping. It is then the elimination over the $m$ to $2m$ most relevant columns.

    **Without a ridge** the order is not defined where some variables explain another in full: the
    removal of any of them costs nothing. Then whatever those that came before it explain, to 1e-7
    of it, goes first. Of more columns than there are rows that leaves the first to come, whatever
    the target: a ridge is what lets all of them count.

    **Rows.** The answer is a function of the joint moments of the variables, which rows accumulate:
    all that are tracked are eliminated, `max_features` at most.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before.

    **Ties**, within 1e-12, go to the column that arrived first. Whoever goes at no cost, before all
    that do not, is not selected.

    References
    ----------
    [^1]: Miller, A. (2002). Subset Selection in Regression, 2nd ed. Chapman & Hall/CRC.
    [^2]: Guyon, I., Weston, J., Barnhill, S. and Vapnik, V. (2002). Gene selection for cancer
    classification using support vector machines. Machine Learning 46, 389-422.

    Examples
    --------
    What two gauges differ by is the target: either alone tells little of it.

    >>> import numpy as np
    >>> from streamsel import BackwardElimination, ForwardSelection

    >>> rng = np.random.default_rng(0)
    >>> level, gap = 3.0 * rng.normal(size=100), rng.normal(size=100)
    >>> X = rng.normal(size=(100, 20))
    >>> X[:, 10], X[:, 15] = level + gap, level - gap
    >>> X[:, 17] = gap + rng.normal(size=100)
    >>> model = BackwardElimination(k=2, ridge=0.01)
    >>> model.learn_target(gap)
    >>> model.learn_columns(X)
    >>> model.selected, model.n_certified
    ([10, 15], 2)

    >>> forward = ForwardSelection(k=2, ridge=0.01)
    >>> forward.learn_target(gap)
    >>> forward.learn_columns(X)
    >>> 17 in forward.selected
    True
    """

    keeps = SamplePool
    # What it costs to remove a variable says its company, and not its relevance.
    _bound_proves = False

    k: int = param(params.Whole(1), default=20, kw_only=False)
    ridge: float = param(params.Real(0.0), default=1.0)
    max_candidates: int | None = param(params.Whole(1, optional=True), default=500)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "max_candidates": 6}
        yield {"k": 3, "ridge": 0.0, "fading_factor": 0.05}
        yield {"k": 2, "max_features": 4, "grace_period": 20}

    @property
    def _score_meaning(self) -> str:
        return (
            "increase of the penalized squared error when the variable is removed, after all those "
            "below it"
        )

    def _select(self, held: Any, k: int) -> Picks:
        relevance = held.relevance()
        # What does not vary, beside covariates, has none.
        places = np.flatnonzero(relevance >= 0.0)
        G = held.coordinates(places)
        found = last_to_go(held.products(places)[places], G, self.ridge)
        return found._replace(places=places[found.places].tolist()).first(k)

    def _refill(self, pool: Pool, limit: int) -> Picks:
        relevance = pool.relevance()
        order = most_relevant_first(relevance)[:limit]
        return Picks(order.tolist(), relevance[order].tolist(), [0] * order.size)

"""SAOLA: scalable and accurate online selection by pairwise redundancy tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel._utils.numeric import TIE_RTOL
from streamsel.base.streaming_selector import StreamingSelector
from streamsel.params import param
from streamsel.selection._independence import (
    critical_values,
    degrees_of_freedom,
    independence_p_value,
    min_relevance,
)
from streamsel.state.pool.accepted import AcceptedColumns, ColumnBatch
from streamsel.targets.space import TargetSpace


class SAOLA(StreamingSelector):
    r"""Online selection of relevant variables by pairwise redundancy (SAOLA).

    SAOLA is short for *scalable and accurate online approach*. A new variable is compared with each
    selected one. It is rejected if a selected one is at least as relevant, and correlates with the
    new one at least as much as the target does. If the new one is selected, it evicts the less
    relevant variables that correlate with it at least as much as with the target. `OSFS` tests
    redundancy given sets of variables, SAOLA given single ones: SAOLA costs one product per pair,
    and leaves more redundancy.

    Parameters
    ----------
    alpha
        Level of the test of relevance: the probability that an independent variable passes it.
    delta
        Relevance that a variable must exceed, instead of the test at alpha.

    Attributes
    ----------
    scores, p_values
        Relevance of each selected variable, and its p-value under independence.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **The test** of one numeric target or two classes is Fisher's: $\operatorname{atanh}(r)
    \sqrt{n - 3}$ is standard normal if there is no correlation. Several target columns or classes
    are tested jointly, by the F test, and relevance refers to the space they span.

    **Noise.** Each independent variable passes with probability `alpha`, and noise columns are
    rarely redundant: about 40 of 5,000 are selected with $n = 500$.

    **Order** matters: a rejected variable is not tested again. It evicts no variable; in the
    authors' program it evicts those that it was compared with before its rejection.

    **Cost.** A column costs its products with the target, by which nearly all are rejected; the
    others cost their products with the $h$ tracked variables, $O(n h)$.

    **Memory.** $O(n)$ for each tracked variable.

    **Rows** are buffered in windows; each is learnt as columns, in the order of names. The result
    is that of the last full window; before the first, all variables pass.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None counts as the mean of the window. If variables are equally
    relevant, within 1e-12, the one that arrived first counts as the more relevant.

    References
    ----------
    [^1]: Yu, K., Wu, X., Ding, W. and Pei, J. (2014). Towards scalable and accurate online feature
    selection for big data. IEEE International Conference on Data Mining, 660-669.

    Examples
    --------
    The more relevant of two redundant variables is kept, in either order of arrival:

    >>> import numpy as np
    >>> from streamsel import SAOLA

    >>> rng = np.random.default_rng(0)
    >>> truth, other = rng.normal(size=(2, 300))
    >>> y = truth + other + rng.normal(size=300)

    >>> model = SAOLA()
    >>> model.learn_target(y)
    >>> model.learn_column("coarse", truth + 0.5 * rng.normal(size=300))
    >>> model.learn_column("fine", truth + 0.1 * rng.normal(size=300))
    >>> model.learn_column("other", other)
    >>> model.learn_column("noise", rng.normal(size=300))
    >>> model.selected
    ['fine', 'other']
    """

    alpha: float = param(params.FloatRule(0.0, open=True, below=1.0), default=0.01, kw_only=False)
    delta: float | None = param(params.FloatRule(0.0, optional=True, below=1.0), default=None)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {"delta": 0.1, "window_size": 30, "max_features": 4}

    def _policy(self) -> SAOLAPolicy:
        return SAOLAPolicy(self.alpha, self.delta)


class SAOLAPolicy(NamedTuple):
    """Decisions of SAOLA on arrival; the parameters are those of SAOLA."""

    alpha: float
    delta: float | None

    def rejection_threshold(self, space: TargetSpace) -> float:
        """Return the relevance below which a column is rejected without any other effect."""
        if self.delta is not None:
            return self.delta
        return min_relevance(critical_values(*degrees_of_freedom(space), 0, self.alpha))

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        """Accept relevant columns that are not redundant, and drop those that they make so."""
        dof, relevance = degrees_of_freedom(batch.space), batch.relevance
        for i in np.flatnonzero(relevance > self.rejection_threshold(batch.space)):
            if state.is_full:
                return
            index, own_relevance = batch.indices[i], float(relevance[i])
            unit = state.units(batch, index[None])[0]
            correlations = np.abs(state.pool.table["unit"] @ unit)
            selected_relevance = state.extra_field("score")
            above = selected_relevance >= own_relevance - TIE_RTOL
            if (correlations[above] >= own_relevance - TIE_RTOL).any():
                continue
            p_value = independence_p_value(own_relevance, *dof)
            state.accept(batch, int(index), score=own_relevance, p_value=p_value)
            redundant = np.flatnonzero(~above & (correlations >= selected_relevance - TIE_RTOL))
            if redundant.size:
                state.drop(redundant)

"""ProjSe: variable selection by projection operators (Szedmak, Huusari, Le, Rousu 2023)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.base.certified_selector import CertifiedSelector
from streamsel.base.river import Supervised
from streamsel.base.selector import MAX_CANDIDATES
from streamsel.params import param
from streamsel.selection._group_projse import ProjSeGroupRanking, select_groups_by_projection
from streamsel.selection._projse import squared_relevance_of_rows
from streamsel.selection._projse_certified import ProjSeSolver
from streamsel.selection._projse_pool import ProjSeRanking
from streamsel.state.base import ColumnState, Floats, Indices, VariableState
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.pool import Picks, Pool
from streamsel.state.pool.two_phase import TwoPhaseCertifier
from streamsel.targets.kernels import VariableKernel


class ProjSe(CertifiedSelector, Supervised):
    r"""Greedy selection by projection operators (ProjSe).

    The first pick is the variable most relevant to the target. Its direction is then projected out
    of the target space, so that the next pick explains most of the *residual*.
    With $P_0$ the projector on the span of the target columns, each pick maximises $\|P_s x\|^2 /
    \|x\|^2$ and $P_{s+1} = P_s - (P_s x)(P_s x)^T / \|P_s x\|^2$.

    The selection depends only on the span of the target, and on the variables' moments with the
    target, so one pass over the columns suffices.

    Parameters
    ----------
    k
        Number of variables to select.
    kernel
        Kernel between variables (columns, not samples): `"linear"`, `"poly"` or `"rbf"`.
    degree, gamma, coef0
        `"poly"`: $\kappa(u, v) = (\gamma \langle u, v \rangle + c_0)^d$, with $\gamma =
        1/n$ if None. `"rbf"`: $\kappa(u, v) = \exp(-\gamma \|u - v\|^2)$, with $\gamma =
        1/(2\sigma^2)$ if None, $\sigma$ the mean distance between the target's columns, or
        $\sqrt{2n}$, the distance of uncorrelated variables, if there are fewer than two.
    scale
        Whether variables are scaled to unit variance for a nonlinear kernel.
    on_rank_exhausted
        Behaviour after $r$ picks, which exhaust a target space of dimension $r$: `"restart"` begins
        another round with the whole projector, over the columns not yet selected; `"stop"` ends the
        selection.
    window_size
        On rows after groups of columns: number of rows buffered before they are learnt as columns.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables, which are
        never selected.
    n_passes
        Number of passes over the columns, with fractions: 1, or more if `exact` needed them.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A column costs its products with the $c$ target columns, one pass over it, and, with a
    pool, $O(r)$ products of $r$ numbers. Picks are computed on demand in $O(k p r)$ at worst, and
    cached until the next column or row. Learning a row costs $O(c)$ per present feature,
    transforming one $O(k)$.

    **Memory.** $O(n c)$ for the target and $c + 4$ numbers per candidate; $n$ numbers per candidate
    without a target. On rows $3c + 6$ numbers per variable, for any number of rows.

    **Rows.** The selection is that on the columns of the same rows, exactly for every kernel,
    because kernels are functions of the moments, which rows accumulate. A model that has learnt
    columns continues from their moments; variables that a pool (`max_candidates`) has discarded
    count as not observed in earlier rows.

    **Ties** go to the column that arrived first; scores within 1e-12 of each other, relatively, are
    ties. A variable with a residual below 1e-12 under the projector is not picked
    again in that round.

    **Without a target** (`learn_target(None)`) the variables explain each other: $P_0$ is the
    identity, and the selection is the pivoted Cholesky factorisation of the variables' own kernel
    matrix; only $k$ of its columns are computed. The first variable is then always the first pick,
    because all scores start at 1.

    **Two views.** Each view is the target of the other: `learn_target` takes one, `learn_columns`
    the other.

    **Groups of columns** (`learn_group`, `stream.grouped`), with the linear kernel: with $Q$ an
    orthonormal basis of a group of dimension $q$, each pick maximises $\|P_s Q\|^2 / q$, and the
    span of $P_s Q$ is projected out. Rows after groups are learnt by windows of `window_size`.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None means not observed, and counts as the variable's mean; a new
    variable, class or target counts as 0 in earlier rows. A transform keeps the features in use
    that are present.

    The authors' published code differs from their definition: it does not project out the first
    pick before the second, so it can pick a duplicate of the first; and it centres across
    variables. This class follows the definition.

    References
    ----------
    [^1]: Szedmak, S., Huusari, R., Le, T. and Rousu, J. (2023). Scalable variable
    selection for two-view learning tasks with projection operators. arXiv:2307.01558. Sections 2 to
    4.

    Examples
    --------
    Two variables correlate with the first target column, one with the second:

    >>> import numpy as np
    >>> from streamsel import ProjSe

    >>> rng = np.random.default_rng(1)
    >>> Y = rng.normal(size=(100, 2))
    >>> model = ProjSe(k=2)
    >>> model.learn_target(Y)
    >>> model.learn_column("strong", Y[:, 0] + 0.1 * rng.normal(size=100))
    >>> model.learn_column("similar", Y[:, 0] + 0.2 * rng.normal(size=100))
    >>> model.learn_column("other", Y[:, 1] + 0.5 * rng.normal(size=100))
    >>> model.learn_column("noise", rng.normal(size=100))

    The two most relevant, "strong" and "similar", are redundant:

    >>> model.selected
    ['strong', 'other']
    >>> model.transform_one({"strong": 1.0, "similar": 1.1, "other": 0.3, "new": 7.0})
    {'strong': 1.0, 'other': 0.3}

    All selected variables are above the noise floor:

    >>> all(found > model.noise_floor() for found in model.relevance.values())
    True

    The model continues to learn from rows, in a River pipeline or by itself:

    >>> for _ in range(100):
    ...     a, b = rng.normal(size=2)
    ...     x = {"strong": rng.normal(), "other": b, "late": a}
    ...     model.learn_one(x, {0: a, 1: b})
    >>> model.selected, model.n_rows
    (['other', 'late'], 200)
    """

    _takes_no_target = True
    # The pool is bounded by the number of candidates alone.
    _fixed_parameters: ClassVar[Mapping[str, Any]] = {"max_pool_bytes": 0}

    k: int = param(params.IntRule(1), default=20, kw_only=False)
    kernel: str = param(params.ChoiceRule(("linear", "poly", "rbf")), default="linear")
    degree: int = param(params.IntRule(1, below=params.MAX_COUNT), default=3)
    gamma: float | None = param(params.FloatRule(0.0, open=True, optional=True), default=None)
    coef0: float = param(params.FloatRule(0.0), default=0.0)
    scale: bool = param(params.FlagRule(), default=True)
    max_candidates: int | None = param(
        params.IntRule(1, optional=True), default=None, doc=MAX_CANDIDATES
    )
    on_rank_exhausted: str = param(params.ChoiceRule(("restart", "stop")), default="restart")
    window_size: int = param(params.IntRule(2), default=200)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {"k": 3, "kernel": "poly", "degree": 2, "coef0": 1.0}
        yield {"k": 3, "kernel": "rbf"}
        yield {"k": 2, "on_rank_exhausted": "stop", "refresh_factor": 1.0, "hysteresis": 1.0}
        yield {"k": 2, "fading_factor": 0.05, "refresh_factor": 1.0, "warm_up": 0}
        yield {"k": 2, "max_features": 4, "grace_period": 20}
        yield {"k": 2, "max_candidates": 4}
        yield {"k": 2, "max_candidates": 3, "exact": True}

    def _variable_kernel(self) -> VariableKernel:
        return VariableKernel(self.kernel, self.degree, self.gamma, self.coef0, self.scale)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.permutations and self.kernel != "linear":
            raise ValueError(
                "Expected kernel='linear' with permutations, which compare targets by "
                f"correlation. Got: {self.kernel!r}.\nHint: leave out permutations, or the kernel."
            )

    # State and selection

    def _new_columns(self, n: int) -> ColumnState:
        pool = self._new_pool(n, self.max_candidates)
        return TwoPhaseCertifier(pool, self._solver()) if self._needs_single_source else pool

    def _new_pool(self, n: int, limit: int | None) -> Pool:
        # Without a target variables explain each other, which requires their samples.
        return Pool(
            self._space,
            n,
            limit,
            ProjSeRanking(self._variable_kernel()),
            samples=self._space is None,
            normal_scores=self._normal_scores(),
        )

    def _new_groups(self, n: int) -> ColumnState:
        for name, is_refused, expected in (
            ("kernel", self.kernel != "linear", "'linear'"),
            ("exact", self._needs_single_source, "False"),
        ):
            if is_refused:
                text, value = f"{expected} with groups of columns", getattr(self, name)
                raise params.parameter_error(type(self).__name__, name, text, value)
        return GroupPool(
            self._significance.known_space,
            n,
            self.max_candidates,
            ProjSeGroupRanking(),
            coordinates=True,
            normal_scores=self._normal_scores(),
        )

    def _select(self, view: VariableState, k: int) -> Picks:
        if isinstance(view, GroupPool):
            restart = self.on_rank_exhausted == "restart"
            return select_groups_by_projection(view, k, restart=restart)
        return super()._select(view, k)

    def _solver(self) -> ProjSeSolver:
        return ProjSeSolver(self.k, self.on_rank_exhausted == "restart", self._variable_kernel())

    @property
    def _score_meaning(self) -> str:
        return "squared relevance to the residual of the target given the earlier picks"

    def _relevances(self, view: VariableState, indices: Indices) -> Floats:
        if self._columns is None or isinstance(view, GroupPool):
            return view.relevance(indices)
        rows = view.stats(indices)._asdict()
        return np.sqrt(np.minimum(squared_relevance_of_rows(view, rows), 1.0))

    @property
    def _needs_single_source(self) -> bool:
        return self.exact and self.max_candidates is not None

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable when it was picked, in order: name -> ‖P_s x‖² / ‖x‖²."""
        return {name: min(score, 1.0) for name, score in super().scores.items()}

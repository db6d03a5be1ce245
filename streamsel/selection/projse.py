"""ProjSe: selection of variables by projection operators (Szedmak, Huusari, Le, Rousu 2023)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from streamsel import params
from streamsel.columns import Chunk, Stats, chunks, effective_jobs
from streamsel.kernels import VariableKernel
from streamsel.moments import Moments
from streamsel.selection._base import Selector
from streamsel.selection._candidates import (
    Candidates,
    MomentCandidates,
    SampleCandidates,
    copied_rows,
)
from streamsel.selection._exact import Verification, unlike_before
from streamsel.selection._greedy import (
    NO_PICKS,
    SPENT,
    CoordinateDeflation,
    Deflation,
    Picks,
    greedy,
)
from streamsel.selection._pool import Pool
from streamsel.stream import ColumnStream


class ProjSe(Selector):
    r"""Selection by projection: variables that together cover the target.

    The first pick is the variable most relevant to the target. Its direction is then projected out
    of the target space, so that the next pick is the variable that covers most of what is *left*.
    With $P_0$ the projector on the span of the target columns, each pick maximises $\|P_s x\|^2 /
    \|x\|^2$ and $P_{s+1} = P_s - (P_s x)(P_s x)^T / \|P_s x\|^2$.

    The choice depends on the span of the target only. Everything that the method needs of a
    variable is its moments with the target, so that one pass over the columns suffices.

    Parameters
    ----------
    k
        How many variables to select.
    kernel
        The kernel between variables (columns, not samples): `"linear"`, `"poly"` or `"rbf"`.
    degree, gamma, coef0
        poly: $\kappa(u, v) = (\gamma \langle u, v \rangle + c_0)^d$, with $\gamma = 1/n$ if None.
        rbf: $\kappa(u, v) = \exp(-\gamma \|u - v\|^2)$, with $\gamma = 1/(2\sigma^2)$ if None,
        $\sigma$ the mean distance between the target's columns, or $\sqrt{2n}$, the distance of
        unrelated variables, where there are fewer than two.
    scale
        Whether a kernel that is not linear sees variables scaled to unit variance.
    max_candidates
        None keeps the moments of every column: exact, $O(c p)$ memory. A number $m \geq k$ keeps a
        pool of the best $m$ to $2m$ candidates: constant memory; `n_certified` says how many picks
        are proven the same.
    exact
        Whether, with a pool, `learn_columns` reads its source again until all picks are proven
        those of all columns. Such a model learns one source, once.
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one; 0 forgets nothing. As
        in River, the closer to 1 the faster the old is forgotten.
    max_features
        Most variables tracked on rows, above k; None for all. When a new one needs room the least
        relevant go, but none that is selected or in its grace period.
    grace_period
        For how many rows a new variable cannot be let go.
    after_rank
        A target space of dimension $r$ gives $r$ picks a round. `"restart"` begins another round,
        with the whole projector, over the columns not yet selected; `"stop"` leaves it at that.
    target
        `"auto"` takes labels for classes and numbers for quantities, `"class"` takes numbers for
        classes, `"numeric"` refuses labels.
    n_jobs
        Number of threads that read the columns; -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary, which are never
        selected.
    n_passes
        How often the columns were read: 1, or more where `exact` had to read them again.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A column costs its products with the $c$ target columns, one pass over it, and,
    with a pool, $O(r)$ products of $r$ numbers more. Picks are computed when they are asked for,
    $O(k p r)$ at worst, and cached until the next column or row. A row learnt costs $O(c)$ for each
    feature that it has, a row transformed $O(k)$.

    **Memory.** $O(n c)$ for the target and $c + 4$ numbers a candidate; $n$ numbers a candidate
    without a target. On rows $3c + 6$ numbers a variable, however many rows there are.

    **Rows.** After any rows the selection is that of ProjSe on the columns of the same rows: exact
    for every kernel, for they are functions of the moments, which rows accumulate. A model that has
    learnt columns goes on from their moments; only a pool (`max_candidates`) has let some go, which
    then count as not observed in the rows before.

    **Ties** go to the column that arrived first; scores within 1e-12 of each other, relatively, are
    ties. A variable of which less than 1e-12 is left under the projector is spent, and not picked
    in that round again.

    **Without a target** (`learn_target(None)`) the variables explain each other: $P_0$ is the
    identity, and the greedy is the pivoted Cholesky factorisation of the variables' own kernel
    matrix, of which only $k$ columns are made. The first variable is then always picked first, for
    all scores begin at 1.

    **Two views.** Each is the target of the other: learn one's columns with `learn_target` of the
    other.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform keeps the selected features that are there.

    The authors' published code differs from their definition: it does not project out the first
    pick before the second, so that it can pick a duplicate of it, and it centres across variables.
    This class is the definition.

    References
    ----------
    [^1]: Szedmak, S., Huusari, R., Le, T. and Rousu, J. (2023). Scalable variable
    selection for two-view learning tasks with projection operators. arXiv:2307.01558. Sections 2 to
    4.

    Examples
    --------
    Two variables that tell of the first part of a target, and one that tells of the second:

    >>> import numpy as np
    >>> from streamsel import ProjSe

    >>> rng = np.random.default_rng(1)
    >>> Y = rng.normal(size=(100, 2))
    >>> model = ProjSe(k=2)
    >>> model.learn_target(Y)
    >>> model.learn_column("strong", Y[:, 0] + 0.1 * rng.normal(size=100))
    >>> model.learn_column("alike", Y[:, 0] + 0.2 * rng.normal(size=100))
    >>> model.learn_column("other", Y[:, 1] + 0.5 * rng.normal(size=100))
    >>> model.learn_column("noise", rng.normal(size=100))

    The two most relevant are "strong" and "alike", but they say the same:

    >>> model.selected
    ['strong', 'other']
    >>> model.transform_one({"strong": 1.0, "alike": 1.1, "other": 0.3, "new": 7.0})
    {'strong': 1.0, 'other': 0.3}

    What is relevant by chance is below the noise floor:

    >>> all(found > model.noise_floor() for found in model.relevance.values())
    True

    The model goes on learning from rows, in a River pipeline or by itself:

    >>> for _ in range(100):
    ...     a, b = rng.normal(size=2)
    ...     x = {"strong": rng.normal(), "other": b, "late": a}
    ...     model.learn_one(x, {0: a, 1: b})
    >>> model.selected, model.n_rows
    (['other', 'late'], 200)
    """

    _rules: ClassVar[dict[str, params.Rule]] = {
        "k": params.Whole(1),
        "kernel": params.Choice(("linear", "poly", "rbf")),
        "degree": params.Whole(1),
        "gamma": params.Real(0.0, open=True, optional=True),
        "coef0": params.Real(0.0),
        "scale": params.Flag(),
        "max_candidates": params.Whole(1, optional=True),
        "exact": params.Flag(),
        "after_rank": params.Choice(("restart", "stop")),
        **Selector._rules,
    }
    _takes_no_target = True

    def __init__(
        self,
        k: int = 20,
        *,
        kernel: str = "linear",
        degree: int = 3,
        gamma: float | None = None,
        coef0: float = 0.0,
        scale: bool = True,
        max_candidates: int | None = None,
        exact: bool = False,
        fading_factor: float = 0.0,
        max_features: int | None = None,
        grace_period: int = 100,
        after_rank: str = "restart",
        target: str = "auto",
        n_jobs: int = 1,
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.scale = scale
        self.max_candidates = max_candidates
        self.exact = exact
        self.fading_factor = fading_factor
        self.max_features = max_features
        self.grace_period = grace_period
        self.after_rank = after_rank
        self.target = target
        self.n_jobs = n_jobs
        super().__init__()
        if max_candidates is not None and max_candidates < k:
            raise ValueError(
                f"The 'max_candidates' parameter of ProjSe must be None or at least k = {k}. "
                f"Got {max_candidates!r} instead."
            )
        if max_features is not None and max_features <= k:
            raise ValueError(
                f"The 'max_features' parameter of ProjSe must be None or above k = {k}. "
                f"Got {max_features!r} instead."
            )
        self.n_passes = 0
        self._pool: Pool | None = None
        # Both are made when they are asked for, and hold until the next column or row.
        self._picks: Picks | None = None
        self._names: list[Hashable] = []

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {"k": 3, "kernel": "poly", "degree": 2, "coef0": 1.0}
        yield {"k": 3, "kernel": "rbf"}
        yield {"k": 2, "after_rank": "stop"}
        yield {"k": 2, "fading_factor": 0.05}
        yield {"k": 2, "max_features": 4, "grace_period": 20}

    def _variable_kernel(self) -> VariableKernel:
        return VariableKernel(self.kernel, self.degree, self.gamma, self.coef0, self.scale)

    # Learning

    def learn_column(self, name: Hashable, values: Any) -> None:
        """Learn one variable; see `streamsel.base.Learner.learn_column`."""
        self._refuse_second_source()
        super().learn_column(name, values)

    def _learn_stream(self, stream: ColumnStream) -> None:
        self._refuse_second_source(stream)
        super()._learn_stream(stream)
        if self.exact and self.max_candidates is not None and self._pool is not None:
            self._verify(stream)

    def _refuse_second_source(self, stream: ColumnStream | None = None) -> None:
        if not self.exact or self.max_candidates is None:
            return
        if stream is None:
            got = "a single column"
        elif not stream.rereadable:
            got = "a source that can be read once"
        elif self.n_columns:
            got = "another source"
        else:
            return
        raise ValueError(
            "Expected one source that can be read again, as exact=True asks for. Got: "
            f"{got}.\nHint: exact=False proves what one pass can prove (n_certified); "
            "max_candidates=None is exact in one pass."
        )

    def _verify(self, stream: ColumnStream) -> None:
        """Read the source again until all picks are proven."""
        assert self._pool is not None  # noqa: S101
        assert self._target is not None  # noqa: S101
        picks = self._current_picks()
        all_proven = self._pool.certified(picks) == len(picks.places)
        done = all_proven and (len(picks.places) == self.k or self._pool.discarded <= SPENT)
        jobs = effective_jobs(self.n_jobs)
        while not done:
            verification = Verification(self._pool, self._current_picks(), self.k)
            arrival = 0
            for block in stream.blocks():
                for chunk in chunks(block, self._target.n):
                    verification.see(chunk, chunk.scan(self._target, jobs), arrival)
                    arrival += len(chunk.names)
            if arrival != self.n_columns:
                raise unlike_before(f"{arrival} columns, after {self.n_columns}")
            self._pool, done = verification.finish()
            self._picks = None
            self.n_passes += 1

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        if self._pool is None:
            self._pool = Pool(self._new_candidates(chunk.n), self.max_candidates)
        self._pool.admit(chunk, stats, self.n_columns)
        self._picks = None
        self.n_passes = 1

    def _new_candidates(self, n: int) -> Candidates:
        if self._space is None:
            return SampleCandidates(self._variable_kernel(), n)
        return MomentCandidates(self._space)

    def _merge(self, other: Self) -> None:
        theirs = other._pool
        if theirs is None:
            return
        if self._pool is None:
            assert other._target is not None  # noqa: S101
            self._pool = Pool(self._new_candidates(other._target.n), self.max_candidates)
        rows = {field: theirs.table[field] for field in theirs.table.fields}
        rows["arrival"] = rows["arrival"] + self.n_columns
        self._pool.take_in(theirs, rows)
        self._picks = None
        self.n_passes = max(self.n_passes, other.n_passes)

    def _held_names(self) -> dict[Hashable, int]:
        return {} if self._pool is None else self._pool.table.slots

    def _mark(self) -> dict[str, Any]:
        pool = None if self._pool is None else self._pool.mark()
        return super()._mark() | {"n_passes": self.n_passes, "pool": (self._pool, pool)}

    def _rewind(self, mark: dict[str, Any]) -> None:
        self._pool, pool = mark.pop("pool")
        if self._pool is not None and pool is not None:
            self._pool.rewind(pool)
        self._picks = None
        super()._rewind(mark)

    # Rows

    def _carry_over(self, moments: Moments) -> None:
        if self._pool is None:
            return
        table = self._pool.table
        moments.take_columns(table.names, Stats(*(table[field] for field in Stats._fields)))
        if self._pool.discarded >= 0.0:
            moments.forget()

    def _carried_constant(self) -> int:
        if self._pool is None:
            return 0
        return int(np.count_nonzero(self._pool.table["m2"] == 0.0))

    def _begin(self, moments: Moments) -> None:
        super()._begin(moments)
        self._pool = self._picks = None

    def _protected(self) -> Collection[Hashable]:
        return self.selected

    def _outdate(self) -> None:
        super()._outdate()
        self._picks = None

    # What was learnt

    def _current_picks(self) -> Picks:
        if self._picks is None:
            if self._moments is not None:
                stats, names = self._moments.over_all_rows(), self._moments.table.names
                space = self._row_space(self._moments)
                deflation: Deflation = CoordinateDeflation(space.coordinates(stats.m2, stats.cxy))
                known = NO_PICKS
            elif self._pool is not None:
                names, known = self._pool.table.names, self._pool.known
                deflation = self._pool.candidates.deflation()
            else:
                return NO_PICKS
            restart = self.after_rank == "restart"
            self._picks = greedy(deflation, self.k, restart=restart, forced=known)
            self._names = [names[j] for j in self._picks.places]
        return self._picks

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order; fewer than k if nothing more is relevant."""
        self._current_picks()
        return list(self._names)

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable when it was picked, in order: name -> ‖P_s x‖² / ‖x‖²."""
        found = (min(score, 1.0) for score in self._current_picks().scores)
        return dict(zip(self.selected, found, strict=True))

    @property
    def rounds(self) -> dict[Hashable, int]:
        """Round in which each variable was selected, in order: name -> 0, 1, ..."""
        return dict(zip(self.selected, self._current_picks().rounds, strict=True))

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each selected variable, in order: name -> ‖g‖."""
        picks = self._current_picks()
        if not picks.places:
            return {}
        if self._moments is not None:
            stats = self._moments.over_all_rows(np.asarray(picks.places, dtype=np.intp))
            found = self._row_space(self._moments).relevance(stats.m2, stats.cxy)
        elif self._pool is not None:
            rows = copied_rows(self._pool.table, picks.places)
            found = np.sqrt(np.minimum(self._pool.candidates.relevance2(rows), 1.0))
        return dict(zip(self.selected, found.tolist(), strict=True))

    @property
    def n_certified(self) -> int:
        """How many leading picks are proven to be those of ProjSe over all columns at once."""
        if self._moments is not None:
            return len(self._current_picks().places) if self._moments.complete else 0
        return 0 if self._pool is None else self._pool.certified(self._current_picks())

    # Persistence

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state() | {"n_passes": self.n_passes}
        if self._pool is not None:
            state["pool"] = self._pool.to_state()
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self.n_passes = state["n_passes"]
        if "pool" in state:
            self._pool = Pool(self._new_candidates(state["n_rows"]), self.max_candidates)
            self._pool.set_state(state["pool"])

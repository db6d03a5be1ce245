"""Pool of columns: all of them, or a bounded number of the best."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np

from streamsel._kernels.scan import UNDERFLOW
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.data.columns import Chunk, Stats
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_explained,
    expect_means,
    expect_sums,
    expect_units,
)
from streamsel.serialization.schema import FloatKind, expect
from streamsel.state.base import ColumnState, Floats, Indices, VariableTable
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.space import TargetSpace

# Scores within this relative distance are equal, and the earlier column ranks first.
TIE_RTOL = 1e-12
# A score up to this is a rounding error: the variable is exhausted.
ZERO_TOL = 1e-12
# Error of a mean that is tolerated, relative to the column's length.
_MEAN_RTOL = 1e-14


class Picks(NamedTuple):
    """The picks of a selection, in order: index, score when it was picked, round."""

    indices: list[int]
    scores: list[float]
    rounds: list[int]

    def first(self, n: int) -> Picks:
        """Return the first n picks."""
        return Picks(self.indices[:n], self.scores[:n], self.rounds[:n])


NO_PICKS = Picks([], [], [])


class EvictionResult(NamedTuple):
    """Result of offering columns to a pool.

    Parameters
    ----------
    kept
        Indices of the pool's variables to keep, ascending; None for all.
    appended
        Which of the offered columns to append, ascending.
    max_discarded_bound, admission_threshold
        As attributes of `Pool`.
    plan
        Cached result of the method for the next cut; valid until the pool is cut otherwise.
    """

    kept: Indices | None
    appended: Indices
    max_discarded_bound: float
    admission_threshold: float
    plan: Any = None


class Ranking(Protocol):
    """Protocol of a method that ranks the columns of a pool."""

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on all later scores of rows of the pool's table."""

    def _batch_update(
        self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices
    ) -> EvictionResult | None:
        """Return the result of offering these columns in order, in the way that `Pool` describes.

        For methods with a faster way than repeated cuts; None for all others.
        """

    def _relevance_cutoff(self, bound: float) -> float:
        """Return the relevance below which a column's bound is below `bound`; -inf if none is."""

    def _keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the variables to keep when the pool is cut back to its limit."""

    def _max_round_size(self, pool: Pool) -> int:
        """Return the maximum number of picks in a round."""


class Pool(ColumnState):
    """Moments of columns: of all of them, or of a bounded number of the best.

    Whenever the pool holds twice the limit, the method chooses the variables to keep. Cuts depend
    on the number of admitted columns only, so the division of the stream into blocks makes no
    difference.

    Parameters
    ----------
    space
        The target space; None without a target.
    n
        Number of observations.
    limit
        Number of variables after a cut; None keeps all columns.
    noted
        Names of further fields of a variable, one number each.

    Attributes
    ----------
    method
        The method that ranks the columns; to be set before columns arrive.
    table
        `arrival`, the moments as in `columns.Stats`, and the further fields.
    max_discarded_bound
        The largest bound of a discarded column; -1.0 if there is none. No later score of such a
        column could have been higher.
    admission_threshold
        A column whose bound is not above it would not have been kept at the
        last cut either.
    solution
        Cached result of the method from the last cut, for the next; it follows from the state, and
        may be dropped. It is replaced, never modified.
    """

    # Normal scores to compare relevances with noise by, instead of the target; set before columns.
    scores: NormalScores | None = None

    method: Ranking

    def serve(self, method: Ranking) -> None:
        """Set the method of the pool by a weak reference, because the method owns the pool."""
        self.method = cast("Ranking", weakref.proxy(method))

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int | None, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(n)
        self._space = space
        self.limit = limit
        self.table = VariableTable(self._fields() | dict.fromkeys(noted, ()))
        self._extra_fields = tuple(noted)
        self.max_discarded_bound = -1.0
        self.admission_threshold = -1.0
        self.solution: Any = None

    def set_normal_scores(self, scores: NormalScores | None) -> None:
        """Set the target's normal scores for the comparison with noise, before columns arrive."""
        if scores is not None:
            self.scores = scores
            self.table = VariableTable(self.table.fields | self._fields_of_scores())

    def _fields_of_scores(self) -> dict[str, tuple[int, ...]]:
        return {"normal_score_products": ()}

    def _fields(self) -> dict[str, tuple[int, ...]]:
        c = 0 if self._space is None else self._space.c
        return {"arrival": (), "mean": (), "mean_error": (), "m2": (), "cxy": (c,)}

    def empty(self) -> Self:
        """Return an empty pool of the same kind."""
        other = type(self)(self._space, self.n, self.limit, self._extra_fields)
        other.method = self.method
        other.set_normal_scores(self.scores)
        return other

    # Contents

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self.max_discarded_bound < 0.0

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""
        return self._space

    def extra_field(self, field: str) -> Floats:
        """Return a further field of the variables, recorded on arrival, (p,)."""
        return self.table[field]

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        numbers = sum(math.prod(shape) for shape in self.table.fields.values())
        n_kept = p if self.max_variables is None else min(p, self.max_variables)
        # The table grows by doubling, and names take memory, too.
        return n_kept * (16 * numbers + 100)

    @property
    def max_variables(self) -> int | None:
        """The maximum number of variables at any time; None for no limit."""
        return None if self.limit is None else 2 * self.limit

    # Learning

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded and no bound changes."""
        threshold = min(self.admission_threshold, self.max_discarded_bound)
        if threshold <= 0.0 or self._extra_fields:
            return -math.inf
        return self.method._relevance_cutoff(threshold)

    def rows_of(self, chunk: Chunk, stats: Stats, indices: Indices | None) -> dict[str, Floats]:
        """Return the table rows of these columns of a chunk; None for all with moments."""
        rows = stats._asdict()
        if indices is not None:
            rows = {field: array[indices] for field, array in rows.items()}
        if self.scores is not None and "normal_score_products" in self.table.fields:
            rows["normal_score_products"] = self.scores.products(chunk, indices)[: stats.m2.size]
        return rows

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores."""
        if self.scores is None or self._space is None:
            return self.relevance(indices)
        stats, products = self.stats(indices), self.table["normal_score_products"]
        adjusted = self._space.adjusted_squares(stats.m2, stats.cxy)
        products = products if indices is None else products[indices]
        return np.abs(products) / np.sqrt(np.where(adjusted > 0.0, adjusted, np.inf))

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of all of them or of the first ones.
        first_arrival
            Number of columns of the stream before the chunk.
        indices
            Indices of the columns to learn among those with moments, ascending; None for all that
            the pool can use: a bounded pool cannot use columns that are constant, given the
            covariates.
        noted
            Further fields of the columns with moments, one number each.
        """
        all_kept = self.limit is None and self.accepts_constant
        if indices is None and not all_kept:
            varies = (
                stats.m2
                if self._space is None
                else self._space.adjusted_squares(stats.m2, stats.cxy)
            )
            indices = None if varies.all() else np.flatnonzero(varies)
        if self.limit is None:
            self._copy_before_write()
            self._append(chunk, stats, first_arrival, indices, noted)
            return
        if indices is None:
            indices = np.arange(stats.m2.size)
        sifted = self.method._batch_update(self, chunk, stats, indices)
        if sifted is None:
            self._fill(chunk, stats, first_arrival, indices, noted)
        elif (
            sifted.kept is not None
            or sifted.appended.size
            or sifted.max_discarded_bound > self.max_discarded_bound
        ):
            self._copy_before_write()
            if sifted.kept is not None:
                self.table.keep(sifted.kept)
            if sifted.appended.size:
                self._append(chunk, stats, first_arrival, indices[sifted.appended], noted)
            self.max_discarded_bound, self.admission_threshold = (
                sifted.max_discarded_bound,
                sifted.admission_threshold,
            )
            self.solution = sifted.plan

    def _fill(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        noted: Mapping[str, Floats],
    ) -> None:
        """Admit the eligible columns, and cut the pool back whenever it is full."""
        assert self.limit is not None  # noqa: S101
        offered = stats._asdict() | dict(noted)
        if indices.size < stats.m2.size:
            offered = {field: array[indices] for field, array in offered.items()}
        bound = self.method._bound(self, offered)
        # Nearly all single columns are discarded, and change nothing.
        while indices.size and bound.max() > min(
            self.admission_threshold, self.max_discarded_bound
        ):
            eligible = bound > self.admission_threshold
            room = 2 * self.limit - len(self.table)
            admitted = np.flatnonzero(eligible)[:room]
            stop = indices.size if admitted.size < room else int(admitted[-1]) + 1
            rejected = bound[:stop][~eligible[:stop]]
            if admitted.size or (rejected.size and rejected.max() > self.max_discarded_bound):
                self._copy_before_write()
            self._note_discarded(rejected)
            if admitted.size:
                self._append(chunk, stats, first_arrival, indices[admitted], noted)
            indices, bound = indices[stop:], bound[stop:]
            self.cut_back()

    def _append(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None,
        noted: Mapping[str, Floats],
    ) -> None:
        if indices is None:
            size = stats.m2.size
            names: Sequence[Hashable] = chunk.names[:size]
            arrival = np.arange(first_arrival, first_arrival + size)
        else:
            names = [chunk.names[index] for index in indices.tolist()]
            arrival = first_arrival + indices
            noted = {field: array[indices] for field, array in noted.items()}
        rows = self.rows_of(chunk, stats, indices)
        self.table.append(names, arrival=arrival, **rows, **noted)

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if self.limit is None or len(self.table) < 2 * self.limit:
            return
        picks = self.method._keep_best(self, self.limit)
        kept = np.sort(np.asarray(picks.indices, dtype=np.intp))
        is_discarded = np.ones(len(self.table), dtype=np.bool_)
        is_discarded[kept] = False
        fields = {field: self.table[field][is_discarded] for field in self.table.fields}
        self._note_discarded(self.method._bound(self, fields))
        self.admission_threshold = min(picks.scores) if len(picks.indices) == self.limit else 0.0
        self.table.keep(kept)
        self.solution = None

    def _note_discarded(self, bound: Floats) -> None:
        if bound.size:
            self.max_discarded_bound = max(self.max_discarded_bound, float(bound.max()))

    def count_certified(self, picks: Picks) -> int:
        """Return how many leading picks no discarded column can have changed.

        A pick is proven if all before it are, and its score is above every score that a discarded
        column could have had. A new round counts only if the previous one used up the whole rank: a
        discarded column could have had a residual where the candidates had none.
        """
        if self.max_discarded_bound <= ZERO_TOL:
            return len(picks.indices)
        threshold = self.max_discarded_bound * (1.0 + TIE_RTOL)
        in_round = 0
        for n, score in enumerate(picks.scores):
            new_round = n > 0 and picks.rounds[n] != picks.rounds[n - 1]
            if score <= threshold or (new_round and in_round < self.method._max_round_size(self)):
                return n
            in_round = 1 if new_round else in_round + 1
        return len(picks.indices)

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._copy_before_write()
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.index_of, **rows)
        self.max_discarded_bound = max(self.max_discarded_bound, other.max_discarded_bound)
        self.cut_back()

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # All other attributes are replaced, not modified.
        return vars(self) | {"table": self.table.restorer()}

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._restored(saved) | {"table": saved["table"]()}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "table": self.table.to_state(),
            "max_discarded_bound": self.max_discarded_bound,
            "admission_threshold": self.admission_threshold,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, max_discarded_bound=FloatKind(), admission_threshold=FloatKind())
        self.table = VariableTable.from_state(state["table"], self.table.fields)
        self.max_discarded_bound, self.admission_threshold = (
            state["max_discarded_bound"],
            state["admission_threshold"],
        )
        if self.limit is not None:
            self._expect_fewer_than(2 * self.limit)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        table = self.table
        expect_sums("sums of squares", table["m2"])
        if not self.accepts_constant and not (table["m2"] > 0.5 * UNDERFLOW).all():
            raise ValueError("Expected variables that vary. Got: constant ones.")
        expect_means(table["mean"], table["mean_error"], np.sqrt(np.abs(table["m2"])))
        expect_between("arrivals", table["arrival"], 0.0, 2.0**53)
        if np.unique(table["arrival"]).size < len(table):
            raise ValueError("Expected arrivals that differ. Got: equal ones.")
        for field in self._extra_fields:
            expect_bounded(field, table[field])
        if "normal_score_products" in table.fields:
            products = table["normal_score_products"][:, None]
            expect_explained(table["m2"], table["mean"], products, np.ones(1))
        if "p_value" in self._extra_fields:
            expect_between("p-values", table["p_value"], 0.0, 1.0)

    def _expect_fewer_than(self, room: int) -> None:
        """Raise ValueError for as many variables as a pool never holds: a full pool is cut."""
        if len(self.table) >= room:
            raise ValueError(f"Expected fewer than {room} variables. Got: {len(self.table)}.")


class SamplePool(Pool):
    """Pool that also stores the observations of its variables, centred and of length 1."""

    accepts_constant = False
    provides = frozenset({"products", "samples"})

    @property
    def sample_pool(self) -> SamplePool:
        """The pool itself."""
        return self

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int | None, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(space, n, limit, noted)
        # (r, n) orthonormal basis of the target space, and (d, n) of the covariates' span, which is
        # projected out of the observations.
        self.basis: Floats = np.zeros((0, n))
        self.covariate_basis: Floats | None = None

    def set_target_basis(self, Y: Floats) -> None:
        """Set the bases from target and covariates, (c, n), before columns arrive."""
        assert self._space is not None  # noqa: S101
        self.basis = self._space.weights @ Y
        self.covariate_basis = (
            self._space.covariate_map @ Y if len(self._space.covariate_map) else None
        )

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return super()._fields() | {"unit": (self.n,)}

    def rows_of(self, chunk: Chunk, stats: Stats, indices: Indices | None) -> dict[str, Floats]:
        """Return the table rows of these columns of a chunk; None for all with moments."""
        rows = super().rows_of(chunk, stats, indices)
        indices = np.arange(stats.m2.size) if indices is None else indices
        return rows | {"unit": self.unit_rows_of(chunk, stats, indices)}

    def unit_rows_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the observations of columns in the form that the pool stores."""
        unit = unit_columns(chunk, stats, indices)
        return unit if self.covariate_basis is None else residuals(unit, self.covariate_basis)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        self._expect_units()

    def _expect_units(self) -> None:
        expect_units(self.table["unit"])

    def _fields_of_scores(self) -> dict[str, tuple[int, ...]]:
        return {}  # the observations suffice

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores."""
        if self.scores is None:
            return self.relevance(indices)
        unit = self.table["unit"] if indices is None else self.table["unit"][indices]
        found: Floats = np.abs(unit @ self.scores.Y[0])
        return found

    def samples(self, indices: Indices) -> Floats:
        """Return the observations of variables, centred and of length 1, one variable per row."""
        return self.table["unit"][indices]

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        unit = self.table["unit"]
        return unit @ unit[indices].T


def residuals(unit: Floats, given: Floats) -> Floats:
    """Return unit rows with the span of others, (d, n), projected out, again of length 1."""
    # Twice, for the accuracy of rows that lie nearly in the span.
    for _ in range(2):
        unit = unit - (unit @ given.T) @ given
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(length > 0.0, length, 1.0)[:, None]
    return unit


def unit_columns(chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
    """Return columns of a chunk, centred and of length 1, one per row; 0 for constant ones."""
    unit, stats = chunk.columns(indices), chunk.with_array_means(stats)
    unit -= stats.mean[indices, None]
    m2, low = stats.m2[indices], stats.mean_error[indices]
    # The rounding error of a mean matters only for a large mean.
    if np.any(np.abs(low) > _MEAN_RTOL * np.sqrt(m2)):
        unit -= low[:, None]
    unit /= np.sqrt(np.where(m2 > 0.0, m2, 1.0))[:, None]
    return unit


# Scale of scores that are all 0.
_TINY = 1e-300


class TopRanked:
    """Ranking by individual scores.

    Parameters
    ----------
    score
        Returns the scores of rows of a pool's table.
    """

    def __init__(self, score: Callable[[Pool, Mapping[str, Floats]], Floats]) -> None:
        self.score = score

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the scores of rows of the pool's table."""
        return self.score(pool, rows)

    def _batch_update(self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices) -> Any:  # noqa: ARG002
        """Return None: there is no faster way than repeated cuts."""
        return None

    def _relevance_cutoff(self, bound: float) -> float:  # noqa: ARG002
        """Return -inf: relevance does not bound the score."""
        return -math.inf

    def _keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the columns with the largest scores; of equal ones the earliest."""
        scores = self._bound(pool, {field: pool.table[field] for field in ("m2", "cxy")})
        first = argsort_by_relevance(scores / max(float(scores.max()), _TINY))[:limit]
        return Picks(first.tolist(), scores[first].tolist(), [0] * first.size)

    def _max_round_size(self, pool: Pool) -> int:
        """Return the maximum number of picks per round: any number."""
        return len(pool.table)


class MostRelevant(TopRanked):
    """Ranking by relevance to the target."""

    def __init__(self) -> None:
        super().__init__(_relevances)

    def _relevance_cutoff(self, bound: float) -> float:
        """Return the bound itself: the score is the relevance."""
        return bound


def _relevances(pool: Pool, rows: Mapping[str, Floats]) -> Floats:
    assert pool.space is not None  # noqa: S101
    return np.maximum(pool.space.relevance(rows["m2"], rows["cxy"]), 0.0)


def sums_of_squares(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    """Return the sums of squares of rows of the pool's table, which rank as variances do."""
    return rows["m2"]


def variances(pool: Pool, rows: Mapping[str, Floats]) -> Floats:
    """Return the variances of rows of the pool's table."""
    return rows["m2"] / pool.n


def equal_scores(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    """Return a score of 1 for every row: the first columns are kept."""
    return np.ones(rows["m2"].size)

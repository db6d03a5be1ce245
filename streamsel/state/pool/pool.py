"""Pool of columns: all of them, or a bounded number of the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from streamsel._kernels.gram import fill_stored_units, fill_units
from streamsel._kernels.scan import UNDERFLOW
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.data.chunks import Chunk, DenseChunk, Stats
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
_ALL = slice(None)


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
    """Result of a batch of columns for a pool.

    Parameters
    ----------
    kept
        Indices of the pool's variables to keep, ascending; None for all.
    appended
        Indices of the columns of the batch to append, ascending.
    max_discarded_bound, admission_threshold
        As attributes of `Pool`.
    cut_state
        Cached result of the ranking for the next cut; valid until the pool is cut otherwise.
    """

    kept: Indices | None
    appended: Indices
    max_discarded_bound: float
    admission_threshold: float
    cut_state: Any = None


class Ranking(Protocol):
    """Protocol of an object that ranks the columns of a pool."""

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return upper bounds on all later scores of rows of the pool's table."""

    def relevance_cutoff(self, bound: float) -> float:
        """Return the relevance below which a column's bound is below `bound`; -inf if none is."""

    def keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the variables to keep when the pool is cut back to its limit."""

    def batch_update(
        self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices
    ) -> EvictionResult | None:
        """Return the result of admitting these columns in order, in the way that `Pool` describes.

        For rankings with a faster way than repeated cuts; None for all others.
        """

    def max_round_size(self, pool: Pool) -> int:
        """Return the maximum number of picks in a round."""


# Bound of columns that were discarded by another score.
_UNKNOWN_BOUND = 1e300
# Scale of scores that are all 0.
_TINY = 1e-300


class TopRanked:
    """Ranking of columns by their individual scores.

    Parameters
    ----------
    score
        Returns the scores of rows of a pool's table, at least 0.
    is_relevance
        Whether the score is the relevance.
    relative_ties
        Whether scores are ties relative to the highest score, not absolutely as relevances are.
    key
        Name of the score in files, if a model with the same parameters once had another one.
    """

    def __init__(
        self,
        score: Callable[[Pool, Mapping[str, Floats]], Floats],
        *,
        is_relevance: bool = False,
        relative_ties: bool = True,
        key: str | None = None,
    ) -> None:
        self._score, self._is_relevance, self._relative_ties = score, is_relevance, relative_ties
        self.key = key

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the scores of rows of the pool's table."""
        return self._score(pool, rows)

    def relevance_cutoff(self, bound: float) -> float:
        """Return the bound if the score is the relevance; -inf otherwise."""
        return bound if self._is_relevance else -math.inf

    def keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the columns with the largest scores; of equal ones the earliest."""
        scores = self._score(pool, {field: pool.table[field] for field in pool.table.fields})
        unit = max(float(scores.max()), _TINY) if self._relative_ties else 1.0
        first = argsort_by_relevance(scores / unit)[:limit]
        return Picks(first.tolist(), scores[first].tolist(), [0] * first.size)

    def batch_update(self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices) -> None:
        """Return None: there is no faster way than repeated cuts."""

    def max_round_size(self, pool: Pool) -> int:  # noqa: ARG002
        """Return the maximum number of picks in a round: any number."""
        return np.iinfo(np.int64).max


def relevance_of_rows(pool: Pool, rows: Mapping[str, Floats]) -> Floats:
    """Return the relevance of rows of a pool's table; 1 without a target."""
    if pool.space is None:
        return np.ones(len(rows["m2"]))
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


MOST_RELEVANT = TopRanked(relevance_of_rows, is_relevance=True, relative_ties=False)


class Pool(ColumnState):
    """Moments of columns: of all of them, or of a bounded number of the best.

    Whenever the pool holds twice the limit, the ranking decides which variables to keep. Cuts
    depend on the number of admitted columns only, so the division of the stream into blocks makes
    no difference.

    Parameters
    ----------
    space
        The target space; None without a target.
    n
        Number of observations.
    limit
        Number of variables after a cut; None keeps all columns.
    ranking
        Ranks the columns of a bounded pool.
    samples
        Whether to store the observations of the variables too: centred, adjusted for covariates,
        and of length 1.
    extra_fields
        Names of further fields of a variable, one number each; or their names and shapes.
    normal_scores
        Scores that replace the target in comparisons with noise.
    target_rows
        (c, n) columns of the target and the covariates, one per row, for a pool of samples.

    Attributes
    ----------
    table
        `arrival`, the moments as in `columns.Stats`, the further fields, and `unit`, the
        observations.
    max_discarded_bound
        The largest bound of a discarded column; -1.0 if there is none. No later score of such a
        column could have been higher.
    admission_threshold
        A column whose bound is not above it would not have been kept at the last cut either.
    cut_state
        Cached result of the ranking from the last cut, for the next; it follows from the state, and
        may be dropped. It is replaced, never modified.
    basis, covariate_basis
        (r, n) orthonormal basis of the target space, and (d, n) of the covariates' span, which is
        projected out of the observations.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int | None,
        ranking: Ranking = MOST_RELEVANT,
        *,
        samples: bool = False,
        extra_fields: Sequence[str] | Mapping[str, tuple[int, ...]] = (),
        normal_scores: NormalScores | None = None,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(n)
        self._space, self.limit, self.ranking = space, limit, ranking
        self.has_samples, self.normal_scores = samples, normal_scores
        # Learning may continue on rows, but a constant column has no observations of length 1.
        self.accepts_constant = not samples
        self._extra_fields: Mapping[str, tuple[int, ...]] = (
            extra_fields if isinstance(extra_fields, Mapping) else dict.fromkeys(extra_fields, ())
        )
        self.table = VariableTable(self._fields())
        self.max_discarded_bound = -1.0
        self.admission_threshold = -1.0
        self.cut_state: Any = None
        self.basis: Floats = np.zeros((0, n))
        self.covariate_basis: Floats | None = None
        if target_rows is not None and space is not None:
            self.basis = space.weights @ target_rows
            if len(space.covariate_map):
                self.covariate_basis = space.covariate_map @ target_rows

    def _fields(self) -> dict[str, tuple[int, ...]]:
        c = 0 if self._space is None else self._space.c
        fields: dict[str, tuple[int, ...]] = {"arrival": (), "mean": (), "mean_error": (), "m2": ()}
        fields["cxy"] = (c,)
        if self.has_samples:
            fields["unit"] = (self._n,)
        fields |= self._extra_fields
        # The observations suffice to compute products with normal scores.
        if self.normal_scores is not None and not self.has_samples:
            fields["normal_score_products"] = ()
        return fields

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

    def arrivals(self, indices: Indices) -> Floats | None:
        """Return how many columns came before each variable."""
        return self.table["arrival"][indices]

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        return self.bytes_per_variable * (p if self.limit is None else min(p, 2 * self.limit))

    @property
    def bytes_per_variable(self) -> int:
        """The approximate memory of a variable in bytes."""
        numbers = sum(math.prod(shape) for shape in self.table.fields.values())
        # The table grows by doubling, and names take memory, too.
        return 16 * numbers + 100

    def samples(self, indices: Indices) -> Floats:
        """Return the observations of variables, centred and of length 1, one variable per row."""
        return self.table["unit"][indices]

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        unit = self.table["unit"]
        return unit @ unit[indices].T

    def cross_products(self, indices: Indices) -> Floats:
        """Return the sums of cross products of variables, if `products` are available."""
        stats, space = self.stats(indices), self._space
        adjusted = stats.m2
        if self.covariate_basis is not None:
            adjusted = self.adjusted_squares(stats)
        length, samples = np.sqrt(adjusted), self.samples(indices)
        products: Floats = (samples @ samples.T) * length[:, None] * length
        if self.covariate_basis is not None and space is not None:
            explained = stats.cxy @ space.covariate_map.T
            products += explained @ explained.T
        np.fill_diagonal(products, stats.m2)
        return products

    @property
    def has_products(self) -> bool:
        """Whether `products` are available."""
        return self.has_samples

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores."""
        if self.normal_scores is None or self._space is None:
            return self.relevance(indices)
        if self.has_samples:
            unit = self.table["unit"] if indices is None else self.table["unit"][indices]
            found: Floats = np.abs(unit @ self.normal_scores.Y[0])
            return found
        stats, products = self.stats(indices), self.table["normal_score_products"]
        adjusted = self.adjusted_squares(stats)
        products = products if indices is None else products[indices]
        return np.abs(products) / np.sqrt(np.where(adjusted > 0.0, adjusted, np.inf))

    def carried(self) -> Self:
        """Return the pool from which rows continue: this one, or one of fewer variables."""
        return self

    # Learning

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded and no bound changes."""
        threshold = min(self.admission_threshold, self.max_discarded_bound)
        if threshold <= 0.0 or self._extra_fields:
            return -math.inf
        return self.ranking.relevance_cutoff(threshold)

    @property
    def exact_from(self) -> float:
        """The relevance from which moments must be exact: that of a column that may be kept."""
        return math.inf if self.limit is None else self.irrelevant_below

    def adjusted_squares(self, stats: Stats, indices: Indices | slice = _ALL) -> Floats:
        """Return the sums of squares of columns after adjusting for the covariates."""
        m2 = stats.m2[indices]
        return m2 if self._space is None else self._space.adjusted_squares(m2, stats.cxy[indices])

    def rows_of(
        self, chunk: Chunk, stats: Stats, indices: Indices | None, out: Floats | None = None
    ) -> dict[str, Floats]:
        """Return the table rows of these columns of a chunk; None for all with moments.

        Observations are written into `out`, if it is given.
        """
        rows = stats._asdict()
        if indices is not None:
            rows = {field: array[indices] for field, array in rows.items()}
        if self.has_samples:
            every = np.arange(stats.m2.size) if indices is None else indices
            rows["unit"] = self.unit_rows_of(chunk, stats, every, out)
        elif self.normal_scores is not None:
            products = self.normal_scores.products(chunk, indices)
            rows["normal_score_products"] = products[: stats.m2.size]
        return rows

    def unit_rows_of(
        self, chunk: Chunk, stats: Stats, indices: Indices, out: Floats | None = None
    ) -> Floats:
        """Return the observations of columns in the form that the pool stores, in `out` if any."""
        if self.covariate_basis is None:
            return unit_columns(chunk, stats, indices, out)
        found = residuals(unit_columns(chunk, stats, indices), self.covariate_basis)
        if out is None:
            return found
        out[:] = found
        return out

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        extra: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order, except those that the pool cannot use.

        A bounded pool, and one of samples, cannot use columns that are constant given the
        covariates.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of all of them or of the first ones.
        first_arrival
            Number of columns of the stream before the chunk.
        extra
            Further fields of the columns with moments.
        """
        indices = None
        if self.limit is not None or not self.accepts_constant:
            varies = self.adjusted_squares(stats)
            indices = None if varies.all() else np.flatnonzero(varies)
        if self.limit is None:
            if indices is not None:
                extra = {field: array[indices] for field, array in extra.items()}
            self.append(chunk, stats, first_arrival, indices, extra)
            return
        if indices is None:
            indices = np.arange(stats.m2.size)
        update = self.ranking.batch_update(self, chunk, stats, indices)
        if update is None:
            self._fill(chunk, stats, first_arrival, indices, extra, self.limit)
        elif (
            update.kept is not None
            or update.appended.size
            or update.max_discarded_bound > self.max_discarded_bound
        ):
            self._copy_before_write()
            if update.kept is not None:
                self.table.keep(update.kept)
            if update.appended.size:
                self.append(chunk, stats, first_arrival, indices[update.appended])
            self.max_discarded_bound, self.admission_threshold = (
                update.max_discarded_bound,
                update.admission_threshold,
            )
            self.cut_state = update.cut_state

    def _fill(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        extra: Mapping[str, Floats],
        limit: int,
    ) -> None:
        """Admit the eligible columns, and cut the pool back whenever it is full."""
        rows = stats._asdict() | dict(extra)
        if indices.size < stats.m2.size:
            rows = {field: array[indices] for field, array in rows.items()}
        bound = self.ranking.upper_bound(self, rows)
        start = 0
        # Nearly all single columns are discarded, and change nothing.
        while indices.size and bound.max() > min(
            self.admission_threshold, self.max_discarded_bound
        ):
            eligible = bound > self.admission_threshold
            room = 2 * limit - len(self.table)
            admitted = np.flatnonzero(eligible)[:room]
            stop = indices.size if admitted.size < room else int(admitted[-1]) + 1
            rejected = bound[:stop][~eligible[:stop]]
            if admitted.size or (rejected.size and rejected.max() > self.max_discarded_bound):
                self._copy_before_write()
            self._record_discarded(rejected)
            if admitted.size:
                mine = {field: rows[field][start:][admitted] for field in extra}
                self.append(chunk, stats, first_arrival, indices[admitted], mine)
            indices, bound, start = indices[stop:], bound[stop:], start + stop
            self.cut_back()

    def append(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None,
        extra: Mapping[str, Floats] = {},
    ) -> None:
        """Add columns of a chunk, all with moments if `indices` is None, and their extra fields."""
        self._copy_before_write()
        if indices is None:
            size = stats.m2.size
            names: Sequence[Hashable] = chunk.names[:size]
            arrival = np.arange(first_arrival, first_arrival + size)
        else:
            names = [chunk.names[index] for index in indices.tolist()]
            arrival = first_arrival + indices
            if self.limit is not None:
                stats = chunk.exact(stats, indices)
        if "unit" not in self.table.fields:
            rows = self.rows_of(chunk, stats, indices)
            self.table.append(names, arrival=arrival, **rows, **extra)
            return
        # Observations take most of the memory, so they are computed in the table itself.
        start = len(self.table)
        self.table.reserve(len(names))
        out = self.table.with_capacity("unit")[start : start + len(names)]
        rows = self.rows_of(chunk, stats, indices, out)
        self.table.append_filled(names, "unit", rows | {"arrival": arrival} | dict(extra))

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if self.limit is None or len(self.table) < 2 * self.limit:
            return
        picks = self.ranking.keep_best(self, self.limit)
        kept = np.sort(np.asarray(picks.indices, dtype=np.intp))
        is_discarded = np.ones(len(self.table), dtype=np.bool_)
        is_discarded[kept] = False
        # Bounds depend on the moments and on further fields, not on observations.
        fields = {
            field: self.table[field][is_discarded] for field in self.table.fields if field != "unit"
        }
        self._record_discarded(self.ranking.upper_bound(self, fields))
        self.admission_threshold = min(picks.scores) if len(picks.indices) == self.limit else 0.0
        self.keep(kept, spare=2 * self.limit - kept.size)

    def _record_discarded(self, bound: Floats) -> None:
        if bound.size:
            self.max_discarded_bound = max(self.max_discarded_bound, float(bound.max()))

    def count_certified(self, scores: Sequence[float], rounds: Sequence[int]) -> int:
        """Return how many leading picks no discarded column can have changed.

        A pick is certified if all before it are, and its score is above every score that a
        discarded column could have had. A new round counts only if the previous one used up the
        whole rank: a discarded column could have had a residual where the candidates had none.
        """
        if self.max_discarded_bound <= ZERO_TOL:
            return len(scores)
        threshold = self.max_discarded_bound * (1.0 + TIE_RTOL)
        in_round = 0
        for n, score in enumerate(scores):
            new_round = n > 0 and rounds[n] != rounds[n - 1]
            if score <= threshold or (new_round and in_round < self.ranking.max_round_size(self)):
                return n
            in_round = 1 if new_round else in_round + 1
        return len(scores)

    def append_all(self, table: VariableTable, arrived: int) -> None:
        """Add the variables of another table, which arrived after `arrived` columns."""
        self._copy_before_write()
        self.table.extend(table, arrival=table["arrival"] + arrived)

    def keep(self, indices: Indices, spare: int = 0) -> None:
        """Drop all variables but these, and leave room for some more."""
        self._copy_before_write()
        self.table.keep(indices, spare)
        self.cut_state = None

    def replace_table(self, table: VariableTable) -> None:
        """Replace all variables."""
        self._copy_before_write()
        self.table, self.cut_state = table, None

    def set_max_discarded_bound(self, bound: float) -> None:
        """Set the largest bound of a discarded column."""
        self._copy_before_write()
        self.max_discarded_bound = bound

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self.append_all(other.table, arrived)
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
            **({} if self._ranked_by is None else {"ranked_by": self._ranked_by}),
        }

    @property
    def _ranked_by(self) -> str | None:
        return self.ranking.key if isinstance(self.ranking, TopRanked) else None

    @property
    def has_other_bound(self) -> bool:
        """Whether columns were discarded by another score, in a file of an earlier version."""
        return self.max_discarded_bound >= _UNKNOWN_BOUND

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, max_discarded_bound=FloatKind(), admission_threshold=FloatKind())
        self.replace_table(self.table.restored(state["table"]))
        self.max_discarded_bound, self.admission_threshold = (
            state["max_discarded_bound"],
            state["admission_threshold"],
        )
        if state.get("ranked_by") != self._ranked_by and not self.complete:
            self.max_discarded_bound, self.admission_threshold = _UNKNOWN_BOUND, -1.0
        if self.limit is not None:
            self.expect_fewer_than(2 * self.limit)

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
        if self.has_samples:
            self._expect_units()

    def _expect_units(self) -> None:
        expect_units(self.table["unit"])

    def expect_fewer_than(self, room: int) -> None:
        """Raise ValueError for `room` variables or more, as a full pool is cut."""
        if len(self.table) >= room:
            raise ValueError(f"Expected fewer than {room} variables. Got: {len(self.table)}.")


def residuals(unit: Floats, given: Floats) -> Floats:
    """Return unit rows with the span of others, (d, n), projected out, again of length 1."""
    # Twice, for the accuracy of rows that lie nearly in the span.
    for _ in range(2):
        unit = unit - (unit @ given.T) @ given
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(length > 0.0, length, 1.0)[:, None]
    return unit


def unit_columns(chunk: Chunk, stats: Stats, indices: Indices, out: Floats | None = None) -> Floats:
    """Return columns of a chunk, centred and of length 1, one per row; 0 for constant ones.

    They are written into `out`, if it is given.
    """
    stats = chunk.with_array_means(stats)
    mean, m2, low = stats.mean[indices], stats.m2[indices], stats.mean_error[indices]
    length = np.sqrt(np.where(m2 > 0.0, m2, 1.0))
    # The rounding error of a mean matters only for a large mean.
    if not np.any(np.abs(low) > _MEAN_RTOL * np.sqrt(m2)):
        low = np.zeros(low.size)
    unit = np.empty((len(indices), chunk.n)) if out is None else out
    if isinstance(chunk, DenseChunk):
        fill_units(chunk.X, indices, mean, low, length, unit)
    else:
        stored = chunk.data, chunk.indices, chunk.indptr
        fill_stored_units(*stored, indices, mean, low, length, unit)
    return unit

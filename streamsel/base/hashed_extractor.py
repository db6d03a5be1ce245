"""Define extractors whose weights are a function of the variable's name, without fitted state."""

from __future__ import annotations

import abc
import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np

from streamsel import params
from streamsel._kernels.random_entries import add_row, add_row_in_any_order
from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel.base.extractor import Extractor
from streamsel.base.frame_columns import as_frame
from streamsel.base.linear_map import LinearMap
from streamsel.base.merging import different_rows_error
from streamsel.base.phase import Phase, columns_to_state
from streamsel.base.report import Report
from streamsel.base.river import Unsupervised
from streamsel.base.row_input import RowReader, read_frame, refuse_infinite
from streamsel.base.row_values import bad_value_error, first_bad_value, read_strictly, read_values
from streamsel.base.undo import with_rollback
from streamsel.data.chunks import DenseChunk
from streamsel.data.columns import iter_chunks
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.params import param
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.sketch import RandomEntries, RandomSketch, Stateless
from streamsel.stream import ColumnStream, as_stream
from streamsel.targets.target import NoTarget
from streamsel.targets.weights import weight_of_row, weights_of_rows

# Size in bytes of the cache of weights, for rows that repeat the same names.
_CACHE_BYTES = 16 << 20


class HashedExtractor(Extractor, Unsupervised):
    """Base class of extractors of Σ x_j r_j, where r_j depends only on the name of variable j.

    On columns the sum is accumulated for every observation; rows change no state. A method defines
    the weights, `_new_entries`, and the components as a function of the sum,
    `_components_of_sums`.
    """

    _column_state_type = RandomSketch
    _row_state_type = Stateless
    # The map depends on names alone: which categories a batch of rows has must not change it.
    _encodes_tables = False

    # Parameters about tracking variables do not apply.
    _fixed_parameters: ClassVar[Mapping[str, Any]] = {
        "fading_factor": 0.0,
        "max_features": None,
        "grace_period": 1,
        "refresh_factor": 1.0,
        "warm_up": 0,
    }

    seed: int = param(
        params.IntRule(0),
        default=0,
        doc="""
        Seed of the random weights: with the same seed a name has the same weights on both axes, in
        every process and on every machine.
        """,
    )

    # Whether components amplify the rounding errors that depend on the order of a row's variables.
    _amplifies_rounding: ClassVar[bool] = False

    @property
    def _takes_generated(self) -> bool:
        return False

    # Implemented by methods

    @abc.abstractmethod
    def _new_entries(self, k: int) -> RandomEntries:
        """Return the weights of variables for k components."""

    @abc.abstractmethod
    def _components_of_sums(self, Z: Floats) -> Floats:
        """Return the components for weighted sums, (k,) or (n, k), which may be overwritten."""

    def _n_components_for(self, n: int | None) -> int | None:  # noqa: ARG002
        """Return the number of components for n rows; None if it is not known yet."""
        return self.n_components

    # Shared behaviour

    def __post_init__(self) -> None:
        super().__post_init__()
        self._row_reader = RowReader()
        self._weights: WeightCache | None = None

    @property
    def _takes_weights(self) -> bool:
        return False

    @property
    def _k(self) -> int:
        phase = self._phase
        n = phase.count.n if isinstance(phase, CountPhase) else self.n_rows
        return self._n_components_for(n or None) or 0

    @property
    def _entries(self) -> RandomEntries:
        return self._weight_cache.entries

    @property
    def _weight_cache(self) -> WeightCache:
        if self._weights is None or self._weights.entries.k != self._k:
            self._row_reader.clear_cache()
            self._weights = WeightCache(self._new_entries(self._k))
        return self._weights

    @property
    def _n_outputs(self) -> int:
        return self._k

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival; on rows, in the order in which the variables became candidates.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component: 1, as there is no target."""
        learnt = self._columns is not None or self._phase.on_rows
        return dict.fromkeys(self.components, 1.0) if learnt else {}

    def _embedding(self) -> Floats:
        state = cast("RandomSketch | None", self._columns)
        if state is None:
            return np.zeros((self.n_rows, self._k))
        return self._components_of_sums(state.Z.copy())

    def _component_map(self) -> LinearMap:
        # Any variable has weights, which no map lists.
        return LinearMap.empty(self._k)

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per component, without loadings, as every variable has weights; details record this
        as `any_variable`.
        """
        row: dict[str, Any] = {"above_noise": None, "loadings": []}
        found = [{"name": name, "relevance": 1.0} | row for name in self.relevance]
        return self._report(None, "components", found, self._k or None, {"any_variable": True})

    def _current(self) -> None:
        # There is no snapshot: a transform does not depend on learnt state.
        return None

    # Columns

    def _new_columns(self, n: int) -> RandomSketch:
        return RandomSketch(n, self._new_entries(self._n_components_for(n) or 0))

    # Rows

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:  # noqa: ARG002
        # Every row counts once; its weight is only validated.
        weight_of_row(w)
        values, _ = self._read(x)
        bad = first_bad_value(values)
        if bad is not None:
            raise bad_value_error(list(x)[bad], values[bad])
        self._count_rows(1)

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:  # noqa: ARG002
        _, values = read_frame(X)
        weights_of_rows(w, len(values))
        if len(values):
            self._count_rows(len(values))

    def _count_rows(self, size: int) -> None:
        phase = self._phase
        if isinstance(phase, CountPhase):
            phase.count.rows += size
        else:
            with_rollback(self, self._start_count, size)

    def _start_count(self, size: int) -> None:
        counter = self._row_count()
        counter.rows += size
        self._phase = CountPhase(self._phase, counter)
        self._invalidate()

    def _row_count(self) -> Stateless:
        """Return the count of rows, or a new one that begins with the columns' observations."""
        phase = self._phase
        if isinstance(phase, CountPhase):
            return phase.count
        counter = Stateless(self.n_rows)
        if self._n_components_for(counter.n or None) is None:
            raise ValueError(
                f"Expected n_components for a {type(self).__name__} that learns rows. Got: None, "
                "and no columns whose number of rows would determine it.\n"
                "Hint: set n_components; n_components_for returns how many preserve distances."
            )
        return counter

    def _read(self, x: Any) -> tuple[Floats, Indices | None]:
        """Return the values of a row, and the indices of its variables in the weight cache.

        The indices are None if the row has more variables than the cache holds.
        """
        cache = self._weight_cache
        row = self._row_reader.read_repeated(x)
        if row is not None:
            return row
        values, names = read_values(x), list(x)
        indices = self._row_reader.indices_of(names, cache.index_of)
        if indices is None:
            values = read_strictly(x)
            bad = first_invalid_name(names, {})
            if bad is not None:
                raise bad_name_error(names[bad])
            if cache.add(names):
                indices = self._row_reader.indices_of(names, cache.index_of)
        return values, indices

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        """Return the components of a row, as floats.

        Parameters
        ----------
        x
            A row, of any variables; those that are absent, NaN or None count as 0.

        Raises
        ------
        ValueError, TypeError
            For a value that is infinite, or not a number.
        """
        values, indices = self._read(x)
        W = self._weight_cache.W
        if indices is None:
            W, indices = self._entries.matrix(list(x)), np.arange(len(values))
        z = np.zeros(self._k)
        add = add_row_in_any_order if self._amplifies_rounding else add_row
        bad = add(values, indices, W, MAX_ABS_VALUE, z) - 1
        if bad >= 0:
            raise bad_value_error(list(x)[bad], values[bad])
        return dict(zip(self._names_of(self._k), self._components_of_sums(z).tolist(), strict=True))

    def transform_many(self, X: Any) -> Any:
        """Return the components of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library, or an array of shape (n, k) for any other input.

        Raises
        ------
        ValueError, TypeError
            For a value that is infinite, or not a number.
        """
        if isinstance(X, ColumnStream) or hasattr(X, "toarray"):
            return self._components_of_sums(self._sum_of(as_stream(X)))
        names, values = read_frame(X)
        Z = np.zeros((len(values), self._k))
        self._entries.add_dense(names, _without_gaps(values), Z)
        Z, frame = self._components_of_sums(Z), as_frame(X)
        if frame is None:
            return Z
        from river.utils.dataframe import to_native_frame

        return to_native_frame(Z, like=frame, columns=self.components)

    def _sum_of(self, stream: ColumnStream) -> Floats:
        """Return the weighted sum of the columns of a stream."""
        Z = np.zeros((stream.n_rows or 0, self._k))
        for block in stream.blocks():
            n = block.values.shape[0]
            Z = Z if len(Z) else np.zeros((n, self._k))
            for chunk in iter_chunks(block, n):
                if isinstance(chunk, DenseChunk):
                    refuse_infinite(chunk.names, chunk.X.T)
                    self._entries.add_dense(chunk.names, _without_gaps(chunk.X.T), Z)
                    continue
                for j in np.flatnonzero(np.abs(chunk.data) > MAX_ABS_VALUE)[:1].tolist():
                    column = int(np.searchsorted(chunk.indptr, j, side="right")) - 1
                    raise bad_value_error(chunk.names[column], chunk.data[j], int(chunk.indices[j]))
                chunk.scan(NoTarget(n), 1)  # checks and sorts the row indices
                self._entries.add(chunk, len(chunk.names), Z)
        return Z

    # Merging

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        mine, theirs = self._phase, other._phase
        is_counted = isinstance(mine, CountPhase) and isinstance(theirs, CountPhase)
        if self.n_rows != other.n_rows or not is_counted:
            raise different_rows_error()
        mine.n_columns += theirs.n_columns
        mine.constant += theirs.constant

    def _merge_along_rows(self, other: Self) -> None:
        if not other.n_rows:
            return
        if not self.n_rows:
            self._set_state(copy.deepcopy(other)._get_state())
            return
        counts = [model._row_count() for model in (self, other)]
        widths = [self._n_components_for(count.n) for count in counts]
        if widths[0] != widths[1]:
            raise ValueError(
                "Expected two models with the same number of components. Got: "
                f"{widths[0]} and {widths[1]}.\n"
                "Hint: set n_components."
            )
        self._count_rows(counts[1].rows)
        # Names are not stored; most variables are assumed to be in both models.
        mine, theirs = self._phase, other._phase
        mine.n_columns = max(mine.n_columns, theirs.n_columns)
        mine.constant = min(mine.constant, theirs.constant)

    # Files

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if "row_count" in state:
            counter = Stateless()
            counter.set_state(state["row_count"])
            self._phase = CountPhase(self._phase, counter)
            self._restore_in_use(state)


class CountPhase(Phase):
    """A learner on rows that are only counted.

    Parameters
    ----------
    before
        The phase before it.
    count
        Number of rows.
    """

    on_rows = True
    changing = ("n_columns", "constant", "count")

    def __init__(self, before: Phase, count: Stateless) -> None:
        self.n_columns, self.n_passes = before.n_columns, before.n_passes
        self.constant = before.constant
        self.without_target, self.source = before.without_target, before.source
        self.count = count

    @property
    def state(self) -> None:
        """None: nothing is stored."""

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        return self.count.rows

    @property
    def target_description(self) -> None:
        """None: there is no target."""

    def rows_and_space(self, state: VariableState | None) -> tuple[float, None]:
        """Return the number of rows; there is no target space."""
        del state
        return float(self.count.rows), None

    def to_state(self) -> dict[str, Any]:
        """Return the learnt state for a model file, as arrays and JSON-compatible values."""
        return columns_to_state(self) | {"row_count": self.count.to_state()}


class WeightCache:
    """Cache of the weights of recently used names, up to a few megabytes.

    Parameters
    ----------
    entries
        Weights of all names.

    Attributes
    ----------
    index_of
        Name -> row of W.
    W
        (m, k) weights.
    """

    def __init__(self, entries: RandomEntries) -> None:
        self.entries = entries
        self.index_of: dict[Hashable, int] = {}
        self.W: Floats = np.empty((0, entries.k))
        self._capacity = max(1, _CACHE_BYTES // (8 * max(1, entries.k)))

    def __reduce__(self) -> tuple[type[WeightCache], tuple[RandomEntries]]:
        # A copy starts with an empty cache.
        return WeightCache, (self.entries,)

    def add(self, names: Sequence[Hashable]) -> bool:
        """Cache all of these names, evicting others if needed; return False if they do not fit."""
        new = [name for name in names if name not in self.index_of]
        if len(self.index_of) + len(new) > self._capacity:
            if len(names) > self._capacity:
                return False
            self.index_of, new = {}, list(names)
        start, stop = len(self.index_of), len(self.index_of) + len(new)
        if stop > len(self.W):
            grown = np.empty((min(self._capacity, 2 * stop), self.entries.k))
            grown[:start] = self.W[:start]
            self.W = grown
        self.W[start:stop] = self.entries.matrix(new)
        self.index_of.update(zip(new, range(start, stop), strict=True))
        return True


def _without_gaps(X: Any) -> Any:
    """Return values with NaN replaced by 0."""
    if X.dtype.kind != "f" or not np.isnan(X.sum()):
        return X
    return np.where(np.isnan(X), 0.0, X)

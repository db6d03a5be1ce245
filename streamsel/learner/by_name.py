"""Define extractors whose weights are a function of the variable's name, without fitted state."""

from __future__ import annotations

import abc
import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from streamsel import params
from streamsel._jit.entries import add_row, add_row_in_any_order
from streamsel._jit.rows import LARGEST
from streamsel.columns import DenseChunk, chunks
from streamsel.held.part import Floats, Places
from streamsel.held.sketch import Entries, Passed, Sketch
from streamsel.learner.extractor import Extractor, LinearMap
from streamsel.learner.report import Report
from streamsel.learner.river import Unsupervised
from streamsel.names import first_bad_name, why_bad_name
from streamsel.params import param
from streamsel.rows import (
    as_frame,
    first_bad,
    read_frame,
    read_strictly,
    read_values,
    refuse_infinite,
    why_bad,
)
from streamsel.stream import ColumnStream, as_stream
from streamsel.target.target import NoTarget
from streamsel.target.weights import weight_of_row, weights_of_rows

# Size in bytes of the cache of weights, for rows that repeat the same names.
_CACHE_BYTES = 16 << 20


class ByName(Extractor, Unsupervised):
    """Base class of extractors of Σ x_j r_j, r_j a function of the name of variable j.

    On columns the sum is accumulated for every observation; rows change no state. A method defines
    the weights, `_new_entries`, and the components as a function of the sum, `_finished`.
    """

    keeps = Sketch
    rows = Passed

    # Parameters about tracking variables do not apply.
    fading_factor: ClassVar[float] = 0.0  # type: ignore[misc]
    max_features: ClassVar[None] = None  # type: ignore[misc]
    grace_period: ClassVar[int] = 1  # type: ignore[misc]
    covariates: ClassVar[None] = None  # type: ignore[misc]
    target: ClassVar[str] = "auto"  # type: ignore[misc]
    renewal: ClassVar[float] = 1.0  # type: ignore[misc]
    warm_up: ClassVar[int] = 0  # type: ignore[misc]

    seed: int = param(
        params.Whole(0),
        default=0,
        doc="""
        Seed of the random weights: with the same seed a name has the same weights on both axes, in
        every process and on every machine.
        """,
    )

    # Whether the components amplify rounding differences between orders of the variables in a row.
    _magnifies: ClassVar[bool] = False

    # Implemented by methods

    @abc.abstractmethod
    def _new_entries(self, k: int) -> Entries:
        """Return the weights of variables for k components."""

    @abc.abstractmethod
    def _finished(self, Z: Floats) -> Floats:
        """Return the components for weighted sums, (k,) or (n, k), which may be overwritten."""

    def _size(self, n: int | None) -> int | None:  # noqa: ARG002
        """Return the number of components for n rows; None if it is not known yet."""
        return self.n_components

    # Shared behaviour

    def _begin_rows(self) -> None:
        super()._begin_rows()
        self._row_count: Passed | None = None
        self._weights: Weights | None = None

    @property
    def _on_rows(self) -> bool:
        return self._row_count is not None

    @property
    def _takes_weights(self) -> bool:
        return False

    @property
    def n_rows(self) -> int:
        """Number of rows seen: observations in every column, plus rows learnt since."""
        return super().n_rows if self._row_count is None else self._row_count.rows

    @property
    def _k(self) -> int:
        n = self.n_rows if self._row_count is None else self._row_count.n
        return self._size(n or None) or 0

    @property
    def _entries(self) -> Entries:
        return self._weight_cache.entries

    @property
    def _weight_cache(self) -> Weights:
        if self._weights is None or self._weights.entries.k != self._k:
            self._door.forget()
            self._weights = Weights(self._new_entries(self._k))
        return self._weights

    @property
    def _width(self) -> int:
        return self._k

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component: 1, as there is no target."""
        learnt = self._columns is not None or self._row_count is not None
        return dict.fromkeys(self.components, 1.0) if learnt else {}

    def _embedding(self) -> Floats:
        state = self._columns
        if state is None:
            return np.zeros((self.n_rows, self._k))
        assert isinstance(state, Sketch)  # noqa: S101
        return self._finished(state.Z.copy())

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        names = list(names)
        return LinearMap(names, np.zeros(len(names)), self._entries.matrix(names))

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

    def _now(self) -> None:
        # There is no snapshot: a transform does not depend on learnt state.
        return None

    # Columns

    def _new_columns(self, n: int) -> Sketch:
        k = self._size(n)
        assert k is not None  # noqa: S101
        entries = self._new_entries(k)
        return Sketch(n, entries)

    # Rows

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:  # noqa: ARG002
        # A row counts whatever its weight, which is only validated.
        weight_of_row(w)
        values, _ = self._read(x)
        bad = first_bad(values)
        if bad is not None:
            raise why_bad(list(x)[bad], values[bad])
        self._count_rows(1)

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:  # noqa: ARG002
        _, values = read_frame(X)
        weights_of_rows(w, len(values))
        if len(values):
            self._count_rows(len(values))

    def _count_rows(self, size: int) -> None:
        if self._row_count is None:
            self._undoably(self._start_row_count, size)
        else:
            self._row_count.rows += size

    def _start_row_count(self, size: int) -> None:
        counter = self._row_count_or_new()
        counter.rows += size
        self._row_count = counter
        self._target = self._columns = None
        self._outdate()

    def _row_count_or_new(self) -> Passed:
        """Return the count of rows; it starts with the observations of the columns."""
        if self._row_count is not None:
            return self._row_count
        counter = Passed(self.n_rows)
        if self._size(counter.n or None) is None:
            raise ValueError(
                f"Expected n_components for a {type(self).__name__} that learns rows. Got: None, "
                "and no columns whose number of rows would determine it.\n"
                "Hint: set n_components; n_components_for returns how many preserve distances."
            )
        return counter

    def _read(self, x: Any) -> tuple[Floats, Places | None]:
        """Return the values of a row, and the indices of its variables in the weight cache.

        The indices are None if the row has more variables than the cache holds.
        """
        cache = self._weight_cache
        row = self._door.again(x)
        if row is not None:
            return row
        values, names = read_values(x), list(x)
        places = self._door.places(names, cache.slots)
        if places is None:
            values = read_strictly(x)
            bad = first_bad_name(names, {})
            if bad is not None:
                raise why_bad_name(names[bad])
            if cache.take_up(names):
                places = self._door.places(names, cache.slots)
        return values, places

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
        values, places = self._read(x)
        W = self._weight_cache.W
        if places is None:
            W, places = self._entries.matrix(list(x)), np.arange(len(values))
        z = np.zeros(self._k)
        add = add_row_in_any_order if self._magnifies else add_row
        bad = add(values, places, W, LARGEST, z) - 1
        if bad >= 0:
            raise why_bad(list(x)[bad], values[bad])
        return dict(zip(self._names_of(self._k), self._finished(z).tolist(), strict=True))

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
            return self._finished(self._sum_of(as_stream(X)))
        names, values = read_frame(X)
        Z = np.zeros((len(values), self._k))
        self._entries.add_dense(names, _without_gaps(values), Z)
        Z, frame = self._finished(Z), as_frame(X)
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
            for chunk in chunks(block, n):
                if isinstance(chunk, DenseChunk):
                    refuse_infinite(chunk.names, chunk.X.T)
                    self._entries.add_dense(chunk.names, _without_gaps(chunk.X.T), Z)
                    continue
                for j in np.flatnonzero(np.abs(chunk.data) > LARGEST)[:1].tolist():
                    column = int(np.searchsorted(chunk.indptr, j, side="right")) - 1
                    raise why_bad(chunk.names[column], chunk.data[j], int(chunk.indices[j]))
                chunk.scan(NoTarget(n), 1)  # checks and sorts the row indices
                self._entries.add(chunk, len(chunk.names), Z)
        return Z

    # Merging

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        if self.n_rows != other.n_rows or not (self._on_rows and other._on_rows):
            raise ValueError(
                "Expected two models of the same rows. Got: models of different rows.\n"
                "Hint: merge(other, along='rows') joins different rows."
            )
        self.n_columns += other.n_columns
        self._n_constant += other._n_constant

    def _merge_along_rows(self, other: Self) -> None:
        if not other.n_rows:
            return
        if not self.n_rows:
            self._set_state(copy.deepcopy(other)._get_state())
            return
        mine, theirs = self._row_count_or_new(), other._row_count_or_new()
        if self._size(mine.n) != other._size(theirs.n):
            raise ValueError(
                "Expected two models with the same number of components. Got: "
                f"{self._size(mine.n)} and {other._size(theirs.n)}.\nHint: set n_components."
            )
        self._count_rows(theirs.rows)
        # Names are not stored; most variables are assumed to be in both models.
        self.n_columns = max(self.n_columns, other.n_columns)
        self._n_constant = min(self._n_constant, other._n_constant)

    # Files

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        return state if self._row_count is None else state | {"passed": self._row_count.to_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        if "passed" in state:
            counter = Passed()
            counter.set_state(state["passed"])
            self._row_count = counter
        super()._set_state(state)


class Weights:
    """Cache of the weights of recently used names, up to a few megabytes.

    Parameters
    ----------
    entries
        Weights of all names.

    Attributes
    ----------
    slots
        Name -> row of W.
    W
        (m, k) weights.
    """

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.slots: dict[Hashable, int] = {}
        self.W: Floats = np.empty((0, entries.k))
        self._capacity = max(1, _CACHE_BYTES // (8 * max(1, entries.k)))

    def __reduce__(self) -> tuple[type[Weights], tuple[Entries]]:
        # A copy starts with an empty cache.
        return Weights, (self.entries,)

    def take_up(self, names: Sequence[Hashable]) -> bool:
        """Cache all of these names, evicting others if needed; return False if they do not fit."""
        new = [name for name in names if name not in self.slots]
        if len(self.slots) + len(new) > self._capacity:
            if len(names) > self._capacity:
                return False
            self.slots, new = {}, list(names)
        start, stop = len(self.slots), len(self.slots) + len(new)
        if stop > len(self.W):
            grown = np.empty((min(self._capacity, 2 * stop), self.entries.k))
            grown[:start] = self.W[:start]
            self.W = grown
        self.W[start:stop] = self.entries.matrix(new)
        self.slots.update(zip(new, range(start, stop), strict=True))
        return True


def _without_gaps(X: Any) -> Any:
    """Return values with NaN replaced by 0."""
    if X.dtype.kind != "f" or not np.isnan(X.sum()):
        return X
    return np.where(np.isnan(X), 0.0, X)

"""Extractors that hold nothing: the weights of a variable are a function of its name."""

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

# Weights of so many bytes are kept for rows that bring the same names again.
_REMEMBERED = 16 << 20


class ByName(Extractor, Unsupervised):
    """An extractor whose new variables are a function of Σ x_j r_j, r_j by the name of variable j.

    Columns leave this sum for every row, rows leave nothing. A method says what the weights are,
    `_new_entries`, and what it makes of the sum, `_finished`.
    """

    keeps = Sketch
    rows = Passed

    # What says how variables are held, asked or forgotten, of which there is nothing here.
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
        Which of the random weights: with the same seed a name has the same ones on both axes, in
        every process and on every machine.
        """,
    )

    # Whether what is made of the sum would show in what order a row names its variables.
    _magnifies: ClassVar[bool] = False

    # What a method says

    @abc.abstractmethod
    def _new_entries(self, k: int) -> Entries:
        """Return the weights of variables for k components."""

    @abc.abstractmethod
    def _finished(self, Z: Floats) -> Floats:
        """Return the components for sums of weighted variables, (k,) or (n, k), which are lent."""

    def _size(self, n: int | None) -> int | None:  # noqa: ARG002
        """Return how many components n rows have; None where that cannot be told yet."""
        return self.n_components

    # What follows

    def _begin_rows(self) -> None:
        super()._begin_rows()
        self._passed: Passed | None = None
        self._weights: Weights | None = None

    @property
    def _on_rows(self) -> bool:
        return self._passed is not None

    @property
    def _takes_weights(self) -> bool:
        return False

    @property
    def n_rows(self) -> int:
        """Rows seen: observations in every column, and rows since."""
        return super().n_rows if self._passed is None else self._passed.rows

    @property
    def _k(self) -> int:
        n = self.n_rows if self._passed is None else self._passed.n
        return self._size(n or None) or 0

    @property
    def _entries(self) -> Entries:
        return self._lately.entries

    @property
    def _lately(self) -> Weights:
        if self._weights is None or self._weights.entries.k != self._k:
            self._door.forget()
            self._weights = Weights(self._new_entries(self._k))
        return self._weights

    @property
    def _width(self) -> int:
        return self._k

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Of each component 1, for without a target everything explains itself in full."""
        learnt = self._columns is not None or self._passed is not None
        return dict.fromkeys(self.components, 1.0) if learnt else {}

    def _embedding(self) -> Floats:
        held = self._columns
        if held is None:
            return np.zeros((self.n_rows, self._k))
        assert isinstance(held, Sketch)  # noqa: S101
        return self._finished(held.Z.copy())

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        names = list(names)
        return LinearMap(names, np.zeros(len(names)), self._entries.matrix(names))

    def report(self) -> Report:
        """Return how many components there are: which variables they are made of nobody has noted.

        Returns
        -------
        A row a component, without loadings, and the fact that any variable has some.
        """
        row: dict[str, Any] = {"above_noise": None, "loadings": []}
        found = [{"name": name, "relevance": 1.0} | row for name in self.relevance]
        return self._report(None, "components", found, self._k or None, {"any_variable": True})

    def _now(self) -> None:
        # Nothing stands: a transform needs nothing that was learnt.
        return None

    # Columns

    def _new_columns(self, n: int) -> Sketch:
        k = self._size(n)
        assert k is not None  # noqa: S101
        entries = self._new_entries(k)
        return Sketch(n, entries)

    # Rows

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:  # noqa: ARG002
        # It is learnt, whatever it weighs, that there was a row.
        weight_of_row(w)
        values, _ = self._read(x)
        bad = first_bad(values)
        if bad is not None:
            raise why_bad(list(x)[bad], values[bad])
        self._let_pass(1)

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:  # noqa: ARG002
        _, values = read_frame(X)
        weights_of_rows(w, len(values))
        if len(values):
            self._let_pass(len(values))

    def _let_pass(self, size: int) -> None:
        if self._passed is None:
            self._undoably(self._begin_to_pass, size)
        else:
            self._passed.rows += size

    def _begin_to_pass(self, size: int) -> None:
        passed = self._passed_so_far()
        passed.rows += size
        self._passed = passed
        self._target = self._columns = None
        self._outdate()

    def _passed_so_far(self) -> Passed:
        """Return the rows so far; those of columns if there were none since."""
        if self._passed is not None:
            return self._passed
        passed = Passed(self.n_rows)
        if self._size(passed.n or None) is None:
            raise ValueError(
                f"Expected n_components for a {type(self).__name__} that learns rows. Got: None, "
                "and no columns, whose number of rows would tell it.\n"
                "Hint: give n_components; n_components_for says how many keep distances."
            )
        return passed

    def _read(self, x: Any) -> tuple[Floats, Places | None]:
        """Return the values of a row, and where the weights of its variables are.

        None for places where a row has more variables than weights are kept of.
        """
        lately = self._lately
        row = self._door.again(x)
        if row is not None:
            return row
        values, names = read_values(x), list(x)
        places = self._door.places(names, lately.slots)
        if places is None:
            values = read_strictly(x)
            bad = first_bad_name(names, {})
            if bad is not None:
                raise why_bad_name(names[bad])
            if lately.take_up(names):
                places = self._door.places(names, lately.slots)
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
            For a value that is infinite, or no number.
        """
        values, places = self._read(x)
        W = self._lately.W
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
        A frame of the same library, or, for anything but a frame, an array of shape (n, k).

        Raises
        ------
        ValueError, TypeError
            For a value that is infinite, or no number.
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
        """Return the sum of the columns of a stream, weighted."""
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
                chunk.scan(NoTarget(n), 1)  # which looks whether its rows are in order, and rows
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
        mine, theirs = self._passed_so_far(), other._passed_so_far()
        if self._size(mine.n) != other._size(theirs.n):
            raise ValueError(
                "Expected two models of as many components. Got: "
                f"{self._size(mine.n)} and {other._size(theirs.n)}.\nHint: give n_components."
            )
        self._let_pass(theirs.rows)
        # Most variables are in both, and nobody knows which.
        self.n_columns = max(self.n_columns, other.n_columns)
        self._n_constant = min(self._n_constant, other._n_constant)

    # Files

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        return state if self._passed is None else state | {"passed": self._passed.to_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        if "passed" in state:
            passed = Passed()
            passed.set_state(state["passed"])
            self._passed = passed
        super()._set_state(state)


class Weights:
    """The weights of names that came lately, for rows: as many as fit into a few megabytes.

    Parameters
    ----------
    entries
        All weights.

    Attributes
    ----------
    slots
        Name -> place.
    W
        (m, k) weights, by place.
    """

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.slots: dict[Hashable, int] = {}
        self.W: Floats = np.empty((0, entries.k))
        self._most = max(1, _REMEMBERED // (8 * max(1, entries.k)))

    def __reduce__(self) -> tuple[type[Weights], tuple[Entries]]:
        # A copy remembers nothing.
        return Weights, (self.entries,)

    def take_up(self, names: Sequence[Hashable]) -> bool:
        """Take up all of these names, if there is room for them; forget others for it."""
        new = [name for name in names if name not in self.slots]
        if len(self.slots) + len(new) > self._most:
            if len(names) > self._most:
                return False
            self.slots, new = {}, list(names)
        start, stop = len(self.slots), len(self.slots) + len(new)
        if stop > len(self.W):
            grown = np.empty((min(self._most, 2 * stop), self.entries.k))
            grown[:start] = self.W[:start]
            self.W = grown
        self.W[start:stop] = self.entries.matrix(new)
        self.slots.update(zip(new, range(start, stop), strict=True))
        return True


def _without_gaps(X: Any) -> Any:
    """Return values with 0 for NaN."""
    if X.dtype.kind != "f" or not np.isnan(X.sum()):
        return X
    return np.where(np.isnan(X), 0.0, X)

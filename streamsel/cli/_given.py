"""What a run is given beside its columns: target, covariates, weights, and which row is which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._carried import carried
from streamsel.cli._drop import dropped, may_be_pattern
from streamsel.cli._ids import parted, refuse_position
from streamsel.cli._row_numbers import row_numbers
from streamsel.cli._target import TargetFile, read_covariates, read_target, together

if TYPE_CHECKING:
    from collections.abc import Hashable

    from streamsel.cli._inputs import Source
    from streamsel.cli._request import Request


class Given:
    """What a run is given beside its columns.

    Parameters
    ----------
    request
        What the user asks for.

    Attributes
    ----------
    left_out
        Names of columns of FILE that are not to be learnt.
    wanted
        Names that are in FILE.
    index
        Names of columns that only number the rows, and are left out for it.
    y, covariates, weights
        What is to be explained, given what, and how much each row counts, once they are read; None,
        or empty, where there are none.
    carried
        Columns that go along into what is written.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        of_file, of_target = (None, None) if request.id is None else parted(request.id)
        self._file = None
        if request.target_file:
            # It has a delimiter of its own.
            reading = request.reading._replace(delimiter=None, layer=None, raw=False)
            self._file = TargetFile(request.target_file, request.target, of_target, reading)
        # In either file.
        either = [*request.covariates, *([] if request.weights is None else [request.weights])]
        self.left_out = [*([] if self._file else request.target), *either]
        self.left_out += [] if of_file is None else [of_file]
        # A name that the target's file has may not be in this one.
        elsewhere = [name for name in either if self._file is not None and self._file.holds(name)]
        wanted = [*self.left_out, *(name for name in request.drop if not may_be_pattern(name))]
        self.wanted = [name for name in wanted if name not in elsewhere]
        self._none_of_target = {*request.target, *either}
        self.index: list[str] = []
        self.y: Any = None
        self.covariates: dict[Hashable, Any] = {}
        self.weights: Any = None
        self.carried: dict[str, Any] = {}

    def ids(self) -> list[str]:
        """Return what rows may be called, where that may say which way FILE lies."""
        request = self._request
        if self._file is None or request.orientation != "auto" or request.by_position:
            return []
        return self._file.ids(self._none_of_target)

    def read(self, source: Source, *, begins: bool = True) -> None:
        """Read all of it.

        Parameters
        ----------
        source
            FILE.
        begins
            Whether a run begins: what was asked for must be there, and make sense.
        """
        request, file = self._request, self._file
        self.left_out += dropped(source, request.drop, strict=begins)
        if request.saved is not None:
            self.index = request.saved.notes["index"]
        elif not request.keep_index:
            self.index = row_numbers(source, self.left_out)
        self.left_out += self.index
        self._match(source, begins=begins)
        header = None if request.id is None else parted(request.id)[1]
        self.carried = carried(request.keep, source, request.out, file, header)
        self.covariates = read_covariates(request.covariates, source, file)
        if request.weights is not None:
            ((_, values),) = read_covariates([request.weights], source, file, "weight").items()
            self.weights = np.asarray(values)
        self.y = read_target(request, source, file, request.learner.target)

    def beside(self) -> dict[str, Any]:
        """Return what goes with the target, as `learn_target` takes it."""
        known: dict[str, Any] = {"weights": self.weights} if self.weights is not None else {}
        return known | {"covariates": together(self.covariates) if self.covariates else None}

    def values(self) -> list[Any]:
        """Return all values that a result goes by, besides those of the columns."""
        weights = [] if self.weights is None else [self.weights]
        return [self.y, *self.covariates.values(), *weights]

    def _match(self, source: Source, *, begins: bool) -> None:
        """Find the rows of the target's file that belong to those of FILE."""
        request, file = self._request, self._file
        if request.id is not None and file is not None:
            file.join(source, parted(request.id)[0])
        elif request.id is not None and not source.lines:
            source.take([parted(request.id)[0]])
        elif file is not None and file.table is not None and begins and not request.by_position:
            refuse_position(source, file.table, self._none_of_target)

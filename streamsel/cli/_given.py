"""Inputs of a run other than its columns: target, covariates, weights, strata, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._carried import carried
from streamsel.cli._counted import Counted, report_left_out, rows_that_count, without_phenotype
from streamsel.cli._drop import dropped, may_be_pattern
from streamsel.cli._ids import identifiers_of, parted, refuse_position
from streamsel.cli._request import STDIN
from streamsel.cli._row_numbers import row_numbers
from streamsel.cli._target import TargetFile, complete, read_covariates, read_target, together

if TYPE_CHECKING:
    from collections.abc import Hashable

    from streamsel.cli._inputs import Source
    from streamsel.cli._request import Request


class Given:
    """Inputs of a run other than its columns.

    Parameters
    ----------
    request
        The settings of the run.

    Attributes
    ----------
    left_out
        Names of columns of FILE that are not learnt.
    wanted
        Names that must be in FILE.
    index
        Names of columns that only number the rows and are excluded for that reason.
    counted
        The rows that are used, and the identifiers of rows.
    y, covariates, weights, strata
        Target, covariates, weights and strata of the used rows, once they are read; None or empty
        if there are none.
    carried
        Columns that are copied to the output.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        of_file, of_target = (None, None) if request.id is None else parted(request.id)
        self._file = None
        if request.target_file:
            # The target file may have another delimiter.
            reading = request.reading._replace(delimiter=None, layer=None, raw=False)
            self._file = TargetFile(request.target_file, request.target, of_target, reading)
        # Columns that may be in either file.
        either = list(dict.fromkeys([*request.covariates, *request.of_rows]))
        self.left_out = [*([] if self._file else request.target), *either]
        self.left_out += [] if of_file is None else [of_file]
        # A column of the target file need not be in FILE.
        in_target_file = [
            name for name in either if self._file is not None and self._file.holds(name)
        ]
        wanted = [*self.left_out, *(name for name in request.drop if not may_be_pattern(name))]
        self.wanted = [name for name in wanted if name not in in_target_file]
        self._not_identifiers = {*request.target, *either}
        self.index: list[str] = []
        self.counted = Counted()
        self.y: Any = None
        self.covariates: dict[Hashable, Any] = {}
        self.weights: Any = None
        self.strata: Any = None
        self.carried: dict[str, Any] = {}

    def ids(self) -> list[str]:
        """Return possible row identifiers, if they may determine the orientation of FILE."""
        request = self._request
        if self._file is None or request.orientation != "auto" or request.by_position:
            return []
        return self._file.ids(self._not_identifiers)

    def read(self, source: Source, *, begins: bool = True) -> None:
        """Read all inputs.

        Parameters
        ----------
        source
            FILE.
        begins
            Whether a run begins, rather than resumes: then all named columns must exist and be
            valid.
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
        covariates = read_covariates(request.covariates, source, file)
        of_rows = read_covariates(list(dict.fromkeys(request.of_rows)), source, file)
        y = read_target(request, source, file, request.learner.target)
        y = without_phenotype(y) if source.format == "bed" else y
        rows = None if file is None else file.rows
        drop = request.missing_target == "drop"
        self.counted = counted = rows_that_count(
            y, rows, self.counted, f"not in {self._target_file}", drop=drop
        )
        self.y = None if y is None else counted.of(y, "target")
        self.covariates = complete(covariates, counted, "covariate")
        self.weights = self._row_values(request.weights, of_rows, "weight")
        self.strata = self._row_values(request.strata, of_rows, "stratum")

    def _row_values(self, name: str | None, found: dict[Hashable, Any], what: str) -> Any:
        """Return a column for the used rows; None without a name."""
        if name is None:
            return None
        values = {key: column for key, column in found.items() if str(key) == name}
        return np.asarray(*complete(values, self.counted, what).values())

    def beside(self) -> dict[str, Any]:
        """Return the keyword arguments for `learn_target`: covariates, weights and strata."""
        return self._weights_and_strata() | {
            "covariates": together(self.covariates) if self.covariates else None
        }

    def values(self) -> list[Any]:
        """Return all arrays, other than the columns, that determine the result."""
        kept = [] if self.counted.kept is None else [self.counted.kept.index]
        return [self.y, *self.covariates.values(), *self._weights_and_strata().values(), *kept]

    def _weights_and_strata(self) -> dict[str, Any]:
        """Return weights and strata, if there are any."""
        found = {"weights": self.weights, "strata": self.strata}
        return {name: values for name, values in found.items() if values is not None}

    def report_left_out(self) -> None:
        """Report which rows are dropped."""
        n_ignored = 0 if self._file is None else self._file.n_ignored
        report_left_out(self.counted, n_ignored, self._target_file, self._request.file)

    @property
    def _target_file(self) -> str:
        """The name of the target file in messages."""
        file = self._request.target_file
        return "standard input" if file == STDIN else str(file)

    def _match(self, source: Source, *, begins: bool) -> None:
        """Match the rows of the target file to those of FILE."""
        request, file = self._request, self._file
        if request.id is not None and file is not None:
            file.join(source, parted(request.id)[0], drop=request.missing_target == "drop")
        elif request.id is not None and not source.lines:
            source.take([parted(request.id)[0]])
        elif file is not None and file.table is not None and begins and not request.by_position:
            refuse_position(source, file.table, self._not_identifiers)
        if request.id is not None and (file is not None or not source.lines):
            self.counted = Counted(ids=identifiers_of(source, parted(request.id)[0]).values)

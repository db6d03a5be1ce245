"""Inputs of a run other than its columns: target, covariates, weights, strata, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli.counted_rows import (
    UsedRows,
    decode_plink_missing,
    report_dropped_rows,
    rows_with_target,
)
from streamsel.cli.identifiers import identifiers_of, refuse_mismatched_rows, split_id_option
from streamsel.cli.inputs import expand_drop, may_be_pattern
from streamsel.cli.passthrough import read_passthrough
from streamsel.cli.row_numbers import find_row_numbers
from streamsel.cli.spool import STDIN
from streamsel.cli.target import (
    TargetFile,
    read_covariates,
    read_target,
    require_complete,
    stack_columns,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from streamsel.cli.inputs import Source
    from streamsel.cli.request import Request


class SideInputs:
    """Inputs of a run other than its columns.

    Parameters
    ----------
    request
        The settings of the run.

    Attributes
    ----------
    excluded
        Names of columns of FILE that are not learnt.
    wanted
        Names that must be in FILE.
    row_number_columns
        Names of columns that only number the rows and are excluded for that reason.
    used_rows
        The rows that are used, and the identifiers of rows.
    y, covariates, weights, strata
        Target, covariates, weights and strata of the used rows, once they are read; None or empty
        if there are none.
    passthrough
        Columns that are copied to the output.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        of_file, of_target = (None, None) if request.id is None else split_id_option(request.id)
        self._file = None
        if request.target_file:
            # The target file may have another delimiter.
            reading = request.read_options._replace(delimiter=None, layer=None, raw=False)
            self._file = TargetFile(request.target_file, request.target, of_target, reading)
        # Columns that may be in either file.
        either = list(dict.fromkeys([*request.covariates, *request.row_columns]))
        self.excluded = [*([] if self._file else request.target), *either]
        self.excluded += [] if of_file is None else [of_file]
        # A column of the target file need not be in FILE.
        in_target_file = [
            name for name in either if self._file is not None and self._file.has_column(name)
        ]
        wanted = [*self.excluded, *(name for name in request.drop if not may_be_pattern(name))]
        self.wanted = [name for name in wanted if name not in in_target_file]
        self._not_identifiers = {*request.target, *either}
        self.row_number_columns: list[str] = []
        self.used_rows = UsedRows()
        self.y: Any = None
        self.covariates: dict[Hashable, Any] = {}
        self.weights: Any = None
        self.strata: Any = None
        self.passthrough: dict[str, Any] = {}

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
        self.excluded += expand_drop(source, request.drop, strict=begins)
        if request.saved is not None:
            self.row_number_columns = request.saved.metadata["index"]
        elif not request.keep_index:
            self.row_number_columns = find_row_numbers(source, self.excluded)
        self.excluded += self.row_number_columns
        self._match(source, begins=begins)
        header = None if request.id is None else split_id_option(request.id)[1]
        self.passthrough = read_passthrough(request.keep, source, request.out, file, header)
        covariates = read_covariates(request.covariates, source, file)
        of_rows = read_covariates(list(dict.fromkeys(request.row_columns)), source, file)
        y = read_target(request, source, file, request.learner.target_type)
        y = decode_plink_missing(y) if source.has_genotypes else y
        rows = None if file is None else file.rows
        drop = request.missing_target == "drop"
        self.used_rows = counted = rows_with_target(
            y, rows, self.used_rows, f"not in {self._target_file}", drop=drop
        )
        self.y = None if y is None else counted.select_rows(y, "target")
        self.covariates = require_complete(covariates, counted, "covariate")
        self.weights = self._row_values(request.weights, of_rows, "weight")
        self.strata = self._row_values(request.strata, of_rows, "stratum")

    def _row_values(self, name: str | None, found: dict[Hashable, Any], what: str) -> Any:
        """Return a column for the used rows; None without a name."""
        if name is None:
            return None
        values = {key: column for key, column in found.items() if str(key) == name}
        return np.asarray(*require_complete(values, self.used_rows, what).values())

    def target_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for `learn_target`: covariates, weights and strata."""
        return self._weights_and_strata() | {
            "covariates": stack_columns(self.covariates) if self.covariates else None
        }

    def values(self) -> list[Any]:
        """Return all arrays, other than the columns, that determine the result."""
        kept = [] if self.used_rows.kept is None else [self.used_rows.kept.index]
        return [self.y, *self.covariates.values(), *self._weights_and_strata().values(), *kept]

    def _weights_and_strata(self) -> dict[str, Any]:
        """Return weights and strata, if there are any."""
        found = {"weights": self.weights, "strata": self.strata}
        return {name: values for name, values in found.items() if values is not None}

    def report_dropped_rows(self) -> None:
        """Report which rows are dropped."""
        n_ignored = 0 if self._file is None else self._file.n_ignored
        report_dropped_rows(self.used_rows, n_ignored, self._target_file, self._request.file)

    @property
    def _target_file(self) -> str:
        """The name of the target file in messages."""
        file = self._request.target_file
        return "standard input" if file == STDIN else str(file)

    def _match(self, source: Source, *, begins: bool) -> None:
        """Match the rows of the target file to those of FILE."""
        request, file = self._request, self._file
        if request.id is not None and file is not None:
            file.join(source, split_id_option(request.id)[0], drop=request.missing_target == "drop")
        elif request.id is not None and not source.line_files:
            source.take([split_id_option(request.id)[0]])
        elif file is not None and file.table is not None and begins and not request.by_position:
            refuse_mismatched_rows(source, file.table, self._not_identifiers)
        if request.id is not None and (file is not None or not source.line_files):
            self.used_rows = UsedRows(
                ids=identifiers_of(source, split_id_option(request.id)[0]).values
            )

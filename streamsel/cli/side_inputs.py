"""Inputs of a run other than its columns: target, covariates, weights, strata, identifiers.

They determine which rows of FILE are used, and how messages name a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import count_text
from streamsel.base.learn_target import learn_used_rows
from streamsel.cli.errors import CommandError, message_of
from streamsel.cli.exclusions import expand_drop, find_row_numbers, may_be_pattern
from streamsel.cli.identifiers import identifiers_of, refuse_mismatched_rows, split_id_option
from streamsel.cli.inputs import open_source
from streamsel.cli.relatedness import read_relatedness, report_components
from streamsel.cli.settings import AUTO, STDIN
from streamsel.cli.target import (
    TargetFile,
    read_covariates,
    read_passthrough,
    read_target,
    stack_columns,
)
from streamsel.targets.description import listed
from streamsel.targets.kept_rows import (
    NO_TARGET,
    KeptRows,
    is_target_missing,
    kept_indices,
    rename_row,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from streamsel.base.relatedness import Relatedness
    from streamsel.cli.log import Log
    from streamsel.cli.settings import RunSettings
    from streamsel.cli.source import Source
    from streamsel.stream.files import OnBad

# PLINK's code for a missing phenotype.
_MISSING_OF_PLINK = -9


class SideInputs:
    """Inputs of a run other than its columns.

    Parameters
    ----------
    settings
        The settings of the run.
    log
        The log.

    Attributes
    ----------
    excluded
        Names of columns of FILE that are not learnt.
    row_number_columns
        Names of columns that only number the rows and are excluded for that reason.
    used_rows
        The rows that are used, and the identifiers of rows.
    y, covariates, weights, strata
        Target, covariates, weights and strata of the used rows, once they are read; None or empty
        if there are none.
    relatedness
        Relatedness of the rows, if it comes from a file.
    passthrough
        Columns that are copied to the output.
    """

    def __init__(self, settings: RunSettings, log: Log) -> None:
        self._settings, self._log = settings, log
        of_file, of_target = (None, None) if settings.id is None else split_id_option(settings.id)
        self._file = None
        if settings.target_file:
            # The target file may have another delimiter.
            reading = settings.read_options._replace(delimiter=None, layer=None, raw=False)
            self._file = TargetFile(settings.target_file, settings.target, log, of_target, reading)
        self._row_columns = [
            name for name in (settings.weights, settings.strata) if name is not None
        ]
        # Columns that may be in either file.
        either = list(dict.fromkeys([*settings.covariates, *self._row_columns]))
        self.excluded = [*([] if self._file else settings.target), *either]
        self.excluded += [] if of_file is None else [of_file]
        # A column of the target file need not be in FILE.
        in_target_file = [
            name for name in either if self._file is not None and self._file.has_column(name)
        ]
        expected_names = [
            *self.excluded,
            *(name for name in settings.drop if not may_be_pattern(name)),
        ]
        self._expected_names = [name for name in expected_names if name not in in_target_file]
        self._either, self._not_identifiers = either, {*settings.target, *either}
        self.row_number_columns: list[str] = []
        self.used_rows = UsedRows()
        self.y: Any = None
        self.covariates: dict[Hashable, Any] = {}
        self.weights: Any = None
        self.strata: Any = None
        self.relatedness: Relatedness | None = None
        self.passthrough: dict[str, Any] = {}

    def open_columns(self, on_bad: OnBad) -> Source:
        """Open FILE, whose orientation may be inferred from names and identifiers."""
        settings, ids = self._settings, []
        if self._file is not None and settings.orientation == "auto" and not settings.by_position:
            ids = self._file.ids(self._not_identifiers)
        return open_source(
            settings.files,
            self._log,
            settings.orientation,
            self._expected_names,
            on_bad,
            settings.read_options,
            display_name=settings.file,
            ids=ids,
            id_=None if settings.id is None else split_id_option(settings.id)[0],
        )

    def read(self, source: Source) -> None:
        """Read all inputs; for a new run, all named columns must exist and be valid."""
        settings, file = self._settings, self._file
        self.excluded += expand_drop(source, settings.drop, strict=settings.saved is None)
        if settings.saved is not None:
            self.row_number_columns = settings.saved.metadata["index"]
        elif not settings.keep_index:
            self.row_number_columns = find_row_numbers(source, self.excluded)
        self.excluded += self.row_number_columns
        if file is not None or settings.id is not None:
            self._match(source)
        header = None if settings.id is None else split_id_option(settings.id)[1]
        self.passthrough = read_passthrough(settings.keep, source, settings.out, file, header)
        covariates = read_covariates(settings.covariates, source, file)
        of_rows = read_covariates(list(dict.fromkeys(self._row_columns)), source, file)
        y = read_target(settings, source, file, self._either)
        y = decode_plink_missing(y) if source.has_genotypes else y
        rows = None if file is None else file.rows
        drop = settings.missing_target == "drop"
        self.used_rows = counted = rows_with_target(
            y, rows, self.used_rows, f"not in {self._target_file}", drop=drop
        )
        self.y = None if y is None else counted.select_rows(y, "target")
        self.covariates = require_complete(covariates, counted, "covariate")
        self.weights = self._row_values(settings.weights, of_rows, "weight")
        self.strata = self._row_values(settings.strata, of_rows, "stratum")
        if settings.relatedness not in (None, AUTO):
            path = str(settings.relatedness)
            if path.lower() == AUTO and not Path(path).exists():
                raise CommandError(f"--relatedness {path}: no such file. Hint: did you mean auto?")
            n = len(y) if counted.kept is None else counted.kept.n
            self.relatedness = read_relatedness(path, n, settings.file)

    def _row_values(self, name: str | None, found: dict[Hashable, Any], what: str) -> Any:
        """Return a column for the used rows; None without a name."""
        if name is None:
            return None
        values = {key: column for key, column in found.items() if str(key) == name}
        return np.asarray(*require_complete(values, self.used_rows, what).values())

    def values(self) -> list[Any]:
        """Return all arrays, other than the columns, that determine the result."""
        kept = [] if self.used_rows.kept is None else [self.used_rows.kept.index]
        matrices = [] if self.relatedness is None else [self.relatedness.matrix]
        rows = [*self._weights_and_strata().values(), *kept]
        return [self.y, *self.covariates.values(), *rows, *matrices]

    def _weights_and_strata(self) -> dict[str, Any]:
        """Return weights and strata, if there are any."""
        found = {"weights": self.weights, "strata": self.strata}
        return {name: values for name, values in found.items() if values is not None}

    def learn_target(self, model: Any, relatedness: Relatedness | None = None) -> None:
        """Let a model learn the target of the used rows.

        Parameters
        ----------
        model
            The model.
        relatedness
            Relatedness of all rows or of the used ones; None for that of the file, if any.
        """
        relatedness = self.relatedness if relatedness is None else relatedness
        arguments = self._weights_and_strata() | {
            "covariates": stack_columns(self.covariates) if self.covariates else None
        }
        try:
            if (kept := self.used_rows.kept) is None:
                model.learn_target(self.y, **arguments, relatedness=relatedness)
            else:
                known = {"weights": None} | arguments
                related = None if relatedness is None else relatedness.restricted(kept)
                learn_used_rows(model, self.y, **known, kept=kept, relatedness=related)
        except (ValueError, TypeError) as error:
            if self.relatedness is not None and "relatedness" in str(error):
                raise CommandError(
                    f"--relatedness {self._settings.relatedness}: {message_of(error)}"
                ) from error
            raise self.with_row_ids(error) from error

    def report_target(self, model: Any) -> None:
        """Report how the target was interpreted, and which rows are dropped or ignored.

        If the type of the target was inferred, the message shows the option that sets it.
        """
        target, taken = model._target, model._target_description()
        if target is None or taken is None:
            return
        text = f"target: {taken}"
        # An array of several columns has no names.
        names = self._settings.target or (() if self._file is None else self._file.target_names)
        if len(names) > 1 and not (target.kinds or target.is_class):
            text += f" {listed(names)}"
        if target.decided_by_values and target.is_class:
            text += " (inferred as classes; --target-type numeric treats it as numeric)"
        elif target.decided_by_values:
            text += " (inferred as numeric; --target-type class treats its values as classes)"
        self._log.emit("target", text, target=taken, by_rule=target.decided_by_values)
        report_components(model, self._log)
        if (kept := self.used_rows.kept) is not None:
            for reason, number in kept.excluded.items():
                are = "is" if number == 1 else "are"
                have = "has" if number == 1 else "have"
                why = f"{have} no target" if reason == NO_TARGET else f"{are} {reason}"
                rows = count_text(kept.n, "row")
                self._log.note(f"{number:,} of {rows} {why} and {are} dropped")
        if n_ignored := 0 if self._file is None else self._file.n_ignored:
            are = "is" if n_ignored == 1 else "are"
            rows = f"{count_text(n_ignored, 'row')} of {self._target_file}"
            self._log.note(f"{rows} {are} not in {self._settings.file} and {are} ignored")

    def with_row_ids(self, error: BaseException) -> BaseException:
        """Return an error whose text names a row by its identifier, if known."""
        if type(error) not in (ValueError, TypeError):
            return error
        return type(error)(self.used_rows.with_row_ids(str(error)))

    @property
    def _target_file(self) -> str:
        """The name of the target file in messages."""
        file = self._settings.target_file
        return "standard input" if file == STDIN else str(file)

    def _match(self, source: Source) -> None:
        """Match the rows of the target file to those of FILE."""
        settings, file = self._settings, self._file
        if settings.id is not None and file is not None:
            file.join(
                source, split_id_option(settings.id)[0], drop=settings.missing_target == "drop"
            )
        elif settings.id is not None and not source.line_files:
            source.take([split_id_option(settings.id)[0]])
        elif (
            file is not None
            and file.table is not None
            and settings.saved is None
            and not settings.by_position
        ):
            refuse_mismatched_rows(source, file.table, self._not_identifiers)
        if settings.id is not None and (file is not None or not source.line_files):
            self.used_rows = UsedRows(
                ids=identifiers_of(source, split_id_option(settings.id)[0]).values
            )


@dataclass(frozen=True)
class UsedRows:
    """The rows of FILE that are used, and their identifiers.

    Parameters
    ----------
    kept
        The rows that are used; None for all.
    ids
        Identifiers of all rows by index; None if only row numbers are known.
    """

    kept: KeptRows | None = None
    ids: Sequence[str | None] | None = None

    def select_rows(self, values: Any, what: str) -> Any:
        """Return the values of the used rows."""
        if self.kept is None:
            return values
        if len(values) != self.kept.n:
            raise CommandError(
                f"{what}: expected {self.kept.n:,} values, one per row of the target. Got: "
                f"{len(values):,}"
            )
        return kept_indices(values, self.kept.index)

    def used_row_name(self, row: int) -> str:
        """Return the name of a row, given its index among the used rows."""
        return self.row_name(row if self.kept is None else int(self.kept.index[row]))

    def row_name(self, row: int) -> str:
        """Return the name of a row, given its index among all rows."""
        return f"row {self._with_id(row)}"

    def with_row_ids(self, text: str) -> str:
        """Add the identifier of a row, if known, to a text that gives its number."""
        return rename_row(text, self._with_id)

    def _with_id(self, row: int) -> str:
        known = None if self.ids is None or row >= len(self.ids) else self.ids[row]
        return str(row) if known is None else f"{row} ({known})"


def decode_plink_missing(y: Any) -> Any:
    """Return a target of PLINK genotypes with -9 replaced by missing values."""
    if not isinstance(y, np.ndarray):
        return y
    if y.dtype.kind in "iuf":
        lacks = y == _MISSING_OF_PLINK
        return np.where(lacks, np.nan, y) if lacks.any() else y
    texts = [str(_MISSING_OF_PLINK), _MISSING_OF_PLINK]
    return np.array([None if v in texts else v for v in y.tolist()], dtype=object)


def rows_with_target(
    y: Any, rows: NDArray[np.intp] | None, counted: UsedRows, absent_reason: str, *, drop: bool
) -> UsedRows:
    """Return the rows that are used: those that have a target.

    Parameters
    ----------
    y
        The target of all rows of FILE; None if there is none.
    rows
        Index into the target file for each row of FILE, -1 where it has none; None without
        identifiers.
    counted
        The row identifiers.
    absent_reason
        Reason reported for rows that are not in the target file.
    drop
        Whether rows may be dropped.

    Raises
    ------
    CommandError
        If a row has no target and rows may not be dropped, or if fewer than two rows remain.
    """
    if y is None:
        return counted
    lacks = is_target_missing(y)
    if not lacks.any():
        return counted
    n, n_lacking, first = lacks.size, int(lacks.sum()), int(np.argmax(lacks))
    if not drop:
        raise CommandError(
            f"no target in {n_lacking:,} of {n:,} rows (first: {counted.row_name(first)}). Hint: "
            "--missing-target drop drops these rows"
        )
    if n - n_lacking < 2:
        raise CommandError(
            f"no target in {n_lacking:,} of {n:,} rows. Expected at least 2 rows with a target"
        )
    absent = np.zeros(n, dtype=np.bool_) if rows is None else rows < 0
    reasons = {
        NO_TARGET: int(np.count_nonzero(lacks & ~absent)),
        absent_reason: int(np.count_nonzero(absent)),
    }
    left_out = {reason: number for reason, number in reasons.items() if number}
    return UsedRows(KeptRows(n, np.flatnonzero(~lacks), left_out), counted.ids)


def require_complete(
    columns: Mapping[Hashable, Any], counted: UsedRows, what: str
) -> dict[Hashable, Any]:
    """Return columns for the used rows; raise for one with missing values in these."""
    found = {
        name: counted.select_rows(values, f"{what} {name}") for name, values in columns.items()
    }
    for name, values in found.items():
        _check_complete(name, values, what, counted)
    return found


def _check_complete(name: Hashable, values: Any, what: str, counted: UsedRows) -> None:
    if values.dtype.kind in "iu":
        return
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values)
    else:
        bad = np.array([value is None or value != value for value in values.tolist()])  # noqa: PLR0124
    if bad.any():
        row = int(np.argmax(bad))
        raise CommandError(
            f"{what} {name}: missing in {int(bad.sum()):,} of {len(values):,} rows (first: "
            f"{counted.used_row_name(row)}: {values[row]}). Hint: remove these rows, or fill in "
            "the values"
        )

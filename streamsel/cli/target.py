"""Read target, covariates and other columns from the file of columns or from a separate file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli.errors import CommandError
from streamsel.cli.identifiers import (
    header_identifiers,
    identifiers_of,
    likely_identifiers,
    match_rows,
)
from streamsel.cli.inputs import open_source, orientation_hint, spool
from streamsel.cli.source import Source, as_integers, numbers_or_labels, refuse_null
from streamsel.stream.files import (
    DEFAULT_READ_OPTIONS,
    LINE_BYTES,
    Numerals,
    ReadOptions,
    check_characters,
    delimiter_of,
    diagnose_non_numeric,
    is_number,
    numerals_of,
    open_npy,
    open_text,
    suffix_of,
    text_errors,
)
from streamsel.stream.formats import format_of_suffix

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from streamsel.cli.log import Log
    from streamsel.cli.settings import RunSettings


class TargetFile:
    """A file with the target, and possibly covariates and identifiers.

    It is .npy (one value, or one row of values, per observation), a table with a header (.csv,
    .tsv, .parquet, .feather, .arrow), or text with one value per line.

    Parameters
    ----------
    path
        The file.
    names
        Target columns of a table; empty for all columns except covariates and identifiers.
    log
        The log.
    id_
        The column of identifiers, if known.
    reading
        How the file is read.

    Attributes
    ----------
    table
        Its columns, if they have names.
    rows
        Its rows in the order of FILE, -1 where it lacks one; None for all rows as they are.
    n_ignored
        Number of its rows that are not in FILE.
    target_names
        Names of the target columns that were read; empty if they have none.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        log: Log,
        id_: str | None = None,
        reading: ReadOptions = DEFAULT_READ_OPTIONS,
    ) -> None:
        is_table = bool(names) or id_ is not None
        path = spool(path, log, is_table=is_table)
        self.path = path
        self._names, self._id, self._reading = names, id_, reading
        suffix = suffix_of(path)
        # A named column implies a table.
        format_ = format_of_suffix(suffix)
        is_text = suffix in {".csv", ".tsv"} or (is_table and format_ == "text")
        self.table: Source | None = None
        self.rows: NDArray[np.intp] | None = None
        self.n_ignored = 0
        self.target_names: Sequence[str] = ()
        if suffix != ".npy" and (is_text or format_ not in {None, "text"}):
            # A list of numbers has no header.
            is_list = is_text and not is_table and is_plain_list(path)
            self.table = None
            if not is_list:
                if is_text and reading.decimal == delimiter_of(path, None):
                    reading = reading._replace(decimal=None)
                self.table = open_source([path], log, "samples", names, options=reading)

    def has_column(self, name: str) -> bool:
        """Return whether it has a column of this name."""
        return self.table is not None and name in (self.table.stream.names or ())

    def target(self, kind: str, excluded: Sequence[str], n: int | None) -> Any:
        """Read the target; identifiers and the columns in `excluded` are not part of it.

        Text with one value per line has n lines, if n is known, and some of them may be empty.
        """
        if self.table is not None:
            known = {*excluded, self._id}
            names = self._names or [
                str(name) for name in self.table.stream.names or () if name not in known
            ]
            if not names:
                raise CommandError(
                    f"{self.path}: expected a target column. Got: only covariates and identifiers"
                )
            self.target_names = names
            return target_from_columns(self.table, names, kind, self.rows)
        if suffix_of(self.path) == ".npy":
            return load_array(self.path)
        found = read_value_per_line(self.path, self._reading, n or 0)
        if kind != "class":
            _refuse_ambiguous(found, self.path)
        return found

    def take(self, names: Sequence[str], *, exact: bool = False) -> dict[Hashable, Any]:
        """Read columns of the table, in the order of `rows`; as exact integers if `exact`."""
        assert self.table is not None  # noqa: S101
        found = {name: np.asarray(values) for name, values in self.table.take(names).items()}
        if exact:
            found = {name: self.table.exact(name, values) for name, values in found.items()}
        return {name: _rows_of(values, self.rows) for name, values in found.items()}

    def join(self, source: Source, column: str, *, drop: bool) -> None:
        """Match its rows to those of a file of columns by identifier; it may lack some."""
        if self.table is None or self._id is None:
            raise CommandError(
                f"--id: {self.path} has no named columns. Hint: use a table with a header "
                "that contains identifiers and targets, or omit --id"
            )
        known = identifiers_of(self.table, self._id)
        if fits := orientation_hint(source.files, source.format, source.options, self.ids(())):
            raise CommandError(f"--id: no row of {source.path} is in {known}. Hint: {fits}")
        self.rows = match_rows(identifiers_of(source, column), known, drop=drop)
        self.n_ignored = len(known.values) - int(np.count_nonzero(self.rows >= 0))

    def ids(self, excluded: Collection[str]) -> list[str]:
        """Return possible row identifiers, excluding the columns in `excluded`."""
        if self.table is None:
            return []
        if self._id is not None:
            found = [identifiers_of(self.table, self._id)]
        else:
            found = list(likely_identifiers(self.table, excluded=excluded).values())
        return [value for one in found for value in one.values if value is not None]


def read_target(
    settings: RunSettings, source: Source, file: TargetFile | None, excluded: Sequence[str]
) -> Any:
    """Read the target, without the columns in `excluded`; None if there is none."""
    kind = settings.target_type
    if file is None:
        return target_from_columns(source, settings.target, kind) if settings.target else None
    n_rows = source.stream.n_rows
    y = file.target(kind, excluded, n_rows)
    if n_rows is not None and len(y) != n_rows:
        text = (
            f"{settings.target_file}: expected {n_rows:,} values, one per row of {settings.file}. "
            f"Got: {len(y):,}"
        )
        fits = orientation_hint(source.files, source.format, source.options, n=len(y))
        raise CommandError(f"{text}. Hint: {fits}" if fits else text)
    return y


def read_covariates(
    names: Sequence[str], source: Source, file: TargetFile | None
) -> dict[Hashable, Any]:
    """Read covariates from the file of columns, or else from the target file.

    Raises
    ------
    CommandError
        For a covariate that is in neither, and if their lengths differ.
    """
    if not names:
        return {}
    requested = [source.name(name) for name in names]
    if file is None or file.table is None:
        columns = source.take(requested)
    else:
        found = source.take_existing(requested)
        requested = [name if name in found else str(name) for name in requested]
        try:
            found |= file.take([str(name) for name in requested if name not in found])
        except CommandError as error:
            raise CommandError(f"not in {source.path} and not in {error.message}") from None
        columns = {name: found[name] for name in requested}
    columns = {name: np.asarray(values) for name, values in columns.items()}
    first, *others = columns
    for name in others:
        if len(columns[name]) != len(columns[first]):
            raise CommandError(
                f"expected covariates of equal length. Got: {first} with "
                f"{len(columns[first]):,} and {name} with {len(columns[name]):,} values"
            )
    return columns


def read_passthrough(
    names: Sequence[str],
    source: Source,
    out: str | None,
    file: TargetFile | None = None,
    header: str | None = None,
) -> dict[str, Any]:
    """Read the columns that are copied to the output.

    Parameters
    ----------
    names
        Their names.
    source
        The file of columns.
    out
        The output file; None for CSV.
    file
        The target file, for columns that `source` does not have.
    header
        Name for the identifiers in the header of text with one variable per line.

    Raises
    ------
    CommandError
        For a column that is in neither file, and for text columns in an .npy output.
    """
    names = list(dict.fromkeys(names))
    if not names:
        return {}
    found = {
        str(name): source.exact(name, np.asarray(values))
        for name, values in source.take_existing([source.name(name) for name in names]).items()
    }
    rest = [name for name in names if name not in found]
    if header in rest and (identifiers := header_identifiers(source)) is not None:
        found[str(header)] = np.array(identifiers.values, dtype=object)
        rest.remove(str(header))
    if rest and file is not None and file.table is not None:
        found |= {str(name): values for name, values in file.take(rest, exact=True).items()}
    elif rest:
        source.take([source.name(name) for name in rest])  # raises, with close matches
    columns = {name: as_integers(np.asarray(found[name])) for name in names}
    if out is not None and suffix_of(out) == ".npy":
        for name, values in columns.items():
            if values.dtype.kind not in "biuf":
                raise CommandError(
                    f"--keep {name}: expected numbers, as {out} is an .npy array. Got: text. "
                    "Hint: use another format for --out, such as .parquet or .csv"
                )
    return columns


def stack_columns(columns: Mapping[Hashable, Any]) -> Any:
    """Combine columns: one unchanged, several numeric ones as an array, otherwise a table."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    if all(values.dtype.kind in "iuf" for values in columns.values()):
        return np.column_stack(list(columns.values()))
    return _table({name: values.tolist() for name, values in columns.items()})


def _rows_of(values: Any, rows: NDArray[np.intp] | None) -> Any:
    """Return some rows of a column (None: all); rows with index -1 are missing."""
    array = np.asarray(values)
    if rows is None:
        return array
    found, lacks = array[rows], rows < 0
    if not lacks.any():
        return found
    is_number = found.dtype.kind in "biuf"
    found = found.astype(np.float64 if is_number else object)
    found[lacks] = np.nan if is_number else None
    return found


def target_from_columns(
    source: Source, names: Sequence[str], kind: str, rows: NDArray[np.intp] | None = None
) -> Any:
    """Read the target from columns of a file; None takes all rows."""
    columns = source.take([source.name(name) for name in names])
    if kind == "class":
        columns = {name: source.exact(name, np.asarray(v)) for name, v in columns.items()}
    numerals = Numerals(na_values=source.options.na_values)
    columns = {name: _with_missing(values, numerals) for name, values in columns.items()}
    arrays = {str(name): _rows_of(values, rows) for name, values in columns.items()}
    if kind != "class":
        for name, values in arrays.items():
            _refuse_ambiguous(values, f"the target {name}")
    if source.format in ("samples", "variables"):
        arrays = {name: as_integers(values) for name, values in arrays.items()}
    return combine_target_columns(arrays, kind)


def _refuse_ambiguous(values: Any, what: str) -> None:
    """Raise for a target of numbers whose decimal mark is ambiguous."""
    if values.dtype != object or not all(isinstance(v, str) for v in values if v is not None):
        return
    why = diagnose_non_numeric(values.tolist())
    if why.reason == "ambiguous":
        raise CommandError(
            f"{what}: {values[why.position]!r} in row {why.position}, {why.detail}. Hint: set "
            "--decimal . or --decimal ,; or use --target-type class if it is a class label"
        )


def combine_target_columns(columns: dict[str, Any], kind: str) -> Any:
    """Combine target columns: one unchanged, several as an array, or a table if any has labels."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    if kind != "class" and all(values.dtype.kind in "biuf" for values in columns.values()):
        return np.column_stack(list(columns.values()))
    table = {}
    for name, values in columns.items():
        labels = kind == "class" and values.dtype.kind in "biuf"
        table[name] = list(map(_label, values.tolist())) if labels else values.tolist()
    return _table(table)


def _label(value: float) -> str | None:
    """Return a number as a class label, 3 for 3.0; None for a missing one."""
    if np.isnan(value):
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _table(columns: Mapping[Any, list[Any]]) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise CommandError(
            f"{', '.join(map(str, columns))}: several columns that include labels require "
            'pyarrow. Hint: pip install "streamsel[io]"'
        ) from error
    if not all(isinstance(name, str) for name in columns):
        raise CommandError(
            "columns of an .npy file cannot be combined with labels as covariates. Hint: put "
            "all covariates in a table, and pass it as --target-file"
        )
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def load_array(path: str) -> Any:
    """Read a whole .npy file."""
    array = np.array(open_npy(path))
    check_characters(array, path)
    return _with_missing(array, Numerals())


def _with_missing(values: Any, numerals: Numerals) -> Any:
    """Replace labels that mean a missing value by None, as in text files."""
    array = np.asarray(values)
    if array.dtype.kind not in "OU" or array.ndim != 1:
        return values
    labels = array.tolist()
    texts = {label for label in set(map(_hashable, labels)) if isinstance(label, str)}
    missing = {text for text in texts if numerals.is_missing(text)}
    if not missing:
        return values
    return np.array(
        [None if _hashable(label) in missing else label for label in labels], dtype=object
    )


def _hashable(label: Any) -> Any:
    return label if isinstance(label, str) else None


def _unquoted(line: str) -> str:
    """Return the value of a line, which may be in quotes, as R and pandas write them."""
    value = line.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1].replace('""', '"').strip() if is_quoted else value


def is_plain_list(path: str) -> bool:
    """Return whether a text file starts with a line that is one number: it then has no header."""
    with open_text(path) as file, text_errors(path):
        return is_number(_unquoted(file.readline()) or "empty")


def read_value_per_line(path: str, reading: ReadOptions = DEFAULT_READ_OPTIONS, n: int = 0) -> Any:
    """Read one value per line: numbers if all are numeric, otherwise labels; empty is missing.

    Empty lines at the end count as rows if there are n rows.
    """
    with open_text(path, LINE_BYTES) as file, text_errors(path):
        lines = [*map(_unquoted, file)]
    while len(lines) > n and not lines[-1]:
        lines.pop()
    if not any(lines):
        raise CommandError(f"{path}: the file is empty")
    numerals = numerals_of([line for line in lines if line], reading)
    found = numbers_or_labels(lines, numerals)
    if found.dtype == object:
        for number, line in enumerate(lines, start=1):
            refuse_null(line, path, f"line {number}")
    return found

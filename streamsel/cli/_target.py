"""What is to be explained, and given what: read from the file of columns or from one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import CommandError
from streamsel.cli._ids import identifiers_of, likely, rows_of
from streamsel.cli._inputs import (
    Source,
    integral,
    numbers_or_labels,
    open_source,
    refuse_null,
)
from streamsel.cli._orientation import orientation_that_fits
from streamsel.cli._spool import spooled
from streamsel.stream._decimal import numerals_of
from streamsel.stream._formats import BINARY_SUFFIXES, TEXT_SUFFIXES, delimiter_of, suffix_of
from streamsel.stream._numerals import Numerals, is_number, why_not_numbers
from streamsel.stream._read_options import AS_FOUND, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from streamsel.cli._counted import Counted
    from streamsel.cli._request import Request


class TargetFile:
    """A file that holds the target, and may hold covariates.

    It is .npy (one value, or one row of values, an observation), a table with a header (.csv, .tsv,
    .parquet, .feather, .arrow), or text with one value a line.

    Parameters
    ----------
    path
        Where it is.
    names
        Of the target's columns in a table; none of them for all but the covariates and the
        identifiers.
    id_
        Of its column of identifiers, if that is known.
    reading
        How it is to be read.

    Attributes
    ----------
    table
        Its columns, if it has names for them.
    rows
        Which of its rows are meant, in their order, -1 where it lacks one; None for all of them as
        they are.
    n_ignored
        How many of its rows are those of no row of FILE.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        id_: str | None = None,
        reading: ReadOptions = AS_FOUND,
    ) -> None:
        is_table = bool(names) or id_ is not None
        path = spooled(path, is_table=is_table)
        self.path = path
        self._names, self._id, self._reading = names, id_, reading
        suffix = suffix_of(path)
        # Who names a column has a table.
        is_text = suffix in {".csv", ".tsv"} or (is_table and suffix in TEXT_SUFFIXES)
        self.table: Source | None = None
        self.rows: NDArray[np.intp] | None = None
        self.n_ignored = 0
        if suffix != ".npy" and (is_text or suffix in BINARY_SUFFIXES):
            # A list of numbers has no header.
            is_list = is_text and not is_table and is_plain_list(path)
            self.table = None
            if not is_list:
                if is_text and reading.decimal == delimiter_of(path, None):
                    reading = reading._replace(decimal=None)
                self.table = open_source([path], "samples", names, options=reading)

    def holds(self, name: str) -> bool:
        """Whether it has a column of this name."""
        return self.table is not None and name in (self.table.stream.names or ())

    def target(self, kind: str, apart: Sequence[str], n: int | None) -> Any:
        """Read the target; identifiers, and other columns that are named, are none of it.

        A text of one value a line has n lines, if that is known, and some may be empty.
        """
        if self.table is not None:
            known = {*apart, self._id}
            names = self._names or [
                str(name) for name in self.table.stream.names or () if name not in known
            ]
            if not names:
                raise CommandError(f"{self.path}: covariates, and no target")
            return target_of(self.table, names, kind, self.rows)
        if suffix_of(self.path) == ".npy":
            return load_array(self.path)
        found = one_per_line(self.path, self._reading, n or 0)
        if kind != "class":
            _refuse_ambiguous(found, self.path)
        return found

    def take(self, names: Sequence[str], *, exact: bool = False) -> dict[Hashable, Any]:
        """Read columns of the table, in the rows that are meant; integers exactly, if asked for."""
        assert self.table is not None  # noqa: S101
        found = {name: np.asarray(values) for name, values in self.table.take(names).items()}
        if exact:
            found = {name: self.table.exact(name, values) for name, values in found.items()}
        return {name: _rows_of(values, self.rows) for name, values in found.items()}

    def join(self, source: Source, column: str, *, drop: bool) -> None:
        """Put its rows into the order of a file of columns, by identifier; it may lack some."""
        if self.table is None or self._id is None:
            raise CommandError(
                f"--id: {self.path} has no columns with names, and so no identifiers. Hint: a "
                "table with a header, of identifiers and targets; or leave out --id"
            )
        known = identifiers_of(self.table, self._id)
        if fits := orientation_that_fits(source, self.ids(())):
            raise CommandError(f"--id: no row of {source.path} is in {known}. Hint: {fits}")
        self.rows = rows_of(identifiers_of(source, column), known, drop=drop)
        self.n_ignored = len(known.values) - int(np.count_nonzero(self.rows >= 0))

    def ids(self, apart: Collection[str]) -> list[str]:
        """Return what its rows may be called, other columns apart."""
        if self.table is None:
            return []
        if self._id is not None:
            found = [identifiers_of(self.table, self._id)]
        else:
            found = list(likely(self.table, apart=apart).values())
        return [value for one in found for value in one.values if value is not None]


def read_target(request: Request, source: Source, file: TargetFile | None, kind: str) -> Any:
    """Read what is to be explained; None where nothing is."""
    if file is None:
        return target_of(source, request.target, kind) if request.target else None
    apart = [*request.covariates, *request.of_rows]
    n_rows = source.stream.n_rows
    y = file.target(kind, apart, n_rows)
    if n_rows is not None and len(y) != n_rows:
        text = f"{request.target_file}: {len(y):,} values, but {request.file} has {n_rows:,} rows"
        fits = orientation_that_fits(source, n=len(y))
        raise CommandError(f"{text}. Hint: {fits}" if fits else text)
    return y


def read_covariates(
    names: Sequence[str], source: Source, file: TargetFile | None
) -> dict[Hashable, Any]:
    """Read covariates from the file of columns, or else from the target's.

    Raises
    ------
    CommandError
        For one that is in neither, and where their lengths differ.
    """
    if not names:
        return {}
    wanted = [source.name(name) for name in names]
    if file is None or file.table is None:
        columns = source.take(wanted)
    else:
        found = source.take_some(wanted)
        wanted = [name if name in found else str(name) for name in wanted]
        try:
            found |= file.take([str(name) for name in wanted if name not in found])
        except CommandError as error:
            raise CommandError(f"not in {source.path}, nor in {error.message}") from None
        columns = {name: found[name] for name in wanted}
    columns = {name: np.asarray(values) for name, values in columns.items()}
    first, *others = columns
    for name in others:
        if len(columns[name]) != len(columns[first]):
            raise CommandError(
                f"covariates {first} and {name}: {len(columns[first]):,} and "
                f"{len(columns[name]):,} values"
            )
    return columns


def complete(columns: Mapping[Hashable, Any], counted: Counted, what: str) -> dict[Hashable, Any]:
    """Return columns of the rows that count; refuse one that has no value in some of these."""
    found = {name: counted.of(values, f"{what} {name}") for name, values in columns.items()}
    for name, values in found.items():
        _check_complete(name, values, what, counted)
    return found


def _check_complete(name: Hashable, values: Any, what: str, counted: Counted) -> None:
    if values.dtype.kind in "iu":
        return
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values)
    else:
        bad = np.array([value is None or value != value for value in values.tolist()])  # noqa: PLR0124
    if bad.any():
        row = int(np.argmax(bad))
        raise CommandError(
            f"{what} {name}: no value in {int(bad.sum()):,} of {len(values):,} rows (the first "
            f"is {counted.called(row)}: {values[row]}). Hint: leave these rows out, or fill them in"
        )


def together(columns: Mapping[Hashable, Any]) -> Any:
    """Put columns together: one as it is, numbers as an array, or a table with labels."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    if all(values.dtype.kind in "iuf" for values in columns.values()):
        return np.column_stack(list(columns.values()))
    return _table({name: values.tolist() for name, values in columns.items()})


def _rows_of(values: Any, rows: NDArray[np.intp] | None) -> Any:
    """Return some rows of a column, all of them for None; one that it lacks (-1) is missing."""
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


def target_of(
    source: Source, names: Sequence[str], kind: str, rows: NDArray[np.intp] | None = None
) -> Any:
    """Read the target from columns of a file; None takes all rows."""
    columns = source.take([source.name(name) for name in names])
    if kind == "class":
        columns = {name: source.exact(name, np.asarray(v)) for name, v in columns.items()}
    numerals = Numerals(na_values=source.options.na_values)
    columns = {name: _with_gaps(values, numerals) for name, values in columns.items()}
    arrays = {str(name): _rows_of(values, rows) for name, values in columns.items()}
    if kind != "class":
        for name, values in arrays.items():
            _refuse_ambiguous(values, f"the target {name}")
    if source.format in ("samples", "variables"):
        arrays = {name: integral(values) for name, values in arrays.items()}
    return as_target(arrays, kind)


def _refuse_ambiguous(values: Any, what: str) -> None:
    """Refuse a target whose values are all numbers, but not certain which."""
    if values.dtype != object or not all(isinstance(v, str) for v in values if v is not None):
        return
    why = why_not_numbers(values.tolist())
    if why.reason == "ambiguous":
        raise CommandError(
            f"{what}: {values[why.place]!r} in row {why.place}, {why.detail}. Hint: --decimal . or "
            "--decimal , says what it is; --target-kind class, if it is the name of a class"
        )


def as_target(columns: dict[str, Any], kind: str) -> Any:
    """Put target columns together: one as it is, several as an array, or as a table with labels."""
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
    """Return a number as the label of a class, 3 for 3.0; None for a missing one."""
    if np.isnan(value):
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _table(columns: Mapping[Any, list[Any]]) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise CommandError(
            f"{', '.join(map(str, columns))}: several columns with labels among them need pyarrow. "
            'Hint: pip install "streamsel[io]"'
        ) from error
    if not all(isinstance(name, str) for name in columns):
        raise CommandError(
            "columns of an .npy file cannot be covariates beside labels. Hint: put all covariates "
            "into a table, and name that as --target-file"
        )
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def load_array(path: str) -> Any:
    """Read a .npy file whole."""
    from streamsel.stream._arrays import check_characters, open_npy

    array = np.array(open_npy(path))
    check_characters(array, path)
    return _with_gaps(array, Numerals())


def _with_gaps(values: Any, numerals: Numerals) -> Any:
    """Return labels with None for texts that stand for a missing value, as in text files."""
    array = np.asarray(values)
    if array.dtype.kind not in "OU" or array.ndim != 1:
        return values
    labels = array.tolist()
    texts = {label for label in set(map(_hashed, labels)) if isinstance(label, str)}
    gaps = {text for text in texts if numerals.is_missing(text)}
    if not gaps:
        return values
    return np.array([None if _hashed(label) in gaps else label for label in labels], dtype=object)


def _hashed(label: Any) -> Any:
    return label if isinstance(label, str) else None


def is_plain_list(path: str) -> bool:
    """Tell whether a text file begins with a number and nothing else: it has no header then."""
    from streamsel.stream._cells import open_text, text_of

    with open_text(path) as file, text_of(path):
        return is_number(file.readline().strip() or "empty")


def one_per_line(path: str, reading: ReadOptions = AS_FOUND, n: int = 0) -> Any:
    """Read one value a line: numbers if all of them are, labels otherwise; none in an empty line.

    Empty lines at the end belong to the rows if there are n of these.
    """
    from streamsel.stream._cells import open_text, text_of
    from streamsel.stream._line_bound import LINE_BYTES

    with open_text(path, LINE_BYTES) as file, text_of(path):
        lines = [line.strip() for line in file]
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

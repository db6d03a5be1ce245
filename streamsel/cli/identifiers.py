"""Identifiers: match rows of the target file to rows of FILE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli.errors import CommandError
from streamsel.cli.inputs import orientation_hint
from streamsel.cli.source import as_integers
from streamsel.stream.files import ReadOptions, find_layout, may_be_rounded_integers

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from streamsel.cli.source import Source

# Usual names of identifier columns, in lower case without separators.
_NOUNS = (
    "sample|barcode|cell|patient|subject|participant|donor|individual|case|specimen|run|row|obs"
)
_USUAL_NAME = re.compile(
    rf"({_NOUNS})(s|id|ids|name|names|barcode)?|[ief]?id|uuid|key|index|names?"
)
# Identifiers are usually the first columns: how many are searched in FILE and in the (small) target
# file, and how many later columns with usual names.
_N_LEADING = 8
_N_LEADING_TARGET = 64
_MAX_LATER = 32
_N_FIRST_ROWS = 1000
# Share of distinct values required of text identifiers; a few duplicates may be mistakes.
_MIN_DISTINCT = 0.9
# Share of values that two columns of the same identifiers have in common.
_MIN_COMMON = 0.5
_MAX_EXAMPLES = 3
HEADER = "its header"


@dataclass(frozen=True)
class Identifiers:
    """The identifiers of the rows of a file.

    Parameters
    ----------
    file
        The file.
    column
        The column that holds them; HEADER for text with one variable per line.
    values
        A text for every row, None if it is missing.
    """

    file: str
    column: str
    values: Sequence[str | None]

    def __str__(self) -> str:
        return f"{self.file} ({self.column})"


def split_id_option(text: str) -> tuple[str, str]:
    """Return the columns of FILE and of the target file that `--id` names."""
    of_file, sign, of_target = text.partition("=")
    return of_file, of_target if sign else of_file


def match_rows(requested: Identifiers, known: Identifiers, *, drop: bool) -> NDArray[np.intp]:
    """Return the row of the target file for each row of FILE; -1 where there is none.

    Parameters
    ----------
    requested
        Identifiers of FILE.
    known
        Identifiers of the target file, which may have more.
    drop
        Whether the target file may lack some rows, though not all.

    Raises
    ------
    CommandError
        If an identifier of FILE is missing, is duplicated in either file, or is not in the target
        file.
    """
    without = [row for row, value in enumerate(requested.values) if value is None]
    if without:
        raise CommandError(
            f"--id: no identifier in {_share_text(len(without), requested)} (first: row "
            f"{without[0]}). Hint: fill in the identifiers, or remove the rows"
        )
    asked = {value for value in requested.values if value is not None}
    _refuse_repeated(requested, asked)
    _refuse_repeated(known, asked)
    row_of = {value: row for row, value in enumerate(known.values)}
    missing = [value for value in requested.values if value not in row_of]
    if missing and not (drop and len(missing) < len(requested.values)):
        others = [value for value in known.values if value is not None]
        examples = (
            f", which has {_examples_text(others)}" if len(missing) == len(requested.values) else ""
        )
        raise CommandError(
            f"--id: {_share_text(len(missing), requested)} are not in {known}: "
            f"{_examples_text(missing)}{examples}. Hint: --missing-target drop drops these rows; "
            "or add their targets"
        )
    return np.array([row_of.get(value, -1) for value in requested.values], dtype=np.intp)


def _share_text(n: int, identifiers: Identifiers) -> str:
    return f"{n:,} of {len(identifiers.values):,} rows of {identifiers}"


def _examples_text(values: Sequence[str | None]) -> str:
    return ", ".join(map(repr, values[:_MAX_EXAMPLES])) + (
        ", ..." if len(values) > _MAX_EXAMPLES else ""
    )


def _refuse_repeated(identifiers: Identifiers, asked: Collection[str]) -> None:
    """Raise if an identifier of `asked` is duplicated."""
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for value in identifiers.values:
        if value is not None and value in asked:
            if value in seen:
                repeated[value] = None
            seen.add(value)
    if repeated:
        raise CommandError(
            f"--id: {len(repeated):,} of {len(seen):,} identifiers of {identifiers} are "
            f"duplicated: {_examples_text(list(repeated))}. Hint: keep one row per identifier"
        )


def identifiers_of(source: Source, column: str) -> Identifiers:
    """Read the identifiers of a file.

    Raises
    ------
    CommandError
        If the file has no such column, or the column cannot hold identifiers.
    """
    if source.line_files:
        found = header_identifiers(source)
        if found is None:
            raise CommandError(
                f"--id: {source.path} has no header with sample names. Hint: use "
                "--by-position if the target is in the same order"
            )
        return found
    names = source.stream.names
    if column not in source.stream.row_metadata and (names is None or isinstance(names, range)):
        raise CommandError(
            f"--id: {source.path} has no column names. Hint: use --by-position if the target "
            "is in the same row order"
        )
    ((name, values),) = source.take([source.name(column)]).items()
    exact = source.exact(name, np.asarray(values))
    texts = _texts(exact)
    if texts is None and may_be_rounded_integers(exact):
        raise CommandError(
            f"--id {column}: expected exact identifiers in {source.path}. Got: floats of 2^53 "
            "and more, which are not exact integers. Hint: store the column as text or "
            "integers"
        )
    if texts is None:
        raise CommandError(
            f"--id {column}: expected identifiers (text or integers) in {source.path}. Got: "
            "numbers with fractions"
        )
    return Identifiers(source.path, str(name), texts)


def header_identifiers(source: Source) -> Identifiers | None:
    """Return the row identifiers in the header of text with a variable per line; None if absent.

    Raises
    ------
    CommandError
        If there are several files and their headers differ.
    """
    found: Identifiers | None = None
    for path, delimiter in source.line_files:
        names = find_layout(path, ReadOptions(delimiter)).row_names
        if names is None:
            continue
        other = Identifiers(path, HEADER, [name.strip() or None for name in names])
        if found is not None and found.values != other.values:
            raise CommandError(
                f"{other} has other samples than {found}, or another order. Hint: columns of "
                "several files are concatenated: sort the samples of all files in the same way"
            )
        found = found or other
    return found


def likely_identifiers(
    source: Source,
    shared: Collection[Hashable] = (),
    excluded: Collection[str] = (),
    near: int = _N_LEADING_TARGET,
) -> dict[str, Identifiers]:
    """Return the columns of a file that may be identifiers: distinct texts or integers.

    Parameters
    ----------
    source
        The file; only a few columns of a wide one are read.
    shared
        Names that are searched at any position: those that another file has too.
    excluded
        Names of columns that are something else.
    near
        How many leading columns are searched, whatever their names.

    Returns
    -------
    Identifiers by the name of their column.
    """
    if source.line_files:
        header = header_identifiers(source)
        return {} if header is None else {HEADER: header}
    names = source.stream.names
    if names is None or isinstance(names, range):
        names = ()
    searched = _columns_to_search(list(source.stream.row_metadata), shared, near)
    # Of several text files, each one searched would be read in full.
    searched += _columns_to_search(names, shared, near) if len(source.files) == 1 else names[:near]
    searched = [name for name in searched if str(name) not in excluded]
    found = {}
    for name, values in source.take(searched).items():
        array = source.exact(name, np.asarray(values))
        # Most columns can be ruled out by their first rows.
        texts = _texts(array) if _are_distinct(array[:_N_FIRST_ROWS].tolist()) else None
        if texts is not None and len(texts) > 1 and _are_distinct(texts):
            found[str(name)] = Identifiers(source.path, str(name), texts)
    return found


def _columns_to_search(
    names: Sequence[Hashable], shared: Collection[Hashable], near: int
) -> list[Hashable]:
    """Return the leading names, and later ones that are shared or usual for identifiers."""
    further = (name for name in names[near:] if name in shared or is_usual_id_name(str(name)))
    return [*names[:near], *islice(further, _MAX_LATER)]


def _are_distinct(values: Sequence[Any]) -> bool:
    """Return whether values identify rows; repeated numbers are quantities."""
    share = _MIN_DISTINCT if any(isinstance(v, str) and not _is_number(v) for v in values) else 1
    return len({str(value) for value in values}) >= share * len(values)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def is_usual_id_name(name: str) -> bool:
    """Return whether a name is usual for a column of identifiers."""
    return _USUAL_NAME.fullmatch("".join(c for c in name.lower() if c.isalnum())) is not None


def refuse_mismatched_rows(source: Source, table: Source, excluded: Collection[str]) -> None:
    """Raise if both files have identifiers that disagree row by row.

    Parameters
    ----------
    source, table
        The file of columns, and the target file.
    excluded
        Columns of the target file that are target or covariates.
    """
    names = source.stream.names
    shared = frozenset() if names is None or isinstance(names, range) else frozenset(names)
    of_table = likely_identifiers(table, shared, excluded)
    if not of_table:
        return
    of_file = likely_identifiers(source, frozenset(of_table), near=_N_LEADING).values()
    pairs = [
        pair for one in of_file if (pair := _matching_pair(one, [*of_table.values()])) is not None
    ]
    if all(_are_line_numbers(one) for one, _ in pairs):
        _refuse_transposed(source, of_table.values())
        _refuse_different(of_file, of_table.values())
    # Text identifiers are stronger evidence than numbers, which may be line numbers.
    pairs = [pair for pair in pairs if _are_texts(*pair)] or pairs
    differing = [pair for pair in pairs if pair[0].values != pair[1].values]
    if not differing:
        return
    # Prefer columns of the same name.
    one, other = min(differing, key=lambda pair: pair[0].column != pair[1].column)
    raise CommandError(
        f"{one} and {other} identify the rows, in different orders. Hint: --id "
        f"{_id_value(one, other)} joins by them; --by-position matches rows by position"
    )


def _id_value(one: Identifiers, other: Identifiers) -> str:
    """Return the value of `--id` for two columns."""
    same = one.column in (other.column, HEADER)
    return other.column if same else f"{one.column}={other.column}"


def _refuse_transposed(source: Source, others: Iterable[Identifiers]) -> None:
    """Raise if the position of the identifiers shows that the file is transposed."""
    for other in others:
        if fits := orientation_hint(
            source.files, source.format, source.options, [value for value in other.values if value]
        ):
            raise CommandError(
                f"{source.path} has identifiers of {other}, but not where samples are "
                f"expected. Hint: {fits}; --by-position matches rows by position"
            )


def _refuse_different(ones: Iterable[Identifiers], others: Iterable[Identifiers]) -> None:
    """Raise if columns named like identifiers have different values for the same rows."""
    pairs = [(one, other) for one in ones for other in others if _are_different(one, other)]
    if not pairs:
        return
    one, other = max(pairs, key=lambda pair: _n_common(*pair))
    raise CommandError(
        f"{one} and {other} identify the rows, but have only {_n_common(one, other):,} of "
        f"{len(one.values):,} values in common, such as {_examples_text(one.values[:1])} and "
        f"{_examples_text(other.values[:1])}. Hint: write them in the same way for --id "
        f"{_id_value(one, other)}; --by-position matches rows by position"
    )


def _are_different(one: Identifiers, other: Identifiers) -> bool:
    return (
        all(each.column == HEADER or is_usual_id_name(each.column) for each in (one, other))
        and _are_texts(one, other)
        and not (_are_line_numbers(one) or _are_line_numbers(other))
    )


def _are_line_numbers(identifiers: Identifiers) -> bool:
    """Return whether these are line numbers, from 0 or 1."""
    values = identifiers.values
    return any([*map(str, range(a, a + len(values)))] == [*values] for a in (0, 1))


def _matching_pair(
    one: Identifiers, others: Sequence[Identifiers]
) -> tuple[Identifiers, Identifiers] | None:
    """Return the column paired with the one that identifies the same things; None without one."""
    fit = [other for other in others if _identify_same(one, other)]
    if not fit:
        return None
    return one, max(fit, key=lambda other: (_n_common(one, other), one.column == other.column))


def _identify_same(one: Identifiers, other: Identifiers) -> bool:
    """Return whether two columns identify the same things."""
    same, is_text = one.column == other.column, _are_texts(one, other)
    if _n_common(one, other) < _MIN_COMMON * min(len(one.values), len(other.values)):
        # Different identifiers under the same name are still a mistake.
        return same and is_text and is_usual_id_name(one.column)
    return is_text or same or (is_usual_id_name(one.column) and is_usual_id_name(other.column))


def _n_common(one: Identifiers, other: Identifiers) -> int:
    return len({*one.values} & {*other.values})


def _are_texts(one: Identifiers, other: Identifiers) -> bool:
    first = (*one.values[:_N_FIRST_ROWS], *other.values[:_N_FIRST_ROWS])
    return not all(_is_number(value) for value in first if value)


def _texts(values: Any) -> list[str | None] | None:
    """Return identifiers as texts (None if missing); None if values cannot be identifiers."""
    if values.ndim != 1:
        return None
    if values.dtype.kind == "f" and np.isfinite(values).any():
        whole = as_integers(values[np.isfinite(values)])
        if whole.dtype.kind != "i":
            return None
        texts: list[str | None] = [None] * len(values)
        for row, value in zip(np.flatnonzero(np.isfinite(values)), whole.tolist(), strict=True):
            texts[int(row)] = str(value)
        return texts
    if values.dtype.kind not in "iuUO":
        return None
    return [
        None if value is None or value != value else str(value).strip() or None  # noqa: PLR0124
        for value in values.tolist()
    ]

"""Identifiers: which row of the target's file belongs to which row of FILE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import CommandError
from streamsel.cli._inputs import integral
from streamsel.cli._orientation import orientation_that_fits
from streamsel.stream._exact import may_be_inexact
from streamsel.stream._layout import find_layout
from streamsel.stream._read_options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from streamsel.cli._inputs import Source

# What columns of identifiers are called, in lower case and without what stands between words.
THINGS = (
    "sample|barcode|cell|patient|subject|participant|donor|individual|case|specimen|run|row|obs"
)
USUAL = re.compile(rf"({THINGS})(s|id|ids|name|names|barcode)?|[ief]?id|uuid|key|index|names?")
# Identifiers stand in front: so many columns are looked at of FILE, and of the target's file, which
# is small; besides, so many of such names.
_NEAR = 8
_NEAR_TARGET = 64
_MOST = 32
_FIRST = 1000
# Of texts some may be there twice by mistake: they are meant to tell rows apart all the same.
_DISTINCT = 0.9
# Of two columns that say which row is which so many values are the same.
_ALIKE = 0.5
EXAMPLES = 3
HEADER = "its header"


@dataclass(frozen=True)
class Identifiers:
    """What the rows of a file are called.

    Parameters
    ----------
    file
        The file.
    column
        Where they stand in it; HEADER of text with one variable a line.
    values
        A text for every row, None where there is none.
    """

    file: str
    column: str
    values: Sequence[str | None]

    def __str__(self) -> str:
        return f"{self.file} ({self.column})"


def parted(text: str) -> tuple[str, str]:
    """Return the column of FILE and that of the target's file which `--id` names."""
    of_file, sign, of_target = text.partition("=")
    return of_file, of_target if sign else of_file


def rows_of(wanted: Identifiers, known: Identifiers, *, drop: bool) -> NDArray[np.intp]:
    """Return the rows of one file that belong to those of another; -1 for a row that it lacks.

    Parameters
    ----------
    wanted
        Of FILE.
    known
        Of the target's file, which may have more.
    drop
        Whether it may lack some, though not all.

    Raises
    ------
    CommandError
        If an identifier of FILE is missing, is there twice in either, or is not in the other.
    """
    without = [row for row, value in enumerate(wanted.values) if value is None]
    if without:
        raise CommandError(
            f"--id: no identifier in {_of(len(without), wanted)}, the first of them row "
            f"{without[0]}. Hint: fill it in, or leave the row out"
        )
    asked = {value for value in wanted.values if value is not None}
    _refuse_repeated(wanted, asked)
    _refuse_repeated(known, asked)
    place = {value: row for row, value in enumerate(known.values)}
    missing = [value for value in wanted.values if value not in place]
    if missing and not (drop and len(missing) < len(wanted.values)):
        others = [value for value in known.values if value is not None]
        there = f", where there is {_some(others)}" if len(missing) == len(wanted.values) else ""
        raise CommandError(
            f"--id: {_of(len(missing), wanted)} are not in {known}: {_some(missing)}{there}. "
            "Hint: --missing-target drop leaves them out; or add their targets"
        )
    return np.array([place.get(value, -1) for value in wanted.values], dtype=np.intp)


def _of(n: int, identifiers: Identifiers) -> str:
    return f"{n:,} of {len(identifiers.values):,} rows of {identifiers}"


def _some(values: Sequence[str | None]) -> str:
    return ", ".join(map(repr, values[:EXAMPLES])) + (", ..." if len(values) > EXAMPLES else "")


def _refuse_repeated(identifiers: Identifiers, asked: Collection[str]) -> None:
    """Raise if one that is asked for is there more than once."""
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for value in identifiers.values:
        if value is not None and value in asked:
            if value in seen:
                repeated[value] = None
            seen.add(value)
    if repeated:
        raise CommandError(
            f"--id: {len(repeated):,} of {len(seen):,} identifiers of {identifiers} are there more "
            f"than once: {_some(list(repeated))}. Hint: which of their rows is meant? Leave out "
            "the others"
        )


def identifiers_of(source: Source, column: str) -> Identifiers:
    """Read the identifiers of a file.

    Raises
    ------
    CommandError
        If there are none: it has no such column, or one of other things.
    """
    if source.lines:
        found = of_header(source)
        if found is None:
            raise CommandError(
                f"--id: {source.path} has no header that names its samples. Hint: --by-position, "
                "if the target is in their order"
            )
        return found
    names = source.stream.names
    if column not in source.stream.beside and (names is None or isinstance(names, range)):
        raise CommandError(
            f"--id: {source.path} has no names of columns. Hint: --by-position, if the target is "
            "in the order of its rows"
        )
    ((name, values),) = source.take([source.name(column)]).items()
    exact = source.exact(name, np.asarray(values))
    texts = _texts(exact)
    if texts is None and may_be_inexact(exact):
        raise CommandError(
            f"--id {column}: in {source.path} it is floats of 2^53 and more, which do not tell "
            "identifiers apart. Hint: write it as text, or as integers"
        )
    if texts is None:
        raise CommandError(
            f"--id {column}: in {source.path} it is numbers with fractions, and no identifier. "
            "Hint: identifiers are text, or whole numbers"
        )
    return Identifiers(source.path, str(name), texts)


def of_header(source: Source) -> Identifiers | None:
    """Return what the header of text with one variable a line calls the rows; None without one.

    Raises
    ------
    CommandError
        If there are several files, and their headers differ.
    """
    found: Identifiers | None = None
    for path, delimiter in source.lines:
        names = find_layout(path, ReadOptions(delimiter)).row_names
        if names is None:
            continue
        other = Identifiers(path, HEADER, [name.strip() or None for name in names])
        if found is not None and found.values != other.values:
            raise CommandError(
                f"{other} names other samples than {found}, or in another order. Hint: columns of "
                "several files stand side by side: bring them into one order"
            )
        found = found or other
    return found


def likely(
    source: Source,
    shared: Collection[Hashable] = (),
    apart: Collection[str] = (),
    near: int = _NEAR_TARGET,
) -> dict[str, Identifiers]:
    """Return the columns of a file that may be identifiers: distinct texts, or whole numbers.

    Parameters
    ----------
    source
        The file; of a wide one only a few columns are read.
    shared
        Names worth a look wherever they stand: those that another file has too.
    apart
        Names of columns that are something else.
    near
        How many columns are looked at, whatever they are called.

    Returns
    -------
    Identifiers by the name of their column.
    """
    if source.lines:
        header = of_header(source)
        return {} if header is None else {HEADER: header}
    names = source.stream.names
    if names is None or isinstance(names, range):
        names = ()
    looked_at = _worth_a_look(list(source.stream.beside), shared, near)
    # Of several texts each one looked into would be read whole.
    looked_at += _worth_a_look(names, shared, near) if len(source.files) == 1 else names[:near]
    looked_at = [name for name in looked_at if str(name) not in apart]
    found = {}
    for name, values in source.take(looked_at).items():
        array = source.exact(name, np.asarray(values))
        # Most columns say in the first rows that they are none.
        texts = _texts(array) if _are_distinct(array[:_FIRST].tolist()) else None
        if texts is not None and len(texts) > 1 and _are_distinct(texts):
            found[str(name)] = Identifiers(source.path, str(name), texts)
    return found


def _worth_a_look(
    names: Sequence[Hashable], shared: Collection[Hashable], near: int
) -> list[Hashable]:
    """Return the first of some names, and some of those behind them that tell."""
    further = (name for name in names[near:] if name in shared or is_usual(str(name)))
    return [*names[:near], *islice(further, _MOST)]


def _are_distinct(values: Sequence[Any]) -> bool:
    """Tell whether values tell rows apart; numbers that do not are quantities."""
    share = _DISTINCT if any(isinstance(v, str) and not _is_number(v) for v in values) else 1
    return len({str(value) for value in values}) >= share * len(values)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def is_usual(name: str) -> bool:
    """Tell whether columns of identifiers are usually called so."""
    return USUAL.fullmatch("".join(c for c in name.lower() if c.isalnum())) is not None


def refuse_position(source: Source, table: Source, apart: Collection[str]) -> None:
    """Raise if both files know which row is which, and do not agree row by row.

    Parameters
    ----------
    source, table
        The file of columns, and that of the target.
    apart
        Columns of the latter that are target or covariates.
    """
    names = source.stream.names
    shared = frozenset() if names is None or isinstance(names, range) else frozenset(names)
    of_table = likely(table, shared, apart)
    if not of_table:
        return
    of_file = likely(source, frozenset(of_table), near=_NEAR).values()
    pairs = [pair for one in of_file if (pair := _partner(one, [*of_table.values()])) is not None]
    if all(_counts_lines(one) for one, _ in pairs):
        _refuse_the_wrong_way(source, of_table.values())
        _refuse_strangers(of_file, of_table.values())
    # Texts say more than numbers, which may be those of the lines.
    pairs = [pair for pair in pairs if _are_texts(*pair)] or pairs
    unlike = [pair for pair in pairs if pair[0].values != pair[1].values]
    if not unlike:
        return
    # Those of the same name before all others.
    one, other = min(unlike, key=lambda pair: pair[0].column != pair[1].column)
    raise CommandError(
        f"{one} and {other} say which row is which, and not in the same order. Hint: "
        f"--id {_spelt(one, other)} joins them by it; --by-position takes row after row as they are"
    )


def _spelt(one: Identifiers, other: Identifiers) -> str:
    """Return what `--id` calls two columns."""
    same = one.column in (other.column, HEADER)
    return other.column if same else f"{one.column}={other.column}"


def _refuse_the_wrong_way(source: Source, others: Iterable[Identifiers]) -> None:
    """Raise if identifiers stand where they do if a line is the other of sample and variable."""
    for other in others:
        if fits := orientation_that_fits(source, [value for value in other.values if value]):
            raise CommandError(
                f"{source.path} has identifiers of {other}, but not where its samples are. Hint: "
                f"{fits}; --by-position takes row after row as they are"
            )


def _refuse_strangers(ones: Iterable[Identifiers], others: Iterable[Identifiers]) -> None:
    """Raise if columns that are called like identifiers say other things of the same rows."""
    pairs = [(one, other) for one in ones for other in others if _are_strangers(one, other)]
    if not pairs:
        return
    one, other = max(pairs, key=lambda pair: _n_common(*pair))
    raise CommandError(
        f"{one} and {other} say which row is which, and have {_n_common(one, other):,} of "
        f"{len(one.values):,} in common, as {_some(one.values[:1])} and {_some(other.values[:1])}. "
        f"Hint: spell them alike for --id {_spelt(one, other)}; --by-position takes row after row "
        "as they are"
    )


def _are_strangers(one: Identifiers, other: Identifiers) -> bool:
    return (
        all(each.column == HEADER or is_usual(each.column) for each in (one, other))
        and _are_texts(one, other)
        and not (_counts_lines(one) or _counts_lines(other))
    )


def _counts_lines(identifiers: Identifiers) -> bool:
    """Tell whether these are numbers of the lines, from 0 or 1."""
    values = identifiers.values
    return any([*map(str, range(a, a + len(values)))] == [*values] for a in (0, 1))


def _partner(
    one: Identifiers, others: Sequence[Identifiers]
) -> tuple[Identifiers, Identifiers] | None:
    """Return the column that identifies the same things as another, beside that."""
    fit = [other for other in others if _go(one, other)]
    if not fit:
        return None
    return one, max(fit, key=lambda other: (_n_common(one, other), one.column == other.column))


def _go(one: Identifiers, other: Identifiers) -> bool:
    """Tell whether two columns are identifiers of the same things."""
    same, is_text = one.column == other.column, _are_texts(one, other)
    if _n_common(one, other) < _ALIKE * min(len(one.values), len(other.values)):
        # Other identifiers under the same name are a mistake all the same.
        return same and is_text and is_usual(one.column)
    return is_text or same or (is_usual(one.column) and is_usual(other.column))


def _n_common(one: Identifiers, other: Identifiers) -> int:
    return len({*one.values} & {*other.values})


def _are_texts(one: Identifiers, other: Identifiers) -> bool:
    first = (*one.values[:_FIRST], *other.values[:_FIRST])
    return not all(_is_number(value) for value in first if value)


def _texts(values: Any) -> list[str | None] | None:
    """Return identifiers as texts, None for a missing one; None if they are none at all."""
    if values.ndim != 1:
        return None
    if values.dtype.kind == "f" and np.isfinite(values).any():
        whole = integral(values[np.isfinite(values)])
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

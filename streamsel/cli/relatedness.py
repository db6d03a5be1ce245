"""Relatedness of the rows of a run: from a file, or computed by a pass over the columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import bytes_text, count_text
from streamsel.base.relatedness import Relatedness, as_relatedness
from streamsel.cli.errors import CommandError, message_of
from streamsel.cli.progress import meter
from streamsel.cli.settings import CHROMOSOME
from streamsel.stream import ColumnStream
from streamsel.stream.files import (
    LINE_BYTES,
    delimiter_of,
    numbered_lines,
    open_npy,
    open_text,
    split_cells,
    suffix_of,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from streamsel.cli.log import Log
    from streamsel.cli.source import Source
    from streamsel.data.chunks import Block
    from streamsel.stream.files import CleanStream

# First bytes of a model file, an archive.
_ARCHIVE = b"PK"
# Chromosomes that are unknown, in PLINK's files and elsewhere.
_NO_CHROMOSOME = frozenset({"", ".", "0"})
# Metadata of genotypes that form no groups.
_NO_GROUPS = frozenset({"name", "position", "effect_allele", "other_allele"})
# More groups, each with a matrix of all rows, are a mistake.
_MAX_GROUPS = 100


def read_relatedness(path: str, n: int, file: str) -> Relatedness:
    """Read relatedness from a file: .npy, n lines of n numbers, or a model with a Gram matrix.

    Parameters
    ----------
    path
        The file.
    n
        Number of rows of the columns.
    file
        The file of columns, for messages.

    Raises
    ------
    CommandError
        For any other file, or a matrix that is not a relatedness of n rows.
    """
    found = _read(path)
    if found.n_rows != n:
        raise CommandError(
            f"--relatedness {path}: {file} has {count_text(n, 'row')}, the matrix "
            f"{found.n_rows:,}. Hint: the matrix has all rows of {file} in their order, also those "
            "without a target"
        )
    return found


def _read(path: str) -> Relatedness:
    """Read relatedness of any number of rows."""
    try:
        if suffix_of(path) == ".npy":
            return as_relatedness(np.array(open_npy(path)))
        with Path(path).open("rb") as file:
            is_model = file.read(len(_ARCHIVE)) == _ARCHIVE
        if is_model:
            from streamsel.serialization.archive import load

            return as_relatedness(load(path))
        return as_relatedness(_read_numbers(path))
    except (ValueError, TypeError) as error:
        raise CommandError(f"--relatedness {path}: {message_of(error)}") from error


def _read_numbers(path: str) -> Any:
    """Read lines of numbers, separated by commas or white space."""
    with open_text(path, LINE_BYTES) as file, text_errors(path):
        first = next(file, "")
    delimiter = "," if "," in first else None
    with open_text(path, LINE_BYTES) as file, text_errors(path):
        try:
            return np.loadtxt(file, delimiter=delimiter, ndmin=2)
        except ValueError as error:
            raise ValueError(
                f"{error} Hint: expected numbers only, without header or row names"
            ) from error


def compute_relatedness(
    stream: CleanStream, groups: dict[Hashable, Hashable] | None, loco: str | None, log: Log
) -> Relatedness:
    """Compute relatedness by a pass over the columns that are to be learnt, showing progress.

    Raises
    ------
    CommandError
        If the relatedness cannot be computed; the message names the option.
    """
    n_without = 0
    with meter(log, "computing relatedness", stream.n_columns) as bar:
        bar.begin()

        def watched() -> Iterator[Block]:
            nonlocal n_without
            n_read = 0
            for block in stream.blocks():
                n_read += len(block.names)
                if groups is not None:
                    n_without += sum(name not in groups for name in block.names)
                yield block
                bar.update(n_read, pass_name="relatedness")  # noqa: S106
            if n_without and n_without == n_read:
                raise _no_groups_error(loco, n_read)

        try:
            found = Relatedness.from_columns(ColumnStream(watched, n_rows=stream.n_rows), groups)
        except ValueError as error:
            text = message_of(error)
            option = f"--loco {loco}" if groups is not None and "group" in text else None
            raise CommandError(f"{option or '--relatedness auto'}: {text}") from error
    if n_without:
        have = "has" if n_without == 1 else "have"
        log.note(
            f"{count_text(n_without, 'column')} {have} no group in --loco {loco}, tested with the "
            "relatedness of all columns"
        )
    return found


def groups_of_columns(
    loco: str, source: Source, excluded: Collection[Hashable], n: int
) -> dict[Hashable, Hashable]:
    """Return the groups of columns, from their metadata or from a file of names and groups.

    Parameters
    ----------
    loco
        Title of metadata of columns, or a path.
    source
        The columns.
    excluded
        Names of columns that are not learnt.
    n
        Number of rows that are used.

    Raises
    ------
    CommandError
        If there is neither such metadata nor such a file, if no column has a group, and for more
        groups than there is memory for.
    """
    metadata = source.stream.column_metadata
    if loco in metadata:
        pairs = zip(next(iter(metadata.values())).tolist(), metadata[loco].tolist(), strict=True)
        found = {name: group for name, group in pairs if _is_group(group, loco)}
    elif Path(loco).is_file():
        found = _groups_in_file(loco, source)
    else:
        titles = [title for title in list(metadata)[1:] if title not in _NO_GROUPS]
        has = f"It has: {', '.join(titles)}" if titles else "It has none"
        raise CommandError(
            f"--loco {loco}: {source.path} has no such metadata of columns, and there is no such "
            f"file. {has}. Hint: use a file with two columns, the name of a column and its group"
        )
    if (names := source.stream.names) is not None:
        learnt = set(names).difference(excluded)
        found = {name: group for name, group in found.items() if name in learnt}
        if not found:
            raise _no_groups_error(loco, len(learnt))
    if (n_groups := len(set(found.values()))) > _MAX_GROUPS:
        raise CommandError(
            f"--loco {loco}: expected at most {_MAX_GROUPS} groups of columns. Got: {n_groups:,}, "
            f"whose matrices of {count_text(n, 'row')} take {bytes_text(8 * n * n * n_groups)}"
        )
    return found


def _is_group(group: Hashable, loco: str) -> bool:
    """Return whether metadata of a column is a group, rather than missing or unknown."""
    if group is None or group != group:  # noqa: PLR0124
        return False
    return loco != CHROMOSOME or str(group) not in _NO_CHROMOSOME


def _groups_in_file(path: str, source: Source) -> dict[Hashable, Hashable]:
    """Return the groups in a file; CommandError for a name with two groups."""
    found: dict[Hashable, Hashable] = {}
    for text, group in read_pairs("--loco", path):
        name = source.name(text)
        if found.setdefault(name, group) != group:
            raise CommandError(
                f"--loco {path}: expected one group per column. Got: column {text!r} in groups "
                f"{found[name]!r} and {group!r}"
            )
    return found


def _no_groups_error(loco: str | None, n: int) -> CommandError:
    """Return the error for groups of other columns."""
    return CommandError(
        f"--loco {loco}: expected the groups of columns. Got: none of {count_text(n, 'column')} "
        f"is in {loco}. Hint: the names are those of the columns, as a run prints them"
    )


def read_pairs(option: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the two cells of every line; CommandError for another number of cells."""
    delimiter = delimiter_of(path, None)
    with open_text(path) as file, text_errors(path):
        for number, line in numbered_lines(file, path):
            cells = split_cells(line, delimiter)
            cells = line.split() if len(cells) == 1 else cells
            if len(cells) != 2:
                raise CommandError(
                    f"{option} {path}: expected a name and a group in line {number}. Got: "
                    f"{count_text(len(cells), 'cell')}"
                )
            yield cells[0].strip(), cells[1].strip()


def report_components(model: Any, log: Log) -> None:
    """Report the estimated variance components, if there are any."""
    found = model.variance_components
    if not found:
        return
    first, *others = found.values()
    text = f"relatedness: heritability {first.heritability:.3f}, variance ratio {first.ratio:.4g}"
    if others:
        shares = [components.heritability for components in others]
        text += (
            f"; without one of {count_text(len(others), 'group')}, heritability "
            f"{min(shares):.3f} to {max(shares):.3f}"
        )
    facts = [{"left_out": group, **one._asdict()} for group, one in found.items()]
    log.emit("relatedness", text, components=facts)

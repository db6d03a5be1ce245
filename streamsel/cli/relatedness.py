"""Relatedness of the rows of a run: from a file, or computed by a pass over the columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import count_text
from streamsel.base.relatedness import Relatedness, as_relatedness
from streamsel.cli.errors import CommandError, message_of
from streamsel.cli.progress import meter
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
    from collections.abc import Hashable, Iterator

    from streamsel.cli.log import Log
    from streamsel.cli.source import Source
    from streamsel.data.columns import Block
    from streamsel.stream.files import CleanStream

# First bytes of a model file, an archive.
_ARCHIVE = b"PK"


def read_relatedness(path: str) -> Relatedness:
    """Read relatedness from a file: .npy, n lines of n numbers, or a model with a Gram matrix.

    Raises
    ------
    CommandError
        For a file that is none of these, or a matrix that is no relatedness.
    """
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
        return np.loadtxt(file, delimiter=delimiter, ndmin=2)


def compute_relatedness(
    screen: CleanStream, groups: dict[Hashable, Hashable] | None, log: Log
) -> Relatedness:
    """Compute relatedness by a pass over the columns that are to be learnt, showing progress."""
    with meter(log, "computing relatedness", screen.n_columns) as bar:
        bar.begin()

        def watched() -> Iterator[Block]:
            n_read = 0
            for block in screen.blocks():
                n_read += len(block.names)
                yield block
                bar.update(n_read, pass_name="relatedness")  # noqa: S106

        return Relatedness.from_columns(ColumnStream(watched, n_rows=screen.n_rows), groups)


def groups_of_columns(loco: str, source: Source) -> dict[Hashable, Hashable]:
    """Return the group of every column: of its metadata, or of a file of names and groups.

    Raises
    ------
    CommandError
        If there is neither such metadata nor such a file.
    """
    metadata = source.stream.column_metadata
    if loco in metadata:
        names, groups = next(iter(metadata.values())), metadata[loco]
        return dict(zip(names.tolist(), groups.tolist(), strict=True))
    if Path(loco).is_file():
        return {source.name(name): group for name, group in _read_pairs(loco)}
    titles = [title for title in list(metadata)[1:] if title != "name"]
    has = f"It has: {', '.join(titles)}" if titles else "It has none"
    raise CommandError(
        f"--loco {loco}: {source.path} has no such metadata of columns, and there is no such file. "
        f"{has}. Hint: use a file with two columns, the name of a column and its group"
    )


def _read_pairs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the two cells of every line; CommandError for another number of cells."""
    delimiter = delimiter_of(path, None)
    with open_text(path) as file, text_errors(path):
        for number, line in numbered_lines(file, path):
            cells = split_cells(line, delimiter)
            cells = line.split() if len(cells) == 1 else cells
            if len(cells) != 2:
                raise CommandError(
                    f"--loco {path}: expected a name and a group in line {number}. Got: "
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

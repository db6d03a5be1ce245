"""Columns that only number the rows, such as the index that pandas writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import is_sparse
from streamsel.cli.diagnostics import DataWarning
from streamsel.stream.files import (
    ReadOptions,
    find_layout,
    numbered_lines,
    open_text,
    split_name,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamsel.cli.inputs import Source
    from streamsel.data.columns import Block

# Names used by pandas, R and databases.
_USUAL_NAMES = frozenset(
    ["", "Unnamed: 0", "Unnamed: 0.1", "index", "Index", "level_0", "rowid", "ROWID", "rownames"]
) | {f"__index_level_{i}__" for i in range(4)}
# Fewer rows may be consecutive by chance.
_MIN_ROWS = 8
_MAX_EXAMPLES = 3


def find_row_numbers(source: Source, excluded: Collection[str]) -> list[str]:
    """Return the columns of a file that have such a name and number the rows.

    In text with one variable per line only the first variable is checked.

    Parameters
    ----------
    source
        The file.
    excluded
        Names of columns that are something else.
    """
    names = source.stream.names
    if isinstance(names, range):
        return []
    if names is None:
        names = [_first_variable(path, delimiter) for path, delimiter in source.line_files]
    found = sorted(_USUAL_NAMES.intersection(names).difference(excluded))
    columns = source.take_existing(found) if found else {}
    return [str(name) for name, values in columns.items() if is_row_number(values)]


def _first_variable(path: str, delimiter: str) -> str:
    """Return the name of the first variable of text with one variable per line."""
    first = find_layout(path, ReadOptions(delimiter)).first_line
    with open_text(path) as file, text_errors(path):
        lines = (line for number, line in numbered_lines(file, path) if number >= first)
        return split_name(next(lines), delimiter)[0]


def is_row_number(values: Any) -> bool:
    """Return whether values are 0, 1, 2, ... or 1, 2, 3, ..., in this order."""
    if is_sparse(values) or values.ndim != 1 or values.dtype.kind not in "iuf" or len(values) < 2:
        return False
    return values[0] in (0, 1) and bool((values == values[0] + np.arange(len(values))).all())


def row_number_exclusion_warning(path: str, names: Sequence[str]) -> list[DataWarning]:
    """Return the warning for columns that are excluded because they number the rows."""
    if not names:
        return []
    listed = ", ".join(map(repr, names))
    verb = "numbers the rows and is" if len(names) == 1 else "number the rows and are"
    return [
        DataWarning(
            "index", f"{path}: {listed} {verb} excluded. Hint: --keep-index keeps it as a candidate"
        )
    ]


class RowCounterFinder:
    """Finds columns with other names that number the rows.

    Parameters
    ----------
    known
        Such columns of an earlier run.
    """

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.names = list(known)

    def check_block(self, block: Block) -> None:
        """Check the columns of a block; the first value rules out most."""
        values = block.values
        if is_sparse(values) or values.dtype.kind not in "iuf" or len(values) < _MIN_ROWS:
            return
        first = values[0]
        for j in np.flatnonzero((first == 0) | (first == 1)).tolist():
            if values[1, j] != first[j] + 1 or len(self.names) > _MAX_EXAMPLES:
                continue
            if is_row_number(values[:, j]) and str(block.names[j]) not in self.names:
                self.names.append(str(block.names[j]))

    def warnings(self) -> list[DataWarning]:
        """Return the warning for the columns found."""
        if not self.names:
            return []
        listed = ", ".join(self.names[:_MAX_EXAMPLES]) + (
            ", ..." if self.names[_MAX_EXAMPLES:] else ""
        )
        verb = "counts" if len(self.names) == 1 else "count"
        text = f"{listed} {verb} up with the rows and may only number them"
        return [DataWarning("index", f"{text}. Hint: --drop excludes such columns")]

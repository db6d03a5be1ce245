"""Columns that are copied to the output: identifiers, the target, and others (`--keep`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli.errors import CommandError
from streamsel.cli.identifiers import header_identifiers
from streamsel.cli.inputs import as_integers
from streamsel.stream.files import suffix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.cli.inputs import Source
    from streamsel.cli.target import TargetFile


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


def prepend_columns(
    columns: dict[str, Any], names: Sequence[Any], further: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the names and the columns of the copied columns followed by the others."""
    pairs = [pair for pair in zip(names, further, strict=True) if str(pair[0]) not in columns]
    return (
        [*columns, *(name for name, _ in pairs)],
        [*columns.values(), *(values for _, values in pairs)],
    )

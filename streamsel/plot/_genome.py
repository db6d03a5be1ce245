"""Layout of columns along a genome: chromosomes in natural order, one after another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.base.column_metadata import locate_names, metadata_arrays
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

# Chromosomes after the numbered ones; all others follow these.
_NAMED = ("X", "Y", "XY", "M", "MT")
# Unknown chromosomes in PLINK's files and in tables, and their key, with the label "?".
_UNKNOWN, _UNKNOWN_KEY = frozenset({"", ".", "0", "nan", "nat", "none", "na", "<na>"}), (3, 0, "?")
_PREFIX = re.compile("^chr(?:omosome)?[ _]?", re.IGNORECASE)


class Genome(NamedTuple):
    """Columns along a genome.

    Parameters
    ----------
    x
        (p,) position of each column; chromosomes follow each other. NaN for columns whose position
        is unknown, if others are known.
    chromosomes
        (p,) index of the chromosome of each column; 0 if its position is unknown.
    labels
        Names of the chromosomes, in natural order.
    ends
        (c,) end of each chromosome, on the scale of `x`.
    """

    x: Floats
    chromosomes: NDArray[np.intp]
    labels: list[str]
    ends: Floats

    @property
    def centres(self) -> Floats:
        """(c,) middle of each chromosome."""
        starts: Floats = np.append(0.0, self.ends[:-1])
        return (starts + self.ends) / 2.0


def lay_out(metadata: Any, names: Sequence[Hashable]) -> Genome:
    """Return the layout of columns with these names.

    Parameters
    ----------
    metadata
        Positions, as in `plot.manhattan`.
    names
        Names of the columns, in order of arrival.

    Raises
    ------
    TypeError
        For metadata of another type, and for names that are not hashable.
    ValueError
        For metadata without chromosomes, with entries that are not one-dimensional or of unequal
        lengths, with positions that are not numbers, or with none of the names.
    """
    known, chromosome, position = _columns_of(getattr(metadata, "column_metadata", metadata))
    rows = locate_names(known, names)
    keys = [_UNKNOWN_KEY if row < 0 else _sort_key(chromosome[row]) for row in rows.tolist()]
    placed = np.ones(rows.size, dtype=np.bool_)
    if position is not None:
        placed = (rows < 0) | (position[rows] > 0.0)
        if not placed[rows >= 0].any():  # no position is known
            position, placed = None, np.ones(rows.size, dtype=np.bool_)
    order = sorted({key for key, is_placed in zip(keys, placed, strict=True) if is_placed})
    index = {key: i for i, key in enumerate(order)}
    which = np.fromiter((index.get(key, 0) for key in keys), dtype=np.intp, count=len(keys))
    if position is None:  # columns are evenly spaced
        within = np.empty(which.size)
        for i in range(len(order)):
            inside = np.flatnonzero(which == i)
            within[inside] = np.arange(1.0, inside.size + 1.0)
    else:
        within = np.where(rows < 0, 0.0, position[rows])
    sizes = np.zeros(len(order))
    np.maximum.at(sizes, which, within)
    ends = np.cumsum(np.maximum(sizes, 1.0))
    x = np.where(placed, within + np.append(0.0, ends[:-1])[which], np.nan)
    return Genome(x, which, [key[-1] for key in order], ends)


def _columns_of(metadata: Any) -> tuple[NDArray[Any] | range, list[Any], Floats | None]:
    """Return names, chromosomes and positions."""
    table = metadata_arrays(metadata, "a ColumnStream, a mapping or a data frame")
    if "chromosome" not in table:
        raise ValueError(
            "Expected metadata with the chromosome of each column. Got: "
            f"{', '.join(map(repr, table)) or 'no metadata'}.\n"
            "Hint: iter_bed and iter_vcf have it; for other sources pass arrays, "
            "{'name': ..., 'chromosome': ..., 'position': ...}, or plot without metadata."
        )
    chromosome = table["chromosome"].tolist()
    position = None
    if "position" in table:
        position = np.nan_to_num(_numbers(table["position"]), posinf=0.0)
        position = np.maximum(position, 0.0)
    return table.get("name", range(len(chromosome))), chromosome, position


def _numbers(positions: NDArray[Any]) -> Floats:
    """Return positions as numbers, NaN for missing ones."""
    if positions.dtype.kind in "iuf":
        return positions.astype(np.float64)
    found = np.empty(positions.size)
    for i, value in enumerate(positions.tolist()):
        try:
            found[i] = np.nan if str(value).lower() in _UNKNOWN else float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"Expected the position of each column to be a number. Got: {value!r}."
            ) from None
    return found


def _sort_key(chromosome: Any) -> tuple[int, int, str]:
    """Return a key that sorts chromosomes as 1, 2, ..., 10, X, Y, MT, others; last is the label."""
    if isinstance(chromosome, float | np.floating) and chromosome.is_integer():
        chromosome = int(chromosome)
    if isinstance(chromosome, bytes):
        chromosome = chromosome.decode(errors="replace")
    label = _PREFIX.sub("", str(chromosome).strip())
    if label.lower() in _UNKNOWN:
        return _UNKNOWN_KEY
    if label.isdecimal():
        return 0, int(label), str(int(label))
    if label.upper() in _NAMED:
        return 1, _NAMED.index(label.upper()), label.upper()
    return 2, 0, label

"""Layout of columns along a genome: chromosomes in natural order, one after another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.params import type_name
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

# Chromosomes after the numbered ones; all others follow these.
_NAMED = ("X", "Y", "XY", "M", "MT")
# Unknown chromosomes in PLINK's files and in tables, and their key, with the label "?".
_UNKNOWN, _UNKNOWN_KEY = frozenset({"", ".", "0", "nan", "none", "na"}), (3, 0, "?")
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
        For metadata of another type.
    ValueError
        For metadata without chromosomes, of unequal lengths, or with none of the names.
    """
    known, chromosome, position = _columns_of(getattr(metadata, "column_metadata", metadata))
    index_of = {name: i for i, name in enumerate(known)}
    rows = np.array([index_of.get(name, -1) for name in names], dtype=np.intp)
    if rows.size and rows.max() < 0:
        raise ValueError(
            f"Expected metadata of the columns of the model, such as {names[0]!r}. Got: none of "
            f"them in {len(known):,} names.\nHint: pass the source that was learnt, or the names "
            "of its columns as 'name'."
        )
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


def _columns_of(table: Any) -> tuple[list[Hashable], list[Any], Floats | None]:
    """Return names, chromosomes and positions."""
    if not (hasattr(table, "keys") and hasattr(table, "__getitem__")):
        raise TypeError(
            "Expected metadata to be a ColumnStream, a mapping or a data frame. Got: "
            f"{type_name(table)}."
        )
    found = list(table.keys())
    if "chromosome" not in found:
        raise ValueError(
            "Expected metadata with the chromosome of each column. Got: "
            f"{', '.join(map(repr, found)) or 'no metadata'}.\n"
            "Hint: iter_bed and iter_vcf have it; for other sources pass arrays, "
            "{'name': ..., 'chromosome': ..., 'position': ...}, or plot without metadata."
        )
    chromosome = np.asarray(table["chromosome"], dtype=object).tolist()
    names = list(table["name"]) if "name" in found else list(range(len(chromosome)))
    position = None
    if "position" in found:
        position = np.nan_to_num(np.asarray(table["position"], dtype=np.float64), posinf=0.0)
        position = np.maximum(position, 0.0)
    lengths = [len(names), len(chromosome), *(() if position is None else (position.size,))]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Expected names, chromosomes and positions of equal lengths. Got: "
            f"{', '.join(f'{length:,}' for length in lengths)}."
        )
    return names, chromosome, position


def _sort_key(chromosome: Any) -> tuple[int, int, str]:
    """Return a key that sorts chromosomes as 1, 2, ..., 10, X, Y, MT, others; last is the label."""
    if isinstance(chromosome, float) and chromosome.is_integer():
        chromosome = int(chromosome)
    label = _PREFIX.sub("", str(chromosome).strip())
    if label.lower() in _UNKNOWN:
        return _UNKNOWN_KEY
    if label.isdecimal():
        return 0, int(label), str(int(label))
    if label.upper() in _NAMED:
        return 1, _NAMED.index(label.upper()), label.upper()
    return 2, 0, label

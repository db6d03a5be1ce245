"""Locations of columns along a stream: by index, or in base pairs along the chromosomes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class VariantLocations:
    """Coordinates of variants whose differences are distances in base pairs.

    Variants of different chromosomes are out of reach of one another.

    Parameters
    ----------
    metadata
        The column metadata of the source: names first, "chromosome" and "position".
    reach
        Maximum distance.
    """

    def __init__(self, metadata: Mapping[str, Any], reach: float) -> None:
        if not {"chromosome", "position"} <= metadata.keys():
            found = ", ".join(map(repr, metadata)) or "no column metadata"
            raise ValueError(
                "Expected a stream whose column_metadata has 'chromosome' and 'position', for a "
                f"window in base pairs. Got: {found}.\n"
                "Hint: a window=100 counts columns; iter_bed and iter_vcf have positions."
            )
        self._names = next(iter(metadata.values()))
        self._coordinates = _coordinates(
            np.asarray(metadata["chromosome"]), np.asarray(metadata["position"]), reach
        )
        self._next = 0

    def of(self, names: Sequence[Hashable]) -> Floats:
        """Return the coordinates of the next columns; the metadata may have others between."""
        indices = np.empty(len(names), dtype=np.intp)
        known, i = self._names, self._next
        for j, name in enumerate(names):
            while i < len(known) and known[i] != name:
                i += 1
            if i == len(known):
                raise ValueError(
                    "Expected a position of every column, in the order of the stream. Got: none "
                    f"of {name!r}.\nHint: a window=100 counts columns, and needs no positions."
                )
            indices[j] = i
            i += 1
        self._next = i
        found: Floats = self._coordinates[indices]
        return found


def _coordinates(chromosome: NDArray[Any], position: NDArray[Any], reach: float) -> Floats:
    """Return positions, each chromosome after the last and out of its reach."""
    starts = np.flatnonzero(np.append(True, chromosome[1:] != chromosome[:-1]))[: chromosome.size]
    coordinates: Floats = position.astype(np.float64)
    is_start = np.zeros(chromosome.size, dtype=np.bool_)
    is_start[starts] = True
    falls = ~(np.diff(coordinates, prepend=-np.inf) >= 0.0) & ~is_start
    labels = chromosome[starts].tolist()
    repeated = [label for i, label in enumerate(labels) if label in labels[:i]]
    if falls.any() or repeated:
        j = int(np.argmax(falls))
        got = (
            f"position {position[j]} after {position[j - 1]} on chromosome {chromosome[j]}"
            if falls.any()
            else f"chromosome {repeated[0]} again after another"
        )
        raise ValueError(
            "Expected variants sorted by chromosome and position, for a window in base pairs. Got: "
            f"{got}.\nHint: sort the file, as `plink2 --make-pgen --sort-vars` does."
        )
    lengths = np.append(coordinates[starts[1:] - 1], 0.0)[: starts.size] - coordinates[starts]
    offsets = np.cumsum(np.append(0.0, lengths[:-1] + 2.0 * reach + 1.0))
    runs = np.cumsum(is_start) - 1
    coordinates += (offsets - coordinates[starts])[runs]
    return coordinates

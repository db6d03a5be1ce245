"""Loadings of all columns written to a CSV or Parquet file."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamsel.extraction._second_reading import Sink
from streamsel.files import whole_file
from streamsel.held.part import Floats
from streamsel.stream._pyarrow import pyarrow


@contextmanager
def loadings_file(to: str | Path, components: Sequence[str]) -> Iterator[Sink]:
    """Open a file for loadings and yield a function that writes them; an error removes the file.

    Parameters
    ----------
    to
        Path of the file, with suffix .csv or .parquet.
    components
        Names of the columns of weights.

    Raises
    ------
    ValueError
        For any other suffix.
    """
    path = Path(to)
    kinds = {".csv": _to_csv, ".parquet": _to_parquet}
    if path.suffix not in kinds:
        raise ValueError(
            f"Expected a path with suffix {' or '.join(kinds)}. Got: {path.name!r}.\n"
            "Hint: learn_loadings(X, to='loadings.csv')."
        )
    with whole_file(path) as part, kinds[path.suffix](part, ["name", "mean", *components]) as sink:
        yield sink


@contextmanager
def _to_csv(path: Path, header: list[str]) -> Iterator[Sink]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)

        def write(names: Sequence[Hashable], means: Floats, weights: Floats) -> None:
            rows = zip(names, means.tolist(), weights.tolist(), strict=True)
            writer.writerows([name, mean, *row] for name, mean, row in rows)

        yield write


@contextmanager
def _to_parquet(path: Path, header: list[str]) -> Iterator[Sink]:
    pa = pyarrow()
    kinds = [pa.string()] + [pa.float64()] * (len(header) - 1)
    schema = pa.schema(list(zip(header, kinds, strict=True)))
    with pa.parquet.ParquetWriter(path, schema) as writer:

        def write(names: Sequence[Hashable], means: Floats, weights: Floats) -> None:
            columns: list[Any] = [[str(name) for name in names], means, *weights.T]
            arrays = [pa.array(column) for column in columns]
            writer.write_batch(pa.record_batch(arrays, names=header))

        yield write

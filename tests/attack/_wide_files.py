"""One wide table in every format that the command reads, for runs that are killed."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv as pa_csv
from pyarrow import feather, parquet

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("Parquet", "IPC", "npy", "CSV samples", "TSV variables")


@dataclass(frozen=True)
class WideFile:
    """A file of columns, and the arguments with which the command reads it."""

    path: Path
    arguments: tuple[str, ...]


def wide_files(folder: Path, n_rows: int, n_columns: int) -> dict[str, WideFile]:
    """Write the table in every format; some of its columns cannot be used.

    Parameters
    ----------
    folder
    Folder of the files.
    n_rows, n_columns
    Size of the table.
    """
    rng = np.random.default_rng(14)
    X = rng.normal(size=(n_rows, n_columns)).round(3)
    y = (X[:, [n_columns // 7, n_columns // 2, n_columns - 9]] @ [2.0, -1.5, 1.0]).round(3)
    X[:, 40::1000] = 1.0
    X[3, 60::500] = np.nan
    names = [f"v{j}" for j in range(n_columns)]
    np.save(folder / "y.npy", y)
    np.save(folder / "wide.npy", np.asfortranarray(X))
    columns = pa.table([y, *X.T, ["a"] * n_rows], names=["y", *names, "text"])
    parquet.write_table(columns, folder / "wide.parquet", use_dictionary=False)
    feather.write_feather(columns, folder / "wide.arrow", compression="uncompressed")
    pa_csv.write_csv(columns, folder / "samples.csv", pa_csv.WriteOptions(quoting_style="none"))
    _write_variables(folder / "variables.tsv.gz", ["y", *names], np.vstack([y, X.T]))
    target = ("--target", "y")
    return {
        "Parquet": WideFile(folder / "wide.parquet", target),
        "IPC": WideFile(folder / "wide.arrow", target),
        "npy": WideFile(folder / "wide.npy", ("--target-file", str(folder / "y.npy"))),
        "CSV samples": WideFile(folder / "samples.csv", (*target, "--orientation", "samples")),
        "TSV variables": WideFile(
            folder / "variables.tsv.gz", (*target, "--orientation", "variables")
        ),
    }


def _write_variables(path: Path, names: list[str], values: np.ndarray) -> None:
    lines = pa.table([names, *values.T], names=["name", *map(str, range(values.shape[1]))])
    options = pa_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    # The lowest compression level: writing still takes longer than reading.
    with gzip.open(path, "wb", compresslevel=1) as file:
        pa_csv.write_csv(lines, file, options)
        file.write(b"text" + b"\ta" * values.shape[1] + b"\n")

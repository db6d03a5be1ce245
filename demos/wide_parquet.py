"""A Parquet file with more columns than rows: on which columns does the target depend?

The script writes a table of 200 rows and 20,000 columns; the target depends on five of them. Then
it reads the file as a stream of columns, without the whole table in memory. The same code reads a
file of a million columns.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamsel import SOSPCA, ProjSe
from streamsel.stream import iter_parquet

N_ROWS, N_COLUMNS = 200, 20_000
DRIVERS = [137, 4_242, 9_001, 12_345, 19_999]


def write(path: Path) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N_ROWS, N_COLUMNS), dtype=np.float32)
    outcome = X[:, DRIVERS] @ [2.0, -1.8, 1.6, 1.5, -1.4] + 0.5 * rng.standard_normal(N_ROWS)
    columns = {f"v{i}": X[:, i] for i in range(N_COLUMNS)}
    pq.write_table(pa.table(columns | {"outcome": outcome}), path)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.parquet"
        write(path)
        stream = iter_parquet(path)
        y = stream.take(["outcome"])["outcome"]
        variables = stream.without(["outcome"])
        print(f"{path.name}: {variables.n_columns:,} variables, {path.stat().st_size / 1e6:.0f} MB")

        selector = ProjSe(k=8)
        selector.learn_target(y)
        selector.learn_columns(variables)
        noise_floor = selector.noise_floor()
        print(f"\nselected, with relevance (noise floor {noise_floor:.2f}; * drives the target):")
        for name, relevance in selector.relevance.items():
            star = "*" if int(name[1:]) in DRIVERS else " "
            remark = "" if relevance > noise_floor else "  below the noise floor"
            print(f"  {star} {name:>7}  {relevance:.3f}{remark}")

        extractor = SOSPCA(n_components=3)
        extractor.learn_target(y)
        extractor.learn_columns(variables)
        print("\ncomponents, with their relevance:")
        for component, relevance in extractor.relevance.items():
            n_loadings = sum(component in weights for weights in extractor.loadings.values())
            print(f"    {component}  {relevance:.3f}  of {n_loadings} variables")


if __name__ == "__main__":
    main()

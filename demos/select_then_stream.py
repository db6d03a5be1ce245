"""From the warehouse to the stream: learn on columns, go on learning on rows.

In the warehouse lies a Parquet file of 3,000 variables and 600 rows; four of them drive the target.
They are selected there, from a stream of columns, and the model is saved. Loaded into a River
pipeline it serves from the first row on. After 300 rows two of the drivers change, and the model,
which at every row forgets a hundredth, follows. Beside it: the same pipeline with the selection
frozen, and one that has never seen the warehouse.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from river import compose, linear_model, optim

from streamsel import ProjSe, load, save
from streamsel.stream import iter_parquet

N_COLUMNS, N_STORED, N_ROWS, CHANGE, EVERY = 3_000, 600, 900, 300, 100
DRIVERS = [137, 942, 2_001, 2_718]
DRIVERS_LATER = [137, 942, 404, 1_345]
NAMES = [f"v{i}" for i in range(N_COLUMNS)]


def observe(rng: np.random.Generator, drivers: list[int], n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, N_COLUMNS))
    return X, X[:, drivers] @ [2.0, -1.8, 1.6, -1.4] + 0.5 * rng.standard_normal(n)


def fill_the_warehouse(table: Path, rng: np.random.Generator) -> None:
    X, y = observe(rng, DRIVERS, N_STORED)
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    pq.write_table(pa.table(columns | {"outcome": y}), table)


def learn_in_the_warehouse(table: Path, saved: Path) -> linear_model.LinearRegression:
    """Select, save the model, and return a regression on what it selects."""
    stream = iter_parquet(table)
    y = stream.take(["outcome"])["outcome"]
    model = ProjSe(k=4, fading_factor=0.01, refresh_factor=1.25, hysteresis=1.0)
    model.learn_target(y)
    model.learn_columns(stream.without(["outcome"]))
    save(model, saved)

    last = regression()
    values = stream.take(model.selected)
    for i, outcome in enumerate(y.tolist()):
        last.learn_one({name: values[name][i] for name in model.selected}, outcome)
    print(
        f"in the warehouse: {model.n_columns:,} columns of {model.n_rows} rows; "
        f"selected {' '.join(model.selected)}; {saved.stat().st_size / 1e3:.0f} kB saved\n"
    )
    return last


def regression() -> linear_model.LinearRegression:
    return linear_model.LinearRegression(optim.SGD(0.03))


def main() -> None:
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        table, saved = Path(folder) / "warehouse.parquet", Path(folder) / "selection.streamsel"
        fill_the_warehouse(table, rng)
        last = learn_in_the_warehouse(table, saved)
        model = load(saved)

    pipelines = {
        "handed over": model | last,
        "frozen": compose.Select(*model.selected) | last.clone(include_attributes=True),
        # Without warm-up: 50 rows of 3,000 features would make the regression diverge, for good.
        "from nothing": model.clone({"warm_up": 0}) | regression(),
    }
    print("mean absolute error of the last 100 rows; learnt after they were predicted\n")
    print("   row   " + "   ".join(f"{name:>12}" for name in pipelines) + "   selected")
    errors = dict.fromkeys(pipelines, 0.0)
    row = 0
    for drivers, n in ((DRIVERS, CHANGE), (DRIVERS_LATER, N_ROWS - CHANGE)):
        X, y = observe(rng, drivers, n)
        for values, outcome in zip(X, y.tolist(), strict=True):
            x = dict(zip(NAMES, values.tolist(), strict=True))
            row += 1
            for name, pipeline in pipelines.items():
                errors[name] += abs(pipeline.predict_one(x) - outcome)
                pipeline.learn_one(x, outcome)
            if row % EVERY == 0:
                cells = "   ".join(f"{error / EVERY:>12.2f}" for error in errors.values())
                print(f"  {row:>4}   {cells}   {' '.join(model.selected)}")
                errors = dict.fromkeys(pipelines, 0.0)
        if row == CHANGE:
            print("         two of the four drivers change")


if __name__ == "__main__":
    main()

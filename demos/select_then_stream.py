"""From the warehouse to the stream: a selector learns stored columns, then new rows.

The warehouse has a Parquet file of 3,000 variables and 600 rows; the target depends on four of the
variables. ProjSe selects them from a stream of columns, and the model is saved. It is then loaded
into a River pipeline, which predicts well from the first row on. After 300 rows two of the four
variables are replaced by others, and the selection follows, with `fading_factor=0.01`.

The pipeline is compared with the same pipeline with a frozen selection, and with a cold start
without the warehouse.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from river import compose, linear_model, optim

from streamsel import ProjSe, load, save
from streamsel.stream import iter_parquet

N_COLUMNS, N_STORED, N_ROWS, CHANGE, REPORT_EVERY = 3_000, 600, 900, 300, 100
DRIVERS = [137, 942, 2_001, 2_718]
DRIVERS_LATER = [137, 942, 404, 1_345]
NAMES = [f"v{i}" for i in range(N_COLUMNS)]


def observe(rng: np.random.Generator, drivers: list[int], n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, N_COLUMNS))
    return X, X[:, drivers] @ [2.0, -1.8, 1.6, -1.4] + 0.5 * rng.standard_normal(n)


def write_table(table: Path, rng: np.random.Generator) -> None:
    X, y = observe(rng, DRIVERS, N_STORED)
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    pq.write_table(pa.table(columns | {"outcome": y}), table)


def learn_columns(table: Path, saved: Path) -> linear_model.LinearRegression:
    """Select, save the model, and return a regression fitted to the selected variables."""
    stream = iter_parquet(table)
    y = stream.take(["outcome"])["outcome"]
    model = ProjSe(k=4, fading_factor=0.01, refresh_factor=1.25, hysteresis=1.0)
    model.learn_target(y)
    model.learn_columns(stream.without(["outcome"]))
    save(model, saved)

    fitted = regression()
    values = stream.take(model.selected)
    for i, outcome in enumerate(y.tolist()):
        fitted.learn_one({name: values[name][i] for name in model.selected}, outcome)
    print(
        f"warehouse: {model.n_columns:,} columns of {model.n_rows} rows; "
        f"selected: {' '.join(model.selected)}; {saved.stat().st_size / 1e3:.0f} kB saved\n"
    )
    return fitted


def regression() -> linear_model.LinearRegression:
    return linear_model.LinearRegression(optim.SGD(0.03))


def main() -> None:
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        table, saved = Path(folder) / "warehouse.parquet", Path(folder) / "selection.streamsel"
        write_table(table, rng)
        fitted = learn_columns(table, saved)
        model = load(saved)

    pipelines = {
        "warm start": model | fitted,
        "frozen": compose.Select(*model.selected) | fitted.clone(include_attributes=True),
        # During the default warm-up of 50 rows the selector would return all 3,000 features, on
        # which the regression diverges.
        "cold start": model.clone({"warm_up": 0}) | regression(),
    }
    print(f"mean absolute error of the last {REPORT_EVERY} rows (predicted first, then learnt)\n")
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
            if row % REPORT_EVERY == 0:
                cells = "   ".join(f"{error / REPORT_EVERY:>12.2f}" for error in errors.values())
                print(f"  {row:>4}   {cells}   {' '.join(model.selected)}")
                errors = dict.fromkeys(pipelines, 0.0)
        if row == CHANGE:
            print("         from here on two of the four drivers differ")


if __name__ == "__main__":
    main()

"""From the warehouse to the stream: components of columns go on learning on rows.

In the warehouse lies a Parquet file: 64 pixels of 800 handwritten digits, a column each. They are
read column by column, ten components are made of them, and the model is saved. Loaded into a River
pipeline it serves from the first row on: 990 digits come one by one, are answered first and learnt
then. From row 397 on every pixel comes under the name of another. The model, which at every row
forgets a two-hundredth, follows. Beside it: its components frozen, a pipeline that has never seen
the warehouse, and one of all pixels, scaled. Behind each stand the five nearest of the last 200
rows, which have seen the warehouse too, where what stands before them has.
"""

import copy
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from river import base, compose, neighbors, preprocessing
from sklearn.datasets import load_digits

from streamsel import RidgeComponents, load, save
from streamsel.stream import iter_parquet

N_STORED, N_ROWS, CHANGE, EVERY = 800, 990, 396, 99
NAMES = [f"pixel {row},{column}" for row in range(8) for column in range(8)]
Row = tuple[dict[str, float], str]


def fill_the_warehouse(table: Path, rng: np.random.Generator) -> list[Row]:
    """Store the first digits; return the others as rows, of which the later are mixed up."""
    images, digits = load_digits(return_X_y=True)
    order, mixed = rng.permutation(len(digits)), rng.permutation(len(NAMES))
    images, labels = images[order], [str(digit) for digit in digits[order]]
    columns = dict(zip(NAMES, images[:N_STORED].T, strict=True))
    pq.write_table(pa.table(columns | {"digit": labels[:N_STORED]}), table)
    coming = images[N_STORED : N_STORED + N_ROWS]
    coming[CHANGE:] = coming[CHANGE:, mixed]
    rows = [dict(zip(NAMES, image, strict=True)) for image in coming.tolist()]
    return list(zip(rows, labels[N_STORED : N_STORED + N_ROWS], strict=True))


def learn_in_the_warehouse(table: Path, saved: Path) -> list[Row]:
    """Make components of the columns and save them; return the table's last rows."""
    stream = iter_parquet(table)
    digits = stream.take(["digit"])["digit"]
    model = RidgeComponents(n_components=10, fading_factor=0.005, refresh_factor=1.1)
    model.learn_target(digits)
    model.learn_columns(stream.without(["digit"]))
    save(model, saved)
    print(
        f"in the warehouse: {model.n_columns} columns of {model.n_rows} rows, "
        f"{model.n_above_noise} above noise; {saved.stat().st_size / 1e6:.1f} MB saved\n"
    )
    last = pq.read_table(table).slice(N_STORED - 200).to_pylist()
    return [({name: x[name] for name in NAMES}, x["digit"]) for x in last]


def nearest(transformer: base.Transformer, history: list[Row]) -> neighbors.KNNClassifier:
    """Return a classifier that has learnt the history behind a transformer."""
    last = neighbors.KNNClassifier(n_neighbors=5, engine=neighbors.LazySearch(200))
    for x, digit in history:
        last.learn_one(transformer.transform_one(x), digit)
    return last


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        table, saved = Path(folder) / "warehouse.parquet", Path(folder) / "digits.streamsel"
        rows = fill_the_warehouse(table, rng)
        history = learn_in_the_warehouse(table, saved)
        model = load(saved)

    frozen, scaler = copy.deepcopy(model), preprocessing.StandardScaler()
    for x, _ in history:
        scaler.learn_one(x)
    pipelines = {
        "handed over": model | nearest(model, history),
        "frozen": compose.FuncTransformer(frozen.transform_one) | nearest(frozen, history),
        "from nothing": model.clone() | nearest(model, []),
        "all pixels": scaler | nearest(scaler, history),
    }
    print(f"right of the last {EVERY} rows, in %\n")
    print("   row   " + "   ".join(f"{name:>12}" for name in pipelines))
    right, seconds = dict.fromkeys(pipelines, 0), dict.fromkeys(pipelines, 0.0)
    for row, (x, digit) in enumerate(rows, start=1):
        for name, pipeline in pipelines.items():
            start = time.perf_counter()
            right[name] += pipeline.predict_one(x) == digit
            pipeline.learn_one(x, digit)
            seconds[name] += time.perf_counter() - start
        if row % EVERY == 0:
            cells = "   ".join(f"{100 * count / EVERY:>12.0f}" for count in right.values())
            print(f"  {row:>4}   {cells}")
            right = dict.fromkeys(pipelines, 0)
        if row == CHANGE:
            print("         every pixel comes under the name of another")
    cells = "   ".join(f"{N_ROWS / taken:>12,.0f}" for taken in seconds.values())
    print(f"\nrows/s   {cells}")


if __name__ == "__main__":
    main()

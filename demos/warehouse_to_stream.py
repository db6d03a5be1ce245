"""From the warehouse to the stream: components learn stored columns, then new rows.

The warehouse has a Parquet file of 800 handwritten digits, with one column per pixel.
RidgeComponents computes ten components in one pass over the 64 columns, and the model is saved. It
is then loaded into a River pipeline, which predicts well from the first row on. 990 more digits
come one by one; each is predicted first and learnt then. From row 397 on the pixels are permuted:
each has the name of another. The components follow, with `fading_factor=0.005`.

The pipeline is compared with frozen components, with a cold start without the warehouse, and with
all pixels, scaled. The classifier of each is the five nearest neighbours among the last 200 rows.
It starts with the last rows of the warehouse, except in the cold start.
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

N_STORED, N_ROWS, CHANGE, REPORT_EVERY = 800, 990, 396, 99
NAMES = [f"pixel {row},{column}" for row in range(8) for column in range(8)]
Row = tuple[dict[str, float], str]


def write_table(table: Path, rng: np.random.Generator) -> list[Row]:
    """Store the first digits; return others as rows, with permuted pixels after `CHANGE`."""
    images, digits = load_digits(return_X_y=True)
    order, permuted = rng.permutation(len(digits)), rng.permutation(len(NAMES))
    images, labels = images[order], [str(digit) for digit in digits[order]]
    columns = dict(zip(NAMES, images[:N_STORED].T, strict=True))
    pq.write_table(pa.table(columns | {"digit": labels[:N_STORED]}), table)
    later = images[N_STORED : N_STORED + N_ROWS]
    later[CHANGE:] = later[CHANGE:, permuted]
    rows = [dict(zip(NAMES, image, strict=True)) for image in later.tolist()]
    return list(zip(rows, labels[N_STORED : N_STORED + N_ROWS], strict=True))


def learn_columns(table: Path, saved: Path) -> list[Row]:
    """Learn the columns and save the model; return the last rows of the table."""
    stream = iter_parquet(table)
    digits = stream.take(["digit"])["digit"]
    model = RidgeComponents(n_components=10, fading_factor=0.005, refresh_factor=1.1)
    model.learn_target(digits)
    model.learn_columns(stream.without(["digit"]))
    save(model, saved)
    print(
        f"warehouse: {model.n_columns} columns of {model.n_rows} rows, {model.n_above_noise} "
        f"columns above the noise floor; {saved.stat().st_size / 1e6:.1f} MB saved\n"
    )
    last = pq.read_table(table).slice(N_STORED - 200).to_pylist()
    return [({name: x[name] for name in NAMES}, x["digit"]) for x in last]


def knn(transformer: base.Transformer, history: list[Row]) -> neighbors.KNNClassifier:
    """Return a classifier that has learnt the transformed rows of the history."""
    classifier = neighbors.KNNClassifier(n_neighbors=5, engine=neighbors.LazySearch(200))
    for x, digit in history:
        classifier.learn_one(transformer.transform_one(x), digit)
    return classifier


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        table, saved = Path(folder) / "warehouse.parquet", Path(folder) / "digits.streamsel"
        rows = write_table(table, rng)
        history = learn_columns(table, saved)
        model = load(saved)

    frozen, scaler = copy.deepcopy(model), preprocessing.StandardScaler()
    for x, _ in history:
        scaler.learn_one(x)
    pipelines = {
        "warm start": model | knn(model, history),
        "frozen": compose.FuncTransformer(frozen.transform_one) | knn(frozen, history),
        "cold start": model.clone() | knn(model, []),
        "all pixels": scaler | knn(scaler, history),
    }
    print(f"accuracy of the last {REPORT_EVERY} rows, in %\n")
    print("   row   " + "   ".join(f"{name:>12}" for name in pipelines))
    n_correct, seconds = dict.fromkeys(pipelines, 0), dict.fromkeys(pipelines, 0.0)
    for row, (x, digit) in enumerate(rows, start=1):
        for name, pipeline in pipelines.items():
            start = time.perf_counter()
            n_correct[name] += pipeline.predict_one(x) == digit
            pipeline.learn_one(x, digit)
            seconds[name] += time.perf_counter() - start
        if row % REPORT_EVERY == 0:
            percent = (100 * count / REPORT_EVERY for count in n_correct.values())
            print(f"  {row:>4}   " + "   ".join(f"{value:>12.0f}" for value in percent))
            n_correct = dict.fromkeys(pipelines, 0)
        if row == CHANGE:
            print("         from here on the pixels are permuted")
    cells = "   ".join(f"{N_ROWS / taken:>12,.0f}" for taken in seconds.values())
    print(f"\nrows/s   {cells}")


if __name__ == "__main__":
    main()

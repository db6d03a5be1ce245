"""Select from a frame with text, dates, booleans and numbers; compare with encoders and selectors.

`python -m tests.bench.test_mixed_frames JOB N P` runs one job in a separate process, and prints
by how many bytes memory rose above libraries and data.
"""

import gc
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from streamsel import SelectKBest
from streamsel._utils.system import peak_bytes, resident_bytes
from tests.bench import page

K = 10
ROOT = Path(__file__).parents[2]


def mixed(n, p):
    """Return a pandas frame, a third of its columns text, and a target that depends on three."""
    import pandas as pd

    rng = np.random.default_rng(0)
    columns = {}
    for j in range(p):
        kind = j % 6
        if kind < 2:
            levels = np.array([f"level {i}" for i in range(rng.integers(3, 40))], dtype=object)
            columns[f"text{j}"] = levels[rng.integers(0, len(levels), n)]
        elif kind == 5 and j % 30 == 5:
            columns[f"day{j}"] = np.datetime64("2020-01-01") + rng.integers(0, 10**8, n).astype(
                "m8[s]"
            )
        elif kind == 4:
            columns[f"flag{j}"] = rng.random(n) < 0.5
        else:
            columns[f"number{j}"] = rng.normal(size=n)
    y = (columns["text0"] == "level 1") + (columns["text6"] == "level 0") + columns["number2"]
    return pd.DataFrame(columns), y + rng.normal(size=n)


def by_streamsel(df, y):
    model = SelectKBest(K)
    model.learn_target(y)
    model.learn_columns(df)
    return model.selected


def by_scikit_learn(df, y):
    """Select from indicators, numbers and booleans; dates, which have no encoder, are dropped."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.feature_selection import SelectKBest, f_regression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = make_column_transformer(
        (OneHotEncoder(), make_column_selector("^text")),
        ("passthrough", make_column_selector("^number|^flag")),
        verbose_feature_names_out=False,
    )
    return list(
        make_pipeline(encoder, SelectKBest(f_regression, k=K)).fit(df, y).get_feature_names_out()
    )


def by_skrub(df, y):
    from sklearn.feature_selection import SelectKBest, f_regression
    from sklearn.pipeline import make_pipeline
    from skrub import TableVectorizer

    selector = make_pipeline(TableVectorizer(), SelectKBest(f_regression, k=K)).fit(df, y)
    return list(selector.get_feature_names_out())


JOBS = {"streamsel": by_streamsel, "scikit-learn": by_scikit_learn, "skrub": by_skrub}


@pytest.mark.parametrize("peer", ["scikit-learn", "skrub"])
def test_selection_from_a_mixed_frame(against, table, size, peer):
    pytest.importorskip(peer.replace("scikit-learn", "sklearn"))
    n, p = size(100_000), max(30, size(300))
    df, y = mixed(n, p)
    ours, theirs = by_streamsel(df, y), JOBS[peer](df, y)
    # streamsel selects a text column as a whole, the peer one of its indicators.
    assert {*ours[:3]} <= {name.partition("_")[0] for name in theirs}
    against(
        f"SelectKBest of a mixed pandas frame, n={n:,} p={p} / {peer}'s encoders and SelectKBest",
        lambda: by_streamsel(df, y),
        lambda: JOBS[peer](df, y),
        rounds=3,
    )
    rises = [memory(job, n, p) for job in ("streamsel", peer)]
    if None not in rises:
        data = int(df.memory_usage(index=False, deep=False).sum())
        cells = [page.quantity(rise, page.BYTES) for rise in (*rises, data)]
        table("mixed frame: peak memory", ("peer", "ours", "peer's", "frame"), (peer, *cells))


def memory(job, n, p):
    """Return by how many bytes memory rises in a process for one job; None if it is unknown."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.test_mixed_frames", job]
    done = subprocess.run(
        [*command, str(n), str(p)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def rise(job, n, p):
    JOBS[job](*mixed(500, 30))  # Loads and compiles.
    df, y = mixed(n, p)
    gc.collect()
    reset = Path("/proc/self/clear_refs")
    try:
        reset.write_text("5")
    except OSError:
        return None
    before = resident_bytes()
    JOBS[job](df, y)
    return peak_bytes() - before


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(rise(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

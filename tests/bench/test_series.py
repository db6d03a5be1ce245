"""Measure features of series: the speed of their extraction, and the share of learning."""

import numpy as np
import pytest

from streamsel import ForwardSelection, SelectKBest
from streamsel.stream import iter_series_features


def walks(n, length):
    return np.cumsum(np.random.default_rng(0).normal(size=(n, length)), axis=1)


def extract(X):
    for _ in iter_series_features(X).blocks():
        pass


def test_extraction_against_tsfresh(against, repeats):
    """Extract all features of either; tsfresh starts no other processes."""
    pytest.importorskip("tsfresh")
    import pandas as pd
    from tsfresh.feature_extraction import EfficientFCParameters, extract_features

    n, length = repeats(40), 500
    X = walks(n, length)
    rows = np.arange(n * length)
    frame = pd.DataFrame({"id": rows // length, "time": rows % length, "value": X.ravel()})
    parameters = EfficientFCParameters()

    def ours():
        for _ in iter_series_features(frame, id="id", time="time").blocks():
            pass

    def theirs():
        extract_features(
            frame,
            column_id="id",
            column_sort="time",
            default_fc_parameters=parameters,
            disable_progressbar=True,
            n_jobs=0,
        )

    against(
        f"722 features of {n} series × {length} / tsfresh, 777 features, one process",
        ours,
        theirs,
        rounds=3,
    )


@pytest.mark.parametrize("length", [100, 1000])
def test_columns_per_second(benchmark, report, size, repeats, length):
    X = walks(size(200_000) // length, length)
    extract(X)
    benchmark.pedantic(lambda: extract(X), rounds=repeats(7))
    seconds = benchmark.stats.stats.median
    what = f"features of {len(X):,} series × {length:,}"
    per_value = f"{1e9 * seconds / X.size / 722:.2f} ns per observation and feature"
    report(f"{what}, columns per second", f"{722 / seconds:,.0f}", per_value)


@pytest.mark.parametrize("make", [lambda: SelectKBest(fdr=0.05), lambda: ForwardSelection(25)])
def test_extraction_and_selection(against, size, make):
    X, model = walks(size(1000), 200), make()
    y = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(str)
    what = f"features of {len(X):,} series × 200, {type(model).__name__} / features alone"

    def ours():
        model = make()
        model.learn_target(y)
        model.learn_columns(iter_series_features(X))
        assert model.n_columns == 722

    against(what, ours, lambda: extract(X))

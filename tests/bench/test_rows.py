"""Compare learners on rows with River's, and with the cost of the dict itself."""

import itertools
import statistics
import struct
import time

import numpy as np
import pandas as pd
import pytest
from river import feature_selection, preprocessing, stats

from streamsel import (
    MRMR,
    PCA,
    PLS,
    SOSPCA,
    ForwardSelection,
    ProjSe,
    RidgeComponents,
    SelectKBest,
)
from streamsel.base.row_input import RowReader
from streamsel.extraction._sospca_rows import SOSPCARowState
from streamsel.state.moments.moments import Moments
from streamsel.targets.rows import RowTarget
from tests.bench.jobs import QUICK
from tests.bench.page import bold

# Number of different rows, learnt repeatedly. They fit into the cache, where a row just read from
# its source is too.
DISTINCT = 20
# Rows per batch of streamsel's learners; in every batch SOSPCA refreshes once.
BATCH = 100
# Duration of the learning of rows of words.
SECONDS = 0.2 if QUICK else 5.0


def stream(p):
    """Return `DISTINCT` rows of p features and their targets; all rows share their keys."""
    rng = np.random.default_rng(0)
    X, names = rng.standard_normal((DISTINCT, p)), [f"x{j}" for j in range(p)]
    y = X[:, :5].sum(axis=1) + rng.standard_normal(DISTINCT)
    return [dict(zip(names, row, strict=True)) for row in X.tolist()], y.tolist()


def frame_of(rows):
    """Return a frame of `BATCH` other rows with the names of these, and their targets."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((BATCH, len(rows[0])))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(BATCH)
    return pd.DataFrame(X, columns=list(rows[0])), pd.Series(y)


def settled(model, rows):
    """Return the model after it has learnt so many rows that the cost of a row is stable."""
    for _ in range(3):
        model.learn_many(*frame_of(rows))
    return model


def learning(model, rows, y):
    """Return a function that learns the rows, one by one."""

    def run():
        for x, value in zip(rows, y, strict=True):
            model.learn_one(x, value)

    return run


def transform_then_learn(model):
    """Return a function that treats a row as a pipeline with a supervised transformer does."""

    def run(x, y):
        model.transform_one(x)
        model.learn_one(x, y)

    return run


def in_turn(benchmark, contest, rounds):
    """Time contestants in turn, in rounds. `contest` is name -> (function, its number of rows).

    Returns name -> median seconds per row.
    """
    seconds = {name: [] for name in contest}
    for run, _ in contest.values():
        run()

    def one_round():
        for name, (run, n) in contest.items():
            started = time.perf_counter()
            run()
            seconds[name].append((time.perf_counter() - started) / n)

    benchmark.pedantic(one_round, rounds=rounds)
    found = {name: statistics.median(times) for name, times in seconds.items()}
    benchmark.extra_info |= {str(name): median for name, median in found.items()}
    return found


def select_k_best():
    return feature_selection.SelectKBest(stats.PearsonCorr(), k=10)


def test_learn_one(against):
    rows, y = stream(1000)
    against(
        f"ProjSe learn_one, 1,000 features, {DISTINCT} rows / River SelectKBest(PearsonCorr)",
        learning(settled(ProjSe(10), rows), rows, y),
        learning(select_k_best(), rows, y),
        threshold=0.02,
        rounds=11,
    )


def test_learn_one_floor(against):
    rows, y = stream(1000)
    names = list(rows[0])
    # The standard library has no faster way to copy the values of a dict to an array.
    pack_into = struct.Struct(f"{len(names)}d").pack_into

    def limit():
        for x in rows:
            if list(x) == names:
                values = np.empty(len(names))
                pack_into(values, 0, *x.values())

    against(
        f"ProjSe learn_one, 1,000 features, {DISTINCT} rows / names compared, values read",
        learning(settled(ProjSe(10), rows), rows, y),
        limit,
        rounds=101,
    )


@pytest.mark.parametrize("cls", [ProjSe, SelectKBest])
def test_transform_then_learn(against, cls):
    rows, y = stream(10)

    def cycle(model):
        step = transform_then_learn(model)

        def run():
            for x, value in zip(rows, y, strict=True):
                step(x, value)

        return run

    best = select_k_best()
    learning(best, rows, y)()
    against(
        f"{cls.__name__} transform, then learn, 10 features, {DISTINCT} rows / River SelectKBest",
        cycle(settled(cls(10), rows)),
        cycle(best),
        threshold=1,
        rounds=101,
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("missing", [False, True])
def test_learn_many(against, order, missing):
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((5000, 100)), order=order)
    y = X[:, 0] + rng.standard_normal(5000)
    model, full = ProjSe(10), X.copy(order="K")
    if missing:
        X[rng.random(X.shape) < 0.01] = np.nan
    against(
        f"ProjSe learn_many, 5,000 × 100, {order}{', 1 % missing' * missing} / X.T @ y",
        lambda: model.learn_many(X, y),
        lambda: full.T @ y,
        threshold=None if missing else 4.0,
        rounds=51,
        data=X.nbytes,
    )


WORDS, WORDS_PER_ROW, N_SELECTED = 8_000, 20, 1_000


def texts(n):
    """Return n rows of words whose frequencies follow Zipf's law, and their targets."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, WORDS + 1)
    frequency /= frequency.sum()
    effects = rng.standard_normal(WORDS)
    rows, y = [], []
    for indices in rng.choice(WORDS, (n, WORDS_PER_ROW), p=frequency):
        rows.append({f"word {j}": 1.0 for j in indices.tolist()})
        y.append(float(effects[indices].sum()))
    return rows, y


@pytest.mark.parametrize("cls", [ProjSe, SelectKBest])
def test_vocabulary(benchmark, report, size, cls):
    """Transform and learn rows of words, after the model has learnt every word."""
    rows, y = texts(size(5_000) + WORDS)
    model = cls(N_SELECTED)
    # Learn every word once, so that no word is new while the clock runs.
    model.learn_one({f"word {j}": 1.0 for j in range(WORDS)}, 0.0)
    learning(model, rows[:WORDS], y[:WORDS])()
    step = transform_then_learn(model)
    pairs = itertools.cycle(zip(rows[WORDS:], y[WORDS:], strict=True))
    learnt = 0

    def run():
        nonlocal learnt
        stop = time.perf_counter() + SECONDS
        while time.perf_counter() < stop:
            step(*next(pairs))
            learnt += 1

    benchmark.pedantic(run, rounds=1)
    rate = learnt / benchmark.stats.stats.median
    report(
        f"transform, then learn, rows per second: {cls.__name__}(1,000), 20 of 8,000 words per row",
        f"{rate:,.0f}",
        threshold="≥ 5,000",
        met=rate >= 5_000,
    )


# Time of a row by way of use

COLUMNS = ("ProjSe", "SOSPCA", "River SelectKBest", "River GaussianRandomProjector")
# Column of River -> column of streamsel for the same job.
OURS = {COLUMNS[2]: COLUMNS[0], COLUMNS[3]: COLUMNS[1]}


def cells(p):
    """Return (way of use, contestant) -> (function that processes n rows, n)."""
    rows, y = stream(p)
    many = frame_of(rows)
    # Peers take 100 µs per row with 10 features, 100 ms with 10,000.
    few = max(2, min(BATCH, 5000 // p))
    ours = {"ProjSe": ProjSe(10), "SOSPCA": SOSPCA(10)}
    best, projector = select_k_best(), preprocessing.GaussianRandomProjector(10, seed=0)
    learning(best, rows[:2], y[:2])()
    projector.transform_one(rows[0])

    def each(function, n):
        pairs = [(rows[i % DISTINCT], y[i % DISTINCT]) for i in range(n)]

        def run():
            for x, value in pairs:
                function(x, value)

        return run, n

    found = {}
    for name, model in ours.items():
        settled(model, rows)
        found["learn_one", name] = each(model.learn_one, BATCH)
        found["transform_one", name] = each(lambda x, _, m=model: m.transform_one(x), BATCH)
        found["transform, then learn", name] = each(transform_then_learn(model), BATCH)
        found["learn_many", name] = (lambda m=model: m.learn_many(*many)), BATCH
    name = "River SelectKBest"
    found["learn_one", name] = each(best.learn_one, few)
    found["transform_one", name] = each(lambda x, _: best.transform_one(x), few)
    found["transform, then learn", name] = each(transform_then_learn(best), few)
    # It does not learn: in a pipeline it only transforms.
    name = "River GaussianRandomProjector"
    found["transform_one", name] = each(lambda x, _: projector.transform_one(x), few)
    found["transform, then learn", name] = each(lambda x, _: projector.transform_one(x), few)
    return found


@pytest.mark.parametrize("p", [10, 100, 1_000, 10_000])
def test_rows_per_second(benchmark, table, repeats, size, p):
    p = min(p, size(10_000))
    seconds = in_turn(benchmark, cells(p), repeats(9))
    rate = {cell: 1.0 / found for cell, found in seconds.items()}
    ways = dict.fromkeys(way for way, _ in rate)

    def cell(way, column):
        if (way, column) not in rate:
            return ""
        ahead = rate[way, column] > rate[way, OURS.get(column, column)]
        return bold(f"{rate[way, column]:,.0f}", ahead)

    table(
        "rows per second",
        ("features", "way of use", *COLUMNS),
        *((f"{p:,}", way, *(cell(way, column) for column in COLUMNS)) for way in ways),
    )


# The slowest rows

# Rows from the first on: fewer than 1,000 features, and then more. The refresh after 1,280 rows is
# in use before the last one, so that no thread works on during the next model.
ROWS = 1_500


def factors(n, p):
    """Return n rows of p features that share eight factors, and their targets."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((n, 8))
    X = rng.standard_normal((n, p)) + 0.5 * hidden @ rng.standard_normal((8, p))
    return X, hidden[:, 0] + X[:, 3] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("fading_factor", [0.0, 0.01])
@pytest.mark.parametrize("p", [200, 1_000])
@pytest.mark.parametrize("cls", [RidgeComponents, PCA, PLS, SOSPCA, ForwardSelection, MRMR])
def test_slowest_rows(benchmark, table, size, cls, p, fading_factor):
    """Learn and transform every row from the first on, refreshes included."""
    X, y = factors(size(ROWS), p)
    model = cls(fading_factor=fading_factor)
    model.precompile()
    names = [f"x{j}" for j in range(p)]
    targets = [()] * len(X) if cls is PCA else [(value,) for value in y.tolist()]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    seconds = []

    def run():
        for x, target in zip(rows, targets, strict=True):
            # Includes the waits for refreshes in another thread.
            started = time.perf_counter()
            model.learn_one(x, *target)
            model.transform_one(x)
            seconds.append(time.perf_counter() - started)

    benchmark.pedantic(run, rounds=1)
    milliseconds = 1e3 * np.array(seconds)
    middle, late = np.quantile(milliseconds, [0.5, 0.99])
    rate = 1e3 / milliseconds.mean()
    found = {"median": middle, "p99": late, "max": milliseconds.max(), "rate": rate}
    benchmark.extra_info |= {name: float(value) for name, value in found.items()}
    table(
        "the slowest rows",
        (
            *("model", "features", "fading_factor"),
            *("median, ms", "99th percentile, ms", "slowest, ms", "rows/s"),
        ),
        (
            cls.__name__,
            f"{p:,}",
            f"{fading_factor:g}",
            f"{middle:.3f}",
            f"{late:.2f}",
            f"{found['max']:.1f}",
            f"{rate:,.0f}",
        ),
    )


# Time of a row by part

PARTS = {
    "names compared, values read": [(RowReader, "read_repeated")],
    "target read": [(RowTarget, "encode_known")],
    "moments": [(Moments, "learn_one")],
    "components and candidates": [(SOSPCARowState, "learn_one")],
    f"refresh, every {BATCH} rows": [(SOSPCARowState, "refresh")],
}


def timed(function, add):
    """Return a function that also passes the seconds of each call to `add`."""

    def run(*args, **kwargs):
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            add(time.perf_counter() - started)

    return run


@pytest.mark.parametrize("p", [10, 1000])
@pytest.mark.parametrize("cls", [ProjSe, SOSPCA])
def test_where_a_row_goes(benchmark, table, repeats, monkeypatch, cls, p):
    rows, y = stream(p)
    # As many rows as between two refreshes.
    pairs = list(zip(rows, y, strict=True)) * (BATCH // DISTINCT)
    model = settled(cls(10), rows)
    calls = {part: [] for part in PARTS}
    idle = []
    seconds = {part: [] for part in [*PARTS, "learn_one", "both"]}

    def learnt():
        for x, value in pairs:
            model.learn_one(x, value)

    def transformed_after_each():
        for x, value in pairs:
            model.learn_one(x, value)
            model.transform_one(x)

    def one_round():
        for whole, run in ("learn_one", learnt), ("both", transformed_after_each):
            started = time.perf_counter()
            run()
            seconds[whole].append((time.perf_counter() - started) / BATCH)
        with monkeypatch.context() as patch:
            for part, functions in PARTS.items():
                calls[part].clear()
                for owner, name in functions:
                    patch.setattr(owner, name, timed(getattr(owner, name), calls[part].append))
            learnt()
        # The time of the clock itself is subtracted.
        idle.clear()
        for _ in pairs:
            timed(bool, idle.append)(None)
        each = statistics.median(idle)
        for part, times in calls.items():
            seconds[part].append((sum(times) - len(times) * each) / BATCH)

    transformed_after_each()
    benchmark.pedantic(one_round, rounds=repeats(51))
    found = {part: statistics.median(times) for part, times in seconds.items()}
    whole, both = found.pop("learn_one"), found.pop("both")
    found["rest"] = whole - sum(found.values())
    found["learn_one"] = whole
    found["transform_one after it"] = both - whole
    benchmark.extra_info |= found
    table(
        "time of a row by part",
        ("model", "features", "part", "µs", "share of learn_one"),
        *(
            (cls.__name__, f"{p:,}", part, f"{1e6 * mine:.1f}", f"{mine / whole:.0%}")
            for part, mine in found.items()
            if mine
        ),
    )

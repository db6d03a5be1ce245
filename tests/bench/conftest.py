"""Ours and the limit in turn, in one run, and a table of their ratios at the end.

Every benchmark times a pair: what streamsel does, and the peer or the physical limit that it is
held against, one after the other, so that a machine whose speed drifts slows both. BLAS gets one
thread, as streamsel has by default. `STREAMSEL_BENCH=quick` shrinks the data, to see that all of
it runs.
"""

import os
import statistics
import time

import pytest
from threadpoolctl import threadpool_limits

QUICK = os.environ.get("STREAMSEL_BENCH") == "quick"
ROWS = pytest.StashKey()


def pytest_configure(config):
    config.stash[ROWS] = []


@pytest.fixture(autouse=True)
def one_thread():
    """Hold BLAS to one thread."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def size():
    """Return a size, or a twentieth of it in a quick run."""
    return lambda full: max(200, full // 20) if QUICK else full


@pytest.fixture
def against(benchmark, request):
    """Time ours and a limit in turn; note the ratio of their medians."""

    def run(what, ours, limit, *, bar, rounds=5):
        ours()
        limit()
        limits = []

        def before():
            started = time.perf_counter()
            limit()
            limits.append(time.perf_counter() - started)

        benchmark.pedantic(ours, setup=before, rounds=1 if QUICK else rounds)
        mine = benchmark.stats.stats.median if benchmark.stats else float("nan")
        theirs = statistics.median(limits)
        benchmark.extra_info |= {"limit": theirs, "ratio": mine / theirs, "bar": bar}
        times = (f"{seconds * 1e3:.4g} ms" for seconds in (mine, theirs))
        note(request, what, *times, mine / theirs, bar)

    return run


@pytest.fixture
def report(request):
    """Note a figure that is no ratio of times."""
    return lambda what, ours, limit, bar: note(request, what, ours, limit, None, bar)


def note(request, what, ours, limit, ratio, bar):
    row = (what, ours, limit, "" if ratio is None else f"{ratio:.3g}", bar)
    request.config.stash[ROWS].append(row)


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    terminalreporter.section("streamsel against the limit" + (" (quick: not to be quoted)" * QUICK))
    table = [("what", "ours", "limit", "ratio", "bar"), ("---",) * 5, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line("| " + " | ".join(cells) + " |")

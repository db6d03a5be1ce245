"""Ours and the limit in turn, in one run, and a table of their ratios at the end.

Every benchmark times a pair: what streamsel does, and the peer or the physical limit that it is
held against, one after the other, so that a machine whose speed drifts slows both. A benchmark of
more than two brings a table of its own, and times all of them in turn. BLAS gets one thread, as
streamsel has by default. `STREAMSEL_BENCH=quick` shrinks the data, to see that all of it runs.
"""

import os
import statistics
import time

import pytest
from threadpoolctl import threadpool_limits

QUICK = os.environ.get("STREAMSEL_BENCH") == "quick"
HEAD = ("what", "ours", "limit", "ratio", "bar")
# Title of a table -> its lines, the first of them its head.
TABLES = pytest.StashKey()


def pytest_configure(config):
    config.stash[TABLES] = {}


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
def repeats():
    """Return a number of repeats, or 1 in a quick run."""
    return lambda full: 1 if QUICK else full


@pytest.fixture
def table(request):
    """Add lines to a table of their own, given its title and its head."""

    def add(title, head, *lines):
        request.config.stash[TABLES].setdefault(title, [head]).extend(lines)

    return add


@pytest.fixture
def against(benchmark, note, repeats):
    """Time ours and a limit in turn; note the ratio of their medians."""

    def run(what, ours, limit, *, bar, rounds=5):
        ours()
        limit()
        limits = []

        def before():
            started = time.perf_counter()
            limit()
            limits.append(time.perf_counter() - started)

        benchmark.pedantic(ours, setup=before, rounds=repeats(rounds))
        mine = benchmark.stats.stats.median if benchmark.stats else float("nan")
        theirs = statistics.median(limits)
        benchmark.extra_info |= {"limit": theirs, "ratio": mine / theirs, "bar": bar}
        times = (f"{seconds * 1e3:.4g} ms" for seconds in (mine, theirs))
        note(what, *times, f"{mine / theirs:.3g}", bar)

    return run


@pytest.fixture
def report(note):
    """Note a figure that is no ratio of times."""
    return lambda what, ours, limit, bar: note(what, ours, limit, "", bar)


@pytest.fixture
def note(table):
    """Add a line to the table of all pairs."""
    return lambda *line: table("streamsel against the limit", HEAD, line)


def pytest_terminal_summary(terminalreporter, config):
    for title, lines in config.stash[TABLES].items():
        terminalreporter.section(title + (" (quick: not to be quoted)" * QUICK))
        head, *rest = ([str(cell) for cell in line] for line in lines)
        whole = [head, ["---"] * len(head), *rest]
        widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
        for line in whole:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            terminalreporter.write_line("| " + " | ".join(cells) + " |")

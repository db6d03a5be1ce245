"""Measure streamsel and a limit in turn, in one run, and print a table of their ratios.

Every benchmark times a pair: streamsel, and the peer or the physical limit that it is compared
with, one after the other, so that a machine whose speed drifts slows both. A benchmark of more
than two has its own table, and times all of them in turn. BLAS uses one thread, as streamsel does
by default. `STREAMSEL_BENCH=quick` shrinks the data, to check that everything runs. The JSON has
the tables too; `page.py` writes the page from it.
"""

import statistics
import time

import pytest
from threadpoolctl import threadpool_limits

from tests.bench import page
from tests.bench.comparison import ratio_of
from tests.bench.jobs import QUICK

HEAD = ("what", "ours", "limit", "ratio", "threshold", "ours, GB/s", "limit, GB/s")
# A slow pair gets fewer rounds: as many as fit into this time, but enough for an estimate of noise.
MAX_SECONDS, MIN_ROUNDS = 40.0, 5
# Title of a table -> its lines, the first of them its head.
TABLES = pytest.StashKey()
# Results of streamsel and its peers, from which tables are made.
CONTESTS = pytest.StashKey()


def pytest_configure(config):
    config.stash[TABLES] = {}
    config.stash[CONTESTS] = []


@pytest.fixture(autouse=True)
def one_thread():
    """Limit BLAS to one thread."""
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
    """Add lines to the table of a title and a head."""

    def add(title, head, *lines):
        request.config.stash[TABLES].setdefault(title, [head]).extend(lines)

    return add


@pytest.fixture
def contest(benchmark, request):
    """Record the results of streamsel and its peers, for one of the benchmarks of a group."""

    def record(group, **results):
        benchmark.extra_info |= results
        request.config.stash[CONTESTS].append({"group": group, "extra_info": results})

    return record


@pytest.fixture
def paired(benchmark, repeats):
    """Time ours and a limit in turn; return their median seconds, and the median of the ratios.

    Ours does the limit's work `often` times; its time is divided by `often`.
    """

    def run(what, ours, limit, *, rounds, often=1):
        started = time.perf_counter()
        ours()
        if rounds > 1:
            limit()
            affordable = int(MAX_SECONDS / (time.perf_counter() - started))
            rounds = min(rounds, max(affordable, MIN_ROUNDS))
        limits = []

        def before():
            started = time.perf_counter()
            limit()
            limits.append(time.perf_counter() - started)

        benchmark.pedantic(ours, setup=before, rounds=repeats(rounds))
        mine = [seconds / often for seconds in benchmark.stats.stats.data]
        ratio, noise = ratio_of(mine, limits)
        theirs = statistics.median(limits)
        benchmark.extra_info |= {"what": what, "limit": theirs, "ratio": ratio, "noise": noise}
        return statistics.median(mine), theirs, ratio

    return run


@pytest.fixture
def against(benchmark, note, paired):
    """Time ours and a limit in turn; note the median of the rounds' ratios.

    The ratio should be at most `threshold`. `data` are the bytes that both read once, or a pair of
    these, of ours and of the limit.
    """

    def run(what, ours, limit, *, threshold=None, rounds=15, often=1, data=None):
        mine, theirs, ratio = paired(what, ours, limit, rounds=rounds, often=often)
        benchmark.extra_info |= {"threshold": threshold}
        rates = ("", "")
        if data is not None:
            both = data if isinstance(data, tuple) else (data, data)
            rates = (page.rate(*one) for one in zip(both, (mine, theirs), strict=True))
        times = (page.quantity(one, page.SECONDS) for one in (mine, theirs))
        met = threshold is None or ratio <= threshold
        at_most = "" if threshold is None else f"≤ {threshold}"
        note(what, *times, f"{ratio:.3g}", threshold=at_most, met=met, rates=rates)

    return run


@pytest.fixture
def report(note):
    """Note a figure other than a ratio of times, and whether it meets its threshold."""

    def add(what, ours, limit="", threshold="", met=True):
        note(what, ours, limit, "", threshold=threshold, met=met)

    return add


@pytest.fixture
def note(table):
    """Add a line to the table of all pairs; a missed threshold is in bold."""
    return lambda *line, threshold, met, rates=("", ""): table(
        "against the limit", HEAD, (*line, page.bold(threshold, not met), *rates)
    )


def pytest_terminal_summary(terminalreporter, config):
    for title, lines in page.tables(config.stash[TABLES], config.stash[CONTESTS]).items():
        terminalreporter.section(title + (" (quick: not to be quoted)" * QUICK))
        for line in page.aligned(lines):
            terminalreporter.write_line(line)


def pytest_benchmark_update_json(config, output_json):
    output_json |= {
        "tables": config.stash[TABLES],
        "versions": page.versions(),
        "quick": QUICK,
    }

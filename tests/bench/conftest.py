"""Ours and the limit in turn, in one run, and a table of their ratios at the end.

Every benchmark times a pair: what streamsel does, and the peer or the physical limit that it is
held against, one after the other, so that a machine whose speed drifts slows both. A benchmark of
more than two brings a table of its own, and times all of them in turn. BLAS gets one thread, as
streamsel has by default. `STREAMSEL_BENCH=quick` shrinks the data, to see that all of it runs.
The tables go into the JSON too; `page.py` makes the page of it.
"""

import statistics
import time

import pytest
from threadpoolctl import threadpool_limits

from tests.bench import page
from tests.bench.comparison import ratio_of
from tests.bench.jobs import QUICK

HEAD = ("what", "ours", "limit", "ratio", "bar", "ours, GB/s", "limit, GB/s")
# Title of a table -> its lines, the first of them its head.
TABLES = pytest.StashKey()
# What is told of streamsel among its peers, of which tables are made.
CONTESTS = pytest.StashKey()


def pytest_configure(config):
    config.stash[TABLES] = {}
    config.stash[CONTESTS] = []


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
def contest(benchmark, request):
    """Tell how streamsel and its peers did, in one of the benchmarks of a group."""

    def tell(group, **told):
        benchmark.extra_info |= told
        request.config.stash[CONTESTS].append({"group": group, "extra_info": told})

    return tell


@pytest.fixture
def paired(benchmark, repeats):
    """Time ours and a limit in turn; return their median seconds, and the median of the ratios.

    Ours does `often` times what the limit does once, and is told by the once.
    """

    def run(what, ours, limit, *, rounds, often=1):
        ours()
        if rounds > 1:
            limit()
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
    """Time ours and a limit in turn; note the median of the rounds' ratios, at most `bar`.

    `data` are bytes that both read once, or a pair: what ours reads, what the limit does.
    """

    def run(what, ours, limit, *, bar=None, rounds=15, often=1, data=None):
        mine, theirs, ratio = paired(what, ours, limit, rounds=rounds, often=often)
        benchmark.extra_info |= {"bar": bar}
        rates = ("", "")
        if data is not None:
            both = data if isinstance(data, tuple) else (data, data)
            rates = (page.rate(*one) for one in zip(both, (mine, theirs), strict=True))
        times = (page.quantity(one, page.SECONDS) for one in (mine, theirs))
        told = "" if bar is None else f"≤ {bar}"
        note(what, *times, f"{ratio:.3g}", bar=told, met=bar is None or ratio <= bar, rates=rates)

    return run


@pytest.fixture
def report(note):
    """Note a figure that is no ratio of times, and whether it meets its bar."""

    def told(what, ours, limit="", bar="", met=True):
        note(what, ours, limit, "", bar=bar, met=met)

    return told


@pytest.fixture
def note(table):
    """Add a line to the table of all pairs; a bar that is missed is in bold."""
    return lambda *line, bar, met, rates=("", ""): table(
        "against the limit", HEAD, (*line, page.bold(bar, not met), *rates)
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

"""What only a process of its own can show: peak memory, and the time to a first result."""

import subprocess
import sys
import time

import pytest

MEMORY = """
import numpy as np
from streamsel import SOSPCA, ProjSe
from streamsel.stream import ColumnStream
from streamsel.columns import Block
n, p, b = 200, {p}, 1000
block = np.empty((b, n)).T
def blocks():
    rng = np.random.default_rng(0)
    for start in range(0, p, b):
        rng.standard_normal(out=block.T)
        yield Block(range(start, start + b), block)
y = np.random.default_rng(1).standard_normal(n)
for model in (SOSPCA(), ProjSe(max_candidates=100)):
    model.learn_target(y)
    model.learn_columns(ColumnStream(blocks, n_rows=n, n_columns=p))
# Not getrusage: its maximum is handed down from the process that started this one.
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""

FIRST = """
import numpy as np
from streamsel import SOSPCA
model = SOSPCA(2)
model.learn_target(np.arange(10.0))
model.learn_columns(np.eye(10))
model.relevance
"""


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_memory(benchmark, report, size):
    few, many = size(100_000), size(2_000_000)
    small = float(run(MEMORY.format(p=few))) / 1024
    large = float(benchmark.pedantic(run, (MEMORY.format(p=many),), rounds=1)) / 1024
    report(
        "peak memory, p from 100,000 to 2,000,000 generated columns, n=200",
        f"+{large - small:.1f} MB",
        f"{small:.0f} MB",
        "< 16 MB",
    )


@pytest.mark.parametrize(
    ("what", "program", "bar"),
    [("import streamsel", "import streamsel", "< 50 ms"), ("first result", FIRST, "< 1.5 s")],
)
def test_fresh_process(benchmark, report, what, program, bar):
    run(program)

    def bare():
        started = time.perf_counter()
        run("pass")
        return time.perf_counter() - started

    empty = min(bare() for _ in range(3))
    benchmark.pedantic(run, (program,), rounds=5)
    seconds = benchmark.stats.stats.median
    report(
        f"{what} in a fresh process, warm cache, less an empty one",
        f"{(seconds - empty) * 1e3:.0f} ms",
        f"{empty * 1e3:.0f} ms",
        bar,
    )

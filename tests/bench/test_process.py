"""Measure peak memory and the time to a first result in separate processes."""

import os
import statistics
import subprocess
import sys
import time
from inspect import signature

import pytest

from streamsel.registry import fetch, names

MEMORY = """
import numpy as np
from streamsel import {name}
from streamsel.data.chunks import Block
from streamsel._utils.system import peak_bytes
from streamsel.stream import ColumnStream
n, p, b = 200, {p}, 1000
block = np.empty((b, n)).T
def blocks():
    rng = np.random.default_rng(0)
    for start in range(0, p, b):
        rng.standard_normal(out=block.T)
        yield Block(range(start, start + b), block)
model = {name}({parameters})
if model._is_supervised:
    y = np.random.default_rng(1).standard_normal(n)
    model.learn_target(y > 0.0 if model._needs_classes else y)
model.learn_columns(ColumnStream(blocks, n_rows=n, n_columns=p))
model.relevance
print(peak_bytes())
"""

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
IMPORT = "import streamsel; print(streamsel.__version__, flush=True)"

FIRST = """
import numpy as np
from streamsel import SOSPCA
model = SOSPCA(2)
model.learn_target(np.arange(10.0))
model.learn_columns(np.eye(10))
print(model.relevance, flush=True)
"""

FEATURES = """
import gc
import numpy as np
from streamsel._utils.system import resident_bytes
{imports}
p = {p}
names = [f"feature {{j}}" for j in range(p)]
rng = np.random.default_rng(0)
def learn(model, p):
    for start in range(0, p, 1000):
        part = names[start : start + 1000]
        row = dict(zip(part, rng.standard_normal(len(part)).tolist()))
        model.learn_one(row, rng.standard_normal())
    return model
learn({model}, 1000)
gc.collect()
before = resident_bytes()
model = learn({model}, p)
learn(model, p)
gc.collect()
print((resident_bytes() - before) / p)
"""

ENDLESS = """
import time
from streamsel import SOSPCA, ProjSe
from streamsel._utils.system import resident_bytes
n = {n}
model = {model}
for i in range(n):
    # Two of 43 recurring words, and eight new ones.
    x = {{f"lasting {{i % 20}}": 1.0, f"lasting {{20 + i % 23}}": 1.0}}
    x |= {{f"word {{j}}": 1.0 for j in range(8 * i, 8 * i + 8)}}
    model.learn_one(x, (i % 20 < 5) + i * 7919 % 1009 / 1009)
    if i + 1 == n // 10:
        started, before = time.perf_counter(), resident_bytes()
after, seconds = resident_bytes(), time.perf_counter() - started
print(before, after, (n - n // 10) / seconds)
"""


def python(*args):
    """Run Python; return what it prints."""
    command = [sys.executable, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run(program):
    return python("-c", program)


def seconds_to_output(program):
    """Start Python; return how long it takes to print a line, without the exit of Python."""
    # Installed modules are compiled; the environment of tests may forbid to store bytecode.
    environment = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    started = time.perf_counter()
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline().strip()
        return time.perf_counter() - started


# Extractors keep a few components; selectors keep a few variables if they have the parameter.
BOUNDED = {
    name: "max_candidates=100" if "max_candidates" in signature(fetch(name)).parameters else ""
    for name in names()
}


@pytest.mark.parametrize("name", BOUNDED)
def test_memory(benchmark, report, size, name):
    few, many = size(100_000), size(2_000_000)
    programs = [MEMORY.format(name=name, parameters=BOUNDED[name], p=p) for p in (few, many)]
    small = float(run(programs[0])) / 1024**2
    large = float(benchmark.pedantic(run, programs[1:], rounds=1)) / 1024**2
    report(
        f"peak memory, {name}({BOUNDED[name]}), p from 100,000 to 2,000,000 columns, n=200",
        f"{large - small:+.1f} MB",
        f"{small:.0f} MB",
        "< 16 MB",
        large - small < 16,
    )


def test_bytes_a_feature(benchmark, report, size):
    p = size(100_000)
    peer = "from river.feature_selection import SelectKBest\nfrom river.stats import PearsonCorr"
    peer = FEATURES.format(imports=peer, model="SelectKBest(PearsonCorr())", p=p)
    theirs = float(run(peer))
    ours = FEATURES.format(imports="from streamsel import ProjSe", model="ProjSe()", p=p)
    mine = float(benchmark.pedantic(run, (ours,), rounds=1))
    report(
        f"resident bytes per feature, ProjSe on rows, p={p:,} / River SelectKBest",
        f"{mine:,.0f} B",
        f"{theirs:,.0f} B",
    )


@pytest.mark.parametrize(("cls", "full"), [("ProjSe", 300_000), ("SOSPCA", 100_000)])
def test_endless_words(benchmark, report, size, cls, full):
    # Twice, because a twentieth is too much for a quick run; but the vocabulary must be full.
    n = max(2_000, size(size(full)))
    program = ENDLESS.format(model=f"{cls}(10, max_features=1000)", n=n)
    before, after, rate = map(float, benchmark.pedantic(run, (program,), rounds=1).split())
    report(
        f"resident memory, {cls}(max_features=1,000) on words, rows {n // 10:,} to {n:,}",
        f"{(after - before) / 1024**2:+.1f} MB",
        f"{before / 1024**2:.0f} MB",
        "< 4 MB",
        after - before < 4 * 1024**2,
    )
    report(f"rows per second, 10 words each, 8 of them new, the same {cls}", f"{rate:,.0f}")


@pytest.mark.parametrize(
    ("what", "program", "threshold"),
    [("import streamsel", IMPORT, 50), ("first result", FIRST, 800)],
    ids=["import", "first result"],
)
def test_fresh_process(benchmark, report, repeats, what, program, threshold):
    seconds_to_output(program)
    seconds = []

    def once():
        seconds.append(seconds_to_output(program))

    benchmark.pedantic(once, rounds=repeats(9))
    milliseconds = 1e3 * statistics.median(seconds)
    report(
        f"{what}, from the start of a process to its output, warm cache",
        f"{milliseconds:.0f} ms",
        threshold=f"< {threshold:,} ms",
        met=milliseconds < threshold,
    )


def test_help(benchmark, report, repeats):
    benchmark.pedantic(python, ("-m", "streamsel", "--help"), rounds=repeats(9), warmup_rounds=1)
    milliseconds = 1e3 * benchmark.stats.stats.median
    report(
        "streamsel --help, the whole process",
        f"{milliseconds:.0f} ms",
        threshold="≤ 100 ms",
        met=milliseconds <= 100,
    )

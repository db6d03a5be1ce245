"""Compare workers with one process, on Parquet and text; compare their memory for two p."""

import os
import subprocess
import sys

import numpy as np
import pytest

from streamsel import ForwardSelection, ProjSe
from streamsel.distributed import learn
from streamsel.distributed.cluster import connect
from streamsel.stream import iter_csv, iter_files

# 2 GB, in files of 0.2 GB.
N, P, PER_FILE = 1000, 250_000, 25_000
# 0.6 GB of text, in parts of 48 MB.
P_TEXT, TEXT_PARTS = 60_000, 12

MEMORY = """
import sys
import numpy as np
from streamsel import ProjSe
from streamsel.distributed import learn
from streamsel._utils.system import peak_bytes
from streamsel.stream import iter_files
from streamsel.distributed.cluster import connect
if __name__ == "__main__":
    with connect(None, 2) as client:
        y = np.random.default_rng(1).normal(size=1000)
        learn(ProjSe(10, max_candidates=100), iter_files(sys.argv[1:]), y, client=client, fan_in=2)
        print(peak_bytes(), max(client.run(peak_bytes).values()))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a function that writes p random columns to Parquet files and returns their paths."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder, rng = tmp_path_factory.mktemp("parquet"), np.random.default_rng(0)

    def paths(p):
        found = []
        for start in range(0, p, PER_FILE):
            names = [f"v{j}" for j in range(start, min(p, start + PER_FILE))]
            found.append(folder / f"{start}-{len(names)}.parquet")
            if not found[-1].exists():
                table = pa.table([pa.array(rng.standard_normal(N)) for _ in names], names=names)
                parquet.write_table(table, found[-1], use_dictionary=False, compression="none")
        return found

    yield paths
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture
def client(request):
    """Start a cluster of single-threaded processes, as many as the parameter; return a client."""
    with connect(None, request.param) as client:
        yield client


@pytest.fixture
def lines(tmp_path, size):
    """Write columns as lines of text: shifts of 500 columns, because formatting takes long."""
    cells = [
        np.char.mod("%.6f", row).tolist()
        for row in np.random.default_rng(0).standard_normal((500, N))
    ]
    path = tmp_path / "lines.csv"
    with path.open("w") as file:
        for j in range(size(P_TEXT)):
            first, own = 7 * (j // 500) + 1, cells[j % 500]
            file.write(f"v{j},{','.join(own[first:] + own[:first])}\n")
    yield path
    path.unlink()


@pytest.mark.parametrize("client", [1, 2], indirect=True, ids=["1 worker", "2 workers"])
def test_workers(against, size, files, client):
    y, paths = np.random.default_rng(1).normal(size=N), files(size(P))
    n_workers = len(client.nthreads())

    def alone():
        model = ProjSe(10, max_candidates=100)
        model.learn_target(y)
        model.learn_columns(iter_files(paths))

    against(
        f"Parquet, {N}×{size(P):,}, ProjSe, workers: {n_workers} / one process",
        lambda: learn(ProjSe(10, max_candidates=100), iter_files(paths), y, client=client),
        alone,
        threshold={1: 1.25, 2: 0.625}[n_workers],
        rounds=3,
        data=8 * N * size(P),
    )


@pytest.mark.parametrize("client", [2], indirect=True, ids=["2 workers"])
def test_workers_of_text(against, size, lines, client):
    y = np.random.default_rng(1).normal(size=N)
    selected = []

    def learnt(learn_all):
        model = ForwardSelection(25, exact=True, max_candidates=500)
        learn_all(model, iter_csv(lines, orientation="variables"))
        selected.append(model.selected)
        assert selected[-1] == selected[0]

    def in_one_process(model, source):
        model.learn_target(y)
        model.learn_columns(source)

    against(
        f"text, {N}×{size(P_TEXT):,}, ForwardSelection, exact, workers: 2 / one process",
        lambda: learnt(
            lambda model, source: learn(model, source, y, client=client, parts=TEXT_PARTS)
        ),
        lambda: learnt(in_one_process),
        threshold=0.556,
        rounds=3,
        data=lines.stat().st_size,
    )


def test_memory(benchmark, report, size, files, tmp_path):
    script = tmp_path / "memory.py"
    script.write_text(MEMORY)

    def peaks(p):
        done = subprocess.run(
            [sys.executable, script, *files(p)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return [int(found) / 1e6 for found in done.stdout.split()]

    p = size(P)
    few, many = peaks(p // 5), benchmark.pedantic(peaks, (p,))
    for process, one, other in zip(("client", "workers"), few, many, strict=True):
        report(
            f"peak memory of {process}, p = {p:,} / {p // 5:,}",
            f"{other:,.0f} MB",
            f"{one:,.0f} MB",
            "≤ +64 MB",
            other - one <= 64,
        )

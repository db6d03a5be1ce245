"""Memory of sources is bounded: peaks are measured in separate processes."""

import json
import os
import subprocess
import sys

import pytest

from tests.seed import some

# Writes files of 4,000 and of 12,000 columns, 31 and 92 MiB of numbers, in a separate process; of
# text files only the requested ones.
MAKE = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

n, folder, *wanted = 1000, *sys.argv[1:]
rng = np.random.default_rng(0)
for size, p in (("small", 4_000), ("wide", 12_000)):
    X = rng.integers(0, 1000, size=(n, p)).astype(float)
    np.save(f"{folder}/C-{size}.npy", X)
    X = np.asfortranarray(X)
    np.save(f"{folder}/F-{size}.npy", X)
    table = pa.table([pa.array(x) for x in X.T], names=[f"v{j}" for j in range(p)])
    pa.parquet.write_table(table, f"{folder}/{size}.parquet", use_dictionary=False)
    pa.feather.write_feather(table, f"{folder}/{size}-plain.arrow", compression="uncompressed")
    pa.feather.write_feather(table, f"{folder}/{size}-zipped.arrow", compression="lz4")
    cells = "\\t".join(map(str, range(n // 2)))
    if "lines" in wanted:
        with open(f"{folder}/{size}.tsv", "w") as file:
            file.writelines(f"v{j}\\t{cells}\\n" for j in range(p))
    if "csv" in wanted:
        with open(f"{folder}/{size}.csv", "w") as file:
            file.write(",".join(f"v{j}" for j in range(p)) + "\\n")
            file.writelines([",".join(map(str, range(p))) + "\\n"] * (n // 4))
"""

# For each source, read the small input, then the wide one, and print the growth of the peak in
# bytes. Each source runs in a fork, so that modules are imported once.
MEASURE = """
import json, os, pathlib, resource, sys
import numpy as np
import pyarrow.feather, pyarrow.parquet
from scipy.sparse import csc_array, random_array
from streamsel.stream import *

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # unlike getrusage's, this peak is not inherited from the parent process
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def growth(make):
    for size in ("small", "wide"):
        before = peak()
        stream = make(size)
        n_columns = sum(len(block.names) for block in stream.blocks() if block.values.sum() >= 0)
        assert stream.n_columns == n_columns
    return peak() - before

folder = sys.argv[1]
width = {"small": 10_000, "wide": 100_000}
base = {"small": np.ones((200, 300)), "wide": np.ones((200, 600))}
ones = np.ones(200)
dense = np.ones((500, 20_000), order="F")
sparse = csc_array(random_array((500, 20_000), density=0.1, format="csc", random_state=0))
part = {"small": slice(0, 100), "wide": slice(0, 20_000)}
csc = {size: sparse[:, part[size]] for size in part}
sources = {
    "npy in F order": lambda size: iter_npy(f"{folder}/F-{size}.npy"),
    "npy in C order": lambda size: iter_npy(f"{folder}/C-{size}.npy"),
    "parquet": lambda size: iter_parquet(f"{folder}/{size}.parquet"),
    "ipc": lambda size: iter_ipc(f"{folder}/{size}-plain.arrow"),
    "compressed ipc": lambda size: iter_ipc(f"{folder}/{size}-zipped.arrow"),
    "lines": lambda size: iter_csv(f"{folder}/{size}.tsv", orientation="variables"),
    "csv": lambda size: iter_csv(f"{folder}/{size}.csv"),
    "function": lambda size: iter_columns(lambda: ((j, ones) for j in range(width[size]))),
    "polynomials": lambda size: iter_polynomials(base[size]),
    "array in C order": lambda size: iter_array(np.broadcast_to(ones[:, None], (200, width[size]))),
    "array in F order": lambda size: iter_array(dense[:, part[size]]),
    "csc": lambda size: iter_sparse(csc[size]),
}
growths = {}
for name in sys.argv[2:]:
    make = sources[name]
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(outlet, json.dumps(growth(make)).encode())
        os._exit(0)
    os.close(outlet)
    growths[name] = json.loads(os.read(inlet, 100) or "null")
    os.close(inlet)
    os.waitpid(child, 0)
print(json.dumps(growths))
"""


# Large arrays are returned to the system when freed; otherwise peaks would include malloc's cache.
FREED = {"MALLOC_MMAP_THRESHOLD_": "1048576"}


def _run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | FREED
    )
    return done.stdout


# MiB, for 61 MiB more to read. Memory that grows with the width: names, and Arrow's metadata per
# column, a few hundred bytes in IPC files and a few thousand in Parquet files.
LIMITS = {
    "npy in F order": 4,
    "npy in C order": 6,
    "parquet": 44,
    "ipc": 16,
    "compressed ipc": 20,
    "lines": 8,
    "csv": 12,
    "function": 4,
    "polynomials": 8,
    "array in C order": 4,
    "array in F order": 2,
    "csc": 2,
}
# Other sources for every seed, because those of text take seconds.
SOURCES = some(LIMITS, 6, "memory")


@pytest.fixture(scope="module")
def growths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    _run(MAKE, folder, *SOURCES)
    return json.loads(_run(MEASURE, folder, *SOURCES))


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_peak_memory_hardly_grows_with_the_width(growths, source):
    assert growths[source] < LIMITS[source] * 2**20


def test_importing_the_stream_package_imports_no_reader():
    code = """
import sys
import streamsel.stream
heavy = {"numpy", "scipy", "numba", "narwhals", "pyarrow", "pandas", "polars"}
print(sorted(heavy & set(sys.modules)))
"""
    assert _run(code).strip() == "[]"

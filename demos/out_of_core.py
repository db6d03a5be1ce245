"""Which methods select from a file that is larger than the memory they may use?

The script writes a .npy file of Gaussian columns; the target is the sum of 20 of them and noise.
Each method then runs in a process of its own, whose memory in addition to the libraries is limited
(RLIMIT_DATA, so on Linux only). The methods of streamsel read the file in a few passes, and prove
that they select the same columns as from a table in memory. The peers get the file mapped into
memory, which takes none of the limited memory until they copy it.

`--columns 250000 --memory 300` makes a file of 2 GB. `--unlimited` also runs the peers without the
limit.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

N, K, N_DRIVERS = 1000, 25, 20
ALPHAS = np.geomspace(1.0, 0.25, 20)
MB = 1e6


def write(path: Path, p: int) -> None:
    """Write p columns, in blocks, and the target in a second file."""
    rng = np.random.default_rng(7)
    X = np.lib.format.open_memmap(path, "w+", np.float64, (N, p), fortran_order=True)
    y = rng.standard_normal(N)
    drivers = set(np.linspace(0, p - 1, N_DRIVERS).astype(int).tolist())
    for start in range(0, p, 1000):
        block = rng.standard_normal((min(1000, p - start), N))
        X[:, start : start + len(block)] = block.T
        y += sum(block[j - start] for j in drivers if start <= j < start + len(block))
    X.flush()
    np.save(path.with_suffix(".y.npy"), y)


# Methods: each returns the selected columns, and the number of passes over the file, if known.


def streamed(name: str, pool: int, **parameters: Any) -> Callable[..., Any]:
    def run(path: Path, y: np.ndarray) -> tuple[list[int], float]:
        import streamsel

        model = getattr(streamsel, name)(exact=True, max_pool_bytes=pool, **parameters)
        model.learn_target(y)
        model.learn_columns(streamsel.stream.iter_npy(path))
        return model.selected, model.n_passes

    return run


def fastcan(path: Path, y: np.ndarray) -> tuple[list[int], None]:
    from fastcan import FastCan

    X = np.load(path, mmap_mode="r")
    return FastCan(K, verbose=0).fit(X, y).indices_.tolist(), None


def mrmrs(path: Path, y: np.ndarray) -> tuple[list[int], None]:
    import polars as pl
    from mrmrs import mrmr

    X = np.load(path, mmap_mode="r")
    frame = pl.DataFrame({str(j): x for j, x in enumerate(X.T)})
    selected = mrmr(frame, pl.Series("y", y), K, "regression")
    return [int(column.name) for column in selected], None


def celer(path: Path, y: np.ndarray) -> tuple[list[int], None]:
    from celer import celer_path

    # celer_path fits no intercept, so the columns are centred, in a copy. If the columns of the
    # file were centred, it could use a private memory map.
    X = np.load(path, mmap_mode="r")
    X = X - X.mean(axis=0)
    coefficients = celer_path(X, y - y.mean(), "lasso", alphas=ALPHAS, tol=1e-8)[1]
    return np.flatnonzero(coefficients[:, -1]).tolist(), None


def methods(pool: int) -> dict[str, Callable[..., Any]]:
    alphas = tuple(ALPHAS.tolist())
    return {
        "ForwardSelection": streamed("ForwardSelection", pool, k=K, ridge=0.0),
        "fastcan": fastcan,
        "MRMR": streamed("MRMR", pool, k=K),
        "mrmrs": mrmrs,
        "Lasso": streamed("Lasso", pool, alphas=alphas, scale=False),
        "celer": celer,
    }


# Processes: each method runs in a child process, whose memory the parent samples.


def memory_of(pid: int | str, field: str) -> int:
    """Return a field of /proc/PID/status in bytes; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def run_child(name: str, path: Path, limit: int, pool: int) -> None:
    """Print the memory of the libraries; run the method under the limit; print its result."""
    import resource

    run = methods(pool)[name]
    with tempfile.TemporaryDirectory() as folder:
        # Libraries, and loops that are compiled or loaded, are not part of the measurement.
        tiny = Path(folder, "tiny.npy")
        write(tiny, 200)
        run(tiny, np.load(tiny.with_suffix(".y.npy")))
    y = np.load(path.with_suffix(".y.npy"))
    print(json.dumps(memory_of("self", "RssAnon")), flush=True)
    if limit:
        total = memory_of("self", "VmData") + limit
        resource.setrlimit(resource.RLIMIT_DATA, (total, resource.RLIM_INFINITY))
    started = time.perf_counter()
    try:
        selected, passes = run(path, y)
    except MemoryError as error:
        print(json.dumps({"stopped": str(error) or "MemoryError"}))
        return
    result = {"seconds": time.perf_counter() - started, "selected": selected, "passes": passes}
    print(json.dumps(result), flush=True)


def measure(name: str, path: Path, limit: int, pool: int) -> dict[str, Any]:
    """Run a method in a process of its own; return its result with the peak of its memory."""
    command = [sys.executable, __file__, "--child", name, str(path), str(limit), str(pool)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # noqa: S603
        before, peak = int(process.stdout.readline() or 0), 0
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid, "RssAnon"))
            time.sleep(0.005)
        output, errors = process.stdout.read(), process.stderr.read().decode().strip()
    if output:
        result = json.loads(output)
    else:
        # Rust raises no exception: it prints which allocation failed, and aborts.
        lines = errors.splitlines()
        reasons = [line for line in lines if "memory" in line] or lines[-1:]
        result = {"stopped": "".join(reasons[:1]) or "the process ended"}
    return result | {"peak": max(0, peak - before)}


def describe(name: str, result: dict[str, Any]) -> str:
    start = f"{name:>22}  {result['peak'] / MB:7.0f} MB"
    if "stopped" in result:
        return f"{start}  stopped: {result['stopped']}"
    passes = f", {result['passes']:.1f} passes" if result["passes"] else ""
    return f"{start}  {result['seconds']:.1f} s{passes}, {len(result['selected'])} selected"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, default=10_000, help=f"columns of {N} numbers each")
    parser.add_argument("--memory", type=int, default=50, help="MB in addition to the libraries")
    parser.add_argument("--unlimited", action="store_true", help="peers also without the limit")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, path, limit, pool = options.child
        run_child(name, Path(path), int(limit), int(pool))
        return
    if not sys.platform.startswith("linux"):
        print("This demo needs Linux, which can limit the memory of a process.")
        return
    limit = int(options.memory * MB)
    # A selection from the pool takes several times the memory of the pool.
    pool = min(64 << 20, limit // 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        write(path, options.columns)
        size = path.stat().st_size / MB
        print(f"{options.columns:,} columns, {size:,.0f} MB; limit of {options.memory} MB:")
        for name in methods(pool):
            is_peer = name.islower()
            if is_peer and find_spec(name) is None:
                print(f"{name:>22}  is not installed")
                continue
            print(describe(name, measure(name, path, limit, pool)), flush=True)
            if is_peer and options.unlimited:
                print(describe(f"{name}, no limit", measure(name, path, 0, pool)), flush=True)


if __name__ == "__main__":
    main()

"""A file larger than the memory that may be used: what selects from it all the same?

Writes a .npy file of Gaussian columns, 20 of which make the target. Then every method, in a process
of its own, may take so many MB beyond libraries, and no more (RLIMIT_DATA, so on Linux only). Those
of streamsel read the file a few times, and prove that they select what they would of all columns at
once. The peers get the file mapped into memory, which costs them nothing until they copy it.

`--columns 250000 --room 300` is a file of 2 GB; `--free` runs peers once more without the bound.
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

N, K, DRIVERS = 1000, 25, 20
ALPHAS = np.geomspace(1.0, 0.25, 20)
MB = 1e6


def write(path: Path, p: int) -> None:
    """Write columns by columns, and the target beside them."""
    rng = np.random.default_rng(7)
    X = np.lib.format.open_memmap(path, "w+", np.float64, (N, p), fortran_order=True)
    y = rng.standard_normal(N)
    drivers = set(np.linspace(0, p - 1, DRIVERS).astype(int).tolist())
    for start in range(0, p, 1000):
        block = rng.standard_normal((min(1000, p - start), N))
        X[:, start : start + len(block)] = block.T
        y += sum(block[j - start] for j in drivers if start <= j < start + len(block))
    X.flush()
    np.save(path.with_suffix(".y.npy"), y)


# The methods: each returns what it selected, and how often it read the file, where it knows


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
    return [int(one.name) for one in mrmr(frame, pl.Series("y", y), K, "regression")], None


def celer(path: Path, y: np.ndarray) -> tuple[list[int], None]:
    from celer import celer_path

    # It has no intercept. Columns that the file has centred it could take from a private map.
    X = np.load(path, mmap_mode="r")
    X = X - X.mean(axis=0)
    found = celer_path(X, y - y.mean(), "lasso", alphas=ALPHAS, tol=1e-8)[1]
    return np.flatnonzero(found[:, -1]).tolist(), None


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


# A process for each


def of_process(pid: int | str, field: str) -> int:
    """Return bytes that Linux tells of a process; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def child(name: str, path: Path, room: int, pool: int) -> None:
    """Do a job under the bound; tell first what the process had before, then what came of it."""
    import resource

    run = methods(pool)[name]
    with tempfile.TemporaryDirectory() as folder:
        # Libraries, and loops that are compiled or read, are not what is measured.
        tiny = Path(folder, "tiny.npy")
        write(tiny, 200)
        run(tiny, np.load(tiny.with_suffix(".y.npy")))
    y = np.load(path.with_suffix(".y.npy"))
    print(json.dumps(of_process("self", "RssAnon")), flush=True)
    if room:
        bound = of_process("self", "VmData") + room
        resource.setrlimit(resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))
    started = time.perf_counter()
    try:
        selected, passes = run(path, y)
    except MemoryError as error:
        print(json.dumps({"stopped": str(error) or "MemoryError"}))
        return
    told = {"seconds": time.perf_counter() - started, "selected": selected, "passes": passes}
    print(json.dumps(told), flush=True)


def measured(name: str, path: Path, room: int, pool: int) -> dict[str, Any]:
    """Do a job in a process of its own; return what it told, and the most anonymous memory."""
    command = [sys.executable, __file__, "--child", name, str(path), str(room), str(pool)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # noqa: S603
        before, most = int(process.stdout.readline() or 0), 0
        while process.poll() is None:
            most = max(most, of_process(process.pid, "RssAnon"))
            time.sleep(0.005)
        rest, errors = process.stdout.read(), process.stderr.read().decode().strip()
    # Rust does not raise: it says what it could not have, and ends.
    lines = [one for one in errors.splitlines() if "memory" in one] or errors.splitlines()[-1:]
    told = json.loads(rest) if rest else {"stopped": "".join(lines[:1]) or "the process ended"}
    return told | {"peak": max(0, most - before)}


def line(name: str, found: dict[str, Any]) -> str:
    what = f"{name:>22}  {found['peak'] / MB:7.0f} MB"
    if "stopped" in found:
        return f"{what}  stopped: {found['stopped']}"
    passes = f", {found['passes']:.1f} passes" if found["passes"] else ""
    return f"{what}  {found['seconds']:.1f} s{passes}, {len(found['selected'])} selected"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, default=10_000, help=f"of {N} numbers each")
    parser.add_argument("--room", type=int, default=50, help="MB beyond libraries")
    parser.add_argument("--free", action="store_true", help="peers once more without the bound")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, path, room, pool = options.child
        child(name, Path(path), int(room), int(pool))
        return
    if not sys.platform.startswith("linux"):
        print("Only Linux bounds what a process may take.")
        return
    room = int(options.room * MB)
    # A plan needs the pool a few times over.
    pool = min(64 << 20, room // 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        write(path, options.columns)
        size = path.stat().st_size / MB
        print(f"{options.columns:,} columns, {size:,.0f} MB; room for {options.room} MB:")
        for name in methods(pool):
            peer = name.islower()
            if peer and find_spec(name) is None:
                print(f"{name:>22}  is not installed")
                continue
            print(line(name, measured(name, path, room, pool)), flush=True)
            if peer and options.free:
                print(line(f"{name}, no bound", measured(name, path, 0, pool)), flush=True)


if __name__ == "__main__":
    main()

"""Read damaged files of every format: they are read as before the damage, or refused in one line.

    python -m tests.attack.fuzz_sources --seconds 20 --seed 1

tries the files of `tests/attack/seeds` first, then mutants of small valid files. It exits with 1 if
one ends in anything else, and prints how to reproduce it.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import itertools
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.attack._harness import Outcome, attack, is_bad, judge, table, tried
from tests.attack._mutate import mutate
from tests.attack._source_files import OPENERS, TOKENS, samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEEDS = Path(__file__).parent / "seeds"
KINDS = tuple(OPENERS)
# More columns than any valid file here has: damaged headers may claim far more.
MAX_READ = 2_000_000


def mutant(kind: str, index: int, seed: int) -> tuple[str, bytes, bytes]:
    """Return the label of a valid file, its bytes, and the bytes of a mutant of it."""
    rng = random.Random(f"{seed} {kind} {index}")  # noqa: S311
    whole = rng.choice(_samples(kind))
    return whole.label, whole.data, mutate(whole.data, rng, TOKENS.get(kind, ()))


_samples = functools.cache(samples)


def attempts(seed: int, folder: Path) -> Callable[[int], tuple[str, str]]:
    """Return the function that tries the mutant of an index: the formats take turns."""
    _take_warnings_for_errors()

    def attempt(index: int) -> tuple[str, str]:
        kind = KINDS[index % len(KINDS)]
        label, whole, damaged = mutant(kind, index, seed)
        suffix, _ = OPENERS[kind]
        (folder / f"whole{suffix}").write_bytes(whole)
        path = folder / f"damaged{suffix}"
        path.write_bytes(damaged)
        verdict, message = judge(lambda: _verdict(kind, path, _whole(kind, label, folder)))
        return verdict, f"{label}: {message}"

    return attempt


@functools.cache
def _whole(kind: str, label: str, folder: Path) -> dict[Any, bytes]:
    """Return the columns of the valid file."""
    suffix, _ = OPENERS[kind]
    return _read(kind, folder / f"whole{suffix}")


def kept() -> list[Path]:
    """Return the files that once caused a defect."""
    suffixes = tuple(suffix for suffix, _ in OPENERS.values())
    return sorted(path for path in SEEDS.iterdir() if path.name.endswith(suffixes))


def attempts_kept() -> Callable[[int], tuple[str, str]]:
    """Return the function that tries a kept file."""
    files = kept()
    _take_warnings_for_errors()

    def attempt(index: int) -> tuple[str, str]:
        path = files[index]
        kind = next(k for k, (suffix, _) in OPENERS.items() if path.name.endswith(suffix))
        verdict, message = judge(lambda: _verdict(kind, path, {}))
        return verdict, f"{path.name}: {message}"

    return attempt


def _take_warnings_for_errors() -> None:
    warnings.simplefilter("error")
    # A warning for users of files written by Python 2.
    warnings.filterwarnings("ignore", "Reading `.npy`", UserWarning)


def _verdict(kind: str, path: Path, whole: dict[Any, bytes]) -> str:
    """Read a file twice: values from uninitialised memory differ the second time."""
    first = _read(kind, path)
    _disturb_memory()
    second = _read(kind, path)
    if first != second:
        return "wrong"
    if first == whole:
        return "right"
    # Numeric columns are identified by their values.
    others = {values: name for name, values in whole.items()} if kind in ("ipc", "parquet") else {}
    strayed = (
        name in whole and others.get(v, name) not in (name, None) for name, v in first.items()
    )
    return "wrong" if any(strayed) else "changed"


def _read(kind: str, path: Path) -> dict[Any, bytes]:
    """Return all columns of a file, compared with its parts, and one column read by name."""
    stream = OPENERS[kind][1](path)
    found: dict[Any, bytes] = {}
    for names, values, _ in stream.blocks():
        if values.shape != (stream.n_rows, len(names)):
            raise AssertionError(f"{values.shape}, {stream.n_rows} rows, {len(names)} names")
        for name, column in zip(names, values.T, strict=True):
            found[name] = _bytes_of(column)
        if len(found) > MAX_READ:
            break
    by_parts = {}
    for part in stream.split(3) if len(found) < MAX_READ else ():
        by_parts.update({name: _bytes_of(column) for name, column in part.open()})
    if by_parts and by_parts != found:
        raise AssertionError("by parts the columns are others")
    for name in list(found)[-1:]:
        found[None] = _bytes_of(stream.take([name])[name])
    return found


def _bytes_of(column: Any) -> bytes:
    return repr(column.tolist()).encode() if column.dtype == object else np.array(column).tobytes()


def _disturb_memory() -> None:
    """Fill memory allocated from now on with other bytes, where the system's library can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-6, next(_rubbish))


_rubbish = itertools.cycle(range(1, 256))


def _run(options: argparse.Namespace) -> int:
    counts: dict[str, Counter[str]] = {}
    bad = 0
    for outcome in attack(attempts_kept, range(len(kept()))):
        counts.setdefault("kept", Counter())[outcome.verdict] += 1
        if is_bad(outcome):
            bad += 1
            print(f"{outcome.verdict}: {outcome.detail or kept()[outcome.index].name}")
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        make = functools.partial(attempts, options.seed, Path(folder))
        until = time.monotonic() + options.seconds
        for outcome in attack(make, _indices(options), until=until):
            kind = KINDS[outcome.index % len(KINDS)]
            counts.setdefault(kind, Counter())[outcome.verdict] += 1
            if is_bad(outcome):
                bad += 1
                again = f"--seed {options.seed} --index {outcome.index}"
                print(f"{kind} {outcome.verdict}: {outcome.detail} ({again})", flush=True)
                _keep(kind, outcome, options)
    print(table(counts))
    if bad:
        print(
            f"{bad} ended in something else than their values or one line of refusal. Try one "
            "again by: python -m tests.attack.fuzz_sources --seed S --index I --keep FOLDER"
        )
    return 1 if bad else 0


def _keep(kind: str, outcome: Outcome, options: argparse.Namespace) -> None:
    """Write a mutant that caused a defect to the requested folder."""
    if options.keep:
        name = f"{outcome.verdict}-{options.seed}-{outcome.index}{OPENERS[kind][0]}"
        (options.keep / name).write_bytes(mutant(kind, outcome.index, options.seed)[2])


def _indices(options: argparse.Namespace) -> Iterator[int]:
    kinds = {KINDS.index(kind) for kind in options.kind or KINDS}
    return (i for i in tried(options) if i % len(KINDS) in kinds)


def main() -> int:
    """Run the attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to go on")
    parser.add_argument("--tries", type=int, help="how many; otherwise until the time is over")
    parser.add_argument("--seed", type=int, default=0, help="of the mutants")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only such files")
    parser.add_argument("--index", type=int, help="only this mutant")
    parser.add_argument("--keep", type=Path, help="folder to write mutants that broke something to")
    return _run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

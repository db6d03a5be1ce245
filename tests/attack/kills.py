"""Kill runs at any moment and resume them: same bits, no truncated and no leftover files.

    python -m tests.attack.kills --kills 20 --seed 1

kills `streamsel select` and `reduce` on every format, at random moments of every phase, and repeats
each with `--resume`. The files at the end must equal those of an undisturbed run. It exits with 1
if they do not, and prints how to reproduce it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tests.attack._killing import PHASES, Ended, Folder, killed_run, whole_run
from tests.attack._wide_files import FORMATS, wide_files
from tests.signals import hear_signals

if TYPE_CHECKING:
    from collections.abc import Sequence

# For each command, one method with a bounded pool and one that keeps all columns; --out in every
# format. All use --no-exact: its default depends on --checkpoint, which some killed runs lack.
RUNS = {
    "select": (
        ("--method", "ProjSe", "-k", "20", "--max-candidates", "60", "--no-exact"),
        ("--method", "SelectKBest", "-k", "50"),
    ),
    "reduce": (
        ("--method", "SOSPCA", "-q", "10"),
        ("--method", "RidgeComponents", "-q", "10", "--max-support", "100"),
    ),
}
SUFFIXES = (".parquet", ".csv", ".npy", ".feather")
CASES = tuple(product(RUNS, FORMATS))
# The file may be complete before the signal arrives; then another moment is drawn, 6 in total.
TRIES = 6


class Attack:
    """Kills runs on files of one size.

    Parameters
    ----------
    folder
    Folder of all files.
    n_rows, n_columns
    Size of the files.
    """

    def __init__(self, folder: Path, n_rows: int, n_columns: int) -> None:
        self._folder = folder
        self._files = wide_files(folder, n_rows, n_columns)
        self._whole: dict[tuple[str, ...], Ended] = {}

    def kill(self, index: int, seed: int) -> tuple[str, str]:
        """Kill a run; return the phase, and a description of the defect ("" if there is none)."""
        phase = PHASES[(index + index // len(FORMATS) + index // len(CASES)) % len(PHASES)]
        wrong = "missed"
        for attempt in range(TRIES):
            rng = random.Random(f"{seed} {index} {attempt}")  # noqa: S311
            wrong = self._kill(index, phase, rng)
            if wrong != "missed":
                break
        return phase, wrong

    def _kill(self, index: int, phase: str, rng: random.Random) -> str:
        which, form = CASES[index % len(CASES)]
        # In a small attack each format is used with one method, so that few undisturbed runs are
        # needed.
        turn = index % len(CASES) + index // (len(CASES) * len(PHASES))
        method = RUNS[which][turn % len(RUNS[which])]
        out = "out" + SUFFIXES[turn % len(SUFFIXES)]
        file = self._files[form]
        command = (which, str(file.path), *method, *file.arguments)
        key = (*command, out)
        if key not in self._whole:
            self._whole[key] = whole_run(self._fresh("whole", command, out))
        return killed_run(self._fresh("killed", command, out), phase, rng, self._whole[key])

    def _fresh(self, name: str, command: Sequence[str], out: str) -> Folder:
        path = self._folder / name
        shutil.rmtree(path, ignore_errors=True)
        return Folder(path, command, out)


def table(counts: dict[tuple[str, str], Counter[str]]) -> str:
    """Return one line for each kind of run: survived and killed runs in each phase."""
    lines = [f"{'':22}" + "".join(f"{phase:>12}" for phase in PHASES)]
    for case in CASES:
        count = counts.get(case, Counter())
        cells = [f"{count[phase, 'survived']}/{count[phase, 'killed']}" for phase in PHASES]
        lines.append(f"{' '.join(case):22}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def _run(options: argparse.Namespace) -> int:
    counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    bad = missed = 0
    indices = range(options.kills) if options.index is None else [options.index]
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        attack = Attack(Path(folder), options.rows, options.columns)
        for index in indices:
            phase, wrong = attack.kill(index, options.seed)
            case = CASES[index % len(CASES)]
            if wrong == "missed":
                missed += 1
                continue
            count = counts.setdefault(case, Counter())
            count[phase, "killed"] += 1
            count[phase, "survived"] += not wrong
            if wrong:
                bad += 1
                again = f"--seed {options.seed} --index {index}"
                print(f"{' '.join(case)}, {phase}: {wrong} ({again})", flush=True)
    print(table(counts))
    print(f"{len(indices) - missed - bad} of {len(indices) - missed} survived, {missed} missed")
    # Missed moments test nothing: an attack with too many of them fails.
    return 1 if bad or missed * 4 > len(indices) else 0


def main() -> int:
    """Run the attack."""
    hear_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how many runs are killed")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--index", type=int, help="only this one")
    parser.add_argument("--rows", type=int, default=400, help="of the files")
    parser.add_argument("--columns", type=int, default=6_000, help="of the files")
    return _run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

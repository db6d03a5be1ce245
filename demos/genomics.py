"""Genotypes of a cohort, from files to a picture: what a geneticist would do, command by command.

python demos/genomics.py [--out FOLDER] [--variants 20000]

Writes a cohort as it comes from others: genotypes in PLINK's format (`cohort.bed`, `.bim`, `.fam`),
and a table of phenotypes in another order, which lacks some people, and the phenotype of others.
Twelve variants raise the phenotype, of which some are linked with neighbours; age does, too. Then
it runs the commands of the guide (docs/pages/genomics.md), one after another, and shows each with
the time that it took.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N, CAUSES, MISSING = 500, 12, 0.0005
# People who are not in the clinic's table, and further ones whose phenotype is not.
ABSENT, UNKNOWN = 10, 5


def make_the_cohort(folder: Path, p: int, rng: np.random.Generator) -> set[str]:
    """Write the files; return the names of the variants that matter."""
    frequency = rng.uniform(0.05, 0.5, size=p)
    genotypes = rng.binomial(2, frequency, size=(N, p)).astype(np.int8)
    for j in np.flatnonzero(rng.random(p) < 0.3):  # linked with the one before
        same = rng.random(N) < 0.8
        genotypes[same, j] = genotypes[same, j - 1]
    causes = rng.choice(p, CAUSES, replace=False)
    age = rng.uniform(30, 70, size=N)
    standard = (genotypes[:, causes] - genotypes[:, causes].mean(0)) / genotypes[:, causes].std(0)
    phenotype = 0.35 * standard.sum(1) + 0.04 * age + rng.normal(size=N)
    genotypes[rng.random((N, p)) < MISSING] = -1

    people, variants = [f"I{i:04}" for i in range(N)], [f"rs{1000 + j}" for j in range(p)]
    # PLINK's codes: 00 two of the first allele, 10 one, 11 none, 01 missing; four people a byte.
    codes = np.array([0b11, 0b10, 0b00, 0b01], np.uint8)[genotypes]
    codes = np.vstack([codes, np.zeros((-N % 4, p), np.uint8)]).reshape(-1, 4, p)
    packed = codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6
    (folder / "cohort.bed").write_bytes(b"\x6c\x1b\x01" + packed.T.tobytes())
    with (folder / "cohort.bim").open("w") as file:
        file.writelines(f"1\t{name}\t0\t{500 * j}\tA\tG\n" for j, name in enumerate(variants))
    with (folder / "cohort.fam").open("w") as file:
        file.writelines(f"F{i}\t{name}\t0\t0\t1\t-9\n" for i, name in enumerate(people))
    with (folder / "clinic.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["iid", "age", "ldl"])
        for place, i in enumerate(rng.permutation(N)[ABSENT:].tolist()):
            known = "" if place < UNKNOWN else f"{phenotype[i]:.3f}"
            table.writerow([people[i], f"{age[i]:.1f}", known])
    return {variants[j] for j in causes}


COHORT = "cohort.bed --target-file clinic.csv --id IID=iid --target ldl"
COMMANDS = (
    f"select {COHORT} --covariate age -k 12 -m ldl.model --keep IID -o selected.csv",
    "report ldl.model -o page.html",
    "plot ldl.model --kind manhattan -o relevance.svg",
    f"stability {COHORT} --covariate age -k 12 -o stability.csv",
    f"evaluate {COHORT} --covariate age -k 5,12,25",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--variants", type=int, default=5_000)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="genomics-"))
    out.mkdir(parents=True, exist_ok=True)
    causes = make_the_cohort(out, options.variants, np.random.default_rng(0))
    for command in COMMANDS:
        print(f"\n$ streamsel {command}", flush=True)
        start = time.perf_counter()
        words = [sys.executable, "-m", "streamsel", *command.split()]
        subprocess.run(words, cwd=out, check=True)  # noqa: S603 (ours)
        print(f"({time.perf_counter() - start:.1f} s)")
    with (out / "selected.csv").open() as file:
        selected = next(csv.reader(file))[1:]
    print(f"\nof {len(selected)} selected {len(causes & {*selected})} were planted. Written: {out}")


if __name__ == "__main__":
    main()

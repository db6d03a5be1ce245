"""The genotypes of a cohort: an association study by the command `streamsel`, step by step.

python demos/genomics.py [--out FOLDER] [--variants 20000]

The script generates a cohort: genotypes in PLINK's format (`cohort.bed`, `.bim`, `.fam`), and a
table of phenotypes (`clinic.csv`), whose rows are in another order. Some people are not in the
table, and the phenotype of some others is missing. Twelve causal variants and age raise the
phenotype. 30 % of the variants are in linkage disequilibrium with the variant before.

Then it runs selection, HTML report, Manhattan plot, stability and evaluation, and shows each
command with its time. docs/pages/genomics.md has the guide.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_PEOPLE, N_CAUSES, MISSING_RATE = 500, 12, 0.0005
# The number of people without a row in the table, and of those with a row, but no phenotype.
N_ABSENT, N_UNKNOWN = 10, 5


def write_cohort(folder: Path, p: int, rng: np.random.Generator) -> set[str]:
    """Write the files; return the names of the causal variants."""
    frequency = rng.uniform(0.05, 0.5, size=p)
    genotypes = rng.binomial(2, frequency, size=(N_PEOPLE, p)).astype(np.int8)
    for j in np.flatnonzero(rng.random(p) < 0.3):  # copies of the variant before
        is_copied = rng.random(N_PEOPLE) < 0.8
        genotypes[is_copied, j] = genotypes[is_copied, j - 1]
    causes = rng.choice(p, N_CAUSES, replace=False)
    age = rng.uniform(30, 70, size=N_PEOPLE)
    causal = genotypes[:, causes]
    standardized = (causal - causal.mean(0)) / causal.std(0)
    phenotype = 0.35 * standardized.sum(1) + 0.04 * age + rng.normal(size=N_PEOPLE)
    genotypes[rng.random((N_PEOPLE, p)) < MISSING_RATE] = -1

    people = [f"I{i:04}" for i in range(N_PEOPLE)]
    variants = [f"rs{1000 + j}" for j in range(p)]
    # PLINK's codes, by the number of copies of the first allele: 0 is 11, 1 is 10, 2 is 00; missing
    # is 01. The index -1 of a missing genotype selects the last one. A byte has four people.
    codes = np.array([0b11, 0b10, 0b00, 0b01], np.uint8)[genotypes]
    codes = np.vstack([codes, np.zeros((-N_PEOPLE % 4, p), np.uint8)]).reshape(-1, 4, p)
    packed = codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6
    (folder / "cohort.bed").write_bytes(b"\x6c\x1b\x01" + packed.T.tobytes())
    with (folder / "cohort.bim").open("w") as file:
        file.writelines(f"1\t{name}\t0\t{500 * j}\tA\tG\n" for j, name in enumerate(variants))
    with (folder / "cohort.fam").open("w") as file:
        file.writelines(f"F{i}\t{name}\t0\t0\t1\t-9\n" for i, name in enumerate(people))
    with (folder / "clinic.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["iid", "age", "ldl"])
        for row, i in enumerate(rng.permutation(N_PEOPLE)[N_ABSENT:].tolist()):
            ldl = "" if row < N_UNKNOWN else f"{phenotype[i]:.3f}"
            table.writerow([people[i], f"{age[i]:.1f}", ldl])
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
    causal = write_cohort(out, options.variants, np.random.default_rng(0))
    for command in COMMANDS:
        print(f"\n$ streamsel {command}", flush=True)
        start = time.perf_counter()
        words = [sys.executable, "-m", "streamsel", *command.split()]
        subprocess.run(words, cwd=out, check=True)  # noqa: S603 (ours)
        print(f"({time.perf_counter() - start:.1f} s)")
    with (out / "selected.csv").open() as file:
        selected = next(csv.reader(file))[1:]  # without the column of identifiers
    n_causal = len(causal.intersection(selected))
    print(f"\n{n_causal} of the {len(selected)} selected variants are causal. Files: {out}")


if __name__ == "__main__":
    main()

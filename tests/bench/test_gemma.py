"""Compare the command with GEMMA on the same .bed file of related mice."""

import csv
import shutil
import subprocess
import sys

import numpy as np
import pytest
from bed_reader import to_bed

GEMMA = shutil.which("gemma")
# GEMMA estimates the variance ratio again with every marker, which matters for large effects.
MAX_SHIFT, MAX_ERROR, MAX_LOG10 = 0.15, 0.05, 1.0


@pytest.fixture(scope="module")
def mice(dataset, tmp_path_factory):
    """Write the mice as .bed, with the phenotype in the .fam file."""
    if GEMMA is None:
        pytest.skip("gemma is not installed")
    X, y, _, archive = dataset("mouse_hs1940")
    folder = tmp_path_factory.mktemp("mice")
    kept = np.flatnonzero(np.ptp(X, axis=0))
    properties = {
        "iid": [f"m{i}" for i in range(len(y))],
        "sid": [f"s{j}" for j in kept],
        "chromosome": archive["chromosome"][kept],
        "bp_position": kept,
        "pheno": [f"{value:.10g}" for value in y],
    }
    to_bed(folder / "x.bed", np.asfortranarray(X[:, kept]), properties=properties)
    return folder


def test_mixed_model_association(mice, against):
    """Time relatedness, variance components and tests of all markers, from files to files."""

    def run(*line):
        subprocess.run(line, cwd=mice, check=True, capture_output=True)

    def theirs():
        run(GEMMA, "-bfile", "x", "-gk", "1", "-o", "K")
        run(GEMMA, "-bfile", "x", "-k", "output/K.cXX.txt", "-lmm", "1", "-maf", "0", "-o", "lmm")

    def ours():
        line = ["select", "x.bed", "--target", "phenotype", "--method", "SelectKBest", "-k", "5"]
        line += ["--relatedness", "auto", "--statistics", "ours.csv"]
        run(sys.executable, "-m", "streamsel", *line)

    against("select --relatedness auto, 1,410 mice / gemma -gk 1, -lmm 1", ours, theirs, rounds=3)
    with (mice / "output/lmm.assoc.txt").open() as file:
        found = {row["rs"]: row for row in csv.DictReader(file, delimiter="\t")}
    with (mice / "ours.csv").open() as file:
        mine = {row["name"]: row for row in csv.DictReader(file)}
    assert found.keys() == mine.keys()
    pairs = [(found[name], mine[name]) for name in found]
    assert all(one["allele1"] == other["effect_allele"] for one, other in pairs)
    beta, error, p = (
        np.array([float(one[key]) for one, _ in pairs]) for key in ("beta", "se", "p_wald")
    )
    effect, standard_error, p_value = (
        np.array([float(other[key]) for _, other in pairs])
        for key in ("effect", "standard_error", "p_value")
    )
    assert np.abs((beta - effect) / standard_error).max() < MAX_SHIFT
    assert np.abs(error / standard_error - 1.0).max() < MAX_ERROR
    assert np.abs(np.log10(p) - np.log10(p_value)).max() < MAX_LOG10

"""Compare pruning of correlated columns with feature-engine on frames, and PLINK on genotypes.

The table shows how many columns each keeps, and the largest r² of two kept columns in a window.
"""

import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from bed_reader import to_bed

from streamsel.stream import iter_bed, prune
from tests.bench.jobs import QUICK

R, R2, WINDOW = 0.9, 0.2, 100
HEAD = ("data", "program", "seconds", "peak memory, MiB", "kept", "largest r² of kept")
# Runs a program, and prints the peak memory of its process alone.
PEAK = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
    "capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
)


@pytest.fixture
def note_result(table):
    """Add a program's cost, and the columns of X that it kept, to the table."""

    def add(data, program, seconds, memory, kept, X, window):
        row = (
            f"{seconds:.3g}",
            f"{memory:.0f}",
            f"{len(kept):,}",
            f"{largest_r2(X, kept, window):.3f}",
        )
        table("pruning", HEAD, (data, program, *row))

    return add


def largest_r2(X, kept, window):
    """Return the largest r² of two kept columns that are less than `window` columns apart."""
    kept = np.sort(kept)
    Z = X[:, kept] - X[:, kept].mean(axis=0)
    Z /= np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
    largest = 0.0
    for i in range(len(kept)):
        last = np.searchsorted(kept, kept[i] + window)
        largest = max(largest, np.square(Z[:, i] @ Z[:, i + 1 : last]).max(initial=0.0))
    return largest


def peak(run):
    """Return by how many MiB the memory rises, as Python and NumPy report it."""
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


@pytest.fixture
def repetitive(size):
    """Return noisy copies of a twelfth as many columns, and a target; both for pandas too."""
    pd = pytest.importorskip("pandas")
    n, p = 1_000, size(2_000)
    rng = np.random.default_rng(0)
    base = rng.normal(size=(n, p // 12))
    X = np.asfortranarray(base[:, rng.integers(p // 12, size=p)] + 0.2 * rng.normal(size=(n, p)))
    y = X[:, :20].sum(axis=1) + rng.normal(size=n)
    return X, y, pd.DataFrame(X, columns=[f"x{j:06}" for j in range(p)]), pd.Series(y)


def names_of(stream):
    return [name for block in stream.blocks() for name in block.names]


def test_against_pandas(paired, against, note_result, repetitive):
    """Compare with the correlation matrix alone, which DropCorrelatedFeatures and others need."""
    X, _, frame, _ = repetitive
    what = f"prune, {X.shape[0]:,} × {X.shape[1]:,}, |r| < {R} / pandas corr, without a selection"
    against(what, lambda: names_of(prune(X, R)), frame.corr, rounds=1)


@pytest.mark.parametrize("program", ["DropCorrelatedFeatures", "SmartCorrelatedSelection"])
def test_against_feature_engine(paired, note_result, repetitive, program):
    selection = pytest.importorskip("feature_engine.selection")
    X, y, frame, series = repetitive
    if program == "SmartCorrelatedSelection":
        options, ours = {"selection_method": "corr_with_target"}, {"by": "relevance", "target": y}
    else:
        options, ours = {}, {}

    def theirs():
        peer = getattr(selection, program)(threshold=R, **options)
        return peer.fit_transform(frame, series).columns.str[1:].astype(int).tolist()

    def mine():
        return names_of(prune(X, R, **ours))

    data = f"{X.shape[0]:,} × {X.shape[1]:,} numbers, r² < {R * R:.2f}"
    seconds, limit, _ = paired(f"prune / {program}", mine, theirs, rounds=1)
    assert sorted(theirs()) == mine()
    what = f"prune by {ours.get('by', 'first')}"
    note_result(data, what, seconds, peak(mine), mine(), X, np.inf)
    note_result(data, program, limit, peak(theirs), theirs(), X, np.inf)


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory):
    """Write variants of one chromosome, in linkage disequilibrium, as .bed."""
    n, p = 2_000, 2_000 if QUICK else 40_000
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=np.int8, order="F")
    # Haplotypes are mosaics of founders; most alleles of a variant are copied from an earlier one.
    founders = rng.integers(60, size=2 * n)
    alleles = rng.random((20, 60)) < rng.uniform(0.05, 0.5, size=(20, 1))
    for j in range(p):
        switches = rng.random(2 * n) < 0.02
        founders[switches] = rng.integers(60, size=int(switches.sum()))
        new = rng.random(60) < rng.uniform(0.05, 0.5)
        own = alleles[j % 20] = np.where(rng.random(60) < 0.1, new, alleles[rng.integers(20)])
        X[:, j] = own[founders[:n]].astype(np.int8) + own[founders[n:]]
    return X, written(X, tmp_path_factory.mktemp("genotypes"))


@pytest.fixture
def mice(dataset, tmp_path):
    X = dataset("mouse_hs1940")[0]
    X = np.asfortranarray(X[:, np.ptp(X, axis=0) > 0])
    return X, written(X, tmp_path)


def written(X, folder):
    n, p = X.shape
    to_bed(
        folder / "x.bed",
        X,
        properties={
            "iid": [f"i{i}" for i in range(n)],
            "sid": [f"s{j}" for j in range(p)],
            "chromosome": ["1"] * p,
            "bp_position": range(1, p + 1),
            "allele_1": ["A"] * p,
            "allele_2": ["C"] * p,
        },
    )
    return folder


@pytest.mark.parametrize("program", ["plink1.9", "plink2"])
@pytest.mark.parametrize("data", ["genotypes", "mice"])
def test_against_plink(paired, note_result, request, data, program):
    """Time from the file to the list of variants; both compare those up to WINDOW apart."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    X, folder = request.getfixturevalue(data)
    line = [program, "--bfile", str(folder / "x"), "--threads", "1", "--out", str(folder / "o")]
    line += ["--indep-pairwise", str(WINDOW + 1), "1", str(R2)]

    def theirs():
        subprocess.run(line, check=True, capture_output=True)
        return [int(name[1:]) for name in (folder / "o.prune.in").read_text().split()]

    def mine():
        stream = iter_bed(folder / "x.bed")
        return [int(name[1:]) for name in names_of(prune(stream, np.sqrt(R2), window=WINDOW))]

    what = f"{data}, {X.shape[0]:,} × {X.shape[1]:,}, r² < {R2}, up to {WINDOW} columns apart"
    seconds, limit, _ = paired(f"prune, {what} / {program}", mine, theirs, rounds=3)
    command = [sys.executable, "-S", "-c", PEAK, *line]
    memory = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    note_result(what, "prune", seconds, peak(mine), mine(), X.astype(float), WINDOW + 1)
    note_result(what, program, limit, memory, theirs(), X.astype(float), WINDOW + 1)

"""Learn generated columns from moments alone; compare with computed columns, and with peers."""

import shutil
import subprocess

import numpy as np
import pytest

from streamsel import SOSPCA, ProjSe, SelectKBest
from streamsel._utils.system import resident_bytes
from streamsel.stream import ColumnStream, iter_bed, iter_interactions, iter_lags, iter_polynomials

PLINK = shutil.which("plink1.9")
LEARNERS = {
    "SelectKBest": lambda: SelectKBest(10, max_candidates=500),
    "ProjSe": lambda: ProjSe(10, max_candidates=500),
    "SOSPCA": lambda: SOSPCA(10),
}


def computed(source):
    """Return a stream of the same columns that computes their values."""
    return ColumnStream(source.blocks, n_rows=source.n_rows, n_columns=source.n_columns)


def learnt(learner, source, y):
    model = LEARNERS[learner]()
    model.learn_target(y)
    model.learn_columns(source)
    return model


@pytest.fixture(scope="module")
def genotypes(dataset):
    """Return 1,500 polymorphic markers of mice, as int8, and the phenotype."""
    X, y, _, _ = dataset("mouse_hs1940")
    return np.ascontiguousarray(X[:, np.ptp(X, axis=0) > 0][:, ::6][:, :1500]).astype(np.int8), y


@pytest.fixture(params=["float64", "int8"])
def base(request, size):
    if request.param == "int8":
        X, y = request.getfixturevalue("genotypes")
        return X[:, : size(1500)], y
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, size(1500)))
    return X, X[:, 3] * X[:, 7] + rng.normal(size=1000)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("adjusted", [False, True], ids=["products", "adjusted"])
def test_pairs(against, base, learner, adjusted):
    X, y = base
    source = iter_interactions(X, adjust_for_main_effects=adjusted)
    against(
        f"{learner}, {source.n_columns:,} {'adjusted ' * adjusted}pairs of {X.dtype}, "
        f"n={len(X):,} / the pairs as computed columns",
        lambda: learnt(learner, source, y),
        lambda: learnt(learner, computed(source), y),
        threshold=0.2,
        rounds=3,
    )


def test_pairs_of_scikit_learn(against, size):
    from sklearn.feature_selection import f_regression
    from sklearn.preprocessing import PolynomialFeatures

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, size(400)))
    y = X[:, 3] * X[:, 7] + rng.normal(size=1000)
    found = {}

    def ours():
        found["ours"] = learnt("SelectKBest", iter_polynomials(X, interaction_only=True), y)

    def theirs():
        features = PolynomialFeatures(2, interaction_only=True, include_bias=False)
        F, _ = f_regression(features.fit_transform(X), y)
        best = np.argsort(-F)[:10]
        found["theirs"] = [tuple(np.flatnonzero(features.powers_[j]).tolist()) for j in best]

    what = f"SelectKBest, {X.shape[1]} columns and their pairs / PolynomialFeatures, f_regression"
    against(what, ours, theirs, rounds=3)
    names = [one if isinstance(one, tuple) else (one,) for one in found["ours"].selected]
    assert names == found["theirs"]


@pytest.mark.parametrize(
    ("length", "n_series", "max_lag"), [(1100, 2000, 100), (21_000, 100, 1000)]
)
def test_lags(against, size, length, n_series, max_lag):
    rng = np.random.default_rng(0)
    source = iter_lags(rng.normal(size=(length, size(n_series))), max_lag)
    y = rng.normal(size=source.n_rows)
    against(
        f"SelectKBest, {source.n_columns:,} lags up to {max_lag}, n={source.n_rows:,} / the lags as"
        " computed columns",
        lambda: learnt("SelectKBest", source, y),
        lambda: learnt("SelectKBest", computed(source), y),
        threshold=0.2,
        rounds=3,
    )


def test_epistasis_of_plink(against, genotypes, tmp_path):
    """Test every pair of markers of a .bed file on one thread, from files to results."""
    from bed_reader import to_bed

    if PLINK is None:
        pytest.skip("plink1.9 is not installed")
    X, y = genotypes
    p = X.shape[1]
    properties = {
        "iid": [f"m{i}" for i in range(len(y))],
        "sid": [f"s{j}" for j in range(p)],
        "chromosome": ["1"] * p,
        "bp_position": np.arange(1, p + 1),
        "pheno": [f"{value:.10g}" for value in y],
    }
    to_bed(tmp_path / "x.bed", np.asfortranarray(X), properties=properties)
    found = {}

    def ours():
        pairs = iter_interactions(iter_bed(tmp_path / "x.bed"), adjust_for_main_effects=True)
        found["pairs"], found["model"] = pairs, learnt("SelectKBest", pairs, y)

    def theirs():
        line = [PLINK, "--bfile", "x", "--epistasis", "--epi1", "1e-8", "--allow-no-sex"]
        subprocess.run([*line, "--threads", "1"], cwd=tmp_path, check=True, capture_output=True)

    n_pairs = p * (p - 1) // 2
    what = f"SelectKBest, {n_pairs:,} adjusted pairs of a .bed file, n={len(y):,}"
    against(f"{what} / plink1.9 --epistasis", ours, theirs, rounds=3)
    lines = (tmp_path / "plink.epi.qt").read_text().split("\n")[1:-1]
    slopes = {frozenset((cells[1], cells[3])): float(cells[4]) for cells in map(str.split, lines)}
    selected = found["model"].selected
    for name, column in found["pairs"].take(selected).items():
        slope = column @ (y - y.mean()) / (column @ column)
        assert slopes[frozenset(name)] == pytest.approx(slope, rel=1e-4)
    assert (
        frozenset(selected[0])
        == min(
            (float(cells[6]), frozenset((cells[1], cells[3]))) for cells in map(str.split, lines)
        )[1]
    )


def test_memory_of_ten_million_pairs(benchmark, report, size):
    """The memory of a process hardly grows, whatever the number of pairs."""
    rng = np.random.default_rng(0)
    y, X = rng.normal(size=1000), rng.binomial(2, 0.3, size=(1000, size(4500))).astype(np.int8)
    learnt("SelectKBest", iter_interactions(X[:, :500]), y)
    source = iter_interactions(X)
    before = resident_bytes()
    benchmark.pedantic(learnt, ("SelectKBest", source, y), rounds=1)
    grown = (resident_bytes() - before) / 2**20
    what = f"SelectKBest, {source.n_columns:,} pairs: growth of resident memory"
    report(what, f"{grown:.0f} MiB", threshold="≤ 64 MiB", met=grown <= 64)

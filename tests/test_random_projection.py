"""Random projections and Fourier features: bit-identical everywhere, with theoretical bounds."""

import hashlib
import json
import math
import os
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from river import compose, linear_model
from river.checks import yield_checks
from scipy import stats
from scipy.spatial.distance import pdist

from streamsel import RandomFourier, RandomProjection
from streamsel.base import hashed_extractor
from streamsel.data.names import NameHash, encode_name
from tests.reference import random_projection as reference

KINDS = ("sign", "gaussian", "sparse")
NAMES = [0, -7, 2**63 - 1, 2**70, "new york", "é\ud800", "", b"x", ("word", 3), None, 2.5, 1j]
NAMES += [frozenset({"a", "b", 1}), (("a",), "b"), ("a", ("b",)), -(2**63)]


def entries(kind="gaussian", names=NAMES, k=70):
    return RandomProjection(k, kind=kind, seed=3).to_matrix(names)


# ------------------------------------------------------------------------------------ the same bits


@pytest.mark.parametrize("kind", KINDS)
def test_entries_equal_the_definition(kind):
    names = [*range(-20, 20), "a", "b c", 2**63 - 1, -(2**63)]
    found = RandomProjection(130, kind=kind, density=0.2, seed=11).to_matrix(names)
    expected = reference.matrix(names, 130, kind, 0.2, 11)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


# These values must never change, on any platform.
GOLDEN = {
    0: ("0x1.947c64c0a5902p-2 0x1.6d9bb353eab14p-4 -0x1.e6a9b553b4ec9p-4 -0x1.5c09faff93b90p-7"),
    "new york": (
        "-0x1.8b0e7cddb0f3ep-4 -0x1.afd1907d789c2p-7 -0x1.4de2739a9c192p-6 -0x1.b5a044ac3736ap-1"
    ),
    ("word", 3): (
        "0x1.2cc3c231a758fp-2 0x1.72b449141ec43p-1 -0x1.0806bbf9186cep-1 -0x1.92444913817f5p-6"
    ),
}
DIGESTS = {
    "sign": "b189549b7c19289bf1e1816d97e0b1507326b978174adcc1fefa8a7c96766f10",
    "gaussian": "e2d06fbf615ee4ed4630411a6942ee98ab329107808defce8715b4e34a4aa503",
    "sparse": "157683fb1fe83f1cf10335d8290f505c8cd4e72cb9a8489174cad8e9fc23fe35",
}


def test_entries_equal_stored_values():
    for name, expected in GOLDEN.items():
        found = RandomProjection(4, kind="gaussian").to_matrix([name])[0]
        assert " ".join(map(float.hex, found.tolist())) == expected
    for kind, digest in DIGESTS.items():
        assert hashlib.sha256(entries(kind).astype("<f8").tobytes()).hexdigest() == digest


@pytest.mark.slow
def test_entries_are_equal_in_other_processes():
    """Entries do not depend on the process or its hash seed."""
    code = (
        "import json; from streamsel import RandomFourier, RandomProjection\n"
        f"names = {NAMES!r}\n"
        "found = [RandomProjection(70, kind=kind, seed=3).to_matrix(names).tobytes().hex()\n"
        f"         for kind in {KINDS!r}]\n"
        "row = dict.fromkeys(names, 0.01)\n"
        "found.append([v.hex() for v in RandomFourier(9).transform_one(row).values()])\n"
        "print(json.dumps(found))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    *found, fourier = json.loads(outputs[0])
    assert found == [entries(kind).tobytes().hex() for kind in KINDS]
    row = dict.fromkeys(NAMES, 0.01)
    assert fourier == [v.hex() for v in RandomFourier(9).transform_one(row).values()]


def test_equal_names_have_equal_keys():
    groups = [
        (1, 1.0, True, np.int8(1), np.float32(1), np.True_, 1 + 0j),
        (2.5, np.float32(2.5), np.float64(2.5)),
        ("a", np.str_("a")),
        (1j, np.complex128(1j)),
        (2**70, 2.0**70),
        (("a", 1), ("a", 1.0)),
    ]
    keys = NameHash(0, "test")
    for group in groups:
        assert len({int(keys([name])[0]) for name in group}) == 1, group
    assert len(set(keys(NAMES).tolist())) == len(NAMES)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True))
def test_integers_have_distinct_keys(whole):
    keys = NameHash(0, "test")
    found = keys(whole)
    assert len(set(found.tolist())) == len(whole)
    assert found.tolist() == [int(keys((name, "text"))[0]) for name in whole]


def test_names_that_show_addresses_are_refused():
    with pytest.raises(TypeError, match=r"Expected[\s\S]*Got[\s\S]*Hint"):
        encode_name(object())


def test_fewer_components_are_the_first_of_more():
    for kind in KINDS:
        few, many = entries(kind, k=10) * math.sqrt(10), entries(kind, k=130) * math.sqrt(130)
        np.testing.assert_allclose(few, many[:, :10], rtol=1e-15)


# ------------------------------------------------------------------------------------- distribution


@pytest.mark.parametrize("names", [range(2000), [f"v{j}" for j in range(2000)]], ids=["int", "str"])
def test_gaussian_entries_are_normal(names):
    """Entries are normal in moments, tails and distribution, and uncorrelated."""
    W = entries("gaussian", names, k=100) * 10.0
    w, size = W.ravel(), W.size
    assert stats.kstest(w, "norm").pvalue > 1e-3
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        spread = math.sqrt((stats.norm.moment(2 * power) - moment**2) / size)
        assert abs((w**power).mean() - moment) < 4.5 * spread, power
    for far in (2.0, 3.0, 4.0):
        expected = size * 2.0 * stats.norm.sf(far)
        assert abs((np.abs(w) > far).sum() - expected) < 4.5 * math.sqrt(expected)
    correlation = np.corrcoef(W.T) - np.eye(100)
    assert np.abs(correlation).max() < 5.5 / math.sqrt(2000)


@pytest.mark.parametrize(("kind", "density"), [("sign", 1.0), ("sparse", 1 / 3), ("sparse", 0.01)])
def test_signs_are_even_and_independent(kind, density):
    d = 0.5 if kind == "sign" else density
    W = RandomProjection(128, kind=kind, density=d).to_matrix(range(4000)) * math.sqrt(128)
    signs, size = np.sign(W), W.size
    assert set(np.unique(np.abs(W)).round(9)) <= {0.0, round(1.0 / math.sqrt(density), 9)}
    assert abs(np.abs(signs).sum() - size * density) <= 4.5 * math.sqrt(size * density)
    assert abs(signs.sum()) < 4.5 * math.sqrt(size * density)
    products = W.T @ W / 4000 - np.diag((W**2).mean(axis=0))
    assert np.abs(products).max() < 5.5 / math.sqrt(4000) * max(1.0, 0.2 / math.sqrt(density))
    # Adjacent names and adjacent components.
    for one, other in ((W[1:], W[:-1]), (W[:, 1:], W[:, :-1])):
        assert abs((one * other).mean()) < 5.0 / math.sqrt(size)


# ------------------------------------------------------------------------------- guarantees


def test_number_of_components():
    """The number of components follows the theorem of Achlioptas (2003)."""
    assert RandomProjection.n_components_for(1000, 0.2, 1.0) == math.ceil(
        6.0 / (0.02 - 0.008 / 3.0) * math.log(1000)
    )
    X = np.random.default_rng(0).normal(size=(40, 30))
    model = RandomProjection(None, eps=0.5, beta=0.5)
    model.learn_columns(X)
    k = RandomProjection.n_components_for(40, 0.5, 0.5)
    assert model.embedding.shape == (40, k)
    assert len(model.components) == k
    model.learn_one({0: 1.0})
    assert len(model.transform_one({0: 1.0})) == k


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_preserved(kind):
    """Nearly all projections, a share of 1 - n^-beta, preserve all pairwise distances."""
    n, eps, beta = 20, 0.5, 1.0
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 300)) * (rng.random((n, 300)) < 0.3)
    before, failed = pdist(X, "sqeuclidean"), 0
    for seed in range(60):
        model = RandomProjection(None, kind=kind, eps=eps, beta=beta, seed=seed)
        ratio = pdist(model_of(model, X), "sqeuclidean") / before
        failed += bool((np.abs(ratio - 1.0) > eps).any())
        # Without bias: the squared distance is a mean of k squares with variance about 2.
        assert abs(ratio.mean() - 1.0) < 0.1
    assert failed <= 60 / n**beta + 1


def model_of(model, X):
    model.learn_columns(X)
    return model.embedding


def test_products_of_fourier_features_estimate_the_kernel():
    """Products of Fourier features estimate the kernel without bias, with the expected variance."""
    X = np.random.default_rng(0).normal(size=(12, 30))
    K = np.exp(-0.02 * np.square(X[:, None] - X).sum(axis=2))
    errors = []
    for seed in range(40):
        Z = model_of(RandomFourier(500, gamma=0.02, seed=seed), X)
        errors.append((Z @ Z.T - K)[np.triu_indices(12, 1)])
    errors = np.array(errors)
    assert np.abs(errors.mean(axis=0)).max() < 4.5 / math.sqrt(500 * 40)
    assert 0.5 < errors.std() * math.sqrt(500) < 1.2


# --------------------------------------------------------------------------------- columns and rows

MODELS = {
    **{kind: lambda kind=kind: RandomProjection(12, kind=kind) for kind in KINDS},
    "very sparse": lambda: RandomProjection(12, kind="sparse", density=0.05),
    "fourier": lambda: RandomFourier(12, gamma=0.01),
}
each = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@pytest.fixture(name="X")
def rows():
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(30, 200)) * 8.0) * (rng.random((30, 200)) < 0.2)


@each
def test_order_blocks_and_container_do_not_matter(make, X):
    whole = model_of(make(), X)
    turned = np.random.default_rng(1).permutation(200)
    model = make()
    for part in np.array_split(turned, 7):
        model.learn_columns(X[:, part], part.tolist())
    np.testing.assert_allclose(model.embedding, whole, rtol=1e-10, atol=1e-10)
    for other in (sp.csc_array(X), sp.csr_array(X), X.astype(np.int8), X.astype(np.float32)):
        np.testing.assert_allclose(model_of(make(), other), whole, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(make().transform_many(other), whole, rtol=1e-10, atol=1e-10)


@each
def test_merge_equals_the_whole(make, X):
    one, other = make(), make()
    one.learn_columns(X[:, :70], range(70))
    other.learn_columns(X[:, 70:], range(70, 200))
    one.merge(other)
    np.testing.assert_allclose(one.embedding, model_of(make(), X), rtol=1e-10, atol=1e-10)
    assert (one.n_columns, one.n_rows) == (200, 30)


@each
def test_transformed_rows_equal_the_embedding(make, X):
    model = make()
    model.learn_columns(X)
    Z = model.embedding
    for i, row in enumerate(X.tolist()):
        present = {j: v for j, v in enumerate(row) if v}
        gaps = present | {"not observed": math.nan, "neither": None, 3.0: row[3]}
        for x in (dict(enumerate(row)), present, gaps, dict(reversed(present.items()))):
            found = list(model.transform_one(x).values())
            np.testing.assert_allclose(found, Z[i], rtol=1e-10, atol=1e-10)
        model.learn_one(present)
    assert (model.n_rows, model.n_columns) == (60, 200)
    with pytest.raises(ValueError, match="columns only"):
        _ = model.embedding


@each
def test_missing_values_in_many_rows(make, X):
    gone = np.random.default_rng(2).random(X.shape) < 0.1
    expected = make().transform_many(np.where(gone, 0.0, X))
    with_gaps = np.where(gone, np.nan, X)
    frame = pd.DataFrame(with_gaps, columns=range(200))
    for handed_in in (with_gaps, sp.csc_array(with_gaps), frame):
        found = np.asarray(make().transform_many(handed_in))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
@each
def test_infinite_values_are_refused(make, value, X):
    X[4, 7] = value
    for handed_in in (X, sp.csc_array(X), sp.csr_array(X)):
        with pytest.raises(ValueError, match=r"7, row 4"):
            make().transform_many(handed_in)
    with pytest.raises(ValueError, match="7"):
        make().transform_one(dict(enumerate(X[4].tolist())))


def test_row_indices_beyond_the_rows_are_refused():
    matrix = sp.csc_array(np.eye(5))
    matrix.indices[2] = 50
    with pytest.raises(ValueError, match="indices out of bounds"):
        RandomProjection(3).transform_many(matrix)


def test_rows_without_a_number_of_components():
    model = RandomProjection(None)
    assert model.transform_one({"a": 1.0}) == {}
    with pytest.raises(ValueError, match=r"Expected n_components[\s\S]*Hint"):
        model.learn_one({"a": 1.0})
    assert model.n_rows == 0


@each
def test_full_weight_caches_change_nothing(make, monkeypatch):
    """A full cache of weights does not change the results."""
    monkeypatch.setattr(hashed_extractor, "_CACHE_BYTES", 30 * 12 * 8)
    rng, bounded, plain = np.random.default_rng(0), make(), make()
    for size in rng.integers(0, 45, size=60).tolist():
        names = rng.integers(0, 300, size=size).tolist()
        x = dict.fromkeys(map(str, names), 1.5)
        found, expected = bounded.transform_one(x), list(x)
        W = plain._entries.matrix(expected)
        np.testing.assert_allclose(
            list(found.values()),
            plain._components_of_sums(1.5 * W.sum(axis=0)),
            rtol=1e-10,
            atol=1e-10,
        )
        assert len(bounded._weights.index_of) <= 30
        assert len(bounded._weights.W) <= 30


@each
def test_state_of_rows_is_their_number(make):
    model = make()
    for i in range(300):
        model.learn_one({f"once {i}": 1.0, "b": float(i)})
    state = model._get_state()
    assert state["row_count"] == {"rows": 300, "n": 0}
    assert "columns" not in state
    assert model.loadings == model.in_use == {}
    assert math.isnan(model.noise_floor())


def test_fourier_features_in_a_pipeline():
    """A linear model of random Fourier features learns a nonlinear target."""
    rng = np.random.default_rng(0)
    linear = linear_model.LogisticRegression()
    model = compose.Pipeline(RandomFourier(100, gamma=0.5), linear_model.LogisticRegression())
    right = np.zeros(2)
    for i in range(1500):
        x = dict(zip("ab", rng.uniform(-2.0, 2.0, size=2).tolist(), strict=True))
        y = x["a"] * x["b"] > 0.0
        for j, one in enumerate((linear, model)):
            if i >= 1000:
                right[j] += one.predict_one(x) == y
            one.learn_one(x, y)
    assert right[0] < 330
    assert right[1] > 430


def test_order_of_features_changes_no_bit(rng):
    """The order of a row's features changes no bit, though sums of large terms are rounded."""
    model = RandomFourier(200, gamma=10.0)
    for _ in range(20):
        values = 10.0 ** rng.uniform(-3, 4, 30) * rng.normal(size=30)
        row = {f"x{j}": value for j, value in enumerate(values.tolist())}
        expected = model.transform_one(row)
        for _ in range(5):
            names = rng.permutation(list(row)).tolist()
            assert model.transform_one({name: row[name] for name in names}) == expected


def test_rivers_feature_order_check_with_many_components():
    for seed in range(3):
        random.seed(seed)
        for check in yield_checks(RandomFourier()):
            if getattr(check, "func", check).__name__ == "check_shuffle_features_no_impact":
                check(RandomFourier())

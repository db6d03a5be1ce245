"""SOSPCA against the paper's example, the n-vector reference, and its invariants."""

import importlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamsel import SOSPCA
from streamsel._kernels.relevance import rotate_and_drop
from tests.reference import sospca as reference
from tests.reference import target as space

QUICK = settings(derandomize=True, deadline=None, max_examples=60)

X_PAPER = np.array(
    [
        [2.0, 1.6667, 1.6667, -0.6667, 2.6667],
        [2.0, -0.3333, 2.6667, -1.6667, -2.3333],
        [-4.0, -1.3333, -4.3333, 2.3333, -0.3333],
    ]
)
Y_PAPER = np.array([5.3333, -4.6667, -0.6667])


def weights(model, names):
    """Return the public loadings as a dense matrix, p×q."""
    B = np.zeros((len(names), len(model.components)))
    row = {name: i for i, name in enumerate(names)}
    column = {name: k for k, name in enumerate(model.components)}
    for name, parts in model.loadings.items():
        for component, weight in parts.items():
            B[row[name], column[component]] = weight
    return B


def check(model, oracle, tol=1e-9):
    """Compare all attributes of a model with the reference."""
    q = len(oracle.Z)
    got = list(model.relevance.values())
    np.testing.assert_allclose(got[:q], oracle.relevances, atol=tol, rtol=0)
    assert set(model.loadings) == oracle.support
    B = weights(model, range(len(oracle.B)))
    np.testing.assert_allclose(B[:, :q], oracle.B, atol=tol, rtol=0)
    if q:
        Z = oracle.embedding
        np.testing.assert_allclose(model.embedding[:, :q], Z, atol=tol * np.abs(Z).max(), rtol=0)


def test_the_example_of_the_paper():
    """The iteration with x₅, by hand, to four decimals.

    After x₄ the components are z₀ = .5206 x₁ + .8538 x₄ = (.4721, −.3817, −.0903), relevance
    .9978, at the index of x₁, and z₁ = x₂ = (1.6667, −.3333, −1.3333), relevance .7370.

    x₅ = (2.6667, −2.3333, −.3333) is half of y (5.3333, −4.6667, −.6667): its correlation is
    1.0000, above .7370, so it joins. The two least relevant are then z₁ (.7370) and z₀ (.9978), in
    this order: a is z₁, b is z₀.

        z₁·z₁ = 1.6667² + .3333² + 1.3333² = 4.6667
        z₀·z₀ = .4721² + .3817² + .0903² = .3768
        z₁·z₀ = 1.6667·.4721 + .3333·.3817 + 1.3333·.0903 = .7868 + .1272 + .1204 = 1.0345
        θ = ½ arctan(2 · 1.0345 / √(4.6667 · .3768)) = ½ arctan(2.0690 / 1.3260) = .5004
        cos θ = .8774, sin θ = .4798

        z_a = .8774 z₁ + .4798 z₀ = (1.6888, −.4756, −1.2132)
        z_b = −.4798 z₁ + .8774 z₀ = (−.3855, −.1750, .5605)

        z_a·x₅ = 4.5035 + 1.1097 + .4043 = 6.0176; ‖z_a‖ = 2.1331, ‖x₅‖ = 3.5590: relevance .7927
        z_b·x₅ = −1.0280 + .4083 − .1868 = −.8065; ‖z_b‖ = .7024: relevance −.3226

    So z_b goes. z_a has loading .8774 on x₂, and .4798 (.5206, .8538) on x₁ and x₄, that is .2498
    and .4096. It takes the lower index of the two; x₅ takes the free one.
    """
    model = SOSPCA(n_components=2, rotation="paper", signed=True)
    model.learn_target(Y_PAPER)
    names = ["x1", "x2", "x3", "x4", "x5"]

    def four(*values):
        return pytest.approx(values, abs=5.1e-5)

    def shown():
        return tuple(model.relevance.values())

    model.learn_column("x1", X_PAPER[:, 0])
    assert shown()[0] == pytest.approx(0.1147, abs=5e-5)
    model.learn_column("x2", X_PAPER[:, 1])
    assert shown() == four(0.1147, 0.7370)
    model.learn_column("x3", X_PAPER[:, 2])  # −.0175: rejected
    assert shown() == four(0.1147, 0.7370)
    assert model.loadings == {"x1": {"sospca0": 1.0}, "x2": {"sospca1": 1.0}}

    model.learn_column("x4", X_PAPER[:, 3])
    assert shown() == pytest.approx((0.997806, 0.7370), abs=5e-5)
    assert shown()[0] == pytest.approx(0.997806, abs=5e-7)
    np.testing.assert_allclose(
        weights(model, names),
        [[0.5206, 0], [0, 1], [0, 0], [0.8538, 0], [0, 0]],
        atol=5.1e-5,
    )
    np.testing.assert_allclose(
        model.embedding, [[0.4721, 1.6667], [-0.3817, -0.3333], [-0.0903, -1.3333]], atol=2e-4
    )

    model.learn_column("x5", X_PAPER[:, 4])
    assert shown() == pytest.approx((0.79266, 1.0), abs=5e-6)
    np.testing.assert_allclose(
        weights(model, names),
        [[0.2498, 0], [0.8774, 0], [0, 0], [0.4096, 0], [0, 1]],
        atol=5.1e-5,
    )
    np.testing.assert_allclose(
        model.embedding, [[1.6888, 2.6667], [-0.4756, -2.3333], [-1.2132, -0.3333]], atol=2e-4
    )


MODES = [
    (rotation, signed, kind)
    for rotation in ("jacobi", "paper")
    for signed, kind in ((False, "numeric"), (True, "numeric"), (False, "multi"), (False, "class"))
]


def made_up_target(kind, X, rng):
    n = len(X)
    if kind == "numeric":
        return X[:, ::9] @ rng.normal(size=X[:, ::9].shape[1]) + rng.normal(size=n)
    if kind == "multi":
        return X[:, :3] + X[:, 50:53] + rng.normal(size=(n, 3))
    labels = np.array(["ant", "bee", "cat", "dog"])
    return labels[(X[:, 3] + rng.normal(size=n)).argsort().argsort() * 4 // n]


def oracle_target(y):
    return space.indicators(y) if np.asarray(y).dtype.kind == "U" else y


@pytest.mark.parametrize("container", ["float64", "float32", "int8", "csc"])
@pytest.mark.parametrize(("rotation", "signed", "kind"), MODES)
def test_agrees_with_the_reference_after_every_column(rotation, signed, kind, container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 160)) + 3.0
    if container == "int8":
        X = np.round(20 * (X - 3)).clip(-127, 127).astype(np.int8)
    elif container == "float32":
        X = X.astype(np.float32)
    elif container == "csc":
        X = sp.csc_array(X * (rng.random(X.shape) < 0.2))
    dense = (X.toarray() if container == "csc" else X).astype(np.float64)
    y = made_up_target(kind, dense, rng)
    model = SOSPCA(n_components=6, rotation=rotation, signed=signed)
    model.learn_target(y)
    oracle = reference.SOSPCA(6, oracle_target(y), 160, rotation=rotation, signed=signed)
    accepted = 0
    for j in range(160):
        accepted += oracle.learn(dense[:, j])
        model.learn_column(j, X[:, [j]] if container == "csc" else X[:, j])
        check(model, oracle)
    assert accepted > 12  # there were rotations


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
@pytest.mark.parametrize(
    ("name", "signed"),
    [
        ("glioma", False),
        ("ionosphere", False),
        ("ionosphere", True),
        ("sonar", False),
        ("sonar", True),
        ("isolet", False),
        ("colon_alon", False),
        ("leukemia_golub3571", True),
        ("sms_spam", False),
        ("ml_emotions", False),
    ],
)
def test_agrees_with_the_reference_on_real_data(dataset, name, signed, rotation):
    X, y, Y2, npz = dataset(name)
    if sp.issparse(X):
        X = sp.csc_array(X)[:, :3000]
    if Y2 is not None:
        y = Y2.astype(float)
    elif signed:
        y = y.astype(float)
    else:
        y = npz["classes"][y]
    p = X.shape[1]
    model = SOSPCA(n_components=8, rotation=rotation, signed=signed)
    model.learn_target(y)
    oracle = reference.SOSPCA(8, oracle_target(y), p, rotation=rotation, signed=signed)
    for cut in np.array_split(np.arange(p), 5):
        part = X[:, cut[0] : cut[-1] + 1]
        model.learn_columns(part)
        for j in range(part.shape[1]):
            oracle.learn(part[:, [j]].toarray()[:, 0] if sp.issparse(part) else part[:, j])
        check(model, oracle)


# Few distinct values lead to ties, copies, opposites and constants; the others fill the range.
ENTRIES = st.one_of(
    st.integers(-2, 2).map(float), st.floats(-1e3, 1e3, allow_subnormal=False).map(np.float32)
)


@st.composite
def streams(draw):
    n, p = draw(st.integers(3, 12)), draw(st.integers(1, 25))
    X = draw(hnp.arrays(np.float64, (n, p), elements=ENTRIES))
    for _ in range(draw(st.integers(0, 4))):
        i, j = draw(st.integers(0, p - 1)), draw(st.integers(0, p - 1))
        X[:, i] = draw(st.sampled_from([1.0, -1.0, 2.0])) * X[:, j] + draw(st.sampled_from([0, 1]))
    c = draw(st.integers(1, 3))
    Y = draw(hnp.arrays(np.float64, (n, c), elements=ENTRIES))
    Y[0, 0] += 1.0 + abs(Y[:, 0]).max()  # not constant
    return X, Y


@pytest.mark.slow
@QUICK
@given(streams(), st.integers(1, 5), st.sampled_from(["jacobi", "paper"]), st.booleans())
def test_invariants(stream, q, rotation, one_by_one):
    """Z = X̃B on the support, BᵀB = I, stored relevance = recomputed, support ⊆ seen."""
    X, Y = stream
    # Few whole numbers would be treated as classes.
    model = SOSPCA(n_components=q, rotation=rotation, target_type="numeric")
    model.learn_target(Y)
    U = space.basis(Y)
    steps = np.split(X, X.shape[1], axis=1) if one_by_one else [X]
    seen = 0
    for step in steps:
        model.learn_columns(step)
        seen += step.shape[1]
        centred = space.centred(X)
        live = int(np.any(X[:, :seen] != X[:1, :seen], axis=0).sum())
        n_live = min(q, live)
        assert set(model.loadings) <= set(range(seen))
        B = weights(model, range(X.shape[1]))[:, :n_live]
        np.testing.assert_allclose(B.T @ B, np.eye(n_live), atol=1e-12)
        Z = model.embedding[:, :n_live]
        size = np.abs(B.T) @ np.linalg.norm(centred, axis=0)  # the scale of rounding errors
        assert (np.abs(Z - centred @ B).max(axis=0, initial=0.0) <= 1e-12 * size + 1e-300).all()
        for k, stored in enumerate(list(model.relevance.values())[:n_live]):
            assert 0.0 <= stored <= 1.0 + 1e-12
            norm = np.linalg.norm(Z[:, k])
            if norm > 1e-6 * size[k]:
                recomputed = space.relevance(Z[:, k], U)
                assert stored == pytest.approx(recomputed, abs=1e-9 + 1e-13 * size[k] / norm)


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
def test_merge_rotates_and_drops_until_q_remain(rotation):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 300))
    y = X[:, ::30].sum(axis=1) + rng.normal(size=60)
    q = 5
    left, right = SOSPCA(q, rotation=rotation), SOSPCA(q, rotation=rotation)
    oracles = []
    for model, part in ((left, range(150)), (right, range(150, 300))):
        model.learn_target(y)
        model.learn_columns(X[:, part], names=list(part))
        oracle = reference.SOSPCA(q, y, 300, rotation=rotation)
        oracle.seen = part[0]
        for j in part:
            oracle.learn(X[:, j])
        oracles.append(oracle)
        check(model, oracle)
    left.merge(right)
    first, second = oracles
    first.merge(second)
    check(left, first, tol=1e-8)
    assert left.n_columns == 300


def test_merge_of_fewer_than_q_keeps_them_all():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    left, right = SOSPCA(6), SOSPCA(6)
    for model, names in ((left, [0, 1]), (right, [2, 3])):
        model.learn_target(y)
        model.learn_columns(X[:, names], names=names)
    left.merge(right)
    assert set(left.loadings) == {0, 1, 2, 3}
    # learning continues
    left.learn_columns(rng.normal(size=(20, 30)), names=range(10, 40))
    B = weights(left, range(40))
    np.testing.assert_allclose(B.T @ B, np.eye(6), atol=1e-12)


def test_only_unsigned_admits_negative_correlations():
    rng = np.random.default_rng(3)
    y = rng.normal(size=50)
    weak, opposite = y + 9 * rng.normal(size=50), -y + 0.1 * rng.normal(size=50)
    for signed, expected in ((False, {"opposite"}), (True, {"weak"})):
        model = SOSPCA(1, signed=signed)
        model.learn_target(y)
        model.learn_column("weak", weak)
        model.learn_column("opposite", opposite)
        assert (set(model.loadings) == expected) is signed
        assert ("opposite" in model.loadings) is not signed


def test_copies_are_rejected():
    rng = np.random.default_rng(4)
    y = rng.normal(size=30)
    x = rng.normal(size=30)
    model = SOSPCA(2)
    model.learn_target(y)
    for j in range(5):  # the same column, shifted and scaled: never strictly more relevant
        model.learn_column(j, (-2.0) ** j * x + j)
    assert model.loadings == {0: {"sospca0": 1.0}, 1: {"sospca1": 1.0}}


def test_relevances_of_what_near_copies_leave_are_those_of_the_components():
    """The moments of the small component lose all but two digits, as a column in two units does."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=50), rng.normal(size=50)
        model = SOSPCA(1)
        model.learn_target(y)
        for j, column in enumerate([x, 3.0 * x * (1.0 + 1.5e-7 * rng.normal(size=50))]):
            model.learn_column(j, column)
        expected = space.relevance(model.embedding[:, 0], space.basis(y))
        assert model.relevance["sospca0"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
@pytest.mark.parametrize("seed", range(8))
def test_ties_are_in_order_of_arrival(seed, rotation):
    """Ties of relevance are in order of arrival, which differs from that of indices."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(6, 60)).astype(float)
    y = rng.integers(-1, 2, size=6) + np.arange(6) % 2.0
    model = SOSPCA(4, rotation=rotation, target_type="numeric")
    model.learn_target(y)
    oracle = reference.SOSPCA(4, y, 60, rotation=rotation)
    for j in range(60):
        oracle.learn(X[:, j])
        model.learn_column(j, X[:, j])
        check(model, oracle)


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
def test_pairs_are_ordered_by_relevance_not_index(rng, rotation):
    """With signs the survivor depends on the order of the pair, which is that of relevance."""
    for _ in range(50):
        y, Z = rng.normal(size=30), rng.normal(size=(3, 30))
        y, Z = y - y.mean(), Z - Z.mean(axis=1, keepdims=True)
        y /= np.linalg.norm(y)
        found = []
        for order in itertools.permutations(range(3)):
            z = Z[list(order)].copy()
            arrival = np.array(order) * 1.0
            cxy = z @ y[:, None]
            relevance = cxy[:, 0] / np.linalg.norm(z, axis=1)
            state = z, z @ z.T, cxy, np.eye(3)[list(order)].T.copy(), relevance, arrival
            options = rotation == "jacobi", True, 1e-12, 1e-14, True
            rotate_and_drop(*state, 3, np.ones((1, 1)), np.zeros((0, 1)), *options)
            found.append(np.sort(relevance[:2]))
        np.testing.assert_allclose(found, found[:1] * 6, rtol=1e-12)


def test_new_columns_take_the_higher_index():
    rng = np.random.default_rng(5)
    e = np.linalg.qr(np.column_stack([np.ones(60), rng.normal(size=(60, 5))]))[0][:, 1:]
    y = e @ [0.9, 0.3, 0.2, 0.1, 0.05]
    X = e[:, [2, 0, 3, 1]]  # relevances .2, .9, .1 and .3
    model = SOSPCA(3)
    model.learn_target(y)
    model.learn_columns(X[:, :3])
    model.learn_column("new", X[:, 3])
    assert model.loadings["new"] == {"sospca2": 1.0}
    assert model.loadings[1] == {"sospca1": 1.0}
    survivor = {name for name, parts in model.loadings.items() if "sospca0" in parts}
    assert survivor <= {0, 2}


def test_support_stays_near_its_bound():
    """For exchangeable columns the support is at most twice the expected q (1 + ln(p / q))."""
    rng = np.random.default_rng(6)
    n, p, q = 50, 20_000, 20
    model = SOSPCA(q)
    model.learn_target(rng.normal(size=n))
    model.learn_columns(rng.normal(size=(n, p)))
    bound = q * (1 + np.log(p / q))
    assert q <= len(model.loadings) <= 2 * bound
    assert model.to_matrix(range(p)).nnz <= q * len(model.loadings)


def test_transform_of_training_rows_equals_the_embedding():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 60)) + 5
    names = [f"v{j}" for j in range(60)]
    model = SOSPCA(4)
    assert model.transform_one({"v1": 3.0}) == {}
    model.learn_target(X[:, 3] - X[:, 40])
    model.learn_columns(X, names=names)
    Z = model.embedding
    assert Z.shape == (40, 4)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    for row in range(0, 40, 7):
        got = model.transform_one(dict(zip(names, X[row].tolist(), strict=True)))
        assert list(got) == model.components == [f"sospca{k}" for k in range(4)]
        assert all(type(value) is float for value in got.values())
        np.testing.assert_allclose(list(got.values()), Z[row], atol=1e-10)
    B = model.to_matrix(names)
    assert sp.issparse(B)
    assert B.shape == (60, 4)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ B.toarray(), Z, atol=1e-10)
    np.testing.assert_allclose(B.toarray(), weights(model, names), atol=0)
    # an absent variable is 0
    empty = -X.mean(axis=0) @ B.toarray()
    np.testing.assert_allclose(list(model.transform_one({}).values()), empty, atol=1e-10)


@pytest.mark.parametrize("container", ["array", "csc", "pandas", "polars", "pyarrow"])
def test_transform_many(container):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.5)
    names = list(range(12)) if container in ("array", "csc") else [f"v{j}" for j in range(12)]
    model = SOSPCA(3)
    model.learn_target(X[:, 0] + X[:, 5])
    model.learn_columns(X, names=names)
    if container == "array":
        got, kind = model.transform_many(X), np.ndarray
    elif container == "csc":
        got, kind = model.transform_many(sp.csc_array(X)), np.ndarray
    else:
        library = importlib.import_module(container)
        data = {name: X[:, j] for j, name in enumerate(names)}
        kind = library.Table if container == "pyarrow" else library.DataFrame
        frame = library.table(data) if container == "pyarrow" else library.DataFrame(data)
        got = model.transform_many(frame)
    assert isinstance(got, kind)
    if kind is np.ndarray:
        assert got.dtype == np.float64
    else:
        columns = got.column_names if container == "pyarrow" else list(got.columns)
        assert columns == model.components
        got = np.column_stack([np.asarray(got[name]) for name in columns])
    np.testing.assert_allclose(got, model.embedding, atol=1e-10)


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e9])
def test_common_scales_change_nothing(rotation, scale):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(30, 80))
    y = X[:, 10] + rng.normal(size=30)
    models = []
    for factor, other in ((1.0, 1.0), (scale, 1.0), (1.0, scale), (scale, 1 / scale)):
        model = SOSPCA(4, rotation=rotation)
        model.learn_target(y * other)
        model.learn_columns(X * factor)
        models.append((model, factor))
    plain = models[0][0]
    for model, factor in models[1:]:
        np.testing.assert_allclose(
            list(model.relevance.values()), list(plain.relevance.values()), atol=1e-9
        )
        np.testing.assert_allclose(weights(model, range(80)), weights(plain, range(80)), atol=1e-9)
        np.testing.assert_allclose(model.embedding / factor, plain.embedding, atol=1e-9)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_offsets_change_nothing(offset):
    """Offsets cost no digits: multiples of 2⁻¹⁰ are exact with an offset of 1e9."""
    rng = np.random.default_rng(10)
    X = np.round(rng.normal(size=(40, 100)) * 1024) / 1024
    y = np.round((X[:, 50] - X[:, 90] + rng.normal(size=40)) * 1024) / 1024
    models = []
    for shift in (0.0, offset):
        model = SOSPCA(5)
        model.learn_target(y + shift)
        model.learn_columns(X + shift)
        models.append(model)
    plain, moved = models
    np.testing.assert_allclose(
        list(moved.relevance.values()), list(plain.relevance.values()), atol=1e-9
    )
    np.testing.assert_allclose(weights(moved, range(100)), weights(plain, range(100)), atol=1e-7)
    np.testing.assert_allclose(moved.embedding, plain.embedding, atol=1e-6)

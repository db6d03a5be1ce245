"""SOSPCA on rows against all rows stored: every decision, and its reported state."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import SOSPCA
from tests.copies import COPIES, as_of_now
from tests.reference import target as space
from tests.reference.rows import arrivals, bits, numbers
from tests.reference.sospca_rows import SOSPCAOnRows

MODES = {
    "jacobi": {},
    "paper": {"rotation": "paper"},
    "signed": {"signed": True},
    "signed paper": {"rotation": "paper", "signed": True},
}


def loadings(model, names):
    """Return the loadings as a matrix, (p, components learnt)."""
    B = np.zeros((len(names), len(model.components)))
    for name, parts in model.loadings.items():
        for component, weight in parts.items():
            B[names.index(name), model.components.index(component)] = weight
    return B[:, : len(model.relevance)]


def true_relevance(model, rows, fading_factor=0.0):
    """Return the relevances of the components, from stored rows of the observed values."""
    names = arrivals([x for x, _ in rows])
    X = np.array([[x.get(name, 0.0) for name in names] for x, _ in rows]).reshape(len(rows), -1)
    ys = [numbers(y, "auto") for _, y in rows]
    Y = np.array([[y.get(t, 0.0) for t in arrivals(ys)] for y in ys])
    roots = np.sqrt((1.0 - fading_factor) ** np.arange(len(rows) - 1.0, -1.0, -1.0))[:, None]

    def centred(A):
        A = A - A[-1]
        A = A - np.average(A, axis=0, weights=roots[:, 0] ** 2)
        return (A - np.average(A, axis=0, weights=roots[:, 0] ** 2)) * roots

    Z, Y = centred(X) @ loadings(model, names), centred(Y)
    Y = Y[:, np.abs(Y).max(axis=0) > 0]
    if not Y.size:
        return np.zeros(Z.shape[1])
    units = [space.unit(z) for z in Z.T]
    if model.signed:
        return np.array([z @ space.unit(Y[:, 0]) for z in units])
    U, s, _ = np.linalg.svd(np.column_stack([space.unit(y) for y in Y.T]), full_matrices=False)
    U = U[:, s > 1e-7 * s[0]]
    return np.array([np.linalg.norm(U.T @ z) for z in units])


def relevances(model):
    return list(model.relevance.values())


# ------------------------------------------- every variable a candidate from the start: exact

LABELS = st.sampled_from(["p", "q", "r", True])
NAMES = ["a", "b", "c", 3, ("t", 1), 2.5]


@st.composite
def streams(draw):
    """Return rows of small whole numbers (ties, copies, constants, absences), and options."""
    signed = draw(st.booleans())
    whole = st.integers(-3, 3).map(float)
    x = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, whole))
    several = st.fixed_dictionaries({"y": whole}, optional={"z": whole, "label": LABELS})
    y = whole if signed else draw(st.sampled_from([whole, LABELS, several]))
    rows = draw(st.lists(st.tuples(x, y), min_size=1, max_size=14))
    return rows, {"signed": signed, "rotation": draw(st.sampled_from(["jacobi", "paper"]))}


@given(
    stream=streams(),
    q=st.integers(1, 4),
    grace_period=st.integers(1, 5),
    warm_up=st.integers(0, 6),
)
def test_relevance_equals_that_of_stored_rows(stream, q, grace_period, warm_up):
    rows, options = stream
    model = SOSPCA(q, grace_period=grace_period, warm_up=warm_up, **options)
    for i, (x, y) in enumerate(rows):
        model.learn_one(x, y)
        names = arrivals([x for x, _ in rows[: i + 1]])
        assert set(model.loadings) <= set(names)
        B = loadings(model, names)
        np.testing.assert_allclose(B.T @ B, np.eye(B.shape[1]), atol=1e-12)
        np.testing.assert_allclose(
            relevances(model), true_relevance(model, rows[: i + 1]), atol=1e-9
        )
        assert (not model.relevance) or i + 1 >= min(grace_period, max(2, warm_up))


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("warm_up", [0, 7, 20])
def test_the_first_components_are_provisional(warm_up, fading_factor):
    """First components exist after `warm_up` rows, and do not affect those of the first refresh."""
    options = {"grace_period": 40, "fading_factor": fading_factor}
    model, late = (SOSPCA(3, warm_up=rows, **options) for rows in (warm_up, 40))
    rows = list(stream(70, 12))
    for i, (x, y) in enumerate(rows, start=1):
        for one in (model, late):
            one.learn_one(x, y)
        assert bool(model.in_use) == (i >= max(2, warm_up))
        assert bool(late.in_use) == (i >= 40)
        true = true_relevance(model, rows[:i], fading_factor)
        np.testing.assert_allclose(relevances(model), true, atol=1e-9)
        if i >= 40:
            names = [*late.loadings]
            np.testing.assert_allclose(loadings(model, names), loadings(late, names), atol=1e-9)
    assert len(model.relevance) == 3


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("x_scale", [2.0**-332, 1.0, 2.0**332])  # 1e±100, as exact powers of 2
@pytest.mark.parametrize("y_scale", [2.0**-332, 2.0**332])
def test_offsets_and_scales(rng, x_scale, y_scale, fading_factor):
    X = np.round(rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8)), 0) + rng.integers(5, size=8)
    y = X[:, 2] - X[:, 3] + X[:, 6] + rng.integers(9, size=60)
    model = SOSPCA(3, grace_period=8, fading_factor=fading_factor)
    plain = model.clone()
    rows = []
    for x, t in zip(X, y, strict=True):
        plain.learn_one(dict(enumerate(x.tolist())), float(t))
        rows.append((dict(enumerate(((x + 1e9) * x_scale).tolist())), float((t - 1e9) * y_scale)))
        model.learn_one(*rows[-1])
        true = true_relevance(model, rows, fading_factor)
        np.testing.assert_allclose(relevances(model), true, atol=1e-9)
        B = loadings(plain, range(8))
        np.testing.assert_allclose(loadings(model, range(8)), B, atol=1e-9)
    assert fading_factor or np.count_nonzero(B) > 3


# ------------------------------------------------------------------- the same decisions


def stream(n, p, kind="number", *, emerge=False, missing=0.0, seed=0):
    """Yield rows of p correlated features, more than can be candidates; some are absent.

    The relevant features are the last, too late to be candidates from the start.
    """
    rng = np.random.default_rng(seed)
    signal = (np.arange(p) >= p - 6) * 1.0
    mixed = 0.5 * rng.normal(size=(3, p))
    for i in range(n):
        v = rng.normal(size=p) + rng.normal(size=3) @ mixed
        n_present = min(p, 5 + i) if emerge else p
        x = {
            f"v{j:02d}": None if rng.random() < missing else float(v[j])
            for j in range(n_present)
            if rng.random() > 0.1
        }
        y = float(signal @ v + rng.normal())
        if kind == "label":
            y = "abc"[int(np.digitize(y, [-1, 1]))] if i > 20 else "ab"[int(y > 0)]
        elif kind == "dict":
            y = {"a": y, "b": float(v[-1])} | ({"c": "uv"[i % 2]} if i > 20 else {})
        yield x, y


def agree(model, reference, tolerance=1e-8):
    assert set(model._row_extension.candidates.index_of) == set(reference.since)
    assert set(model.loadings) == set(reference.support)
    B = np.array(
        [[loading.get(name, 0.0) for loading in reference.B] for name in reference.support]
    )
    got = loadings(model, reference.support)
    np.testing.assert_allclose(got, B.reshape(got.shape), atol=tolerance)
    np.testing.assert_allclose(relevances(model), reference.relevance, atol=tolerance)


EMERGE, MISSING = {"emerge": True}, {"missing": 0.1}
CASES = {
    "more than can be candidates": (4, (60, 45), {}, {}),
    "labels": (3, (45, 40, "label"), {}, {}),
    "several targets": (4, (45, 40, "dict"), MISSING, {}),
    "emerging": (3, (60, 50), EMERGE, MODES["paper"]),
    "emerging, fading": (3, (60, 50), EMERGE | MISSING, {"fading_factor": 0.05}),
    "fading fast": (4, (60, 44), MISSING, {"fading_factor": 0.3}),
    "missing": (4, (60, 45), {"missing": 0.3}, {}),
    "signed": (3, (60, 45), MISSING, MODES["signed"]),
    "signed paper": (3, (60, 45), {}, MODES["signed paper"] | {"fading_factor": 0.02}),
    "many components": (20, (40, 50), {}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_equal_the_reference(case):
    q, shape, kind, options = CASES[case]
    rows = stream(*shape, **kind)
    model = SOSPCA(q, grace_period=9, **options)
    reference = SOSPCAOnRows(q, grace_period=9, **options)
    for x, y in rows:
        model.learn_one(x, y)
        reference.learn_one(x, y)
        agree(model, reference)
    assert len(model.loadings) >= min(q, 4)


@pytest.mark.parametrize("seed", range(3))
def test_multiples_are_ties(seed):
    """Multiples, such as words that occur together, are ties that rounding must not decide."""
    rng = np.random.default_rng(seed)
    model, many = SOSPCA(2, grace_period=12), SOSPCA(2, grace_period=12)
    reference = SOSPCAOnRows(2, grace_period=12)
    words = [f"w{j:03d}" for j in range(60)]
    X = np.kron((rng.random((36, 20)) < 0.2).astype(float), [0.3, 1.0, 7.1])
    y = (X[:, 30] + rng.normal(size=36)).tolist()
    many.learn_many(pd.DataFrame(X, columns=words), y)
    for x, t in zip(X.tolist(), y, strict=True):
        model.learn_one(dict(zip(words, x, strict=True)), t)
        reference.learn_one(dict(zip(words, x, strict=True)), t)
    agree(model, reference)
    agree(many, reference)


# -------------------------------------------------------------- from columns to rows


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
@pytest.mark.parametrize("mode", MODES)
def test_rows_continue_from_columns_with_weight(rng, mode, fading_factor):
    """After columns, rows of the columns have weight 1, and no variable joins before a refresh."""
    X = rng.normal(size=(70, 9)) @ rng.normal(size=(9, 9)) + 5.0
    y = X[:, 1] - X[:, 4] + rng.normal(size=70)
    model = SOSPCA(3, fading_factor=fading_factor, **MODES[mode])
    model.learn_target(y[:30])
    model.learn_columns(X[:30])
    before, Z = model.loadings, model.transform_many(X)
    np.testing.assert_allclose(Z[:30], model.embedding, atol=1e-12)
    assert model.transform_one(dict(enumerate(X[40].tolist()))) == pytest.approx(
        dict(zip(model.components, Z[40].tolist(), strict=True))
    )
    for i in range(30, 70):
        model.learn_one(dict(enumerate(X[i].tolist())), float(y[i]))
        assert model.loadings == before
        age = np.maximum(i - np.arange(i + 1.0), 0.0)
        age[:30] = i - 29.0
        w = (1.0 - fading_factor) ** age
        B = loadings(model, range(9))
        C = np.cov(np.column_stack([X[: i + 1] @ B, y[: i + 1]]).T, aweights=w, ddof=0)
        r = C[:-1, -1] / np.sqrt(np.diag(C)[:-1] * C[-1, -1])
        np.testing.assert_allclose(relevances(model), r if model.signed else np.abs(r), atol=1e-9)
        means = np.average(X[: i + 1], axis=0, weights=w)
        np.testing.assert_allclose(as_of_now(model).transform_many(X), (X - means) @ B, atol=1e-9)
    assert model.n_rows == 70


@pytest.mark.parametrize("name", ["isolet", "madelon"])
@pytest.mark.parametrize("columns_first", [False, True])
def test_real_rows_approximate_columns(dataset, name, columns_first):
    """One pass over rows approximates the column phase, although candidates start late."""
    X, y, _, _ = dataset(name)
    X, y = np.asarray(X, dtype=float), y.astype(str)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order].tolist()
    by_columns, model = SOSPCA(10), SOSPCA(10)
    by_columns.learn_target(y)
    by_columns.learn_columns(X)
    half = len(X) // 2 if columns_first else 0
    if half:
        model.learn_target(y[:half])
        model.learn_columns(X[:half])
    model.learn_many(X[half:], y[half:])
    U = space.basis(space.indicators(y))
    true = [space.relevance(z, U) for z in as_of_now(model).transform_many(X).T]
    assert np.abs(np.array(relevances(model)) - true).max() < 0.01
    assert np.mean(true) > np.mean(relevances(by_columns)) - 0.01
    assert np.abs(np.sort(true) - np.sort(relevances(by_columns))).max() < 0.03


# ------------------------------------------------------------ frames, copies, transforms


def same(one, other, tolerance=1e-9):
    assert list(one.loadings) == list(other.loadings)
    assert set(one._row_extension.candidates.index_of) == set(
        other._row_extension.candidates.index_of
    )
    assert (one.n_rows, one.n_columns) == (other.n_rows, other.n_columns)
    names = list(one.loadings)
    np.testing.assert_allclose(loadings(one, names), loadings(other, names), atol=tolerance)
    np.testing.assert_allclose(relevances(one), relevances(other), atol=tolerance)


OPTIONS = [
    {},
    {"fading_factor": 0.02, "rotation": "paper"},
    {"fading_factor": 0.3},
    {"max_features": 45},
    {"max_features": 38, "fading_factor": 0.1},
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", OPTIONS)
def test_frames_equal_loops_of_rows(options, seed):
    rng = np.random.default_rng(seed)
    many = SOSPCA(3, grace_period=int(rng.integers(5, 20)), **options)
    loop = many.clone()
    X = rng.normal(size=(150, 60)) + rng.normal(size=(150, 2)) @ rng.normal(size=(2, 60))
    y = X[:, 3] + X[:, 20] + rng.normal(size=150)
    X[rng.random(X.shape) < 0.05] = np.nan
    start = 0
    while start < 150:
        stop = min(150, start + int(rng.integers(1, 70)))
        present = np.sort(rng.permutation(60)[: rng.integers(20, 61)])
        frame = pd.DataFrame(X[start:stop, present], columns=[f"v{j:02d}" for j in present])
        many.learn_many(frame, y[start:stop])
        for x, t in zip(frame.to_dict("records"), y[start:stop].tolist(), strict=True):
            loop.learn_one(x, t)
        same(many, loop)
        start = stop
    assert "fading_factor" in options or len(many.loadings) > 3


@pytest.mark.parametrize("way", COPIES)
def test_copies_continue_as_the_original(tmp_path, way):
    """A copy continues as the original, also while candidates change."""
    model = SOSPCA(3, grace_period=4, fading_factor=0.02, max_features=40)
    twin = model.clone()
    for i, (x, y) in enumerate(stream(50, 45, "dict", emerge=True, missing=0.1)):
        model.learn_one(x, y)
        if i % 3 == 0:
            twin = COPIES[way](twin, tmp_path)
        twin.learn_one(x, y)
    assert bits(twin) == bits(model)
    same(twin, model, tolerance=0)

"""Covariates: results equal those of the residuals, on columns and on rows."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, linear_model
from scipy import stats

from streamsel import SOSPCA, ProjSe, SelectKBest
from tests.copies import COPIES
from tests.reference import noise
from tests.reference import target as space
from tests.reference.rows import Rows, agree, bits, same
from tests.reference.sospca_rows import SOSPCAOnRows

N, P = 60, 24

SELECTORS = {
    "linear": lambda **o: ProjSe(8, **o),
    "poly": lambda **o: ProjSe(8, kernel="poly", **o),
    "poly-2-1": lambda **o: ProjSe(8, kernel="poly", degree=2, coef0=1.0, **o),
    "rbf": lambda **o: ProjSe(8, kernel="rbf", **o),
    "rbf, scale seen": lambda **o: ProjSe(8, kernel="rbf", gamma=0.01, scale=False, **o),
    "stop": lambda **o: ProjSe(8, on_rank_exhausted="stop", **o),
    "pool": lambda **o: ProjSe(4, max_candidates=6, **o),
    "exact": lambda **o: ProjSe(4, max_candidates=6, exact=True, **o),
    "correlation": lambda **o: SelectKBest(P, score="correlation", **o),
    "f": lambda **o: SelectKBest(P, **o),
    "t": lambda **o: SelectKBest(P, score="t", **o),
    "k best of a pool": lambda **o: SelectKBest(4, max_candidates=6, **o),
}
EXTRACTORS = {
    "jacobi": lambda **o: SOSPCA(4, **o),
    "paper": lambda **o: SOSPCA(4, rotation="paper", **o),
    "signed": lambda **o: SOSPCA(3, signed=True, **o),
    "signed paper": lambda **o: SOSPCA(3, rotation="paper", signed=True, **o),
}
LEARNERS = SELECTORS | EXTRACTORS
# Learners that require one numeric target column, or two classes.
NARROW = {"t", "signed", "signed paper"}
TARGETS = ["number", "numbers", "labels", "bools"]


def covariates(kind):
    """Return covariates as passed by a user, and as columns of numbers."""
    rng = np.random.default_rng(3)
    age, dose = 40.0 + 10.0 * rng.normal(size=N), rng.exponential(size=N)
    batch = np.array(list("uvw"))[rng.integers(3, size=N)]
    sick = rng.random(N) < 0.4
    batches, sicks = space.indicators(batch), space.indicators(sick)
    age_dose = np.column_stack([age, dose])
    far = np.column_stack([1e9 + age, 1e100 * dose, 1e-100 * (age - dose**2)])
    return {
        "a number": (age.tolist(), age[:, None]),
        "numbers": (age_dose, age_dose),
        "labels": (batch.tolist(), batches),
        "a frame": (
            pd.DataFrame({"age": age, "batch": batch, "sick": sick}),
            np.column_stack([age, batches, sicks]),
        ),
        "polars": (pl.DataFrame({"dose": dose, "batch": batch}), np.column_stack([dose, batches])),
        "of less rank": (
            np.column_stack([age, dose, 2.0 * age - dose, np.ones(N), age]),
            age_dose,
        ),
        "far and wide": (far, np.column_stack([far[:, 0] - 1e9, far[:, 1:] / [1e100, 1e-100]])),
    }[kind]


KINDS = ["a number", "numbers", "labels", "a frame", "polars", "of less rank", "far and wide"]


def left(A, Z):
    """Return the residuals of columns on [1, Z]; 0 where they are rounding errors."""
    A = space.centred(np.asarray(A, dtype=float).reshape(len(A), -1))
    K = np.column_stack([np.ones(len(Z)), *(space.unit(z) for z in space.centred(Z).T if z.any())])
    E = A
    for _ in range(2):
        E = E - K @ np.linalg.lstsq(K, E, rcond=1e-10)[0]
    E[:, (E**2).sum(axis=0) <= 1e-12 * (A**2).sum(axis=0)] = 0.0
    return E


def task(kind, target="number"):
    """Return columns that depend on covariates, a target, and the covariates.

    Covariates explain column 5; column 9 is constant; column 11 is a rescaled copy of column 2.
    """
    rng = np.random.default_rng(7)
    given_as, Z = covariates(kind)
    units = np.column_stack([space.unit(z) * np.sqrt(N) for z in space.centred(Z).T])
    X = rng.normal(size=(N, P)) + units @ rng.normal(size=(units.shape[1], P))
    Y = X[:, [2, 7]] - 0.5 * X[:, [13, 17]] + rng.normal(size=(N, 2)) + units[:, :1]
    X[:, 5] = units @ np.arange(1.0, units.shape[1] + 1.0)
    X[:, 9] = 3.0
    X[:, 11] = 64.0 - 4.0 * X[:, 2]
    y = {
        "number": Y[:, 0],
        "numbers": Y,
        "labels": np.array(list("pqr"))[np.digitize(Y[:, 0], [-1.0, 1.0])],
        "bools": Y[:, 0] > 0.0,
    }[target]
    return X, y, given_as, Z


def numbers(y):
    """Return the target as columns of numbers."""
    return space.indicators(y) if np.asarray(y).dtype.kind in "Ub" else np.asarray(y, dtype=float)


def on_columns(make, X, y, Z=None, **options):
    model = make(**options)
    model.learn_target(y, covariates=Z)
    model.learn_columns(X)
    return model


def close(got, expected, tolerance=1e-9):
    assert list(got) == list(expected)
    values = [list(part.values()) for part in (got, expected)]
    np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance)


def same_findings(model, plain, tolerance=1e-9):
    close(model.relevance, plain.relevance, tolerance)
    if hasattr(model, "selected"):
        assert model.selected == plain.selected
        assert model.rounds == plain.rounds
        assert model.n_certified == plain.n_certified
        if isinstance(model, ProjSe):
            close(model.scores, plain.scores, tolerance)
    else:
        assert list(model.loadings) == list(plain.loadings)
        for name, loading in plain.loadings.items():
            close(model.loadings[name], loading, tolerance)


# --------------------------------------------------------------------------------- on columns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("learner", "target"),
    [
        (learner, target)
        for learner in LEARNERS
        for target in (["number", "bools"] if learner in NARROW else TARGETS)
    ],
)
def test_columns_equal_residual_columns(learner, target, kind):
    X, y, given_as, Z = task(kind, target)
    make = LEARNERS[learner]
    if learner.startswith("signed") and target == "bools":
        y = y.astype(float)
    E = left(numbers(y), Z)
    # One of two indicators suffices; only kernels depend on redundant target columns.
    E = E[:, 0] if learner in NARROW else E
    model = on_columns(make, X, y, given_as)
    same_findings(model, on_columns(make, left(X, Z), E))
    assert model.n_columns == P
    assert model.n_constant == 1
    assert len(model.relevance) > (0 if learner == "stop" else 2)
    assert 9 not in model.relevance
    if learner in EXTRACTORS:
        names = list(model.loadings)
        B = np.array([[b.get(c, 0.0) for c in model.components] for b in model.loadings.values()])
        scores = left(X[:, names] @ B[:, : len(model.relevance)], Z)
        U = space.basis(E)
        true = [space.relevance(z, U) for z in scores.T]
        np.testing.assert_allclose(np.abs(list(model.relevance.values())), true, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_columns_explained_by_covariates_are_not_selected(learner, kind):
    """Columns that covariates explain are never selected, nor used in components."""
    X, y, given_as, _ = task(kind)
    for order in (slice(None), slice(None, None, -1), [5, 9, 0], [9, 5, 1]):
        model = LEARNERS[learner]()
        model.learn_target(y, covariates=given_as)
        names = np.arange(P)[order].tolist()
        model.learn_columns(X[:, order], names=names)
        found = model.selected if learner in SELECTORS else list(model.loadings)
        assert found
        assert not {5, 9} & set(found)


@pytest.mark.parametrize("score", ["correlation", "f", "t"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_p_values_are_those_of_nested_regressions(kind, score):
    """Statistics equal those of nested regressions on [1, Z] and [1, Z, x]."""
    X, y, given_as, Z = task(kind)
    d = np.linalg.matrix_rank(left(Z, np.zeros((N, 0))) / space.centred(Z).std(axis=0))
    model = on_columns(SELECTORS[score], X, y, given_as)
    before = (left(y, Z) ** 2).sum()
    for name in model.selected[:12]:
        after = (left(y, np.column_stack([Z, X[:, name]])) ** 2).sum()
        freedom = N - 2 - d
        F = (before - after) / (after / freedom)
        expected = {"correlation": np.sqrt(1.0 - after / before), "f": F, "t": np.sqrt(F)}
        assert model.scores[name] == pytest.approx(expected[score], rel=1e-6)
        assert model.p_values[name] == pytest.approx(stats.f.sf(F, 1, freedom), rel=1e-6)


@pytest.mark.parametrize("fdr", [0.01, 0.2])
def test_share_of_noise_with_covariates(fdr):
    X, y, given_as, _ = task("a frame")
    model = on_columns(lambda **o: SelectKBest(None, fdr=fdr, **o), X, y, given_as)
    everyone = on_columns(SELECTORS["f"], X, y, given_as)
    m, p = P - 1, np.array(list(everyone.p_values.values()))
    ranked = np.sort(p)
    passed = ranked[ranked <= fdr * np.arange(1, len(p) + 1) / m]
    assert set(model.selected) == {
        name for name, value in everyone.p_values.items() if passed.size and value <= passed[-1]
    }
    assert 0 < len(model.selected) < len(p)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "d"), [("a number", 1), ("of less rank", 2), ("a frame", 4)])
def test_noise_floor(target, kind, d):
    X, y, given_as, _ = task(kind, target)
    r = {"number": 1, "numbers": 2, "labels": 2, "bools": 1}[target]
    for make in (SELECTORS["linear"], SELECTORS["f"], EXTRACTORS["jacobi"]):
        model = on_columns(make, X, y, given_as)
        for level in (0.05, 0.5):
            expected = noise.floor(N - d, r, P - 1, level)
            assert model.noise_floor(level) == pytest.approx(expected, rel=1e-9)


def test_partial_correlation_equals_its_formula():
    """Correlations with one covariate equal (r_xy - r_xz r_yz) / √((1 - r_xz²)(1 - r_yz²))."""
    X, y, given_as, Z = task("a number")
    z = Z[:, 0]
    correlation = on_columns(SELECTORS["correlation"], X, y, given_as)
    signed = on_columns(lambda **o: SOSPCA(P, signed=True, **o), X, y, given_as)
    found = dict(zip(signed.loadings, signed.relevance.values(), strict=True))
    assert {*found} == {*correlation.selected} == set(range(P)) - {5, 9}
    for j, partial in found.items():
        xy, xz, yz = (np.corrcoef(*pair)[0, 1] for pair in ((X[:, j], y), (X[:, j], z), (y, z)))
        expected = (xy - xz * yz) / np.sqrt((1.0 - xz**2) * (1.0 - yz**2))
        assert partial == pytest.approx(expected, abs=1e-9)
        assert correlation.relevance[j] == pytest.approx(abs(expected), abs=1e-9)


@pytest.mark.parametrize("x_scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("y_scale", [1e-100, 1e100])
@pytest.mark.parametrize("learner", LEARNERS)
def test_offsets_and_scales(learner, x_scale, y_scale):
    X, y, given_as, _ = task("far and wide")
    if "scale seen" in learner:
        x_scale = y_scale = 1.0
    plain = on_columns(LEARNERS[learner], X, y, given_as)
    moved = on_columns(LEARNERS[learner], (X + 64.0) * x_scale, (y - 1e6) * y_scale, given_as)
    same_findings(moved, plain, 1e-8)


@settings(max_examples=30)
@given(
    learner=st.sampled_from(list(LEARNERS)),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 100),
    size=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_adding_covariates_changes_nothing(learner, kind, seed, size):
    """Adding combinations of covariates to variables and target changes nothing."""
    rng = np.random.default_rng(seed)
    X, y, given_as, Z = task(kind)
    units = np.column_stack([space.unit(z) * np.sqrt(N) for z in space.centred(Z).T])
    A = size * rng.normal(size=(units.shape[1], P + 1))
    A[:, [5, 9]] = 0.0
    model = on_columns(LEARNERS[learner], X, y, given_as)
    moved = on_columns(LEARNERS[learner], X + units @ A[:, :P], y + units @ A[:, P], given_as)
    same_findings(moved, model, 1e-8)


@pytest.mark.parametrize("learner", LEARNERS)
def test_constant_covariates_change_nothing(learner):
    """A constant covariate has no effect, up to rounding."""
    X, y, _, _ = task("a number")
    same_findings(
        on_columns(LEARNERS[learner], X, y, np.ones(N)), on_columns(LEARNERS[learner], X, y)
    )


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "exact"])
def test_merging_columns(learner):
    X, y, given_as, _ = task("a frame")
    parts = [LEARNERS[learner]() for _ in range(2)]
    for part, indices in zip(parts, (slice(0, 10), slice(10, P)), strict=True):
        part.learn_target(y, covariates=given_as)
        part.learn_columns(X[:, indices], names=list(range(P))[indices])
    other = LEARNERS[learner]()
    other.learn_target(y, covariates=given_as["age"])
    before = pickle.dumps(parts[0])
    with pytest.raises(ValueError, match="target"):
        parts[0].merge(other)
    assert pickle.dumps(parts[0]) == before
    parts[0].merge(parts[1])
    whole = on_columns(LEARNERS[learner], X, y, given_as)
    if learner in SELECTORS:
        same_findings(parts[0], whole)
    assert parts[0].noise_floor() == pytest.approx(whole.noise_floor(), nan_ok=True)
    assert not {5, 9} & {*parts[0].relevance, *getattr(parts[0], "loadings", ())}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("learner", LEARNERS)
def test_copies_of_columns(learner, way, tmp_path):
    X, y, given_as, _ = task("a frame", "number")
    model = LEARNERS[learner]()
    model.learn_target(y, covariates=given_as)
    twin = COPIES[way](model, tmp_path)
    for one in (model, twin):
        one.learn_columns(X)
    same_findings(COPIES[way](twin, tmp_path), model, 0.0)
    assert bits(twin) == bits(model)


REFUSED = {
    "the target among them": lambda y, Z: np.column_stack([Z, y]),
    "a copy of the target": lambda y, Z: 1e9 - 2.0 * y,
    "too short": lambda y, Z: Z[:-1],
    "missing": lambda y, Z: np.where(np.arange(N) == 7, np.nan, Z[:, 0]),
    "infinite": lambda y, Z: np.where(np.arange(N) == 7, np.inf, Z[:, 0]),
    "a missing label": lambda y, Z: ["u", None] * (N // 2),
    "a null": lambda y, Z: pl.DataFrame({"age": [None, *Z[1:, 0].tolist()]}),
    "dates": lambda y, Z: pd.Series(pd.to_datetime(["2024-01-01"] * N)),
    "complex": lambda y, Z: Z[:, 0] * 1j,
    "lazy": lambda y, Z: pl.LazyFrame({"age": Z[:, 0]}),
    "of no columns": lambda y, Z: Z[:, :0],
    "beyond 1e150": lambda y, Z: Z[:, 0] * 1e200,
    "of three dimensions": lambda y, Z: Z[:, :, None],
}


@pytest.mark.parametrize("learner", ["linear", "rbf", "f", "jacobi"])
@pytest.mark.parametrize("case", REFUSED)
def test_refused_covariates(case, learner):
    X, y, _, Z = task("numbers")
    model = LEARNERS[learner]()
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match="Got"):
        model.learn_target(y, covariates=REFUSED[case](y, Z))
    assert pickle.dumps(model) == before
    same_findings(on_columns(lambda: model, X, y, Z), on_columns(LEARNERS[learner], X, y, Z), 0.0)


@pytest.mark.parametrize("given", ["frame", "mapping", "series"])
def test_missing_covariates_are_named(given):
    """The error does not suggest to drop rows without a target, which has been done."""
    y = np.arange(10.0)
    y[0] = np.nan
    frame = pd.DataFrame({"age": np.arange(10.0), "bp": np.r_[np.ones(4), np.nan, np.ones(5)]})
    Z = {"frame": frame, "mapping": dict(frame), "series": frame.bp}[given]
    with pytest.raises(ValueError, match="Expected covariates without missing values") as refused:
        ProjSe(2).learn_target(y, covariates=Z, missing="drop")
    text = str(refused.value)
    where = "" if given == "series" else " in 'bp'"
    assert f"Got: 1 missing{where}, the first in row 4." in text
    assert "Hint: covariates are needed in every row; drop these rows" in text
    assert "missing='drop'" not in text


def test_covariates_need_a_target():
    with pytest.raises(ValueError, match="target"):
        ProjSe(2).learn_target(None, covariates=np.arange(5.0))


@pytest.mark.parametrize("score", ["mutual_info", "misclassification", "margin"])
def test_sample_scores_refuse_covariates(score):
    with pytest.raises(ValueError, match="covariates"):
        SelectKBest(2, score=score, covariates=("age",))
    model = SelectKBest(2, score=score)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="covariates"):
        model.learn_target(["u", "v", "v"], covariates=[1.0, 2.0, 4.0])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("bad", ["age", ["age", "age"], (), ("age", "age"), ([],), 1])
@pytest.mark.parametrize("cls", [ProjSe, SelectKBest, SOSPCA])
def test_refused_names(cls, bad):
    with pytest.raises(ValueError, match="covariates"):
        cls(2, covariates=bad)


# ------------------------------------------------------------------------------------ on rows

GIVEN = ("age", "batch")


def target_of_row(rng, kind, v, i):
    late = i >= 14
    if kind == "number":
        return float(v + rng.normal())
    if kind == "label":
        return "pqr"[int(v > 0.0) + (late and v > 1.0)]
    y = {"price": float(v + rng.normal()), "place": "xyz"[rng.integers(2 + late)]}
    return y | ({"volume": float(v**2)} if late else {})


def stream(n, kind="number", seed=0, *, missing=0.15, offset=40.0):
    """Yield rows whose features depend on age and batch; some are late, missing or absent."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        age, dose, batch = rng.normal(), rng.exponential(), "uvw"[rng.integers(2 + (i >= 11))]
        level = "uvw".index(batch)
        a, b, c, d = rng.normal(size=4)
        x = {
            "both": a + b + age,
            "b": b - level,
            "c": c + 2.0 * age - level,
            "constant": 2.0,
            "f": d,
        }
        x |= {f"word {j}": 1.0 for j in rng.integers(0, 4, size=1)}
        if i >= 9:
            x["late"] = a - b + dose
        if rng.random() < missing:
            x["c"] = [None, float("nan")][i % 2]
        if rng.random() < missing:
            del x["f"]
        x |= {"age": offset + age, "batch": batch}
        if i % 13 == 12:
            del x["age"]
        x["theirs"] = 3.0 * x.get("age", 0.0) - level
        x = {name: x[name] for name in rng.permutation(list(x)).tolist()}
        yield x, target_of_row(rng, kind, a + 0.5 * age + 0.5 * level, i)


ROW_KERNELS = {
    "linear": {},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
    "stop": {"on_rank_exhausted": "stop"},
}


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["number", "label", "several"])
@pytest.mark.parametrize("kernel", ROW_KERNELS)
def test_after_every_row(kernel, kind, fading_factor):
    options = ROW_KERNELS[kernel] | {"fading_factor": fading_factor}
    model = ProjSe(12, covariates=GIVEN, **options)
    rows = Rows(fading_factor, covariates=GIVEN)
    for x, y in stream(40, kind):
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows, 1e-8)
    assert len(model.selected) > (0 if kernel == "stop" else 5)
    assert not {*GIVEN, "theirs", "constant"} & {*model.selected}
    assert model.n_columns == len(rows.names)


def filtered(model, rows, tolerance=1e-8):
    """Compare a SelectKBest with stored rows."""
    relevance = {name: r for name, r in rows.relevance().items() if name in model.selected}
    close(model.relevance, {name: relevance[name] for name in model.selected}, tolerance)
    assert [*relevance] == [name for name in rows.names if name in model.selected]
    values = list(model.relevance.values())
    assert max(np.diff(values), default=0.0) <= 1e-12
    others = [r for name, r in rows.relevance().items() if name not in model.selected]
    assert len(values) == model.k or max(others, default=0.0) < tolerance


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("score", ["correlation", "f", "t"])
def test_filters_after_every_row(score, fading_factor):
    model = SelectKBest(20, score=score, covariates=GIVEN, fading_factor=fading_factor)
    rows = Rows(fading_factor, covariates=GIVEN)
    for i, (x, y) in enumerate(stream(40)):
        model.learn_one(x, y)
        rows.learn_one(x, y)
        filtered(model, rows)
        if i < 10 or score == "correlation":
            continue
        w = np.array(rows.weights, float)
        d = len(rows._basis())
        freedom = w.sum() ** 2 / (w**2).sum() - d - 2
        r2 = np.square(list(model.relevance.values()))
        F = r2 / (1.0 - r2) * freedom
        expected = F if score == "f" else np.sqrt(F)
        np.testing.assert_allclose(list(model.scores.values()), expected, rtol=1e-6, atol=1e-9)
        p_values = stats.f.sf(F, 1, freedom)
        np.testing.assert_allclose(list(model.p_values.values()), p_values, rtol=1e-6)


ROTATIONS = {
    "jacobi": {},
    "paper": {"rotation": "paper"},
    "signed": {"signed": True},
    "signed paper": {"rotation": "paper", "signed": True},
}


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
@pytest.mark.parametrize(
    ("mode", "kind"),
    [*((mode, "number") for mode in ROTATIONS), ("jacobi", "label"), ("paper", "several")],
)
def test_components_after_every_row(mode, kind, fading_factor):
    options = ROTATIONS[mode] | {"fading_factor": fading_factor, "grace_period": 7}
    model = SOSPCA(3, covariates=GIVEN, **options)
    reference = SOSPCAOnRows(3, covariates=GIVEN, **options)
    for x, y in stream(60, kind, missing=0.1):
        model.learn_one(x, y)
        reference.learn_one(x, y)
        assert set(model.loadings) == set(reference.support)
        names, B = list(model.loadings), reference.B
        got = [[b.get(c, 0.0) for c in model.components[: len(B)]] for b in model.loadings.values()]
        expected = [[loading.get(name, 0.0) for loading in B] for name in names]
        np.testing.assert_allclose(got, expected, atol=1e-8)
        np.testing.assert_allclose(list(model.relevance.values()), reference.relevance, atol=1e-8)
    assert len(model.loadings) > 3
    assert not {*GIVEN, "theirs"} & {*model.loadings}


def filled(rows):
    """Return rows in which every name has a value in all rows."""
    names = dict.fromkeys(name for x, _ in rows for name in x)
    return [({name: x.get(name, 0.0) for name in names}, y) for x, y in rows]


def frame_of(rows, library):
    data = pd.DataFrame([x for x, _ in filled(rows)])
    if library == "pandas":
        return data
    # Not via pandas, which replaces None by NaN.
    found = pl.DataFrame([x for x, _ in filled(rows)], infer_schema_length=None)
    return found if library == "polars" else found.to_arrow()


ON_ROWS = {
    "linear": lambda **o: ProjSe(8, **o),
    "rbf": lambda **o: ProjSe(8, kernel="rbf", **o),
    "f": lambda **o: SelectKBest(8, **o),
    "jacobi": lambda **o: SOSPCA(3, grace_period=8, **o),
    "paper": lambda **o: SOSPCA(3, grace_period=8, rotation="paper", **o),
}


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["number", "label"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("learner", ON_ROWS)
def test_frames_equal_loops_of_rows(learner, library, kind, fading_factor):
    loop = ON_ROWS[learner](covariates=GIVEN, fading_factor=fading_factor)
    many = loop.clone()
    rows = list(stream(50, kind))
    for start, stop in ((0, 1), (1, 12), (12, 13), (13, 31), (31, 50)):
        # In a frame, a feature has a value in all rows or in none.
        part = filled(rows[start:stop])
        many.learn_many(frame_of(part, library), [y for _, y in part])
        for x, y in part:
            loop.learn_one(x, y)
        assert many.n_rows == loop.n_rows
        assert set(many._state.names) == set(loop._state.names)
        same_findings(many, loop, 1e-8)


@pytest.mark.parametrize("learner", ON_ROWS)
def test_arrays_equal_loops_of_rows(learner, rng):
    X = rng.normal(size=(40, 6)) + 3.0
    X[:, 3] = X[:, 0] - 2.0 * X[:, 4]
    y = X[:, 1] + X[:, 0] + rng.normal(size=40)
    loop, many = (ON_ROWS[learner](covariates=(4, 0)) for _ in range(2))
    for start, stop in ((0, 1), (1, 15), (15, 40)):
        many.learn_many(X[start:stop], y[start:stop])
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        loop.learn_one(dict(enumerate(x)), t)
    same_findings(many, loop, 1e-8)
    assert {*many._state.names} == {1, 2, 3, 5}
    by_columns = ON_ROWS[learner]()
    by_columns.learn_target(y, covariates=X[:, [0, 4]])
    by_columns.learn_columns(X[:, [1, 2, 3, 5]], names=[1, 2, 3, 5])
    if hasattr(many, "selected"):
        same_findings(many, by_columns, 1e-8)


@pytest.mark.parametrize(
    ("library", "absent"),
    [
        *itertools.product(("pandas", "polars", "pyarrow"), [("age",), ("age", "dose")]),
        ("array", ("dose",)),  # an array can only lack its last columns
        ("array", ("age", "dose")),
    ],
)
def test_a_covariate_without_a_column_is_0(library, absent, rng):
    names = ["a", "b", "age", "dose"]
    if library == "array":
        names, absent = [0, 1, 2, 3], tuple({"age": 2, "dose": 3}[name] for name in absent)
    given = tuple(names[2:])
    one, many = ProjSe(3, covariates=given), ProjSe(3, covariates=given)
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    for start in (0, 6):
        present = [j for j, name in enumerate(names) if not start or name not in absent]
        part = X[start : start + 6, present]
        frame = pd.DataFrame(part, columns=[names[j] for j in present])
        if library == "array":
            frame = part
        elif library != "pandas":
            frame = pl.DataFrame(frame)
        many.learn_many(frame.to_arrow() if library == "pyarrow" else frame, y[start : start + 6])
        for x, t in zip(part.tolist(), y[start : start + 6].tolist(), strict=True):
            one.learn_one(dict(zip([names[j] for j in present], x, strict=True)), t)
        same(many, one)
    rows = Rows(covariates=given)
    X[6:, [names.index(name) for name in absent]] = 0.0
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        rows.learn_one(dict(zip(names, x, strict=True)), t)
    agree(one, rows)


@pytest.mark.parametrize("names", [(7, 8), (("age", 1), 8.5), (None, "age")])
def test_names_of_covariates_are_any_hashables(names, rng):
    model, rows = ProjSe(3, covariates=names), Rows(covariates=names)
    for i in range(20):
        x = dict(zip(("a", "b", *names), rng.normal(size=4).tolist(), strict=True))
        x, y = x | {"a": x["a"] + x[names[0]]}, float(rng.normal())
        if i % 5 == 4:
            del x[names[1]]
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows)
    if None in names:  # pandas converts it to NaN
        return
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 3.0]})
    X[names[0]] = [1.0, 4.0]
    model.learn_many(X, [1.0, 2.5])
    assert model.n_rows == 22
    assert {*model._state.names} == {"a", "b"}


@pytest.mark.parametrize("kind", ["number", "label", "several"])
@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
def test_offsets_and_scales_of_covariates_on_rows(kind, scale):
    model, rows = ProjSe(12, covariates=GIVEN), Rows(covariates=GIVEN)
    for i, (x, y) in enumerate(stream(60, kind, offset=1e9)):
        x["age"] = x.get("age", 1e9) * scale
        model.learn_one(x, y)
        rows.learn_one(x, y)
        if i > 20:
            agree(model, rows)


BAD_COVARIATES = {
    "None": None,
    "NaN": float("nan"),
    "NA": pd.NA,
    "inf": float("inf"),
    "too large": 10**400,
    "beyond 1e152": 1e200,
    "a label": "text",
    "list": [1.0],
    "complex": 1j,
    "date": pd.Timestamp("2024-01-01"),
    "object": object(),
}


@pytest.mark.parametrize("learner", ON_ROWS)
@pytest.mark.parametrize("phase", ["fresh", "on rows", "from columns"])
def test_bad_covariates_change_nothing(learner, phase):
    model = ON_ROWS[learner](covariates=GIVEN)
    rows = list(stream(30))
    if phase == "on rows":
        model.learn_many(frame_of(rows[:10], "pandas").assign(batch="u"), [y for _, y in rows[:10]])
    elif phase == "from columns":
        Z = pd.DataFrame({"age": [x.get("age", 0.0) for x, _ in rows], "batch": ["u", "v"] * 15})
        model.learn_target([y for _, y in rows], covariates=Z)
        model.learn_columns([("f", np.array([x.get("f", 0.0) for x, _ in rows]))])
    before, twin = pickle.dumps(model), pickle.loads(pickle.dumps(model))  # noqa: S301
    for case, value in BAD_COVARIATES.items():
        if case == "a label" and phase == "fresh":
            continue
        x = {"f": 1.0, "new": 2.0, "age": value, "batch": "u"}
        with pytest.raises((ValueError, TypeError), match="age"):
            model.learn_one(x, 1.0)
        assert pickle.dumps(model) == before, case
        if case not in ("list", "complex", "date", "object", "NA", "too large"):
            X = pd.DataFrame([x | {"age": 1.0}, x]).infer_objects()
            with pytest.raises((ValueError, TypeError), match=r"age|covariate"):
                model.learn_many(X, [1.0, 2.0])
            assert pickle.dumps(model) == before, case
    if phase != "fresh":  # labels stay labels
        for x in ({"f": 1.0, "age": 1.0, "batch": 2.0}, {"f": 1.0, "age": 1.0}):
            with pytest.raises(TypeError, match="batch"):
                model.learn_one(x, 1.0)
            assert pickle.dumps(model) == before
    with pytest.raises((ValueError, TypeError)):
        model.learn_one({"age": 1.0, "batch": "u", "f": "text"}, 1.0)
    assert pickle.dumps(model) == before
    for one in (model, twin):  # the errors left no trace
        one.learn_one({"age": 1.0, "batch": "u", "f": 2.0, "new": 3.0}, 1.0)
    assert bits(model) == bits(twin)


# ----------------------------------------------------------------------- from columns to rows


def halves(kind="number", n=40, half=20, **options):
    """Return rows, and the first half of them as columns; later rows have new names."""
    rows = list(stream(n, kind, missing=0.0, **options))
    old = list(dict.fromkeys(name for x, _ in rows[:half] for name in x if name not in GIVEN))
    X = np.array([[x.get(name, 0.0) for name in old] for x, _ in rows[:half]])
    Z = pd.DataFrame({name: [x.get(name, 0.0) for x, _ in rows[:half]] for name in GIVEN})
    y = [y for _, y in rows[:half]]
    return rows, old, X, (pd.DataFrame(y).fillna(0.0) if kind == "several" else y), Z


@pytest.mark.parametrize("way", [None, *COPIES])
@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_rows_continue_from_columns(kernel, fading_factor, way, tmp_path):
    rows, old, X, y, Z = halves()
    model = ProjSe(12, kernel=kernel, covariates=GIVEN, fading_factor=fading_factor)
    model.learn_target(y, covariates=Z)
    model.learn_columns(X, names=old)
    stored = Rows(fading_factor, covariates=GIVEN)
    stored.learn_at_once(rows[:20])
    agree(model, stored, 1e-8)
    if way:
        model = COPIES[way](model, tmp_path)
    for x, t in rows[20:]:
        model.learn_one(x, t)
        stored.learn_one(x, t)
        agree(model, stored, 1e-8)
        model = COPIES[way](model, tmp_path) if way else model
    assert model.n_rows == 40


@pytest.mark.parametrize("kind", ["label", "several"])
def test_rows_continue_targets_of_columns(kind):
    rows, old, X, y, Z = halves(kind)
    model = ProjSe(12, covariates=GIVEN)
    model.learn_target(y, covariates=Z)
    model.learn_columns(X, names=old)
    model.learn_many(frame_of(rows[20:30], "pandas"), _as_many([t for _, t in rows[20:30]]))
    for x, t in rows[30:]:
        model.learn_one(x, t)
    stored = Rows(covariates=GIVEN)
    for x, t in rows:
        stored.learn_one(x, t)
    agree(model, stored, 1e-8)


def _as_many(ys):
    return pd.DataFrame(ys).fillna(0.0) if isinstance(ys[0], dict) else ys


@pytest.mark.parametrize("mode", ROTATIONS)
def test_rows_continue_components_of_columns(mode):
    """Components of columns remain on rows; their relevances follow from all rows together."""
    rows, old, X, y, Z = halves(n=80, half=60)
    old, X = old[:3], X[:, :3]
    model = SOSPCA(3, covariates=GIVEN, **ROTATIONS[mode])
    model.learn_target(y, covariates=Z)
    model.learn_columns(X, names=old)
    before = model.loadings
    for i in range(60, 80):
        model.learn_one(*rows[i])
        V = np.array([[x.get(name, 0.0) for name in old] for x, _ in rows[: i + 1]])
        batch = [x["batch"] for x, _ in rows[: i + 1]]
        age = [x.get("age", 0.0) for x, _ in rows[: i + 1]]
        G = np.column_stack([age, space.indicators(batch)])
        B = [[model.loadings[v].get(c, 0.0) for c in model.components] for v in old if v in before]
        E = left(V[:, [j for j, v in enumerate(old) if v in before]] @ np.array(B), G)
        t = left(np.array([t for _, t in rows[: i + 1]]), G)[:, 0]
        true = [space.correlation(z, t) for z in E[:, : len(model.relevance)].T]
        true = true if model.signed else np.abs(true)
        np.testing.assert_allclose(list(model.relevance.values()), true, atol=1e-8)
    assert model.loadings == before


def test_names_of_columns_and_rows_must_match():
    rows, old, X, y, Z = halves()
    model = ProjSe(3)
    model.learn_target(y, covariates=Z)
    model.learn_columns(X, names=old)
    before = pickle.dumps(model)
    for learn in (
        lambda: model.learn_one(*rows[20]),
        lambda: model.learn_many(frame_of(rows[20:22], "pandas"), [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match="covariates"):
            learn()
        assert pickle.dumps(model) == before
    for unfit in (None, Z[["age"]], Z.rename(columns={"age": "years"}), Z["age"], np.ones((20, 3))):
        model = ProjSe(3, covariates=GIVEN)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="covariates"):
            model.learn_target(y, covariates=unfit)
        assert pickle.dumps(model) == before
    # An array's columns have the names of the parameter, in order.
    named, unnamed = (ProjSe(3, covariates=("age", "dose")) for _ in range(2))
    Z = pd.DataFrame({"dose": np.arange(20.0) ** 2, "age": Z["age"]})
    named.learn_target(y, covariates=Z)
    unnamed.learn_target(y, covariates=Z[["age", "dose"]].to_numpy())
    for model in (named, unnamed):
        model.learn_columns(X, names=old)
        model.learn_one({"age": 3.0, "dose": 1.0, "f": 1.0}, 2.0)
    same(named, unnamed)


# ----------------------------------------------------------------------------- merges, copies


@pytest.mark.parametrize("ways", ["rows rows", "columns rows", "rows columns", "columns columns"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_merging_rows(kernel, ways):
    """Merged parts equal all rows; the second has new labels of a covariate and new names."""
    rows = halves()[0]
    parts = []
    for way, part in zip(ways.split(), (rows[:20], rows[20:]), strict=True):
        model = ProjSe(12, kernel=kernel, covariates=GIVEN)
        if way == "rows":
            for x, y in part:
                model.learn_one(x, y)
        else:
            names = list(dict.fromkeys(v for x, _ in part for v in x if v not in GIVEN))
            Z = pd.DataFrame({v: [x.get(v, 0.0) for x, _ in part] for v in GIVEN})
            model.learn_target([y for _, y in part], covariates=Z)
            model.learn_columns(
                np.array([[x.get(v, 0.0) for v in names] for x, _ in part]), names=names
            )
        parts.append(model)
    parts[0].merge(parts[1], along="rows")
    stored = Rows(covariates=GIVEN)
    for x, y in rows:
        stored.learn_one(x, y)
    for x, y in [*rows[:1], *rows[5:8]]:
        assert parts[0].selected
        whole = {name: r for name, *_, r in stored.picks(12, kernel=kernel)}
        assert {*parts[0].selected} == {*whole}
        found = parts[0].relevance
        np.testing.assert_allclose([found[v] for v in whole], list(whole.values()), atol=1e-8)
        parts[0].learn_one(x, y)
        stored.learn_one(x, y)
    assert parts[0].n_rows == 44


@pytest.mark.parametrize("fading_factor", [0.0, 0.02])
@pytest.mark.parametrize("mode", ROTATIONS)
def test_merging_rows_of_the_same_components(mode, fading_factor):
    """Copies that learnt other rows since the last refresh merge exactly."""
    rows = list(stream(180, missing=0.0))
    options = ROTATIONS[mode] | {"grace_period": 50, "fading_factor": fading_factor}
    one = SOSPCA(3, covariates=GIVEN, **options)
    for x, y in rows[:100]:
        one.learn_one(x, y)
    other = pickle.loads(pickle.dumps(one))  # noqa: S301
    for model, part in ((one, rows[100:140]), (other, rows[140:180])):
        for x, y in part:
            model.learn_one(x, y)
    names, B = list(one.loadings), one.loadings
    one.merge(other, along="rows")
    assert one.loadings == B
    stored = Rows(fading_factor, covariates=GIVEN)
    for part in (rows[:140], rows[:100] + rows[140:180]):
        stored.learn_at_once(part)
    age = np.r_[139.0:-1.0:-1.0, 139.0:-1.0:-1.0]
    stored.weights = (1.0 - np.longdouble(fading_factor)) ** age
    (t,) = stored._targets().values()
    for component, found in one.relevance.items():
        z = stored._centred(sum(B[v].get(component, 0.0) * stored.column(v) for v in names))[1]
        z = stored._left(z)
        true = float(np.sum(stored.weights * z * t))
        true /= float(np.sqrt(np.sum(stored.weights * z**2) * np.sum(stored.weights * t**2)))
        assert found == pytest.approx(true if one.signed else abs(true), abs=1e-9)


@pytest.mark.parametrize("learner", ["linear", "f", "jacobi"])
def test_merging_columns_of_rows(learner):
    rows = list(stream(40, missing=0.0))
    whole, one, other = (ON_ROWS[learner](covariates=GIVEN) for _ in range(3))
    mine = {"both", "b", "theirs", *GIVEN}
    for x, y in rows:
        whole.learn_one(x, y)
        one.learn_one({v: x[v] for v in x if v in mine}, y)
        other.learn_one({v: x[v] for v in x if v not in mine - {*GIVEN}}, y)
    one.merge(other)
    assert one.n_columns == whole.n_columns
    assert one.noise_floor() == pytest.approx(whole.noise_floor())
    if learner != "jacobi":
        assert {*one.selected} == {*whole.selected}
        found = one.relevance
        np.testing.assert_allclose(
            [found[v] for v in whole.relevance], list(whole.relevance.values()), atol=1e-8
        )
    assert not {*GIVEN, "theirs"} & {*one.relevance, *getattr(one, "loadings", ())}


@pytest.mark.parametrize("along", ["rows", "columns"])
def test_merge_refuses_other_covariates(along):
    def fed(names=GIVEN, batch="u", covariates=GIVEN):
        model = ProjSe(3, covariates=covariates)
        for i in range(8):
            x = {name: float(i**2 % 7) for name in names}
            model.learn_one(x | {"age": float(i % 3), "batch": batch}, float(i % 5))
        return model

    one = fed(["a"])
    for other in (fed(["b"], covariates=("age",), batch=1.0), fed(["b"], batch=2.0)):
        before = pickle.dumps(one), pickle.dumps(other)
        with pytest.raises((ValueError, TypeError), match="Got"):
            one.merge(other, along=along)
        assert (pickle.dumps(one), pickle.dumps(other)) == before


@pytest.mark.parametrize("kind", ["number", "label", "several"])
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("learner", ON_ROWS)
def test_copies_amid_a_stream(learner, way, kind, tmp_path):
    model = ON_ROWS[learner](covariates=GIVEN, fading_factor=0.02, max_features=9)
    twin = model.clone()
    for i, (x, y) in enumerate(stream(40, kind)):
        model.learn_one(x, y)
        if i % 4 == 0:
            twin = COPIES[way](twin, tmp_path)
        twin.learn_one(x, y)
        assert model.noise_floor() == pytest.approx(twin.noise_floor(), nan_ok=True)
    assert bits(twin) == bits(model)
    same_findings(twin, model, 0.0)
    with pytest.raises(TypeError, match="batch"):  # labels stay labels
        COPIES[way](twin, tmp_path).learn_one(x | {"batch": 2.0}, y)


# --------------------------------------------------------------------------- properties, River


@pytest.mark.slow
@settings(max_examples=25)
@given(
    learner=st.sampled_from(["linear", "poly", "rbf", "f", "jacobi", "paper"]),
    seed=st.integers(0, 50),
    fading_factor=st.sampled_from([0.0, 0.05]),
    b=st.sampled_from([-3.0, 0.5, 2.0]),
)
def test_adding_covariates_to_rows_changes_nothing(learner, seed, fading_factor, b):
    make = ON_ROWS | {"poly": lambda **o: ProjSe(12, kernel="poly", **o)}
    one, other = (make[learner](covariates=GIVEN, fading_factor=fading_factor) for _ in range(2))
    for i, (x, y) in enumerate(stream(50, seed=seed, missing=0.0)):
        given = b * (x.setdefault("age", 40.0) - 40.0) + "uvw".index(x["batch"]) / b
        x.setdefault("f", 0.0)
        x.setdefault("late", 0.0)
        one.learn_one(x, y)
        other.learn_one(x | {v: x[v] + given for v in ("both", "f", "late", "b")}, y + 2.0 * given)
        if i > 12:
            assert {*other.relevance} == {*one.relevance}
            found = other.relevance
            np.testing.assert_allclose(
                [found[v] for v in one.relevance], list(one.relevance.values()), atol=1e-8
            )


@pytest.mark.parametrize("learner", ON_ROWS)
def test_in_a_river_pipeline(learner):
    """The next step of a pipeline gets no covariates, nor variables relevant only through them."""
    model = ON_ROWS[learner](covariates=GIVEN)
    size = {"n_components": 1} if hasattr(model, "components") else {"k": 1}
    model = model.clone(size)
    pipeline = compose.Discard("constant") | model | linear_model.LinearRegression()
    alone = model.clone()
    for x, y in stream(60, missing=0.0):
        assert not {*GIVEN} & {*model.transform_one(x)}  # from the first row on
        pipeline.predict_one(x)
        pipeline.learn_one(x, y)
        alone.learn_one({v: x[v] for v in x if v != "constant"}, y)
    guest = pipeline.steps[type(model).__name__]
    assert bits(guest) == bits(alone)
    assert not {*GIVEN, "theirs"} & {*guest.transform_one(x), *getattr(guest, "loadings", ())}
    assert all(r > guest.noise_floor() for r in guest.relevance.values()) or learner == "rbf"


def test_unhashable_names_are_refused():
    """A tuple that contains an array is not hashable, and is refused as a name."""
    with pytest.raises(ValueError, match="Expected covariates of ProjSe to be an array-like"):
        ProjSe(covariates=("age", (np.zeros(2),)))


def test_the_error_for_a_covariate_of_tiny_values_names_it():
    y, age = np.random.default_rng(0).normal(size=(2, 20))
    message = r"values of the covariate whose squares do not underflow.*up to .*e-200 in 'age'\."
    with pytest.raises(ValueError, match=message):
        SelectKBest(1).learn_target(y, covariates={"age": 1e-200 * age})

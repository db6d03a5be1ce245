"""Refresh schedule of the snapshot that transforms use, in every mode that learns rows."""

import copy

import numpy as np
import pytest
from river import preprocessing

from streamsel import (
    PCA,
    PLS,
    SOSPCA,
    Discriminant,
    PrivateFeatures,
    ProbabilisticPCA,
    ProjSe,
    RankedPCA,
    RidgeComponents,
    RobustPCA,
    SparsePCA,
    SupervisedPCA,
)
from streamsel.base.linear_map import align_components
from tests.conformance.modes import bits, build, fresh, over, rotated, sampled
from tests.conformance.rowwise import (
    BY_MOMENTS,
    BY_WINDOW,
    ROW_MODES,
    kinds_of,
    learn_many,
    learn_one,
    of_kind,
    stream,
    taught,
)
from tests.copies import COPIES, as_of_now
from tests.reference.alignment import FadedAlignment
from tests.reference.refresh import VariablesInUse

SCHEDULES = {
    "at once": {"refresh_factor": 1.0, "hysteresis": 1.0, "warm_up": 0},
    "hysteresis": {"refresh_factor": 1.0, "hysteresis": 2.0, "warm_up": 7},
    "late": {"refresh_factor": 1.5, "hysteresis": 1.5, "warm_up": 20},
    "rare": {"refresh_factor": 2.0, "hysteresis": 3.0, "warm_up": 10},
}
SELECTORS = {
    name: mode
    for name, mode in BY_MOMENTS.items()
    if hasattr(mode.cls, "selected") and "max_features" not in mode.params
}
# Modes with a snapshot; transforms by names alone have none.
WITH_SNAPSHOT = {name: mode for name, mode in ROW_MODES.items() if mode.has("refresh_factor")}
EXTRACTORS = {name: mode for name, mode in WITH_SNAPSHOT.items() if hasattr(mode.cls, "components")}


@rotated(SELECTORS, "schedule", SCHEDULES, each=2)
def test_snapshot_of_selectors_follows_the_definition(mode, schedule):
    """The snapshot follows the definition after every row; models of other k give the ranking."""
    model = build(mode, **SCHEDULES[schedule])
    k = model._n_requested
    limit = {"max_candidates": None} if mode.has("max_candidates") else {}
    others = {size: build(mode, k=size, **limit) for size in range(2, 7)} if k else {None: model}
    other = VariablesInUse(k, fading_factor=model.fading_factor, **SCHEDULES[schedule])
    for x, y in stream(mode, 90, names="abcdefghijklmnopqrst"):
        for one in {id(one): one for one in (model, *others.values())}.values():
            learn_one(one, x, y)
        other.learn_one(lambda size: others[size if k else None].selected, len(x))
        assert model.in_use == (other.names or [])
        assert model.transform_one(x) == (
            x if other.names is None else {name: x[name] for name in other.names}
        )
    assert other.names


@rotated(WITH_SNAPSHOT, "copied", COPIES)
def test_copy_has_the_same_snapshot(mode, copied, tmp_path):
    rows = stream(mode, 95)
    model = taught(build(mode, warm_up=20), rows[:60])
    other = COPIES[copied](model, tmp_path)
    assert other.in_use == model.in_use
    for x, y in rows[60:]:
        assert other.transform_one(x) == model.transform_one(x)
        for one in (model, other):
            learn_one(one, x, y)
    assert other.in_use == model.in_use
    assert bits(other) == bits(model)


@sampled(WITH_SNAPSHOT)
def test_refresh_is_immediate(mode):
    """It does nothing before learning and on columns; in the warm-up, it ends the warm-up."""
    model = build(mode)
    model.refresh()
    assert bits(model) == bits(build(mode))
    warms_up = model.warm_up > 9
    rows = stream(mode, 9)
    taught(model, rows)
    if warms_up:
        assert not model.in_use
    model.refresh()
    shown = next(name for name in ("selected", "loadings", "landmarks") if hasattr(model, name))
    found = getattr(model, shown)
    if model._state is None:  # the first window is not full
        assert not model.in_use
    elif warms_up:
        assert model.in_use == found
    before = bits(model)
    due = model._refresh.due_at
    taught(model, rows[:1])
    # Before a result exists, `refresh` changes nothing, and the scheduled refresh is still due.
    assert model._refresh.due_at == due or model.refresh_factor == 1.0 or not found
    assert bits(model) != before


@sampled(SELECTORS)
def test_refresh_discards_variables_kept_by_hysteresis(mode):
    model = taught(
        build(mode, warm_up=10, hysteresis=9.0), stream(mode, 95, names="abcdefghijklmnopqrst")
    )
    model.refresh()
    assert {*model.in_use} == {*model.selected}


@over(WITH_SNAPSHOT)
def test_model_learnt_from_columns_is_in_use_at_once(mode):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 2.0
    kind = kinds_of(mode)[0]
    values = X[:, 1] + 0.5 * X[:, 2] - 3.0
    y = [of_kind(mode, kind, float(value), 30) for value in values]
    model = fresh(mode, y)
    model.learn_columns(X, names=list("abcd"))
    found = as_of_now(model).transform_one(dict(zip("abcd", X[0].tolist(), strict=True)))
    x, t = stream(mode, 1, names="abcd")[0]
    learn_one(model, x, of_kind(mode, kind, 0.5, 30))
    assert t is not None or kind == "none"
    out = model.transform_one(dict(zip("abcd", X[0].tolist(), strict=True)))
    assert list(out) == list(found)
    if mode.params.get("refresh_factor", 2.0) > 1.0:
        np.testing.assert_allclose([*out.values()], [*found.values()], rtol=1e-12)
        assert model._refresh.due_at == 40 + as_many(
            40, model.refresh_factor - 1.0, 1.0 - model.fading_factor
        )


def as_many(rows, share, keep):
    """Return after how many rows the new ones have this share of the remaining weight of `rows`."""
    new, left, count = 0.0, float(rows), 0
    while new < share * left * (1.0 - 1e-12):
        new, left, count = keep * new + 1.0, keep * left, count + 1
    return count


@over(SELECTORS)
def test_irrelevant_variable_is_replaced_among_few(mode):
    """A variable that became irrelevant is replaced even if all variables are among the best 3k."""
    if (
        mode.params.get("fading_factor")
        or build(mode)._n_requested is None
        or not mode.cls._is_supervised
    ):
        return
    model = build(mode, warm_up=5)
    rng = np.random.default_rng(1)
    for i in range(800):
        x = dict(zip("abcdef", rng.normal(size=6).tolist(), strict=True))
        names = "ab" if i < 10 else "ef"
        value = sum(x[name] for name in names) + 0.1 * float(rng.normal())
        learn_one(model, x, of_kind(mode, kinds_of(mode)[0], value, 30))
    assert {"e", "f"} & {*model.in_use}
    assert model.transform_one(x) == {name: x[name] for name in model.in_use}


@sampled(SELECTORS)
def test_variables_in_use_keep_their_order(mode):
    rows = stream(mode, 60)
    model = taught(build(mode, warm_up=0), rows)
    x = rows[-1][0]
    for name in reversed(model.in_use):
        assert model.transform_one({"other": 1.0, name: x[name]}) == {name: x[name]}
    some = dict(reversed([*x.items()]))
    assert list(model.transform_one(some)) == model.in_use


# ------------------------------------------------------------------------- extractors


def weights(loadings, names, components):
    return np.array([[loadings.get(name, {}).get(z, 0.0) for z in components] for name in names])


@pytest.mark.parametrize("fading_factor", [0.0, 0.02])
@pytest.mark.parametrize("q", [1, 3, 5])
def test_sospca_is_aligned_by_procrustes(q, fading_factor):
    """Every variable is a candidate from its first row on, so all covariances are exact."""
    rng = np.random.default_rng(q)
    names, n = list("abcdefgh"), 330
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8)) + 3.0
    y = X[:, 1] - X[:, 4] + 0.5 * X[:, 6] + rng.normal(size=n)
    model = SOSPCA(q, grace_period=20, warm_up=40, fading_factor=fading_factor)
    before, n_refreshes, faded = None, 0, FadedAlignment(fading_factor)
    for i in range(n):
        due = model._refresh.due_at
        model.learn_one(dict(zip(names, X[i].tolist(), strict=True)), float(y[i]))
        if model._refresh.due_at == due:
            assert model.in_use == (before or {})
            continue
        n_refreshes += 1
        new = weights(model.loadings, names, model.components)
        in_use = weights(model.in_use, names, model.components)
        w = (1.0 - fading_factor) ** np.arange(i, -1.0, -1.0)
        centred = (X[: i + 1] - np.average(X[: i + 1], axis=0, weights=w)) * np.sqrt(w / w.sum())[
            :, None
        ]
        if before:
            old = weights(before, names, model.components)
            rotation = faded.of(centred @ new, centred @ old, i + 1)
            np.testing.assert_allclose(in_use, new @ rotation, atol=1e-5)
        else:
            np.testing.assert_array_equal(in_use, new)
        # Both span the same subspace.
        rank = np.linalg.matrix_rank(new)
        assert np.linalg.matrix_rank(in_use) == rank
        assert np.linalg.matrix_rank(np.hstack([new, in_use])) == rank
        before = model.in_use
    assert n_refreshes >= 3


def test_refreshes_do_not_shrink_correlated_components():
    """The variance of a rotated component is divided out, as nothing else would restore it."""
    rng = np.random.default_rng(0)
    X = np.round(np.exp(rng.normal(size=(400, 60)) - 3.0)) + (rng.random((400, 60)) < 0.05)
    y = np.where(X[:, :5].sum(axis=1) > 0.0, "a", "b").tolist()
    model, spreads = SOSPCA(8, grace_period=50, warm_up=0, refresh_factor=1.0), []
    for i, x in enumerate(X.tolist()):
        model.learn_one(dict(enumerate(x)), y[i])
        if i % 50 == 49:
            spreads.append(model.transform_many(X).std(axis=0).max())
    assert min(spreads) > 0.2 * max(spreads)


FADING = [
    *(PCA, PLS, RankedPCA, SupervisedPCA, RidgeComponents, ProbabilisticPCA),
    *(PrivateFeatures, RobustPCA, SparsePCA, Discriminant, SOSPCA),
]


@pytest.mark.parametrize("cls", FADING)
def test_components_of_a_stationary_stream_keep_their_scale(cls):
    """The bias of each refresh must not accumulate: PCA had grown 10^4 times by row 6,000."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=(4000, 8))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])].tolist()
    model, Z = cls(n_components=2, fading_factor=0.1), []
    for i, x in enumerate(X.tolist()):
        if i % 1000 >= 700:
            Z.append([*model.transform_one(dict(enumerate(x))).values()])
        learn_one(model, dict(enumerate(x)), y[i])
    spreads = np.array(Z).reshape(4, 300, 2).std(axis=1)
    assert (spreads > spreads[0] / 4.0).all()
    assert (spreads < spreads[0] * 4.0).all()


def test_component_without_rotation_keeps_its_weights():
    """A component without variance in use keeps its earlier scale."""
    covariance, in_use = np.diag([6.0, 0.0]), np.array([4.0, 0.0])
    aligned = align_components(covariance, np.diag([9.0, 1.0]), in_use, np.array([7.0, 5.0]), 0.0)
    near = np.testing.assert_allclose
    near(aligned.matrix, np.diag([2.0 / 3.0, 5.0]), atol=1e-8)
    near(aligned.reference_scale, [7.0, 5.0])
    # As long as no row has faded, the reference is the scale in use.
    aligned = align_components(covariance, np.diag([9.0, 1.0]), in_use, np.array([7.0, 5.0]), 1.0)
    near(aligned.reference_scale, [2.0, 5.0])


def test_a_file_without_reference_scales_is_read():
    """Files of 0.4.0 have none, as before the first refresh."""
    model = PCA(2)
    model.learn_many(np.random.default_rng(0).normal(size=(60, 4)))
    state = model._get_state()
    del state["snapshot"]["reference_scale"]
    found = PCA(2)
    found._set_state(copy.deepcopy(state))
    assert found.in_use == model.in_use
    state["snapshot"]["reference_scale"] = np.array([1.0, -1.0])
    with pytest.raises(ValueError, match="reference scales"):
        PCA(2)._set_state(state)


@over(EXTRACTORS)
def test_warm_up_has_no_components(mode):
    """A row has no components, so that no scaler learns them; a frame has columns of 0.0."""
    model = build(mode, warm_up=30)
    for i, (x, y) in enumerate(stream(mode, 40)):
        if i < 30:
            assert model.transform_one(x) == {}
            assert not model.transform_many(np.array([[*x.values()]])).any()
        learn_one(model, x, y)
    assert any(model.transform_one(x).values())


@over(EXTRACTORS)
def test_downstream_scaler_learns_no_zeros(mode):
    """The first value that a scaler learns is the first value of a component, hence its mean."""
    model, scaler = build(mode), preprocessing.StandardScaler()
    assert model.warm_up == mode.params.get("warm_up", 20)
    for x, y in stream(mode, 60):
        z = model.transform_one(x)
        scaler.learn_one(z)
        if z:
            break
        learn_one(model, x, y)
    assert set(scaler.transform_one(z).values()) == {0.0}


def test_merging_along_rows_keeps_sospca_aligned(rng):
    """The merged components are aligned with those in use before the merge."""
    X = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6))
    y = X[:, 0] + X[:, 3] + rng.normal(size=400)
    one, other = (SOSPCA(2, grace_period=20, warm_up=50) for _ in range(2))
    one.learn_many(X[:200], y[:200])
    other.learn_many(X[200:], y[200:])
    before = copy.deepcopy(one)
    one.merge(other, along="rows")
    Z, old = one.transform_many(X), before.transform_many(X)
    corr = [np.corrcoef(Z[:, k], old[:, k])[0, 1] for k in range(2)]
    assert min(corr) > 0.9
    one.learn_many(X, y)
    assert np.isfinite(one.transform_many(X)).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("grace_period", [1, 2, 3])
def test_inconsistent_approximate_covariances(grace_period, seed):
    """Covariances are approximate after few rows, and for evicted variables that return."""
    rng = np.random.default_rng(seed)
    bounds = {"max_features": 4, "grace_period": grace_period, "fading_factor": 0.05 * (seed % 3)}
    model = SOSPCA(2, **bounds, refresh_factor=1.0 + seed % 2, warm_up=0)
    for x in rng.normal(size=(150, 8)).tolist():
        names = rng.permutation(8)[: 8 - 4 * (seed % 2)].tolist()
        model.learn_one({j: x[j] for j in names}, "pq"[int(x[0] > 0.0)])
        assert all(map(np.isfinite, model.transform_one(dict(enumerate(x))).values()))
    check = build_again(model)
    assert check.in_use == model.in_use


# ------------------------------------------------------------------------- files


def build_again(model):
    """Return a model with the state of another, as from a file."""
    other = model.clone()
    other._set_state(copy.deepcopy(model._get_state()))
    return other


NO_COUNTS = {"text": "x", "list": [1], "negative": -5, "half": 1.5, "bool": True, "dict": {}}


@rotated(WITH_SNAPSHOT, "due", NO_COUNTS)
def test_state_requires_the_next_refresh(mode, due):
    state = taught(build(mode), stream(mode, 60))._get_state()
    with pytest.raises(ValueError, match="next refresh"):
        build(mode)._set_state(state | {"refresh_at": NO_COUNTS[due]})


@sampled(WITH_SNAPSHOT)
def test_state_requires_a_valid_snapshot(mode):
    model = taught(build(mode, refresh_factor=2.0, warm_up=5), stream(mode, 60))
    state = model._get_state()
    snapshot = state["snapshot"]
    if hasattr(model, "selected"):
        bad = ["ab", {"a": 0}, [snapshot[0]] * 2, [*"abcdefghij"]]
        bad = bad if model._n_requested is not None else bad[:3]
    else:
        names, means = snapshot["names"], snapshot["means"]
        bad = [
            snapshot | {"names": "ab"},
            snapshot | {"names": [names[0], *names[:-1]]}
            if len(names) > 1
            else snapshot | {"names": []},
            snapshot | {"means": means[:-1]},
            snapshot | {"weights": snapshot["weights"].T[:, :0]},
        ]
    for one in bad:
        with pytest.raises(ValueError, match=r"snapshot|in use|names to track|shape"):
            build(mode, refresh_factor=2.0, warm_up=5)._set_state(
                copy.deepcopy(state | {"snapshot": one})
            )


# ------------------------------------------------------------------------- frames, windows


@over(WITH_SNAPSHOT)
def test_frames_refresh_at_the_same_rows(mode):
    """A refresh that falls due within a frame is made at that row."""
    rows = stream(mode, 130, names=range(6))
    loop, many = build(mode, warm_up=33), build(mode, warm_up=33)
    taught(loop, rows)
    X = np.array([[*x.values()] for x, _ in rows])
    y = np.array([y for _, y in rows], dtype=object)
    learn_many(many, X, y)
    assert many._refresh.due_at == loop._refresh.due_at
    assert list(many.in_use) == list(loop.in_use)
    one, other = many.transform_many(X), loop.transform_many(X)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@sampled(BY_WINDOW)
def test_windows_refresh_when_full(mode):
    model = build(mode, warm_up=0, refresh_factor=3.0)
    size, due_rows = model._window_size, []
    for i, (x, y) in enumerate(stream(mode, 7 * size)):
        learn_one(model, x, y)
        due_rows.append(model._refresh.due_at)
        if (i + 1) % size:
            assert not i or model._refresh.due_at == due_rows[-2]
    due = [3, 3, 5, 5, 7, 7, 9]
    assert due_rows[size - 1 :: size] == [size * windows for windows in due]


def test_variable_in_use_is_not_evicted(rng):
    """This holds whether it is selected or not; new variables are still admitted."""
    model = ProjSe(4, max_features=9, grace_period=5, warm_up=20, refresh_factor=4.0)
    for i in range(600):
        x = {f"w{j}": 1.0 for j in rng.integers(i, i + 12, size=3)}
        x["late" if i > 300 else "early"] = value = float(rng.normal())
        model.learn_one(x, value + 0.1 * float(rng.normal()))
        assert {*model.in_use} <= {*model._moments.index_of}
    assert "late" in model.selected


@sampled(BY_WINDOW)
def test_columns_after_a_window_are_refused(mode):
    """A window that was learnt as columns cannot be followed by columns."""
    model = taught(build(mode), stream(mode, 65))
    before = bits(model)
    for learn in (
        lambda: model.learn_column("new", np.arange(float(model._window_size))),
        lambda: model.learn_columns(np.ones((model._window_size, 2))),
    ):
        with pytest.raises(ValueError, match="Expected rows"):
            learn()
        assert bits(model) == before

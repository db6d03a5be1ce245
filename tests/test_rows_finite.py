"""State and results on rows are finite, and an error changes nothing.

Each of the small cases failed once; the random ones sample those that found them.
"""

import decimal
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from streamsel import SOSPCA, ProjSe
from tests.reference.sospca_rows import SOSPCAOnRows
from tests.test_sospca_rows import agree

pytestmark = pytest.mark.filterwarnings("ignore:The target has been")

NAN, INF = math.nan, math.inf


def numbers(value, path="state"):
    """Yield the path and array of all numbers of a state; names may be anything."""
    if isinstance(value, dict):
        for key, part in value.items():
            if "names" not in key:
                yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for key, part in enumerate(value):
            yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, float | np.ndarray):
        yield path, np.asarray(value)


def sound(model, x):
    """Check that the state and attributes of a model are finite and in range; return True."""
    for path, array in numbers(model._get_state()):
        assert np.isfinite(array).all(), path
    assert all(abs(r) <= 1.0 + 1e-9 for r in model.relevance.values()), model.relevance
    floor = model.noise_floor()
    assert 0.0 <= floor <= 1.0 or math.isnan(floor)
    assert 0 <= model.n_constant <= model.n_columns
    if isinstance(model, ProjSe):
        assert all(0.0 <= score <= 1.0 for score in model.scores.values())
        assert len(set(model.selected)) == len(model.selected) <= model.k
        return True
    on_rows, space = model._row_extension, model._moments.space
    # The relevance of a constant component is -inf here, and shown as 0.
    assert not np.isnan(on_rows.relevances(on_rows.support(model._moments), space)).any()
    assert (np.diag(on_rows.J) >= 0.0).all()
    B = on_rows.tracked["B"][:, : on_rows.count]
    np.testing.assert_allclose(B.T @ B, np.eye(on_rows.count), atol=1e-8)
    assert all(map(math.isfinite, model.transform_one(x).values()))
    return True


def refused(model, error, act, match=None):
    """Check that `act` raises an error and leaves the model unchanged."""
    before = pickle.dumps(model)
    with pytest.raises(error, match=match):
        act()
    assert pickle.dumps(model) == before


# ------------------------------- SOSPCA: a candidate not observed since it became one


@pytest.mark.parametrize("missing", [NAN, None])
@pytest.mark.parametrize("fading_factor", [0.0, 0.01, 0.02, 0.04, 0.3, 0.9])
def test_unobserved_candidates_do_not_join(fading_factor, missing):
    """A candidate that no row has observed since it became one does not join.

    Its covariances, all 0, were once scaled to all rows by 1 / 0, or by 1 / rounding: loadings were
    NaN with a fading factor of 0.01, -1 with 0.02 and 1 with 0.04.
    """
    model = SOSPCA(1, grace_period=1, max_features=2, fading_factor=fading_factor)
    for a, b, y in [(1.0, 1.0, 1.0), (2.0, 3.0, 3.0), (0.0, 5.0, 5.0), (1.0, missing, 4.0)]:
        model.learn_one({"a": a, "b": b}, y)
        assert sound(model, {"a": a, "b": b})
    assert model.loadings == {"a": {"sospca0": 1.0}}
    assert list(model._row_extension.candidates.index_of) == ["b"]
    # It can join as soon as it is observed.
    for b in (9.0, 2.0, 6.0):
        model.learn_one({"a": 3.0, "b": b}, b)
        assert sound(model, {"a": 3.0, "b": b})
    assert "b" in model.loadings


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("fading_factor", [0.0, 0.05, 0.3])
def test_decisions_with_long_gaps_equal_the_reference(fading_factor, signed):
    """Decisions equal the reference with long gaps, and more variables than candidates."""
    rng = np.random.default_rng(1)
    options = {"grace_period": 2, "fading_factor": fading_factor, "signed": signed}
    model, reference = SOSPCA(2, **options), SOSPCAOnRows(2, **options)
    lacking = np.zeros(45, dtype=bool)
    for _ in range(36):
        lacking ^= rng.random(45) < 0.2
        values = np.where(lacking, NAN, rng.normal(size=45))
        x = {f"v{j:02d}": v for j, v in enumerate(values.tolist())}
        y = float(np.nansum(values[-6:]) + rng.normal())
        model.learn_one(x, y)
        reference.learn_one(x, y)
        agree(model, reference)
    assert model.loadings


# ------------------------------------------------------------- a full vocabulary, and merges


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("scale", [True, False])
def test_first_rows_with_more_names_than_tracked(kernel, scale):
    """A first row may name more variables than are tracked; there is no relevance yet."""
    one, many = (ProjSe(1, kernel=kernel, scale=scale, max_features=2) for _ in range(2))
    x = {"a": 1.0, "b": 2.0, "c": 3.0}
    one.learn_one(x, "b")
    many.learn_many(pd.DataFrame([x]), ["b"])
    for model in (one, many):
        assert (model.n_rows, model.n_columns) == (1, 2)
        assert list(model._moments.table.index_of) == ["a", "b"]
        assert sound(model, x)


def test_variables_of_merged_components_are_kept(rng):
    """A merge into a full vocabulary keeps the variables of the other model's components."""
    few, many = (SOSPCA(1, max_features=4, grace_period=10) for _ in range(2))
    for name in "abcd":
        few.learn_one({name: float(rng.normal())}, float(rng.normal()))
    for _ in range(30):
        x = dict(zip("wxyz", rng.normal(size=4).tolist(), strict=True))
        many.learn_one(x, float(rng.normal()))
    loadings = many.loadings
    assert loadings
    assert not few.loadings
    few.merge(many, along="rows")
    assert few.loadings == loadings
    assert sound(few, x)
    for _ in range(30):
        few.learn_one(x, float(rng.normal()))
    assert sound(few, x)


def test_merges_add_no_second_target_to_signed_models(rng):
    one, other = (SOSPCA(1, signed=True, grace_period=2) for _ in range(2))
    for _ in range(6):
        one.learn_one({"a": float(rng.normal())}, {"s": float(rng.normal())})
        other.learn_one({"a": float(rng.normal())}, {"t": float(rng.normal())})
    refused(one, ValueError, lambda: one.merge(other, along="rows"), match="one numeric target")


# ------------------------------------------------------------------------ reported values


@pytest.mark.parametrize("options", [{}, {"kernel": "poly"}, {"kernel": "rbf"}])
@pytest.mark.parametrize("y", [1.0, "b", {"s": 1.0, "c": "x"}])
def test_noise_floor_of_a_constant_target(rng, options, y):
    """The noise floor of a constant target is 1 after the first row, and NaN from then on."""
    model = ProjSe(1, **options)
    model.learn_one({"a": 1.0}, y)
    assert model.noise_floor() == 1.0
    for _ in range(5):
        model.learn_one({"a": float(rng.normal())}, y)
    assert math.isnan(model.noise_floor())


@pytest.mark.parametrize("seed", range(3))
def test_narrow_kernels_of_identical_variables(seed):
    """In a narrow kernel a variable is identical to itself (rounding once made exp overflow)."""
    X = np.random.default_rng(seed).normal(size=(30, 3)) * 1e10
    columns, rows = (ProjSe(3, kernel="rbf", scale=False, gamma=1.0) for _ in range(2))
    columns.learn_target(X[:, :2])
    columns.learn_columns(X)
    for x in X.tolist():
        rows.learn_one(dict(enumerate(x)), dict(enumerate(x[:2])))
    for model in (columns, rows):
        assert model.relevance == {0: 1.0, 1: 1.0}
        assert model.scores == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize("value", [INF, -INF])
def test_transform_many_refuses_as_transform_one(rng, value):
    """`transform_many` refuses the values that `transform_one` refuses (once infinity or NaN)."""
    model = SOSPCA(2, grace_period=2, warm_up=6)
    model.learn_many(rng.normal(size=(6, 3)), rng.normal(size=6))
    X = rng.normal(size=(4, 3))
    assert np.isfinite(model.transform_many(X)).all()
    name = list(model.loadings)[-1]
    X[2, name] = value
    for act in (
        lambda: model.transform_many(X),
        lambda: model.transform_many(pd.DataFrame(X)),
        lambda: model.transform_one(dict(enumerate(X[2].tolist()))),
    ):
        with pytest.raises(ValueError, match=f"finite number.* in {name}"):
            act()


# ------------------------------------------------------------------------ errors change nothing


@pytest.mark.parametrize("numbers", [[10**400, 1], [1.5, -(10**400)]])
def test_a_target_too_large_for_a_float(numbers):
    rows, columns = ProjSe(1), ProjSe(1)
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    refused(rows, ValueError, lambda: rows.learn_many(frame, numbers), match="too large")
    refused(columns, ValueError, lambda: columns.learn_target(numbers), match="too large")
    refused(rows, ValueError, lambda: rows.learn_one({"a": 1.0}, numbers[-1] ** 3 * 10**400))


@pytest.mark.parametrize("y", [decimal.Decimal("NaN"), decimal.Decimal("sNaN")])
def test_missing_decimals_are_not_classes(y):
    model = ProjSe(1, target_type="class")
    refused(model, ValueError, lambda: model.learn_one({"a": 1.0}, y), match="non-missing")
    model.learn_one({"a": y}, "b")
    assert model._moments.observed_weights().tolist() == [0.0]


BAD_VALUES = [INF, -INF, 1e153, 10**400, "1", b"1", [1.0], {}, 1j, np.float32(INF)]
BAD_VALUES += [decimal.Decimal("1e400"), np.datetime64("2020"), np.timedelta64(1, "s"), object()]
BAD_TARGETS = [None, NAN, INF, 1e153, 10**400, [1.0], (1.0, 2.0), np.ones(2), 1j, object(), {1}]
BAD_TARGETS += [{"s": NAN}, {"s": None}, {"s": INF}, {"s": [1]}, {"s": {}}, decimal.Decimal("NaN")]
# Targets of another form than earlier ones may have.
OTHERS = [1.5, True, "a", {}, {"s": 1.0}, {"s": "a"}, {"s": 1.0, "c": "x"}, {"s": 1.0, "c": 2.0}]


def learners(rng):
    q, fading_factor = int(rng.integers(1, 4)), float(rng.choice([0.0, 0.05, 0.9]))
    most = None if rng.random() < 0.4 else q + int(rng.integers(1, 6))
    grace_period, kind = int(rng.choice([1, 2, 5])), str(rng.choice(["auto", "class", "numeric"]))
    rows = {"fading_factor": fading_factor, "max_features": most, "grace_period": grace_period}
    yield SOSPCA(q, target_type=kind, signed=bool(rng.random() < 0.2), **rows)
    kernel, scale = str(rng.choice(["linear", "poly", "rbf"])), bool(rng.random() < 0.7)
    yield ProjSe(q, target_type=kind, kernel=kernel, scale=scale, **rows)


def some_row(rng, p=8):
    values = np.where(rng.random(p) < 0.1, NAN, rng.normal(size=p)).tolist()
    return {f"v{j}": v for j, v in enumerate(values) if rng.random() < 0.7}


def some_target(rng, form):
    y = float(rng.normal())
    mixed = {"s": y, "c": str(rng.choice(["x", "y"]))}
    return {"number": y, "class": str(rng.choice(["a", "b", "c"])), "several": mixed}[form]


def frame_of(rows):
    try:
        return pd.DataFrame(rows)
    except OverflowError:  # integers larger than any float, with pandas 2
        return pd.DataFrame(rows, dtype=object)


def bad_calls(rng, model, form):
    """Yield calls of learn_one and learn_many that are or may be refused."""
    for bad in rng.permutation(len(BAD_VALUES))[:4]:
        x = some_row(rng) | {f"v{rng.integers(9)}": BAD_VALUES[bad]}
        yield lambda x=x: model.learn_one(x, some_target(rng, form))
        frame, ys = frame_of([some_row(rng), x]), [some_target(rng, form) for _ in range(2)]
        y = frame_of(ys) if form == "several" else ys
        yield lambda frame=frame, y=y: model.learn_many(frame, y)
    targets = [*BAD_TARGETS, *OTHERS]
    for bad in rng.permutation(len(targets))[:5]:
        y, x = targets[bad], some_row(rng)
        yield lambda x=x, y=y: model.learn_one(x, y)
        ys = frame_of([y, y]) if isinstance(y, dict) and y else [y, y]
        yield lambda x=x, ys=ys: model.learn_many(frame_of([x, x]), ys)
    yield lambda: model.learn_one([1.0], some_target(rng, form))
    yield lambda: model.learn_many(pd.DataFrame([some_row(rng)] * 3), [0.0, 1.0])


@pytest.mark.parametrize("seed", range(20))
def test_errors_change_nothing(seed):
    rng = np.random.default_rng(seed)
    for model in learners(rng):
        form = str(rng.choice(["number", "class", "several"]))
        try:
            for _ in range(int(rng.choice([0, 1, 2, 20]))):
                model.learn_one(some_row(rng), some_target(rng, form))
        except (TypeError, ValueError):
            form = "number"  # the parameters exclude other forms
        for act in bad_calls(rng, model, form):
            before = pickle.dumps(model)
            try:
                act()
            except (TypeError, ValueError):
                assert pickle.dumps(model) == before
            assert model._moments is None or sound(model, some_row(rng))


# ------------------------------------------------------------------------------- streams


def some_stream(rng, n, p):
    """Return rows (n, p) and a signal (n,); NaN is not observed, None is absent."""
    X = rng.normal(size=(n, p)) * 10.0 ** rng.choice([0, 0, 0, -8, 6, 140, -150], size=p)
    X += np.where(rng.random(p) < 0.2, 10.0 ** rng.integers(0, 9, size=p), 0.0)
    usual = np.abs(X).max(axis=0) < 1e9
    signal = np.where(usual, X, 0.0) @ rng.normal(size=p) + rng.normal(size=n)
    rows = np.where(rng.random((n, p)) < rng.choice([0.0, 0.1, 0.5], size=p), NAN, X).astype(object)
    rows[rng.random((n, p)) < rng.choice([0.0, 0.0, 0.3, 0.9], size=p)] = None
    for j in range(p):
        start = int(rng.integers(n))
        stretch = slice(start, start + int(rng.integers(1, n)))
        match rng.integers(7):
            case 0:
                rows[:start, j] = None  # late
            case 1:
                rows[start:, j] = None  # vanishing
            case 2:
                rows[stretch, j] = X[start, j]
            case 3 | 4:
                rows[stretch, j] = NAN
    if rng.random() < 0.2:
        signal[start:] = signal[start]
    return rows, signal


def some_targets(rng, signal, form):
    if form == "number":
        return signal.tolist()
    labels = np.array(list("abc"))[np.digitize(signal, [-1.0, 1.0])].tolist()
    if form == "class":
        return labels
    return [{"s": s, "c": c} for s, c in zip(signal.tolist(), labels, strict=True)]


def learn(rng, model, rows, y):
    """Learn rows one by one, or sometimes as frames, with a check after each."""
    names, start = [f"v{j}" for j in range(rows.shape[1])], 0
    by_frames = rng.random() < 0.5
    while start < len(rows):
        stop = min(len(rows), start + int(rng.integers(2, 12)))
        if by_frames and rng.random() < 0.2:
            values = np.where(rows[start:stop] == None, 0.0, rows[start:stop])  # noqa: E711
            frame = pd.DataFrame(values.astype(float), columns=names)
            ys = y[start:stop]
            model.learn_many(frame, pd.DataFrame(ys) if isinstance(ys[0], dict) else ys)
        else:
            stop = start + 1
            cells = zip(names, rows[start].tolist(), strict=True)
            model.learn_one({name: v for name, v in cells if v is not None}, y[start])
        last = zip(names, rows[stop - 1].tolist(), strict=True)
        assert sound(model, {name: v for name, v in last if v is not None})
        start = stop


@pytest.mark.parametrize("fading_factor", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(12))
def test_random_streams(seed, fading_factor):
    rng = np.random.default_rng([seed, int(100 * fading_factor)])
    form = str(rng.choice(["number", "class", "several"]))
    q, n, p = int(rng.integers(1, 5)), int(rng.integers(20, 80)), int(rng.integers(2, 20))
    options = {
        "fading_factor": fading_factor,
        "grace_period": int(rng.choice([1, 1, 2, 3, 10])),
        "max_features": q + int(rng.integers(1, 12)) if rng.random() < 0.7 else None,
    }
    rows, signal = some_stream(rng, n, p)
    y = some_targets(rng, signal, form)
    signed = form == "number" and bool(rng.random() < 0.5)
    rotation = str(rng.choice(["jacobi", "paper"]))
    one = SOSPCA(q, signed=signed, rotation=rotation, **options)
    learn(rng, one, rows, y)
    kernel, scale = str(rng.choice(["linear", "poly", "rbf"])), bool(rng.random() < 0.7)
    gamma = None if rng.random() < 0.7 else 10.0 ** int(rng.integers(-3, 3))
    other = ProjSe(q, kernel=kernel, scale=scale, gamma=gamma, **options)
    learn(rng, other, rows[: n // 2], y[: n // 2])
    # Merge a part that was learnt separately.
    for model in (one, other):
        apart = model.clone()
        learn(rng, apart, rows[n // 3 : n // 2], y[n // 3 : n // 2])
        apart.merge(model, along="rows")
        learn(rng, apart, rows[:5], y[:5])


@pytest.mark.parametrize("y", [1e300, -1e153, 10**400])
def test_finite_targets_are_not_missing(y):
    with pytest.raises(ValueError, match=r"finite target of at most 1e152.*\nHint: rescale"):
        ProjSe(1).learn_one({"a": 1.0}, y)


def test_finite_targets_of_frames_are_not_missing():
    with pytest.raises(ValueError, match=r"at most 1e152. Got: 1e\+300 in row 1") as caught:
        ProjSe(1).learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([0.5, 1e300]))
    assert "missing" not in str(caught.value)

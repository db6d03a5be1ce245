"""Every learner as a guest of River: its checks, its pipelines, and what is built on them."""

import copy
import functools
import importlib
import inspect
import itertools
import pickle
import random

import narwhals.stable.v2 as nw
import numpy as np
import pytest
from river import api as river
from river.checks import yield_checks

import streamsel
from streamsel.params import Choice
from tests.test_contract import bits
from tests.test_package import HEAVY, LEARNERS, modules_after

MODES = {
    f"{name}({', '.join(f'{key}={value!r}' for key, value in params.items())})": (name, params)
    for name in LEARNERS
    for params in getattr(streamsel, name)._unit_test_params()
}


def build(mode, **further):
    name, params = MODES[mode]
    return getattr(streamsel, name)(**params | further)


CHECKS = [(mode, check.__name__) for mode in MODES for check in yield_checks(build(mode))]
BACKENDS = ["pandas", "polars", "pyarrow"]
N = 100


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def make(mode):
    return functools.partial(build, mode)


@pytest.fixture
def rows():
    """Rows of six features, of which b, e and, less so, c tell of y; y in halves, as classes."""
    X = np.random.default_rng(0).normal(size=(N, 7)) + 3.0
    y = np.round(2.0 * (X[:, 1] - X[:, 4] + 0.5 * X[:, 2] + 0.3 * X[:, 6])) / 2.0
    return [(dict(zip("abcdef", x, strict=False)), v) for *x, v in np.c_[X[:, :6], y].tolist()]


def frame(rows, library):
    """Rows as X, with a column for every feature that any of them has, and y."""
    names = dict.fromkeys(name for x, _ in rows for name in x)
    data = {name: [x.get(name, 0.0) for x, _ in rows] for name in names}
    y = [y for _, y in rows]
    module = importlib.import_module(library)
    if library == "pyarrow":
        return module.table(data), module.chunked_array([y])
    return module.DataFrame(data), module.Series(y)


def records(X):
    return nw.from_native(X).rows(named=True)


def taught(model, rows):
    for x, y in rows:
        model.learn_one(x, y)
    return model


def outputs(model, rows):
    return [model.transform_one(x) for x, _ in rows]


def assert_alike(one, other):
    """The same names in the same order, the same values to 1e-9."""
    assert [list(here) for here in one] == [list(there) for there in other]
    one, other = ([v for row in rows for v in row.values()] for rows in (one, other))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def pipeline_of(model):
    return river.preprocessing.StandardScaler() | model | river.linear_model.LinearRegression()


def held(host):
    """Find the learner in a host; a union holds a copy of what it was given."""
    union = river.compose.TransformerUnion
    parts = host.transformers if isinstance(host, union) else host.steps
    (part,) = (p for p in parts.values() if isinstance(p, union) or type(p).__name__ in LEARNERS)
    return held(part) if isinstance(part, union) else part


# ------------------------------------------------------------------------- River's own checks


def test_no_check_is_lost():
    """Without pandas or scikit-learn River leaves checks out and says nothing."""
    assert river.utils.pandas.PANDAS_INSTALLED
    assert importlib.util.find_spec("sklearn")
    for mode in MODES:
        names = [check for other, check in CHECKS if other == mode]
        assert len(set(names)) == len(names) > 25
        assert {f"check_{way}_many_matches_{way}_one" for way in ("learn", "transform")} < {*names}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_choice_is_a_mode(name):
    modes = [vars(build(mode)) for mode, (other, _) in MODES.items() if other == name]
    for parameter, rule in getattr(streamsel, name)._rules.items():
        if isinstance(rule, Choice) and parameter != "target":  # River's data suit one only
            assert {params[parameter] for params in modes} == set(rule.options)
    assert any(params["fading_factor"] for params in modes)
    assert any(params["max_features"] for params in modes)


@pytest.mark.parametrize(("mode", "check"), CHECKS, indirect=["mode"])
def test_river_check(make, check):
    random.seed(0)  # some checks shuffle features
    model = make()
    assert model._unit_test_skips() == set()
    (run,) = (found for found in yield_checks(model) if found.__name__ == check)
    run(model.clone())


# ------------------------------------------------------------------------- hosting positions


class Recorder(river.base.MiniBatchRegressor):
    """A model that learns nothing, but notes what it is shown."""

    def __init__(self):
        self.learnt, self.asked = [], []

    def learn_one(self, x, y):
        self.learnt.append(dict(x))

    def predict_one(self, x):
        self.asked.append(dict(x))

    def learn_many(self, X, y):
        self.learnt += records(X)

    def predict_many(self, X):
        self.asked += records(X)


class Twice(river.base.MiniBatchTransformer):
    """A transformer to stand beside: every feature, doubled, under a name of its own."""

    def transform_one(self, x):
        return {f"twice {name}": 2.0 * value for name, value in x.items()}

    def transform_many(self, X):
        X = nw.from_native(X)
        return X.select(
            (nw.col(name) * 2.0).alias(f"twice {name}") for name in X.columns
        ).to_native()


five = functools.partial(river.compose.Select, *"abcde")
POSITIONS = {
    "mid-pipeline": lambda model: five() | model | Recorder(),
    "last step": lambda model: five() | model,
    "union": lambda model: Twice() + model,
    "union in a pipeline": lambda model: five() | model + Twice() | Recorder(),
}


def feed(host, rows, way):
    """Let a host answer rows, then learn them, one by one or in frames; return what came out."""
    recorder = getattr(host, "steps", {}).get("Recorder")
    verb, answers = "predict" if recorder else "transform", []
    frames = [frame(rows[i : i + 26], way) for i in range(0, N, 26) if way != "one"]
    for x, y in frames or rows:
        found = getattr(host, f"{verb}_many" if frames else f"{verb}_one")(x)
        if not recorder:
            assert type(found) is type(x)
            answers += records(found) if frames else [found]
        (host.learn_many if frames else host.learn_one)(x, y)
    # The trap in River's bases: to be trained on some features and asked about others.
    assert not recorder or recorder.learnt == recorder.asked
    return recorder.asked if recorder else answers


@pytest.mark.parametrize(
    ("position", "way"),
    [*itertools.product(POSITIONS, ["one", "pandas"]), ("mid-pipeline", "polars")],
)
def test_hosted(make, position, way, rows):
    host, alone = POSITIONS[position](make()), make()
    seen = feed(host, rows, way)
    kept = "abcdef" if position == "union" else "abcde"
    expected = feed(alone, [({name: x[name] for name in kept}, y) for x, y in rows], way)
    model = held(host)
    assert model.n_rows == N
    assert max(model.relevance.values()) > model.noise_floor()
    # To rounding: the columns of a frame come in the order in which Select hands them on.
    assert_alike([model.relevance], [alone.relevance])
    beside = {f"twice {name}" for name in kept} if "union" in position else set()
    assert all(row.keys() == own.keys() | beside for row, own in zip(seen, expected, strict=True))
    seen = [{name: row[name] for name in own} for row, own in zip(seen, expected, strict=True)]
    assert_alike(seen, expected)


def test_outputs_are_plain(make, rows):
    """Components are floats under the promised names; selected features are what came in."""
    model = make()
    for x, y in rows:
        out = model.transform_one(x)
        if hasattr(model, "components"):
            assert list(out) == model.components
            assert {type(value) for value in out.values()} == {float}
        else:
            assert list(out) == (model.selected if model.n_rows else list(x))
            assert all(out[name] is x[name] for name in out)
        model.learn_one(x, y)
    names = list(model.transform_one(x))
    for library in BACKENDS:
        many = nw.from_native(model.transform_many(frame(rows, library)[0]))
        assert many.columns == names
        assert set(many.schema.values()) == {nw.Float64}


# ------------------------------------------------------------------------- built on pipelines


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_progressive_validation(make, task):
    """Without features 0.53 are right, or 0.84 the error; with all of them 0.85 and 0.55."""
    steady = not make().fading_factor and not make().max_features
    further = {}
    if task == "classes":
        data = [(x, not y) for x, y in river.datasets.Phishing().take(300)]
        last, metric = river.linear_model.LogisticRegression(), river.metrics.Accuracy()
        if getattr(make(), "signed", False):  # for numbers only, as which bools can be taken
            steady, further = False, {"target": "numeric"}
    else:
        data = list(river.datasets.TrumpApproval().take(300))
        last = river.preprocessing.TargetStandardScaler(river.linear_model.LinearRegression())
        metric = river.metrics.MAE()
    model = make(**further)
    pipeline = model | river.preprocessing.StandardScaler() | last
    score = river.evaluate.progressive_val_score(data, pipeline, metric).get()
    # Models that forget or let go, or that see one sign only, tell the next one less.
    assert (
        score > (0.8 if steady else 0.6) if task == "classes" else score < (0.8 if steady else 0.95)
    )
    assert bits(model) == bits(taught(make(**further), data))


def test_as_a_transformer_of_scikit_learn(make, rows):
    convert = river.compat.convert_river_to_sklearn
    X = np.array([list(x.values()) for x, _ in rows])
    y = np.array([y for _, y in rows])
    rows = list(river.stream.iter_array(X, y))
    expected = [list(out.values()) for out in outputs(taught(make(), rows), rows)]
    np.testing.assert_array_equal(convert(make()).fit(X, y).transform(X), expected)
    guest = convert(make()).partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(guest.transform(X), expected)
    found = convert(pipeline_of(make())).fit(X, y).predict(X)
    assert np.corrcoef(found, y)[0, 1] > 0.3


def test_model_selection(make, mode, rows):
    size = next(iter(inspect.signature(type(make())).parameters))  # k, n_components
    grid = {MODES[mode][0]: {size: [1, 2, 3]}}
    models = river.utils.expand_param_grid(pipeline_of(make()), grid)
    chosen = taught(river.model_selection.GreedyRegressor(models, river.metrics.MAE()), rows)
    assert [getattr(held(model), size) for model in chosen] == [1, 2, 3]
    assert {held(model).n_rows for model in chosen} == {N}


@pytest.mark.parametrize("n_models", [0, 3])
def test_wrapped(make, rows, n_models):
    """In a bag, or, n_models = 0, behind a target that is scaled."""
    if n_models:
        host = river.ensemble.BaggingRegressor(pipeline_of(make()), n_models, seed=1)
    else:
        host = river.preprocessing.TargetStandardScaler(pipeline_of(make()))
    found = []
    for x, y in rows:
        found.append(host.predict_one(x))
        host.learn_one(x, y)
    inner = [held(model) for model in (host if n_models else [host.regressor])]
    assert all(model.n_rows > N / 2 for model in inner)
    assert len({str(bits(model)) for model in inner}) == (n_models or 1)
    assert np.corrcoef(found[50:], [y for _, y in rows[50:]])[0, 1] > 0.1


def test_clones(make, rows):
    pipeline = taught(pipeline_of(make()), rows)
    before = bits(held(pipeline))
    fresh = [held(pipeline).clone(), held(pipeline.clone())]
    assert bits(fresh[0]) == bits(fresh[1]) == bits(make()) != before
    assert fresh[0]._get_params() == fresh[1]._get_params() == make()._get_params()
    twin = held(pipeline.clone(include_attributes=True))
    assert bits(twin) == before
    assert bits(taught(twin, rows)) != before
    assert bits(held(pipeline)) == before  # nothing is shared


def test_debug_one(make, rows):
    pipeline, x = taught(pipeline_of(make()), rows), rows[0][0]
    before = bits(held(pipeline))
    report = pipeline.debug_one(x)
    assert all(f"{name}: " in report for name in pipeline.transform_one(x))
    assert bits(held(pipeline)) == before


# ------------------------------------------------------------------------- in mid-stream


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "save"])
@pytest.mark.parametrize("cut", [1, 137])
def test_a_copy_in_mid_stream_goes_on(make, way, cut, rows, tmp_path):
    rows = rows + rows[::-1]
    whole, model = taught(make(), rows), taught(make(), rows[:cut])
    streamsel.save(model, tmp_path / "model")
    twin = {
        "pickle": lambda: pickle.loads(pickle.dumps(model)),  # noqa: S301
        "deepcopy": lambda: copy.deepcopy(model),
        "save": lambda: streamsel.load(tmp_path / "model"),
    }[way]()
    before = bits(model)
    assert bits(twin) == before
    assert outputs(taught(twin, rows[cut:]), rows) == outputs(whole, rows)
    assert bits(twin) == bits(whole)
    assert bits(model) == before  # nothing is shared


@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("sizes", [(1, 30, 2, 13), (N,)], ids=["small", "whole"])
def test_learn_many_in_any_split_is_learn_one(make, library, sizes, rows):
    whole = copy.deepcopy(rows)
    for i, (x, _) in enumerate(rows):
        x.update({"c": None} if i % 7 == 3 else {})  # not observed
        for name in ["d"] * (40 <= i < 70) + ["f"] * (i < 70):  # gone for a while, yet to come
            del x[name]
    one, many = taught(make(), rows), make()
    # A frame has a feature in all of its rows or in none, so frames end where features change.
    ends = {0, 40, 70, N} | {end for end in itertools.accumulate(sizes * N) if end < N}
    for i, (start, stop) in enumerate(itertools.pairwise(sorted(ends))):
        if i % 5 == 4:
            taught(many, rows[start:stop])
        else:
            many.learn_many(*frame(rows[start:stop], library))
    assert (many.n_rows, many.n_columns) == (N, one.n_columns)
    assert_alike(outputs(many, whole), outputs(one, whole))


def test_ties_are_broken_alike(make, rows):
    """Of equally relevant variables the first has precedence, whatever rounding says."""
    scales = {"u": 3.0, "v": 0.1, "w": 1.0 / 3.0, "x": 1.0, "y": 7.0, "z": 0.7}
    rows = [({name: x["b"] * scale for name, scale in scales.items()}, y) for x, y in rows]
    one, many = taught(make(), rows), make()
    for start in (0, N // 2):
        many.learn_many(*frame(rows[start : start + N // 2], "pandas"))
    assert_alike([many.relevance], [one.relevance])
    assert_alike(outputs(many, rows), outputs(one, rows))


# ------------------------------------------------------------------------- features


def test_names_are_any_hashable(make):
    names = [7, "7", ("a", 7), (7, "a"), None, 2.5, frozenset({1}), 1j, 2j]
    rng = np.random.default_rng(0)
    model, other = make(), make()
    for _ in range(N):
        x = dict(zip(names, rng.normal(size=9).tolist(), strict=True))
        y = round(2.0 * x[7] + x[7, "a"] - 2.0 * x[1j] + 0.2 * rng.normal()) / 2.0
        model.learn_one(x, y)
        other.learn_one({names[j]: x[names[j]] for j in rng.permutation(9)}, y)
    assert max(model.relevance.values()) > model.noise_floor()
    assert any(model.transform_one(x).values())
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert model.transform_one(x) == other.transform_one(x) == twin.transform_one(x)


def test_before_anything_is_learnt(make):
    model, x = make(), {"a": 1.5, "b": 3.0}
    nothing = dict.fromkeys(model.components, 0.0) if hasattr(model, "components") else x
    assert model.transform_one(x) == nothing
    for library in BACKENDS:
        assert records(model.transform_many(frame([(x, 0.0)], library)[0])) == [nothing]


def test_features_never_seen_and_gone(make, rows):
    model, other = taught(make(), rows), taught(make(), rows)
    x = rows[0][0]
    assert model.transform_one(x | {"new": 7.0}) == model.transform_one(x)
    assert model.transform_one({"new": 7.0}) == model.transform_one({})
    zeros = dict.fromkeys("abcdef", 0.0)
    for i, (x, y) in enumerate(rows):  # one feature stays, then none: what is absent is 0
        left = {"b": x["b"]} if i < 60 else {}
        model.learn_one(left, y)
        other.learn_one(zeros | left, y)
    assert model.n_rows == other.n_rows == 2 * N
    assert_alike(outputs(model, rows), outputs(other, rows))


@pytest.mark.parametrize("name", LEARNERS)
def test_import_budget(name):
    loaded = modules_after(
        f"from streamsel import {name}\nmodel = {name}(1)\n"
        "for i in range(120):\n    model.learn_one({'a': i % 7, 'b': 1.0}, i % 5 + 0.1 * i)\n"
        "assert any(model.transform_one({'a': 1.0}).values())\n"
        "assert not {'river.datasets', 'river.preprocessing'} & set(sys.modules)"
    )
    assert "river" in loaded
    assert not loaded & HEAVY

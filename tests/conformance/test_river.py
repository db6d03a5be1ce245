"""Every learner in River: its checks, pipelines, and models built on transforms."""

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
from river import checks as river_checks
from river.checks import yield_checks

from streamsel import PrivateFeatures
from streamsel.base.windows import Window
from streamsel.params import ChoiceRule, rules_of
from tests.conformance.modes import (
    CLASSES,
    REGISTERED,
    Mode,
    bits,
    build,
    over,
    rotated,
    sampled,
    shown,
    takes,
)
from tests.conformance.rowwise import ROW_MODES, learn_many, learn_one, outputs, taught
from tests.copies import COPIES
from tests.seed import some
from tests.test_package import HEAVY, modules_after

BACKENDS = ["pandas", "polars", "pyarrow"]
N = 100

every_mode = over(ROW_MODES)


@pytest.fixture
def make(mode):
    return functools.partial(build, mode)


@pytest.fixture
def rows():
    """Return rows of six features; b, e and, less strongly, c explain y, which has steps of 0.5."""
    X = np.random.default_rng(0).normal(size=(N, 7)) + 3.0
    y = np.round(2.0 * (X[:, 1] - X[:, 4] + 0.5 * X[:, 2] + 0.3 * X[:, 6])) / 2.0
    return [(dict(zip("abcdef", x, strict=False)), v) for *x, v in np.c_[X[:, :6], y].tolist()]


def frame(rows, library):
    """Return rows as X, with a column for every feature that occurs, and y."""
    names = dict.fromkeys(name for x, _ in rows for name in x)
    data = {name: [x.get(name, 0.0) for x, _ in rows] for name in names}
    y = [y for _, y in rows]
    module = importlib.import_module(library)
    if library == "pyarrow":
        return module.table(data), module.chunked_array([y])
    return module.DataFrame(data), module.Series(y)


def records(X):
    return nw.from_native(X).rows(named=True)


def assert_equal_rows(one, other):
    """Check for the same names in the same order, and the same values to 1e-9."""
    assert [list(here) for here in one] == [list(there) for there in other]
    one, other = ([v for row in rows for v in row.values()] for rows in (one, other))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def ranks_by_relevance(model):
    """Return whether a hundred rows must suffice to explain the target.

    A window of twenty rows need not suffice.
    """
    return follows(model) and not model._by_window


def follows(model):
    """Return whether the results must explain the target, rather than protect its privacy."""
    hides = getattr(model, "rank_by", None) == "private" or isinstance(model, PrivateFeatures)
    return model._is_supervised and not hides


def steady(model):
    """Return whether the model must at any time be as good as all rows allow."""
    return ranks_by_relevance(model) and not model.fading_factor and not model.max_features


def pipeline_of(model):
    return river.preprocessing.StandardScaler() | model | river.linear_model.LinearRegression()


def learner_in(host):
    """Return the learner in a host; a union contains a copy of its argument."""
    union = river.compose.TransformerUnion
    parts = host.transformers if isinstance(host, union) else host.steps
    (part,) = (p for p in parts.values() if isinstance(p, union) or type(p).__name__ in CLASSES)
    return learner_in(part) if isinstance(part, union) else part


# ------------------------------------------------------------------------- River's own checks

of_river = river_checks._yield_datasets


def whole_targets(*args, **options):
    """Yield River's data, each with its target rounded."""
    for dataset in of_river(*args, **options):
        yield river_checks._DummyDataset(*((x, round(y)) for x, y in dataset))


@sampled(ROW_MODES)
def test_estimator_checks_of_river(mode, make, monkeypatch):
    """Half of River's checks pass; the mode and the seed determine which.

    Without pandas or scikit-learn, River omits some of them silently. Its target of transformers is
    numeric with nearly all values distinct, so it is rounded for classes.
    """
    if mode.of_classes:
        monkeypatch.setattr(river_checks, "_yield_datasets", whole_targets)
    assert river.utils.pandas.PANDAS_INSTALLED
    assert importlib.util.find_spec("sklearn")
    model = make()
    assert model._unit_test_skips() == set()
    checks = list(yield_checks(model))
    names = [check.__name__ for check in checks]
    assert len(set(names)) == len(names) > 25
    assert {f"check_{way}_many_matches_{way}_one" for way in ("learn", "transform")} < {*names}
    for check in some(checks, len(checks) // 2, str(mode)):
        random.seed(0)  # some checks shuffle features
        check(model.clone())


@pytest.mark.parametrize("name", [entry.name for entry in REGISTERED])
def test_every_parameter_choice_is_a_mode(name):
    modes = [vars(build(mode)) for mode in ROW_MODES.values() if mode.learner == name]
    for parameter, rule in rules_of(CLASSES[name]).items():
        # The state does not depend on `missing` (test_missing.py).
        if isinstance(rule, ChoiceRule) and parameter not in ("target_type", "missing"):
            # River's target is numeric, which not every option supports.
            fits = {
                option
                for option in rule.options
                if takes(Mode(name, {parameter: option}, has_target=True), 1)
            }
            assert fits <= {params[parameter] for params in modes} <= set(rule.options)
    rules = rules_of(CLASSES[name])
    # Windows have no fading factor.
    if "fading_factor" in rules and CLASSES[name]._row_state_type is not Window:
        assert any(params["fading_factor"] for params in modes)
    assert "max_features" not in rules or any(params["max_features"] for params in modes)


@sampled(ROW_MODES)
def test_base_classes_of_river(make):
    """Of River's base classes, only these are right in all hosting positions."""
    model = make()
    assert isinstance(model, river.base.MiniBatchTransformer)
    supervised = river.base.MiniBatchSupervisedTransformer, river.base.SupervisedTransformer
    assert [isinstance(model, base) for base in supervised] == [model._is_supervised] * 2
    assert model._supervised is model._is_supervised
    # A Pipeline passes the arguments that a signature names.
    for learn, x in ((model.learn_one, "x"), (model.learn_many, "X")):
        taken = [x, "y", "w"] if model._is_supervised else [x, "extra", "w"]
        assert list(inspect.signature(learn).parameters) == taken


# ------------------------------------------------------------------------- hosting positions


class Recorder(river.base.MiniBatchRegressor):
    """A model that learns nothing, but records its inputs."""

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
    """A transformer for unions: every feature, doubled, under a new name."""

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


def batches(rows, way):
    """Yield rows, or frames of them."""
    if way == "one":
        yield from rows
    else:
        yield from (frame(rows[start : start + 26], way) for start in range(0, len(rows), 26))


def feed(host, rows, way):
    """Make a host answer and learn rows; return its answers, or the inputs of its last step."""
    recorder = getattr(host, "steps", {}).get("Recorder")
    verb, kind = "predict" if recorder else "transform", "one" if way == "one" else "many"
    answers = []
    for x, y in batches(rows, way):
        found = getattr(host, f"{verb}_{kind}")(x)
        if not recorder:
            assert type(found) is type(x)
            answers += [found] if way == "one" else records(found)
        getattr(host, f"learn_{kind}")(x, y)
    return (recorder.asked, recorder.learnt) if recorder else (answers,)


def feed_alone(model, rows, way):
    """Run a learner as a pipeline would; return its answers before and during learning.

    During learning, a supervised step passes on its earlier answer: otherwise the next step would
    learn features other than those it predicts from. An unsupervised step learns first.
    """
    before, meanwhile = [], []
    kind = "one" if way == "one" else "many"
    for x, y in batches(rows, way):
        found = []
        for _ in range(2):
            answer = getattr(model, f"transform_{kind}")(x)
            found.append([answer] if way == "one" else records(answer))
            if len(found) == 1:
                (learn_one if way == "one" else learn_many)(model, x, y)
        before += found[0]
        meanwhile += found[0 if model._is_supervised else 1]
    return before, meanwhile


HOSTED = [*itertools.product(POSITIONS, ["one", "pandas"]), ("mid-pipeline", "polars")]


@rotated(ROW_MODES, "position,way", HOSTED, each=3)
def test_learner_in_every_hosting_position(make, position, way, rows):
    host, alone = POSITIONS[position](make()), make()
    seen = feed(host, rows, way)
    kept = "abcdef" if position == "union" else "abcde"
    expected = feed_alone(alone, [({name: x[name] for name in kept}, y) for x, y in rows], way)
    model = learner_in(host)
    assert model.n_rows == N
    assert not ranks_by_relevance(model) or max(model.relevance.values()) > model.noise_floor()
    # Up to rounding: Select changes the order of the columns of a frame.
    assert_equal_rows([model.relevance], [alone.relevance])
    alongside = {f"twice {name}" for name in kept} if "union" in position else set()
    for got, own in zip(seen, expected, strict=False):  # the last step returns only answers
        pairs = list(zip(got, own, strict=True))
        assert all(row.keys() == mine.keys() | alongside for row, mine in pairs)
        assert_equal_rows([{name: row[name] for name in mine} for row, mine in pairs], own)


@every_mode
def test_outputs_have_plain_types(make, rows):
    """Components are floats with the promised names; selected features are the original objects."""
    model = make()
    for x, y in rows:
        out = model.transform_one(x)
        if hasattr(model, "components"):
            assert list(out) == model.components or (out == {} and not model.in_use)
            assert {type(value) for value in out.values()} <= {float}
        else:
            assert list(out) == (list(x) if model._in_use() is None else model.in_use)
            assert all(out[name] is x[name] for name in out)
        learn_one(model, x, y)
    names = list(model.transform_one(x))
    assert names
    for library in BACKENDS:
        many = nw.from_native(model.transform_many(frame(rows, library)[0]))
        assert many.columns == names
        assert set(many.schema.values()) == {nw.Float64}


# ------------------------------------------------------------------------- built on pipelines


@rotated(ROW_MODES, "task", ["classes", "numbers"])
def test_progressive_validation(mode, make, task):
    """Without features, accuracy is 0.53 or error 0.84; with all of them 0.85 and 0.55."""
    good, further = steady(make()), {}
    if task == "classes":
        data = [(x, not y) for x, y in river.datasets.Phishing().take(300)]
        last, metric = river.linear_model.LogisticRegression(), river.metrics.Accuracy()
        try:
            learn_one(make(), *data[0])
        except ValueError:  # the mode is for numeric targets, which bools can be
            good, further = False, {"target_type": "numeric"}
    else:
        data = list(river.datasets.TrumpApproval().take(300))
        data = [(x, round(y)) for x, y in data] if mode.of_classes else data
        last = river.preprocessing.TargetStandardScaler(river.linear_model.LinearRegression())
        metric = river.metrics.MAE()
    model = make(**further)
    pipeline = model | river.preprocessing.StandardScaler() | last
    score = river.evaluate.progressive_val_score(data, pipeline, metric).get()
    # Models that forget, discard, or use one sign only predict less well.
    if follows(model):
        bar = (0.8 if good else 0.6) if task == "classes" else (0.8 if good else 0.95)
        assert score > bar if task == "classes" else score < bar
    assert bits(model) == bits(taught(make(**further), data))


@sampled(ROW_MODES)
def test_conversion_to_scikit_learn(make, rows):
    convert = river.compat.convert_river_to_sklearn
    X = np.array([list(x.values()) for x, _ in rows])
    y = np.array([y for _, y in rows])
    rows = list(river.stream.iter_array(X, y))
    expected = [list(out.values()) for out in outputs(taught(make(), rows), rows)]
    np.testing.assert_array_equal(convert(make()).fit(X, y).transform(X), expected)
    guest = convert(make()).partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(guest.transform(X), expected)
    found = convert(pipeline_of(make())).fit(X, y).predict(X)
    assert not follows(make()) or np.corrcoef(found, y)[0, 1] > 0.3


def can_be(make, **params):
    try:
        return bool(make(**params))
    except ValueError:
        return False


@sampled(ROW_MODES)
def test_model_selection(make, rows):
    size = next(name for name, value in make()._get_params().items() if type(value) is int)
    sizes = [number for number in range(1, 6) if can_be(make, **{size: number})][:3]
    grid = {type(make()).__name__: {size: sizes}}
    models = river.utils.expand_param_grid(pipeline_of(make()), grid)
    chosen = taught(river.model_selection.GreedyRegressor(models, river.metrics.MAE()), rows)
    assert [getattr(learner_in(model), size) for model in chosen] == sizes
    assert len(sizes) == 3
    assert {learner_in(model).n_rows for model in chosen} == {N}


def predictions(host, rows):
    """Return a host's prediction for each row, made before learning it."""
    found = []
    for x, y in rows:
        found.append(host.predict_one(x))
        host.learn_one(x, y)
    return found


@rotated(ROW_MODES, "n_models", [0, 3])
def test_learner_in_a_bag_or_target_scaler(make, rows, n_models):
    """The learner works in a bag or, for n_models = 0, with a scaled target."""
    if n_models:
        host = river.ensemble.BaggingRegressor(pipeline_of(make()), n_models, seed=1)
    else:
        host = river.preprocessing.TargetStandardScaler(pipeline_of(make()))
    if not n_models and make().target_type == "class":
        # Scaled class codes differ at every row.
        doubted = pytest.warns(UserWarning, match="21 classes in 21 rows")
        with doubted, pytest.raises(ValueError, match="51 classes in 51 rows"):
            predictions(host, rows)
        return
    found = predictions(host, rows)
    inner = [learner_in(model) for model in (host if n_models else [host.regressor])]
    assert all(model.n_rows > N / 2 for model in inner)
    assert len({str(bits(model)) for model in inner}) == (n_models or 1)
    if follows(make()):
        assert np.corrcoef(found[50:], [y for _, y in rows[50:]])[0, 1] > 0.1


@sampled(ROW_MODES)
def test_clones(make, rows):
    pipeline = taught(pipeline_of(make()), rows)
    before = bits(learner_in(pipeline))
    fresh = [learner_in(pipeline).clone(), learner_in(pipeline.clone())]
    assert bits(fresh[0]) == bits(fresh[1]) == bits(make()) != before
    assert fresh[0]._get_params() == fresh[1]._get_params() == make()._get_params()
    twin = learner_in(pipeline.clone(include_attributes=True))
    assert bits(twin) == before
    assert bits(taught(twin, rows)) != before
    assert bits(learner_in(pipeline)) == before  # nothing is shared


@sampled(ROW_MODES)
def test_debug_one(make, rows):
    pipeline, x = taught(pipeline_of(make()), rows), rows[0][0]
    before = bits(learner_in(pipeline))
    report = pipeline.debug_one(x)
    assert all(f"{name}: " in report for name in pipeline.transform_one(x))
    assert bits(learner_in(pipeline)) == before


# ------------------------------------------------------------------------- in mid-stream


@rotated(ROW_MODES, "way,cut", itertools.product(COPIES, [1, 137]), each=2)
def test_copy_in_mid_stream_continues(make, way, cut, rows, tmp_path):
    rows = rows + rows[::-1]
    whole, model = taught(make(), rows), taught(make(), rows[:cut])
    twin = COPIES[way](model, tmp_path)
    before = bits(model)
    assert bits(twin) == before
    assert outputs(taught(twin, rows[cut:]), rows) == outputs(whole, rows)
    assert bits(twin) == bits(whole)
    assert bits(model) == before  # nothing is shared


@sampled(ROW_MODES)
def test_reading_changes_nothing(make, rows):
    model, silent = make(), make()
    for i, (x, y) in enumerate(rows[:60]):
        learn_one(model, x, y)
        learn_one(silent, x, y)
        model.transform_one(x)
        if i % 7 == 0 and model.n_columns:
            shown(model), model.noise_floor(), model.report()
        assert bits(model) == bits(silent)


# ------------------------------------------------------------------------- features


@sampled(ROW_MODES)
def test_names_are_any_hashable(make):
    names = [7, "7", ("a", 7), (7, "a"), None, 2.5, frozenset({1}), 1j, 2j]
    rng = np.random.default_rng(0)
    model, other = make(), make()
    for _ in range(N):
        x = dict(zip(names, rng.normal(size=9).tolist(), strict=True))
        y = round(2.0 * x[7] + x[7, "a"] - 2.0 * x[1j] + 0.2 * rng.normal()) / 2.0
        learn_one(model, x, y)
        learn_one(other, {names[j]: x[names[j]] for j in rng.permutation(9)}, y)
    assert not ranks_by_relevance(model) or max(model.relevance.values()) > model.noise_floor()
    assert any(model.transform_one(x).values())
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert model.transform_one(x) == other.transform_one(x) == twin.transform_one(x)


@every_mode
def test_transform_before_learning(mode, make):
    model, x = make(), {"a": 1.5, "b": 3.0}
    nothing = dict.fromkeys(model.components, 0.0) if hasattr(model, "components") else x
    if mode.by_name:  # needs no learning
        nothing = taught(make(), [(x, 0.0)]).transform_one(x)
        assert any(nothing.values())
        assert model.transform_one(x) == nothing
    else:  # a row omits unknown components, a frame has the same columns as later
        assert model.transform_one(x) == ({} if hasattr(model, "components") else x)
    for library in BACKENDS:
        assert_equal_rows(records(model.transform_many(frame([(x, 0.0)], library)[0])), [nothing])


@every_mode
def test_unseen_and_absent_features(mode, make, rows):
    names = "bcefad"[: make().max_features]  # as many as fit: none is evicted
    rows = [({name: x[name] for name in names}, y) for x, y in rows]
    model, other = taught(make(), rows), taught(make(), rows)
    x, zeros = rows[0][0], dict.fromkeys(names, 0.0)
    if not mode.by_name:
        assert model.transform_one(x | {"new": 7.0}) == model.transform_one(x)
        assert model.transform_one({"new": 7.0}) == model.transform_one({})
    for i, (x, y) in enumerate(rows):  # one feature stays, then none: absent values are 0
        left = {"b": x["b"]} if i < 60 else {}
        learn_one(model, left, y)
        learn_one(other, zeros | left, y)
    assert model.n_rows == other.n_rows == 2 * N
    assert_equal_rows(outputs(model, rows), outputs(other, rows))


@pytest.mark.slow
def test_import_budget():
    """All learners of the catalogue are imported in a separate process."""
    loaded = modules_after(
        "from streamsel import registry\n"
        "for name in registry.names():\n"
        "    learner = registry.fetch(name)\n"
        "    model = learner(**next(learner._unit_test_params()))\n"
        "    for i in range(120):\n"
        "        y = [float(i % 5)][: model._is_supervised]\n"
        "        model.learn_one({'a': i % 7, 'b': 1.0}, *y)\n"
        "    told = model.transform_one({'a': 1.0})\n"
        "    assert any(told.values()) or not hasattr(model, 'k')\n"
        "assert not {'river.datasets', 'river.preprocessing'} & set(sys.modules)"
    )
    assert "river" in loaded
    assert not loaded & HEAVY

"""Reports agree with the attributes of the model, have rows of equal keys, and convert to JSON."""

import json

import numpy as np
import pytest

from streamsel.base.report import NOISE_LEVEL
from streamsel.targets.target import Target
from tests.conformance.modes import (
    COLUMN_MODES,
    MODES,
    build,
    data,
    fresh,
    learnt,
    rotated,
    sampled,
)


def report_of(model):
    """Return a report after a round trip through JSON."""
    shown = model.report().as_dict()
    # Names of variables are the caller's objects.
    return json.loads(json.dumps(shown, allow_nan=False, default=str))


@rotated(COLUMN_MODES, "c", [1, 3])
def test_report_equals_the_attributes_of_the_model(mode, c):
    X, y = data(mode, c=c)
    names = [f"v{j}" for j in range(160)]
    X[:, 17] = 3.0
    model = learnt(mode, X, y, names)
    report = report_of(model)
    assert report["class"] == mode.learner
    assert report["parameters"] == json.loads(json.dumps(model._get_params()))
    assert (report["rows"], report["columns_seen"], report["columns_constant"]) == (40, 160, 1)
    assert report["target"] == (None if y is None else Target(y, model.target_type).description)
    floor = model.noise_floor(NOISE_LEVEL)
    assert report["noise_floor"] == (floor if np.isfinite(floor) else None)
    kind = model.report().kind
    rows = report[kind]
    assert rows
    assert len({tuple(row) for row in rows}) == 1
    own = model._own_tests()
    for row in rows:
        relevance = model.relevance[row["name"]]
        assert row["relevance"] == relevance
        if own is not None and own.tests_noise:  # decided by p-values, not relevances
            assert row["above_noise"] == (row["p_value"] < NOISE_LEVEL / 159)
            continue
        # Where components are made of all columns, the columns are compared with the noise floor.
        has_level = np.isfinite(floor) and "n_above_noise" not in report
        assert row["above_noise"] == (relevance > floor if has_level else None)
    if kind == "selected":
        check_selected(model, report, rows)
    else:
        check_components(model, rows, dict(zip(names, X.T, strict=True)))


def check_selected(model, report, rows):
    assert [row["name"] for row in rows] == model.selected
    scores = [score if np.isfinite(score) else None for score in model.scores.values()]
    assert [row["score"] for row in rows] == scores
    assert [row["round"] for row in rows] == list(model.rounds.values())
    assert sum(row["certified"] for row in rows) == report["n_certified"] == model.n_certified
    assert report["n_passes"] == model.n_passes
    unfinished = model.report().without_certification()
    assert not any(row["certified"] for row in unfinished.results)
    assert unfinished.details["n_certified"] == 0


def check_components(model, rows, X):
    assert {row["name"] for row in rows} == model.relevance.keys()
    relevances = [row["relevance"] for row in rows]
    assert relevances == sorted(relevances, reverse=True)
    for row in rows:
        weights = {loading["variable"]: loading["weight"] for loading in row["loadings"]}
        # Components that are not linear in the variables have no loadings.
        assert weights == {
            variable: parts[row["name"]]
            for variable, parts in getattr(model, "loadings", {}).items()
            if row["name"] in parts
        }
        sizes = [abs(loading["loading"]) for loading in row["loadings"]]
        assert sizes == sorted(sizes, reverse=True)
        for loading in row["loadings"]:
            deviation = X[loading["variable"]].std()
            expected = loading["weight"] * deviation
            assert loading["loading"] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@sampled(MODES)
def test_report_before_learning(mode):
    _, y = data(mode)
    report = report_of(build(mode))
    assert (report["rows"], report["columns_seen"], report["noise_floor"]) == (0, 0, None)
    assert report[build(mode).report().kind] == []
    if y is not None:
        report = report_of(fresh(mode, y))
        assert (report["rows"], report["columns_seen"]) == (40, 0)
    report_of(learnt(mode, np.full((40, 2), 3.0), y))


@sampled({name: mode for name, mode in MODES.items() if mode.has_target == mode.cls._is_supervised})
def test_report_after_rows(mode):
    X, y = data(mode, n=60, p=12)
    model = build(mode)
    model.learn_many(X, *([] if y is None else [y]))
    report = report_of(model)
    assert (report["rows"], len(report[model.report().kind])) == (60, len(model.relevance))


NO_LEVELS = {
    **{str(level): level for level in (0.0, 1.0, -0.1, 2, float("nan"), None)},
    "text": "0.05",
}


@rotated(MODES, "level", NO_LEVELS)
def test_invalid_levels_of_the_noise_floor(mode, level):
    X, y = data(mode)
    with pytest.raises(ValueError, match="level"):
        learnt(mode, X, y).noise_floor(NO_LEVELS[level])

"""Conditions that end learning: certified picks, a spent budget, n columns, a function."""

import itertools

import numpy as np
import pytest

from streamsel import (
    PCA,
    SOSPCA,
    AlphaInvesting,
    ForwardSelection,
    OnlineFDR,
    ProjSe,
    SelectKBest,
    load,
    save,
)
from streamsel.base import stop_condition
from streamsel.base.stop_condition import CHECK_INTERVAL, StopCondition
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream, iter_columns
from tests.reference import alpha_investing, online_fdr

N = 60
Y = np.random.default_rng(0).normal(size=N)


def columns(seed=1, every=400):
    """Yield infinitely many columns; one in `every` is related to the target."""
    rng = np.random.default_rng(seed)
    for j in itertools.count():
        yield f"v{j}", rng.normal(size=N) + (Y if j % every == every - 1 else 0.0)


def learnt(model, until, pairs=None):
    model.learn_target(Y)
    model.learn_columns(columns() if pairs is None else pairs, until=until)
    return model


@pytest.mark.parametrize("model", [SelectKBest(3), ProjSe(3, max_candidates=10)], ids=repr)
def test_certified_picks_are_above_the_noise(model):
    learnt(model, "certified")
    report = model.report()
    assert report.details["stopped"] == {"until": "certified", "n_columns": model.n_columns}
    assert model.n_columns % CHECK_INTERVAL == 0
    assert model.n_certified == 3
    assert all(row["above_noise"] for row in report.results)
    earlier = learnt(
        model.clone(), None, itertools.islice(columns(), model.n_columns - CHECK_INTERVAL)
    )
    assert not all(row["above_noise"] for row in earlier.report().results)


def alpha_level(X):
    path = alpha_investing.investments(X, Y, wealth=0.5, payout=0.5)
    last = path[-1]
    wealth = last["wealth"] + (0.5 if last["taken"] else 0.0) - last["alpha"]
    return wealth / (2 * (len(path) + 1)) / 0.5


def fdr_level(rule):
    def level(X):
        _, _, p_values = online_fdr.tests_of(X, Y, "auto")
        decisions = online_fdr.decide(p_values, 0.05, rule)
        discoveries = [t for t, (found, _) in enumerate(decisions) if found]
        of_rule = {"lord++": online_fdr.lord, "saffron": online_fdr.saffron}[rule]
        return of_rule(p_values, discoveries, 0.05, 0.025) / 0.05

    return level


@pytest.mark.parametrize(
    ("model", "level"),
    [
        (AlphaInvesting(), alpha_level),
        (OnlineFDR(), fdr_level("lord++")),
        (OnlineFDR(rule="saffron"), fdr_level("saffron")),
    ],
    ids=["AlphaInvesting", "LORD++", "SAFFRON"],
)
def test_budgets_end_at_a_small_next_level(model, level, monkeypatch):
    monkeypatch.setattr(stop_condition, "MIN_LEVEL", 3e-3)
    monkeypatch.setattr(stop_condition, "CHECK_INTERVAL", 10)
    learnt(model, "budget")
    X = np.column_stack([x for _, x in itertools.islice(columns(), model.n_columns)])
    assert level(X) < 3e-3 <= level(X[:, :-10])


def test_budgets_end_if_nothing_can_be_selected(monkeypatch):
    monkeypatch.setattr(stop_condition, "CHECK_INTERVAL", 10)
    full = learnt(AlphaInvesting(max_candidates=1), "budget", columns(every=5))
    assert full.n_columns == 10
    explained = learnt(AlphaInvesting(), "budget", itertools.chain([("y", Y)], columns()))
    assert explained.n_columns == 10


@pytest.mark.parametrize(
    ("model", "until", "match"),
    [
        (PCA(2), "budget", "Got: PCA, which has no error budget"),
        (SelectKBest(2), "budget", "Expected AlphaInvesting or OnlineFDR"),
        (PCA(2), "certified", "Got: PCA, which does not select"),
        (OnlineFDR(), "certified", "which selects any number"),
        (ProjSe(2), "certified", "without a target"),
        (PCA(2), 100, "every column changes the components of PCA"),
        *((SelectKBest(2), until, "until to be") for until in (0, -1, 1.5, True, "certain", [])),
    ],
    ids=repr,
)
def test_invalid_conditions_are_refused_before_reading(model, until, match):
    if model._is_supervised:
        model.learn_target(None if match == "without a target" else Y)
    pairs = columns()
    with pytest.raises(ValueError, match=match):
        model.learn_columns(pairs, until=until)
    assert next(pairs)[0] == "v0"
    assert model.n_columns == 0


def test_columns_before_a_generator_error_are_kept():
    def broken():
        yield from itertools.islice(columns(), 1500)
        raise RuntimeError("broken")

    for until in (None, "certified", 5000, lambda _: False):
        model, expected = ProjSe(3, max_candidates=10), ProjSe(3, max_candidates=10)
        with pytest.raises(RuntimeError, match="broken"):
            learnt(model, until, broken())
        learnt(expected, None, itertools.islice(columns(), 1500))
        assert (model.n_columns, model.selected) == (1500, expected.selected)
        assert "stopped" not in model.report().details


def test_further_passes_end_where_the_first_ended():
    made = []

    def again():
        made.append(0)
        for pair in columns(every=7):
            made[-1] += 1
            yield pair

    model = ForwardSelection(3, max_candidates=3, exact=True)
    learnt(model, lambda model: model.n_columns >= 2000, iter_columns(again, n_rows=N))
    expected = learnt(ForwardSelection(3), None, itertools.islice(columns(every=7), 2000))
    assert (model.n_columns, model.selected) == (2000, expected.selected)
    assert len(made) > 1
    # At most one block of the generator is read ahead.
    assert max(made) <= 2000 + 256


def test_a_group_is_complete_at_a_check():
    def blocks():
        rng = np.random.default_rng(0)
        for g in itertools.count():
            names, groups = [f"{g} {j}" for j in range(13)], [g] * 13
            yield Block([*names, f"alone {g}"], rng.normal(size=(N, 14)), [*groups, None])

    model = SelectKBest(2)
    learnt(model, lambda _: True, ColumnStream(blocks, n_rows=N))
    assert model.n_columns == 71 * 14 + 13  # the 1000th column is the sixth of a group


def test_the_reason_is_kept_until_the_next_source(tmp_path):
    model = learnt(SelectKBest(3), 50)
    stopped = {"until": "50 columns without a change", "n_columns": model.n_columns}
    save(model, tmp_path / "model")
    restored = load(tmp_path / "model")
    assert restored.report().details["stopped"] == stopped
    restored.learn_columns(np.random.default_rng(3).normal(size=(N, 5)))
    assert "stopped" not in restored.report().details
    model.learn_one({"v0": 1.0}, 0.5)
    assert model.report().details["stopped"] == stopped


def test_continued_conditions_end_at_the_same_column():
    whole = learnt(ProjSe(3, max_candidates=10), 70)
    for first in (1, 33, 70, 100):
        model = ProjSe(3, max_candidates=10)
        model.learn_target(Y)
        stream = iter_columns(columns())
        begun = StopCondition(70, model)
        pairs = itertools.islice(stream, first)
        for block in begun.cut(iter_columns(pairs).blocks()):
            model.learn_columns(ColumnStream(lambda block=block: [block]))
            begun.update()
        again = StopCondition(70, model, begun.state)
        for block in again.cut(iter_columns(itertools.islice(columns(), first, None)).blocks()):
            model.learn_columns(ColumnStream(lambda block=block: [block]))
            again.update()
        assert (model.n_columns, again.is_met) == (whole.n_columns, True)


def test_components_of_few_variables_may_converge():
    model = learnt(SOSPCA(2), 100)
    assert model.report().details["stopped"]["n_columns"] == model.n_columns
    assert len(model.loadings) < model.n_columns

"""target_type="survival": times and events, by the residuals of the null model."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamsel
from streamsel import MRMR, AlphaInvesting, ProjSe, SelectKBest
from streamsel.targets.survival import times_and_events
from tests.reference import survival as reference
from tests.reference import target as space


@pytest.fixture(scope="module")
def study():
    """Return 12 variables, one of them relevant, with tied times; about a third is censored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 12))
    life = rng.exponential(np.exp(-X[:, 4]))
    left = rng.exponential(1.5, size=90)
    time = np.ceil(8.0 * np.minimum(life, left))
    return X, time, (life <= left).astype(float)


def learnt(model, study, **given):
    X, time, event = study
    model.learn_target(np.column_stack([time, event]), **given)
    model.learn_columns(X)
    return model


def test_the_target_is_martingale_residuals(study):
    model = learnt(SelectKBest(k=12, target_type="survival"), study)
    M = reference.residuals(*study[1:])
    assert abs(M.sum()) < 1e-12
    np.testing.assert_allclose(model._target.columns()[:, 0], M, atol=1e-12)
    for j, x in enumerate(study[0].T):
        assert model.relevance[j] == pytest.approx(abs(np.corrcoef(x, M)[0, 1]), abs=1e-12)
    assert model.selected[0] == 4


def test_relevance_is_the_permutation_score_test(study):
    X, time, event = study
    model = learnt(SelectKBest(k=12, target_type="survival"), study)
    M = reference.residuals(time, event)
    for j, x in enumerate(X.T):
        score = reference.score_test(x, time, event)[0]
        assert score == pytest.approx(x @ M, abs=1e-10)
        permuted = np.square(x - x.mean()).sum() * (M @ M) / (len(x) - 1)
        assert (len(x) - 1) * model.relevance[j] ** 2 == pytest.approx(score**2 / permuted)


def test_variance_without_an_effect_is_that_of_the_score():
    rng = np.random.default_rng(3)
    life, left = rng.exponential(size=(2, 3000))
    time, event = np.minimum(life, left), (life <= left).astype(float)
    model = ProjSe(k=1, target_type="survival")
    model.learn_target(np.column_stack([time, event]))
    M = model._target.columns()[:, 0]
    for x in rng.normal(size=(3, 3000)):
        variance = reference.score_test(x, time, event)[1]
        permuted = np.square(x - x.mean()).sum() * (M @ M) / 2999
        assert permuted / variance == pytest.approx(1.0, abs=0.05)


def test_the_variance_equals_that_of_all_permutations():
    time, event = np.array([1.0, 2.0, 2.0, 3.0, 5.0, 8.0]), np.array([1.0, 0, 1, 1, 0, 1])
    x = np.array([0.3, -1.0, 2.0, 0.1, 0.7, -0.4])
    rng = np.random.default_rng(1)
    orders = (rng.permutation(6) for _ in range(4000))
    scores = np.array([reference.score_test(x[order], time, event)[0] for order in orders])
    M = reference.residuals(time, event)
    expected = np.square(x - x.mean()).sum() * (M @ M) / 5
    assert scores.var() == pytest.approx(expected, rel=0.1)
    assert abs(scores.mean()) < 0.1


def test_all_forms_of_a_target_are_equal(study):
    _, time, event = study
    died = event.astype(bool)
    fields = np.array(list(zip(died, time, strict=True)), dtype=[("dead", bool), ("days", float)])
    forms = [
        np.column_stack([time, event]),
        [[t, bool(e)] for t, e in zip(time, event, strict=True)],
        pd.DataFrame({"time": time, "event": event.astype(int)}),
        pd.DataFrame({"status": died, "time": time}),
        pd.DataFrame({"dead": pd.array(died, dtype="boolean"), "days": time}),
        pl.DataFrame({"event": died, "T": time}),
        pl.DataFrame({"days": time, "status": event}),
        fields,
    ]
    for y in forms:
        found = times_and_events(y)
        np.testing.assert_array_equal(found, (time, event))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(5), r"Expected times and events, \(n, 2\).*shape \(5,\)"),
        (np.ones((5, 3)), r"shape \(5, 3\)"),
        ([[1.0, 1], [2.0]], r"shape \(2,\)"),
        (pd.DataFrame({"time": [1.0, 2.0]}), "a frame of 1 columns"),
        ([[1, 3.0], [0, 4.0]], "seem to be swapped"),
        ([[3.0, 1], [5.0, 2]], r"the event \+ 1"),
        ([[3.0, 1], [5.0, 7]], "Got: 7 in row 1"),
        ([[3.0, 1], [5.0, np.nan]], "(?s)Got: nan in row 1.*missing='drop'"),
        ([[-3.0, 1], [5.0, 1]], "Got: -3.0 in row 0"),
        ([[3.0, 1], [np.nan, 1]], "Got: nan in row 1"),
        ([[3.0, 1], [np.inf, 1]], "Got: inf in row 1"),
        ([[3.0, 0], [5.0, 0]], "Got: none in 2 rows"),
        ([[3.0, 1], [3.0, 1]], "events at one time only, in all rows at risk then"),
        ([[1.0, 0], [2.0, 0], [3.0, 1]], "Expected an event while another row, without one"),
        ([[3.0, "dead"], [3.0, "alive"]], "Expected numbers as the event"),
        (pl.DataFrame({"time": ["a", "b"], "event": [0, 1]}), "Expected numbers as the time"),
        (pl.LazyFrame({"time": [1], "event": [1]}), "a lazy polars"),
    ],
)
def test_invalid_survival_targets_are_refused(y, message):
    model = ProjSe(k=1, target_type="survival")
    with pytest.raises((ValueError, TypeError), match=message):
        model.learn_target(y)
    assert model._target is None


def test_residuals_are_projected_given_covariates(study):
    X, time, event = study
    given = X[:, 4] + 0.5 * X[:, 1]
    model = learnt(SelectKBest(k=12, target_type="survival"), study, covariates=given)
    Z = np.column_stack([np.ones(len(X)), given])
    left = [v - Z @ np.linalg.lstsq(Z, v, rcond=None)[0] for v in X.T]
    M = reference.residuals(time, event)
    M -= Z @ np.linalg.lstsq(Z, M, rcond=None)[0]
    for j, x in enumerate(left):
        assert model.relevance[j] == pytest.approx(abs(np.corrcoef(x, M)[0, 1]), abs=1e-10)


def test_other_learners_use_numeric_residuals(study):
    M = reference.residuals(*study[1:])
    for model in (ProjSe(k=3), MRMR(k=3), AlphaInvesting(), streamsel.PLS(2)):
        other = model.clone({"target_type": "survival"})
        learnt(other, study)
        model.learn_target(M)
        model.learn_columns(study[0])
        # Rounding may change the last digits.
        assert list(other.relevance) == list(model.relevance)
        expected = list(model.relevance.values())
        assert list(other.relevance.values()) == pytest.approx(expected, abs=1e-9)


def test_rows_are_refused(study):
    fresh = ProjSe(k=2, target_type="survival")
    by_columns = learnt(ProjSe(k=2, target_type="survival"), study)
    by_window = AlphaInvesting(target_type="survival")
    for model in (fresh, by_columns, by_window):
        for learn in (
            lambda model: model.learn_one({"a": 1.0}, 2.0),
            lambda model: model.learn_many(study[0], study[1]),
        ):
            with pytest.raises(ValueError, match="depend on all observations at risk"):
                learn(model)
    assert by_columns.n_rows == 90


def test_files_keep_survival_targets(study, tmp_path):
    model = learnt(ProjSe(k=3, target_type="survival"), study)
    streamsel.save(model, tmp_path / "model")
    again = streamsel.load(tmp_path / "model")
    assert again.relevance == model.relevance
    assert again.target_type == "survival"


def test_noise_exceeds_the_noise_floor_at_its_level():
    rng = np.random.default_rng(2)
    n, p = 60, 4000
    time, event = rng.exponential(size=n), rng.random(n) < 0.5
    model = SelectKBest(k=p, target_type="survival")
    model.learn_target(pd.DataFrame({"time": time, "event": event}))
    model.learn_columns(rng.normal(size=(n, p)))
    M = space.centred(reference.residuals(time, event))
    assert abs(M).max() > 0.5
    below = np.mean(np.array(list(model.p_values.values())) < 0.05)
    assert below == pytest.approx(0.05, abs=0.012)

"""Confidence intervals in the figures of the experiments."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

PAPERS = Path(__file__).parents[1] / "demos" / "papers"


@pytest.fixture
def of_curves(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    import _curves

    yield _curves
    for name in ("_curves", "_experiment"):
        sys.modules.pop(name, None)


@pytest.fixture
def errors(rng):
    return pd.DataFrame(rng.normal(size=(6, 4)))


def test_intervals_are_those_of_students_t(of_curves, errors):
    means, halves = of_curves.interval(errors)
    low, high = stats.t.interval(0.95, 5, errors.mean(), errors.sem())
    np.testing.assert_allclose(means - halves, low)
    np.testing.assert_allclose(means + halves, high)


def test_two_units_have_no_interval(of_curves, errors):
    errors.iloc[2:, 1] = np.nan
    _, halves = of_curves.interval(errors)
    assert halves.isna().tolist() == [False, True, False, False]


def test_the_main_effect_of_a_unit_does_not_matter(of_curves, errors):
    harder = errors.add(10.0 * np.arange(6), axis=0)
    _, halves = of_curves.interval(of_curves.without_unit_effect(errors))
    means, same = of_curves.interval(of_curves.without_unit_effect(harder))
    np.testing.assert_allclose(same, halves)
    np.testing.assert_allclose(means, harder.mean())


def test_two_columns_have_the_interval_of_their_difference(of_curves, errors):
    """For two columns, the intervals combine to that of their difference."""
    pair = errors[[0, 1]]
    _, halves = of_curves.interval(of_curves.without_unit_effect(pair))
    _, apart = of_curves.interval((pair[0] - pair[1]).to_frame())
    np.testing.assert_allclose(np.hypot(*halves), apart[0])

"""Mutual information of SelectKBest: p-values have their level and power."""

import itertools

import numpy as np
import pytest
import scipy.stats

from streamsel import SelectKBest
from tests.reference import select_k_best as reference

N_STREAMS, N_COLUMNS = 40, 300


def target_of(kind, n, rng):
    """Return numbers or labels; one class may have only a twentieth of the samples."""
    if kind == "number":
        return rng.normal(size=n)
    if kind == "counts":
        return rng.poisson(2.0, n) * 1.0
    c, rare = kind
    codes = np.arange(n) % c
    if rare:
        codes = np.append(np.zeros(n // 20, dtype=int), 1 + np.arange(n - n // 20) % (c - 1))
    return np.array(list("abcde"))[rng.permutation(codes)]


def columns_of(kind, n, rng):
    """Return columns of noise."""
    if kind == "normal":
        return rng.normal(size=(n, N_COLUMNS))
    if kind == "counts":
        return rng.poisson(rng.uniform(0.1, 5.0, N_COLUMNS), (n, N_COLUMNS)) * 1.0
    return rng.binomial(2, rng.uniform(0.01, 0.5, N_COLUMNS), (n, N_COLUMNS)) * 1.0


def learnt(X, y, **params):
    model = SelectKBest(None, score="mutual_info", fdr=0.05, **params)
    model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.mark.parametrize(
    ("n", "of_target", "of_columns"),
    [
        (60, "number", "normal"),
        (200, "number", "normal"),
        (100, "counts", "genotypes"),
        (60, (2, False), "counts"),
        (200, (2, True), "genotypes"),
        (60, (5, False), "normal"),
        (200, (5, True), "normal"),
        (100, (5, True), "counts"),
    ],
)
def test_noise_is_rarely_selected(n, of_target, of_columns):
    """At most about a twentieth of noise streams select any column."""
    rng = np.random.default_rng(n)
    drawn = (
        (columns_of(of_columns, n, rng), target_of(of_target, n, rng)) for _ in range(N_STREAMS)
    )
    wrong = sum(bool(learnt(X, y).selected) for X, y in drawn)
    assert wrong <= scipy.stats.binom.ppf(0.999, N_STREAMS, 0.05)


def test_uncorrelated_signals_are_found():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        X, noise = rng.normal(size=(200, N_COLUMNS)), 0.5 * rng.normal(size=200)
        y = np.sin(2.5 * X[:, 3]) + noise
        found.append(3 in learnt(X, y).selected)
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("n_bins", [2, 3, 10])
@pytest.mark.parametrize(("n", "n_of_target"), [(12, 2), (72, 3), (200, 5), (2000, 15)])
def test_number_of_bins_depends_on_rows_per_cell(n, n_of_target, n_bins, rng):
    model = learnt(rng.normal(size=(n, 4)), rng.normal(size=n), n_bins=n_bins)
    codes, size, n_of_columns, *_ = model._prepared
    assert size == min(n_of_target, n_bins)
    assert n_of_columns == reference.bins_of_columns(codes.tolist(), n_bins)
    assert n_of_columns <= n_bins
    if min(size, n_of_columns) > 3:
        assert n / size / n_of_columns >= 8


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0, 0, 1, 1, 1, 2, 2), (0, 1, 1, 1, 1, 0, 0)),
        ((0, 0, 0, 0, 1, 1, 2), (0, 1, 2, 2, 1, 0, 2)),
        ((0, 0, 0, 1, 1, 1, 1), (0, 0, 0, 1, 1, 1, 0)),
        ((0, 1, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0, 0)),
    ],
)
def test_mean_and_p_value_equal_all_permutations(a, b):
    """The mean and p-value of the reference equal those over all permutations."""
    seen = reference.mutual_info(a, b)
    every = np.array([reference.mutual_info(a, order) for order in itertools.permutations(b)])
    assert reference.mean_mutual_info(a, b) == pytest.approx(every.mean())
    if reference.degrees_of_freedom(a, b) == 1:
        share = np.mean(every >= seen - 1e-12)
        assert reference.chance_of_mutual_info(a, b) == pytest.approx(share)

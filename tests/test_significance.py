"""Reliability of p-values: level, heavy tails, normal scores, inflation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from streamsel import AlphaInvesting, OnlineFDR, ProjSe, Relatedness, SelectKBest
from streamsel.base.null import exceedance_probability, marginal_p_values
from streamsel.state import stream_summary
from streamsel.state.stream_summary import KURTOSES, ColumnSample, next_sampled, sampled_arrivals
from tests.reference import permutations as reference
from tests.seed import some

N, P, RUNS = 300, 250, 100


def counts(rng):
    """Return overdispersed counts, as of cells; most are 0."""
    means = rng.lognormal(-1.5, 1.0, size=P)
    return rng.poisson(means * rng.gamma(0.3, 1.0 / 0.3, size=(N, P))).astype(float)


def variants(rng):
    """Return minor allele counts of rare variants."""
    return rng.binomial(2, rng.uniform(0.005, 0.02, size=P), size=(N, P)).astype(float)


def normal(rng):
    return rng.normal(size=(N, P))


def classes(*sizes):
    return np.repeat([f"type {j}" for j in range(len(sizes))], sizes)


# Columns, target, and whether the Gaussian noise floor is valid.
CASES = {
    "normal": (normal, lambda rng: rng.normal(size=N), True),
    "counts by ten cell types": (counts, lambda _: classes(*[8, 12, 15, 20, 25] * 2, 140), False),
    "counts by a class of 6": (counts, lambda _: classes(6, N - 6), False),
    "rare variants, 12 cases": (variants, lambda _: classes(12, N - 12), False),
    "rare variants, half cases": (variants, lambda _: classes(N // 2, N // 2), True),
    "counts, log-normal target": (counts, lambda rng: rng.lognormal(0.0, 1.0, size=N), False),
    "normal, log-normal target": (normal, lambda rng: rng.lognormal(0.0, 1.0, size=N), True),
}


def fitted(X, y, **params):
    model = SelectKBest(**{"k": 1, **params})
    model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", some(CASES, 2, "false alarms"))
def test_false_positive_rate_of_reports(name):
    """With a permuted target, no more runs than the level (5 %) report an association."""
    columns, target, holds = CASES[name]
    rng = np.random.default_rng(11)
    X, y = np.asfortranarray(columns(rng)), target(rng)
    false_positives = np.zeros(3)
    for run in range(RUNS):
        permuted = rng.permutation(y)
        model = fitted(X, permuted, permutations=99, permutation_seed=run)
        (row,) = model.report().results
        best = row["relevance"]
        false_positives += (row["above_noise"], best > model.noise_floor(method="gaussian"), 0.0)
        false_positives[2] += fitted(X, permuted).report().results[0]["above_noise"]
    by_permutation, gaussian, as_reported = false_positives.astype(int).tolist()
    # 99 % of all series of 100 runs at 5 % have 0 to 11 false positives.
    most = int(stats.binom.ppf(0.99, RUNS, 0.05))
    assert by_permutation <= most
    assert (gaussian <= most) is holds, gaussian
    warned = [caution.code for caution in fitted(X, y).report().warnings]
    if y.dtype.kind == "f":
        # With normal scores of the target the Gaussian noise floor has its level.
        assert as_reported <= most
        assert "tails" not in warned
    else:
        assert as_reported == gaussian
        assert ("tails" in warned) is not holds


def test_tied_normal_scores_are_warned_of():
    """Reports warn if normal scores have heavy tails because most values are tied."""
    rng = np.random.default_rng(5)
    y = (rng.random(N) < 0.03) * rng.lognormal(size=N)
    for columns, warns in ((counts(rng), True), (normal(rng), False)):
        report = fitted(columns, y).report()
        assert report.normal_scores
        texts = [caution.text for caution in report.warnings if caution.code == "tails"]
        assert bool(texts) is warns
        assert all("many equal values" in text for text in texts)


def test_true_associations_are_found():
    """Valid thresholds have power, as much as the Gaussian noise floor where that is valid."""
    rng = np.random.default_rng(3)
    X = normal(rng)
    y = X[:, 7] + 2.0 * rng.normal(size=N)
    found = fitted(X, y, permutations=999).report().results[0]
    assert (found["name"], found["above_noise"], found["p_adjusted"]) == (7, True, 0.001)
    heavy = fitted(X, np.exp(0.5 * y)).report()
    assert heavy.normal_scores
    assert (heavy.results[0]["name"], heavy.results[0]["above_noise"]) == (7, True)


# ------------------------------------------------------------------------ the tails of columns


def test_the_sample_is_determined_by_arrivals():
    for start, stop in ((0, 5000), (3, 90), (31, 33), (300, 4097), (10**6, 10**6 + 20_000)):
        found = dict(np.array(sampled_arrivals(start, stop)).T.astype(int).tolist())
        for j in range(start, stop):
            step = 1 if j < 32 else 2 ** (int(np.log2(j)) - 4)
            assert found.get(j) == (step if j % step == 0 else None), j
        assert next_sampled(start) == min(found)
    _, steps = sampled_arrivals(0, 10**6)
    assert steps.sum() == pytest.approx(10**6, rel=0.02)
    assert steps.size < 280


@pytest.mark.parametrize("weighted", [False, True])
def test_kurtosis(weighted):
    rng = np.random.default_rng(0)
    X = np.column_stack([normal(rng)[:, :12], counts(rng)[:, :10], 1e150 * variants(rng)[:, :10]])
    y, w = rng.normal(size=N), rng.integers(0, 3, size=N) if weighted else None
    model = SelectKBest(k=1)
    model.learn_target(y, weights=w)
    model.learn_columns(X)
    sample = model._phase.summary.sample
    rows = np.repeat(np.arange(N), 1 if w is None else w)
    varies = X[rows] / 1e150, X[rows]
    varies = np.where(np.arange(32) < 22, varies[1], varies[0])
    varies = varies[:, varies.std(axis=0) > 0]
    expected = stats.kurtosis(varies, axis=0)
    at = np.searchsorted(KURTOSES, expected)
    assert sample.counts.sum() == expected.size
    for j, kurtosis in zip(at, expected, strict=True):
        assert sample.counts[max(j - 1, 0) : j + 1].any(), kurtosis


def test_kurtosis_of_a_target():
    rng = np.random.default_rng(1)
    y, Z = rng.lognormal(size=N), rng.normal(size=(N, 2))
    for target, covariates in ((y, None), (y, Z), (classes(20, 30, 250), None)):
        model = SelectKBest()
        model.learn_target(target, covariates=covariates)
        one_hot = (
            target[:, None] == np.unique(target)[1:] if target.dtype.kind == "U" else y[:, None]
        )
        left = reference.residuals(
            1.0 * one_hot, np.zeros((N, 0)) if covariates is None else Z, np.ones(N)
        )
        leverage = np.square(np.linalg.qr(left)[0]).sum(axis=1)
        r = left.shape[1]
        expected = N * leverage @ leverage - r * (r + 2)
        assert model._target.kurtosis(model._target.basis_of(model._space)) == pytest.approx(
            expected, rel=1e-9
        )


@pytest.mark.parametrize("name", ["counts by a class of 6", "rare variants, 12 cases", "normal"])
def test_probability_of_false_positives_is_predicted(name):
    """The predicted share of columns above a threshold equals that in simulated permutations."""
    columns, target, _ = CASES[name]
    rng = np.random.default_rng(5)
    X, y = columns(rng), target(rng)
    X = X[:, X.std(axis=0) > 0]
    U = y == y[0] if y.dtype.kind == "U" else y
    u = (U - U.mean()) / (np.sqrt(N) * U.std())
    Z = (X - X.mean(axis=0)) / (np.sqrt(N) * X.std(axis=0))
    r = np.abs(np.array([rng.permutation(u) for _ in range(4000)]) @ Z)
    floor = 3.2 / np.sqrt(N)
    found = exceedance_probability(
        floor, N, 1, N * (u**4).sum() - 3.0, stats.kurtosis(X, axis=0)
    ).mean()
    assert found == pytest.approx((r > floor).mean(), rel=0.5)
    if name == "normal":
        assert found == pytest.approx(
            float(marginal_p_values(np.array([floor]), N, 1)[0]), rel=0.05
        )


# ------------------------------------------------------------------------------- normal scores


def test_p_values_by_normal_scores():
    """P-values are those of a regression on normal scores of the residuals."""
    rng = np.random.default_rng(2)
    X, Z = counts(rng), rng.normal(size=(N, 1))
    y = np.round(rng.lognormal(size=N) + np.exp(Z[:, 0]), 1)
    for covariates, given in ((None, np.zeros((N, 0))), (Z, Z)):
        model = SelectKBest(k=20)
        model.learn_target(y, covariates=covariates)
        model.learn_columns(X)
        left = reference.residuals(np.column_stack([y, X]), given, np.ones(N))
        ranks = stats.rankdata(np.round(left[:, 0], 9))
        scores = stats.norm.ppf((ranks - 0.5) / N)
        scores = reference.residuals(scores[:, None], given, np.ones(N))[:, 0]
        free = N - 2 - given.shape[1]
        for j, p in model.p_values.items():
            x = left[:, 1 + j]
            r = abs(x @ scores) / np.sqrt((x @ x) * (scores @ scores))
            assert p == pytest.approx(stats.f.sf(r**2 / (1 - r**2) * free, 1, free), rel=1e-6)


def test_which_models_use_normal_scores():
    rng = np.random.default_rng(4)
    X = normal(rng)
    heavy = rng.lognormal(size=N)
    for model, y, expected in (
        (SelectKBest(), heavy, True),
        (ProjSe(max_candidates=30), heavy, True),
        (SelectKBest(), rng.normal(size=N), False),
        (SelectKBest(permutations=99), heavy, False),
        (SelectKBest(), np.column_stack([heavy, heavy[::-1]]), False),
        (SelectKBest(), np.where(heavy > 4, "high", "low"), False),
        (ProjSe(kernel="rbf"), heavy, False),
        (OnlineFDR(), heavy, True),
        (AlphaInvesting(), heavy, False),
    ):
        model.learn_target(y)
        model.learn_columns(X)
        assert model.report().normal_scores is expected, model
    # With a bounded pool nothing is certified, as p-values may be smaller than relevances imply.
    model = SelectKBest(k=None, fdr=0.2, max_candidates=20)
    model.learn_target(heavy + 5.0 * X[:, 3])
    model.learn_columns(X)
    assert model.selected
    assert model.n_certified == 0


# ----------------------------------------------------------------------------------- inflation


def test_the_hint_about_inflation_names_what_can_be_done():
    rng = np.random.default_rng(4)
    n, p = 200, 2_000
    factor = rng.normal(size=n)
    X = rng.normal(size=(n, p)) + 0.3 * factor[:, None]
    y = factor + rng.normal(size=n)

    def hint(target_type, y, **relatedness):
        model = SelectKBest(k=3, target_type=target_type)
        model.learn_target(y, **relatedness)
        model.learn_columns(X)
        (text,) = [one.text for one in model.report().warnings if one.code == "inflation"]
        return text.partition("Hint: ")[2]

    assert hint("numeric", y).endswith("or for kinship (relatedness)")
    for possible in (hint("binary", y > 0.0), hint("numeric", y, weights=np.ones(n) + (y > 0.0))):
        assert possible.endswith("or for the leading principal components")
    unrelated = Relatedness(np.diag(np.arange(1.0, n + 1.0)), ratio=1e-3)
    assert hint("numeric", y, relatedness=unrelated).endswith(
        "relatedness is already accounted for"
    )


def test_inflation_is_the_median_statistic():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(N, 2000))
    group = rng.normal(size=N)
    for share, y in ((0.0, rng.normal(size=N)), (0.3, group), (0.3, group > 0.5)):
        columns = X + share * group[:, None]
        target = y if y.dtype.kind == "f" else np.where(y, "case", "control")
        model = fitted(columns, target)
        r2 = np.square(np.corrcoef(columns.T, 1.0 * y)[-1, :-1])
        p_values = stats.f.sf(r2 / (1 - r2) * (N - 2), 1, N - 2)
        expected = stats.chi2.isf(np.median(p_values), 1) / stats.chi2.isf(0.5, 1)
        report = model.report()
        assert report.inflation == pytest.approx(expected, rel=0.02)
        assert ("inflation" in [caution.code for caution in report.warnings]) is (share > 0.0)
    assert fitted(X[:, :900], group).report().inflation is None


def test_correlated_columns_move_the_median_by_chance():
    """A common factor in all columns makes the median statistic random, without a warning."""
    rng = np.random.default_rng(7)
    warned = []
    for _ in range(20):
        X = rng.normal(size=(100, 1500)) + rng.normal(size=(100, 1))
        report = fitted(X, rng.normal(size=100)).report()
        warned.append(any(caution.code == "inflation" for caution in report.warnings))
    assert sum(warned) <= 2


def test_mean_squared_correlation():
    rng = np.random.default_rng(8)
    for n, p, factor in ((100, 200, 0.0), (100, 3000, 1.0), (2000, 1000, 0.5), (50, 1, 0.0)):
        X = rng.normal(size=(n, p)) + factor * rng.normal(size=(n, 1))
        model = fitted(X, rng.normal(size=n))
        R = np.corrcoef(X.T) if p > 1 else np.eye(1)
        expected = (np.square(R).sum() - p) / max(1, p * (p - 1)) - 1.0 / (n - 1)
        found = model._phase.summary.sample.mean_squared_correlation()
        assert found == pytest.approx(max(0.0, expected), rel=1.5, abs=2e-3)
    assert ColumnSample().mean_squared_correlation() == 0.0


def test_merged_samples_and_their_files():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(N, 32)), rng.normal(size=N)
    whole, one, other = (fitted(X[:, :0], y) for _ in range(3))
    whole.learn_columns(X, range(32))
    one.learn_columns(X[:, :20], range(20))
    other.learn_columns(X[:, 20:], range(20, 32))
    one.merge(other)
    mine, theirs = whole._phase.summary.sample, one._phase.summary.sample
    assert_allclose(mine.sums, theirs.sums, atol=1e-12)
    assert_allclose(mine.counts, theirs.counts)
    state = whole._get_state()
    bad = {"counts": -mine.counts, "sums": mine.sums[:, 1:], "weight2": None, "n": -1}
    for name, value in bad.items():
        forged = state | {"summary": state["summary"] | {"sample": mine.to_state() | {name: value}}}
        with pytest.raises(ValueError, match="Expected"):
            SelectKBest(k=1)._set_state(forged)


def test_related_animals_are_warned_of(dataset):
    """Reports warn of related animals: half of the markers seem associated."""
    X, y, *_ = dataset("mouse_hs1940")
    model = SelectKBest(k=None, fdr=0.05)
    model.learn_target(y.astype(float))
    model.learn_columns(np.asfortranarray(X))
    report = model.report()
    assert len(model.selected) > 5000
    assert report.inflation > 5.0
    assert [caution.code for caution in report.warnings] == ["inflation"]


@pytest.mark.parametrize("score", ["rank", "xi"])
def test_above_noise_uses_p_values_of_the_score(score):
    """Scores with p-values of their own use these for `above_noise`, not the relevance."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(100, 40))
    y = np.exp(9.0 * X[:, 3])
    model = fitted(X, y, k=40, score=score)
    found = model.report().results
    assert found[0]["name"] == 3
    assert found[0]["relevance"] < model.noise_floor()
    assert [row["above_noise"] for row in found] == [row["p_value"] < 0.05 / 40 for row in found]
    assert found[0]["above_noise"]


def test_a_sample_of_tall_columns_is_taken_in_parts(rng, monkeypatch):
    X, y = rng.exponential(size=(50, 70)), rng.normal(size=50)
    found = []
    for size in (2**20, 150):
        monkeypatch.setattr(stream_summary, "_BATCH_SIZE", size)
        model = ProjSe(k=2)
        model.learn_target(y)
        model.learn_columns(X)
        found.append(model._phase.summary.sample)
    for field in ColumnSample.changing:
        np.testing.assert_array_equal(*(getattr(sample, field) for sample in found))

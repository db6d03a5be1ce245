"""Knockoffs: equal to their definition for any blocks, exchangeable, invalid input refused."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamsel import ForwardSelection, Lasso
from streamsel.data.chunks import Block
from streamsel.evaluate import KnockoffSelection, knockoff_filter, knockoff_statistics
from streamsel.stream import ColumnStream, grouped, iter_array, iter_columns, with_knockoffs
from streamsel.stream import knockoffs as knockoffs_module
from streamsel.stream._probes import row_order
from tests.reference import knockoffs as reference


def autoregressive(n, p, rho, rng):
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def generated(stream, p):
    found = dict(stream)
    return np.column_stack([found["knockoff", j] for j in range(p)])


def in_blocks(X, cuts):
    ends = [0, *sorted(cuts), X.shape[1]]
    pairs = [(a, b) for a, b in itertools.pairwise(ends) if a < b]
    return ColumnStream(lambda: (Block(range(a, b), X[:, a:b]) for a, b in pairs))


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 40, 90, 150]),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_knockoffs_are_their_definition(seed, p, w, m):
    rng = np.random.default_rng(seed)
    n = 80
    X = 1e3 * autoregressive(n, p, 0.7, rng) + 7.0
    Z = rng.normal(size=(n, m)) if m else None
    stream = with_knockoffs(X, w, covariates=Z, seed=seed)
    orders = [row_order(seed, j, n) for j in range(p)]
    expected = reference.knockoffs(X, w, orders, Z)
    np.testing.assert_allclose(generated(stream, p), expected, rtol=0, atol=1e-7 * 1e3)
    assert stream.n_columns == 2 * p
    assert stream.n_pairs == p


@given(st.lists(st.integers(1, 199), max_size=5), st.sampled_from(["array", "int8", "sparse"]))
def test_knockoffs_do_not_depend_on_blocks(cuts, form):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 200), dtype=np.int8)
    values = {"array": X.astype(float), "int8": X, "sparse": sparse.csc_array(X)}[form]
    expected = list(with_knockoffs(X, 2, seed=3))
    found = list(with_knockoffs(in_blocks(values, cuts), 2, seed=3))
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (_, a), (_, b) in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def test_knockoffs_of_long_columns_do_not_depend_on_blocks():
    """Knockoffs do not depend on blocks, also where few columns are generated at a time."""
    X = np.random.default_rng(0).normal(size=(9000, 70))
    expected = [values.tobytes() for _, values in with_knockoffs(X, 1)]
    found = [values.tobytes() for _, values in with_knockoffs(in_blocks(X, [1, 13, 64]), 1)]
    assert found == expected


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_moments_equal_those_of_the_columns(seed, w):
    rng = np.random.default_rng(seed)
    X = autoregressive(90, 30, 0.6, rng)
    Z = rng.normal(size=(90, 2))
    K = generated(with_knockoffs(X, w, covariates=Z, seed=1), 30)
    np.testing.assert_allclose(K.mean(axis=0), X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(Z.T @ K, Z.T @ X, atol=1e-9)
    Xc, Kc = X - X.mean(axis=0), K - K.mean(axis=0)
    for j in range(30):
        before, after = reference.neighbours(j, 30, w)
        Z = np.column_stack([(Xc + Kc)[:, before], Xc[:, after]])
        np.testing.assert_allclose(Z.T @ Kc[:, j], Z.T @ Xc[:, j], atol=1e-8)
    np.testing.assert_allclose((Kc**2).sum(axis=0), (Xc**2).sum(axis=0))


@pytest.mark.parametrize("w", [1, 2, 3])
def test_exchange_hardly_changes_covariances_of_dependent_columns(w):
    """With more preceding columns an exchange changes covariances less; 4w suffice in practice."""
    rng = np.random.default_rng(w)
    p = 24
    # A banded precision matrix: each column depends on w neighbours on either side only.
    L = np.tril(rng.normal(size=(p, p)))
    L[np.subtract.outer(np.arange(p), np.arange(p)) > w] = 0.0
    np.fill_diagonal(L, 2.0)
    S = np.linalg.inv(L.T @ L)
    S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))

    def change(behind):
        G = reference.of_covariance(S, w, behind)
        found = 0.0
        for j in range(p):
            order = np.arange(2 * p)
            order[[j, p + j]] = order[[p + j, j]]
            found = max(found, np.abs(G[np.ix_(order, order)] - G).max())
        return found

    changes = [change(behind) for behind in (1, 2, knockoffs_module._BEHIND, p)]
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > 0.05
    assert 0.02 < changes[1] < 0.04
    assert changes[2] < 0.006
    assert changes[3] < 1e-10
    # The covariance of generated knockoffs is the same, up to chance.
    X = rng.multivariate_normal(np.zeros(p), S, size=50_000)
    both = np.column_stack([X, generated(with_knockoffs(X, w), p)])
    expected = reference.of_covariance(S, w, knockoffs_module._BEHIND)
    np.testing.assert_allclose(np.corrcoef(both.T), expected, atol=5.0 / np.sqrt(50_000))


def test_degenerate_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    X[:, 1] = 4.0
    X[:, 3] = X[:, 2]
    X[:, 5] *= 1e200
    stream = with_knockoffs(X, 1)
    K = generated(stream, 6)
    assert np.isfinite(K).all()
    assert (K[:, 1] == 4.0).all()
    # A column that its neighbours determine is its own knockoff.
    np.testing.assert_allclose(K[:, 3], X[:, 3], atol=1e-9)
    assert stream.n_pairs == 3
    assert not np.allclose(K[:, 5], X[:, 5], rtol=1e-3)


def test_names_are_stable_over_passes():
    X = np.random.default_rng(0).normal(size=(50, 100))
    stream = with_knockoffs(iter_array(X, names=[f"v{j}" for j in range(100)]), 2)
    names = [name for name, _ in stream]
    first = [name for name in names[::2] if isinstance(name, tuple)]
    assert 30 < len(first) < 70  # the order of a pair is a fair coin flip
    for a, b in zip(names[::2], names[1::2], strict=True):
        assert a == ("knockoff", b) or b == ("knockoff", a)
    again = dict(stream)
    assert stream.take([("knockoff", "v7")])["knockoff", "v7"].tobytes() == (
        again["knockoff", "v7"].tobytes()
    )
    other = dict(with_knockoffs(iter_array(X, names=[f"v{j}" for j in range(100)]), 2, seed=1))
    assert not np.allclose(other["knockoff", "v7"], again["knockoff", "v7"])


def test_memory_does_not_depend_on_the_number_of_columns():
    rng = np.random.default_rng(0)

    def peak(p):
        columns = ((j, rng.normal(size=2000)) for j in range(p))
        stream = with_knockoffs(iter_columns(columns, n_rows=2000), 3)
        tracemalloc.start()
        for _ in stream.blocks():
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(100)
    most = peak(1500)
    assert most < 1.2 * peak(500)
    # 64 columns are generated at a time.
    assert most < 8 * 2000 * 1500


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda X: with_knockoffs(X, 0), ValueError, "window"),
        (lambda X: with_knockoffs(X, 201), ValueError, "window"),
        (lambda X: with_knockoffs(X, seed=-1), ValueError, "seed"),
        (lambda X: with_knockoffs(X, 10), ValueError, "more than 102 rows"),
        (lambda X: with_knockoffs(X, 1, covariates=np.ones(3)), ValueError, "60 rows"),
        (lambda X: with_knockoffs(np.where(X > 2, np.nan, X), 1), ValueError, "finite"),
        (lambda X: with_knockoffs(np.full((60, 2), "a"), 1), TypeError, "number"),
        (
            lambda X: with_knockoffs(grouped(X, dict.fromkeys(range(4), "g")), 1),
            ValueError,
            "group",
        ),
        (lambda X: with_knockoffs(X, 1, covariates=[None] * 60), ValueError, "covariates"),
    ],
)
def test_bad_input_is_refused(make, error, text):
    X = np.random.default_rng(0).normal(size=(60, 80))
    X[3, 4] = 9.0
    with pytest.raises(error, match=text):
        list(make(X))


@given(
    st.dictionaries(st.integers(0, 40), st.integers(-6, 6).map(float), max_size=40),
    st.sampled_from([0.1, 0.3, 0.5, 0.9]),
)
def test_the_threshold_is_that_of_the_definition(W, level):
    found = KnockoffSelection(level, 1, 0, 50, W, model=None)
    expected = reference.selected(W, level)
    assert set(found.selected) == set(expected)
    assert found.threshold == min((W[name] for name in expected), default=np.inf)
    assert list(found.q_values) == sorted(
        (name for name in W if W[name] > 0), key=lambda name: -W[name]
    )
    for name, q in found.q_values.items():
        assert (name in reference.selected(W, min(q + 1e-9, 0.999))) or q > 0.998
        assert name not in reference.selected(W, q - 1e-9)


def planted(seed, n=400, p=300, noise=1.0):
    rng = np.random.default_rng(seed)
    X = autoregressive(n, p, 0.5, rng)
    return X, X[:, ::15].sum(axis=1) + noise * rng.normal(size=n)


@pytest.mark.slow
def test_the_filter_selects_planted_columns():
    X, y = planted(0)
    found = knockoff_filter(X, y, 0.1, window=1)
    assert set(range(0, 300, 15)) <= set(found.selected)
    assert len(found.selected) <= 24
    assert found.model.n_certified == found.model.k == 100
    assert found.as_dict()["selected"] == found.selected
    binary = knockoff_filter(X, np.where(y > 0, "a", "b"), 0.2, window=1)
    assert sum(name % 15 == 0 for name in binary.selected) >= 10
    # Statistics are coefficient differences of the exact Lasso, with a bounded pool too.
    bounded = knockoff_filter(X, y, 0.1, window=1, max_candidates=120)
    assert bounded.selected == found.selected
    assert bounded.model.n_passes > 1.0
    assert bounded.statistics == pytest.approx(found.statistics, abs=1e-9)


def test_the_lasso_is_that_of_all_pairs():
    X, y = planted(1, 200, 60)
    pairs = list(with_knockoffs(X, 2, seed=5))
    found = knockoff_filter(X, y, 0.2, window=2, seed=5, alphas=0.1)
    from sklearn.linear_model import Lasso as Peer

    A = np.column_stack([values for _, values in pairs])
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    w = Peer(alpha=0.1, tol=1e-12, max_iter=100_000).fit(A, y).coef_
    expected = knockoff_statistics(dict(zip([name for name, _ in pairs], w.tolist(), strict=True)))
    assert found.statistics == pytest.approx(expected, abs=1e-7)


@pytest.mark.slow
def test_signs_of_irrelevant_columns_are_random():
    """Signs of irrelevant columns are fair coin flips, also next to relevant columns."""
    signs, false = [], []
    for seed in range(30):
        X, y = planted(seed, 300, 200, noise=3.0)
        found = knockoff_filter(X, y, 0.2, window=1, seed=seed)
        signs += [w > 0 for name, w in found.statistics.items() if name % 15]
        false.append(np.mean([name % 15 > 0 for name in found.selected] or [0.0]))
    assert len(signs) > 1000
    assert abs(np.mean(signs) - 0.5) < 3.0 * 0.5 / np.sqrt(len(signs))
    assert np.mean(false) < 0.2 + 3.0 * np.std(false) / np.sqrt(30)


@pytest.mark.parametrize("options", [{}, {"max_candidates": 80}, {"family": "logistic"}])
def test_exchange_of_columns_and_knockoffs_changes_signs_only(options, monkeypatch):
    X, y = planted(3, 200, 60, noise=3.0)
    y = y > 0 if options.get("family") else y
    before = knockoff_filter(X, y, 0.2, window=1, **options).statistics
    pairs = knockoffs_module.WithKnockoffs._pairs
    exchanged = {*range(0, 60, 2)}

    def other_name(name):
        column = name[1] if isinstance(name, tuple) else name
        if column not in exchanged:
            return name
        return column if isinstance(name, tuple) else ("knockoff", column)

    def renamed(self):
        for names, values, _ in pairs(self):
            yield Block([other_name(name) for name in names], values)

    monkeypatch.setattr(knockoffs_module.WithKnockoffs, "_pairs", renamed)
    after = knockoff_filter(X, y, 0.2, window=1, **options).statistics
    assert len(before) > 20
    assert after == pytest.approx({n: -w if n in exchanged else w for n, w in before.items()})


def test_unsuited_columns_are_refused():
    X, y = planted(0, 300, 400)
    shuffled = np.random.default_rng(3).permutation(400)
    wide = autoregressive(300, 400, 0.9, np.random.default_rng(1))
    with pytest.raises(ValueError, match="depend on their neighbours only"):
        knockoff_filter(wide[:, shuffled], y, window=1)
    knockoff_filter(wide, y, window=1)
    group = np.repeat([0.0, 1.0], 150)
    mixed = X + np.outer(group, 0.2 * np.random.default_rng(2).normal(size=400))
    with pytest.raises(ValueError, match="confounder"):
        knockoff_filter(mixed, y + 8.0 * group, window=1)
    # Adjusted for the confounder, they are accepted.
    knockoff_filter(mixed, y + 8.0 * group, window=1, covariates=group)


def test_rows_that_depend_on_each_other_are_refused():
    rng = np.random.default_rng(0)
    X, error = autoregressive(400, 60, 0.5, rng), rng.normal(size=400)
    for i in range(1, 400):
        X[i] += 0.6 * X[i - 1]
        error[i] += 0.6 * error[i - 1]
    with pytest.raises(ValueError, match="independent rows"):
        knockoff_filter(X, error, window=1)
    # Dependent rows of either alone do no harm.
    knockoff_filter(X, error[rng.permutation(400)], window=1)


def test_valid_columns_are_seldom_refused():
    """Valid columns are rarely refused, also with strong correlations."""
    refused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = autoregressive(300, 200, 0.98, rng)
        stream = with_knockoffs(X, 1)
        for _ in stream.blocks():
            pass
        refused += stream.distant_share > 0.25
    assert refused <= 2
    stream = with_knockoffs(X[:, :30], 1)
    assert np.isnan([stream.distant_share, stream.row_correlation]).all()
    list(stream)
    assert np.isnan(stream.distant_share)
    assert abs(stream.row_correlation) < 0.1


def test_columns_explained_by_neighbours_have_no_statistic():
    X, y = planted(0, 300, 120)
    X[:, 31] = -2.0 * X[:, 30]
    found = knockoff_filter(X, y, 0.2, window=1)
    assert found.n_columns == 118
    assert not {30, 31} & {*found.statistics}
    assert {0, 15, 45, 60} <= {*found.selected}
    with pytest.raises(ValueError, match=r"240 of 240 columns are explained.*\n.*prune"):
        knockoff_filter(np.repeat(X, 2, axis=1), y, 0.2, window=1)
    most = np.column_stack([np.repeat(X, 2, axis=1), X[:, :40] ** 2])
    with pytest.raises(ValueError, match=r"24\d of 280"):
        knockoff_filter(most, y, 0.2, window=1)


def test_targets_and_covariates():
    X, y = planted(0, 300, 90)
    z = np.random.default_rng(5).normal(size=300)
    labels = np.where(y > 0, "yes", "no")
    found = knockoff_filter(X, labels, 0.3, window=1, covariates=z)
    same = knockoff_filter(X, (y > 0).astype(float), 0.3, window=1, covariates=z)
    assert found.statistics == pytest.approx(
        knockoff_filter(
            X, np.where(y > 0, 1.0, 0.0), 0.3, window=1, covariates=z, target_type="numeric"
        ).statistics
    )
    assert found.selected == same.selected
    # Rows without a target.
    gaps = np.where(np.arange(300) % 10 == 3, np.nan, y)
    kept = ~np.isnan(gaps)
    dropped = knockoff_filter(X, gaps, 0.2, window=1, covariates=z, missing="drop")
    expected = knockoff_filter(X[kept], y[kept], 0.2, window=1, covariates=z[kept])
    assert dropped.statistics == expected.statistics
    with pytest.raises(ValueError, match="missing='drop'"):
        knockoff_filter(X, gaps, 0.2, window=1)


def test_files(tmp_path):
    X, y = planted(0, 200, 60)
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(X))
    assert knockoff_filter(path, y, 0.2, window=1).statistics == (
        knockoff_filter(X, y, 0.2, window=1).statistics
    )


def test_offsets_and_scales():
    X, y = planted(0, 200, 60)
    found = knockoff_filter(X, y, 0.2, window=1)
    moved = knockoff_filter(X * 2.0**-400 + 0.0, y, 0.2, window=1)
    assert moved.selected == found.selected
    assert knockoff_filter(X + 1e9, y, 0.2, window=1).selected == found.selected
    # All columns still have a knockoff, though digits are lost.
    assert knockoff_filter(X + 1e14, y, 0.2, window=1).n_columns == 60


def test_refusals_of_the_filter():
    X, y = planted(0, 100, 30)
    with pytest.raises(ValueError, match="several times"):
        knockoff_filter(iter_columns(iter(zip(range(30), X.T, strict=True))), y)
    for call in (
        lambda: knockoff_filter(X, y, 1.0),
        lambda: KnockoffSelection(5.0, 1, 0, 9, {}),
    ):
        with pytest.raises(ValueError, match="fdr"):
            call()
    with pytest.raises(ValueError, match="finite statistics"):
        KnockoffSelection(0.1, 1, 0, 9, {"a": np.nan})
    with pytest.raises(ValueError, match="1 / fdr = 10"):
        knockoff_filter(X, y, k=5)
    with pytest.raises(ValueError, match="Expected 90 values"):
        knockoff_filter(X, y[:90], window=1)
    with pytest.raises(ValueError, match="reserved"):
        knockoff_filter(iter_array(X, names=[("knockoff", j) for j in range(30)]), y, window=1)
    with pytest.raises(ValueError, match="reserved"):
        list(with_knockoffs(with_knockoffs(X, 1), 1))
    with pytest.raises(ValueError, match="two classes"):
        knockoff_filter(X, np.arange(100) % 3 == np.arange(100) % 2, 0.1, family="gaussian")
    with pytest.raises(TypeError, match=r"knockoff_filter\. Got: fdrr\.\nHint: did you mean fdr"):
        knockoff_filter(X, y, fdrr=0.1)
    for table in (X, sparse.csc_array(X)):
        with pytest.raises(TypeError, match=r"values of a target\. Got: the text 'y'"):
            knockoff_filter(table, "y")
    with pytest.raises(TypeError, match="mapping"):
        knockoff_statistics([1.0])
    with pytest.raises(ValueError, match="finite"):
        knockoff_statistics({"a": np.nan})


def test_other_learners_accept_the_pairs():
    X, y = planted(0)
    model = ForwardSelection(k=20)
    model.learn_target(y)
    model.learn_columns(with_knockoffs(X, 1))
    gains = model.scores
    found = KnockoffSelection(0.1, 1, 0, 300, knockoff_statistics(gains), model)
    assert sum(name % 15 == 0 for name in found.selected) >= 18


def test_standardized_coefficients():
    X, y = planted(2, 120, 40)
    scaled = X * np.linspace(1.0, 9.0, 40) + 3.0
    models = [Lasso(alphas=0.2), Lasso(alphas=0.2)]
    for model, columns in zip(models, (X, scaled), strict=True):
        model.learn_target(y)
        model.learn_columns(columns)
    a, b = (model.standardized_coefficients for model in models)
    assert a == pytest.approx(b)
    for name, value in models[0].coefficients.items():
        assert a[name] == pytest.approx(value * X[:, name].std())

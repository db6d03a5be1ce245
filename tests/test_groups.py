"""Groups of columns that are selected as one, against their definition."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import streamsel
from streamsel import MRMR, PCA, ForwardSelection, Lasso, ProjSe, SelectKBest, registry
from streamsel.base.relatedness import Relatedness
from streamsel.data.chunks import Block
from streamsel.selection._group_lasso import _WorkingSet
from streamsel.state.pool.group_pool import GroupPool
from streamsel.stream import ColumnStream, grouped, iter_columns
from streamsel.targets.group_test import GroupTest
from tests.conformance.modes import bits, same, shown
from tests.copies import COPIES
from tests.reference import groups as reference
from tests.seed import covering

N, P = 60, 48
MODELS = {
    "SelectKBest": lambda **more: SelectKBest(4, **more),
    "SelectKBest, fdr": lambda **more: SelectKBest(fdr=0.3, **more),
    "ProjSe": lambda **more: ProjSe(4, **more),
    "ForwardSelection": lambda **more: ForwardSelection(4, **more),
    "ForwardSelection, ridge=0": lambda **more: ForwardSelection(4, ridge=0.0, **more),
    "Lasso": lambda **more: Lasso(4, n_alphas=30, **more),
}
each = pytest.mark.parametrize("name", MODELS)


def groups_of(p=P, sizes=(3, 1, 5, 2, 4)):
    """Return groups of adjacent columns: name -> members."""
    found, start = {}, 0
    while start < p:
        size = sizes[len(found) % len(sizes)]
        found[f"g{len(found)}"] = list(range(start, min(start + size, p)))
        start += size
    return found


def columns(seed=0, n=N, p=P):
    """Return columns with copies, sums and constants in the same group and in others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 5.0, size=p) + rng.normal(size=p)
    X[:, 1], X[:, 5], X[:, 10] = 2.0 * X[:, 0] - 1.0, 3.0, X[:, 9] + X[:, 11]
    X[:, 30:35] = X[:, [0, 4, 6, 2, 7]]
    X[:, 18] = 7.0  # a group of one
    return np.asfortranarray(X)


def target(X, c=1, seed=1):
    rng = np.random.default_rng(seed)
    Y = X[:, [0, 6, 12]] @ rng.normal(size=(3, c)) + 2.0 * rng.normal(size=(len(X), c))
    return Y if c > 1 else Y[:, 0]


def orthonormal(Y, Z=None):
    return reference.basis(Y.reshape(len(Y), -1), Z)


def learnt(model, X, y, groups=None, **more):
    model.learn_target(y, **more)
    model.learn_columns(grouped(X, groups_of(X.shape[1]) if groups is None else groups))
    return model


# ------------------------------------------------------------------------------- the definitions


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_p_values_are_those_of_the_definition(c, form):
    X = columns()
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "sparse":
        X = np.where(np.abs(X - X.mean(axis=0)) > X.std(axis=0), X, 0.0)
    X[:, 18] = 7.0
    Y = target(X, c)
    model = learnt(SelectKBest("all"), sp.csc_array(X) if form == "sparse" else X, Y)
    Q = reference.bases(X.astype(float), groups_of())
    expected = reference.p_values(Q, orthonormal(Y))
    assert sorted(model.selected) == sorted(expected)
    for name, (_, F, p) in expected.items():
        np.testing.assert_allclose([model.scores[name], model.p_values[name]], [F, p], rtol=1e-7)
    rows = {row["name"]: row for row in model.report().results}
    assert {name: rows[name]["degrees_of_freedom"] for name in Q} == {
        name: axes.shape[1] for name, axes in Q.items()
    }
    # On one scale: the relevance of a group is that of a column with its p-value.
    assert [*model.p_values.values()] == sorted(model.p_values.values())


def test_one_hot_groups_are_tested_by_the_analysis_of_variance(rng):
    y = rng.normal(size=80)
    codes = {f"c{j}": rng.integers(0, 2 + j, size=80) for j in range(5)}
    model = SelectKBest("all", target_type="numeric")
    model.learn_target(y)
    for name, code in codes.items():
        one_hot = sp.csc_array((code[:, None] == np.arange(code.max() + 1)).astype(np.int8))
        model.learn_group(name, one_hot, names=[(name, v) for v in range(code.max() + 1)])
    for name, code in codes.items():
        expected = stats.f_oneway(*(y[code == v] for v in np.unique(code)))
        np.testing.assert_allclose(model.scores[name], expected.statistic, rtol=1e-9)
        np.testing.assert_allclose(model.p_values[name], expected.pvalue, rtol=1e-9)


def test_p_values_with_covariates_equal_nested_regressions(rng):
    X, Z = columns(), rng.normal(size=(N, 2))
    X[:, 40] = Z @ [1.0, -2.0] + 3.0
    y = target(X) + Z @ [2.0, 1.0]
    model = learnt(SelectKBest("all"), X, y, covariates=Z)
    fixed = np.c_[np.ones(N), Z]

    def squares(A):
        return np.square(y - A @ np.linalg.lstsq(A, y, rcond=1e-10)[0]).sum()

    for name, members in groups_of().items():
        if name not in model.selected:
            continue
        whole = np.c_[fixed, X[:, members]]
        q = np.linalg.matrix_rank(whole, tol=1e-6) - 3
        left = N - 3 - q
        F = (squares(fixed) - squares(whole)) / q / (squares(whole) / left)
        np.testing.assert_allclose(model.scores[name], F, rtol=1e-6)
        np.testing.assert_allclose(model.p_values[name], stats.f.sf(F, q, left), rtol=1e-6)


@pytest.mark.parametrize("c", [1, 2, 7])
def test_projse_projects_out_the_span_of_a_group(c):
    X = columns()
    Y = target(X, c)
    model = learnt(ProjSe(8), X, Y)
    picks, scores, rounds = reference.projse(reference.bases(X, groups_of()), orthonormal(Y), 8)
    assert model.selected == picks
    np.testing.assert_allclose([*model.scores.values()], scores, rtol=1e-8)
    assert [*model.rounds.values()] == rounds


@pytest.mark.parametrize("ridge", [1.0, 0.0])
@pytest.mark.parametrize("c", [1, 3])
def test_forward_selection_equals_all_regressions(c, ridge):
    X = columns()
    Y = target(X, c)
    model = learnt(ForwardSelection(5, ridge=ridge), X, Y)
    Q = reference.bases(X, groups_of())
    picks, scores = reference.forward(Q, orthonormal(Y), 5, ridge)
    assert model.selected == picks
    np.testing.assert_allclose([*model.scores.values()], scores, rtol=1e-7)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
def test_lasso_minimises_its_objective(l1_ratio):
    X = columns()
    y = target(X)
    Q = reference.bases(X, groups_of())
    # With copies in two groups the minimum is not unique.
    Q = {name: axes for name, axes in Q.items() if name not in ("g10", "g11")}
    members = {name: groups_of()[name] for name in Q}
    kept = [j for of_group in members.values() for j in of_group]
    model = Lasso(alphas=(0.8, 0.3), l1_ratio=l1_ratio)
    model.learn_target(y)
    model.learn_columns(grouped([(j, X[:, j]) for j in kept], members))
    lengths, fit = reference.lasso(Q, y, 0.3, l1_ratio)
    assert sorted(model.selected) == sorted(name for name in lengths if lengths[name] > 1e-6)
    found = model.intercept + sum(w * X[:, j] for j, w in model.coefficients.items())
    np.testing.assert_allclose(found - y.mean(), fit, atol=1e-6 * np.abs(fit).max())
    assert model.kkt_violation < 1e-9
    assert model.duality_gap < 1e-9
    shown_lengths = {row["name"]: row["coefficient_length"] for row in model.report().results}
    for name, length in shown_lengths.items():
        np.testing.assert_allclose(length, lengths[name], rtol=1e-5)


def collinear(seed):
    """Return nearly collinear groups of three columns (of rank three), a target and a k."""
    rng = np.random.default_rng(seed)
    n, p, k = (int(rng.integers(*limits)) for limits in ((6, 50), (40, 200), (2, 8)))
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + 1e-3 * rng.normal(size=(n, p))
    y = X[:, :2].sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, y, k


def lasso_of_collinear(X, y, k, **params):
    model = Lasso(k, **params)
    model.learn_target(y)
    model.learn_columns(grouped(X, {j: j // 3 for j in range(X.shape[1])}))
    return model


@pytest.mark.parametrize("seed", [1007, 2014])
def test_lasso_of_nearly_collinear_groups(seed):
    """Solutions are optimal, so that a bounded pool has those of all columns."""
    X, y, k = collinear(seed)
    whole = lasso_of_collinear(X, y, k)
    pooled = lasso_of_collinear(X, y, k, max_candidates=k + 1, exact=True)
    elastic_net = lasso_of_collinear(X, y, k, l1_ratio=0.9)
    assert pooled.selected == whole.selected
    assert pooled.n_certified == len(whole.selected)
    for model in (whole, pooled, elastic_net):
        assert not model.path_truncated
        assert model.kkt_violation < 1e-10
        assert model.duality_gap < 1e-10


@pytest.mark.parametrize("least", [0.5, 2.0])
def test_a_lasso_path_ends_before_a_failed_solution(monkeypatch, least):
    """A path is truncated before the first solution that is not found."""
    X, y, k = collinear(2033)
    found = [*lasso_of_collinear(X, y, k).path]
    minimize = _WorkingSet.minimize
    monkeypatch.setattr(
        _WorkingSet,
        "minimize",
        lambda self, alpha: minimize(self, alpha) and alpha > least * found[0],
    )
    model = lasso_of_collinear(X, y, k)
    assert model.path_truncated
    assert [*model.path] == [alpha for alpha in found if alpha > least * found[0]]
    with pytest.warns(UserWarning, match="The path ends early.*not accurate"):
        pooled = lasso_of_collinear(X, y, k, max_candidates=k + 1, exact=True)
    assert pooled.path_truncated
    assert pooled.selected == model.selected
    np.testing.assert_allclose([*pooled.path], [*model.path])


@each
@pytest.mark.parametrize("bounds", [{}, {"max_candidates": 9}])
def test_groups_of_one_equal_single_columns(name, bounds):
    """Groups of one column give the same answers as single columns, to rounding."""
    X = columns()
    y = target(X)
    alone, groups = MODELS[name](**bounds), MODELS[name](**bounds)
    alone.learn_target(y)
    alone.learn_columns(X)
    learnt(groups, X, y, {(j,): [j] for j in range(P)})
    assert groups.selected == [(j,) for j in alone.selected]
    for attribute in ("scores", "relevance", "p_values"):
        if hasattr(alone, attribute):
            expected = [*getattr(alone, attribute).values()]
            found = [*getattr(groups, attribute).values()]
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_equal(groups.noise_floor(), alone.noise_floor())
    assert groups.n_certified == alone.n_certified


def test_small_p_values_keep_their_order():
    """Relevance ranks groups continuously, even if p-values underflow."""
    test = GroupTest(2000.0, 3)
    trace = np.linspace(1.0, 2.99, 4000)
    relevance = test.relevance(trace, np.full(4000, 6.0))
    assert (np.diff(relevance) > 0.0).all()
    # There is no jump where logarithms of p-values are used instead.
    steps = np.diff(relevance)
    assert (steps[1:] < 1.1 * steps[:-1] + 1e-6).all()
    F = GroupTest(50.0, 1).f_statistics(np.array([0.4]), np.array([5.0]))
    np.testing.assert_allclose(F, [0.4 / 5 / (0.6 / 44)])


def test_a_group_that_explains_any_target_is_not_relevant(rng):
    y, X = rng.normal(size=10), rng.normal(size=(10, 12))
    model = SelectKBest("all")
    model.learn_target(y)
    model.learn_group("saturated", X)
    model.learn_column("x", y + rng.normal(size=10))
    assert model.selected[0] == "x"
    assert model.p_values["saturated"] == 1.0


# ------------------------------------------------------------------- bounded pools, and exactness


@each
@pytest.mark.parametrize("seed", range(3))
def test_certified_picks_are_those_of_all_groups(name, seed):
    X = columns(seed, p=150)
    y = target(X)
    whole = learnt(MODELS[name](), X, y)
    bounded = learnt(MODELS[name](max_candidates=6), X, y)
    n = bounded.n_certified
    assert bounded.selected[:n] == whole.selected[:n]
    assert len(bounded._columns.names) <= 12
    if name.startswith("SelectKBest") and "fdr" not in name:
        assert n == 4
    if not name.startswith(("ForwardSelection", "Lasso")):
        return
    for bound in ({"max_candidates": 6}, {"max_pool_bytes": 8 * N * 40}):
        exact = learnt(MODELS[name](**bound, exact=True), X, y)
        assert exact.selected == whole.selected
        assert exact.n_certified == len(exact.selected)
        assert exact.n_passes >= 1
        assert exact._columns.pool.table.ragged_rows("unit").shape[0] < 100


# ------------------------------------------------------------------------- streams and the contract


@each
def test_blocks_do_not_matter(name):
    X = columns()
    y = target(X)
    groups = groups_of()
    whole = learnt(MODELS[name](max_candidates=8), X, y)
    one_by_one = MODELS[name](max_candidates=8)
    one_by_one.learn_target(y)
    for group, members in groups.items():
        one_by_one.learn_group(group, X[:, members], names=members)
    same(one_by_one, whole)
    threads = learnt(MODELS[name](max_candidates=8, n_jobs=2), X, y)
    assert bits(threads) == bits(whole)


@each
def test_columns_before_the_first_group_become_groups(name):
    X = columns()
    y = target(X)
    mixed = {j: [j] for j in range(10)} | {f"g{j}": [j, j + 1] for j in range(10, 40, 2)}
    expected = learnt(MODELS[name](), X[:, :40], y, mixed)
    model = MODELS[name]()
    model.learn_target(y)
    model.learn_columns(X[:, :10])
    assert model.members == {j: [j] for j in model.selected}
    for j in range(10, 40, 2):
        model.learn_group(f"g{j}", X[:, j : j + 2], names=[j, j + 1])
    assert model.selected == expected.selected
    np.testing.assert_allclose([*model.scores.values()], [*expected.scores.values()])
    np.testing.assert_allclose(model.noise_floor(), expected.noise_floor())


@pytest.mark.parametrize(
    ("name", "more"),
    [(name, {"max_candidates": 8}) for name in MODELS]
    + [(name, {"max_pool_bytes": 8 * N * 20}) for name in ("ForwardSelection", "Lasso")],
)
def test_columns_of_a_bounded_pool_become_groups(name, more, tmp_path):
    X = columns()
    y = target(X)
    groups = groups_of()
    singles = [j for group in [*groups][:10] for j in groups[group]]
    expected = MODELS[name](**more)
    expected.learn_target(y)
    for j in singles:
        expected.learn_group(j, X[:, [j]], names=[j])
    model = MODELS[name](**more)
    model.learn_target(y)
    model.learn_columns(X[:, singles], names=singles)
    assert not model._phase.columns.complete
    others = []
    for group in [*groups][10:]:
        other = model.clone()
        other.learn_target(y)
        for one in (expected, model, other):
            one.learn_group(group, X[:, groups[group]], names=groups[group])
        others.append(other)
        model = COPIES["save"](model, tmp_path)
    assert model.selected == expected.selected
    assert model.n_certified == expected.n_certified
    assert model.members == expected.members
    np.testing.assert_allclose([*model.scores.values()], [*expected.scores.values()])
    np.testing.assert_allclose(model.noise_floor(), expected.noise_floor())
    # A certified pick is that of all columns, also after a merge.
    whole = learnt(MODELS[name](), X, y, {j: [j] for j in singles} | dict([*groups.items()][10:]))
    merged = MODELS[name](**more)
    merged.learn_target(y)
    merged.learn_columns(X[:, singles], names=singles)
    for other in others:
        merged.merge(other)
    for one in (model, merged):
        assert one.selected[: one.n_certified] == whole.selected[: one.n_certified]


@each
@pytest.mark.parametrize("way", ["pickle", "save"])
def test_copies_continue_as_the_original(name, way, tmp_path):
    X = columns()
    y = target(X)
    model = MODELS[name](**{"max_candidates": 6} if way == "save" else {})
    model.learn_target(y)
    groups = groups_of()
    model.learn_columns(grouped(X[:, :30], groups_of(30)))
    twin = COPIES[way](model, tmp_path)
    assert bits(twin) == bits(model)
    np.testing.assert_equal(shown(twin), shown(model))
    assert twin.members == model.members
    for one in (model, twin):
        for group in list(groups)[10:]:
            one.learn_group(group, X[:, groups[group]], names=groups[group])
    assert bits(twin) == bits(model)


@each
def test_merging_along_columns(name):
    X = columns()
    y = target(X)
    whole = learnt(MODELS[name](), X, y)
    parts = [MODELS[name]() for _ in range(3)]
    groups = groups_of()
    names = list(groups)
    for part, of_part in zip(parts, (names[:5], names[5:12], names[12:]), strict=True):
        part.learn_target(y)
        for group in of_part:
            part.learn_group(group, X[:, groups[group]], names=groups[group])
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].selected == whole.selected
    assert parts[0].members == whole.members
    np.testing.assert_allclose([*parts[0].scores.values()], [*whole.scores.values()])
    np.testing.assert_allclose(parts[0].noise_floor(), whole.noise_floor())
    # A model of single columns has groups of one.
    single = MODELS[name]()
    single.learn_target(y)
    single.learn_column("alone", X[:, 0] + 0.1)
    parts[0].merge(single)
    assert parts[0].n_columns == P + 1
    assert parts[0]._phase.n_candidates == len(groups) + 1
    with pytest.raises(ValueError, match="merged"):
        parts[0].merge(whole.clone(), along="rows")


@each
def test_bad_groups_change_nothing(name):
    X = columns()
    y = target(X)
    model = MODELS[name]()
    model.learn_target(y)
    fresh = bits(model)
    bad = X[:, :4].copy()
    bad[3, 2] = np.nan
    for values, names, message in (
        (bad, None, "finite"),
        (X[:20, :3], None, "60 values"),
        (X[:, :3], ["a", "b", "a"], "name"),
        (np.empty((N, 0)), [], "at least one column"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn_group("bad", values, names=names)
        assert bits(model) == fresh

    def broken(error):
        yield 0, X[:, 0]
        raise error

    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error):
            model.learn_group("bad", iter_columns(broken(error)))
        assert bits(model) == fresh
    model.learn_group("first", X[:, :3])
    before = bits(model)
    with pytest.raises(ValueError, match="first"):
        model.learn_group("first", X[:, 3:6])
    assert bits(model) == before
    # A single-pass stream keeps the complete groups before the invalid one.
    groups = {"a": [1, 2], "b": [3, 4], "c": [5]}
    pairs = ((j, bad[:, 2] if j == 4 else X[:, j]) for j in range(1, 6))
    with pytest.raises(ValueError, match="2 columns before it stay"):
        model.learn_columns(grouped(iter_columns(pairs), groups))
    assert model._columns.names == ["first", "a"]


def test_learners_without_groups_refuse_them():
    X = columns()
    y = target(X)
    supporting = [name for name in registry.names() if registry.fetch(name)._supports_groups()]
    assert sorted(supporting) == ["ForwardSelection", "Lasso", "ProjSe", "SelectKBest"]
    for name in registry.names():
        cls = registry.fetch(name)
        if name in supporting:
            continue
        model = cls(**next(iter(cls._unit_test_params())))
        if cls._is_supervised:
            model.learn_target(np.digitize(y, [-1.0, 1.0]) if model._needs_classes else y)
        before = bits(model)
        with pytest.raises(ValueError, match="SelectKBest") as error:
            model.learn_group("g", X[:, :3])
        assert all(other in str(error.value) for other in supporting)
        assert bits(model) == before


@pytest.mark.parametrize(
    ("model", "target_options", "message"),
    [
        (SelectKBest(2, score="mutual_info"), {}, "score"),
        (SelectKBest(2, score="t"), {}, "score"),
        (SelectKBest(2, pairwise=True), {}, "pairwise"),
        (SelectKBest(2, permutations=99), {}, "permutations"),
        (ForwardSelection(2, permutations=99), {}, "permutations"),
        (ProjSe(2, kernel="rbf"), {}, "kernel"),
        (ProjSe(2, max_candidates=4, exact=True), {}, "exact"),
        (ForwardSelection(2), {}, "estimator"),
        (ForwardSelection(2, swaps=1), {}, "swaps"),
        (Lasso(2, scale=False), {}, "scale"),
        (SelectKBest(2, target_type="count"), {}, "target_type"),
    ],
)
def test_unsupported_options_are_refused(model, target_options, message):
    X = columns()
    y = np.abs(target(X)).round() if model.target_type == "count" else target(X)
    if message == "estimator":
        from sklearn.linear_model import Ridge

        model = ForwardSelection(2, estimator=Ridge())
    model.learn_target(y, **target_options)
    before = bits(model)
    with pytest.raises(ValueError, match=message):
        model.learn_columns(grouped(X, groups_of()))
    assert bits(model) == before


def test_no_target_and_a_lasso_of_classes_are_refused():
    X = columns()
    model = ProjSe(2)
    model.learn_target(None)
    with pytest.raises(ValueError, match="target"):
        model.learn_group("g", X[:, :2])
    model = Lasso(2)
    model.learn_target(["a", "b"] * 30)
    with pytest.raises(ValueError, match="family"):
        model.learn_group("g", X[:, :2])


@each
def test_weights_equal_repeated_rows(name):
    """Weights are equivalent to repeated rows, except that p-values count rows."""
    rng = np.random.default_rng(2)
    X = columns()
    y, w = target(X), rng.integers(1, 4, size=N)
    weighted = learnt(MODELS[name](), X, y, weights=w)
    repeated = learnt(MODELS[name](), np.repeat(X, w, axis=0), np.repeat(y, w))
    if "SelectKBest" in name:  # the number of rows matters
        view, other = weighted._columns, repeated._columns
        np.testing.assert_allclose(view.stats().trace, other.stats().trace, atol=1e-9)
        return
    assert weighted.selected == repeated.selected
    if name != "Lasso":
        np.testing.assert_allclose(
            [*weighted.scores.values()], [*repeated.scores.values()], rtol=1e-8
        )


@each
def test_relatedness_whitens_groups(name):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(N, 80))
    K = A @ A.T / 80
    X = columns()
    y = target(X)
    model = learnt(MODELS[name](), X, y, relatedness=Relatedness(K, ratio=0.7))
    values, axes = np.linalg.eigh(0.7 * K + np.eye(N))
    white = (axes / np.sqrt(values)) @ axes.T
    one = white @ np.ones(N)

    def left(columns):
        return columns - np.outer(one, one @ columns) / (one @ one)

    Q = {}
    for group, members in groups_of().items():
        B = left(white @ X[:, members])
        B = B[:, np.linalg.norm(B, axis=0) > 1e-6]
        if B.shape[1]:
            B = B / np.linalg.norm(B, axis=0)
            u, s, _ = np.linalg.svd(B, full_matrices=False)
            Q[group] = u[:, s > 1e-6 * s[0]]
    U = left((white @ y)[:, None])
    U /= np.linalg.norm(U)
    traces = {group: np.square(U.T @ axes).sum() for group, axes in Q.items()}
    found = model._columns.stats().trace
    for group, trace in zip(model._columns.names, found, strict=True):
        np.testing.assert_allclose(trace, traces.get(group, 0.0), atol=1e-8)
    with pytest.raises(ValueError, match="relatedness"):
        model.learn_one({0: 1.0}, 1.0)


def test_heavy_tailed_targets_are_compared_by_normal_scores():
    X = columns(n=200)
    y = np.random.default_rng(0).standard_t(2, size=200) + X[:, 0]
    scores = stats.norm.ppf((stats.rankdata(y) - 0.5) / 200)
    expected = reference.p_values(reference.bases(X, groups_of()), orthonormal(scores))
    for model in (SelectKBest("all"), ForwardSelection(20), ProjSe(20)):
        learnt(model, X, y)
        assert model.report().normal_scores
        state = model._columns
        indices = np.flatnonzero(state.stats().rank > 0.0)
        found = state.noise_relevance(indices)
        p = stats.beta.sf(found**2, 0.5, (200 - 2) / 2)
        np.testing.assert_allclose(p, [expected[state.names[j]][2] for j in indices], rtol=1e-7)


def test_a_column_may_be_in_several_groups():
    X = columns()
    y = target(X)
    groups = {"a": [0, 6, 20], "b": [6, 12], "c": [20, 21, 0], 40: [40]}
    model = learnt(SelectKBest("all"), X, y, groups)
    apart = SelectKBest("all")
    apart.learn_target(y)
    for name, members in groups.items():
        apart.learn_group(name, X[:, members], names=members)
    assert {n: model.p_values[n] for n in ("a", "b", "c")} == pytest.approx(
        {n: apart.p_values[n] for n in ("a", "b", "c")}
    )
    assert model.members["a"] == [0, 6, 20]


@given(st.data())
def test_p_values_of_any_grouping_are_their_definition(data):
    seed = data.draw(st.integers(0, 5))
    X = np.random.default_rng(seed).integers(-2, 3, size=(15, 9)).astype(float)
    y = np.random.default_rng(seed + 9).uniform(size=15)
    labels = data.draw(st.lists(st.integers(0, 3), min_size=9, max_size=9))
    groups = {f"g{k}": [j for j in range(9) if labels[j] == k] for k in set(labels)}
    model = learnt(SelectKBest("all"), X, y, groups)
    Q = reference.bases(X, groups)
    expected = reference.p_values(
        {name: axes for name, axes in Q.items() if axes.shape[1] < 13}, orthonormal(y)
    )
    assert set(model.selected) == set(Q)
    for name, (_, _, p) in expected.items():
        np.testing.assert_allclose(model.p_values[name], p, rtol=1e-7)


# --------------------------------------------------------------------------------------- transforms


@each
def test_transforms_return_whole_groups(name):
    X = columns()
    model = learnt(MODELS[name](missing="mean"), X, target(X))
    wanted = list(dict.fromkeys(j for group in model.selected for j in groups_of()[group]))
    assert model.in_use == wanted
    np.testing.assert_array_equal(model.transform_many(X), X[:, wanted])
    row = dict(enumerate(X[0]))
    assert model.transform_one(row) == {j: row[j] for j in wanted}
    found = model.transform_one(row | {wanted[0]: None})
    assert found[wanted[0]] == pytest.approx(X[:, wanted[0]].mean())


# --------------------------------------------------------------------------------------------- rows


@each
@pytest.mark.parametrize("way", [None, "save"])
def test_rows_are_learnt_by_windows_of_grouped_columns(name, way, tmp_path):
    X, rows = columns(), columns(5, n=110)
    y, of_rows = target(X), target(rows, seed=4)
    more = {"window_size": 50, "warm_up": 0, "refresh_factor": 1.0, "hysteresis": 1.0}
    model = learnt(MODELS[name](**more), X, y)
    at_first = model.selected
    for start, stop in ((0, 20), (20, 49)):
        model.learn_many(rows[start:stop], of_rows[start:stop])
        assert model.selected == at_first
        if way is not None:
            model = COPIES[way](model, tmp_path)
    for i in range(49, 110):
        model.learn_one(dict(enumerate(rows[i])), of_rows[i])
    expected = learnt(MODELS[name](), rows[50:100], of_rows[50:100])
    assert model.selected == expected.selected
    assert model.members == expected.members
    np.testing.assert_allclose([*model.scores.values()], [*expected.scores.values()], rtol=1e-7)
    np.testing.assert_allclose(model.noise_floor(), expected.noise_floor())
    assert model.in_use == expected.in_use
    assert model.n_rows == N + 110
    twin = COPIES[way or "deepcopy"](model, tmp_path)
    assert bits(twin) == bits(model)
    assert twin.in_use == model.in_use


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({"fading_factor": 0.1}, {}, "fading_factor"),
        ({"max_candidates": 4}, {}, "all groups"),
        ({}, {"weights": np.arange(1.0, N + 1.0)}, "weights"),
        ({"covariates": ("z",)}, {"covariates": {"z": np.arange(float(N)) ** 2}}, "covariates"),
    ],
)
def test_unsupported_rows_are_refused(more, options, message):
    X = columns()
    model = learnt(ForwardSelection(2, **more), X, target(X), **options)
    before = bits(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(dict(enumerate(X[0])) | {"z": 1.0}, 1.0)
    assert bits(model) == before


# ---------------------------------------------------------------------------- blocks with groups


def test_custom_sources_may_have_groups(rng):
    """Streams whose blocks have groups are learnt as groups, also if rows lack a target."""
    X = columns()
    y = target(X)
    labels = [group for group, members in groups_of().items() for _ in members]

    def blocks():
        for start, stop in ((0, 4), (4, 19), (19, P)):
            yield Block(list(range(start, stop)), X[:, start:stop], labels[start:stop])

    model = SelectKBest(3)
    gaps = y.copy()
    gaps[[2, 9]] = np.nan
    model.learn_target(gaps, missing="drop")
    model.learn_columns(ColumnStream(blocks))
    kept = ~np.isnan(gaps)
    expected = learnt(SelectKBest(3), X[kept], y[kept])
    assert model.selected == expected.selected
    np.testing.assert_allclose([*model.scores.values()], [*expected.scores.values()])


@pytest.mark.slow
def test_large_groups_of_many_chunks(rng):
    """Groups larger than a batch of copied columns are learnt whole, also with weights."""
    n, m = 5000, 130  # 5 MB as float64
    X = rng.normal(size=(n, 3 * m)).astype(np.float32).astype(object).astype(np.float64)
    y = X[:, m : 2 * m].sum(axis=1) + 5.0 * rng.normal(size=n)
    groups = {f"g{k}": list(range(k * m, (k + 1) * m)) for k in range(3)}
    w = rng.uniform(0.5, 2.0, size=n)
    expected = reference.p_values(reference.bases(X, groups), orthonormal(y))
    for values in (X, np.ascontiguousarray(X), X.astype(np.int16)):
        model = learnt(SelectKBest(1), values, y, groups)
        assert model.selected == ["g1"]
        assert len(model.members["g1"]) == m
    model = learnt(SelectKBest("all"), X, y, groups)
    np.testing.assert_allclose(
        [model.scores[name] for name in groups], [expected[name][1] for name in groups], rtol=1e-8
    )
    for learner in (SelectKBest(1), ForwardSelection(1)):
        assert learnt(learner, X, y, groups, weights=w).selected == ["g1"]
    path = learnt(Lasso(1), X, y, groups)
    assert path.selected == ["g1"]
    assert path.kkt_violation < 1e-9


def test_loci_of_genotypes(dataset):
    """Scores of loci of allele counts equal the reference (real data with populations)."""
    X, y, _, archive = dataset("ehgdp")
    X = np.asfortranarray(np.where(np.isnan(X), np.nanmean(X, axis=0), X))[:, :600]
    labels = archive["groups"][:600]
    groups = {str(g): np.flatnonzero(labels == g).tolist() for g in dict.fromkeys(labels)}
    names = [f"p{int(v)}" for v in y]
    model = learnt(SelectKBest("all"), X, names, groups)
    U = orthonormal((np.array(names)[:, None] == np.unique(names)).astype(float))
    expected = reference.p_values(reference.bases(X.astype(float), groups), U)
    for name, (_, F, _) in expected.items():
        np.testing.assert_allclose(model.scores[name], F, rtol=1e-6)
    ranked = sorted(expected, key=lambda name: expected[name][2])
    n_clear = sum(expected[name][2] > 1e-290 for name in ranked)
    assert [name for name in model.selected if expected[name][2] > 1e-290] == ranked[-n_clear:]


def test_reports_show_groups():
    X = columns()
    model = learnt(SelectKBest(3), X, target(X))
    report = model.report()
    n = len(groups_of())
    assert report.candidate == "group"
    assert (report.columns_seen, report.details["n_columns"]) == (n, P)
    assert sum(report.excluded.values()) == n - 3
    for row in report.results:
        assert row["members"] == len(groups_of()[row["name"]])
    assert "group" in model._repr_html_()
    table = model.statistics({"name": np.arange(P), "position": np.arange(P)})
    assert list(table) == [
        *("name", "n", "members", "degrees_of_freedom", "score", "p_value", "p_bh", "p_by")
    ]
    assert PCA(1).report().candidate == "variable"
    assert MRMR(1).report().candidate == "variable"


@each
def test_html_reports_of_groups(name):
    X = columns()
    model = learnt(MODELS[name](), X, target(X))
    given = {"model": model, "report": model.report(), "none": None, "data": X}
    ways = itertools.product(("model", "report"), ("none", "data"), ("html", "md", "json"))
    for way in sorted(covering({" ".join(way): {*way} for way in ways}, name)):
        found, data, kind = way.split()
        page = streamsel.report(given[found], data=given[data], format=kind)
        assert all(group in page for group in model.selected)


@pytest.mark.parametrize(
    "learner", [ProjSe(k=2), ForwardSelection(k=2), SelectKBest(k=2)], ids=repr
)
def test_columns_become_groups_with_the_first_group(rng, monkeypatch, learner):
    """Columns are not converted to groups before the first group is learnt."""
    model, X, y = learner.clone(), rng.normal(size=(40, 6)), rng.normal(size=40)
    adopted = []
    monkeypatch.setattr(GroupPool, "adopt_columns", lambda *_: adopted.append(1))
    model.learn_target(y)
    for part in (X[:, :3], X[:, 3:], pd.DataFrame(X, columns=[*"abcdef"])):
        model.learn_columns(part)
    assert model._takes_groups
    assert not adopted

"""`with_probes`: probes do not depend on blocks or parts; columns of the source are unchanged."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamsel import (
    MRMR,
    AlphaInvesting,
    ForwardSelection,
    Lasso,
    ProjSe,
    SelectKBest,
    load,
    save,
)
from streamsel.data.chunks import Block
from streamsel.evaluate import selected_before_probes
from streamsel.stream import ColumnStream, grouped, iter_array, iter_columns, with_probes
from tests.seed import some


def dense(values):
    return values.toarray()[:, 0] if sparse.issparse(values) else values


def in_blocks(X, cuts):
    """Return a stream of X in blocks that end at these columns."""
    ends = [0, *sorted(cuts), X.shape[1]]
    pairs = [(a, b) for a, b in itertools.pairwise(ends) if a < b]
    return ColumnStream(lambda: (Block(range(a, b), X[:, a:b]) for a, b in pairs))


def by_definition(X, per_column, seed):
    """Return (name, values) in order: 64 columns, then their probes with their own generators."""
    p, pairs = X.shape[1], []
    for start in range(0, p, 64):
        stop = min(p, start + 64)
        pairs += [(j, X[:, j]) for j in range(start, stop)]
        for i in range(start * per_column, stop * per_column):
            generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, i]))
            pairs.append((("probe", i), generator.standard_normal(len(X))))
    return pairs


@given(
    st.integers(1, 200),
    st.lists(st.integers(1, 199), max_size=6),
    st.integers(1, 3),
    st.sampled_from([0, 7, 2**128 - 1]),
    st.sampled_from([np.asarray, np.asfortranarray, sparse.csc_array]),
)
def test_probes_are_their_definition_for_any_blocks(p, cuts, per_column, seed, form):
    X = np.random.default_rng(p).integers(0, 9, size=(3, p), dtype=np.uint8)
    stream = with_probes(in_blocks(form(X), [c for c in cuts if c < p]), per_column, seed)
    expected = by_definition(X, per_column, seed)
    for _ in range(2):  # a second pass is the same
        found = list(stream)
        assert [name for name, _ in found] == [name for name, _ in expected]
        for (_, values), (_, right) in zip(found, expected, strict=True):
            np.testing.assert_array_equal(dense(values), right)
    assert (stream.n_rows, stream.n_columns) == (3, p * (1 + per_column))


def test_properties_are_those_of_the_source(rng):
    X = rng.normal(size=(5, 7))
    stream = with_probes(X, 2)
    assert (stream.n_rows, stream.n_columns, stream.reiterable) == (5, 21, True)
    once = with_probes(iter_columns(iter(list(enumerate(X.T)))))
    assert (once.n_rows, once.n_columns, once.reiterable) == (None, None, False)
    assert len(list(once)) == 14
    with pytest.raises(RuntimeError, match="one-shot"):
        once.blocks()
    assert not list(with_probes(iter_columns([])))


def test_source_columns_are_unchanged(rng):
    X = np.asfortranarray(rng.normal(size=(4, 100)), dtype=np.float32)
    blocks = [b for b in with_probes(iter_array(X)).blocks() if type(b.names[0]) is int]
    assert all(np.shares_memory(block.values, X) for block in blocks)
    words = np.array(["a", "b"], dtype=object)
    stream = with_probes(iter_columns([("word", words)]))
    assert [name for name, _ in stream] == ["word", ("probe", 0)]


@pytest.mark.parametrize("n_rows", [None, 6])
def test_take_equals_the_stream(rng, n_rows):
    X = rng.normal(size=(6, 150))
    source = iter_columns(list(enumerate(X.T)), n_rows=n_rows)
    names = [("probe", 299), 3, ("probe", 0), 149]
    taken = with_probes(source, 2, seed=5).take(names)
    all_of_it = dict(with_probes(source, 2, seed=5))
    assert list(taken) == names
    for name in names:
        np.testing.assert_array_equal(taken[name], all_of_it[name])


@pytest.mark.parametrize("name", [("probe", 3), ("probe", -1), ("probe", True), ("probe",), "x"])
def test_unknown_names_are_refused(name):
    with pytest.raises(KeyError, match="Expected names of columns"):
        with_probes(np.eye(3)).take([0, name])


def test_parts_equal_the_stream(rng):
    stream = with_probes(rng.normal(size=(5, 70)))
    names = [name for name, _ in stream]
    assert [name for name, _ in stream.skip(100)] == names[100:]
    assert [name for name, _ in stream.without(names[:66])] == names[66:]


def test_seeds_and_numbers_differ(rng):
    streams = [with_probes(np.ones((500, 40)), 2, seed) for seed in range(4)]
    names = [("probe", i) for i in range(80)]
    columns = [values for stream in streams for values in stream.take(names).values()]
    correlations = np.corrcoef(columns) - np.eye(320)
    assert np.abs(correlations).max() < 6 / np.sqrt(500)
    assert abs(np.mean(columns)) < 0.02
    assert abs(np.std(columns) - 1) < 0.02


def test_probes_are_generated_lazily(rng):
    def columns():
        yield from enumerate(rng.normal(size=(64, 3)))
        raise AssertionError("read to the end")

    blocks = with_probes(iter_columns(columns)).blocks()
    assert list(next(blocks).names) == list(range(64))
    assert next(blocks).names[0] == ("probe", 0)


def test_memory_is_constant():
    """Memory is constant for many columns and for long ones."""
    for shape in ((1_000, 3_000), (40_000, 75)):
        X = np.ones(shape, order="F")
        stream = with_probes(iter_array(X))
        tracemalloc.start()
        for block in stream.blocks():
            del block
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * 2**20, peak


@pytest.mark.parametrize("per_column", [0, -1, 1.5, True])
def test_number_of_probes(per_column):
    with pytest.raises(ValueError, match=r"Expected per_column of with_probes .* Got"):
        with_probes(np.eye(3), per_column)


@pytest.mark.parametrize("seed", [-1, 0.5, None, 2**128])
def test_seeds(seed):
    with pytest.raises(ValueError, match=r"seed.*Got"):
        with_probes(np.eye(3), seed=seed)


# Groups

GROUPS = {j: f"g{j // 5}" for j in range(20, 110)}


def grouped_by_definition(X, per_column, seed):
    """Return (name, values, group) in order; a group's probe has its rows in another order."""
    found, due, number, j = [], [], 0, 0
    p = X.shape[1]
    while j < p:
        group = GROUPS.get(j)
        stop = j + 5 if group else j + 1
        found += [(name, X[:, name], group) for name in range(j, stop)]
        for _ in range(per_column):
            generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, number]))
            probe = "probe", number
            if group:
                order = generator.permutation(len(X))
                due += [((*probe, name), X[order, name], probe) for name in range(j, stop)]
            else:
                due.append((probe, generator.standard_normal(len(X)), None))
            number += 1
        if stop // 64 > j // 64 or stop == p:
            found, due = found + due, []
        j = stop
    return found


@given(
    st.sampled_from([110, 128, 150]),
    st.lists(st.integers(1, 149), max_size=6),
    st.integers(1, 3),
    st.sampled_from([np.asarray, np.asfortranarray, sparse.csc_array]),
)
def test_group_probes_are_their_definition_for_any_blocks(p, cuts, per_column, form):
    X = np.random.default_rng(p).integers(0, 9, size=(6, p), dtype=np.uint8)
    source = grouped(in_blocks(form(X), [c for c in cuts if c < p]), GROUPS)
    stream = with_probes(source, per_column, 3)
    expected = grouped_by_definition(X, per_column, 3)
    for _ in range(2):
        found = []
        for names, values, groups in stream.blocks():
            array = values.toarray() if sparse.issparse(values) else values
            found += zip(names, array.T, groups or [None] * len(names), strict=True)
        assert [(name, group) for name, _, group in found] == [(n, g) for n, _, g in expected]
        for (_, values, _), (_, right, _) in zip(found, expected, strict=True):
            np.testing.assert_array_equal(values, right)
    assert stream.n_columns in (None, len(expected))


@pytest.mark.parametrize("form", [np.asfortranarray, sparse.csc_array])
def test_take_returns_members_of_probes(rng, form):
    X = rng.integers(0, 3, size=(6, 110))
    stream = with_probes(grouped(form(X), GROUPS), 2, seed=5)
    every = {name: dense(values) for name, values in stream}
    names = [("probe", 41, 20), 3, ("probe", 0), ("probe", 40, 22), 22]
    taken = stream.take(names)
    assert list(taken) == names
    for name in names:
        np.testing.assert_array_equal(dense(taken[name]), every[name])
    for name in (("probe", 40, "x"), ("probe", -1, 20), ("probe", 40, 20, 1)):
        with pytest.raises(KeyError):
            stream.take([name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", some([SelectKBest(1), ProjSe(1), ForwardSelection(1), Lasso(1)], 2, "noise")
)
def test_groups_of_noise_are_exchangeable_with_probes(rng, learner):
    """About half of the first picks are probes if all groups are noise of equal size."""
    n_probes = 0
    for _ in range(150):
        codes = rng.integers(0, 4, size=(40, 12))
        X = (codes.repeat(4, axis=1) == np.arange(48) % 4).astype(float)
        model = learner.clone()
        model.learn_target(rng.normal(size=40))
        model.learn_columns(with_probes(grouped(X, {j: f"c{j // 4}" for j in range(48)})))
        n_probes += model.selected[0][0] == "probe"
    assert 50 < n_probes < 100  # 75 on average; four standard deviations are 25


def test_selected_groups_before_probes(rng, tmp_path):
    X = rng.normal(size=(80, 300))
    y = X[:, 40:45].sum(axis=1) - 2.0 * X[:, 7] + rng.normal(size=80)
    stream = with_probes(grouped(X, GROUPS), 2)
    wide = ForwardSelection(k=8)
    tight = ForwardSelection(k=8, max_candidates=20, exact=True)
    for model in (wide, tight):
        model.learn_target(y)
        model.learn_columns(stream)
    assert tight.selected == wide.selected
    assert tight.n_passes > 1
    assert sorted(map(str, selected_before_probes(wide.selected)[:2])) == ["7", "g8"]
    probe = next(name for name in wide.selected if type(name) is tuple)
    assert wide.transform_many(stream).shape == (80, len(wide.in_use))
    save(wide, tmp_path / "model.selection")
    assert load(tmp_path / "model.selection").members == wide.members
    assert wide.members[probe][0] == probe or wide.members[probe][0][:2] == probe


# Selectors


def planted(rng, n=80, p=300, k=5):
    X = rng.normal(size=(n, p))
    return X, X[:, ::60][:, :k] @ np.arange(1, k + 1) + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("learner", [ForwardSelection, MRMR])
def test_exact_passes_equal_the_answer_over_all_columns(rng, learner):
    X, y = planted(rng)
    wide = learner(k=8)
    tight = learner(k=8, max_pool_bytes=30 * 8 * 80, exact=True)
    for model in (wide, tight):
        model.learn_target(y)
        model.learn_columns(with_probes(X, 2, seed=1))
    assert tight.selected == wide.selected
    assert tight.n_certified == 8
    assert tight.n_passes > 1
    assert any(type(name) is tuple for name in wide.selected)


def test_signals_are_selected_before_probes(rng):
    X, y = planted(rng)
    model = ForwardSelection(k=10)
    model.learn_target(y)
    model.learn_columns(with_probes(X))
    assert {120, 180, 240} <= set(selected_before_probes(model.selected))


def test_all_learners_accept_probes(rng):
    X, y = planted(rng)
    model = AlphaInvesting()
    model.learn_target(y)
    model.learn_columns(with_probes(X))
    assert model.n_columns == 600


def test_names_of_probes_are_saved(rng, tmp_path):
    X, y = planted(rng)
    model = ForwardSelection(k=10)
    model.learn_target(y)
    model.learn_columns(with_probes(X))
    save(model, tmp_path / "model.selection")
    again = load(tmp_path / "model.selection")
    assert again.selected == model.selected
    assert (
        selected_before_probes(again.selected)
        == selected_before_probes(model.selected)
        != model.selected
    )

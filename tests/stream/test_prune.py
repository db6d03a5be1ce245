"""Pruning: which columns repeat another, however they come, and what is left alone."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamsel import ProjSe
from streamsel.data.columns import Block
from streamsel.stream import ColumnStream, clean, iter_array, iter_columns, prune
from tests.reference.prune import kept


def names_of(stream):
    return [name for name, _ in stream]


def walk(rng, n=60, p=400):
    """Columns each of which resembles the last, copies and constants among them."""
    X = np.cumsum(rng.normal(size=(n, p)), axis=1)
    X[:, 50:60] = X[:, [49]] * -3 + 2
    X[:, 100:300:7] = 1.5
    return X


def in_blocks(X, sizes):
    """Return a stream of blocks of these sizes, over and over."""

    def blocks():
        start = i = 0
        while start < X.shape[1]:
            stop = min(X.shape[1], start + sizes[i % len(sizes)])
            yield Block(range(start, stop), X[:, start:stop])
            start, i = stop, i + 1

    return ColumnStream(blocks)


@pytest.mark.parametrize("threshold", [0.3, 0.8, 0.99, 1.0])
@pytest.mark.parametrize("window", [1, 2, 7, 1000])
def test_it_is_its_definition(rng, threshold, window):
    X = walk(rng)
    pruned = prune(X, threshold, window)
    expected = kept(X, threshold, window)
    assert names_of(pruned) == expected
    assert 1 < len(expected) < 400
    assert (pruned.n_read, pruned.last_read, pruned.n_pruned) == (400, 399, 400 - len(expected))
    for name, values in pruned:
        np.testing.assert_array_equal(values, X[:, name])


@given(
    st.integers(2, 9),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 5),
    st.sampled_from([0.5, 0.8, 1.0]),
    st.integers(0, 2**31),
)
def test_however_the_columns_are_cut(n, sizes, window, threshold, seed):
    """Of whole numbers, whose correlations reach the threshold exactly."""
    X = np.random.default_rng(seed).integers(-2, 3, size=(n, 40)).astype(float)
    expected = kept(X, threshold, window)
    for form in (np.asarray, np.asfortranarray, sparse.csc_array):
        cut = in_blocks(form(X), sizes)
        assert names_of(prune(cut, threshold, window)) == expected


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "int64", "bool"])
def test_numbers_of_every_type(rng, dtype):
    X = rng.integers(0, 2, size=(12, 60)).astype(dtype)
    assert names_of(prune(X, 0.6, 5)) == kept(X.astype(float), 0.6, 5)


def test_by_hand():
    a, b = np.array([1.0, -1, 0, 0]), np.array([0.0, 0, 1, -1])
    X = np.c_[a, b, -2 * a + 5, a + 0.1 * b, a, b]
    assert names_of(prune(X, 0.9, 2)) == [0, 1]
    assert names_of(prune(X, 1.0, 2)) == [0, 1, 3, 4, 5]  # the first two have left the window
    assert names_of(prune(X, 1.0, 3)) == [0, 1, 3]
    assert names_of(prune(X, 0.9, 1)) == [0, 1, 2, 5]


def test_large_offsets_do_not_matter(rng):
    X = rng.normal(size=(50, 30)).astype(np.float32).astype(float)
    X[:, 1::3] = 0.9 * X[:, ::3] + 0.3 * X[:, 2::3]
    assert names_of(prune(X + 2.0**20, 0.9)) == names_of(prune(X, 0.9)) == kept(X, 0.9, 100)


def test_what_has_no_correlation_passes_and_leaves_the_window_alone(rng):
    x = rng.normal(size=10)
    gap, flat, huge = x.copy(), np.full(10, 0.1), x * 1e200
    gap[3] = np.nan
    word = np.array(["a"] * 10, dtype=object)
    columns = [gap, x, flat, word, flat, huge, gap, word, 2 * x, 1j * x]
    pruned = prune(iter_columns(list(enumerate(columns))), 0.9, 1)
    assert names_of(pruned) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert pruned.n_pruned == 1
    screened = clean(pruned)
    assert names_of(screened) == [1, 5]
    assert screened.skipped == {"missing": 2, "constant": 2, "text": 2, "complex": 1}


def test_blocks_without_repetition_pass_untouched(rng):
    X = rng.normal(size=(30, 20))
    scattered = sparse.random_array((30, 20), density=0.5, format="csc", random_state=rng)
    for values in (X, scattered):
        (block,) = prune(ColumnStream(lambda values=values: [Block(range(20), values)])).blocks()
        assert block.values is values


def test_a_second_pass_is_the_same_and_counts_nothing_again(rng):
    X = walk(rng)
    pruned = prune(in_blocks(X, [30]), 0.8)
    assert (pruned.n_rows, pruned.n_columns, pruned.reiterable) == (None, None, True)
    first = iter(pruned)
    next(first)
    assert (pruned.n_rows, pruned.n_read, pruned.n_columns) == (60, 30, None)
    names = names_of(pruned)
    assert names == names_of(pruned)
    assert pruned.n_read == 400
    assert pruned.n_pruned == 400 - len(names)
    assert pruned.n_columns == len(names)
    assert repr(pruned) == f"Pruned(n_rows=60, n_columns={len(names)}, reiterable=True)"


def test_a_stream_that_is_there_once(rng):
    X = walk(rng)
    pruned = prune(iter_columns(iter(list(enumerate(X.T))), n_rows=60), 0.8)
    assert (pruned.n_rows, pruned.reiterable) == (60, False)
    assert names_of(pruned) == kept(X, 0.8, 100)
    with pytest.raises(RuntimeError, match="one-shot"):
        pruned.blocks()


def test_parts_of_it_are_parts_of_the_same_stream(rng):
    X = walk(rng)
    pruned = prune(X, 0.8, 10)
    names = names_of(pruned)
    assert names_of(pruned.skip(5)) == names[5:]
    assert names_of(pruned.without(names[:2])) == names[2:]
    np.testing.assert_array_equal(pruned.take([names[3]])[names[3]], X[:, names[3]])
    assert list(pruned.take([51])) == [51]  # which was left out
    with pytest.raises(KeyError, match="got: 400"):
        pruned.take([400])


def test_it_is_lazy_and_learners_take_it(rng):
    X = walk(rng)
    y = X[:, 10] + rng.normal(size=60)

    def columns():
        yield from enumerate(X.T)
        raise AssertionError("read to the end")

    stream = prune(iter_columns(columns), 0.8)
    assert next(iter(stream.blocks())).names
    model = ProjSe(k=3)
    model.learn_target(y)
    model.learn_columns(prune(X, 0.8))
    assert model.n_columns == len(kept(X, 0.8, 100))


def test_wrong_length():
    blocks = [Block(["a"], np.eye(3)[:, :1]), Block(["b"], np.eye(4)[:, :1])]
    with pytest.raises(ValueError, match=r"Expected 3 values.*'b'. Got: 4"):
        list(prune(ColumnStream(lambda: iter(blocks))))


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.5, np.nan, "1"])
def test_thresholds_are_correlations(threshold):
    with pytest.raises(ValueError, match=r"threshold.*\s[Gg]ot"):
        prune(np.eye(3), threshold)


@pytest.mark.parametrize("window", [0, 2.5, None])
def test_windows_hold_one_column_at_least(window):
    with pytest.raises(ValueError, match=r"Expected window of prune to be an int .*Got"):
        prune(np.eye(3), 0.5, window)


def test_memory_is_that_of_the_window(rng):
    """Whether columns repeat or not, and however many come in one block."""
    n, window = 100, 50
    base = np.asfortranarray(rng.normal(size=(n, 4_000)))
    for X in (np.tile(base[:, :2_000], 30), np.tile(base[:, :20], 2_000)):
        stream = prune(iter_array(np.asfortranarray(X)), 0.9, window)
        tracemalloc.start()
        for block in stream.blocks():
            del block
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * 2**20, peak

"""Fingerprints of columns: equal for equal columns in any form, different for others."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel.data.chunks import Block
from streamsel.stream import iter_array
from streamsel.stream._fingerprint import Fingerprint

NAMES = st.one_of(st.text(max_size=3), st.integers(-(2**70), 2**70), st.tuples(st.text()))


def of(names, X, cuts=()):
    """Return the fingerprint of columns in blocks with these edges."""
    found = Fingerprint()
    edges = [0, *sorted(cuts), len(names)]
    for a, b in itertools.pairwise(edges):
        if b > a:
            found.add(Block(names[a:b], X[:, a:b]), a)
    return found


@given(st.data())
def test_fingerprints_do_not_depend_on_blocks_or_readers(data):
    names = data.draw(st.lists(NAMES, min_size=1, max_size=12, unique=True))
    names = names * data.draw(st.sampled_from([1, 7, 30]))
    if data.draw(st.booleans()):
        names = range(len(names))
    X = np.random.default_rng(0).normal(size=(3, len(names)))
    cuts = data.draw(st.lists(st.integers(0, len(names)), max_size=6))
    n = data.draw(st.integers(0, len(names)))
    whole, cut = of(names, X), of(names, X, cuts)
    assert whole.as_metadata() == cut.as_metadata()
    assert cut.differences(whole.as_metadata()) == []
    # Repeated columns change nothing.
    cut.add(Block(names, X), 0)
    assert cut.as_metadata() == whole.as_metadata()
    if len(set(names)) == len(names):
        looked = Fingerprint()
        looked.add_first_columns(iter_array(X, names), n)
        begun = of(names[:n], X[:, :n])
        assert looked.as_metadata() == begun.as_metadata()
        # It can be continued from there.
        if n < len(names):
            looked.add(Block(names, X), 0)
        assert looked.n_columns == len(names)
        assert looked.as_metadata() == whole.as_metadata()


@given(st.lists(NAMES, min_size=1, max_size=9), st.lists(NAMES, min_size=1, max_size=9))
def test_differing_names_are_found(one, other):
    X = np.zeros((2, 9))
    found = of(other, X[:, : len(other)]).differences(of(one, X[:, : len(one)]).as_metadata())
    assert bool(found) == (one != other)


@pytest.mark.parametrize("p", [1, 63, 64, 65, 127, 128, 5000])
def test_between_32_and_64_columns_are_compared(p):
    X = np.random.default_rng(0).normal(size=(4, p))
    known = of(range(p), X).as_metadata()
    n_looked_at = len(known["values"]) // 8
    assert min(p, 32) <= n_looked_at < 64
    step = -(-p // n_looked_at)
    X[2, ::step] += 1e-12
    found = of(range(p), X).differences(known)
    assert found[0].startswith("column 0 has other values")
    assert len(found) == 1
    changed = X.copy()
    changed[:, 0] = 1
    assert of(range(p), changed).differences(of(range(p), X).as_metadata()) == [
        "column 0 has other values"
    ]


@pytest.mark.parametrize("change", [lambda X: X[::-1], lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n", [10, 70_000])
def test_differing_rows_and_dtypes_are_found(n, change):
    X = np.arange(3.0 * n).reshape(n, 3)
    assert of(range(3), change(X)).differences(of(range(3), X).as_metadata())


def test_all_bit_patterns_of_nan_are_equal():
    X = np.array([[1.0, 2.0]]).T
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    one, other = X.copy(), X.copy()
    one[0], other[0] = nans
    assert not of(["a"], one).differences(of(["a"], other).as_metadata())


def test_texts_are_compared():
    texts = np.array([["a"], [None]], dtype=object)
    known = of(["a"], texts).as_metadata()
    assert not of(["a"], texts.copy()).differences(known)
    texts[1] = "None"
    assert of(["a"], texts).differences(known)

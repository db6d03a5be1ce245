"""Pruning: correlated columns, the order of decisions, and columns that are never pruned."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamsel import ProjSe
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream, clean, iter_array, iter_columns, prune
from streamsel.stream import _correlated as correlated
from streamsel.stream import _ranked_pruning as ranked
from streamsel.stream._correlated import Comparison
from tests.reference.prune import by_relevance, kept

CHROMOSOMES = {"chromosome": ["1"] * 250 + ["2"] * 150, "position": [*range(250), *range(150)]}


def names_of(stream):
    return [name for name, _ in stream]


def walk(rng, n=60, p=400):
    """Return a random walk of columns, with copies and constants."""
    X = np.cumsum(rng.normal(size=(n, p)), axis=1)
    X[:, 50:60] = X[:, [49]] * -3 + 2
    X[:, 100:300:7] = 1.5
    return X


def in_blocks(X, sizes):
    """Return a stream of blocks of these sizes, repeated cyclically."""

    def blocks():
        start = i = 0
        while start < X.shape[1]:
            stop = min(X.shape[1], start + sizes[i % len(sizes)])
            yield Block(range(start, stop), X[:, start:stop])
            start, i = stop, i + 1

    return ColumnStream(blocks)


def variants(X, kb):
    """Return the first columns as variants of two chromosomes, `kb` thousand base pairs apart."""
    stream = iter_array(X[:, :400])
    stream.column_metadata = {
        "name": range(400),
        "chromosome": np.array(CHROMOSOMES["chromosome"]),
        "position": 1000 * kb * np.array(CHROMOSOMES["position"]),
    }
    return stream


def check(stream, X, max_correlation, expected, **options):
    """Compare a pruned stream, its counts and its report with the expected ones."""
    columns, representative = expected
    assert names_of(prune(stream, max_correlation, **options)) == columns
    found = []
    pruned = prune(stream, max_correlation, **options, report=lambda *each: found.append(each))
    for _ in range(2):
        for name, values in pruned:
            column = values.toarray().ravel() if sparse.issparse(values) else values
            np.testing.assert_array_equal(column, X[:, name])
        assert (pruned.n_read, pruned.n_pruned) == (X.shape[1], X.shape[1] - len(columns))
        assert pruned.last_read == X.shape[1] - 1
    assert {name: other for name, other, _ in found} == {
        j: i for j, (i, _) in representative.items()
    }
    assert len(found) == len(representative)
    np.testing.assert_allclose(
        [r for *_, r in sorted(found)],
        [representative[j][1] for j in sorted(representative)],
        atol=1e-12,
    )


@pytest.mark.parametrize("max_correlation", [0.3, 0.8, 0.99, 1.0])
@pytest.mark.parametrize("window", [1, 7, None])
@pytest.mark.parametrize("n", [60, 300])
def test_pruning_is_its_definition(rng, max_correlation, window, n):
    X, reach = walk(rng, n), np.inf if window is None else window
    y = X[:, 200] + rng.normal(size=n)
    expected = kept(X, max_correlation, reach)
    assert 1 < len(expected[0]) < 400
    check(X, X, max_correlation, expected, window=window)
    expected = kept(X, max_correlation, reach, order=by_relevance(X, y))
    check(X, X, max_correlation, expected, window=window, by="relevance", target=y)


@pytest.mark.slow
@given(
    st.integers(2, 9) | st.just(128),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.sampled_from([1, 3, None]),
    st.sampled_from([0.5, 0.8, 1.0]),
    st.sampled_from([1, 4, 128]),
    st.sampled_from([np.asarray, np.asfortranarray, sparse.csc_array]),
    st.integers(0, 2**31),
)
def test_pruning_is_exact_for_any_blocks(n, sizes, window, max_correlation, width, form, seed):
    """Pruning is exact at the threshold (whole numbers), for any blocks and pool sizes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, 40)).astype(float)
    X[: n // 2, rng.integers(40, size=20)] = 0
    y = rng.normal(size=n)
    reach = np.inf if window is None else window
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlated, "_TILE_COLUMNS", width)
        patch.setattr(correlated, "_MIN_TILE_COLUMNS", 1)
        patch.setattr(correlated, "_MAX_DENSITY", 1.0)
        patch.setattr(ranked, "POOL_BYTES", 8 * n * width)
        patch.setattr(ranked, "_MIN_POOL_COLUMNS", 2)
        cut = in_blocks(form(X), sizes)
        check(cut, X, max_correlation, kept(X, max_correlation, reach), window=window)
        expected = kept(X, max_correlation, reach, order=by_relevance(X, y))
        check(cut, X, max_correlation, expected, window=window, by="relevance", target=y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "int64", "bool"])
def test_numbers_of_every_type(rng, dtype):
    X = rng.integers(0, 2, size=(150, 60)).astype(dtype)
    X[:, ::2] = X[:, 1::2]
    X[::20, ::2] = 1 - X[::20, 1::2]
    mixed = ColumnStream(
        lambda: [Block(range(30), X[:, :30]), Block(range(30, 60), 2.5 * X[:, 30:])]
    )
    y = X[:, 6].astype(float)
    for stream in (X, mixed):
        check(
            stream,
            X * np.repeat([1, 2.5 if stream is mixed else 1], 30),
            0.6,
            kept(X.astype(float), 0.6),
        )
        order = by_relevance(X.astype(float), y)
        expected = kept(X.astype(float), 0.6, order=order)
        assert names_of(prune(stream, 0.6, by="relevance", target=y)) == expected[0]


def test_windows_end_with_the_chromosome(rng):
    X = walk(rng)
    positions = np.array(CHROMOSOMES["position"]) + np.repeat([0, 10_000], [250, 150])
    y = rng.normal(size=60)
    check(variants(X, 2), X, 0.7, kept(X, 0.7, 5, location=positions), window="10kb")
    expected = kept(X, 0.7, 2, location=positions, order=by_relevance(X, y))
    check(variants(X, 2), X, 0.7, expected, window="4.5 kb", by="relevance", target=y)
    # Columns before the first with metadata are skipped; later ones follow.
    rest = kept(X[:, 200:], 0.7, 5, location=positions[200:])[0]
    assert names_of(prune(variants(X, 2).skip(200), 0.7, window="10kb")) == [200 + j for j in rest]


def test_locations_must_be_sorted(rng):
    X = rng.normal(size=(20, 400))
    stream = variants(X, 1)
    for field, at, got in [
        ("position", 7, "position 5000 after 6000 on chromosome 1"),
        ("chromosome", 255, "chromosome 2 again after another"),
    ]:
        stream = variants(X, 1)
        stream.column_metadata[field][at] = "3" if field == "chromosome" else 5000
        with pytest.raises(ValueError, match=rf"sorted by chromosome and position.*Got: {got}"):
            names_of(prune(stream, window="1kb"))
    with pytest.raises(ValueError, match="Got: no column metadata"):
        names_of(prune(X, window="1kb"))
    known = variants(X, 1).column_metadata
    other = ColumnStream(lambda: [Block(["rs1"], X[:, :1])], column_metadata=known)
    with pytest.raises(ValueError, match="none of 'rs1'"):
        names_of(prune(other, window="1kb"))


@pytest.mark.slow
def test_the_most_relevant_genotypes_of_mice_are_kept(dataset):
    """Genotypes are pruned correctly with and without a window, in order or by relevance."""
    X, y, _, _ = dataset("mouse_hs1940")
    X = np.asfortranarray(X[:, :1500])
    varies = np.flatnonzero(X.std(axis=0))
    order = by_relevance(X.astype(float), y)
    for window in (50, None):
        reach = np.inf if window is None else window
        check(X, X, 0.8, kept(X.astype(float), 0.8, reach), window=window)
        expected = kept(X.astype(float), 0.8, reach, order=order)
        check(X, X, 0.8, expected, window=window, by="relevance", target=y)
    assert len(expected[0]) < varies.size


def test_large_offsets_do_not_matter(rng):
    X = rng.normal(size=(150, 30)).astype(np.float32).astype(float)
    X[:, 1::3] = 0.9 * X[:, ::3] + 0.3 * X[:, 2::3]
    assert names_of(prune(X + 2.0**20, 0.9)) == names_of(prune(X, 0.9)) == kept(X, 0.9)[0]


def test_columns_without_a_correlation_pass(rng):
    x = rng.normal(size=10)
    gap, flat, huge = x.copy(), np.full(10, 0.1), x * 1e200
    gap[3] = np.nan
    word = np.array(["a"] * 10, dtype=object)
    columns = list(enumerate([gap, x, flat, word, flat, huge, gap, word, 2 * x, 1j * x]))
    pruned = prune(iter_columns(columns), 0.9)
    assert names_of(pruned) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert pruned.n_pruned == 1
    best = prune(iter_columns(lambda: iter(columns)), 0.9, by="relevance", target=x)
    assert names_of(best) == names_of(pruned)
    screened = clean(pruned)
    assert names_of(screened) == [1, 5]
    assert screened.skipped == {"missing": 2, "constant": 2, "text": 2, "complex": 1}


def test_blocks_without_correlation_are_unchanged(rng):
    X = rng.normal(size=(30, 20))
    scattered = sparse.random_array((30, 20), density=0.5, format="csc", random_state=rng)
    for values in (X, scattered):
        (block,) = prune(ColumnStream(lambda values=values: [Block(range(20), values)])).blocks()
        assert block.values is values
    assert names_of(prune(np.empty((0, 3)))) == [0, 1, 2]


def test_groups_are_not_divided_between_blocks(rng):
    X = rng.normal(size=(30, 60))
    X[:, 1::3] = X[:, ::3]
    groups = [None, None, *np.repeat(["a", "b", "c"], [7, 50, 1])]
    for n_dropped in (3, 60):
        stream = ColumnStream(lambda n=n_dropped: [Block(range(n), X[:, :n], groups[:n])])
        blocks = list(prune(stream).blocks())
        assert [name for block in blocks for name in block.names] == [
            j for j in range(n_dropped) if j % 3 != 1
        ]
        owners = [{g for g in block.groups if g is not None} for block in blocks]
        assert sum(map(len, owners)) == len(set().union(*owners))


def test_passes_after_an_interrupted_one(rng):
    X = walk(rng)
    found = []
    pruned = prune(in_blocks(X, [30]), 0.8, report=lambda *each: found.append(each))
    assert (pruned.n_rows, pruned.n_columns, pruned.reiterable) == (None, None, True)
    first = iter(pruned)
    next(first)
    assert (pruned.n_rows, pruned.n_read, pruned.n_columns) == (60, 30, None)
    names = names_of(pruned)
    assert len(found) == pruned.n_pruned == 400 - len(names)
    assert pruned.n_columns == len(names)
    assert repr(pruned) == f"Pruned(n_rows=60, n_columns={len(names)}, reiterable=True)"


def test_streams_of_one_pass(rng):
    X = walk(rng)
    pruned = prune(iter_columns(iter(list(enumerate(X.T))), n_rows=60), 0.8)
    assert (pruned.n_rows, pruned.reiterable) == (60, False)
    assert names_of(pruned) == kept(X, 0.8)[0]
    with pytest.raises(RuntimeError, match="one-shot"):
        pruned.blocks()
    with pytest.raises(ValueError, match=r"read several times.*Got: a one-shot"):
        prune(iter_columns(iter([])), by="relevance", target=X[:, 0])


def test_parts_equal_the_stream(rng):
    X = walk(rng)
    pruned = prune(X, 0.8, window=10)
    names = names_of(pruned)
    assert names_of(pruned.skip(5)) == names[5:]
    assert names_of(pruned.without(names[:2])) == names[2:]
    np.testing.assert_array_equal(pruned.take([names[3]])[names[3]], X[:, names[3]])
    assert list(pruned.take([51])) == [51]  # a pruned column
    with pytest.raises(KeyError, match="got: 400"):
        pruned.take([400])


def test_pruning_is_lazy_and_learners_accept_it(rng):
    X = walk(rng)
    y = X[:, 10] + rng.normal(size=60)

    def columns():
        yield from enumerate(X.T)
        raise AssertionError("read to the end")

    stream = prune(iter_columns(columns), 0.8)
    assert next(iter(stream.blocks())).names
    model = ProjSe(k=3, max_candidates=4, exact=True)
    model.learn_target(y)
    model.learn_columns(prune(X, 0.8))
    assert model.n_columns == len(kept(X, 0.8)[0])


def test_wrong_lengths_and_changing_sources_are_refused():
    blocks = [Block(["a"], np.eye(3)[:, :1]), Block(["b"], np.eye(4)[:, :1])]
    with pytest.raises(ValueError, match=r"Expected 3 values.*'b'. Got: 4"):
        list(prune(ColumnStream(lambda: iter(blocks))))
    sizes = iter([2, 3])
    pruned = prune(ColumnStream(lambda: iter([Block(range(k := next(sizes)), np.eye(4)[:, :k])])))
    names_of(pruned)
    with pytest.raises(
        ValueError, match=r"the 2 columns of the first pass in every pass\. Got: more"
    ):
        names_of(pruned)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_correlation": 0.0}, r"max_correlation of prune to be a float in .*1.0\].* Got: 0.0"),
        ({"max_correlation": 1.5}, "Got: 1.5"),
        ({"max_correlation": np.nan}, "Got: nan"),
        ({"by": "last"}, "by of prune to be one of 'first', 'relevance'. Got: 'last'"),
        ({"window": 0}, "window of prune to be an int .* or a text such as '250kb'. Got: 0"),
        ({"window": "250"}, "or a text such as '250kb'. Got: '250'"),
        ({"target": [1.0, 2.0, 3.0]}, "Expected no target with by='first'"),
        ({"by": "relevance"}, "Expected a target with by='relevance'. Got: None"),
        ({"by": "relevance", "target": [1, 2, 3], "target_type": "binary"}, "target_type of prune"),
        (
            {"by": "relevance", "target": [1, 2, np.nan]},
            "(?s)finite target. Got: nan.*leave out the",
        ),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        prune(np.eye(3), **options)
    with pytest.raises(TypeError, match=r"Expected report to be a function\. Got: str"):
        prune(np.eye(3), report="names")


@pytest.mark.slow
def test_memory_depends_on_the_window_only(rng):
    """Peak memory depends only on the window, not on repeated columns or block sizes."""
    n, window = 100, 50
    base = np.asfortranarray(rng.normal(size=(n, 4_000)))
    y = rng.normal(size=n)
    for X in (np.tile(base[:, :2_000], 30), np.tile(base[:, :20], 2_000)):
        for options in ({}, {"by": "relevance", "target": y}):
            stream = prune(iter_array(np.asfortranarray(X)), 0.9, window=window, **options)
            tracemalloc.start()
            for block in stream.blocks():
                del block
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 12 * 2**20, peak


@pytest.mark.parametrize("t", [0.5, 0.95])
def test_pairs_at_the_threshold_pass_the_prefilter(rng, t):
    """Pairs at the threshold pass the prefilter, even where its bound is tight."""
    n = 20_000
    rows = Comparison(n, t).prefilter_rows
    rest = np.delete(np.arange(n), rows)
    U = np.zeros((20, n))
    V = np.zeros((20, n))
    for u, v in zip(U, V, strict=True):
        first, other = (z - z.mean() for z in rng.normal(size=(2, rows.size)))
        u[rows], u[rest] = first, rng.normal(size=rest.size)
        u[rest] -= u[rest].mean()
        u[:] /= np.linalg.norm(u)
        first = u[rows]
        q = first @ first
        other -= other @ first / q * first
        a = 1.0 - (1.0 - t) / q
        v[rows] = a * first + np.sqrt(q - a * a * q) * other / np.linalg.norm(other)
        v[rest] = u[rest]
    pairs = np.stack([U, V], axis=1).reshape(40, n)
    assert names_of(prune(pairs.T, t - 1e-13)) == [*range(0, 40, 2)]

"""Sources of text against dictionaries of counts and scikit-learn's CountVectorizer."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from streamsel.stream import _occurrences, iter_ngrams, iter_positions, iter_skipgrams
from tests.reference import text as reference

ORDINARY = [
    "The cat sat on the mat; the cat was flat.",
    "",
    "A dog, a cat and a dog: on the mat, the dog sat.",
    "the mat. The MAT! the mat? x",
    "Zürich, naïve café — 42 times.",
]

# Few words, so that n-grams recur; "x" is too short to be a word.
documents = st.lists(
    st.lists(st.sampled_from(["ab", "ba", "cc", "Ab", "x"]), max_size=12).map(" ".join),
    min_size=1,
    max_size=6,
)


def columns_of(stream):
    """Return the columns of a stream as {name: list}, after checks of the blocks."""
    columns = {}
    for block in stream.blocks():
        assert len(block.names) == block.values.shape[1] > 0
        assert block.values.format == "csc"
        assert block.values.data.dtype == np.float64
        assert block.values.has_sorted_indices
        assert np.all(block.values.data > 0)
        for name, column in zip(block.names, block.values.toarray().T, strict=True):
            assert name not in columns
            columns[name] = column.astype(int).tolist()
            assert len(columns[name]) == stream.n_rows
    assert stream.n_columns == len(columns)
    assert stream.reiterable
    return columns


def assert_same(stream, expected):
    """Check that columns, names and order are the same, all at once and selected by `take`."""
    columns = columns_of(stream)
    assert list(columns.items()) == list(expected.items())
    taken = stream.take(list(expected)[::-1])
    assert list(taken) == list(expected)[::-1]
    for name, values in taken.items():
        assert values.toarray().ravel().tolist() == expected[name]


@given(documents, st.integers(1, 3), st.integers(0, 3), st.integers(1, 4))
def test_ngrams_are_those_of_the_definition(docs, shortest, more, min_df):
    n = (shortest, shortest + more)
    assert_same(iter_ngrams(docs, n=n, min_df=min_df), reference.ngrams(docs, n, min_df))


@given(documents, st.none() | st.integers(0, 5), st.integers(1, 3))
def test_positions_are_those_of_the_definition(docs, max_position, min_df):
    stream = iter_positions(docs, max_position=max_position, min_df=min_df)
    assert_same(stream, reference.positions(docs, max_position, min_df))


@given(
    documents, st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True), st.integers(1, 3)
)
def test_skipgrams_are_those_of_the_definition(docs, offsets, min_df):
    counts = reference.skipgrams(docs, offsets, min_df)
    named = {reference.skipgram_name(key, offsets): column for key, column in counts.items()}
    assert len(named) == len(counts)
    expected = dict(sorted(named.items(), key=lambda item: item[0].split(" ")))
    assert_same(iter_skipgrams(docs, offsets=offsets, min_df=min_df), expected)


@pytest.mark.parametrize("offsets", [(1,), (1, 2), (2, 1, 3)])
def test_skipgrams_without_gaps_are_ngrams(offsets):
    n = len(offsets) + 1
    expected = columns_of(iter_ngrams(ORDINARY, n=(n, n)))
    assert columns_of(iter_skipgrams(ORDINARY, offsets=offsets)) == expected


@pytest.mark.parametrize("n", [(1, 1), (1, 4), (2, 3)])
@pytest.mark.parametrize("min_df", [1, 2, 0.4])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("lowercase", [False, True])
def test_counts_are_those_of_scikit_learn(n, min_df, binary, lowercase):
    options = {"min_df": min_df, "binary": binary, "lowercase": lowercase}
    vectorizer = CountVectorizer(ngram_range=n, **options)
    counts = vectorizer.fit_transform(ORDINARY).toarray()
    names = vectorizer.get_feature_names_out()
    expected = {name: counts[:, j].tolist() for j, name in enumerate(names)}
    assert columns_of(iter_ngrams(ORDINARY, n=n, **options)) == expected


def test_a_custom_tokenizer_defines_words():
    stream = iter_ngrams(["a-b a", "A"], n=(1, 2), tokenizer=re.compile(r"\w").findall)
    assert columns_of(stream) == {"a": [2, 1], "b": [1, 0], "a b": [1, 0], "b a": [1, 0]}
    stream = iter_ngrams(["a-b a", "A"], n=(1, 1), lowercase=False, tokenizer=str.split)
    assert columns_of(stream) == {"A": [0, 1], "a": [1, 0], "a-b": [1, 0]}


@given(documents, documents, st.integers(1, 3))
def test_vocabulary_of_other_documents_is_counted(docs, others, longest):
    names = list(reference.ngrams(docs, (1, longest)))[::-1]
    counts = reference.ngrams(others, (1, longest))
    expected = [(name, counts.get(name, [0] * len(others))) for name in names]
    stream = iter_ngrams(others, vocabulary=names)
    assert list(columns_of_sparse(stream).items()) == expected


def columns_of_sparse(stream):
    """Return the columns of a stream as {name: list}, with columns of zeros allowed."""
    return {name: x.toarray().astype(int).ravel().tolist() for name, x in stream}


def test_vocabulary_of_positions_and_skipgrams():
    docs = ["to be or not", "not to be"]
    pairs = [("to", 1), ("be", 9), ("be", 1)]
    stream = iter_positions(docs, vocabulary=pairs)
    assert columns_of_sparse(stream) == {("to", 1): [0, 1], ("be", 9): [0, 0], ("be", 1): [1, 0]}
    stream = iter_skipgrams(docs, offsets=[2], vocabulary=["to * or", "be * or"])
    assert columns_of_sparse(stream) == {"to * or": [1, 0], "be * or": [0, 0]}
    assert list(stream.take(["be * or"])) == ["be * or"]


def test_blocks_are_bounded_and_complete(monkeypatch):
    expected = columns_of(iter_ngrams(ORDINARY))
    monkeypatch.setattr(_occurrences, "BLOCK_OCCURRENCES", 3)
    assert columns_of(iter_ngrams(ORDINARY)) == expected
    monkeypatch.setattr(_occurrences, "BLOCK_COLUMNS", 2)
    stream = iter_ngrams(ORDINARY)
    assert columns_of(stream) == expected
    for block in stream.blocks():
        assert block.values.shape[1] <= 2
        assert block.values.sum() <= 3 or block.values.shape[1] == 1
    assert columns_of(stream) == expected, "a second pass yields the same"


@pytest.mark.parametrize("docs", [[""], ["x y", ""], ["", ""]])
@pytest.mark.parametrize("source", [iter_ngrams, iter_positions, iter_skipgrams])
def test_documents_without_words_make_an_empty_stream(source, docs):
    stream = source(docs)
    assert (stream.n_rows, stream.n_columns, list(stream.blocks())) == (len(docs), 0, [])


def test_all_ngrams_may_be_excluded():
    assert iter_ngrams(ORDINARY, min_df=6).n_columns == 0
    assert iter_positions(ORDINARY, min_df=6).n_columns == 0
    assert iter_skipgrams(ORDINARY, min_df=6).n_columns == 0
    assert iter_ngrams(ORDINARY, vocabulary=[]).n_columns == 0
    assert iter_skipgrams(["one two"], offsets=[7]).n_columns == 0


def test_documents_are_read_once():
    assert columns_of(iter_ngrams(iter(ORDINARY))) == columns_of(iter_ngrams(ORDINARY))


@pytest.mark.parametrize("source", [iter_ngrams, iter_positions, iter_skipgrams])
@pytest.mark.parametrize(
    ("docs", "options", "error", "message"),
    [
        ([], {}, ValueError, "at least one document"),
        ("one text", {}, TypeError, "a single str"),
        (b"one text", {}, TypeError, "a single bytes"),
        (["fine", b"bytes"], {}, TypeError, "Got: bytes at document 1"),
        (["fine", "fine", None], {}, TypeError, "Got: NoneType at document 2"),
        ([1.5], {}, TypeError, "Got: float at document 0"),
        (["fine"], {"min_df": 0}, ValueError, "min_df to be .* Got: 0"),
        (["fine"], {"min_df": 1.5}, ValueError, "Got: 1.5"),
        (["fine"], {"min_df": "2"}, ValueError, "Got: '2'"),
        (["fine"], {"min_df": True}, ValueError, "Got: True"),
        (["fine"], {"tokenizer": lambda _: [3]}, TypeError, "tokenizer to return str. Got: 3"),
        (["fine"], {"vocabulary": "fine"}, TypeError, "a single str"),
        (["fine"], {"vocabulary": [3]}, TypeError, "in vocabulary. Got: 3"),
    ],
)
def test_invalid_input_is_explained(source, docs, options, error, message):
    with pytest.raises(error, match=message):
        source(docs, **options)


@pytest.mark.parametrize("n", [(2, 1), (0, 1), 3, (1,), (1, 2.0), None, "12", (True, 2)])
def test_lengths_must_be_a_pair(n):
    with pytest.raises(ValueError, match=r"n to be a pair .*\nHint"):
        iter_ngrams(["fine"], n=n)


@pytest.mark.parametrize("offsets", [(), (0, 1), (1, 1), (1.5,), 2, None, "1"])
def test_offsets_must_be_distinct_and_positive(offsets):
    with pytest.raises(ValueError, match="offsets to be one or more distinct ints"):
        iter_skipgrams(["fine"], offsets=offsets)


@pytest.mark.parametrize("max_position", [-1, 2.5, True, "3"])
def test_max_position_must_be_a_whole_number(max_position):
    with pytest.raises(ValueError, match="max_position to be None or an int"):
        iter_positions(["fine"], max_position=max_position)


def test_words_with_spaces_would_make_names_ambiguous():
    for source in (iter_ngrams, iter_skipgrams):
        with pytest.raises(ValueError, match=r"without spaces.*'new york'"):
            source(["x"], tokenizer=lambda _: ["new york"])
    stream = iter_positions(["x"], tokenizer=lambda _: ["new york"])
    assert columns_of(stream) == {("new york", 0): [1]}


@pytest.mark.parametrize("n", [0, 1, 5, 40, 10_000])
def test_skip_continues_another_run(monkeypatch, n):
    monkeypatch.setattr(_occurrences, "BLOCK_COLUMNS", 7)
    names = [name for name, _ in iter_ngrams(ORDINARY)]
    for stream in (iter_ngrams(ORDINARY), iter_ngrams(ORDINARY, vocabulary=names)):
        rest = stream.skip(n)
        assert list(columns_of(rest)) == names[n:]
        assert columns_of(rest).items() <= columns_of(stream).items()


def test_bad_vocabularies():
    with pytest.raises(ValueError, match="Got: 'on' more than once"):
        iter_ngrams(["fine"], vocabulary=["on", "the", "on"])
    with pytest.raises(ValueError, match=r"names like 'word \* word' in vocabulary. Got: 'a b c'"):
        iter_skipgrams(["fine"], offsets=[2], vocabulary=["a b c"])
    with pytest.raises(TypeError, match=r"pairs \(word, position\) in vocabulary. Got: 'a'"):
        iter_positions(["fine"], vocabulary=["a"])


def test_take_reports_missing_names():
    stream = iter_ngrams(ORDINARY)
    for name in ["mat dog", "zebra", "", "the mat the mat the", 3]:
        with pytest.raises(KeyError, match=re.escape(repr(name))):
            stream.take(["the", name])
    with pytest.raises(KeyError, match="'cat', 99"):
        iter_positions(ORDINARY).take([("cat", 99)])
    with pytest.raises(KeyError, match="zebra"):
        iter_ngrams(ORDINARY, vocabulary=["the"]).take(["zebra"])


def zipf_documents(n_documents, length, seed=0):
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{i}" for i in np.minimum(rng.zipf(1.3, length), 50_000))
        for _ in range(n_documents)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "levels"),
    [(iter_ngrams, {}, 4), (iter_positions, {}, 1), (iter_skipgrams, {}, 1)],
)
def test_memory_is_as_documented(source, options, levels):
    """Memory is as the docstring states, and a pass adds little to it."""
    docs = zipf_documents(250, 300)
    n_tokens = 250 * 300
    source(docs[:2], **options)  # the first call imports modules
    tracemalloc.start()
    try:
        stream = source(docs, **options)
        current, peak = tracemalloc.get_traced_memory()
        vocabulary = 100 * len({word for text in docs for word in text.split()})
        promised = (8 + 4 * levels) * n_tokens + 8 * stream.n_columns + vocabulary
        assert current < 1.1 * promised
        assert peak < 6 * promised
        tracemalloc.reset_peak()
        largest = n_blocks = 0
        for block in stream.blocks():
            n_blocks += 1
            values = block.values
            size = values.data.nbytes + values.indices.nbytes + values.indptr.nbytes
            size += sum(len(name) + 60 for name in block.names)
            largest = max(largest, size)
        assert n_blocks > levels
        assert largest < 4 * 2**20
        assert tracemalloc.get_traced_memory()[1] - current < 4 * 4 * 2**20
    finally:
        tracemalloc.stop()

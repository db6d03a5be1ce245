"""Streams of text features: n-grams, positions of words, n-grams with gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.data.chunks import Block
from streamsel.params import parameter_repr
from streamsel.stream._corpus import (
    check_lengths,
    is_int,
    min_document_count,
    ngram_names,
    pair_names,
    read_corpus,
    relative_positions,
    skipgram_names,
    vocabulary_mask,
)
from streamsel.stream._occurrences import (
    OccurrenceLevel,
    OccurrenceVariables,
    PositionVariables,
    cut_runs,
    extend,
    group,
    words_of,
)
from streamsel.stream._stream import ColumnStream, raise_unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence


def iter_ngrams(
    documents: Iterable[str],
    *,
    n: tuple[int, int] = (1, 4),
    min_df: float = 1,
    binary: bool = False,
    vocabulary: Iterable[str] | None = None,
    lowercase: bool = True,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
) -> ColumnStream:
    """Stream the counts of word n-grams in documents.

    A variable is a sequence of consecutive words of a document; its name is the words joined by
    spaces. The columns are sparse blocks, ordered by the length of the n-grams and then
    alphabetically by their words. The counts equal those of scikit-learn's `CountVectorizer`, but
    the full matrix is never built, and an n-gram is counted only where its shorter n-grams pass
    `min_df`.

    Parameters
    ----------
    documents
        One string per document; read once, and not stored.
    n
        Number of words of the shortest and of the longest n-gram.
    min_df
        Exclude n-grams that occur in fewer documents: a number of documents (int) or a proportion
        of them (float up to 1).
    binary
        Whether to stream indicators (0 or 1) instead of counts.
    vocabulary
        Stream exactly these n-grams, in this order, with a column of zeros for one that never
        occurs; `n` and `min_df` are then ignored. Use it to count the n-grams that a model has
        selected in new documents.
    lowercase
        Whether to convert the documents to lower case first.
    tokenizer
        Function from a document to its words; by default all runs of two or more word characters.
        For a custom pattern: `re.compile(pattern).findall`.

    Returns
    -------
    ColumnStream
        Re-readable, with known `n_rows` and `n_columns`, and a fast `take`. Sparse blocks of
        float64 counts under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If `documents` is a single string, or a document or a word is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, a word contains a space, or a
        name is twice in the vocabulary.

    Notes
    -----
    Cost: one sort of the words of the corpus per length, when the function is called. Memory: 8
    bytes per word of the corpus, 4 more for each length in which it is part of an n-gram that
    passes `min_df`, and 8 per n-gram; up to six times that while sorting. If no n-gram passes, the
    stream is empty.

    Examples
    --------
    >>> from streamsel.stream import iter_ngrams
    >>> documents = ["New York, New York", "a new day in York"]
    >>> for name, column in iter_ngrams(documents, n=(1, 2)):
    ...     print(name, column.toarray().ravel())
    day [0. 1.]
    in [0. 1.]
    new [2. 1.]
    york [2. 1.]
    day in [0. 1.]
    in york [0. 1.]
    new day [0. 1.]
    new york [2. 0.]
    york new [1. 0.]

    N-grams that occur in both documents:

    >>> [name for name, _ in iter_ngrams(documents, n=(1, 2), min_df=2)]
    ['new', 'york']

    N-grams that a model has selected, in a new document:

    >>> stream = iter_ngrams(["York is not New York"], vocabulary=["new york", "old york"])
    >>> [(name, int(column.sum())) for name, column in stream]
    [('new york', 1), ('old york', 0)]
    """
    shortest, longest = check_lengths(n)
    names = None if vocabulary is None else ngram_names(vocabulary)
    corpus = read_corpus(documents, tokenizer, lowercase=lowercase)
    min_documents = min_document_count(min_df, corpus)
    keep = None
    if names is not None:
        parts = [name.split(" ") for name in names]
        shortest, longest, min_documents = 1, max(map(len, parts), default=1), 1
        keep = vocabulary_mask(corpus, {word for part in parts for word in part})
    level = words = words_of(corpus, min_documents, keep)
    levels: list[tuple[tuple[int, ...], OccurrenceLevel]] = [((0,), words)] if shortest == 1 else []
    for length in range(2, longest + 1):
        level = extend(corpus, level, words, span=length - 1, min_df=min_documents, contiguous=True)
        if length >= shortest:
            levels.append((tuple(range(length)), level))
    return _stream(OccurrenceVariables(corpus, levels, binary=binary), names)


def iter_positions(
    documents: Iterable[str],
    *,
    max_position: int | None = None,
    min_df: float = 1,
    vocabulary: Iterable[tuple[str, int]] | None = None,
    lowercase: bool = True,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
) -> ColumnStream:
    """Stream indicators of words at positions: whether word w is at position i of a document.

    The name of a variable is the pair (w, i); the first word of a document has position 0. The
    columns are sparse blocks of zeros and ones, ordered by word and then by position.

    Parameters
    ----------
    documents
        One string per document; read once, and not stored.
    max_position
        The last position to include; None for all.
    min_df
        Exclude pairs that occur in fewer documents: a number of documents (int) or a proportion of
        them (float up to 1).
    vocabulary
        Stream exactly these pairs, in this order, with a column of zeros for one that never occurs;
        `max_position` and `min_df` are then ignored.
    lowercase
        Whether to convert the documents to lower case first.
    tokenizer
        Function from a document to its words; by default all runs of two or more word characters.

    Returns
    -------
    ColumnStream
        Re-readable, with known `n_rows` and `n_columns`, and a fast `take`; sparse blocks of
        float64 under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If `documents` is a single string, or a document or a word is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, or a name is twice in the
        vocabulary.

    Notes
    -----
    Cost: one sort of the words of the corpus, when the function is called. Memory: 12 bytes per
    word of the corpus and 8 per pair; up to six times that while sorting.

    Examples
    --------
    >>> from streamsel.stream import iter_positions
    >>> for name, column in iter_positions(["to be or not", "not to be"], max_position=1):
    ...     print(name, column.toarray().ravel())
    ('be', 1) [1. 0.]
    ('not', 0) [0. 1.]
    ('to', 0) [1. 0.]
    ('to', 1) [0. 1.]
    """
    if max_position is not None and not (is_int(max_position) and max_position >= 0):
        raise ValueError(
            f"Expected max_position to be None or an int >= 0. Got: {parameter_repr(max_position)}."
        )
    names = None if vocabulary is None else pair_names(vocabulary)
    corpus = read_corpus(documents, tokenizer, lowercase=lowercase, spaces=True)
    min_documents = min_document_count(min_df, corpus)
    if names is not None:
        min_documents, max_position = 1, max((position for _, position in names), default=0)
    begin = np.searchsorted(corpus.document, np.arange(corpus.n_documents))
    anchors = np.arange(corpus.tokens.size)
    position = anchors - begin[corpus.document]
    if max_position is not None:
        anchors = anchors[position <= max_position]
    if names is not None:
        anchors = anchors[
            vocabulary_mask(corpus, {word for word, _ in names})[corpus.tokens[anchors]]
        ]
    keys = corpus.tokens[anchors] * np.int64(position.max(initial=0) + 1) + position[anchors]
    return _stream(PositionVariables(corpus, group(corpus, anchors, keys, min_documents)), names)


def iter_skipgrams(
    documents: Iterable[str],
    *,
    offsets: Sequence[int] = (1, 3),
    min_df: float = 1,
    binary: bool = False,
    vocabulary: Iterable[str] | None = None,
    lowercase: bool = True,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
) -> ColumnStream:
    """Stream the counts of n-grams with gaps (skip-grams, punctuated n-grams) in documents.

    For the index set {s₁, s₂, …} a variable is a tuple of words w₀, w₁, w₂, …: the number of times
    that w₁ occurs s₁ positions before w₀, w₂ s₂ positions before w₀, and so on, in one document
    [^1]. The name has the words in reading order, with an asterisk for every arbitrary word: with
    `offsets=(1, 3)`, "state * the art" is w₂ = state, w₁ = the, w₀ = art. The columns are sparse
    blocks, in alphabetical order of their words as read. `offsets=(1, 2)` gives the 3-grams, with
    the same names as `iter_ngrams`.

    Parameters
    ----------
    documents
        One string per document; read once, and not stored.
    offsets
        The index set: numbers of positions of the other words before w₀; distinct, 1 or more.
    min_df
        Exclude variables that occur in fewer documents: a number of documents (int) or a proportion
        of them (float up to 1).
    binary
        Whether to stream indicators (0 or 1) instead of counts.
    vocabulary
        Stream exactly these names, in this order, with a column of zeros for one that never occurs;
        `min_df` is then ignored.
    lowercase
        Whether to convert the documents to lower case first.
    tokenizer
        Function from a document to its words; by default all runs of two or more word characters.

    Returns
    -------
    ColumnStream
        Re-readable, with known `n_rows` and `n_columns`, and a fast `take`; sparse blocks of
        float64 counts under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If `documents` is a single string, or a document or a word is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, a word contains a space, or a
        name is twice in the vocabulary or does not fit the offsets.

    Notes
    -----
    Cost: one sort of the words of the corpus per offset, when the function is called. Memory: 12
    bytes per word of the corpus and 8 per variable; up to six times that while sorting.

    References
    ----------
    [^1]: Fillmore, N. (2009). Sparse online supervised PCA. University of Wisconsin–Madison.

    Examples
    --------
    >>> from streamsel.stream import iter_skipgrams
    >>> stream = iter_skipgrams(["state of the art", "state in the art"], offsets=(1, 3))
    >>> for name, column in stream:
    ...     print(name, column.toarray().ravel())
    state * the art [1. 1.]
    """
    word_positions = relative_positions(offsets)
    names = None if vocabulary is None else skipgram_names(vocabulary, word_positions)
    corpus = read_corpus(documents, tokenizer, lowercase=lowercase)
    min_documents = min_document_count(min_df, corpus)
    keep = None
    if names is not None:
        min_documents = 1
        keep = vocabulary_mask(corpus, {word for name in names for word in name.split(" ")})
    level = words = words_of(corpus, min_documents, keep)
    for position in word_positions[1:]:
        level = extend(corpus, level, words, span=position, min_df=min_documents, contiguous=False)
    return _stream(OccurrenceVariables(corpus, [(word_positions, level)], binary=binary), names)


def _stream(variables: OccurrenceVariables, vocabulary: Sequence[Hashable] | None) -> ColumnStream:
    """Create the stream of all variables, or of those of a vocabulary, in its order."""
    if vocabulary is None:
        numbers = None
        edges, bounds = variables.edges, variables.bounds
    else:
        numbers = variables.find_all(vocabulary)
        edges = np.append(0, np.cumsum(variables.lengths(numbers)))
        bounds = [0, numbers.size]

    def blocks_from(first: int) -> Iterator[Block]:
        for start, stop in cut_runs(edges, [first, *(bound for bound in bounds if bound > first)]):
            if vocabulary is None or numbers is None:
                names: Sequence[Hashable] = variables.names(start, stop)
                yield Block(names, variables.columns(np.arange(start, stop)))
            else:
                yield Block(vocabulary[start:stop], variables.columns(numbers[start:stop]))

    def take(names: Sequence[Hashable]) -> dict[Hashable, Any]:
        found = {name: variables.find(name) for name in names}
        missing = [name for name, number in found.items() if number < 0]
        if missing and vocabulary is None:
            raise_unknown_names(missing, (name for block in blocks_from(0) for name in block.names))
        return {name: variables.columns(np.array([number])) for name, number in found.items()}

    return ColumnStream(
        lambda: blocks_from(0),
        n_rows=variables.corpus.n_documents,
        n_columns=bounds[-1],
        take=take,
        names=vocabulary,
        blocks_from=blocks_from,
    )

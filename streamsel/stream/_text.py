"""Streams of the variables of a text: n-grams, positions of words, n-grams with gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.columns import Block
from streamsel.stream._base import ColumnStream, raise_missing
from streamsel.stream._corpus import (
    among,
    check_lengths,
    check_slots,
    is_int,
    least_documents,
    ngram_names,
    pair_names,
    read,
    skipgram_names,
)
from streamsel.stream._occurrences import Level, Places, Variables, cut, extend, group, words_of

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
    """Stream how often each n-gram occurs in each document.

    A variable is a run of words inside one document; its name is those words joined by spaces. The
    columns come as sparse blocks, shorter n-grams first, those of one length by their words in
    alphabetical order. The counts are those of scikit-learn's `CountVectorizer`, but no matrix of
    all of them is ever made, and an n-gram is only looked for where the shorter ones inside it have
    survived `min_df`.

    Parameters
    ----------
    documents
        One string a document; read once, and not kept.
    n
        Words of the shortest and of the longest n-gram.
    min_df
        Leave out n-grams found in fewer documents: a number of documents (int) or a share of them
        (float up to 1).
    binary
        Whether the columns say 1 where an n-gram occurs rather than how often.
    vocabulary
        Stream exactly these n-grams, in this order, with a column of zeros for one that never
        occurs; `n` and `min_df` then have no say. This is how the n-grams a model has selected are
        counted in new documents.
    lowercase
        Whether to lower the case of the documents first.
    tokenizer
        Called with each document, returns its words; by default all runs of two or more word
        characters. For a pattern of your own: `re.compile(pattern).findall`.

    Returns
    -------
    ColumnStream
        Re-readable, with `n_rows` and `n_columns` known, and a fast `take`. Sparse blocks of
        float64 counts under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If documents is a single string, or one of them, or one of their words, is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, a word contains a space, or a
        name is twice in the vocabulary.

    Notes
    -----
    Cost: one sort of the words of the corpus for each length, when the function is called. Memory:
    8 bytes a word of the corpus, 4 more for each length in which it is part of an n-gram that
    survives, and 8 an n-gram; up to six times that while sorting. If no n-gram survives, the
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

    Those found in both documents:

    >>> [name for name, _ in iter_ngrams(documents, n=(1, 2), min_df=2)]
    ['new', 'york']

    The n-grams a model was left with, in a document it has not seen:

    >>> stream = iter_ngrams(["York is not New York"], vocabulary=["new york", "old york"])
    >>> [(name, int(column.sum())) for name, column in stream]
    [('new york', 1), ('old york', 0)]
    """
    shortest, longest = check_lengths(n)
    names = None if vocabulary is None else ngram_names(vocabulary)
    corpus = read(documents, tokenizer, lowercase=lowercase)
    least = least_documents(min_df, corpus)
    keep = None
    if names is not None:
        parts = [name.split(" ") for name in names]
        shortest, longest, least = 1, max(map(len, parts), default=1), 1
        keep = among(corpus, {word for part in parts for word in part})
    level = words = words_of(corpus, least, keep)
    levels: list[tuple[tuple[int, ...], Level]] = [((0,), words)] if shortest == 1 else []
    for length in range(2, longest + 1):
        level = extend(corpus, level, words, span=length - 1, min_df=least, contiguous=True)
        if length >= shortest:
            levels.append((tuple(range(length)), level))
    return _stream(Variables(corpus, levels, binary=binary), names)


def iter_positions(
    documents: Iterable[str],
    *,
    max_position: int | None = None,
    min_df: float = 1,
    vocabulary: Iterable[tuple[str, int]] | None = None,
    lowercase: bool = True,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
) -> ColumnStream:
    """Stream, for each word w and position i, whether w stands at position i of each document.

    The variable's name is the pair (w, i); the first word of a document is at position 0. The
    columns come as sparse blocks of zeros and ones, by word and then by position.

    Parameters
    ----------
    documents
        One string a document; read once, and not kept.
    max_position
        The last position to look at; None for all.
    min_df
        Leave out pairs found in fewer documents: a number of documents (int) or a share of them
        (float up to 1).
    vocabulary
        Stream exactly these pairs, in this order, with a column of zeros for one that never occurs;
        `max_position` and `min_df` then have no say.
    lowercase
        Whether to lower the case of the documents first.
    tokenizer
        Called with each document, returns its words; by default all runs of two or more word
        characters.

    Returns
    -------
    ColumnStream
        Re-readable, with `n_rows` and `n_columns` known, and a fast `take`; sparse blocks of
        float64 under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If documents is a single string, or one of them, or one of their words, is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, or a name is twice in the
        vocabulary.

    Notes
    -----
    Cost: one sort of the words of the corpus, when the function is called. Memory: 12 bytes a word
    of the corpus and 8 a pair; up to six times that while sorting.

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
        raise ValueError(f"Expected max_position to be None or an int >= 0. Got: {max_position!r}.")
    names = None if vocabulary is None else pair_names(vocabulary)
    corpus = read(documents, tokenizer, lowercase=lowercase, spaces=True)
    least = least_documents(min_df, corpus)
    if names is not None:
        least, max_position = 1, max((place for _, place in names), default=0)
    begin = np.searchsorted(corpus.document, np.arange(corpus.n_documents))
    anchors = np.arange(corpus.tokens.size)
    place = anchors - begin[corpus.document]
    if max_position is not None:
        anchors = anchors[place <= max_position]
    if names is not None:
        anchors = anchors[among(corpus, {word for word, _ in names})[corpus.tokens[anchors]]]
    keys = corpus.tokens[anchors] * np.int64(place.max(initial=0) + 1) + place[anchors]
    return _stream(Places(corpus, group(corpus, anchors, keys, least)), names)


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
    """Stream how often each n-gram with gaps (punctuated n-gram) occurs in each document.

    For the index set {s₁, s₂, …} a variable is a choice of words w₀, w₁, w₂, …: how often w₁ occurs
    s₁ positions before w₀, w₂ s₂ positions before w₀, and so on, all inside one document [^1]. The
    name is what one would read, an asterisk for every word that may be any: with `offsets=(1, 3)`,
    "state * the art" is w₂ = state, w₁ = the, w₀ = art. The columns come as sparse blocks, in
    alphabetical order of their words as read. `offsets=(1, 2)` gives the 3-grams, under the names
    that `iter_ngrams` gives them.

    Parameters
    ----------
    documents
        One string a document; read once, and not kept.
    offsets
        The index set: how many positions before w₀ the other words stand; distinct, 1 or more.
    min_df
        Leave out variables found in fewer documents: a number of documents (int) or a share of them
        (float up to 1).
    binary
        Whether the columns say 1 where a variable occurs rather than how often.
    vocabulary
        Stream exactly these names, in this order, with a column of zeros for one that never occurs;
        `min_df` then has no say.
    lowercase
        Whether to lower the case of the documents first.
    tokenizer
        Called with each document, returns its words; by default all runs of two or more word
        characters.

    Returns
    -------
    ColumnStream
        Re-readable, with `n_rows` and `n_columns` known, and a fast `take`; sparse blocks of
        float64 counts under 4 MiB each, unless a single column is larger.

    Raises
    ------
    TypeError
        If documents is a single string, or one of them, or one of their words, is not a string.
    ValueError
        If there are no documents, a parameter is out of its range, a word contains a space, or a
        name is twice in the vocabulary or does not fit the offsets.

    Notes
    -----
    Cost: one sort of the words of the corpus for each offset, when the function is called. Memory:
    12 bytes a word of the corpus and 8 a variable; up to six times that while sorting.

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
    slots = check_slots(offsets)
    names = None if vocabulary is None else skipgram_names(vocabulary, slots)
    corpus = read(documents, tokenizer, lowercase=lowercase)
    least = least_documents(min_df, corpus)
    keep = None
    if names is not None:
        least = 1
        keep = among(corpus, {word for name in names for word in name.split(" ")})
    level = words = words_of(corpus, least, keep)
    for slot in slots[1:]:
        level = extend(corpus, level, words, span=slot, min_df=least, contiguous=False)
    return _stream(Variables(corpus, [(slots, level)], binary=binary), names)


def _stream(variables: Variables, vocabulary: Sequence[Hashable] | None) -> ColumnStream:
    """Make the stream of all variables, or of those of a vocabulary, in its order."""
    if vocabulary is None:
        numbers = None
        edges, bounds = variables.edges, variables.bounds
    else:
        numbers = variables.find_all(vocabulary)
        edges = np.append(0, np.cumsum(variables.lengths(numbers)))
        bounds = [0, numbers.size]

    def blocks_from(first: int) -> Iterator[Block]:
        for start, stop in cut(edges, [first, *(bound for bound in bounds if bound > first)]):
            if vocabulary is None or numbers is None:
                names: Sequence[Hashable] = variables.names(start, stop)
                yield Block(names, variables.columns(np.arange(start, stop)))
            else:
                yield Block(vocabulary[start:stop], variables.columns(numbers[start:stop]))

    def take(names: Sequence[Hashable]) -> dict[Hashable, Any]:
        found = {name: variables.find(name) for name in names}
        missing = [name for name, number in found.items() if number < 0]
        if missing and vocabulary is None:
            raise_missing(missing, (name for block in blocks_from(0) for name in block.names))
        return {name: variables.columns(np.array([number])) for name, number in found.items()}

    return ColumnStream(
        lambda: blocks_from(0),
        n_rows=variables.corpus.n_documents,
        n_columns=bounds[-1],
        take=take,
        names=vocabulary,
        blocks_from=blocks_from,
    )

"""Tokenised documents, and validation of the parameters of the text readers."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.data.names import expect_distinct_names
from streamsel.serialization.json_values import is_iterable_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

# Runs of two or more word characters: the words of scikit-learn's CountVectorizer.
_WORDS = re.compile(r"\w{2,}")

GAP = "*"  # placeholder of an arbitrary word in a name


class Corpus(NamedTuple):
    """Tokenised documents, concatenated.

    Parameters
    ----------
    words
        The distinct words, sorted.
    tokens
        Index of the word at each position.
    document
        Index of the document of each position; non-decreasing.
    n_documents
        Number of documents, including those without words.
    """

    words: list[str]
    tokens: NDArray[np.int32]
    document: NDArray[np.int32]
    n_documents: int


def read_corpus(
    documents: Iterable[str],
    tokenizer: Callable[[str], Iterable[str]] | None,
    *,
    lowercase: bool,
    spaces: bool = False,
) -> Corpus:
    """Tokenise the documents and index their words in alphabetical order."""
    if isinstance(documents, str | bytes):
        raise TypeError(
            "Expected documents to be an iterable of str, one per document. "
            f"Got: a single {type(documents).__name__}.\nHint: put it in a list."
        )
    if not is_iterable_collection(documents):
        raise TypeError(f"Expected documents to be iterable. Got: {type(documents).__name__}.")
    params.check("text", {"lowercase": params.FlagRule()}, {"lowercase": lowercase})
    if tokenizer is not None and not callable(tokenizer):
        raise TypeError(f"Expected tokenizer to be a function. Got: {type(tokenizer).__name__}.")
    tokenize = _WORDS.findall if tokenizer is None else tokenizer
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    tokens, lengths = array("i"), array("q")
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            raise TypeError(
                f"Expected documents of type str. Got: {type(document).__name__} at document {i}.\n"
                "Hint: decode bytes, and exclude or replace missing documents."
            )
        text = document.lower() if lowercase else document
        ids = [number[word] for word in tokenize(text)]
        tokens.extend(ids)
        lengths.append(len(ids))
    if not lengths:
        raise ValueError("Expected at least one document. Got: none.")
    for word in number:
        if not isinstance(word, str):
            raise TypeError(f"Expected tokenizer to return str. Got: {word!r}.")
        if " " in word and not spaces:
            raise ValueError(
                "Expected tokenizer to return words without spaces, which separate words in names. "
                f"Got: {word!r}.\nHint: join the words of a phrase by underscores."
            )
    words = sorted(number)
    rank = np.empty(len(words), dtype=np.int32)
    rank[[number[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    document_of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return Corpus(words, rank[np.array(tokens, dtype=np.int32)], document_of, len(lengths))


def vocabulary_mask(corpus: Corpus, vocabulary: set[str]) -> NDArray[np.bool_]:
    """Return a mask of the words of the corpus that are wanted."""
    return np.fromiter((word in vocabulary for word in corpus.words), np.bool_, len(corpus.words))


def is_int(value: object) -> bool:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_lengths(n: tuple[int, int]) -> tuple[int, int]:
    """Validate the pair of n-gram lengths."""
    if (
        not isinstance(n, tuple | list)
        or len(n) != 2
        or not all(map(is_int, n))
        or not 1 <= n[0] <= n[1]
    ):
        raise ValueError(
            "Expected n to be a pair (shortest, longest) of ints with 1 <= shortest <= longest. "
            f"Got: {n!r}.\nHint: n=(1, 4) for all 1- to 4-grams."
        )
    return n[0], n[1]


def relative_positions(offsets: Sequence[int]) -> tuple[int, ...]:
    """Validate the offsets and convert them to positions relative to the first word."""
    values = list(offsets) if isinstance(offsets, tuple | list | set | frozenset | range) else []
    if (
        not values
        or not all(map(is_int, values))
        or min(values) < 1
        or len(set(values)) < len(values)
    ):
        raise ValueError(
            "Expected offsets to be one or more distinct ints >= 1. "
            f"Got: {params.parameter_repr(offsets)}."
        )
    return tuple(max(values) - offset for offset in sorted([0, *values], reverse=True))


def min_document_count(min_df: float, corpus: Corpus) -> float:
    """Validate `min_df` and convert a proportion of the documents to a number of them."""
    if is_int(min_df) and min_df >= 1:
        return min_df
    if isinstance(min_df, Real) and not isinstance(min_df, Integral) and 0 < min_df <= 1:
        return min_df * corpus.n_documents
    raise ValueError(
        "Expected min_df to be a number of documents, an int >= 1, or a proportion, a float in "
        f"(0, 1]. Got: {min_df!r}."
    )


def _distinct_names(vocabulary: Iterable[Any]) -> list[Any]:
    if isinstance(vocabulary, str):
        raise TypeError("Expected vocabulary to be an iterable of names. Got: a single str.")
    if not is_iterable_collection(vocabulary):
        got = type(vocabulary).__name__
        raise TypeError(f"Expected vocabulary to be an iterable of names. Got: {got}.")
    names = list(vocabulary)
    expect_distinct_names(names)
    return names


def ngram_names(vocabulary: Iterable[str]) -> list[str]:
    """Validate a vocabulary of n-grams, words joined by spaces."""
    names = _distinct_names(vocabulary)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Expected str in vocabulary. Got: {name!r}.")
    return names


def skipgram_names(vocabulary: Iterable[str], word_positions: tuple[int, ...]) -> list[str]:
    """Validate a vocabulary of n-grams with gaps."""
    names = ngram_names(vocabulary)
    for name in names:
        parts = name.split(" ")
        gaps = [part for i, part in enumerate(parts) if i not in word_positions]
        if len(parts) != word_positions[-1] + 1 or gaps != [GAP] * len(gaps):
            shape = " ".join(
                "word" if i in word_positions else GAP for i in range(word_positions[-1] + 1)
            )
            raise ValueError(f"Expected names like {shape!r} in vocabulary. Got: {name!r}.")
    return names


def pair_names(vocabulary: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Validate a vocabulary of pairs (word, position)."""
    names = _distinct_names(vocabulary)
    for name in names:
        if not (
            isinstance(name, tuple)
            and len(name) == 2
            and isinstance(name[0], str)
            and is_int(name[1])
        ):
            raise TypeError(f"Expected pairs (word, position) in vocabulary. Got: {name!r}.")
    return names

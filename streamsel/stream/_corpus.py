"""Documents as numbers: what the sources of text read, and their checks of what they are given."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.plain import is_many
from streamsel.stream._base import check_distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

# Runs of two or more word characters: the words of scikit-learn's CountVectorizer.
_WORDS = re.compile(r"\w{2,}")

GAP = "*"  # stands in a name for a word that may be any


class Corpus(NamedTuple):
    """Documents as numbers: the words of all of them, end to end.

    Parameters
    ----------
    words
        The distinct words, sorted.
    tokens
        The number of the word at each position.
    document
        The number of the document of each position; never decreasing.
    n_documents
        How many documents there are, those without a word included.
    """

    words: list[str]
    tokens: NDArray[np.int32]
    document: NDArray[np.int32]
    n_documents: int


def read(
    documents: Iterable[str],
    tokenizer: Callable[[str], Iterable[str]] | None,
    *,
    lowercase: bool,
    spaces: bool = False,
) -> Corpus:
    """Read the documents once and number their words in alphabetical order."""
    if isinstance(documents, str | bytes):
        raise TypeError(
            "Expected documents to be an iterable of str, one a document. "
            f"Got: a single {type(documents).__name__}.\nHint: put it in a list."
        )
    if not is_many(documents):
        raise TypeError(f"Expected documents to be iterable. Got: {type(documents).__name__}.")
    params.check("text", {"lowercase": params.Flag()}, {"lowercase": lowercase})
    if tokenizer is not None and not callable(tokenizer):
        raise TypeError(f"Expected a function as tokenizer. Got: {type(tokenizer).__name__}.")
    tokenize = _WORDS.findall if tokenizer is None else tokenizer
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    tokens, lengths = array("i"), array("q")
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            raise TypeError(
                f"Expected documents of type str. Got: {type(document).__name__} at document {i}.\n"
                "Hint: decode bytes, and leave out or fill in what is missing."
            )
        text = document.lower() if lowercase else document
        ids = [number[word] for word in tokenize(text)]
        tokens.extend(ids)
        lengths.append(len(ids))
    if not lengths:
        raise ValueError("Expected at least one document. Got: none.")
    for word in number:
        if not isinstance(word, str):
            raise TypeError(f"Expected the tokenizer to return str. Got: {word!r}.")
        if " " in word and not spaces:
            raise ValueError(
                "Expected the tokenizer to return words without spaces, which join them in names. "
                f"Got: {word!r}.\nHint: join the parts of a phrase by underscores."
            )
    words = sorted(number)
    rank = np.empty(len(words), dtype=np.int32)
    rank[[number[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    document_of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return Corpus(words, rank[np.array(tokens, dtype=np.int32)], document_of, len(lengths))


def among(corpus: Corpus, wanted: set[str]) -> NDArray[np.bool_]:
    """Say of each word of the corpus whether it is among the wanted ones."""
    return np.fromiter((word in wanted for word in corpus.words), np.bool_, len(corpus.words))


def is_int(value: object) -> bool:
    """Say whether a value is a whole number, True and False not among them."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_lengths(n: tuple[int, int]) -> tuple[int, int]:
    """Check the pair of lengths."""
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


def check_slots(offsets: Sequence[int]) -> tuple[int, ...]:
    """Check the offsets and turn them into places counted from the first word."""
    values = list(offsets) if isinstance(offsets, tuple | list | set | frozenset | range) else []
    if (
        not values
        or not all(map(is_int, values))
        or min(values) < 1
        or len(set(values)) < len(values)
    ):
        raise ValueError(
            f"Expected offsets to be distinct ints >= 1, at least one of them. Got: {offsets!r}."
        )
    return tuple(max(values) - offset for offset in sorted([0, *values], reverse=True))


def least_documents(min_df: float, corpus: Corpus) -> float:
    """Check min_df and turn a share of the documents into a number of them."""
    if is_int(min_df) and min_df >= 1:
        return min_df
    if isinstance(min_df, Real) and not isinstance(min_df, Integral) and 0 < min_df <= 1:
        return min_df * corpus.n_documents
    raise ValueError(
        "Expected min_df to be an int >= 1, a number of documents, or a float in (0, 1], a share "
        f"of them. Got: {min_df!r}."
    )


def _distinct(vocabulary: Iterable[Any]) -> list[Any]:
    """Check that no name is in the vocabulary twice."""
    if isinstance(vocabulary, str):
        raise TypeError("Expected the vocabulary to be an iterable of names. Got: a single str.")
    if not is_many(vocabulary):
        got = type(vocabulary).__name__
        raise TypeError(f"Expected the vocabulary to be an iterable of names. Got: {got}.")
    names = list(vocabulary)
    check_distinct(names)
    return names


def ngram_names(vocabulary: Iterable[str]) -> list[str]:
    """Check a vocabulary of names joined by spaces."""
    names = _distinct(vocabulary)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Expected str in the vocabulary. Got: {name!r}.")
    return names


def skipgram_names(vocabulary: Iterable[str], slots: tuple[int, ...]) -> list[str]:
    """Check a vocabulary of names with gaps."""
    names = ngram_names(vocabulary)
    for name in names:
        parts = name.split(" ")
        gaps = [part for i, part in enumerate(parts) if i not in slots]
        if len(parts) != slots[-1] + 1 or gaps != [GAP] * len(gaps):
            shape = " ".join("word" if i in slots else GAP for i in range(slots[-1] + 1))
            raise ValueError(f"Expected names like {shape!r} in the vocabulary. Got: {name!r}.")
    return names


def pair_names(vocabulary: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Check a vocabulary of pairs (word, position)."""
    names = _distinct(vocabulary)
    for name in names:
        if not (
            isinstance(name, tuple)
            and len(name) == 2
            and isinstance(name[0], str)
            and is_int(name[1])
        ):
            raise TypeError(f"Expected pairs (word, position) in the vocabulary. Got: {name!r}.")
    return names

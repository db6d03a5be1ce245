"""Occurrences of text features, found by sorting positions; columns are computed on demand."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.stream._corpus import GAP

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from streamsel.stream._corpus import Corpus

    Ints = NDArray[np.integer[Any]]

# Limits that keep a block under 4 MiB: 12 bytes per count (float64 + int32), about 100 per name.
BLOCK_OCCURRENCES = 2**17
BLOCK_COLUMNS = 2**14


class OccurrenceLevel(NamedTuple):
    """The variables of one shape, such as all 2-grams, in the order of their names.

    Parameters
    ----------
    positions
        Positions of the first words of all occurrences, sorted by variable, then by position.
    starts
        Start of each variable's run in `positions`.
    code
        Index of the variable that begins at each position of the corpus, or -1.
    """

    positions: Ints
    starts: Ints
    code: Ints


def group(
    corpus: Corpus,
    anchors: Ints,
    keys: Ints,
    min_df: float,
) -> OccurrenceLevel:
    """Group positions by key, and keep the keys that occur in at least `min_df` documents.

    A single stable sort keeps the document order of positions within a key, so that the documents
    of a variable can be counted (here) and its column be built (later) in one sweep.

    Parameters
    ----------
    corpus
        The documents.
    anchors
        Positions, increasing.
    keys
        Key of the variable at each of them.
    min_df
        Minimum number of documents.
    """
    size = np.int32 if corpus.tokens.size < 2**31 else np.int64
    order = np.argsort(keys, kind="stable")
    positions: Ints = anchors[order].astype(size)
    keys = keys[order]
    first = np.ones(keys.size, dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    starts: Ints = np.flatnonzero(first).astype(size)
    lengths: Ints = np.diff(starts, append=size(keys.size))
    if min_df > 1:
        document = corpus.document[positions]
        first[1:] |= document[1:] != document[:-1]
        survives = np.add.reduceat(first, starts, dtype=np.int64) >= min_df
        positions = positions[np.repeat(survives, lengths)]
        lengths = lengths[survives]
        starts = np.append(0, np.cumsum(lengths))[:-1].astype(size)
    code: Ints = np.full(corpus.tokens.size, -1, dtype=size)
    code[positions] = np.repeat(np.arange(lengths.size, dtype=size), lengths)
    return OccurrenceLevel(positions, starts, code)


def words_of(
    corpus: Corpus, min_df: float, keep: NDArray[np.bool_] | None = None
) -> OccurrenceLevel:
    """Group single words, of the whole vocabulary or of those in the mask `keep`."""
    anchors = np.arange(corpus.tokens.size)
    if keep is not None:
        anchors = anchors[keep[corpus.tokens]]
    return group(corpus, anchors, corpus.tokens[anchors], min_df)


def extend(
    corpus: Corpus,
    shorter: OccurrenceLevel,
    words: OccurrenceLevel,
    *,
    span: int,
    min_df: float,
    contiguous: bool,
) -> OccurrenceLevel:
    """Extend the variables of a level by the word `span` positions after their start.

    An n-gram can pass `min_df` only if its parts do: a position is kept only if the shorter n-gram
    and the new word were kept, and for contiguous n-grams also the shorter one that begins one word
    later (as in the Apriori algorithm).
    """
    n = corpus.tokens.size
    if span >= n:
        return group(corpus, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), 1)
    kept = (shorter.code[: n - span] >= 0) & (words.code[span:] >= 0)
    kept &= corpus.document[: n - span] == corpus.document[span:]
    if contiguous:
        kept &= shorter.code[1 : n - span + 1] >= 0
    anchors = np.flatnonzero(kept)
    keys = shorter.code[anchors] * np.int64(words.starts.size) + words.code[anchors + span]
    return group(corpus, anchors, keys, min_df)


def cut_runs(edges: Ints, bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut variables into runs (start, stop) of bounded size that do not cross a bound.

    Parameters
    ----------
    edges
        Start of the occurrences of each variable; the last entry is their total number.
    bounds
        Variables that always begin a run; the first is 0, the last the number of variables.
    """
    for begin, end in pairwise(bounds):
        start = begin
        while start < end:
            budget = int(edges[start]) + BLOCK_OCCURRENCES
            stop = int(np.searchsorted(edges, budget, side="right")) - 1
            stop = max(start + 1, min(stop, start + BLOCK_COLUMNS, end))
            yield start, stop
            start = stop


class OccurrenceVariables:
    """Ordered variables with their occurrences; names and columns are computed on demand.

    Parameters
    ----------
    corpus
        The documents.
    levels
        (word_positions, level) pairs; the positions of its words are relative to the first one.
    binary
        Whether columns are indicators instead of counts.
    """

    def __init__(
        self,
        corpus: Corpus,
        levels: Iterable[tuple[tuple[int, ...], OccurrenceLevel]],
        *,
        binary: bool,
    ) -> None:
        params.check("text", {"binary": params.FlagRule()}, {"binary": binary})
        self.corpus = corpus
        self.binary = binary
        self.word_positions: list[tuple[int, ...]] = []
        self.bounds = [0]  # indices of the first variable of each level
        positions: list[Ints] = [np.empty(0, dtype=np.int32)]
        starts: list[Ints] = []
        n_occurrences = 0
        for word_positions, level in levels:
            self.word_positions.append(word_positions)
            self.bounds.append(self.bounds[-1] + level.starts.size)
            positions.append(level.positions)
            starts.append(level.starts + np.int64(n_occurrences))
            n_occurrences += level.positions.size
        self.positions = np.concatenate(positions)
        # Start of each variable's run, and the total.
        self.edges = np.concatenate([*starts, [n_occurrences]])

    def __len__(self) -> int:
        return self.bounds[-1]

    def lengths(self, variables: Ints) -> Ints:
        """Return the number of occurrences of some variables, 0 for the index -1."""
        return np.where(variables >= 0, self.edges[variables + 1] - self.edges[variables], 0)

    def columns(self, variables: Ints) -> Any:
        """Return the columns of some variables as a CSC array, empty for the index -1."""
        from scipy.sparse import csc_array  # scipy.sparse costs 100 ms to import

        lengths = self.lengths(variables)
        ends = np.cumsum(lengths, dtype=np.intp)
        begins = ends - lengths
        # Indices of all occurrences, by variable and then by position.
        occurrences = np.repeat(self.edges[variables] - begins, lengths) + np.arange(lengths.sum())
        document = self.corpus.document[self.positions[occurrences]]
        first = np.zeros(document.size + 1, dtype=bool)
        first[begins] = True
        first = first[:-1]
        first[1:] |= document[1:] != document[:-1]
        runs = np.flatnonzero(first)
        indptr = np.searchsorted(runs, np.append(begins, document.size))
        if self.binary:
            data = np.ones(runs.size)
        else:
            data = np.diff(runs, append=document.size).astype(np.float64)
        matrix = csc_array(
            (data, document[runs], indptr.astype(np.int32)),
            shape=(self.corpus.n_documents, variables.size),
        )
        matrix.has_canonical_format = True  # sorted and without duplicates, by construction
        return matrix

    def names(self, start: int, stop: int) -> list[Hashable]:
        """Return the names of a run of variables of one level: words joined by spaces."""
        level = bisect_left(self.bounds, start + 1) - 1
        first = self.positions[self.edges[start:stop]]
        words = self.corpus.words
        parts: list[Iterable[str]] = [repeat(GAP)] * (self.word_positions[level][-1] + 1)
        for position in self.word_positions[level]:
            parts[position] = map(words.__getitem__, self.corpus.tokens[first + position].tolist())
        return list(map(" ".join, zip(*parts, strict=False)))

    def find_all(self, names: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return the indices of the variables of these names, or -1, in one sweep over all."""
        numbers = dict.fromkeys(names, -1)
        for start, stop in cut_runs(self.edges, self.bounds):
            for number, name in enumerate(self.names(start, stop), start):
                if name in numbers:
                    numbers[name] = number
        return np.fromiter(numbers.values(), np.int64, len(numbers))

    def find(self, name: Hashable) -> int:
        """Return the index of the variable of this name, or -1, by binary search in O(log p)."""
        parts = name.split(" ") if isinstance(name, str) else []
        words = self.corpus.words
        for level, word_positions in enumerate(self.word_positions):
            gaps = [part for i, part in enumerate(parts) if i not in word_positions]
            if len(parts) != word_positions[-1] + 1 or gaps != [GAP] * len(gaps):
                continue
            ids = [bisect_left(words, parts[position]) for position in word_positions]
            if any(
                i == len(words) or words[i] != parts[s]
                for i, s in zip(ids, word_positions, strict=True)
            ):
                continue
            return self._search(level, ids, list(word_positions))
        return -1

    def _search(self, level: int, ids: Sequence[int], word_positions: list[int]) -> int:
        """Return the variable of a level with these word indices, or -1."""

        def key(variable: int) -> list[int]:
            numbers: list[int] = self.corpus.tokens[
                self.positions[self.edges[variable]] + word_positions
            ].tolist()
            return numbers

        begin, end = self.bounds[level], self.bounds[level + 1]
        found = begin + bisect_left(range(begin, end), list(ids), key=key)
        return found if found < end and key(found) == list(ids) else -1


class PositionVariables(OccurrenceVariables):
    """`OccurrenceVariables` of one level, named by tuples (word, position in the document)."""

    def __init__(self, corpus: Corpus, level: OccurrenceLevel) -> None:
        super().__init__(corpus, [((0,), level)], binary=True)
        # The position at which each document begins.
        self.begin = np.searchsorted(corpus.document, np.arange(corpus.n_documents))

    def _in_document(self, positions: Ints) -> Ints:
        relative: Ints = positions - self.begin[self.corpus.document[positions]]
        return relative

    def names(self, start: int, stop: int) -> list[Hashable]:
        """Return the names of a run of variables: (word, position)."""
        first = self.positions[self.edges[start:stop]]
        words = map(self.corpus.words.__getitem__, self.corpus.tokens[first].tolist())
        return list(zip(words, self._in_document(first).tolist(), strict=True))

    def find(self, name: Hashable) -> int:
        """Return the index of the variable of this name, or -1, by binary search in O(log p)."""
        if not (isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str)):
            return -1

        def key(variable: int) -> Any:
            return self.names(variable, variable + 1)[0]

        found = bisect_left(range(len(self)), name, key=key)
        return found if found < len(self) and key(found) == name else -1

"""Where the variables of a text occur: counted by sorting positions, columns made on demand."""

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

# A block stays under 4 MiB: 12 bytes a count (float64 + int32), about 100 bytes a name.
BLOCK_OCCURRENCES = 2**17
BLOCK_COLUMNS = 2**14


class Level(NamedTuple):
    """The variables of one shape, e.g. all 2-grams, in the order of their names.

    Parameters
    ----------
    positions
        Every position where one of them begins, sorted by variable, then by position.
    starts
        Where each variable's run in `positions` begins.
    code
        For every position of the corpus the variable that begins there, or -1.
    """

    positions: Ints
    starts: Ints
    code: Ints


def group(
    corpus: Corpus,
    anchors: Ints,
    keys: Ints,
    min_df: float,
) -> Level:
    """Group positions by key and keep the keys found in at least `min_df` documents.

    One stable sort: positions come in document order, so within a key they stay so, and the
    documents of a variable can be counted (here) and its column be read off (later) in one sweep.

    Parameters
    ----------
    corpus
        The documents.
    anchors
        Positions, increasing.
    keys
        What occurs at each of them.
    min_df
        Least number of documents.
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
    return Level(positions, starts, code)


def words_of(corpus: Corpus, min_df: float, keep: NDArray[np.bool_] | None = None) -> Level:
    """Group single words, of all the vocabulary or of what is to be kept of it."""
    anchors = np.arange(corpus.tokens.size)
    if keep is not None:
        anchors = anchors[keep[corpus.tokens]]
    return group(corpus, anchors, corpus.tokens[anchors], min_df)


def extend(
    corpus: Corpus,
    shorter: Level,
    words: Level,
    *,
    span: int,
    min_df: float,
    contiguous: bool,
) -> Level:
    """Lengthen the survivors of a level by the word `span` positions after their beginning.

    Only what survives can have a survivor in it, so a position goes on only where the shorter gram
    survived, and the new word did; in a contiguous n-gram the shorter gram that begins one word
    later must have survived too.
    """
    n = corpus.tokens.size
    if span >= n:
        return group(corpus, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), 1)
    alive = (shorter.code[: n - span] >= 0) & (words.code[span:] >= 0)
    alive &= corpus.document[: n - span] == corpus.document[span:]
    if contiguous:
        alive &= shorter.code[1 : n - span + 1] >= 0
    anchors = np.flatnonzero(alive)
    keys = shorter.code[anchors] * np.int64(words.starts.size) + words.code[anchors + span]
    return group(corpus, anchors, keys, min_df)


def cut(edges: Ints, bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut variables into runs (start, stop) of bounded size, none of them across a bound.

    Parameters
    ----------
    edges
        Where the occurrences of each variable begin, and one more.
    bounds
        Variables that begin a run whatever its size; first 0, last the number of variables.
    """
    for begin, end in pairwise(bounds):
        start = begin
        while start < end:
            budget = int(edges[start]) + BLOCK_OCCURRENCES
            stop = int(np.searchsorted(edges, budget, side="right")) - 1
            stop = max(start + 1, min(stop, start + BLOCK_COLUMNS, end))
            yield start, stop
            start = stop


class Variables:
    """Variables in order, with where they occur; makes names and columns of any of them on demand.

    Parameters
    ----------
    corpus
        The documents.
    levels
        (slots, level) pairs: where the words of a variable stand, counted from its first.
    binary
        Whether a column says that a variable occurs rather than how often.
    """

    def __init__(
        self, corpus: Corpus, levels: Iterable[tuple[tuple[int, ...], Level]], *, binary: bool
    ) -> None:
        params.check("text", {"binary": params.Flag()}, {"binary": binary})
        self.corpus = corpus
        self.binary = binary
        self.slots: list[tuple[int, ...]] = []
        self.bounds = [0]  # of the levels, in variables
        positions: list[Ints] = [np.empty(0, dtype=np.int32)]
        starts: list[Ints] = []
        n_occurrences = 0
        for slots, level in levels:
            self.slots.append(slots)
            self.bounds.append(self.bounds[-1] + level.starts.size)
            positions.append(level.positions)
            starts.append(level.starts + np.int64(n_occurrences))
            n_occurrences += level.positions.size
        self.positions = np.concatenate(positions)
        # Where each variable's run begins, and one more.
        self.edges = np.concatenate([*starts, [n_occurrences]])

    def __len__(self) -> int:
        return self.bounds[-1]

    def lengths(self, variables: Ints) -> Ints:
        """Return how often some variables occur; -1 stands for one that never does."""
        return np.where(variables >= 0, self.edges[variables + 1] - self.edges[variables], 0)

    def columns(self, variables: Ints) -> Any:
        """Return the columns of some variables as a CSC array; -1 stands for an empty column."""
        from scipy.sparse import csc_array  # scipy.sparse costs 100 ms to import

        lengths = self.lengths(variables)
        ends = np.cumsum(lengths, dtype=np.intp)
        begins = ends - lengths
        # Position after position of variable after variable.
        where = np.repeat(self.edges[variables] - begins, lengths) + np.arange(lengths.sum())
        document = self.corpus.document[self.positions[where]]
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
        parts: list[Iterable[str]] = [repeat(GAP)] * (self.slots[level][-1] + 1)
        for slot in self.slots[level]:
            parts[slot] = map(words.__getitem__, self.corpus.tokens[first + slot].tolist())
        return list(map(" ".join, zip(*parts, strict=False)))

    def find_all(self, names: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return the numbers of the variables of these names, or -1, by one sweep over all."""
        numbers = dict.fromkeys(names, -1)
        for start, stop in cut(self.edges, self.bounds):
            for number, name in enumerate(self.names(start, stop), start):
                if name in numbers:
                    numbers[name] = number
        return np.fromiter(numbers.values(), np.int64, len(numbers))

    def find(self, name: Hashable) -> int:
        """Return the number of the variable of this name, or -1: a binary search, O(log p)."""
        parts = name.split(" ") if isinstance(name, str) else []
        words = self.corpus.words
        for level, slots in enumerate(self.slots):
            gaps = [part for i, part in enumerate(parts) if i not in slots]
            if len(parts) != slots[-1] + 1 or gaps != [GAP] * len(gaps):
                continue
            ids = [bisect_left(words, parts[slot]) for slot in slots]
            if any(
                i == len(words) or words[i] != parts[s] for i, s in zip(ids, slots, strict=True)
            ):
                continue
            return self._search(level, ids, list(slots))
        return -1

    def _search(self, level: int, ids: Sequence[int], slots: list[int]) -> int:
        """Find the variable of a level whose words have these numbers."""

        def key(variable: int) -> list[int]:
            numbers: list[int] = self.corpus.tokens[
                self.positions[self.edges[variable]] + slots
            ].tolist()
            return numbers

        begin, end = self.bounds[level], self.bounds[level + 1]
        found = begin + bisect_left(range(begin, end), list(ids), key=key)
        return found if found < end and key(found) == list(ids) else -1


class Places(Variables):
    """Variables (word, place in the document): `Variables` of one level, named by tuples."""

    def __init__(self, corpus: Corpus, level: Level) -> None:
        super().__init__(corpus, [((0,), level)], binary=True)
        # The position at which each document begins.
        self.begin = np.searchsorted(corpus.document, np.arange(corpus.n_documents))

    def _place(self, positions: Ints) -> Ints:
        place: Ints = positions - self.begin[self.corpus.document[positions]]
        return place

    def names(self, start: int, stop: int) -> list[Hashable]:
        """Return the names of a run of variables: (word, place)."""
        first = self.positions[self.edges[start:stop]]
        words = map(self.corpus.words.__getitem__, self.corpus.tokens[first].tolist())
        return list(zip(words, self._place(first).tolist(), strict=True))

    def find(self, name: Hashable) -> int:
        """Return the number of the variable of this name, or -1: a binary search, O(log p)."""
        if not (isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str)):
            return -1

        def key(variable: int) -> Any:
            return self.names(variable, variable + 1)[0]

        found = bisect_left(range(len(self)), name, key=key)
        return found if found < len(self) and key(found) == name else -1

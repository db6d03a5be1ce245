"""Slow, simple references for sources of text: dictionaries of counts."""

import re


def words(document):
    return re.findall(r"(?u)\b\w\w+\b", document.lower())


def survivors(columns, min_df):
    return {name: col for name, col in columns.items() if sum(c > 0 for c in col) >= min_df}


def ngrams(documents, lengths, min_df=1):
    """Count every n-gram: {name: column}, shorter first, then alphabetical."""
    columns = {}
    for length in range(lengths[0], lengths[1] + 1):
        found = {}
        for row, document in enumerate(documents):
            w = words(document)
            for i in range(len(w) - length + 1):
                found.setdefault(tuple(w[i : i + length]), [0] * len(documents))[row] += 1
        for key in sorted(found):
            columns[" ".join(key)] = found[key]
    return survivors(columns, min_df)


def positions(documents, max_position=None, min_df=1):
    """Return the positions of every word: {(word, position): column}, by word, then by position."""
    found = {}
    for row, document in enumerate(documents):
        for i, word in enumerate(words(document)):
            if max_position is None or i <= max_position:
                found.setdefault((word, i), [0] * len(documents))[row] = 1
    return survivors({key: found[key] for key in sorted(found)}, min_df)


def skipgrams(documents, offsets, min_df=1):
    """Count w₁ at s₁ positions before w₀, and so on: {(w₀, w₁, …): column}, in no order."""
    found = {}
    for row, document in enumerate(documents):
        w = words(document)
        for i in range(len(w)):
            if i - max(offsets) >= 0:
                key = (w[i], *(w[i - s] for s in offsets))
                found.setdefault(key, [0] * len(documents))[row] += 1
    return survivors(found, min_df)


def skipgram_name(key, offsets):
    """Return the words of a skip-gram in text order, with an asterisk for every other word."""
    at = dict(zip([0, *offsets], key, strict=True))
    return " ".join(at.get(back, "*") for back in range(max(offsets), -1, -1))

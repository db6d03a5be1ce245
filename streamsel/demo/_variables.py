"""The variables: words and phrases of a docstring, weighted by its length."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import diags_array

from streamsel.columns import Block
from streamsel.stream import ColumnStream, iter_ngrams

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_words = re.compile(r"\w\w+").findall


def variables_of(
    texts: Sequence[str], longest: int, vocabulary: Sequence[str] | None = None
) -> ColumnStream:
    """Stream the n-grams of some texts: 0 if absent, else the inverse root of the length.

    The length of a text is its number of distinct words; without this weight, long texts would have
    large values of all variables.

    Parameters
    ----------
    texts
        One text per row.
    longest
        The length of the longest n-gram in words.
    vocabulary
        Stream only these n-grams.
    """
    words = np.array([len(set(_words(text.lower()))) for text in texts])
    weight = diags_array(1.0 / np.sqrt(np.maximum(words, 1)))
    counted = iter_ngrams(texts, n=(1, longest), binary=True, vocabulary=vocabulary)

    def blocks() -> Iterator[Block]:
        for block in counted.blocks():
            yield Block(block.names, (weight @ block.values).tocsc())

    return ColumnStream(blocks, n_rows=counted.n_rows, n_columns=counted.n_columns)

"""The variables: which words and phrases a docstring has, in proportion to its length."""

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
    """Stream the n-grams of some texts: 0 where one does not occur.

    Where it does it is 1 over the square root of how many words a text has, each counted once, or
    long texts would have everything.

    Parameters
    ----------
    texts
        One a row.
    longest
        Words of the longest n-gram.
    vocabulary
        Stream these only.
    """
    words = np.array([len(set(_words(text.lower()))) for text in texts])
    weight = diags_array(1.0 / np.sqrt(np.maximum(words, 1)))
    counted = iter_ngrams(texts, n=(1, longest), binary=True, vocabulary=vocabulary)

    def blocks() -> Iterator[Block]:
        for block in counted.blocks():
            yield Block(block.names, (weight @ block.values).tocsc())

    return ColumnStream(blocks, n_rows=counted.n_rows, n_columns=counted.n_columns)

"""Input of learners: columns of numbers of any source, and parts of blocks.

Other packages import these names from here, and no private module of `stream`.
"""

from __future__ import annotations

from streamsel.stream._blocks import split_block
from streamsel.stream._encode import (
    EncodedStream,
    columns_not_numeric,
    encoded_columns,
    encoded_names,
    not_encoded_text,
    numeric_stream,
)
from streamsel.stream._stream import restricted

__all__ = [
    "EncodedStream",
    "columns_not_numeric",
    "encoded_columns",
    "encoded_names",
    "not_encoded_text",
    "numeric_stream",
    "restricted",
    "split_block",
]

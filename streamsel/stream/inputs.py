"""Input of learners: columns of numbers of any source, and parts of blocks.

Other packages import these names from here, and no private module of `stream`.
"""

from __future__ import annotations

from streamsel.stream._blocks import split_block
from streamsel.stream._encode import EncodedStream, encoded_columns, numeric_stream

__all__ = ["EncodedStream", "encoded_columns", "numeric_stream", "split_block"]

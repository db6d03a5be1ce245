"""Files of columns, as the command needs them: formats, text layout, cells, numbers, fingerprints.

Other packages import these names from here, and no private module of `stream`.
"""

from __future__ import annotations

from streamsel.stream._blocks import part_of
from streamsel.stream._clean import CleanStream, Missing
from streamsel.stream._csv_by_variable import OnBad
from streamsel.stream._csv_layout import find_layout, find_numerals, numerals_of, split_name
from streamsel.stream._fingerprint import Fingerprint, digest
from streamsel.stream._formats import (
    delimiter_of,
    file_format,
    infer_orientation,
    open_by_name,
    orientation_of_names,
    read_exact_integers,
    suffix_of,
)
from streamsel.stream._multi_file import (
    MultiFileStream,
    Orientation,
    iter_files,
    open_files,
    paths_of,
)
from streamsel.stream._npy import check_characters, open_npy
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    EXACT_INTEGER_LIMIT,
    CellMessage,
    Numerals,
    ReadOptions,
    diagnose_non_numeric,
    is_number,
    may_be_rounded_integers,
    parse_integers,
)
from streamsel.stream._parts import Stamp
from streamsel.stream._stream import find_indices, raise_unknown_names
from streamsel.stream._text_cells import (
    FIRST_BYTES,
    LINE_BYTES,
    LineBound,
    find_delimiter,
    null_byte_message,
    numbered_lines,
    open_text,
    split_cells,
    text_errors,
)

__all__ = [
    "DEFAULT_READ_OPTIONS",
    "EXACT_INTEGER_LIMIT",
    "FIRST_BYTES",
    "LINE_BYTES",
    "CellMessage",
    "CleanStream",
    "Fingerprint",
    "LineBound",
    "Missing",
    "MultiFileStream",
    "Numerals",
    "OnBad",
    "Orientation",
    "ReadOptions",
    "Stamp",
    "check_characters",
    "delimiter_of",
    "diagnose_non_numeric",
    "digest",
    "file_format",
    "find_delimiter",
    "find_indices",
    "find_layout",
    "find_numerals",
    "infer_orientation",
    "is_number",
    "iter_files",
    "may_be_rounded_integers",
    "null_byte_message",
    "numbered_lines",
    "numerals_of",
    "open_by_name",
    "open_files",
    "open_npy",
    "open_text",
    "orientation_of_names",
    "parse_integers",
    "part_of",
    "paths_of",
    "raise_unknown_names",
    "read_exact_integers",
    "split_cells",
    "split_name",
    "suffix_of",
    "text_errors",
]

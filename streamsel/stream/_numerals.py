"""Options for reading files, number formats of text, and integers that are too large for floats.

A number format is the decimal mark, thousands separators, and missing values.
"""

from __future__ import annotations

import decimal
import itertools
import math
import numbers
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streamsel.params import parameter_repr
from streamsel.serialization.json_values import is_iterable_collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

Decimal = Literal[".", ","]
NaValues = str | float | Iterable[str | float] | None


class ReadOptions(NamedTuple):
    """Options for reading a file.

    Parameters
    ----------
    delimiter, decimal
        Delimiter and decimal mark of text; None to infer them.
    na_values
        Cells of text that denote a missing value, in addition to the usual ones.
    layer, raw
        Matrix of an AnnData file, as in `iter_anndata`.
    missing
        Treatment of missing genotypes, as in `iter_bed`.
    """

    delimiter: str | None = None
    decimal: Decimal | None = None
    na_values: tuple[str, ...] = ()
    layer: str | None = None
    raw: bool = False
    missing: Literal["mean", "keep"] = "mean"


DEFAULT_READ_OPTIONS = ReadOptions()


# Cells that denote a missing value, in their usual spelling, which is faster to search, and as a
# pattern for any case. NaN is parsed as a number. A dash is missing only among numbers: among
# labels it is a value, as opposed to a plus sign.
DASH = "-"
USUAL_MISSING = ("", "NA", "N/A", "n/a", "null", "NULL", "None", "#N/A", DASH)
_MISSING = re.compile(r"\s*(?:NA|#?N/A|null|None|-)?\s*", re.IGNORECASE)

# Above this, float64 does not represent every integer.
EXACT_INTEGER_LIMIT = 2.0**53
_INTEGER = re.compile(r"[+-]?[0-9]+")

_BLANKS = " \u00a0\u2009\u202f"
# Digits in groups of three, with optional decimals. The first group is not zero: the comma of 0,123
# is a decimal mark.
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}([{others}])[0-9]{{3}}(?:\1[0-9]{{3}})*({end})?")
    for mark, others, end in ((".", f",{_BLANKS}", r"\.[0-9]*"), (",", rf"\.{_BLANKS}", ",[0-9]*"))
}
_LARGE = re.compile(r"\s*[+-]?0*[1-9][0-9]{3}")
# Cells inspected to decide whether most are numbers.
_MAX_INSPECTED = 1000


def check_na_values(na_values: Any) -> tuple[str, ...]:
    """Validate `na_values`, one or several texts or numbers; return them as a tuple of texts.

    Raises
    ------
    TypeError
        If `na_values` is anything else.
    """
    if na_values is None:
        return ()
    is_one = isinstance(na_values, str) or not is_iterable_collection(na_values)
    several = [na_values] if is_one else list(na_values)
    if not all(isinstance(v, str | numbers.Real) and not isinstance(v, bool) for v in several):
        raise TypeError(
            f"Expected na_values to be texts or numbers. Got: {parameter_repr(na_values)}.\n"
            "Hint: use a list such as na_values=['.', '<0.01', -9]."
        )
    return tuple(str(value).strip() for value in several)


def to_number(cell: str, decimal: str = ".") -> float | None:
    """Parse a cell; return NaN for a missing value, None for any other text."""
    if decimal == ",":
        # A point separates thousands, or is a mistake.
        if "." in cell:
            return None
        cell = cell.replace(",", ".")
    try:
        # Python parses 1_000 as a thousand; in data it is a name.
        return None if "_" in cell else float(cell)
    except ValueError:
        return np.nan if _MISSING.fullmatch(cell) else None


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in any format, or a missing value."""
    return any(to_number(cell, mark) is not None or is_grouped(cell, mark) for mark in ".,")


def is_grouped(cell: str, decimal: str) -> bool:
    """Return whether a cell is a number with thousands separators."""
    return _GROUPED[decimal].fullmatch(cell.strip()) is not None


@dataclass(frozen=True)
class Numerals:
    """Number format of a text.

    Parameters
    ----------
    decimal
        The decimal mark, "." or ",".
    is_sure
        Whether the mark is certain. Otherwise a comma before three digits is ambiguous.
    na_values
        Cells that denote a missing value, in addition to the usual ones.
    """

    decimal: str = "."
    is_sure: bool = True
    na_values: tuple[str, ...] = ()

    @cached_property
    def missing_numbers(self) -> frozenset[float]:
        """Numbers that denote a missing value, such as -9."""
        found = (to_number(text, mark) for text in self.na_values for mark in (".", self.decimal))
        return frozenset(value for value in found if value is not None and not math.isnan(value))

    def number(self, cell: str) -> float | None:
        """Parse a cell; return NaN for a missing value, None for any other text."""
        value = to_number(cell, self.decimal)
        if self.na_values and (value in self.missing_numbers or cell.strip() in self.na_values):
            return np.nan
        return value

    def may_be_number(self, cell: str) -> bool:
        """Return whether a cell is a number in this format, or a missing value."""
        return self.number(cell) is not None or is_grouped(cell, self.decimal)

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell in a column of labels is a missing value."""
        value, text = self.number(cell), cell.strip()
        return value is not None and math.isnan(value) and (text != DASH or text in self.na_values)

    def numbers(self, cells: Iterable[str]) -> npt.NDArray[np.float64] | None:
        """Parse a column of numbers, which may have thousands separators.

        Returns
        -------
        The numbers; None if a cell is not a number, if the separators are inconsistent (two
        different ones, or a comma or point in only some of the numbers of four or more digits), or
        if all commas may be decimal marks.
        """
        values: list[float] = []
        separators: set[str] = set()
        is_sure, has_large = self.is_sure, False
        for cell in cells:
            value, text = self.number(cell), cell.strip()
            if value is None:
                found = _GROUPED[self.decimal].fullmatch(text)
                if found is None:
                    return None
                separators.add(found[1])
                is_sure |= found[1] != "," or found[2] is not None or text.count(",") > 1
                value = to_number(text.replace(found[1], ""), self.decimal)
                assert value is not None  # noqa: S101
            else:
                has_large |= _LARGE.match(text) is not None
                is_sure |= self._has_decimals(text)
            values.append(value)
        if len(separators) > 1 or not (is_sure or not separators):
            return None
        if has_large and separators & {",", "."}:
            return None
        return np.array(values, dtype=np.float64)

    def _has_decimals(self, text: str) -> bool:
        """Return whether a number has a decimal mark that cannot be a thousands separator."""
        other = "." if self.decimal == "," else ","
        return self.decimal in text and not is_grouped(text, other)


class CellMessage(str):
    """A message about a cell, with the cell as an attribute.

    Parameters
    ----------
    text, cell
        The message, and the cell.
    """

    __slots__ = ("cell",)

    def __new__(cls, text: str, cell: str) -> Self:
        """Create the message with its cell."""
        made = super().__new__(cls, text)
        made.cell = cell
        return made

    cell: str


class NonNumericReason(NamedTuple):
    """Diagnosis of a column of texts that are not numeric.

    Parameters
    ----------
    reason
        "text" if most are not numbers; "mixed" if most are; "ambiguous" if all are, but in
        inconsistent or ambiguous formats.
    place
        Index of the first text that is not a number, or ambiguous.
    detail
        Further explanation.
    """

    reason: str
    position: int
    detail: str


def diagnose_non_numeric(texts: Sequence[Any]) -> NonNumericReason:
    """Diagnose why the cells of a column are not numeric; None is a missing value."""
    first = next((i for i, text in enumerate(texts) if _is_not_numeric(text)), None)
    if first is None:
        non_numeric = (
            i for i, t in enumerate(texts) if isinstance(t, str) and to_number(t) is None
        )
        index = next(non_numeric, None)
        if index is None:
            return NonNumericReason("text", 0, "")
        text = str(texts[index]).strip()
        number = Numerals().numbers([text]) if is_grouped(text, ".") else None
        other = to_number(text, ",")
        if number is not None and other is not None:
            return NonNumericReason(
                "ambiguous", index, f"which may be {number[0]:.15g} or {other:.15g}"
            )
        return NonNumericReason(
            "ambiguous", index, "whose format differs from that of other numbers"
        )
    inspected = itertools.islice(texts, max(first + 1, _MAX_INSPECTED))
    observed = [text for text in inspected if text is not None]
    n = sum(not _is_not_numeric(text) for text in observed)
    if 2 * n <= len(observed):
        return NonNumericReason("text", first, "")
    return NonNumericReason("mixed", first, f"where {n:,} of {len(observed):,} values are numbers")


def _is_not_numeric(text: Any) -> bool:
    """Return whether this is neither a missing value, a number nor the text of a number."""
    if isinstance(text, str):
        return not is_number(text)
    return not (text is None or isinstance(text, numbers.Real | decimal.Decimal))


def may_be_rounded_integers(values: Any) -> bool:
    """Return whether the values are floats that may be rounded integers."""
    if getattr(values, "ndim", 0) != 1 or values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    large = np.abs(finite).max(initial=0.0) >= EXACT_INTEGER_LIMIT
    return bool(large and (finite == np.floor(finite)).all())


def parse_integers(cells: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Convert cells to integers, None for a missing one; return None if any is not an integer.

    Parameters
    ----------
    cells
        Texts, integers, or None for a missing value.
    """
    texts = [None if cell is None else str(cell).strip() for cell in cells]
    if not all(text is None or _INTEGER.fullmatch(text) for text in texts):
        return None
    found = [None if text is None else int(text) for text in texts]
    known = [number for number in found if number is not None]
    fits = len(known) == len(found) and max(map(abs, known), default=0) < 2**63
    return np.array(found, dtype=np.int64 if fits else object)

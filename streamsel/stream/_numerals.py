"""How a text writes numbers: the decimal mark, separators of thousands, and missing values."""

from __future__ import annotations

import decimal
import itertools
import math
import numbers
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streamsel.params import shown
from streamsel.plain import is_many

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt


# Cells that stand for a missing value, besides NaN in any case, which is read as a number: as they
# are usually spelt, which is quicker to find, and in any case. A dash does so among numbers only:
# among labels it is one, as opposed to a plus sign.
DASH = "-"
USUAL_MISSING = ("", "NA", "N/A", "n/a", "null", "NULL", "None", "#N/A", DASH)
_MISSING = re.compile(r"\s*(?:NA|#?N/A|null|None|-)?\s*", re.IGNORECASE)

_BLANKS = " \u00a0\u2009\u202f"
# Digits in groups of three, and maybe decimals. The first group of digits is no zero: 0,123 has a
# decimal comma.
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}([{others}])[0-9]{{3}}(?:\1[0-9]{{3}})*({end})?")
    for mark, others, end in ((".", f",{_BLANKS}", r"\.[0-9]*"), (",", rf"\.{_BLANKS}", ",[0-9]*"))
}
_LARGE = re.compile(r"\s*[+-]?0*[1-9][0-9]{3}")
# Of so many cells of a text it is asked whether most are numbers.
_LOOKED_AT = 1000


def check_na_values(na_values: Any) -> tuple[str, ...]:
    """Return texts that stand for a missing value, given one or several, or numbers.

    Raises
    ------
    TypeError
        For anything else.
    """
    if na_values is None:
        return ()
    is_one = isinstance(na_values, str) or not is_many(na_values)
    several = [na_values] if is_one else list(na_values)
    if not all(isinstance(v, str | numbers.Real) and not isinstance(v, bool) for v in several):
        raise TypeError(
            f"Expected na_values to be texts, or numbers. Got: {shown(na_values)}.\n"
            "Hint: na_values=['.', '<0.01', -9]."
        )
    return tuple(str(value).strip() for value in several)


def to_number(cell: str, decimal: str = ".") -> float | None:
    """Return the number in a cell, NaN for a missing value, None if it is neither."""
    if decimal == ",":
        # A point sets off thousands, where it is not a mistake.
        if "." in cell:
            return None
        cell = cell.replace(",", ".")
    try:
        # Python reads 1_000 as a thousand; in data it is a name.
        return None if "_" in cell else float(cell)
    except ValueError:
        return np.nan if _MISSING.fullmatch(cell) else None


def is_number(cell: str) -> bool:
    """Return whether a cell has a number, however it is written, or stands for a missing one."""
    return any(to_number(cell, mark) is not None or is_grouped(cell, mark) for mark in ".,")


def is_grouped(cell: str, decimal: str) -> bool:
    """Return whether a cell has a number with separators of thousands."""
    return _GROUPED[decimal].fullmatch(cell.strip()) is not None


@dataclass(frozen=True)
class Numerals:
    """How the numbers of a text are written.

    Parameters
    ----------
    decimal
        The decimal mark, "." or ",".
    is_sure
        Whether that is certain. Otherwise a comma before three digits may be either.
    na_values
        Cells that stand for a missing value besides the usual ones.
    """

    decimal: str = "."
    is_sure: bool = True
    na_values: tuple[str, ...] = ()

    @cached_property
    def missing_numbers(self) -> frozenset[float]:
        """Numbers that stand for a missing value, such as -9."""
        found = (to_number(text, mark) for text in self.na_values for mark in (".", self.decimal))
        return frozenset(value for value in found if value is not None and not math.isnan(value))

    def number(self, cell: str) -> float | None:
        """Return the number in a cell, NaN for a missing value, None if it is neither."""
        value = to_number(cell, self.decimal)
        if self.na_values and (value in self.missing_numbers or cell.strip() in self.na_values):
            return np.nan
        return value

    def may_be_number(self, cell: str) -> bool:
        """Return whether a cell has a number, or stands for a missing one."""
        return self.number(cell) is not None or is_grouped(cell, self.decimal)

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell among labels stands for a missing one."""
        value, text = self.number(cell), cell.strip()
        return value is not None and math.isnan(value) and (text != DASH or text in self.na_values)

    def numbers(self, cells: Iterable[str]) -> npt.NDArray[np.float64] | None:
        """Return the numbers of a column, which may have separators of thousands.

        Returns
        -------
        None where a cell is no number, or where the column is not consistent about separators: two
        of them, or a comma or a point in some numbers of four digits and not in others. None as
        well where all of its commas may be decimal ones.
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
        """Return whether a number has a decimal mark that cannot set off thousands."""
        other = "." if self.decimal == "," else ","
        return self.decimal in text and not is_grouped(text, other)


class OfCell(str):
    """A text on a cell, which goes with it.

    Parameters
    ----------
    text, cell
        The text, and the cell.
    """

    __slots__ = ("cell",)

    def __new__(cls, text: str, cell: str) -> Self:
        """Make it of both."""
        made = super().__new__(cls, text)
        made.cell = cell
        return made

    cell: str


class Culprit(NamedTuple):
    """Why texts are no numbers.

    Parameters
    ----------
    reason
        "text" where most are none; "mixed" where most are; "ambiguous" where all are, but in
        different ways, or in one that may be two.
    place
        Where the first stands that is none, or ambiguous.
    detail
        What else is known of it.
    """

    reason: str
    place: int
    detail: str


def why_not_numbers(texts: Sequence[Any]) -> Culprit:
    """Return why the cells of a column are no numbers; None among them is a missing one."""
    first = next((i for i, text in enumerate(texts) if _is_none(text)), None)
    if first is None:
        odd = (i for i, t in enumerate(texts) if isinstance(t, str) and to_number(t) is None)
        place = next(odd, None)
        if place is None:
            return Culprit("text", 0, "")
        text = str(texts[place]).strip()
        number = Numerals().numbers([text]) if is_grouped(text, ".") else None
        other = to_number(text, ",")
        if number is not None and other is not None:
            return Culprit("ambiguous", place, f"which may be {number[0]:.15g} or {other:.15g}")
        return Culprit("ambiguous", place, "which is not written as other numbers there are")
    observed = [t for t in itertools.islice(texts, max(first + 1, _LOOKED_AT)) if t is not None]
    n = sum(not _is_none(text) for text in observed)
    if 2 * n <= len(observed):
        return Culprit("text", first, "")
    return Culprit("mixed", first, f"where {n:,} of {len(observed):,} values are numbers")


def _is_none(text: Any) -> bool:
    """Return whether this is text that is no number, or no text at all."""
    if isinstance(text, str):
        return not is_number(text)
    return not (text is None or isinstance(text, numbers.Real | decimal.Decimal))

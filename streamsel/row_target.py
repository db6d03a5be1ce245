"""The target as rows deliver it: numbers, labels or several targets, one observation at a time."""

from __future__ import annotations

import decimal
import math
import numbers
import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.encode import Encoded, encode
from streamsel.target import NoTarget, Target

Floats = NDArray[np.float64]

# An integer target that has shown 3 to this many distinct values in so many rows may be codes.
_FEW_VALUES = 20
_ENOUGH_ROWS = 50
_LARGEST = 1e150

_FORMS = {"number": "a number", "class": "a label", "several": "a dict of targets"}


class RowTarget:
    """Names and origins of the target columns, which grow as classes and targets appear.

    What the first row brings, a number, a label or a dict of several, the others must bring too. A
    class, or a target of a dict, that appears later had been 0 before.

    Parameters
    ----------
    kind
        "auto", "class" or "numeric", as in `streamsel.target.Target`.

    Attributes
    ----------
    form
        "number", "class" or "several"; None before the first row.
    slots
        Name of a target column -> its place.
    origin
        What is taken off each column, so that an offset of 1e9 does not eat the digits.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.form: str | None = None
        self.slots: dict[Hashable, int] = {}
        self.origin: list[float] = []
        # Distinct integers so far, while they may turn out to be codes of classes.
        self._codes: set[int] | None = set() if kind == "auto" else None

    @classmethod
    def following(cls, target: Target, kind: str) -> RowTarget:
        """Return the target that goes on from one that came as columns."""
        mine = cls(kind)
        if target.is_class:
            mine.form = "class"
        else:
            mine.form = "number" if target.names == [0] else "several"
        mine.slots = {name: k for k, name in enumerate(target.names)}
        mine.origin = target.mean.tolist()
        mine._codes = None
        return mine

    def __len__(self) -> int:
        return len(self.slots)

    def one(self, y: Any) -> tuple[str, dict[Hashable, float]]:
        """Return the form of an observation and its columns that are not 0; change nothing.

        Raises
        ------
        ValueError, TypeError
            For an observation that is missing, not finite, or of another form than those before.
        """
        if isinstance(y, Mapping):
            self._expect("several", y)
            found: dict[Hashable, float] = {}
            for name, value in y.items():
                if self._is_label(value):
                    found[name, _label(value)] = 1.0
                else:
                    found[name] = _number(value)
            return "several", found
        if self._is_label(y):
            self._expect("class", y)
            return "class", {_label(y): 1.0}
        number = _number(y)
        if len(self.slots) == 1 and self.form == "several":
            return "several", {next(iter(self.slots)): number}
        self._expect("number", y)
        return "number", {0: number}

    def many(self, y: Any) -> tuple[str, Encoded]:
        """Return the form and the columns of many observations; change nothing; raise as `one`."""
        kind = {"class": "class", "number": "numeric"}.get(self.form or "", self.kind)
        try:
            encoded = encode(y, kind)
        except TypeError:
            if self.form == "number" and self.kind == "auto":
                encode(y, "auto")
                raise self._other_form("class", y) from None
            raise
        form = "number" if encoded.names == [0] else "several"
        form = "class" if encoded.is_class else form
        if form == "number" and self.form == "several" and len(self.slots) == 1:
            form, encoded = "several", encoded._replace(names=list(self.slots))
        self._expect(form, y)
        bad = np.argwhere(~(np.abs(encoded.columns) <= _LARGEST))
        if bad.size:
            row, column = bad[0].tolist()
            raise ValueError(
                f"Expected a finite target. Got: {encoded.columns[row, column]} in row {row}, "
                f"column {encoded.names[column]!r}.\nHint: drop the rows whose target is missing."
            )
        return form, encoded

    def admit(self, form: str, first: Mapping[Hashable, float]) -> None:
        """Take up new columns, given with their values in the first row that has them."""
        began, self.form = self.form is None, form
        for name, value in first.items():
            if name not in self.slots:
                self.slots[name] = len(self.slots)
                # Rows before this one had 0, and so have rows of other classes.
                self.origin.append(value if began and form != "class" else 0.0)

    def vector(self, found: Mapping[Hashable, float]) -> Floats:
        """Return one observation as (c,) columns about their origin."""
        y = -np.array(self.origin)
        for name, value in found.items():
            y[self.slots[name]] += value
        return y

    def matrix(self, encoded: Encoded) -> Floats:
        """Return many observations as (n, c) columns about their origin."""
        Y = np.zeros((len(encoded.columns), len(self.slots)))
        Y[:, [self.slots[name] for name in encoded.names]] = encoded.columns
        Y -= self.origin
        return Y

    def note_codes(self, values: Any, rows: int) -> None:
        """Warn, once, if a quantity looks like codes of classes."""
        if self._codes is None:
            return
        if self.form != "number" or not all(isinstance(v, numbers.Integral) for v in values):
            self._codes = None
            return
        self._codes.update(map(int, values))
        if len(self._codes) > _FEW_VALUES:
            self._codes = None
        elif rows >= _ENOUGH_ROWS:
            distinct, self._codes = len(self._codes), None
            if distinct >= 3:
                warnings.warn(
                    f"The target has been {distinct} distinct integers in {rows} rows and is taken "
                    "as a quantity. If they are codes of classes say target='class', if not "
                    "target='numeric'.",
                    UserWarning,
                    stacklevel=3,
                )

    def _is_label(self, value: Any) -> bool:
        if self.kind == "class":
            return True
        if isinstance(value, str | bytes):
            if self.kind == "numeric":
                raise TypeError(
                    f"Expected numbers, as target='numeric' says. Got: {value!r}.\n"
                    "Hint: target='class' or 'auto' takes labels."
                )
            return True
        is_bool = isinstance(value, bool | np.bool_)
        return is_bool and self.kind == "auto" and self.form != "number"

    def _expect(self, form: str, y: Any) -> None:
        if self.form not in (None, form):
            raise self._other_form(form, y)

    def _other_form(self, form: str, y: Any) -> TypeError:
        mine = _FORMS[self.form or "number"]
        return TypeError(
            f"Expected {mine} as the target, as in the rows before. Got: {_FORMS[form]}"
            f"{_shown(y)}.\nHint: a model learns one target; model.clone() is a fresh model."
        )


def _shown(y: Any) -> str:
    return f", {y!r}" if isinstance(y, str | bytes | numbers.Number | Mapping) else ""


def _label(value: Any) -> Hashable:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise _no_target(value)
    if not isinstance(value, Hashable):
        raise TypeError(f"Expected a label that can be hashed. Got: {value!r}.")
    return value


def _number(value: Any) -> float:
    if value is None:
        raise _no_target(value)
    if not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
        raise TypeError(
            f"Expected a number, a label or a dict of targets. Got: {value!r}.\n"
            "Hint: several targets of one row are a dict: name -> value."
        )
    number = float(value)
    if not abs(number) <= _LARGEST:
        raise _no_target(value)
    return number


def _no_target(value: Any) -> ValueError:
    return ValueError(
        f"Expected a target, finite and not missing, with every row. Got: {value!r}.\n"
        "Hint: transform rows whose target is not known; learn those whose target is."
    )


def followed_rows(target: Target | NoTarget | None) -> Target | None:
    """Return the target that rows can go on from; raise where there is no target on purpose."""
    if isinstance(target, NoTarget):
        raise ValueError(  # noqa: TRY004
            "Expected a model with a target. Got: rows for one that selects without.\n"
            "Hint: without a target the variables' own observations are needed, column by column."
        )
    return target

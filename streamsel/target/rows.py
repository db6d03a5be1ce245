"""The target as rows deliver it: numbers, labels or several targets, one observation at a time."""

from __future__ import annotations

import decimal
import math
import numbers
import warnings
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.rows import LARGEST
from streamsel.params import shown
from streamsel.rollback import Rollback
from streamsel.shapes import Array, expect
from streamsel.target.covariates import (
    Given,
    covariates_of,
    encode_covariates,
    is_given,
    names_from_state,
    names_to_state,
)
from streamsel.target.encode import (
    FEW_VALUES,
    Encoded,
    encode,
    is_missing,
    kinds_from_state,
    kinds_to_state,
)
from streamsel.target.target import Target

Floats = NDArray[np.float64]

# An integer target that has shown few distinct values in so many rows may be codes.
_ENOUGH_ROWS = 50
# The form of what learns without a target.
NO_TARGET = "none"
_NUMBERS = (float, int)
_FORMS = {"number": "a number", "class": "a label", "several": "a dict of targets"}


class Observation(NamedTuple):
    """What a row, or many, say of the target.

    Parameters
    ----------
    form
        "number", "class" or "several"; `NO_TARGET` without one.
    first
        Target column -> value in the (first) row; a row's that is 0 may be left out.
    kinds, given_kinds
        Of several targets, and of covariates: name -> whether it is labels, and has a column a
        label.
    """

    form: str
    first: Mapping[Hashable, float]
    kinds: Mapping[Hashable, bool] = MappingProxyType({})
    given_kinds: Mapping[Hashable, bool] = MappingProxyType({})


class RowTarget(Rollback):
    """Names and origins of the target columns, which grow as classes and targets appear.

    What the first row brings, a number, a label or a dict of several, the others must bring too. A
    class, or a target of a dict, that appears later had been 0 before.

    Parameters
    ----------
    kind
        "auto", "class" or "numeric", as in `streamsel.target.target.Target`.
    covariates
        Features of a row that are columns beside the target.

    Attributes
    ----------
    form, kinds, given_kinds
        As in `Observation`; form is None before the first row.
    slots
        Name of a target column -> its place.
    origin
        What is taken off each column, so that an offset of 1e9 does not eat the digits.
    """

    changing = ("form", "kinds", "given_kinds", "slots", "origin")

    def __init__(self, kind: str, covariates: tuple[Hashable, ...] = ()) -> None:
        self.kind = kind
        self.covariates = covariates
        self.form: str | None = None
        self.kinds: dict[Hashable, bool] = {}
        self.given_kinds: dict[Hashable, bool] = {}
        self.slots: dict[Hashable, int] = {}
        self.origin: list[float] = []
        # What `again` returns.
        self._one = np.empty(1)
        # Distinct integers so far, while they may turn out to be codes of classes.
        self._codes: set[int] | None = set() if kind == "auto" else None

    @classmethod
    def following(cls, target: Target, kind: str) -> RowTarget:
        """Return the target that goes on from one that came as columns."""
        mine = cls(kind, tuple(target.given_kinds))
        asked = [
            name for name, given in zip(target.names, target.is_given, strict=True) if not given
        ]
        mine.form = _form(asked, is_class=target.is_class)
        mine.kinds = dict(_kinds(mine.form, asked, target.kinds))
        mine.given_kinds = dict(target.given_kinds)
        mine.slots = {name: k for k, name in enumerate(target.names)}
        mine.origin = target.mean.tolist()
        mine.doubt_no_more()
        return mine

    def __len__(self) -> int:
        return len(self.slots)

    def goes_with(self, other: RowTarget) -> bool:
        """Whether another's rows bring a target and covariates of the same form and kinds."""
        pairs = ((self.kinds, other.kinds), (self.given_kinds, other.given_kinds))
        return self.form == other.form and all(
            mine.get(name, is_label) is is_label
            for mine, theirs in pairs
            for name, is_label in theirs.items()
        )

    def asked(self, columns: Iterable[Hashable]) -> int:
        """Return how many of these columns are no covariates."""
        return int((~is_given(list(columns))).sum())

    def is_given(self) -> NDArray[np.bool_]:
        """Return which of the columns are covariates, (c,)."""
        return is_given(list(self.slots))

    def one(self, y: Any, x: Mapping[Hashable, Any] = MappingProxyType({})) -> Observation:
        """Return what a row says, x its covariates; change nothing.

        Raises
        ------
        ValueError, TypeError
            For an observation that is missing, not finite, or of another form than those before.
        """
        if self.covariates:
            return self._beside(self._asked(y), *covariates_of(x, self.covariates))
        return self._asked(y)

    def _beside(
        self, seen: Observation, values: Mapping[Hashable, float], kinds: Mapping[Hashable, bool]
    ) -> Observation:
        """Return the observation with covariates beside the target."""
        for name, is_label in kinds.items():
            if self.given_kinds.get(name, is_label) is not is_label:
                mine, other = ("a number", "a label")[:: 1 if is_label else -1]
                raise TypeError(
                    f"Expected {mine} as the covariate {name!r}, as in the rows before. "
                    f"Got: {other}."
                )
        return seen._replace(first={**seen.first, **values}, given_kinds=kinds)

    def _asked(self, y: Any) -> Observation:
        if type(y) is float and self.form == "number" and abs(y) <= LARGEST:
            # Nearly all rows of a regression.
            return Observation("number", {0: y})
        if isinstance(y, Mapping):
            found: dict[Hashable, float] = {}
            kinds = {}
            for name, value in y.items():
                kinds[name] = self._is_label(value, numeric=self.kinds.get(name) is False)
                column = (name, _label(value)) if kinds[name] else name
                found[column] = 1.0 if kinds[name] else _number(value)
            return self._as_before(Observation("several", found, kinds), y)
        if self._is_label(y, numeric=self.form == "number"):
            return self._as_before(Observation("class", {_label(y): 1.0}), y)
        number = _number(y)
        if self._is_one_number():
            return Observation("several", dict.fromkeys(self.kinds, number))
        return self._as_before(Observation("number", {0: number}), y)

    def many(self, y: Any, covariates: Any = None) -> tuple[Observation, Encoded]:
        """Return what many rows say, and their columns; change nothing; raise as `one`.

        Parameters
        ----------
        y
            The target.
        covariates
            Name -> values of them, or None.
        """
        seen, encoded = self._asked_many(y)
        if covariates is None:
            return seen, encoded
        beside = encode_covariates(covariates, self.covariates)
        if len(beside.columns) != len(encoded.columns):
            raise unequal(len(beside.columns), len(encoded.columns))
        first = dict(zip(beside.names, beside.columns[0].tolist(), strict=True))
        both = encoded._replace(
            columns=np.hstack([encoded.columns, beside.columns]),
            names=[*encoded.names, *beside.names],
        )
        return self._beside(seen, first, beside.kinds), both

    def _asked_many(self, y: Any) -> tuple[Observation, Encoded]:
        if y is None:
            raise no_target(y)
        encoded = encode(y, self.kind, {name for name, label in self.kinds.items() if not label})
        if encoded.is_class and self.form == "number" and {True, False}.issuperset(encoded.names):
            # Booleans are numbers where numbers came before them.
            encoded = encode(y, "numeric")
        form = _form(encoded.names, is_class=encoded.is_class)
        if form == "number" and self._is_one_number():
            form, encoded = "several", encoded._replace(names=list(self.kinds))
        columns = encoded.columns
        # NaN is neither above nor below.
        if not (columns.max(initial=0.0) <= LARGEST and columns.min(initial=0.0) >= -LARGEST):
            row, column = np.argwhere(~(np.abs(columns) <= LARGEST))[0].tolist()
            raise ValueError(
                f"Expected a finite target. Got: {encoded.columns[row, column]} in row {row}, "
                f"column {encoded.names[column]!r}.\nHint: drop the rows whose target is missing."
            )
        first = dict(zip(encoded.names, encoded.columns[0].tolist(), strict=True))
        kinds = _kinds(form, encoded.names, encoded.kinds)
        return self._as_before(Observation(form, first, kinds), y), encoded

    def _is_one_number(self) -> bool:
        """Whether there is one target, under a name, and it is a number."""
        return self.form == "several" and list(self.kinds.values()) == [False]

    def _as_before(self, seen: Observation, y: Any) -> Observation:
        """Return the observation if it is of the form of those before."""
        if self.form not in (None, seen.form):
            raise TypeError(
                f"Expected {_FORMS[self.form]} as the target, as in the rows before. "
                f"Got: {_FORMS[seen.form]}{_shown(y)}.\n"
                "Hint: a model learns one target; model.clone() is a fresh model."
            )
        for name, is_label in seen.kinds.items():
            if self.kinds.get(name, is_label) is not is_label:
                mine, other = ("a number", "a label")[:: 1 if is_label else -1]
                raise TypeError(
                    f"Expected {mine} as the target {name!r}, as in the rows before. "
                    f"Got: {other}{_shown(y)}."
                )
        return seen

    def admit(self, seen: Observation) -> None:
        """Take up the columns that are new."""
        began, self.form = self.form is None, seen.form
        self.kinds.update(seen.kinds)
        self.given_kinds.update(seen.given_kinds)
        for name, value in seen.first.items():
            if name not in self.slots:
                self.slots[name] = len(self.slots)
                # Rows before this one had 0, and so have rows of other classes.
                near = seen.form != "class" or isinstance(name, Given)
                self.origin.append(value if began and near else 0.0)

    def again(self, y: Any) -> Floats | None:
        """Return a row's (c,) columns, until the next row, about their origin.

        None where it does not plainly say of the target what those before did; `one` tells then.
        """
        if self.covariates:
            return None
        if self.form == "number":
            # A boolean is a number where numbers came before it.
            if isinstance(y, _NUMBERS) and -LARGEST <= y <= LARGEST:
                self._one[0] = y - self.origin[0]
                return self._one
        elif self.form == "class":
            if isinstance(y, str) and y in self.slots:
                return self.vector({y: 1.0})
        elif self.form == NO_TARGET:
            return self._one[:0]
        return None

    def vector(self, found: Mapping[Hashable, float]) -> Floats:
        """Return one observation as (c,) columns about their origin."""
        y = [-origin for origin in self.origin]
        for name, value in found.items():
            y[self.slots[name]] += value
        return np.array(y)

    def matrix(self, encoded: Encoded) -> Floats:
        """Return many observations as (n, c) columns, not to be changed.

        They are not about their origin, which may move meanwhile.
        """
        if encoded.names == list(self.slots):
            return encoded.columns
        Y = np.zeros((len(encoded.columns), len(self.slots)))
        Y[:, [self.slots[name] for name in encoded.names]] = encoded.columns
        return Y

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {
            "form": self.form,
            "kinds": kinds_to_state(self.kinds),
            "given_kinds": kinds_to_state(self.given_kinds),
            "names": names_to_state(list(self.slots)),
            "origin": np.array(self.origin),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        if state["form"] not in (None, NO_TARGET, *_FORMS):
            raise ValueError(f"Expected the form of a target. Got: {state['form']!r}.")
        self.form = state["form"]
        self.kinds = kinds_from_state(state["kinds"])
        self.given_kinds = kinds_from_state(state["given_kinds"])
        self.slots = {name: k for k, name in enumerate(names_from_state(state["names"]))}
        c, most = len(self.slots), 2.0 * LARGEST
        expect(state, origin=Array((c,), least=-most, below=most))
        self.origin = state["origin"].tolist()

    def doubt_no_more(self) -> None:
        """Take it that a quantity is one."""
        self._codes = None

    def note_codes(self, y: Any, rows: int) -> None:
        """Warn, once, if a quantity, here observed once or more, looks like codes of classes."""
        if self._codes is None:
            return
        values = np.ravel(y).tolist()
        if self.form != "number" or not all(type(value) is int for value in values):
            self._codes = None
            return
        self._codes.update(values)
        if len(self._codes) > FEW_VALUES:
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

    def _is_label(self, value: Any, *, numeric: bool) -> bool:
        """Whether a value is a label; a boolean is none where numbers came before it."""
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
        return is_bool and self.kind == "auto" and not numeric


def unequal(rows: int, targets: int) -> ValueError:
    """Return the error for a target of another length than the rows."""
    return ValueError(f"Expected as many targets as rows, {rows}. Got: {targets}.")


def _form(names: list[Hashable], *, is_class: bool) -> str:
    if is_class:
        return "class"
    return "number" if names == [0] else "several"


def _kinds(
    form: str, names: list[Hashable], kinds: Mapping[Hashable, bool]
) -> Mapping[Hashable, bool]:
    """Return the kinds of several targets; those of an array are all numbers."""
    if form != "several":
        return {}
    return kinds or dict.fromkeys(names, False)


def _shown(y: Any) -> str:
    return f", {y!r}" if isinstance(y, str | bytes | numbers.Number | Mapping) else ""


def _label(value: Any) -> Hashable:
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        raise no_target(value)
    if not isinstance(value, Hashable):
        raise TypeError(f"Expected a label that can be hashed. Got: {shown(value)}.")
    return value


def _number(value: Any) -> float:
    if value is None:
        raise no_target(value)
    if not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
        raise TypeError(
            f"Expected a number, a label or a dict of targets. Got: {shown(value)}.\n"
            "Hint: several targets of one row are a dict: name -> value."
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:
        raise no_target(number)
    return number


def no_target(value: Any) -> ValueError:
    """Return the error for a target that is missing or not finite."""
    return ValueError(
        f"Expected a target, finite and not missing, with every row. Got: {value!r}.\n"
        "Hint: transform rows whose target is not known; learn those whose target is."
    )

"""The target as rows deliver it: numbers, labels or several targets, one observation at a time."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.rows import LARGEST
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
from streamsel.target.describe import of_classes, of_columns
from streamsel.target.doubts import Doubts
from streamsel.target.encode import (
    Encoded,
    encode,
    is_missing,
    kinds_from_state,
    kinds_to_state,
)
from streamsel.target.observed import (
    NO_TARGET,
    Observation,
    label_of,
    no_target,
    not_whole,
    number_of,
)
from streamsel.target.target import Target

Floats = NDArray[np.float64]

_NUMBERS = (float, int)
_FORMS = {"number": "a number", "class": "a label", "several": "a dict of targets"}


class RowTarget(Doubts, Rollback):
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
    has_numbers
        Whether whole numbers are labels, as the columns that the rows go on from had them.
    origin
        What is taken off each column, so that an offset of 1e9 does not eat the digits.
    """

    changing = ("form", "kinds", "given_kinds", "slots", "origin", "has_numbers")

    def __init__(self, kind: str, covariates: tuple[Hashable, ...] = ()) -> None:
        super().__init__(kind)
        self.kind = kind
        self.covariates = covariates
        self.kinds: dict[Hashable, bool] = {}
        self.given_kinds: dict[Hashable, bool] = {}
        self.origin: list[float] = []
        self.has_numbers = False
        # What `again` returns.
        self._one = np.empty(1)

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
        mine._take_up_numbers()
        mine.doubt_no_more()
        return mine

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def description(self) -> str | None:
        """How the target was taken; rows are not counted by class, nor is a range kept."""
        if self.form == "class":
            return of_classes([name for name in self.slots if not isinstance(name, Given)])
        if self.form == "several":
            return of_columns(self.kinds)
        return "numeric" if self.form == "number" else None

    def _take_up_numbers(self) -> None:
        """Take whole numbers as labels if some label is a number, unless a parameter forbids it."""
        labels = (name for name in self.slots if not isinstance(name, Given | bool))
        is_class = self.form == "class" and self.kind in ("auto", "class")
        self.has_numbers = is_class and any(isinstance(name, numbers.Real) for name in labels)

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
                column = (name, label_of(value)) if kinds[name] else name
                found[column] = 1.0 if kinds[name] else number_of(value)
            return self._as_before(Observation("several", found, kinds), y)
        if self._is_label(y, numeric=self.form == "number"):
            return self._as_before(Observation("class", {label_of(y): 1.0}), y)
        number = number_of(y)
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
        encoded = self._encoded(y)
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

    def _encoded(self, y: Any) -> Encoded:
        if not self.has_numbers or self.kind == "class":
            not_labels = {name for name, is_label in self.kinds.items() if not is_label}
            return encode(y, self.kind, not_labels)
        encoded = encode(y, "class")
        for label in encoded.names:
            if isinstance(label, float):
                raise not_whole(label)
        return encoded

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
                if seen.form == "class" and not self.has_numbers:
                    self._take_up_numbers()

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
            # One that columns had, or rows: 3 is a label if 3 was, and "3" is another.
            if (isinstance(y, str) or (type(y) is int and self.has_numbers)) and y in self.slots:
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
        self._take_up_numbers()
        self._doubts_classes = False

    def _is_label(self, value: Any, *, numeric: bool) -> bool:
        """Whether a value is a label; a boolean is none where numbers came before it."""
        if self.kind == "class":
            return True
        if isinstance(value, str | bytes):
            if self.kind == "numeric":
                raise TypeError(
                    f"Expected numbers, as target='numeric' requires. Got: {value!r}.\n"
                    "Hint: target='class' or target='auto' takes labels."
                )
            return True
        if isinstance(value, bool | np.bool_):
            return self.kind == "auto" and not numeric
        if not self.has_numbers or not isinstance(value, numbers.Real) or is_missing(value):
            return False
        if not float(value).is_integer():
            raise not_whole(value)
        return True


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

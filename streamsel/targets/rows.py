"""Encoding of the targets of rows: numbers, labels, or dicts of several targets."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel._utils.rollback import Rollback
from streamsel.serialization.schema import ArrayKind, expect
from streamsel.targets.description import describe_columns, of_classes
from streamsel.targets.encoding import (
    Covariates,
    Encoded,
    covariates_of,
    encode_covariates,
    encode_target,
    is_covariate,
    is_missing,
    kinds_from_state,
    kinds_to_state,
    names_from_state,
    names_to_state,
)
from streamsel.targets.observation import (
    NO_TARGET,
    Observation,
    label_of,
    missing_target_error,
    not_integer_error,
    number_of,
    too_large_target_error,
)
from streamsel.targets.target import Target
from streamsel.targets.target_warnings import TargetWarnings

Floats = NDArray[np.float64]

_NUMBERS = (float, int)
_FORMS = {"number": "a number", "class": "a label", "several": "a dict of targets"}


class RowTarget(TargetWarnings, Rollback):
    """Names and origins of the target columns, which grow as classes and targets appear.

    All rows must have the form of the first: a number, a label, or a dict of several targets. A
    class, or a target of a dict, that appears later was 0 in all earlier rows.

    Parameters
    ----------
    kind
        "auto", "class" or "numeric", as in `streamsel.targets.target.Target`.
    covariates
        Features of a row that are covariates.

    Attributes
    ----------
    form, kinds, covariate_kinds
        As in `Observation`; form is None before the first row.
    index_of
        Name of a target column -> its index.
    has_integer_labels
        Whether integers are labels, as in the target learnt as columns.
    shift
        The value subtracted from each column, so that a large offset costs no precision.
    """

    changing = ("form", "kinds", "covariate_kinds", "index_of", "shift", "has_integer_labels")

    def __init__(self, kind: str, covariates: tuple[Hashable, ...] = ()) -> None:
        super().__init__(kind)
        self.kind = kind
        self.covariates = covariates
        self.kinds: dict[Hashable, bool] = {}
        self.covariate_kinds: dict[Hashable, bool] = {}
        self.shift: list[float] = []
        self.has_integer_labels = False
        # Reused by `encode_known` for its result.
        self._buffer = np.empty(1)

    @classmethod
    def from_target(cls, target: Target, kind: str) -> RowTarget:
        """Return the row target that continues a target learnt as columns."""
        row_target = cls(kind, tuple(target.covariate_kinds))
        names = [
            name for name, given in zip(target.names, target.is_covariate, strict=True) if not given
        ]
        row_target.form = _form(names, is_class=target.is_class)
        row_target.kinds = dict(_kinds(row_target.form, names, target.kinds))
        row_target.covariate_kinds = dict(target.covariate_kinds)
        row_target.index_of = {name: k for k, name in enumerate(target.names)}
        row_target.shift = target.mean.tolist()
        row_target._set_integer_labels()
        row_target.disable_code_warning()
        return row_target

    def __len__(self) -> int:
        return len(self.index_of)

    @property
    def description(self) -> str | None:
        """A description of the target, without class sizes or a range."""
        if self.form == "class":
            return of_classes([name for name in self.index_of if not isinstance(name, Covariates)])
        if self.form == "several":
            return describe_columns(self.kinds)
        return "numeric" if self.form == "number" else None

    def _set_integer_labels(self) -> None:
        """Accept integers as labels if a known label is a number and the kind allows it."""
        labels = (name for name in self.index_of if not isinstance(name, Covariates | bool))
        is_class = self.form == "class" and self.kind in ("auto", "class")
        self.has_integer_labels = is_class and any(
            isinstance(name, numbers.Real) for name in labels
        )

    def is_compatible(self, other: RowTarget) -> bool:
        """Whether another row target has a target and covariates of the same form and kinds."""
        pairs = ((self.kinds, other.kinds), (self.covariate_kinds, other.covariate_kinds))
        return self.form == other.form and all(
            mine.get(name, is_label) is is_label
            for mine, theirs in pairs
            for name, is_label in theirs.items()
        )

    def count_targets(self, columns: Iterable[Hashable]) -> int:
        """Return the number of these columns that are not covariates."""
        return int((~is_covariate(list(columns))).sum())

    def is_covariate(self) -> NDArray[np.bool_]:
        """Return which columns are covariates, (c,)."""
        return is_covariate(list(self.index_of))

    def observe_one(self, y: Any, x: Mapping[Hashable, Any] = MappingProxyType({})) -> Observation:
        """Return the observation of a row with features x, without changing the state.

        Raises
        ------
        ValueError, TypeError
            For an observation that is missing, not finite, or of another form than those before.
        """
        if self.covariates:
            return self._with_covariates(
                self._observation_of(y), *covariates_of(x, self.covariates)
            )
        return self._observation_of(y)

    def _with_covariates(
        self, seen: Observation, values: Mapping[Hashable, float], kinds: Mapping[Hashable, bool]
    ) -> Observation:
        """Return the observation extended by covariates."""
        for name, is_label in kinds.items():
            if self.covariate_kinds.get(name, is_label) is not is_label:
                expected, got = ("a number", "a label")[:: 1 if is_label else -1]
                raise TypeError(
                    f"Expected {expected} as the covariate {name!r}, as in the rows before. "
                    f"Got: {got}."
                )
        return seen._replace(first={**seen.first, **values}, given_kinds=kinds)

    def _observation_of(self, y: Any) -> Observation:
        if type(y) is float and self.form == "number" and abs(y) <= MAX_ABS_VALUE:
            # The fast path for regression.
            return Observation("number", {0: y})
        if isinstance(y, Mapping):
            found: dict[Hashable, float] = {}
            kinds = {}
            for name, value in y.items():
                kinds[name] = self._is_label(value, numeric=self.kinds.get(name) is False)
                column = (name, label_of(value)) if kinds[name] else name
                found[column] = 1.0 if kinds[name] else number_of(value)
            return self._check_form(Observation("several", found, kinds), y)
        if self._is_label(y, numeric=self.form == "number"):
            return self._check_form(Observation("class", {label_of(y): 1.0}), y)
        number = number_of(y)
        if self._is_one_number():
            return Observation("several", dict.fromkeys(self.kinds, number))
        return self._check_form(Observation("number", {0: number}), y)

    def observe_many(self, y: Any, covariates: Any = None) -> tuple[Observation, Encoded]:
        """Return the observation of many rows, and their columns, as `observe_one` does one.

        Parameters
        ----------
        y
            The target.
        covariates
            Name -> values, or None.
        """
        seen, encoded = self._observations_of(y)
        if covariates is None:
            return seen, encoded
        covariate_columns = encode_covariates(covariates, self.covariates)
        if len(covariate_columns.columns) != len(encoded.columns):
            raise unequal_length_error(len(covariate_columns.columns), len(encoded.columns))
        first = dict(
            zip(covariate_columns.names, covariate_columns.columns[0].tolist(), strict=True)
        )
        both = encoded._replace(
            columns=np.hstack([encoded.columns, covariate_columns.columns]),
            names=[*encoded.names, *covariate_columns.names],
        )
        return self._with_covariates(seen, first, covariate_columns.kinds), both

    def _observations_of(self, y: Any) -> tuple[Observation, Encoded]:
        if y is None:
            raise missing_target_error(y)
        encoded = self._encoded(y)
        if encoded.is_class and self.form == "number" and {True, False}.issuperset(encoded.names):
            # Booleans are numbers if numbers came before them.
            encoded = encode_target(y, "numeric")
        form = _form(encoded.names, is_class=encoded.is_class)
        if form == "number" and self._is_one_number():
            form, encoded = "several", encoded._replace(names=list(self.kinds))
        columns = encoded.columns
        # NaN fails both comparisons.
        if not (
            columns.max(initial=0.0) <= MAX_ABS_VALUE and columns.min(initial=0.0) >= -MAX_ABS_VALUE
        ):
            row, column = np.argwhere(~(np.abs(columns) <= MAX_ABS_VALUE))[0].tolist()
            got = f"{columns[row, column]} in row {row}, column {encoded.names[column]!r}"
            if np.isfinite(columns[row, column]):
                raise too_large_target_error(got)
            raise ValueError(
                f"Expected a finite target. Got: {got}.\nHint: drop rows with a missing target."
            )
        first = dict(zip(encoded.names, encoded.columns[0].tolist(), strict=True))
        kinds = _kinds(form, encoded.names, encoded.kinds)
        return self._check_form(Observation(form, first, kinds), y), encoded

    def _encoded(self, y: Any) -> Encoded:
        if not self.has_integer_labels or self.kind == "class":
            not_labels = {name for name, is_label in self.kinds.items() if not is_label}
            return encode_target(y, self.kind, not_labels)
        encoded = encode_target(y, "class")
        for label in encoded.names:
            if isinstance(label, float):
                raise not_integer_error(label)
        return encoded

    def _is_one_number(self) -> bool:
        """Whether there is exactly one named target, and it is numeric."""
        return self.form == "several" and list(self.kinds.values()) == [False]

    def _check_form(self, seen: Observation, y: Any) -> Observation:
        """Return the observation if its form is that of those before."""
        if self.form not in (None, seen.form):
            raise TypeError(
                f"Expected {_FORMS[self.form]} as the target, as in the rows before. "
                f"Got: {_FORMS[seen.form]}{_shown(y)}.\n"
                "Hint: a model learns one target; model.clone() returns an unfitted model."
            )
        for name, is_label in seen.kinds.items():
            if self.kinds.get(name, is_label) is not is_label:
                expected, got = ("a number", "a label")[:: 1 if is_label else -1]
                raise TypeError(
                    f"Expected {expected} as the target {name!r}, as in the rows before. "
                    f"Got: {got}{_shown(y)}."
                )
        return seen

    def add_columns(self, seen: Observation) -> None:
        """Add the columns that are new."""
        is_first, self.form = self.form is None, seen.form
        self.kinds.update(seen.kinds)
        self.covariate_kinds.update(seen.given_kinds)
        for name, value in seen.first.items():
            if name not in self.index_of:
                self.index_of[name] = len(self.index_of)
                # Earlier rows had 0 here, as have rows of other classes.
                has_offset = seen.form != "class" or isinstance(name, Covariates)
                self.shift.append(value if is_first and has_offset else 0.0)
                if seen.form == "class" and not self.has_integer_labels:
                    self._set_integer_labels()

    def encode_known(self, y: Any) -> Floats | None:
        """Return a row's (c,) columns about their origin, valid until the next row.

        None if this fast path does not apply; `observe_one` then handles the row.
        """
        if self.covariates:
            return None
        if self.form == "number":
            # A boolean is a number if numbers came before it.
            if isinstance(y, _NUMBERS) and -MAX_ABS_VALUE <= y <= MAX_ABS_VALUE:
                self._buffer[0] = y - self.shift[0]
                return self._buffer
        elif self.form == "class":
            # Only a known label of the same type: 3 and "3" are different labels.
            if (
                isinstance(y, str) or (type(y) is int and self.has_integer_labels)
            ) and y in self.index_of:
                return self.vector({y: 1.0})
        elif self.form == NO_TARGET:
            return self._buffer[:0]
        return None

    def vector(self, found: Mapping[Hashable, float]) -> Floats:
        """Return one observation as (c,) columns about their origin."""
        y = [-origin for origin in self.shift]
        for name, value in found.items():
            y[self.index_of[name]] += value
        return np.array(y)

    def matrix(self, encoded: Encoded) -> Floats:
        """Return many observations as (n, c) columns, not to be changed.

        They are not shifted by the origin, which may change meanwhile.
        """
        if encoded.names == list(self.index_of):
            return encoded.columns
        Y = np.zeros((len(encoded.columns), len(self.index_of)))
        Y[:, [self.index_of[name] for name in encoded.names]] = encoded.columns
        return Y

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "form": self.form,
            "kinds": kinds_to_state(self.kinds),
            "given_kinds": kinds_to_state(self.covariate_kinds),
            "names": names_to_state(list(self.index_of)),
            "origin": np.array(self.shift),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`."""
        if state["form"] not in (None, NO_TARGET, *_FORMS):
            raise ValueError(
                f"Expected the form of a target, one of {list(_FORMS)}. Got: {state['form']!r}."
            )
        self.form = state["form"]
        self.kinds = kinds_from_state(state["kinds"])
        self.covariate_kinds = kinds_from_state(state["given_kinds"])
        self.index_of = {name: k for k, name in enumerate(names_from_state(state["names"]))}
        c, upper = len(self.index_of), 2.0 * MAX_ABS_VALUE
        expect(state, origin=ArrayKind((c,), minimum=-upper, below=upper))
        self.shift = state["origin"].tolist()
        self._set_integer_labels()
        self._may_warn_of_classes = False

    def _is_label(self, value: Any, *, numeric: bool) -> bool:
        """Whether a value is a label; a boolean is not one if numbers came before it."""
        if self.kind == "class":
            return True
        if isinstance(value, str | bytes):
            if self.kind == "numeric":
                raise TypeError(
                    f"Expected numbers, as target_type='numeric' requires. Got: {value!r}.\n"
                    "Hint: target_type='class' or target_type='auto' accepts labels."
                )
            return True
        if isinstance(value, bool | np.bool_):
            return self.kind == "auto" and not numeric
        if not self.has_integer_labels or not isinstance(value, numbers.Real) or is_missing(value):
            return False
        if not float(value).is_integer():
            raise not_integer_error(value)
        return True


def unequal_length_error(rows: int, targets: int) -> ValueError:
    """Return the error for a target whose length differs from the number of rows."""
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

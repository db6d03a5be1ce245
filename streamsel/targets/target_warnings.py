"""Warnings about targets of rows: integers that may be class codes, and too many classes."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsel.targets.encoding import FEW_VALUES, Covariates
from streamsel.targets.observation import Observation

# After this many rows, an integer target with few distinct values may be class codes.
_MIN_ROWS = 50
# More numeric classes than this, and more than one per two rows, are a quantity.
_MAX_CLASSES = 50


class TargetWarnings:
    """Warnings about a target that arrives row by row, each given once.

    Parameters
    ----------
    kind
        "auto", "class" or "numeric".

    Attributes
    ----------
    form, index_of
        As in `RowTarget`.
    """

    def __init__(self, kind: str) -> None:
        self.form: str | None = None
        self.index_of: dict[Hashable, int] = {}
        # Whether to warn of many classes.
        self._may_warn_of_classes = True
        # Distinct integers so far, while they may be class codes.
        self._codes: set[int] | None = set() if kind == "auto" else None

    def disable_code_warning(self) -> None:
        """Disable the warning about class codes."""
        self._codes = None

    def check_classes(self, seen: Observation, rows: int) -> None:
        """Raise ValueError for nearly as many numeric classes as rows; else warn, once.

        Parameters
        ----------
        seen
            The targets of the rows that are about to be learnt.
        rows
            The number of rows including these.
        """
        if seen.form != "class":
            return
        labels = {*self.index_of, *seen.first}
        c = sum(not isinstance(label, Covariates) for label in labels)
        if c <= FEW_VALUES or 2 * c <= rows:
            return
        text = f"{c} classes in {rows} rows"
        hint = (
            "Hint: target_type='numeric' treats numbers as a quantity; is the target an identifier?"
        )
        if c > _MAX_CLASSES and any(isinstance(label, numbers.Real) for label in labels):
            raise ValueError(f"Expected classes that several rows share. Got: {text}.\n{hint}")
        if self._may_warn_of_classes:
            self._may_warn_of_classes = False
            warnings.warn(
                f"The target has had {text}, and each takes a column of memory.\n{hint}",
                UserWarning,
                stacklevel=3,
            )

    def check_codes(self, y: Any, rows: int) -> None:
        """Warn, once, if a quantity that was just observed looks like codes of classes."""
        if self._codes is None:
            return
        values = np.ravel(y).tolist()
        if self.form != "number" or not all(type(value) is int for value in values):
            self._codes = None
            return
        self._codes.update(values)
        if len(self._codes) > FEW_VALUES:
            self._codes = None
        elif rows >= _MIN_ROWS:
            distinct, self._codes = len(self._codes), None
            if distinct >= 3:
                warnings.warn(
                    f"The target has had {distinct} distinct integers in {rows} rows and is "
                    "treated as a quantity.\nHint: target_type='class' treats them as classes; "
                    "target_type='numeric' confirms that they are a quantity.",
                    UserWarning,
                    stacklevel=3,
                )

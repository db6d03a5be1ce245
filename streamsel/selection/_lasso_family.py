"""Choice of the Lasso's loss: least squares, or the logistic loss, on windows of rows."""

from __future__ import annotations

from streamsel.learner.jointly import Jointly
from streamsel.target.observed import Observation
from streamsel.target.rows import RowTarget
from streamsel.target.target import Target


class ByFamily(Jointly):
    """Learner whose loss is set by its parameter `family`, or by the target."""

    family: str

    def _check_target(self, c: int, *, is_class: bool) -> None:
        numeric, binary = not is_class and c == 1, is_class and c <= 2
        is_supported, expected = numeric, "one numeric target"
        if self.family == "logistic":
            is_supported, expected = binary, "two classes"
        elif self._may_be_logistic:
            is_supported, expected = numeric or binary, "one numeric target or two classes"
        if not is_supported:
            setting = f"family={self.family!r}"
            if self.family == "auto" and self._least_squares_for:
                setting += f" with {self._least_squares_for}"
            raise ValueError(
                f"Expected {expected}, as {setting} requires. Got: {c} "
                f"{'classes' if is_class else 'numeric columns'}.\n"
                "Hint: family='logistic' requires two classes; target='class' treats numbers as "
                "classes, target='numeric' as a quantity."
            )

    @property
    def _least_squares_for(self) -> str:
        """The setting that requires least squares; empty if there is none."""
        if self.fading_factor:
            return f"fading_factor={self.fading_factor!r}"
        return "" if self.covariates is None else f"covariates={self.covariates!r}"

    @property
    def _may_be_logistic(self) -> bool:
        return self.family == "auto" and not self._least_squares_for

    def _take_target(self, target: Target) -> None:
        before, self._target = self._target, target
        try:
            # The checks depend on the loss, and the loss on the target.
            super()._take_target(target)
        except BaseException:
            self._target = before
            raise

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        if seen.form == "class" and not self._by_window:
            raise ValueError(
                f"Expected a numeric target of rows, as family={self.family!r} requires. Got: "
                "a label.\nHint: family='logistic' learns rows of two classes, in windows."
            )
        super()._check_columns(target, seen, rows)

    @property
    def _is_logistic(self) -> bool:
        """Whether the loss is logistic: by the family, or else by the target."""
        if self.family != "auto":
            return self.family == "logistic"
        # The constructor reads this before the target is set.
        target = getattr(self, "_target", None)
        return target is not None and target.is_class

    @property
    def _by_window(self) -> bool:
        return self._is_logistic or super()._by_window

    @property
    def _kind_of_rows(self) -> str:
        is_any_label = self.target == "auto" and self.family == "logistic"
        return "class" if is_any_label else super()._kind_of_rows

    def _target_description(self) -> str | None:
        text = super()._target_description()
        is_inferred = self.family == "auto" and self._is_logistic
        return f"{text}; logistic loss" if text is not None and is_inferred else text

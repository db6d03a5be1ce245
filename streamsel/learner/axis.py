"""What the two axes have in common: the parameters that they read, and what a method may say."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable
from typing import Any, ClassVar

from streamsel.held.beside import Beside
from streamsel.held.part import ColumnHeld
from streamsel.held.summary import StreamSummary
from streamsel.learner.window import Window
from streamsel.target.kernels import VariableKernel
from streamsel.target.space import TargetSpace
from streamsel.target.target import NoTarget, Target


class Axis(abc.ABC):
    """What columns and rows ask of a learner; its parameters are described in `Learner`."""

    supervised: ClassVar[bool]
    # Whether `learn_target(None)` lets the variables explain each other.
    takes_no_target: ClassVar[bool] = False
    # Whether a column may have values that were not observed, NaN; without a target only.
    takes_missing: ClassVar[bool] = False

    fading_factor: float
    max_features: int | None
    grace_period: int
    warm_up: int
    covariates: tuple[Hashable, ...] | None
    target: str
    n_jobs: int
    # Of learners that have a target.
    permutations: int
    permutation_seed: int

    n_columns: int
    n_passes: float
    _n_constant: int
    _target: Target | NoTarget | None
    _space: TargetSpace | None
    _without_target: bool
    _columns: ColumnHeld | None
    _summary: StreamSummary | None
    # Rows that wait to be learnt as columns; None before the first.
    _window: Window | None
    # Values computed from the state, until it changes.
    _found: dict[str, Any]
    # The row at which what transforms use is renewed.
    _due: int

    # What a method may say

    def _check_target(self, c: int, *, is_class: bool) -> None:  # noqa: B027
        """Refuse a target, of c columns, that the parameters cannot be used with."""

    def _refuses_target(self, c: int, *, is_class: bool) -> bool:
        """Whether the parameters cannot be used with a target of c columns."""
        try:
            self._check_target(c, is_class=is_class)
        except ValueError:
            return True
        return False

    @property
    def _needs_classes(self) -> bool:
        """Whether what is learnt is a difference between classes, of several rows each."""
        return self._refuses_target(1, is_class=False)

    @property
    def _kind_of_rows(self) -> str:
        """How the targets of rows are taken: by default as the parameter `target` has it."""
        return self.target

    def _variable_kernel(self) -> VariableKernel:
        """Return the kernel between variables."""
        return VariableKernel()

    @property
    def _is_signed(self) -> bool:
        """Whether a negative correlation is a small one."""
        return False

    @property
    def _takes_covariates(self) -> bool:
        """Whether columns may be asked given covariates; windows of rows know none."""
        return not self._by_window

    @property
    def _takes_weights(self) -> bool:
        """Whether observations may have weights: means and inner products tell what is asked."""
        return self._takes_covariates and not self.takes_missing

    @property
    def _one_source(self) -> bool:
        """Whether one source is learnt, once, and read again until the answer is proven."""
        return False

    @abc.abstractmethod
    def _new_columns(self, n: int) -> ColumnHeld:
        """Return an empty state for columns of n observations."""

    @abc.abstractmethod
    def _protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""

    def _new_beside(self) -> Beside | None:
        """Return what learns rows beside the moments, if anything; it goes on from the columns."""
        return None

    # What the axes ask of one another

    @property
    @abc.abstractmethod
    def n_rows(self) -> int | None:
        """Rows seen."""

    @property
    @abc.abstractmethod
    def n_constant(self) -> int:
        """Variables among those seen that do not vary."""

    @property
    @abc.abstractmethod
    def _on_rows(self) -> bool:
        """Whether rows were learnt."""

    @property
    @abc.abstractmethod
    def _by_window(self) -> bool:
        """Whether rows are kept until there is a window of them, and then swept as columns."""

    @abc.abstractmethod
    def _carried_constant(self) -> int:
        """Return how many of the columns that rows go on from do not vary."""

    @property
    @abc.abstractmethod
    def _renews_always(self) -> bool:
        """Whether what transforms use is that of now, so that nothing is due."""

    @abc.abstractmethod
    def _stand_on(self, rows: int) -> None:
        """Begin rows after so many that came as columns."""

    @abc.abstractmethod
    def _renew_if_due(self, rows: int) -> None:
        """Renew what transforms use if so many rows are enough."""

    @abc.abstractmethod
    def _rows_until_renewal(self, rows: int) -> int | None:
        """Return how many rows may be learnt before `_renew_if_due` must be asked."""

    @abc.abstractmethod
    def renew(self) -> None:
        """Let transforms use what is found now, at once."""

    @abc.abstractmethod
    def _forget_due(self) -> None:
        """Look again before the next row whether there is more to do than to learn it."""

    @abc.abstractmethod
    def _forget_names(self) -> None:
        """Forget the names of the row before: their places may be others."""

    @abc.abstractmethod
    def _outdate(self) -> None:
        """Drop what was computed from what is held: it is about to change, or has."""

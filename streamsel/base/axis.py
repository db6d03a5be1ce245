"""Declare the members that the column axis and the row axis share, and cache results."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Collection, Hashable
from typing import Any, ClassVar, TypeVar

from streamsel.base.guard import overflow_errors
from streamsel.base.windows import Window
from streamsel.state.base import ColumnState
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.stream_summary import StreamSummary
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target

Value = TypeVar("Value")


def cached_until_update(compute: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Decorate a method to cache its result until the next update of the model."""
    name = compute.__name__

    @functools.wraps(compute)
    def cached(self: Any) -> Value:
        cache = self._cache
        if name not in cache:
            with overflow_errors():
                cache[name] = compute(self)
        value: Value = cache[name]
        return value

    return cached


class Axis(abc.ABC):
    """Interface between the two axes and the learner; `Learner` documents the parameters."""

    _is_supervised: ClassVar[bool]
    # Whether `learn_target(None)` is allowed, for unsupervised selection.
    _takes_no_target: ClassVar[bool] = False
    # Whether columns may have missing values, NaN; only without a target.
    _takes_missing: ClassVar[bool] = False

    fading_factor: float
    max_features: int | None
    grace_period: int
    warm_up: int
    covariates: tuple[Hashable, ...] | None
    target_type: str
    n_jobs: int
    # Supervised learners only.
    permutations: int
    permutation_seed: int

    n_columns: int
    n_passes: float
    _n_constant: int
    _target: Target | NoTarget | None
    _space: TargetSpace | None
    _without_target: bool
    _columns: ColumnState | None
    _summary: StreamSummary | None
    # Buffered rows, to be learnt as columns; None before the first row.
    _window: Window | None
    # Results computed from the state, kept until the next update.
    _cache: dict[str, Any]
    # Row number of the next refresh of the snapshot in use.
    _refresh_at: int

    # Methods may override these

    def _check_target(self, c: int, *, is_class: bool) -> None:  # noqa: B027
        """Raise ValueError if the parameters do not support a target of c columns."""

    def _refuses_target(self, c: int, *, is_class: bool) -> bool:
        """Whether the parameters do not support a target of c columns."""
        try:
            self._check_target(c, is_class=is_class)
        except ValueError:
            return True
        return False

    @property
    def _needs_classes(self) -> bool:
        """Whether the method requires classes of several rows each."""
        return self._refuses_target(1, is_class=False)

    @property
    def _row_target_type(self) -> str:
        """Target type on rows; by default the parameter `target`."""
        return self.target_type

    def _variable_kernel(self) -> VariableKernel:
        """Return the kernel between variables."""
        return VariableKernel()

    @property
    def _is_signed(self) -> bool:
        """Whether correlations are compared with their sign, so that negative ones are small."""
        return False

    @property
    def _takes_covariates(self) -> bool:
        """Whether columns may have covariates; windows of rows do not support them."""
        return not self._by_window

    @property
    def _takes_weights(self) -> bool:
        """Whether observations may have weights: true if means and inner products suffice."""
        return self._takes_covariates and not self._takes_missing

    @property
    def _needs_single_source(self) -> bool:
        """Whether a single source is learnt, in several passes until the answer is proven."""
        return False

    @abc.abstractmethod
    def _new_columns(self, n: int) -> ColumnState:
        """Return an empty state for columns of n observations."""

    @abc.abstractmethod
    def _protected(self) -> Collection[Hashable]:
        """Return the names of variables that must not be evicted."""

    def _new_row_extension(self) -> RowExtension | None:
        """Return the extension of the moments on rows, if any, which continues from the columns."""
        return None

    # Used by one axis, implemented by another class

    @property
    @abc.abstractmethod
    def n_rows(self) -> int | None:
        """Number of rows seen."""

    @property
    @abc.abstractmethod
    def n_constant(self) -> int:
        """Number of constant variables among those seen."""

    @property
    @abc.abstractmethod
    def _on_rows(self) -> bool:
        """Whether rows were learnt."""

    @property
    @abc.abstractmethod
    def _by_window(self) -> bool:
        """Whether rows are buffered in windows, which are learnt as columns."""

    @abc.abstractmethod
    def _n_constant_carried(self) -> int:
        """Return the number of constant columns that rows continue from."""

    @property
    @abc.abstractmethod
    def _refreshes_always(self) -> bool:
        """Whether transforms use the current results, so that no refresh is ever due."""

    @abc.abstractmethod
    def _start_rows(self, rows: int) -> None:
        """Start rows after this number of observations in columns."""

    @abc.abstractmethod
    def _refresh_if_due(self, rows: int) -> None:
        """Refresh the snapshot in use if it is due after this number of rows."""

    @abc.abstractmethod
    def _rows_until_refresh(self, rows: int) -> int | None:
        """Return the number of rows before a `_refresh_if_due` is necessary; None for any."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """Refresh the snapshot that transforms use, from the current results."""

    @abc.abstractmethod
    def _recheck_due(self) -> None:
        """Check before the next row whether further work is due."""

    @abc.abstractmethod
    def _clear_row_cache(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""

    @abc.abstractmethod
    def _invalidate(self) -> None:
        """Clear cached results: the state is about to change, or has changed."""

"""Define the base class of all learners: selectors and extractors, on columns and on rows."""

from __future__ import annotations

import abc
import dis
import functools
import inspect
from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
from river import base as river

from streamsel import params
from streamsel.base.guard import SingleThreadGuard, reads_consistently
from streamsel.base.merging import PartitionedLearning
from streamsel.base.precompile import compile_by_rehearsal
from streamsel.base.refresh import RefreshSchedule
from streamsel.base.report import Report
from streamsel.base.significance import Significance
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.serialization.invariants import expect_explained, expect_relevances
from streamsel.serialization.json_values import deep_copied
from streamsel.serialization.schema import (
    BoolKind,
    CountKind,
    FloatKind,
    NamesKind,
    OptionalKind,
    expect,
    expect_finite,
)
from streamsel.state.base import ColumnState, VariableState
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.sketch import RandomSketch, Stateless
from streamsel.targets.observation import NO_TARGET
from streamsel.targets.target import KINDS, NoTarget, Target


def check_hooks(cls: Any) -> None:
    """Raise TypeError if a hook uses a member that the states of its class do not provide."""
    if not hasattr(cls, "_is_supervised"):
        raise TypeError(
            f"{cls.__name__} does not declare whether it has a target.\n"
            "Hint: make Supervised or Unsupervised its last base class."
        )
    if issubclass(cls._row_state_type, Window) and "window_size" not in params.rules_of(cls):
        raise TypeError(
            f"{cls.__name__} learns rows by windows, but has no parameter window_size.\n"
            "Hint: window_size: int = param(params.IntRule(2), default=200)."
        )
    states = [cls._column_state_type] + (
        [cls._row_state_type]
        if issubclass(cls._row_state_type, (VariableState, RowExtension))
        else []
    )
    # Name the most general state that provides a member: base classes come first.
    known = {offer: kind for kind in reversed(_states(VariableState)) for offer in kind.provides}
    for name in cls._hooks:
        hook = getattr(cls, name)
        used = {
            step.argval
            for step in dis.get_instructions(hook)
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        }
        for offer in sorted(used & known.keys()):
            for state in states:
                if offer not in state.provides:
                    raise TypeError(
                        f"{cls.__name__}.{name} uses {offer!r}, which {state.__name__} does "
                        f"not provide.\nHint: {known[offer].__name__} does; use that state, or "
                        "windows of rows (_row_state_type = Window)."
                    )


def _states(kind: type) -> list[Any]:
    subclasses: list[type] = kind.__subclasses__()
    return [kind, *(state for sub in subclasses for state in _states(sub))]


class Learner(PartitionedLearning, Significance, RefreshSchedule, river.MiniBatchTransformer):
    """Base class of selectors and extractors: one state, filled by columns and by rows.

    A subclass declares its states by the three class attributes below and implements one hook.
    Input validation, rollback, the transition from columns to rows, model files, merging, the
    noise floor and reports are inherited.

    A model may be used by one thread at a time: a second thread that tries to learn raises
    RuntimeError. The threads that `n_jobs` starts are managed by the model itself.

    Attributes
    ----------
    n_columns
        Number of variables seen as columns.
    n_passes
        Number of passes over the columns; a fraction if the last one ended early.
    _column_state_type
        The state that columns fill.
    _row_state_type
        What the method uses on rows: `Moments`; a state that extends them; a tumbling `Window`,
        which requires a parameter `window_size`; or `Stateless`, no state at all.
    _is_supervised
        Whether there is a target, set by the base class `Supervised` or `Unsupervised`.
    """

    _column_state_type: ClassVar[type[ColumnState]]
    _row_state_type: ClassVar[type[VariableState | RowExtension | Window | Stateless]] = Moments
    # Methods that are passed the state; they may use only members that all of its states provide.
    _hooks: ClassVar[tuple[str, ...]] = ()

    fading_factor: float = param(
        params.FloatRule(0.0, below=1.0),
        default=0.0,
        doc="""
        In [0, 1): the fraction of its weight that a row loses with every later row; 0 forgets
        nothing. As in River, the closer to 1, the faster old rows are forgotten.
        """,
    )
    max_features: int | None = param(
        params.IntRule(1, optional=True),
        default=None,
        doc="""
        Maximum number of variables tracked on rows; None for all. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period.
        """,
    )
    grace_period: int = param(
        params.IntRule(1),
        default=100,
        doc="Number of rows during which a new variable cannot be evicted.",
    )
    covariates: tuple[Hashable, ...] | None = param(
        params.NamesRule(),
        default=None,
        doc="""
        Features of a row to adjust for, such as age or batch: they are projected out of the target
        and the variables, and are not variables themselves. On columns they are passed with the
        target, `learn_target(y, covariates=Z)`, and this parameter gives their names.
        """,
    )
    target_type: str = param(
        params.ChoiceRule(KINDS),
        default="auto",
        doc="""
        `"auto"` treats labels as classes and numbers as quantities, except on columns, where a
        single target of whole numbers with 2 to 20 distinct values, at most one per two rows, is
        treated as classes; `"class"` treats any numbers as classes; `"numeric"` treats numbers as
        quantities and rejects labels; `"survival"` takes times and events, on columns only, and
        explains the martingale residuals of the null model.
        """,
    )
    n_jobs: int = param(
        params.JobsRule(),
        default=1,
        doc="""
        Number of threads that process columns; -1 for all cores. The result does not depend on it.
        Several threads are faster with several targets or classes; with a single target, only for
        blocks of at least ten million values.
        """,
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "report" in vars(cls):
            setattr(cls, "report", reads_consistently(vars(cls)["report"]))  # noqa: B010 (a method)
        if not inspect.isabstract(cls) and hasattr(cls, "_column_state_type"):
            check_hooks(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._by_window:
            self._refuse_with_windows(self.fading_factor != 0.0, "fading_factor=0.0")
            self._refuse_with_windows(self.covariates is not None, "covariates=None")
        if not self._is_supervised and self.covariates is not None:
            raise ValueError(
                f"Expected covariates=None: {type(self).__name__} has no target to adjust for "
                f"covariates. Got: {self.covariates!r}."
            )
        self._check_parameters()
        # Guards against concurrent use: a state changes in several steps.
        self._guard = SingleThreadGuard()
        self._begin_columns()
        self._begin_rows()
        self._begin_refresh()
        # Results computed from the state, kept until the next update.
        self._cache: dict[str, Any] = {}

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that contradict each other."""

    def _refuse_with_windows(self, is_refused: bool, expected: str) -> None:
        if is_refused:
            raise ValueError(
                f"Expected {expected}: {type(self).__name__} with these parameters needs samples, "
                "not only moments, and learns rows by windows.\n"
                "Hint: a window drops all rows before it; only moments support covariates."
            )

    def _take_target(self, target: Target) -> None:
        given = bool(target.covariate_kinds)
        self._refuse_with_windows(given and not self._takes_covariates, "no covariates")
        super()._take_target(target)

    def _check_exceeds(self, size: str, least: int | None, *names: str) -> None:
        """Raise ValueError for bounds not above `least`, the value of the parameter `size`."""
        for name in names:
            bound = getattr(self, name)
            if bound is not None and least is not None and bound <= least:
                expected = f"None or above {size} = {least}"
                raise params.parameter_error(type(self).__name__, name, expected, bound)

    @property
    def _wants_second_pass(self) -> bool:
        """Whether a second pass over the columns, by `learn_loadings`, would add results."""
        return False

    @property
    def _stop_reason(self) -> str:
        """Why there are fewer results than requested, given enough columns and rows."""
        return "no other column adds explained variance"

    @property
    def _by_window(self) -> bool:
        return issubclass(self._row_state_type, Window)

    @property
    def _window_size(self) -> int:
        size: int = getattr(self, "window_size")  # noqa: B009 (declared where it is needed)
        return size

    # Learnt state

    @property
    def _state(self) -> VariableState | None:
        """The state of the variables, from columns or from rows; None before the first."""
        return self._columns if self._moments is None else self._moments

    @property
    def n_rows(self) -> int:
        """Number of rows seen: observations in every column, plus rows learnt since."""
        if self._moments is not None:
            return int(self._moments.rows)
        if self._window is not None:
            return int(self._window.rows)
        return 0 if self._target is None else self._target.n

    @property
    def n_constant(self) -> int:
        """Number of constant variables among those seen."""
        if self._moments is None:
            return self._n_constant
        return self._n_constant + int((self._moments.stats().m2 == 0.0).sum())

    def _invalidate(self) -> None:
        self._cache = {}

    def _report(
        self,
        floor: float | None,
        kind: str,
        found: list[dict[str, Any]],
        asked: int | None,
        facts: dict[str, Any] | None = None,
    ) -> Report:
        counts = self.n_rows, self.n_columns, self.n_constant
        name, params = type(self).__name__, dict(self._get_params())
        counted = {"target": self._target_description(), "rows_excluded": self._rows_excluded()}
        fields = counted | self._significance()
        return Report(name, params, *counts, floor, kind, found, asked, facts or {}, **fields)

    def _target_description(self) -> str | None:
        """Return how the target was interpreted; on rows without class sizes."""
        if not self._is_supervised:
            return None
        part = self._window if self._moments is None else self._moments
        if part is not None and part.target is not None:
            return part.target.description
        return None if self._target is None else self._target.description

    def _rows_excluded(self) -> dict[str, int]:
        """Return how many rows of the columns were excluded: reason -> count."""
        kept = None if self._target is None else self._target.kept
        return {} if kept is None else dict(kept.excluded)

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each output of the model, in [0, 1]: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    @abc.abstractmethod
    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show."""

    def __repr__(self) -> str:
        return params.changed_parameters(self)

    def _repr_html_(self) -> str:
        from streamsel.reporting.notebook import render_notebook

        return render_notebook(self)

    # From columns to rows

    def _add_columns_to_moments(self, moments: Moments) -> None:
        state = self._columns
        if state is not None:
            moments.add_column_moments(state.names, state.stats())
            if not state.complete and self.n_columns > len(moments.table):
                moments.note_discard()

    def _n_constant_carried(self) -> int:
        return 0 if self._columns is None else int((self._columns.stats().m2 == 0.0).sum())

    def _check_tracked(self, names: Any) -> None:
        """Raise ValueError unless names from a file are distinct and tracked by the moments."""
        moments = self._moments
        expect({"snapshot": names}, snapshot=NamesKind(moments.index_of if moments else None))

    def _row_counts(self) -> tuple[int, float]:
        if self._moments is not None:
            return self._moments.rows, self._moments.effective_rows
        assert self._window is not None  # noqa: S101
        return self._window.rows, float(self._window.size)

    def _switch_to_rows(self, moments: Moments) -> None:
        self._start_rows(moments.rows)
        self._n_constant -= self._n_constant_carried()
        self._row_extension = self._new_row_extension()
        self._moments = moments
        self._target = self._space = self._columns = self._summary = None

    def _learn_window(self, window: Window) -> None:
        twin = self.clone()
        try:
            names, X, target = window.columns()
            if target is not None:
                twin._take_target(target)
        except ValueError:
            # The target is constant in this window: the result of the last window stays in use.
            return
        twin._columns = twin._new_columns(window.size)
        if names:
            twin.learn_columns(X, names)
        for name in ("_target", "_space", "n_columns", "n_passes", "_n_constant", "_summary"):
            setattr(self, name, getattr(twin, name))
        self._without_target = twin._without_target
        # Build a new state: that of the clone refers to the clone.
        self._columns = self._new_columns(window.size)
        self._columns.set_state(twin._columns.to_state())
        self._invalidate()

    def precompile(self) -> None:
        """Compile the code that this model needs for float64 columns and for rows, ahead of time.

        Without this call the first column and the first row wait for the compilation: a few seconds
        once per machine, and a few tenths of a second per process where the compiled code is loaded
        from disk.

        Notes
        -----
        Clones of the model learn a few columns and rows of synthetic numbers; the model itself is
        not changed.
        """
        compile_by_rehearsal(self)

    # Copies and files

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return an unfitted model with the same parameters.

        Parameters
        ----------
        new_params
            Parameters to replace, by name.
        include_attributes
            Whether to copy the learnt state too. If another thread is training this model, the copy
            is made between two rows or two blocks of columns.
        """
        clone = functools.partial(super().clone, new_params, include_attributes)
        return self._guard.call_when_idle(clone, is_copy=True) if include_attributes else clone()

    def __getstate__(self) -> dict[str, Any]:
        # The lock is released before the pickle or copy is made from the state.
        state = self._guard.call_when_idle(lambda: deep_copied(self._get_state()), is_copy=True)
        return {"params": self._get_params(), "state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._set_state(state["state"])

    def _get_state(self) -> dict[str, Any]:
        """Return the learnt state as arrays and JSON-compatible values (names as lists)."""
        target = self._target
        state: dict[str, Any] = {
            "n_columns": self.n_columns,
            "n_constant": self._n_constant,
            "n_passes": self.n_passes,
            "without_target": self._without_target,
            "n_rows": None if target is None else target.n,
        }
        if target is not None:
            state |= target.to_state()
        parts = {
            "columns": self._columns,
            "moments": self._moments,
            "extension": self._row_extension,
            "window": self._window,
        }
        state |= {name: part.to_state() for name, part in parts.items() if part is not None}
        if self._moments is not None:
            state["no_room_until"] = self._vocabulary.no_room_until
        if self._space is not None and self.n_columns and self._summary is not None:
            state["summary"] = self._summary.to_state()
        if self._on_rows:
            state |= {"refresh_at": self._refresh_at, "snapshot": self._snapshot_to_state()}
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `_get_state`."""
        expect_finite(state)
        expect(state, n_columns=CountKind(), n_constant=CountKind(), n_passes=FloatKind(0.0))
        expect(state, without_target=BoolKind(), n_rows=OptionalKind(CountKind(1)))
        self.n_columns = state["n_columns"]
        self._n_constant = state["n_constant"]
        self.n_passes = state["n_passes"]
        self._without_target = state["without_target"]
        self._expect_target(state)
        if "target_Y" in state:
            self._take_target(Target.restored(state))
        elif state["n_rows"] is not None:
            self._target = NoTarget.restored(state)
            self._refuse_weights(self._target)
        if "columns" in state:
            self._columns = self._new_columns(state["n_rows"])
            self._columns.set_state(state["columns"])
        if "summary" in state and self._summary is not None:
            self._summary.set_state(state["summary"], self.n_columns)
        elif "moments" in state or (self._space is not None and self.n_columns):
            self._summary = None
        if "window" in state:
            self._window = self._current_or_new_window()
            self._window.set_state(state["window"])
        if "moments" in state:
            moments = self._current_or_new_moments()
            moments.set_state(state["moments"])
            self._row_extension = self._new_row_extension()
            if self._row_extension is not None:
                self._row_extension.set_state(state["extension"])
                self._row_extension.check_matches(moments)
            self._moments = moments
            expect(state, no_room_until=CountKind())
            self._vocabulary.no_room_until = state["no_room_until"]
        self._invalidate()
        self._expect_possible()
        if self._on_rows:
            self._restore_in_use(state["refresh_at"], state["snapshot"])

    def _expect_target(self, state: dict[str, Any]) -> None:
        """Raise ValueError if the target in a file is missing, or does not fit the learner."""
        has_target, without_target = "target_Y" in state, state["without_target"]
        may_lack_target = not self._is_supervised or self._takes_no_target
        is_missing = "columns" in state and (
            state["n_rows"] is None or has_target is without_target
        )
        if (
            (without_target and (has_target or not may_lack_target))
            or is_missing
            or (not without_target and not self._is_supervised)
        ):
            raise ValueError(
                "Corrupt model file: a target is missing, or present in an unsupervised model."
            )

    def _expect_possible(self) -> None:
        """Raise ValueError for moments that no data have: computations on them would return NaN."""
        if self._moments is not None:
            has_target = self._moments.target.form not in (None, NO_TARGET)
            if has_target is not self._is_supervised:
                raise ValueError(
                    "Corrupt model file: rows must have a target in supervised models only."
                )
        state = self._state
        if state is None or isinstance(state, RandomSketch):
            return
        with np.errstate(all="ignore"):
            stats, relevance = state.stats(), state.relevance()
        sums = np.isfinite(stats.m2).all() and (stats.m2 >= 0.0).all()
        # The relevance is -inf for constant variables and for those that covariates explain in
        # full.
        if not (sums and np.isfinite(stats.cxy).all() and (relevance < np.inf).all()):
            raise ValueError("Corrupt model file: moments must be finite and non-negative.")

    def _check_reachable_state(self) -> None:
        """Raise ValueError for values in a file that no learning leads to, after `_set_state`.

        Copies in memory are not checked: the products computed here take longer than the copy.
        """
        for part in (self._target, self._columns, self._moments, self._row_extension, self._window):
            if part is not None:
                part.expect_valid()
        state = self._state
        if state is None or isinstance(state, RandomSketch):
            return
        stats, relevance = state.stats(), state.relevance()
        expect_relevances(relevance[relevance > -np.inf])
        if state.space is not None:
            expect_explained(stats.m2, stats.mean, stats.cxy, state.space.squares)

"""Define the base class of all learners: selectors and extractors, on columns and on rows."""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
from river import base as river

from streamsel import params
from streamsel.held.beside import Beside
from streamsel.held.moments import Moments
from streamsel.held.part import ColumnHeld, Held
from streamsel.held.possible import expect_explained, expect_relevances
from streamsel.held.sketch import Passed, Sketch
from streamsel.learner.calm import Calm
from streamsel.learner.hooks import check_hooks
from streamsel.learner.limits import Turn, while_still
from streamsel.learner.readings import LearnsInParts
from streamsel.learner.rehearsal import rehearse
from streamsel.learner.report import Report
from streamsel.learner.significance import Significance
from streamsel.learner.window import Window
from streamsel.params import param
from streamsel.plain import own
from streamsel.shapes import Count, Flag, Maybe, Names, Number, expect, expect_finite
from streamsel.target.observed import NO_TARGET
from streamsel.target.target import KINDS, NoTarget, Target


class Learner(LearnsInParts, Significance, Calm, river.MiniBatchTransformer):
    """Base class of selectors and extractors: one state, filled by columns and by rows.

    A subclass declares its states by the three class attributes below and implements one hook.
    Input validation, rollback, the transition from columns to rows, model files, merging, the noise
    floor and reports are inherited.

    A model may be used by one thread at a time: a second thread that tries to learn raises
    RuntimeError. The threads that `n_jobs` starts are managed by the model itself.

    Attributes
    ----------
    keeps
        The state that columns fill.
    rows
        What the method uses on rows: `Moments`; a state that extends them; a tumbling `Window`,
        which requires a parameter `window_size`; or `Passed`, no state at all.
    supervised
        Whether there is a target, set by the base class `Supervised` or `Unsupervised`.
    """

    keeps: ClassVar[type[ColumnHeld]]
    rows: ClassVar[type[Held | Beside | Window | Passed]] = Moments
    # Methods that are passed the state; they may use only members that all of its states provide.
    _hooks: ClassVar[tuple[str, ...]] = ()

    fading_factor: float = param(
        params.Real(0.0, below=1.0),
        default=0.0,
        doc="""
        In [0, 1): the fraction of its weight that a row loses with every later row; 0 forgets
        nothing. As in River, the closer to 1, the faster old rows are forgotten.
        """,
    )
    max_features: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        Maximum number of variables tracked on rows; None for all. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period.
        """,
    )
    grace_period: int = param(
        params.Whole(1),
        default=100,
        doc="Number of rows during which a new variable cannot be evicted.",
    )
    covariates: tuple[Hashable, ...] | None = param(
        params.Names(),
        default=None,
        doc="""
        Features of a row to adjust for, such as age or batch: they are projected out of the target
        and the variables, and are not variables themselves. On columns they are passed with the
        target, `learn_target(y, covariates=Z)`, and this parameter gives their names.
        """,
    )
    target: str = param(
        params.Choice(KINDS),
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
        params.Jobs(),
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
            setattr(cls, "report", while_still(vars(cls)["report"]))  # noqa: B010 (a method)
        if not inspect.isabstract(cls) and hasattr(cls, "keeps"):
            check_hooks(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._by_window:
            self._refuse_with_windows(self.fading_factor != 0.0, "fading_factor=0.0")
            self._refuse_with_windows(self.covariates is not None, "covariates=None")
        if not self.supervised and self.covariates is not None:
            raise ValueError(
                f"Expected covariates=None: {type(self).__name__} has no target to adjust for "
                f"covariates. Got {self.covariates!r} instead."
            )
        self._check_parameters()
        # Guards against concurrent use: a state changes in several steps.
        self._at_work = Turn()
        self._begin_columns()
        self._begin_rows()
        self._begin_calm()
        # Results computed from the state, kept until the next update.
        self._found: dict[str, Any] = {}

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
        given = bool(target.given_kinds)
        self._refuse_with_windows(given and not self._takes_covariates, "no covariates")
        super()._take_target(target)

    def _more_than(self, size: str, least: int | None, *names: str) -> None:
        """Raise ValueError for bounds not above `least`, the value of the parameter `size`."""
        for name in names:
            bound = getattr(self, name)
            if bound is not None and least is not None and bound <= least:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be None or above "
                    f"{size} = {least}. Got {bound!r} instead."
                )

    @property
    def _reads_again(self) -> bool:
        """Whether a second pass over the columns, by `learn_loadings`, would add results."""
        return False

    @property
    def _why_no_more(self) -> str:
        """Why there are fewer results than requested, given enough columns and rows."""
        return "no other column adds explained variance"

    @property
    def _by_window(self) -> bool:
        return issubclass(self.rows, Window)

    @property
    def _window_size(self) -> int:
        size: int = getattr(self, "window_size")  # noqa: B009 (declared where it is needed)
        return size

    # Learnt state

    @property
    def _held(self) -> Held | None:
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

    def _outdate(self) -> None:
        self._found = {}

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
        counted = {"target": self._target_description(), "rows_left_out": self._rows_left_out()}
        fields = counted | self._significance()
        return Report(name, params, *counts, floor, kind, found, asked, facts or {}, **fields)

    def _target_description(self) -> str | None:
        """Return how the target was interpreted; on rows without class sizes."""
        if not self.supervised:
            return None
        part = self._window if self._moments is None else self._moments
        if part is not None and part.target is not None:
            return part.target.description
        return None if self._target is None else self._target.description

    def _rows_left_out(self) -> dict[str, int]:
        """Return how many rows of the columns were excluded: reason -> count."""
        kept = None if self._target is None else self._target.kept
        return {} if kept is None else dict(kept.left_out)

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each output of the model, in [0, 1]: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    @abc.abstractmethod
    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show."""

    def _repr_html_(self) -> str:
        from streamsel.page._notebook import notebook

        return notebook(self)

    # From columns to rows

    def _carry_over(self, moments: Moments) -> None:
        state = self._columns
        if state is not None:
            moments.take_columns(state.names, state.stats())
            if not state.complete and self.n_columns > len(moments.table):
                moments.forget()

    def _carried_constant(self) -> int:
        return 0 if self._columns is None else int((self._columns.stats().m2 == 0.0).sum())

    def _expect_held(self, names: Any) -> None:
        """Raise ValueError unless names from a file are distinct and tracked by the moments."""
        moments = self._moments
        expect({"standing": names}, standing=Names(moments.slots if moments else None))

    def _counted(self) -> tuple[int, float]:
        if self._moments is not None:
            return self._moments.rows, self._moments.effective_rows
        assert self._window is not None  # noqa: S101
        return self._window.rows, float(self._window.size)

    def _go_over_to(self, moments: Moments) -> None:
        self._stand_on(moments.rows)
        self._n_constant -= self._carried_constant()
        self._beside = self._new_beside()
        self._moments = moments
        self._target = self._space = self._columns = self._summary = None

    def _sweep(self, window: Window) -> None:
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
        self._outdate()

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
        rehearse(self)

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
        return self._at_work.still(clone, is_copy=True) if include_attributes else clone()

    def __getstate__(self) -> dict[str, Any]:
        # The lock is released before the pickle or copy is made from the state.
        state = self._at_work.still(lambda: own(self._get_state()), is_copy=True)
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
            "beside": self._beside,
            "window": self._window,
        }
        state |= {name: part.to_state() for name, part in parts.items() if part is not None}
        if self._moments is not None:
            state["full_until"] = self._vocabulary.full_until
        if self._space is not None and self.n_columns and self._summary is not None:
            state["summary"] = self._summary.to_state()
        if self._on_rows:
            state |= {"due": self._due, "standing": self._standing_to_state()}
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `_get_state`."""
        expect_finite(state)
        expect(state, n_columns=Count(), n_constant=Count(), n_passes=Number(0.0))
        expect(state, without_target=Flag(), n_rows=Maybe(Count(1)))
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
            self._window = self._window_so_far()
            self._window.set_state(state["window"])
        if "moments" in state:
            moments = self._rows_so_far()
            moments.set_state(state["moments"])
            self._beside = self._new_beside()
            if self._beside is not None:
                self._beside.set_state(state["beside"])
                self._beside.check(moments)
            self._moments = moments
            expect(state, full_until=Count())
            self._vocabulary.full_until = state["full_until"]
        self._outdate()
        self._expect_possible()
        if self._on_rows:
            self._stand_again(state["due"], state["standing"])

    def _expect_target(self, state: dict[str, Any]) -> None:
        """Raise ValueError if the target in a file is missing, or does not fit the learner."""
        has_target, without_target = "target_Y" in state, state["without_target"]
        may_lack_target = not self.supervised or self.takes_no_target
        is_missing = "columns" in state and (
            state["n_rows"] is None or has_target is without_target
        )
        if (
            (without_target and (has_target or not may_lack_target))
            or is_missing
            or (not without_target and not self.supervised)
        ):
            raise ValueError(
                "Corrupt model file: a target is missing, or present in an unsupervised model."
            )

    def _expect_possible(self) -> None:
        """Raise ValueError for moments that no data have: computations on them would return NaN."""
        if self._moments is not None:
            has_target = self._moments.target.form not in (None, NO_TARGET)
            if has_target is not self.supervised:
                raise ValueError(
                    "Corrupt model file: rows must have a target in supervised models only."
                )
        state = self._held
        if state is None or isinstance(state, Sketch):
            return
        with np.errstate(all="ignore"):
            stats, relevance = state.stats(), state.relevance()
        sums = np.isfinite(stats.m2).all() and (stats.m2 >= 0.0).all()
        # The relevance is -inf for constant variables and for those that covariates explain in
        # full.
        if not (sums and np.isfinite(stats.cxy).all() and (relevance < np.inf).all()):
            raise ValueError("Corrupt model file: moments must be finite and non-negative.")

    def _expect_learnt(self) -> None:
        """Raise ValueError for values in a file that no learning leads to, after `_set_state`.

        Copies in memory are not checked: the products computed here take longer than the copy.
        """
        for part in (self._target, self._columns, self._moments, self._beside, self._window):
            if part is not None:
                part.expect_possible()
        state = self._held
        if state is None or isinstance(state, Sketch):
            return
        stats, relevance = state.stats(), state.relevance()
        expect_relevances(relevance[relevance > -np.inf])
        if state.space is not None:
            expect_explained(stats.m2, stats.mean, stats.cxy, state.space.squares)

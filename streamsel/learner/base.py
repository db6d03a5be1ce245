"""The contract of two axes: what every learner is, whatever its method."""

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
    """What selectors and extractors have in common: one state that columns and rows fill.

    A method says what it keeps by three tags, and what it does with it by one hook; doors, undo,
    the way from columns to rows, files, merging, noise floor and report follow.

    One thread at a time may use a model; two that let it learn at once are told so. Threads of its
    own, `n_jobs` of them, it minds itself.

    Attributes
    ----------
    keeps
        The state that columns fill.
    rows
        What serves the method on rows: `Moments`, a state beside them, a tumbling `Window`, and
        then it has a parameter `window_size`, or nothing, `Passed`.
    supervised
        Whether it has a target: by its base `Supervised` or `Unsupervised`.
    """

    keeps: ClassVar[type[ColumnHeld]]
    rows: ClassVar[type[Held | Beside | Window | Passed]] = Moments
    # Methods that are handed what is held; they may ask for what every state in use offers.
    _hooks: ClassVar[tuple[str, ...]] = ()

    fading_factor: float = param(
        params.Real(0.0, below=1.0),
        default=0.0,
        doc="""
        In [0, 1): what part of its weight a row loses with every later one; 0 forgets nothing. As
        in River, the closer to 1 the faster the old is forgotten.
        """,
    )
    max_features: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        Most variables tracked on rows; None for all. When a new one needs room the least relevant
        go, but none that is in use or in its grace period.
        """,
    )
    grace_period: int = param(
        params.Whole(1),
        default=100,
        doc="For how many rows a new variable cannot be let go.",
    )
    covariates: tuple[Hashable, ...] | None = param(
        params.Names(),
        default=None,
        doc="""
        Features of a row, such as age or batch, given which everything is asked: they are projected
        out of target and variables, and are no variables themselves. On columns they are handed
        over beside the target, `learn_target(y, covariates=Z)`, and this is what they are called.
        """,
    )
    target: str = param(
        params.Choice(KINDS),
        default="auto",
        doc="""
        `"auto"` takes labels as classes and numbers as quantities, but on columns one target of
        whole numbers with 2 to 20 distinct values, at most one for every two rows, as classes;
        `"class"` takes any numbers as classes, `"numeric"` takes numbers as quantities and refuses
        labels, `"survival"` takes times and events, on columns: what is explained are the
        martingale residuals of the null model.
        """,
    )
    n_jobs: int = param(
        params.Jobs(),
        default=1,
        doc="""
        Number of threads that read the columns; -1 for all cores. The result does not depend on it.
        Several pay with several targets or classes; with one, from ten million numbers a block on.
        """,
    )

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
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
                f"Expected covariates=None: {type(self).__name__} has no target to be asked about, "
                f"given them. Got {self.covariates!r} instead."
            )
        self._check_parameters()
        # Who learns; what is held is changed in several steps.
        self._at_work = Turn()
        self._begin_columns()
        self._begin_rows()
        self._begin_calm()
        # What was computed from what is held, until something is learnt.
        self._found: dict[str, Any] = {}

    def _check_parameters(self) -> None:
        """Refuse parameters that do not fit one another."""

    def _refuse_with_windows(self, refused: bool, expected: str) -> None:
        if refused:
            raise ValueError(
                f"Expected {expected}: {type(self).__name__} as it is set does not decide by "
                "moments, and learns rows by windows.\n"
                "Hint: a window forgets all rows before it; only moments know covariates."
            )

    def _take_target(self, target: Target) -> None:
        given = bool(target.given_kinds)
        self._refuse_with_windows(given and not self._takes_covariates, "no covariates")
        super()._take_target(target)

    def _more_than(self, size: str, least: int | None, *names: str) -> None:
        """Refuse bounds that leave no room for `least`, what the parameter `size` comes to."""
        for name in names:
            bound = getattr(self, name)
            if bound is not None and least is not None and bound <= least:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be None or above "
                    f"{size} = {least}. Got {bound!r} instead."
                )

    @property
    def _reads_again(self) -> bool:
        """Whether a second reading of the columns, by `learn_loadings`, would tell more."""
        return False

    @property
    def _why_no_more(self) -> str:
        """Why less was found than was asked for, if neither columns nor rows are too few."""
        return "no other column adds to what they explain"

    @property
    def _by_window(self) -> bool:
        return issubclass(self.rows, Window)

    @property
    def _window_size(self) -> int:
        size: int = getattr(self, "window_size")  # noqa: B009 (declared where it is needed)
        return size

    # What was learnt

    @property
    def _held(self) -> Held | None:
        """What is held of the variables, whichever axis filled it; None before there is any."""
        return self._columns if self._moments is None else self._moments

    @property
    def n_rows(self) -> int:
        """Rows seen: observations in every column, and rows since."""
        if self._moments is not None:
            return int(self._moments.rows)
        if self._window is not None:
            return int(self._window.rows)
        return 0 if self._target is None else self._target.n

    @property
    def n_constant(self) -> int:
        """Variables among those seen that do not vary."""
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
        """Return a report of what was found."""
        counts = self.n_rows, self.n_columns, self.n_constant
        name, params = type(self).__name__, dict(self._get_params())
        counted = {"target": self._target_description(), "rows_left_out": self._rows_left_out()}
        known = counted | self._significance()
        return Report(name, params, *counts, floor, kind, found, asked, facts or {}, **known)

    def _target_description(self) -> str | None:
        """Return how the target was taken; of rows without their numbers, which are not counted."""
        if not self.supervised:
            return None
        part = self._window if self._moments is None else self._moments
        if part is not None and part.target is not None:
            return part.target.description
        return None if self._target is None else self._target.description

    def _rows_left_out(self) -> dict[str, int]:
        """Return how many rows of the columns were left out, by reason."""
        kept = None if self._target is None else self._target.kept
        return {} if kept is None else dict(kept.left_out)

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance, in [0, 1], of what the model puts out: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    @abc.abstractmethod
    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook."""

    def _repr_html_(self) -> str:
        from streamsel.page._notebook import notebook

        return notebook(self)

    # From columns to rows

    def _carry_over(self, moments: Moments) -> None:
        held = self._columns
        if held is not None:
            moments.take_columns(held.names, held.stats())
            if not held.complete and self.n_columns > len(moments.table):
                moments.forget()

    def _carried_constant(self) -> int:
        return 0 if self._columns is None else int((self._columns.stats().m2 == 0.0).sum())

    def _expect_held(self, names: Any) -> None:
        """Refuse what a file says stands: no list, names that come twice, or that moments lack."""
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
            # Nothing can be said of a target that does not vary; what stood before stands.
            return
        twin._columns = twin._new_columns(window.size)
        if names:
            twin.learn_columns(X, names)
        for name in ("_target", "_space", "n_columns", "n_passes", "_n_constant", "_summary"):
            setattr(self, name, getattr(twin, name))
        self._without_target = twin._without_target
        # A state of my own, of which the twin is not part.
        self._columns = self._new_columns(window.size)
        self._columns.set_state(twin._columns.to_state())
        self._outdate()

    def precompile(self) -> None:
        """Compile what this model needs for float64 columns and for rows, before they come.

        Otherwise the first column and the first row wait for it: some seconds, once on a machine,
        and where what was compiled is read from disk some tenths of a second, once a process.

        Notes
        -----
        Clones of the model learn a few columns and rows of made-up numbers; the model itself is
        left as it is, whatever it has learnt.
        """
        rehearse(self)

    # Copies and files

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return a model of the same parameters, that has learnt nothing.

        Parameters
        ----------
        new_params
            Parameters that are to be others.
        include_attributes
            Whether it is to have learnt the same. The copy is made between two rows, or two blocks
            of columns, where another thread lets this model learn.
        """
        whole = functools.partial(super().clone, new_params, include_attributes)
        return self._at_work.still(whole, is_copy=True) if include_attributes else whole()

    def __getstate__(self) -> dict[str, Any]:
        # What is made of it, a pickle or a copy, is made when this model may learn again.
        state = self._at_work.still(lambda: own(self._get_state()), is_copy=True)
        return {"params": self._get_params(), "state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._set_state(state["state"])

    def _get_state(self) -> dict[str, Any]:
        """Return what was learnt, as arrays and values that JSON can hold (names as lists)."""
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
        """Take up what `_get_state` returned."""
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
        """Refuse what a file says of a target that a learner of this kind cannot have."""
        told, without = "target_Y" in state, state["without_target"]
        allowed = not self.supervised or self.takes_no_target
        lacks = "columns" in state and (state["n_rows"] is None or told is without)
        if (without and (told or not allowed)) or lacks or (not without and not self.supervised):
            raise ValueError("Expected a target where one is needed, and none elsewhere.")

    def _expect_possible(self) -> None:
        """Refuse moments that no data have: what goes by them would find NaN."""
        if self._moments is not None:
            asked = self._moments.target.form not in (None, NO_TARGET)
            if asked is not self.supervised:
                raise ValueError("Expected rows with a target where one is needed. Got: others.")
        held = self._held
        if held is None or isinstance(held, Sketch):
            return
        with np.errstate(all="ignore"):
            stats, relevance = held.stats(), held.relevance()
        sums = np.isfinite(stats.m2).all() and (stats.m2 >= 0.0).all()
        # Of what does not vary, or covariates explain in full, relevance is -inf; NaN of nothing.
        if not (sums and np.isfinite(stats.cxy).all() and (relevance < np.inf).all()):
            raise ValueError("Expected moments that variables can have. Got: others.")

    def _expect_learnt(self) -> None:
        """Refuse numbers that no learning leads to, once `_set_state` has taken up those of a file.

        A copy in memory is not looked at: to multiply what is held takes longer than to copy it.
        """
        for part in (self._target, self._columns, self._moments, self._beside, self._window):
            if part is not None:
                part.expect_possible()
        held = self._held
        if held is None or isinstance(held, Sketch):
            return
        stats, relevance = held.stats(), held.relevance()
        expect_relevances(relevance[relevance > -np.inf])
        if held.space is not None:
            expect_explained(stats.m2, stats.mean, stats.cxy, held.space.squares)

"""Define the base class of streaming selectors, which accept or reject columns on arrival."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.held.decided import Decided, Decisions, Offer
from streamsel.held.part import ColumnHeld
from streamsel.held.pool import Picks, SamplePool
from streamsel.learner.report import Report
from streamsel.learner.river import Supervised
from streamsel.learner.selector import Selector
from streamsel.learner.window import Window
from streamsel.params import param
from streamsel.target.normal_scores import NormalScores
from streamsel.target.target import Target


class OnArrival(Selector[Decided], Supervised):
    """Base class of selectors that accept or reject every column on arrival, by `_decide`.

    They make a single pass, in order, and decisions are final: another order may give another
    answer. Selected variables are in order of arrival.
    """

    keeps: ClassVar[type[Decisions]] = Decided
    rows = Window
    # Whether normal scores replace a heavy-tailed target in tests.
    _tests_normal_scores: ClassVar[bool] = False

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        Maximum number of accepted variables; None for any number. Once it is reached, no more are
        accepted, so memory is constant.
        """,
    )
    window_size: int = param(
        params.Whole(2),
        default=200,
        doc="""
        On rows: number of rows that are buffered before the selection is made on them, as columns,
        from scratch.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _decide(self, held: Decided, offer: Offer) -> None:
        """Accept some of the columns offered, in order, and update the variables of the method.

        `held.accept`, `drop` and `remember` are the only ways to change the state. A stream may
        have millions of irrelevant columns, so a rejected column should not take Python code of its
        own.
        """

    def _refuses_below(self, held: Decided) -> float:  # noqa: ARG002
        """Return the relevance below which a column is rejected without any other effect.

        Single columns below it are skipped by the fast path of `learn_column`.
        """
        return -math.inf

    def _remembered(self) -> Mapping[str, float]:
        """Return the method's own variables with their initial values: name -> number."""
        return {}

    def _noted(self) -> tuple[str, ...]:
        """Return the values recorded for an accepted variable: a score, and a p-value if any."""
        return ("score", "p_value")

    # Shared behaviour

    def _normal_scores(self) -> NormalScores | None:
        return super()._normal_scores() if self._tests_normal_scores else None

    @property
    def _asked(self) -> None:
        return None

    @property
    def _takes_covariates(self) -> bool:
        return True

    def _new_columns(self, n: int) -> ColumnHeld:
        state = self.keeps(self._space, n, self.max_candidates, self._noted(), self._remembered())
        state.serve(self)
        state.compare_by(self._normal_scores())
        if isinstance(state, SamplePool) and isinstance(self._target, Target):
            state.follow(self._target.Y[: self._target.c])
        return state

    @property
    def _score_meaning(self) -> str:
        return "relevance of the variable when it was accepted"

    def _select(self, held: Decisions, k: int) -> Picks:
        indices = list(range(min(k, len(held.names))))
        scores = held.noted("score")[indices]
        return Picks(indices, scores.tolist(), [0] * len(indices))

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show."""
        report = super().report()
        return replace(report, facts=report.facts | {"decided_on_arrival": True})

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {"p_value": self.p_values} if "p_value" in self._noted() else {}

    @property
    def p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable at its acceptance, in order; NaN if there is none."""
        state: Any = self._held
        if state is None or "p_value" not in self._noted():
            return dict.fromkeys(self._selected(), float("nan"))
        values = state.noted("p_value")[np.asarray(self._picks().places, dtype=np.intp)]
        return dict(zip(self._selected(), values.tolist(), strict=True))

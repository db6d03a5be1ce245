"""What selectors have in common that decide on a column as it arrives, for good."""

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
    """A selector that decides on every column when it comes: `_decide` says how.

    One reading, in order, and no way back: another order may give another answer. The selected
    stand in the order in which they came.
    """

    keeps: ClassVar[type[Decisions]] = Decided
    rows = Window
    # Whether normal scores of a heavy-tailed target are tested instead of the target.
    _tests_normal_scores: ClassVar[bool] = False

    max_candidates: int | None = param(
        params.Whole(1, optional=True),
        default=None,
        doc="""
        Most variables to hold; None for any number. Once there are as many nothing more is
        accepted: memory is constant.
        """,
    )
    window_size: int = param(
        params.Whole(2),
        default=200,
        doc="""
        On rows: how many are gathered before they are decided on, as columns, from the beginning.
        """,
    )

    # What a method says

    @abc.abstractmethod
    def _decide(self, held: Decided, offer: Offer) -> None:
        """Accept some of the columns offered, in order, and remember what is to be remembered.

        `held.accept`, `drop` and `remember` are the only ways to change what is held. A stream has
        millions of columns that are no use, and they should cost no Python each.
        """

    def _refuses_below(self, held: Decided) -> float:  # noqa: ARG002
        """Return below which relevance a column is refused, and leaves nothing to remember.

        One that comes alone can then be let go at a glance.
        """
        return -math.inf

    def _remembered(self) -> Mapping[str, float]:
        """Return what is remembered beside the variables held, as it is before the first column."""
        return {}

    def _noted(self) -> tuple[str, ...]:
        """Return what is noted of a variable as it is accepted: a score, and a p-value if any."""
        return ("score", "p_value")

    # What follows

    def _normal_scores(self) -> NormalScores | None:
        return super()._normal_scores() if self._tests_normal_scores else None

    @property
    def _asked(self) -> None:
        return None

    @property
    def _takes_covariates(self) -> bool:
        return True

    def _new_columns(self, n: int) -> ColumnHeld:
        held = self.keeps(self._space, n, self.max_candidates, self._noted(), self._remembered())
        held.serve(self)
        held.compare_by(self._normal_scores())
        if isinstance(held, SamplePool) and isinstance(self._target, Target):
            held.follow(self._target.Y[: self._target.c])
        return held

    @property
    def _score_meaning(self) -> str:
        return "relevance of the variable when it was accepted"

    def _select(self, held: Decisions, k: int) -> Picks:
        places = list(range(min(k, len(held.names))))
        scores = held.noted("score")[places]
        return Picks(places, scores.tolist(), [0] * len(places))

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook."""
        report = super().report()
        return replace(report, facts=report.facts | {"decided_on_arrival": True})

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {"p_value": self.p_values} if "p_value" in self._noted() else {}

    @property
    def p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable when it was accepted, in order; NaN if none."""
        held: Any = self._held
        if held is None or "p_value" not in self._noted():
            return dict.fromkeys(self._selected(), float("nan"))
        found = held.noted("p_value")[np.asarray(self._picks().places, dtype=np.intp)]
        return dict(zip(self._selected(), found.tolist(), strict=True))

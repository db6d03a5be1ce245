"""Base class of streaming selectors, which accept or reject each column on arrival."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from streamsel import params
from streamsel.base.report import Report
from streamsel.base.river import Supervised
from streamsel.base.selector import Selector
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.state.base import ColumnState
from streamsel.state.pool.accepted import AcceptedColumns, AcceptPolicy
from streamsel.state.pool.pool import Picks
from streamsel.targets.normal_scores import NormalScores


class StreamingSelector(Selector[AcceptedColumns], Supervised):
    """Base class of selectors that accept or reject every column on arrival, by a policy.

    They make a single pass, in order, and decisions are final: another order may give another
    selection. Selected variables are in order of arrival.
    """

    _weights_replicate_rows: ClassVar[bool] = False
    _column_state_type: ClassVar[type[ColumnState]] = AcceptedColumns
    _needs_samples = True
    _row_state_type = Window
    # A window forgets all rows before it, and decisions are not revised.
    _fixed_parameters: ClassVar[Mapping[str, Any]] = {
        "fading_factor": 0.0,
        "grace_period": 100,
        "covariates": None,
        "hysteresis": 1.0,
    }
    # Whether normal scores replace a heavy-tailed target in tests.
    _tests_normal_scores: ClassVar[bool] = False

    max_candidates: int | None = param(
        params.IntRule(1, optional=True),
        default=None,
        doc="""
        Maximum number of accepted variables; None for any number. Once it is reached, no more are
        accepted, so memory is constant.
        """,
    )
    window_size: int = param(
        params.IntRule(2),
        default=200,
        doc="""
        On rows: number of rows that are buffered before the selection is made on them, as columns,
        from scratch.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _policy(self) -> AcceptPolicy:
        """Return the policy that decides on columns."""

    def _initial_memory(self) -> Mapping[str, float]:
        """Return the memory of the policy before the first column: name -> number."""
        return {}

    def _extra_fields(self) -> tuple[str, ...]:
        """Return the values recorded for an accepted variable: a score, and a p-value if any."""
        return ("score", "p_value")

    # Shared behaviour

    def _normal_scores(self) -> NormalScores | None:
        return super()._normal_scores() if self._tests_normal_scores else None

    @property
    def _n_requested(self) -> None:
        return None

    @property
    def _takes_covariates(self) -> bool:
        return True

    def _new_columns(self, n: int) -> ColumnState:
        pool = self._new_pool(n, self.max_candidates)
        return AcceptedColumns(pool, self._policy(), self._initial_memory())

    @property
    def _score_meaning(self) -> str:
        return "relevance of the variable when it was accepted"

    def _select(self, view: AcceptedColumns, k: int) -> Picks:
        indices = list(range(min(k, len(view.names))))
        scores = view.extra_field("score")[indices]
        return Picks(indices, scores.tolist(), [0] * len(indices))

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show."""
        report = super().report()
        return replace(report, details=report.details | {"decided_on_arrival": True})

    def _extra_report_columns(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {"p_value": self.p_values} if "p_value" in self._extra_fields() else {}

    @property
    def p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable at its acceptance, in order; NaN if there is none."""
        state: Any = self._state
        if state is None or "p_value" not in self._extra_fields():
            return dict.fromkeys(self._selected(), float("nan"))
        values = state.extra_field("p_value")[self._picked()]
        return dict(zip(self._selected(), values.tolist(), strict=True))

"""ForwardSelection: each pick explains most of the target beside those before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsel import params
from streamsel.held.pool import Picks
from streamsel.held.stages import StagePool
from streamsel.learner.river import Supervised
from streamsel.learner.staged import Staged
from streamsel.learner.window import Window
from streamsel.params import param
from streamsel.selection._forward import ForwardPlan, from_products
from streamsel.selection._greedy_plan import picked


class ForwardSelection(Staged[ForwardPlan], Supervised):
    r"""Forward selection, with a ridge: what is new in a variable counts, and not its noise."""

    rows = Window

    k: int = param(params.Whole(1), default=20, kw_only=False)
    ridge: float = param(params.Real(0.0), default=1.0)
    window_size: int = param(params.Whole(2), default=200)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "window_size": 30}
        yield {"k": 3, "ridge": 0.0, "max_candidates": 6, "window_size": 20}
        yield {"k": 3, "max_candidates": 3, "exact": True, "window_size": 20}

    def _select(self, held: Any, k: int) -> Picks:
        if not isinstance(held, StagePool):
            return from_products(held, k, self.ridge)
        return held.answer() if k == self.k else ForwardPlan(held, k, self.ridge).picks

    def _plan(self, pool: StagePool, before: ForwardPlan | None, n_proven: int) -> ForwardPlan:
        return ForwardPlan(pool, self.k, self.ridge, before, n_proven)

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> ForwardPlan:
        return ForwardPlan(pool, self.k, self.ridge, given=picked(pool, state))

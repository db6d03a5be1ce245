"""Robust PCA: principal components beside gross errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsel import params
from streamsel.extraction._codes import RobustCode
from streamsel.extraction._factorisation import Factorisation
from streamsel.held.fit import Code
from streamsel.learner.river import Unsupervised
from streamsel.params import param


class RobustPCA(Factorisation, Unsupervised):
    threshold: float = param(params.Real(0.0, open=True), default=3.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "batch_size": 16, "warm_up": 10}
        yield {"n_components": 3, "max_features": 5, "fading_factor": 0.05, "grace_period": 20}

    @property
    def _code(self) -> Code:
        return RobustCode(self.threshold)

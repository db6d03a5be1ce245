"""Probabilistic PCA: principal components of columns with missing values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from streamsel.columns import Block, chunks, why_bad
from streamsel.extraction._codes import GaussianCode
from streamsel.extraction._factorisation import Factorisation
from streamsel.held.fit import Code
from streamsel.held.part import Floats
from streamsel.learner.river import Unsupervised
from streamsel.stream import ColumnStream, as_stream


class ProbabilisticPCA(Factorisation, Unsupervised):
    keeps = Factorisation.keeps
    takes_missing = True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "batch_size": 16, "warm_up": 10}
        yield {"n_components": 3, "max_features": 5, "fading_factor": 0.05, "grace_period": 20}

    @property
    def _code(self) -> Code:
        return GaussianCode(takes_missing=True)

"""Distributed learning: learners on many machines, or all cores of one, by Dask."""

from __future__ import annotations

from streamsel.distributed._errors import PartError
from streamsel.distributed._tasks import LearnSummary
from streamsel.distributed.learning import learn

__all__ = ["LearnSummary", "PartError", "learn"]

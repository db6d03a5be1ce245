"""Distributed learning: learners on many machines, or all cores of one, by Dask."""

from __future__ import annotations

from streamsel.distributed._errors import PartError
from streamsel.distributed._learn import learn
from streamsel.distributed._summary import Summary

__all__ = ["PartError", "Summary", "learn"]

"""The same learners on many machines, by an engine that is there already: Dask."""

from __future__ import annotations

from streamsel.distributed._errors import PartError
from streamsel.distributed._learn import learn
from streamsel.distributed._summary import Summary

__all__ = ["PartError", "Summary", "learn"]

"""Pictures of what a model has found: each takes a learner or its report, and returns Axes."""

from __future__ import annotations

from streamsel.plot._null import null
from streamsel.plot._relevance import relevance

__all__ = ["null", "relevance"]

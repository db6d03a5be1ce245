"""The HTML report on a model: results, their significance and provenance, in one file."""

from streamsel.page._report import report

__all__ = ["report"]

"""The HTML report on a model: results, their significance and provenance, in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsel.reporting.page import report

__all__ = ["report"]


# Imported on first access (PEP 562): the command's help needs only the glossary.
def __getattr__(name: str) -> Any:
    if name == "report":
        from streamsel.reporting.page import report

        return report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

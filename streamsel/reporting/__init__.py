"""The HTML report on a model: results, their significance and provenance, in one file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from streamsel._utils.lazy import lazy_names

if TYPE_CHECKING:
    from streamsel.reporting.page import report

__all__ = ["report"]

# The command's help needs only the glossary.
__getattr__, __dir__ = lazy_names(
    __name__, __all__, lambda name: getattr(import_module("streamsel.reporting.page"), name)
)

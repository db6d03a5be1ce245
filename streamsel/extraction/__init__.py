"""Extractors build new variables."""

from __future__ import annotations

from streamsel import registry
from streamsel._utils.lazy import lazy_names

__all__ = registry.names("extractor")  # noqa: PLE0605 (a list of strings)

__getattr__, __dir__ = lazy_names(__name__, __all__, registry.fetch)

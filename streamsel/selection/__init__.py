"""Feature selectors: estimators that keep a subset of the original variables."""

from __future__ import annotations

from typing import Any

from streamsel import registry

__all__ = registry.names("selector")  # noqa: PLE0605 (a list of strings)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return registry.fetch(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

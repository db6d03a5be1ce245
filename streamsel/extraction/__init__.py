"""Extractors build new variables."""

from typing import Any

__all__ = ["SOSPCA"]


def __getattr__(name: str) -> Any:
    if name == "SOSPCA":
        from streamsel.extraction.sospca import SOSPCA

        return SOSPCA
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

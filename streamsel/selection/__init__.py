"""Selectors keep original variables."""

from typing import Any

__all__ = ["ProjSe"]


def __getattr__(name: str) -> Any:
    if name == "ProjSe":
        from streamsel.selection.projse import ProjSe

        return ProjSe
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

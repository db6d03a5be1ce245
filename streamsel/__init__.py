"""Select and build features from a stream of columns, then go on learning from a stream of rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsel import evaluate, stream
    from streamsel.extraction.sospca import SOSPCA
    from streamsel.persist import load, save
    from streamsel.selection.projse import ProjSe

__version__ = "0.3.0"

__all__ = ["SOSPCA", "ProjSe", "evaluate", "load", "save", "stream"]

# Names are fetched when first asked for (PEP 562): the import itself costs milliseconds.
_HOMES = {
    "ProjSe": "streamsel.selection.projse",
    "SOSPCA": "streamsel.extraction.sospca",
    "load": "streamsel.persist",
    "save": "streamsel.persist",
}


def __getattr__(name: str) -> Any:
    if name in ("evaluate", "stream"):
        return import_module(f"streamsel.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'streamsel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

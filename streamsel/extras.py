"""Optional packages, imported where they are used; the error says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def sklearn(module: str, what_for: str) -> Any:
    """Return a module of scikit-learn.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise ImportError(
            f'{what_for} need scikit-learn. Hint: pip install "streamsel[evaluate]".'
        ) from error


def matplotlib(module: str = "") -> Any:
    """Return matplotlib, or a module of it.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        return import_module(f"matplotlib.{module}".rstrip("."))
    except ImportError as error:
        raise ImportError(
            "Expected matplotlib, which plots need. Got: none.\n"
            "Hint: pip install 'streamsel[plot]'."
        ) from error

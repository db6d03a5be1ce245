"""The page that tells what a model has found: one file, to be shown to colleagues."""

from streamsel.page._report import report

__all__ = ["report"]

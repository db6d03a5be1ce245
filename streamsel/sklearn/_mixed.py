"""Frames with text, categories or dates: selection by the columns of the frame."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

from sklearn.utils.validation import validate_data

from streamsel.base.frame_columns import frame_columns
from streamsel.stream import ColumnStream, iter_frame
from streamsel.stream.inputs import EncodedStream, columns_not_numeric, not_encoded_text


def fitted_frame(estimator: Any, X: Any) -> ColumnStream | None:
    """Return the columns of the X of `fit`, if it is a frame with columns that are not numeric.

    The attributes that scikit-learn requires are set. None for any other X.

    Raises
    ------
    ValueError
        If the estimator does not support such columns.
    """
    names = columns_not_numeric(X)
    if not names:
        return None
    if not estimator._takes_mixed_frames:
        name = type(estimator).__name__
        raise ValueError(
            f"Expected columns of numbers for {name}. Got: text, categories or dates in "
            f"{names[0]!r}.\n"
            "Hint: encode them before, by a ColumnTransformer with a OneHotEncoder; or use "
            f"streamsel.{name}, whose learn_columns encodes frames."
        )
    validate_data(estimator, X, skip_check_array=True)
    return iter_frame(X)


def encoded_frame(stream: ColumnStream, *, groups: bool) -> EncodedStream:
    """Return the columns of a frame as numbers, with their source columns."""
    return EncodedStream(stream, groups=groups, keeps_sources=True)


def warn_not_encoded(stream: EncodedStream) -> None:
    """Warn of columns that are not learnt."""
    if stream.skipped:
        hint = "replace them by columns of numbers before fit"
        warnings.warn(not_encoded_text(stream, hint), UserWarning, stacklevel=4)


def selected_of_frame(estimator: Any, X: Any, names: list[Hashable]) -> Any:
    """Return the selected columns of new rows as they are, in a frame of the same library."""
    validate_data(estimator, X, reset=False, skip_check_array=True)
    found = frame_columns(X, names)
    if found is None or len(found[0]) < len(names):
        raise ValueError(
            f"Expected a frame with the columns of fit, as these are not all numeric. Got: "
            f"{type(X).__name__}."
        )
    return found[1]

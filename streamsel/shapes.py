"""Whether the arrays of a saved state fit one another, and are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def expect_shapes(state: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise ValueError for an array of a state whose shape does not fit the others'."""
    for name, shape in shapes.items():
        if np.shape(state[name]) != shape:
            raise ValueError(f"Expected {name} of shape {shape}. Got: {np.shape(state[name])}.")


def expect_finite(state: dict[str, Any]) -> None:
    """Raise ValueError for a number in a state that is not finite: no learner leaves one."""
    for name, value in state.items():
        if isinstance(value, dict):
            expect_finite(value)
        elif isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
            raise ValueError(f"Expected finite numbers in {name}. Got: others.")

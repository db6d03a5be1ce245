"""Whether the arrays of a saved state fit one another."""

from __future__ import annotations

from typing import Any

import numpy as np


def expect_shapes(state: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise ValueError for an array of a state whose shape does not fit the others'."""
    for name, shape in shapes.items():
        if np.shape(state[name]) != shape:
            raise ValueError(f"Expected {name} of shape {shape}. Got: {np.shape(state[name])}.")

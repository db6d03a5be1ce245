"""Values that are computed from a model's state, and kept until it learns again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from streamsel.learner.limits import told_if_beyond

Value = TypeVar("Value")


def until_learnt(compute: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Keep what a method computes from the state until something is learnt."""
    name = compute.__name__

    @functools.wraps(compute)
    def kept(self: Any) -> Value:
        found = self._found
        if name not in found:
            with told_if_beyond():
                found[name] = compute(self)
        value: Value = found[name]
        return value

    return kept

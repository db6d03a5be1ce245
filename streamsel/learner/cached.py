"""Cache results computed from a model's state until the next update."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from streamsel.learner.limits import told_if_beyond

Value = TypeVar("Value")


def until_learnt(compute: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Decorate a method to cache its result until the next update of the model."""
    name = compute.__name__

    @functools.wraps(compute)
    def cached(self: Any) -> Value:
        cache = self._found
        if name not in cache:
            with told_if_beyond():
                cache[name] = compute(self)
        value: Value = cache[name]
        return value

    return cached

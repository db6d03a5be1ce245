"""Cache results until the next update of a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from streamsel.base.guard import overflow_errors

Value = TypeVar("Value")


def cached_until_update(compute: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Decorate a method to cache its result until the next update of the model."""
    name = compute.__name__

    @functools.wraps(compute)
    def cached(self: Any) -> Value:
        cache = self._cache
        if name not in cache:
            with overflow_errors():
                cache[name] = compute(self)
        value: Value = cache[name]
        return value

    return cached

"""Scalars of a state that are stored in an array, where compiled loops can change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def count(index: int, kind: Callable[[Any], Any] = float) -> Any:
    """Return a property of a state: the number at an index of its array `counts`.

    A loop that learns a row changes these numbers together with all others, so that no exception
    can come in between. Setting one replaces the array, because a snapshot may refer to it.
    """

    def get(self: Any) -> Any:
        return kind(self.counts[index])

    def put(self: Any, value: Any) -> None:
        counts = self.counts.copy()
        counts[index] = value
        self.counts = counts

    return property(get, put)

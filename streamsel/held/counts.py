"""Numbers of a state that stand in an array, where compiled loops can change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def count(index: int, kind: Callable[[Any], Any] = float) -> Any:
    """Return a property of a state: the number at an index of its array `counts`.

    A loop that learns a row changes these numbers with all else, so that no exception can come in
    between. To set one, replace the array, for a snapshot may know it.
    """

    def get(self: Any) -> Any:
        return kind(self.counts[index])

    def put(self: Any, value: Any) -> None:
        counts = self.counts.copy()
        counts[index] = value
        self.counts = counts

    return property(get, put)

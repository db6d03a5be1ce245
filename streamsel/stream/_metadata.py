"""Metadata of rows and columns that is read at the first access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np


class LazyMetadata(Mapping[str, Any]):
    """Arrays by name, fetched together at the first access.

    Parameters
    ----------
    fetch
        Returns the arrays, or columns of a frame; they are kept.
    convert
        Converts a column to an array when it is used.
    """

    def __init__(
        self, fetch: Callable[[], Mapping[str, Any]], convert: Callable[[Any], Any] = np.asarray
    ) -> None:
        self._fetch, self._convert = fetch, convert

    @cached_property
    def _columns(self) -> Mapping[str, Any]:
        return self._fetch()

    def __getitem__(self, name: str) -> Any:
        return self._convert(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def concatenated(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the column metadata of several sources, one after the other.

    Sources without metadata contribute nothing, and a field that another source lacks is dropped.
    """
    known = [part for part in parts if part]
    if not known:
        return {}
    titles = [title for title in known[0] if all(title in part for part in known)]
    return {title: np.concatenate([part[title] for part in known]) for title in titles}

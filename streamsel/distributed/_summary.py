"""Counts of what a model has learnt of a source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Summary:
    """Counts of what a model has learnt of a source.

    Attributes
    ----------
    n_parts
        Parts whose columns, or rows, are in the model.
    n_read
        Columns read from them, including skipped ones; or rows.
    skipped
        Numbers of skipped columns by reason, if the source is a `screen`.
    n_filled, n_filled_values
        Columns whose missing values were replaced by means, and the number of these values.
    n_bytes
        Bytes read, approximately.
    """

    n_parts: int = 0
    n_read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    n_filled: int = 0
    n_filled_values: int = 0
    n_bytes: int = 0

    def add(self, other: Summary) -> None:
        """Add the counts of another summary."""
        self.n_parts += other.n_parts
        self.n_read += other.n_read
        self.skipped.update(other.skipped)
        self.n_filled += other.n_filled
        self.n_filled_values += other.n_filled_values
        self.n_bytes += other.n_bytes

"""How much of a source is in the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Summary:
    """How much of a source is in the model.

    Attributes
    ----------
    n_parts
        Parts whose columns, or rows, are in the model.
    n_read
        Columns read from them, those left out among them; or rows.
    skipped
        How many columns were left out, by reason, where the source is a `screen`.
    n_filled, n_filled_values
        Columns in which means took the place of missing values, and how many values these are.
    n_bytes
        Bytes read, about.
    """

    n_parts: int = 0
    n_read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    n_filled: int = 0
    n_filled_values: int = 0
    n_bytes: int = 0

    def add(self, other: Summary) -> None:
        """Count what another has counted too."""
        self.n_parts += other.n_parts
        self.n_read += other.n_read
        self.skipped.update(other.skipped)
        self.n_filled += other.n_filled
        self.n_filled_values += other.n_filled_values
        self.n_bytes += other.n_bytes

"""Which rows of FILE are used (those with a target), and how messages name a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import count_text
from streamsel.cli.errors import CommandError, note
from streamsel.targets.kept_rows import (
    NO_TARGET,
    KeptRows,
    is_target_missing,
    kept_indices,
    rename_row,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# PLINK's code for a missing phenotype.
_MISSING_OF_PLINK = -9


@dataclass(frozen=True)
class UsedRows:
    """The rows of FILE that are used, and their identifiers.

    Parameters
    ----------
    kept
        The rows that are used; None for all.
    ids
        Identifiers of all rows by index; None if only row numbers are known.
    """

    kept: KeptRows | None = None
    ids: Sequence[str | None] | None = None

    def select_rows(self, values: Any, what: str) -> Any:
        """Return the values of the used rows."""
        if self.kept is None:
            return values
        if len(values) != self.kept.n:
            raise CommandError(
                f"{what}: expected {self.kept.n:,} values, one per row of the target. Got: "
                f"{len(values):,}"
            )
        return kept_indices(values, self.kept.index)

    def used_row_name(self, row: int) -> str:
        """Return the name of a row, given its index among the used rows."""
        return self.row_name(row if self.kept is None else int(self.kept.index[row]))

    def row_name(self, row: int) -> str:
        """Return the name of a row, given its index among all rows."""
        return f"row {self._with_id(row)}"

    def with_row_ids(self, text: str) -> str:
        """Add the identifier of a row, if known, to a text that gives its number."""
        return rename_row(text, self._with_id)

    def _with_id(self, row: int) -> str:
        known = None if self.ids is None or row >= len(self.ids) else self.ids[row]
        return str(row) if known is None else f"{row} ({known})"


def decode_plink_missing(y: Any) -> Any:
    """Return a target of PLINK genotypes with -9 replaced by missing values."""
    if not isinstance(y, np.ndarray):
        return y
    if y.dtype.kind in "iuf":
        lacks = y == _MISSING_OF_PLINK
        return np.where(lacks, np.nan, y) if lacks.any() else y
    texts = [str(_MISSING_OF_PLINK), _MISSING_OF_PLINK]
    return np.array([None if v in texts else v for v in y.tolist()], dtype=object)


def rows_with_target(
    y: Any, rows: NDArray[np.intp] | None, counted: UsedRows, absent_reason: str, *, drop: bool
) -> UsedRows:
    """Return the rows that are used: those that have a target.

    Parameters
    ----------
    y
        The target of all rows of FILE; None if there is none.
    rows
        Index into the target file for each row of FILE, -1 where it has none; None without
        identifiers.
    counted
        The row identifiers.
    absent_reason
        Reason reported for rows that are not in the target file.
    drop
        Whether rows may be dropped.

    Raises
    ------
    CommandError
        If a row has no target and rows may not be dropped, or if fewer than two rows remain.
    """
    if y is None:
        return counted
    lacks = is_target_missing(y)
    if not lacks.any():
        return counted
    n, n_lacking, first = lacks.size, int(lacks.sum()), int(np.argmax(lacks))
    if not drop:
        raise CommandError(
            f"no target in {n_lacking:,} of {n:,} rows (first: {counted.row_name(first)}). Hint: "
            "--missing-target drop drops these rows"
        )
    if n - n_lacking < 2:
        raise CommandError(
            f"no target in {n_lacking:,} of {n:,} rows. Expected at least 2 rows with a target"
        )
    absent = np.zeros(n, dtype=np.bool_) if rows is None else rows < 0
    reasons = {
        NO_TARGET: int(np.count_nonzero(lacks & ~absent)),
        absent_reason: int(np.count_nonzero(absent)),
    }
    left_out = {reason: number for reason, number in reasons.items() if number}
    return UsedRows(KeptRows(n, np.flatnonzero(~lacks), left_out), counted.ids)


def report_dropped_rows(counted: UsedRows, n_ignored: int, target_file: str, file: str) -> None:
    """Report which rows are dropped, and how many rows of the target file are not in FILE."""
    kept = counted.kept
    for reason, number in ({} if kept is None else kept.excluded).items():
        assert kept is not None  # noqa: S101
        have = "has" if number == 1 else "have"
        are = "is" if number == 1 else "are"
        why = f"{have} no target" if reason == NO_TARGET else f"{are} {reason}"
        note(f"{number:,} of {count_text(kept.n, 'row')} {why} and {are} dropped")
    if n_ignored:
        are = "is" if n_ignored == 1 else "are"
        note(
            f"{count_text(n_ignored, 'row')} of {target_file} {are} not in {file} and {are} ignored"
        )

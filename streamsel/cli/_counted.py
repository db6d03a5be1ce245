"""Which rows of FILE count: those that have a target; and what a row is called in a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import CommandError, note
from streamsel.target.kept import NO_TARGET, KeptRows, lacks_target, picked, rows_named
from streamsel.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# What a file of phenotypes that goes with a .bed file has for a missing one.
_MISSING_OF_PLINK = -9


@dataclass(frozen=True)
class Counted:
    """Which rows of FILE count, and what they are called.

    Parameters
    ----------
    kept
        The rows that count; None for all.
    ids
        What all rows are called, by number; None where only their numbers are known.
    """

    kept: KeptRows | None = None
    ids: Sequence[str | None] | None = None

    def of(self, values: Any, what: str) -> Any:
        """Return values of the rows that count."""
        if self.kept is None:
            return values
        if len(values) != self.kept.n:
            raise CommandError(
                f"{what}: {len(values):,} values, but the target has {self.kept.n:,} rows"
            )
        return picked(values, self.kept.index)

    def called(self, row: int) -> str:
        """Return what the row is called that is this one of those that count."""
        return self.name(row if self.kept is None else int(self.kept.index[row]))

    def name(self, row: int) -> str:
        """Return what a row is called, by its number among all."""
        return f"row {self._with_id(row)}"

    def named(self, text: str) -> str:
        """Return a text about a row by its number with what the row is called, if that is known."""
        return rows_named(text, self._with_id)

    def _with_id(self, row: int) -> str:
        known = None if self.ids is None or row >= len(self.ids) else self.ids[row]
        return str(row) if known is None else f"{row} ({known})"


def without_phenotype(y: Any) -> Any:
    """Return a target that goes with genotypes of PLINK, with missing values where it has -9."""
    if not isinstance(y, np.ndarray):
        return y
    if y.dtype.kind in "iuf":
        lacks = y == _MISSING_OF_PLINK
        return np.where(lacks, np.nan, y) if lacks.any() else y
    texts = [str(_MISSING_OF_PLINK), _MISSING_OF_PLINK]
    return np.array([None if v in texts else v for v in y.tolist()], dtype=object)


def rows_that_count(
    y: Any, rows: NDArray[np.intp] | None, counted: Counted, why_absent: str, *, drop: bool
) -> Counted:
    """Return which rows count: those that have a target.

    Parameters
    ----------
    y
        The target of all rows of FILE; None where there is none.
    rows
        Which rows of the target's file these are, -1 where it lacks one; None without identifiers.
    counted
        What rows are called.
    why_absent
        Why a row is left out that the target's file lacks.
    drop
        Whether rows may be left out.

    Raises
    ------
    CommandError
        Where a row has no target and none may be left out, or fewer than two are left.
    """
    if y is None:
        return counted
    lacks = lacks_target(y)
    if not lacks.any():
        return counted
    n, n_lacking, first = lacks.size, int(lacks.sum()), int(np.argmax(lacks))
    if not drop:
        raise CommandError(
            f"no target in {n_lacking:,} of {n:,} rows (the first is {counted.name(first)}). Hint: "
            "--missing-target drop leaves them out"
        )
    if n - n_lacking < 2:
        raise CommandError(f"no target in {n_lacking:,} of {n:,} rows, and 2 or more are needed")
    absent = np.zeros(n, dtype=np.bool_) if rows is None else rows < 0
    reasons = {
        NO_TARGET: int(np.count_nonzero(lacks & ~absent)),
        why_absent: int(np.count_nonzero(absent)),
    }
    left_out = {reason: number for reason, number in reasons.items() if number}
    return Counted(KeptRows(n, np.flatnonzero(~lacks), left_out), counted.ids)


def report_left_out(counted: Counted, n_ignored: int, target_file: str, file: str) -> None:
    """Report which rows are left out, and how many of the target's file a file lacks."""
    kept = counted.kept
    for reason, number in ({} if kept is None else kept.left_out).items():
        assert kept is not None  # noqa: S101
        have = "has" if number == 1 else "have"
        are = "is" if number == 1 else "are"
        why = f"{have} no target" if reason == NO_TARGET else f"{are} {reason}"
        note(f"{number:,} of {count(kept.n, 'row')} {why} and {are} left out")
    if n_ignored:
        are = "is" if n_ignored == 1 else "are"
        note(f"{count(n_ignored, 'row')} of {target_file} {are} not in {file} and {are} ignored")

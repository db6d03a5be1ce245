"""The numbers of columns behind a result: read, encoded, skipped and learnt, on one basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsel._utils.text import count_text, skipped_text
from streamsel.base.report import Report


class ColumnCounts(NamedTuple):
    """Numbers of columns, counted after text, categories and dates were encoded.

    Parameters
    ----------
    n_learnt
        Number of columns that the model has learnt.
    n_groups
        Number of groups that they are in; None without groups.
    skipped
        Number of columns that were skipped, by reason.
    encoded
        Number of columns of the source that were encoded, by kind.
    n_made
        Number of columns of numbers that these became.
    """

    n_learnt: int
    n_groups: int | None
    skipped: dict[str, int]
    encoded: dict[str, int]
    n_made: int

    @classmethod
    def of(cls, report: Report, metadata: Mapping[str, Any]) -> ColumnCounts:
        """Return the counts of a report, and of the metadata of its run."""
        n_made, is_group = metadata.get("columns_made"), report.candidate == "group"
        encoded = _counts(metadata.get("encoded"))
        return cls(
            report.details.get("n_columns", report.columns_seen),
            report.columns_seen if is_group else None,
            _counts(metadata.get("skipped", report.details.get("not_encoded"))),
            # Without the number of columns made, those of the source are not known.
            encoded if type(n_made) is int else {},
            n_made if encoded and type(n_made) is int else 0,
        )

    @property
    def n_skipped(self) -> int:
        """Number of columns that were skipped."""
        return sum(self.skipped.values())

    @property
    def n_all(self) -> int:
        """Number of columns, learnt and skipped."""
        return self.n_learnt + self.n_skipped

    @property
    def is_plain(self) -> bool:
        """Whether every column of the source was learnt as it is."""
        return not self.skipped and not self.encoded and self.n_groups is None

    @property
    def n_source(self) -> int:
        """Number of columns of the source, before they were encoded."""
        return self.n_all - self.n_made + sum(self.encoded.values())

    @property
    def text(self) -> str:
        """How the columns of the source became those that were learnt, in a clause."""
        if self.is_plain:
            return f"{self.n_all:,}"
        return f"{_were(count_text(self.n_source, 'column'), 'read')}{self.outcome_text}"

    @property
    def outcome_text(self) -> str:
        """What became of the columns of the source, after a clause with their number."""
        if self.is_plain:
            return ""
        text = ""
        if self.encoded:
            kinds = ", ".join(f"{m:,} of {kind}" for kind, m in sorted(self.encoded.items()))
            n_encoded = f"{sum(self.encoded.values()):,}"
            text = f"; {_were(n_encoded, f'encoded as {self.n_made:,} columns of numbers')}"
            text += f" ({kinds}), which makes {self.n_all:,}"
        learnt = f"{self.n_learnt:,} learnt"
        if self.n_groups is not None:
            learnt += f" in {count_text(self.n_groups, 'group')}"
        if not self.skipped:
            return f"{text}: {learnt}"
        return f"{text}: {self.n_skipped:,} skipped ({skipped_text(self.skipped)}) and {learnt}"


def _were(what: str, done: str) -> str:
    return f"{what} {'was' if what in {'1', '1 column'} else 'were'} {done}"


def _counts(found: Any) -> dict[str, int]:
    """Return positive numbers by name; a model file may hold anything."""
    items = found.items() if isinstance(found, Mapping) else ()
    return {str(name): n for name, n in items if type(n) is int and n > 0}

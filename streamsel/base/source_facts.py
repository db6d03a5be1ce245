"""Facts about the source of the columns for a report: encoded columns, and where it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from streamsel.serialization.schema import CountKind, StringKind, expect


@dataclass(frozen=True)
class SourceFacts:
    """Facts about how columns were read.

    Parameters
    ----------
    encoded
        Number of encoded columns, by kind, such as "dates".
    not_encoded
        Number of columns that could not be encoded, by reason.
    until
        The stop condition that ended the last source; None if there was none, or it was not met.
    stopped_at
        Number of columns of the model when it was met.
    """

    encoded: Mapping[str, int] = field(default_factory=dict)
    not_encoded: Mapping[str, int] = field(default_factory=dict)
    until: str | None = None
    stopped_at: int = 0

    def with_encoded(self, encoded: Mapping[str, int], not_encoded: Mapping[str, int]) -> Self:
        """Return the facts after another source."""
        return replace(
            self,
            encoded=dict(Counter(self.encoded) + Counter(encoded)),
            not_encoded=dict(Counter(self.not_encoded) + Counter(not_encoded)),
        )

    def with_stop(self, until: str | None, n_columns: int) -> Self:
        """Return the facts after a source that `until` ended; `until` is None if it did not."""
        return replace(self, until=until, stopped_at=0 if until is None else n_columns)

    def merged(self, other: Self) -> Self:
        """Return the facts of a model that learnt the columns of both."""
        return self.with_encoded(other.encoded, other.not_encoded).with_stop(None, 0)

    def details(self) -> dict[str, Any]:
        """Return the details for a report."""
        found: dict[str, Any] = {}
        if self.encoded:
            found["encoded"] = dict(self.encoded)
        if self.not_encoded:
            found["not_encoded"] = dict(self.not_encoded)
        if self.until is not None:
            found["stopped"] = {"until": self.until, "n_columns": self.stopped_at}
        return found

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the facts for a model file."""
        return self.details()

    @classmethod
    def restored(cls, state: Any, n_columns: int) -> Self:
        """Return the facts of a file, of a model that has learnt so many columns."""
        expect(state)
        counts = [state.get(key, {}) for key in ("encoded", "not_encoded")]
        for count in counts:
            expect(count)
            expect(count, **dict.fromkeys(map(str, count), CountKind(1)))
        facts = cls(dict(counts[0]), dict(counts[1]))
        if "stopped" in state:
            stopped = state["stopped"]
            expect(stopped, until=StringKind(), n_columns=CountKind(1))
            if stopped["n_columns"] > n_columns:
                raise ValueError(
                    f"Expected at most {n_columns} columns before a stop. Got: "
                    f"{stopped['n_columns']}."
                )
            facts = facts.with_stop(stopped["until"], stopped["n_columns"])
        return facts

"""What a run does not learn: counted by reason, and listed if that was asked for."""

from __future__ import annotations

import io
import os
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli._errors import message_of
from streamsel.cli._log import log
from streamsel.cli._rows import row_writer
from streamsel.escape import shown
from streamsel.stream._numerals import OfCell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping

    from streamsel.columns import Block


class Skipped:
    """Columns that are met and not learnt.

    The screen counts most of them by itself, and tells `list_` of each. What it never sees comes
    to `on_bad_line`, and what the learner will not have to `refuse`.

    Parameters
    ----------
    path
        Where they are listed; "-" is stderr, None nowhere.

    Attributes
    ----------
    refused
        How many, of those that the screen has not counted: reason -> number.
    listening
        Whether text lines that are not numbers are news.
    strict
        Whether the first of those is an error.
    left_out
        Names of which nothing is to be said: they were not to be learnt.
    examples
        Of some reasons the first column: its name, the detail, and the cell.
    named
        Makes of a text about a row one that has its identifier, if that is known.
    """

    def __init__(self, path: str | None) -> None:
        self.refused: Counter[str] = Counter()
        self.listening = False
        self.strict = False
        self.left_out: Collection[str] = ()
        self.examples: dict[str, list[str]] = {}
        self.named: Callable[[str], str] = str
        self._path = path
        self._to: io.FileIO | None = None
        self._n_bad_lines = 0
        self._n_known = 0
        # How much of the list an earlier run of it has written; None to begin it.
        self._n_bytes: int | None = None

    @property
    def listed(self) -> list[Any] | None:
        """The list and how long it is; None if there is none."""
        return None if self._n_bytes is None else [self._path, self._n_bytes]

    @property
    def n_bad_lines(self) -> int:
        """Lines of text, in this run and those before it, that are not all numbers."""
        return max(self._n_bad_lines, self._n_known)

    def go_on(self, notes: Mapping[str, Any]) -> None:
        """Take up what an earlier run has counted and told of."""
        self.refused.update(notes["skipped"])
        self.examples |= notes["examples"]
        self._n_known = notes["bad_lines"]
        path, n_bytes = notes["listed"] or (None, None)
        self._n_bytes = n_bytes if path == self._path else None

    @contextmanager
    def listing(self) -> Iterator[None]:
        """Write the list, if it was asked for."""
        if self._path is None or self._path == "-":
            yield
            return
        path = Path(self._path)
        known = self._n_bytes if path.exists() else None
        with path.open("wb" if known is None else "ab", buffering=0) as file:
            if known is not None:
                # What was listed after the model was saved, by a run that was killed, comes again.
                file.truncate(min(known, file.tell()))
            self._to, self._n_bytes = file, file.seek(0, os.SEEK_END)
            try:
                yield
            finally:
                self.to_disk()
                self._to = None

    def to_disk(self) -> None:
        """Let the list survive a power failure, before a model that knows of it."""
        if self._to is not None and self._n_bytes is not None:
            with suppress(OSError):  # a file system that cannot
                os.fsync(self._to.fileno())

    def list_(self, name: Hashable, reason: str, detail: str) -> None:
        """Write a line of the list."""
        cell = detail.cell if isinstance(detail, OfCell) else None
        detail = self.named(detail)
        if cell is not None:
            self.examples.setdefault(reason, [str(name), str(detail), cell])
        cells = str(name), reason, " ".join(detail.split())
        if self._path == "-":
            _say(*cells)
        elif self._to is not None and self._n_bytes is not None:
            line = io.StringIO(newline="")
            row_writer(line, "\t").writerow(cells)
            # A name that cannot be encoded is to end no run.
            self._n_bytes += self._to.write(line.getvalue().encode("utf-8", "backslashreplace"))

    def on_bad_line(self, name: Hashable, reason: str, detail: str) -> None:
        """Take note of a line of text that is not all numbers."""
        if not self.listening or name in self.left_out:
            return
        self._n_bad_lines += 1
        if self._n_bad_lines <= self._n_known:
            return
        if self.strict:
            raise ValueError(detail)
        self.refuse(name, reason, detail)

    def refuse(self, name: Hashable, reason: str, detail: str) -> None:
        """Count a column, and list it."""
        self.refused[reason] += 1
        self.list_(name, reason, detail)


def _say(name: str, reason: str, detail: str) -> None:
    """List a column on stderr."""
    if log().as_json:
        log().say("skipped", name=name, reason=reason, detail=detail)
    elif not log().quiet:
        click.echo("\t".join(map(shown, (name, reason, detail))), err=True)


def learn_good(learn: Callable[[Block], None], block: Block, skipped: Skipped) -> None:
    """Learn a block; of one that is refused all columns but those that are refused alone."""
    try:
        learn(block)
    except ValueError as error:
        # A name that the model holds, or values too large to be squared: find out which.
        if len(block.names) == 1:
            skipped.refuse(block.names[0], "refused", message_of(error))
            return
        half = len(block.names) // 2
        for part in (slice(None, half), slice(half, None)):
            names, values = block.names[part], block.values[:, part]
            learn_good(learn, block._replace(names=names, values=values), skipped)

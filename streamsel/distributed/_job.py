"""The learning of one source: its tasks, and the merging of their results into a model."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from streamsel.distributed._packing import pack_blank, unpack, unpack_blank
from streamsel.distributed._summary import Summary
from streamsel.distributed._tasks import (
    Learnt,
    learn_part,
    learn_rows,
    merge_columns,
    merge_found,
    merge_rows,
    read_part,
)
from streamsel.distributed._tree import Leaf, Tree
from streamsel.distributed._waves import results
from streamsel.target.target import Target

if TYPE_CHECKING:
    from distributed import Client


class Job:
    """The learning of one source: iterate over `results` and `fold` each of them, then `finish`.

    Parameters
    ----------
    model
        The learner; validated, with its target if it learns columns.
    leaves
        The parts to read, in order.
    rows
        Whether the parts are rows.
    fan_in, retries
        As in `learn`.

    Attributes
    ----------
    summary
        Counts of the parts merged so far.
    """

    def __init__(
        self, model: Any, leaves: Sequence[Leaf], *, rows: bool, fan_in: int, retries: int
    ) -> None:
        self.summary = Summary()
        self._model, self._leaves, self._rows = model, leaves, rows
        self._fan_in, self._retries = fan_in, retries
        self._blank = pack_blank(_blank_of(model, rows=rows))
        # A model that must not be left half learnt is merged into only at the end.
        separate = rows or model._one_source
        self._folded = unpack_blank(self._blank) if separate else model
        self._arrived: list[int] = []

    def results(self, client: Client) -> Generator[Learnt]:
        """Yield the merged result of each wave of parts, in order."""
        leaf, merge = (learn_rows, merge_rows) if self._rows else (learn_part, merge_columns)
        tree = self._tree(client, leaf, merge, self._blank)
        return results(client, tree, self._leaves, self._fan_in**2)

    def fold(self, found: Learnt) -> None:
        """Merge the result of a wave."""
        along = "rows" if self._rows else "columns"
        self._folded.merge(unpack(self._blank, found.state), along=along)
        self.summary.add(found.counts)
        self._arrived += found.arrived

    def finish(self, client: Client, *, loadings: bool) -> None:
        """Update the model from a separate merged state, and run further passes that it needs."""
        model = self._model
        if self._rows:
            model.merge(self._folded, along="rows")
        elif self._folded is not model:
            model._in_session(BaseException, self._adopt_merged, client)
        elif loadings:
            self._run_passes(client)

    def _adopt_merged(self, client: Client) -> None:
        model = self._model
        model._whole(model._set_state, self._folded._get_state())
        self._run_passes(client)

    def _run_passes(self, client: Client) -> None:
        """Run passes over all parts until the model needs no more."""
        model = self._model
        while (reading := model._next_reading()) is not None:
            model._take_reading(reading, self._read_again(client, reading))

    def _read_again(self, client: Client, reading: Any) -> Any:
        """Run one pass over all parts; return its merged result."""
        starts = accumulate(self._arrived, initial=0)
        leaves = [
            leaf._replace(args=(start,)) for leaf, start in zip(self._leaves, starts, strict=False)
        ]
        packed = pickle.dumps(reading, protocol=pickle.HIGHEST_PROTOCOL)
        tree = self._tree(client, read_part, merge_found, packed)
        first, *others = (
            pickle.loads(found)  # noqa: S301 (by a task of this job)
            for found in results(client, tree, leaves, self._fan_in**2)
        )
        for other in others:
            first.merge(other)
        return first

    def _tree(self, client: Client, leaf: Any, merge: Any, shared: bytes) -> Tree:
        return Tree(client, leaf, merge, shared, fan_in=self._fan_in, retries=self._retries)


def _blank_of(model: Any, *, rows: bool) -> Any:
    """Return an unfitted copy of a model for the tasks, with the target if it learns columns."""
    # Workers are single-threaded.
    blank = model.clone({"n_jobs": 1})
    if rows:
        return blank
    if isinstance(model._target, Target):
        blank._take_target(model._target)
    else:
        blank._without_target = model._without_target
        if model._target is not None and model._target.weights is not None:
            blank._target = model._target
    return blank

"""What is to be learnt of a source, and how its results become part of a model."""

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
    """The learning of a model: `for found in job.results(client): job.fold(found)`, `job.finish`.

    Parameters
    ----------
    model
        What learns; checked, and with its target if it learns columns.
    leaves
        What there is to read, in order.
    rows
        Whether that is rows.
    fan_in, retries
        As `learn` has them.

    Attributes
    ----------
    summary
        What has been folded.
    """

    def __init__(
        self, model: Any, leaves: Sequence[Leaf], *, rows: bool, fan_in: int, retries: int
    ) -> None:
        self.summary = Summary()
        self._model, self._leaves, self._rows = model, leaves, rows
        self._fan_in, self._retries = fan_in, retries
        self._blank = pack_blank(_blank_of(model, rows=rows))
        # Who is not to be left half learnt has another fold for it.
        apart = rows or model._one_source
        self._folded = unpack_blank(self._blank) if apart else model
        self._arrived: list[int] = []

    def results(self, client: Client) -> Generator[Learnt]:
        """Yield what was learnt of one wave of parts after the other, in order."""
        leaf, merge = (learn_rows, merge_rows) if self._rows else (learn_part, merge_columns)
        tree = self._tree(client, leaf, merge, self._blank)
        return results(client, tree, self._leaves, self._fan_in**2)

    def fold(self, found: Learnt) -> None:
        """Take in what was learnt of a wave."""
        along = "rows" if self._rows else "columns"
        self._folded.merge(unpack(self._blank, found.state), along=along)
        self.summary.add(found.counts)
        self._arrived += found.arrived

    def finish(self, client: Client, *, loadings: bool) -> None:
        """Let the model have what was folded beside it, and read again what must be."""
        model = self._model
        if self._rows:
            model.merge(self._folded, along="rows")
        elif self._folded is not model:
            model._in_session(BaseException, self._take_over, client)
        elif loadings:
            self._read_on(client)

    def _take_over(self, client: Client) -> None:
        model = self._model
        model._whole(model._set_state, self._folded._get_state())
        self._read_on(client)

    def _read_on(self, client: Client) -> None:
        """Read all parts again until nothing more is to be found."""
        model = self._model
        while (reading := model._next_reading()) is not None:
            model._take_reading(reading, self._read_again(client, reading))

    def _read_again(self, client: Client, reading: Any) -> Any:
        """Read all parts again; return what was found."""
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
    """Return a model that a task begins with: it knows the target of columns."""
    # Threads are the workers' business.
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

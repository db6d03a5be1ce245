"""A run of `select` or `reduce` on several processes, or on many machines."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from streamsel.cli._errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamsel.cli._interrupt import Interrupts
    from streamsel.cli._job import Job
    from streamsel.cli._keep import Keeper
    from streamsel.cli._progress import Meter
    from streamsel.cli._request import Request
    from streamsel.distributed import Summary

# Results that a task puts together. Its square is a wave, between which a run is saved and told of.
_FAN_IN = 4


def check_resumed(request: Request, notes: Mapping[str, Any]) -> None:
    """Refuse to go on with a run in parts as one without, or the other way round.

    Parts are counted, not columns: only the same parts lead to the same bits.
    """
    if notes["columns_read"] and request.in_parts != ("parts" in notes):
        begun = "without --workers and --scheduler, and goes on without"
        if "parts" in notes:
            begun = "with --workers or --scheduler, and goes on with one of them only"
        raise CommandError(f"--resume {request.resume}: a run that was begun {begun}")


def learn_in_parts(job: Job, keeper: Keeper, bar: Meter, interrupts: Interrupts) -> None:
    """Learn all parts of a job's files that are not learnt yet."""
    from streamsel.distributed._clusters import connected
    from streamsel.distributed._job import Job as Parts
    from streamsel.distributed._learn import check_columns
    from streamsel.distributed._sources import leaves_of

    request, notes = job.request, job.notes
    check_columns(job.model)
    leaves = leaves_of(job.screen, None, None)
    done = notes.get("parts", 0)
    if notes.setdefault("of_parts", len(leaves)) != len(leaves):
        raise CommandError(
            f"{request.file}: not the file that the model was learnt from. Expected "
            f"{notes['of_parts']} parts. Got: {len(leaves)}"
        )
    before = _Before(job, done)
    work = Parts(job.model, leaves[done:], rows=False, fan_in=_FAN_IN, retries=2)
    with (
        connected(request.scheduler, request.workers) as client,
        closing(work.results(client)) as results,
    ):
        for found in results:
            with interrupts.held():
                work.fold(found)
                before.note(work.summary)
                # Who reads again until all is proven has learnt nothing before.
                shown = None if job.model._one_source else job.model
                bar.update(notes["columns_read"], shown)
                if shown is not None:
                    keeper.save_in_between()
        # What was read before this run is not read by these parts.
        work.finish(client, loadings=not done)


class _Before:
    """What runs before have noted, to which this one adds."""

    def __init__(self, job: Job, n_parts: int) -> None:
        self._job = job
        self._n_parts, self._n_read = n_parts, job.notes["columns_read"]
        self._skipped, self._n_filled = Counter(job.notes["skipped"]), job.notes["filled"]
        self._n_values = job.notes["filled_values"]

    def note(self, summary: Summary) -> None:
        """Note how far this run has come."""
        self._job.notes |= {
            "parts": self._n_parts + summary.n_parts,
            "columns_read": self._n_read + summary.n_read,
            "skipped": dict(self._skipped + summary.skipped),
            "filled": self._n_filled + summary.n_filled,
            "filled_values": self._n_values + summary.n_filled_values,
        }
        self._job.note_read_elsewhere()

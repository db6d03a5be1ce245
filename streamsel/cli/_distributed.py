"""Runs of `select` or `reduce` on several processes, or on a Dask cluster."""

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

# Results merged by one task. Its square is the size of a wave; after each wave progress is
# reported and the model may be saved.
_FAN_IN = 4


def check_resumed(request: Request, notes: Mapping[str, Any]) -> None:
    """Refuse to resume a run in parts as one without parts, or the reverse.

    Progress is counted in parts, not columns: only the same parts give bit-identical results.
    """
    if notes["columns_read"] and request.in_parts != ("parts" in notes):
        begun = "without --workers and --scheduler; it must be resumed without them"
        if "parts" in notes:
            begun = "with --workers or --scheduler; it must be resumed with one of them"
        raise CommandError(f"--resume {request.resume}: that run was started {begun}")


def learn_in_parts(job: Job, keeper: Keeper, bar: Meter, interrupts: Interrupts) -> None:
    """Learn the remaining parts of a job's files."""
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
            f"{request.file}: not the file that the model was learnt from. Expected: "
            f"{notes['of_parts']} parts. Got: {len(leaves)}"
        )
    earlier = _Before(job, done)
    work = Parts(job.model, leaves[done:], rows=False, fan_in=_FAN_IN, retries=2)
    with (
        connected(request.scheduler, request.workers) as client,
        closing(work.results(client)) as results,
    ):
        for found in results:
            with interrupts.held():
                work.fold(found)
                earlier.note(work.summary)
                # A multi-pass model has no intermediate result.
                shown = None if job.model._one_source else job.model
                bar.update(notes["columns_read"], shown)
                if shown is not None:
                    keeper.save_in_between()
        # Loadings need all columns; a resumed run reads only the remaining parts.
        work.finish(client, loadings=not done)


class _Before:
    """Counts of earlier runs, to which this run adds."""

    def __init__(self, job: Job, n_parts: int) -> None:
        self._job = job
        self._n_parts, self._n_read = n_parts, job.notes["columns_read"]
        self._skipped, self._n_filled = Counter(job.notes["skipped"]), job.notes["filled"]
        self._n_values = job.notes["filled_values"]

    def note(self, summary: Summary) -> None:
        """Record the progress of this run."""
        self._job.notes |= {
            "parts": self._n_parts + summary.n_parts,
            "columns_read": self._n_read + summary.n_read,
            "skipped": dict(self._skipped + summary.skipped),
            "filled": self._n_filled + summary.n_filled,
            "filled_values": self._n_values + summary.n_filled_values,
        }
        self._job.note_read_elsewhere()

"""What a run keeps on disk while it goes on, and where it is when it ends before its time."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Never

from streamsel.cli._errors import (
    EXPECTED,
    CommandError,
    message_of,
    note,
    reason_of,
    stop,
    warn,
)
from streamsel.cli._log import log
from streamsel.cli._results import show
from streamsel.words import count

if TYPE_CHECKING:
    from streamsel.cli._job import Job


class Keeper:
    """Saves the model of a job.

    Parameters
    ----------
    job
        Whose model.

    Attributes
    ----------
    unwritten
        What could not be written, and why, by option: it is told at the end.
    """

    def __init__(self, job: Job) -> None:
        self.unwritten: dict[str, str] = {}
        self._job = job
        self._saved_at = time.monotonic()

    def save(self) -> bool:
        """Save the model; a failure is kept for the end, as the result is not to be lost by it."""
        from streamsel.persist import save

        path = self._job.request.model
        if path is None:
            return True
        self._job.skipped.to_disk()
        try:
            save(self._job.model, path, self._job.notes)
        except EXPECTED as error:
            self.unwritten["--model"] = f"--model {path}: not written ({reason_of(error)})"
            return False
        self.unwritten.pop("--model", None)
        return True

    def save_in_between(self) -> None:
        """Save the model if it is time for a checkpoint."""
        every = self._job.request.checkpoint
        if every is not None and time.monotonic() - self._saved_at >= every:
            self._job.note_time()
            if self.save():
                n_read = self._job.notes["columns_read"]
                log().say("checkpoint", file=self._job.request.model, columns_read=n_read)
            else:
                warn(self.unwritten["--model"])
            self._saved_at = time.monotonic()

    def keep_complete(self) -> None:
        """Save a model that was complete before, if it is wanted elsewhere than where it is."""
        request = self._job.request
        note(f"{request.resume} is complete: no more is learnt")
        listed = request.skipped_file
        if listed not in (None, "-") and not os.path.exists(listed):  # noqa: PTH110 (as given)
            warn(f"--list-skipped {listed}: not written, as no columns are read")
        if request.model != request.resume:
            self.save()

    def _keep(self) -> str:
        """Save what was learnt so far; say where it is."""
        self._job.note_time()
        n_read = self._job.notes["columns_read"]
        if not n_read:
            return "before the first column was learnt"
        path = self._job.request.model
        if path is None:
            return f"after {count(n_read, 'column')}; nothing was saved (no --model)"
        if not self.save():
            return f"after {count(n_read, 'column')}; {self.unwritten['--model']}"
        return f"after {count(n_read, 'column')}; what was learnt is in {path}"

    def stop(self, exit_code: int) -> Never:
        """End a run that was interrupted: keep and show what there is."""
        job = self._job
        request, what, further = job.request, self._keep(), []
        if job.notes["columns_read"]:
            show(job.report(), job.notes, as_json=request.as_json)
            can_go_on = job.notes["complete"] or not job.model._one_source
            if request.model is not None and can_go_on and not self.unwritten:
                words = ["streamsel", request.command, *request.given, *request.readers]
                words += ["--resume", request.model]
                further.append(f"to go on: {shlex.join(words)}")
        if request.model is not None and job.model._one_source and not job.notes["complete"]:
            further.append("an --exact run cannot go on; one with --checkpoint or --no-exact can")
        if request.out is not None:
            further.append(f"{request.out} was not written")
        stop(f"interrupted {what}", exit_code, *further)

    def fail(self, error: BaseException) -> Never:
        """End a run that met an error: keep what there is."""
        # Over a file that can be read again, learning all at once is undone by an error.
        if self._job.model._one_source or not self._job.notes["columns_read"]:
            raise error
        raise CommandError(f"{message_of(error)} (stopped {self._keep()})") from error

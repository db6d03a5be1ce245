"""Checkpoints of a run, and its end after an interrupt or an error."""

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
        The job.

    Attributes
    ----------
    unwritten
        Outputs that could not be written, by option, with the reason; reported at the end.
    """

    def __init__(self, job: Job) -> None:
        self.unwritten: dict[str, str] = {}
        self._job = job
        self._saved_at = time.monotonic()

    def save(self) -> bool:
        """Save the model; a failure is reported at the end, so that the result is not lost."""
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
        """Save the model if a checkpoint is due."""
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
        """Save a model that was complete before, if --model differs from --resume."""
        request = self._job.request
        note(f"{request.resume} is complete; no columns are learnt")
        listed = request.skipped_file
        if listed not in (None, "-") and not os.path.exists(listed):  # noqa: PTH110 (as given)
            warn(f"--list-skipped {listed}: not written, because no columns are read")
        if request.model != request.resume:
            self.save()

    def _save_partial(self) -> str:
        """Save the current state; return a text that says where it is."""
        self._job.note_time()
        n_read = self._job.notes["columns_read"]
        if not n_read:
            return "before the first column was learnt"
        path = self._job.request.model
        if path is None:
            return f"after {count(n_read, 'column')}; the model was not saved (no --model)"
        if not self.save():
            return f"after {count(n_read, 'column')}; {self.unwritten['--model']}"
        return f"after {count(n_read, 'column')}; the model was saved to {path}"

    def stop(self, exit_code: int) -> Never:
        """End an interrupted run: save the model and show the results so far."""
        job = self._job
        request, state, further = job.request, self._save_partial(), []
        if job.notes["columns_read"]:
            show(job.report(), job.notes, as_json=request.as_json)
            can_resume = job.notes["complete"] or not job.model._one_source
            if request.model is not None and can_resume and not self.unwritten:
                arguments = ["streamsel", request.command, *request.given, *request.readers]
                arguments += ["--resume", request.model]
                further.append(f"to resume: {shlex.join(arguments)}")
        if request.model is not None and job.model._one_source and not job.notes["complete"]:
            further.append("a run with --exact cannot be resumed; use --checkpoint or --no-exact")
        if request.out is not None:
            further.append(f"{request.out} was not written")
        stop(f"interrupted {state}", exit_code, *further)

    def fail(self, error: BaseException) -> Never:
        """End a run after an error: save the model."""
        # An error undoes multi-pass learning: there is nothing to save.
        if self._job.model._one_source or not self._job.notes["columns_read"]:
            raise error
        raise CommandError(f"{message_of(error)} (stopped {self._save_partial()})") from error

"""Checkpoints of a run, locks of its outputs, and its end after an interrupt or an error."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Never

from streamsel._utils.text import count_text
from streamsel.cli.errors import (
    EXPECTED_ERRORS,
    CommandError,
    message_of,
    note,
    reason_of,
    stop_with_note,
    warn,
)
from streamsel.cli.log import log
from streamsel.cli.results import show_results
from streamsel.cli.source_comparison import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamsel.cli.run import Run

if sys.platform != "win32":
    import fcntl


# Longest file name, in bytes, that is part of the lock's name; longer ones are hashed.
_MAX_NAME_BYTES = 60


@contextmanager
def output_locks(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Prevent other runs from writing the same files.

    The locks are advisory and end with the process, however it ends. On Windows, and on file
    systems without locks, nothing is locked.

    Parameters
    ----------
    outputs
        Paths by option; None if not given.

    Raises
    ------
    CommandError
        For a file that another run is writing, with that run.
    """
    with ExitStack() as stack:
        for option, path in outputs.items():
            if path is not None and sys.platform != "win32":
                stack.enter_context(_locked(option, path))
        yield


def lock_path(path: str) -> Path:
    """Return the lock file of a path."""
    target = Path(os.path.realpath(path))
    name = target.name
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:_MAX_NAME_BYTES]
    return target.with_name(f".lock-{name}")


@contextmanager
def _locked(option: str, path: str) -> Iterator[None]:
    lock = lock_path(path)
    opened = _open_locked(lock, f"{option} {path}")
    try:
        if opened is not None:
            with suppress(OSError):
                os.truncate(opened, 0)
                os.write(opened, _run_description().encode())
        yield
    finally:
        if opened is not None:
            # Removed before unlocking, as it may then belong to another run.
            lock.unlink(missing_ok=True)
            os.close(opened)


def _open_locked(lock: Path, what: str) -> int | None:
    """Open and lock a lock file; None if that is not possible."""
    while True:
        try:
            opened = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(opened, 1000).decode(errors="replace").strip()
            os.close(opened)
            raise CommandError(
                f"{what}: another run is writing this file{other and f' ({other})'}. Hint: "
                "wait for it to end, or use another file"
            ) from None
        except OSError:  # a file system without locks
            os.close(opened)
            lock.unlink(missing_ok=True)
            return None
        # Meanwhile its owner may have removed it and another run created it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(opened), lock.stat()):
                return opened
        os.close(opened)


def _run_description() -> str:
    return f"process {os.getpid()} on {platform.node()}, since {iso_utc(time.time())}"


class Checkpointer:
    """Saves the model of a job.

    Parameters
    ----------
    job
        The job.

    Attributes
    ----------
    failed_outputs
        Outputs that could not be written, by option, with the reason; reported at the end.
    """

    def __init__(self, job: Run) -> None:
        self.failed_outputs: dict[str, str] = {}
        self._job = job
        self._saved_at = time.monotonic()

    def save(self) -> bool:
        """Save the model; a failure is reported at the end, so that the result is not lost."""
        from streamsel.serialization.archive import save

        path = self._job.request.model
        if path is None:
            return True
        self._job.skipped.flush()
        try:
            save(self._job.model, path, self._job.metadata)
        except EXPECTED_ERRORS as error:
            self.failed_outputs["--model"] = f"--model {path}: not written ({reason_of(error)})"
            return False
        self.failed_outputs.pop("--model", None)
        return True

    def save_if_due(self) -> None:
        """Save the model if a checkpoint is due."""
        every = self._job.request.checkpoint
        if every is not None and time.monotonic() - self._saved_at >= every:
            self._job.record_time()
            if self.save():
                n_read = self._job.metadata["columns_read"]
                log().emit("checkpoint", file=self._job.request.model, columns_read=n_read)
            else:
                warn(self.failed_outputs["--model"])
            self._saved_at = time.monotonic()

    def save_completed(self) -> None:
        """Save a model that was complete before, if --model differs from --resume."""
        request = self._job.request
        note(f"{request.resume} is complete; no columns are learnt")
        listed = request.skipped_file
        if listed not in (None, "-") and not os.path.exists(listed):  # noqa: PTH110 (as given)
            warn(f"--list-skipped {listed}: not written, because no columns are read")
        if request.model != request.resume:
            self.save()

    def _save_partial(self) -> str:
        """Save the current state; return a text on where it is."""
        self._job.record_time()
        n_read = self._job.metadata["columns_read"]
        if not n_read:
            return "before the first column was learnt"
        path = self._job.request.model
        if path is None:
            return f"after {count_text(n_read, 'column')}; the model was not saved (no --model)"
        if not self.save():
            return f"after {count_text(n_read, 'column')}; {self.failed_outputs['--model']}"
        return f"after {count_text(n_read, 'column')}; the model was saved to {path}"

    def stop(self, exit_code: int) -> Never:
        """End an interrupted run: save the model and show the results so far."""
        job = self._job
        request, state, further = job.request, self._save_partial(), []
        if job.metadata["columns_read"]:
            show_results(job.report(), job.metadata, as_json=request.as_json)
            can_resume = job.metadata["complete"] or not job.model._needs_single_source
            if request.model is not None and can_resume and not self.failed_outputs:
                arguments = [
                    "streamsel",
                    request.command,
                    *request.arguments,
                    *request.worker_options,
                ]
                arguments += ["--resume", request.model]
                further.append(f"to resume: {shlex.join(arguments)}")
        if (
            request.model is not None
            and job.model._needs_single_source
            and not job.metadata["complete"]
        ):
            further.append("a run with --exact cannot be resumed; use --checkpoint or --no-exact")
        if request.out is not None:
            further.append(f"{request.out} was not written")
        stop_with_note(f"interrupted {state}", exit_code, *further)

    def fail(self, error: BaseException) -> Never:
        """End a run after an error: save the model."""
        # An error undoes multi-pass learning: there is nothing to save.
        if self._job.model._needs_single_source or not self._job.metadata["columns_read"]:
            raise error
        raise CommandError(f"{message_of(error)} (stopped {self._save_partial()})") from error

"""Kill a run of the command at a chosen moment, then resume it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsel.serialization.archive import load, read_metadata, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

PHASES = ("start", "learning", "checkpoint", "--model", "--out")
"""When a run is killed: before the first checkpoint, after it, or while a file is written."""

SECONDS = 120.0
# Metadata that may differ between an undisturbed run and a killed one.
_OF_THE_RUN = ("seconds", "peak_memory", "begun", "saved")
_OLD = b"what stood here before\n"


@dataclass(frozen=True)
class Ended:
    """The results of a complete run."""

    state: bytes
    metadata: dict[str, Any]
    out: bytes
    stdout: str
    first_save: float
    seconds: float


class Folder:
    """The directory of one run's files.

    Parameters
    ----------
    path
    An empty directory.
    command
    Arguments of the command, without its outputs.
    out
    Name of the file for `--out`; its suffix determines the format.
    """

    def __init__(self, path: Path, command: Sequence[str], out: str) -> None:
        self.path, self.model, self.out = path, path / "model.streamsel", path / out
        self._temporary = path / "tmp"
        self._temporary.mkdir(parents=True)
        self._command = list(command)

    def start(self, *, checkpoints: bool = True, resume: bool = False) -> Running:
        """Start the command."""
        options = ["--model", str(self.model), "--out", str(self.out)]
        if checkpoints:
            options += ["--checkpoint", "0"]
        if resume:
            options += ["--resume", str(self.model)]
        return Running([*self._command, *options], self)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the command, with a separate folder for temporary files."""
        return {**os.environ, "TMPDIR": str(self._temporary)}

    def left_over(self) -> list[str]:
        """Return the files here other than the outputs."""
        known = {self.model, self.out, self._temporary}
        here = [*self.path.iterdir(), *self._temporary.iterdir()]
        return sorted(str(file.relative_to(self.path)) for file in here if file not in known)

    def temporary_of(self, file: Path) -> int:
        """Return the bytes written so far to the temporary file that will replace a file."""
        ours = re.compile(rf"\.{re.escape(file.name)}\..*")
        sizes = [0]
        with os.scandir(self.path) as entries:
            for entry in entries:
                if ours.fullmatch(entry.name):
                    try:
                        sizes.append(entry.stat().st_size)
                    except FileNotFoundError:  # it has just been renamed
                        continue
        return max(sizes)


class Running:
    """The command, in a separate process."""

    def __init__(self, command: Sequence[str], folder: Folder) -> None:
        self._folder = folder
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115  closed at the end of the run
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streamsel", *command],
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            env=folder.environment,
        )

    def seconds(self) -> float:
        """Return how long it has been running."""
        return time.monotonic() - self._began

    def wait_for(self, event: Any) -> bool:
        """Wait for an event; return whether the process is still running then."""
        while self._process.poll() is None:
            if event():
                return True
            if self.seconds() > SECONDS:
                raise TimeoutError
            time.sleep(0.0002)
        return False

    def kill(self, number: signal.Signals) -> bool:
        """Send a signal; return whether it was sent before the end."""
        if self._process.poll() is not None:
            return False
        self._process.send_signal(number)
        return True

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code, stdout and stderr."""
        try:
            code = self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise TimeoutError from None
        outputs = []
        for file in (self._stdout, self._stderr):
            file.seek(0)
            outputs.append(file.read().decode())
            file.close()
        return code, outputs[0], outputs[1]


def whole_run(folder: Folder) -> Ended:
    """Run the command from beginning to end."""
    running = folder.start()
    running.wait_for(folder.model.exists)
    first_save = running.seconds()
    code, stdout, stderr = running.end()
    if code:
        raise RuntimeError(f"Expected a run that ends well. Got: exit {code}, {stderr}")
    return _ended(folder, stdout, first_save, running.seconds())


def killed_run(folder: Folder, phase: str, rng: Random, whole: Ended) -> str:
    """Kill a run at a random moment of a phase, once or twice, then let it finish.

    Parameters
    ----------
    folder
    An empty folder.
    phase
    One of `PHASES`.
    rng
    Draws the moment, the signal, and whether the output file exists before.
    whole
    The results of an undisturbed run.

    Returns
    -------
    str
    A description of the defect; "" if there is none, "missed" if the run ended before the signal.
    """
    try:
        return _killed_run(folder, phase, rng, whole)
    except TimeoutError:
        return f"it hangs, for {SECONDS:g} s"


def _killed_run(folder: Folder, phase: str, rng: Random, whole: Ended) -> str:
    before = rng.choice([None, _OLD])
    if before is not None:
        folder.out.write_bytes(before)
    resume = False
    for _ in range(rng.choice([1, 1, 2])):
        wrong = _kill_once(folder, phase, rng, whole, resume=resume)
        if wrong:
            return "" if resume and wrong == "missed" else wrong
        wrong = _damage(folder, before, whole)
        if wrong:
            return wrong
        resume = True
    code, stdout, stderr = folder.start(resume=True).end()
    if code:
        return f"the resumed run ends with {code}: {_in_short(stderr)}"
    return _difference(_ended(folder, stdout, 0, 0), whole) or _left_over_files(folder)


def _kill_once(folder: Folder, phase: str, rng: Random, whole: Ended, *, resume: bool) -> str:
    number = rng.choice(
        [signal.SIGKILL] * 7 + [signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
    )
    # A killed run leaves its locks. A run that ends before it takes the locks leaves these again.
    known = folder.left_over()
    # Without checkpoints, the first file that is written is the last one.
    running = folder.start(checkpoints=phase != "--model", resume=resume)
    if not _await(phase, running, folder, rng, whole) or not running.kill(number):
        running.end()
        return "missed"
    code, _, stderr = running.end()
    if "Traceback" in stderr:
        return f"{number.name}, and it says: {_in_short(stderr)}"
    if code not in (-number, 128 + number, 0):
        return f"{number.name} ends it with {code}: {_in_short(stderr)}"
    return _left_over_files(folder, known) if code >= 0 else ""


def _await(phase: str, running: Running, folder: Folder, rng: Random, whole: Ended) -> bool:
    """Wait for a random moment of a phase; return whether it came before the end."""
    if phase == "start":
        return _pause(running, rng.uniform(0, whole.first_save))
    if phase == "learning":
        started = running.wait_for(folder.model.exists)
        return started and _pause(running, rng.uniform(0, whole.seconds - whole.first_save))
    if phase == "checkpoint":
        for _ in range(rng.randrange(3)):
            stamp = _stamp(folder.model)
            if not running.wait_for(lambda stamp=stamp: _stamp(folder.model) != stamp):
                return False
    file = folder.out if phase == "--out" else folder.model
    seen = running.wait_for(lambda: folder.temporary_of(file))
    return seen and _pause(running, rng.choice([0.0, rng.uniform(0, 0.005)]))


def _pause(running: Running, seconds: float) -> bool:
    until = running.seconds() + seconds
    return running.wait_for(lambda: running.seconds() >= until)


def _stamp(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


def _damage(folder: Folder, before: bytes | None, whole: Ended) -> str:
    """Return a description of an output that is neither the old one nor the new one."""
    if folder.model.exists():
        try:
            load(folder.model)
        except (ValueError, OSError) as error:
            return f"the model is damaged: {_in_short(str(error))}"
    out = folder.out.read_bytes() if folder.out.exists() else None
    return "" if out in (before, whole.out) else "the output is truncated"


def _ended(folder: Folder, stdout: str, first_save: float, seconds: float) -> Ended:
    model, metadata = load(folder.model), read_metadata(folder.model)
    copy = folder.path / "copy"
    save(model, copy)
    state = copy.read_bytes()
    copy.unlink()
    metadata = {key: value for key, value in metadata.items() if key not in _OF_THE_RUN}
    return Ended(state, metadata, folder.out.read_bytes(), stdout, first_save, seconds)


def _difference(got: Ended, whole: Ended) -> str:
    parts = ("state", "out", "stdout", "metadata")
    differ = [part for part in parts if getattr(got, part) != getattr(whole, part)]
    if differ == ["metadata"]:
        odd = {
            k
            for k in {*got.metadata, *whole.metadata}
            if got.metadata.get(k) != whole.metadata.get(k)
        }
        here = {key: (whole.metadata.get(key), got.metadata.get(key)) for key in sorted(odd)}
        return f"metadata differ: {_in_short(json.dumps(here))}"
    return f"not the same: {', '.join(differ)}" if differ else ""


def _left_over_files(folder: Folder, known: Sequence[str] = ()) -> str:
    left_over = [name for name in folder.left_over() if name not in known]
    return f"left over: {', '.join(left_over)}" if left_over else ""


def _in_short(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-3:])[:400]

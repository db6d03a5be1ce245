"""Parts of columns generated on request, with failures at chosen ones."""

import os
import signal
import sys
import time
from dataclasses import dataclass

import numpy as np

from streamsel.stream import iter_array

N = 40


@dataclass(frozen=True)
class Made:
    """A part of a few columns of random numbers.

    `fault` is the failure on opening, as long as the file `mended` does not exist. With `once`
    the failing part creates that file itself.
    """

    number: int
    width: int = 20
    fault: str = ""
    mended: str = ""
    once: bool = False
    pause: float = 0.0

    n_bytes = 8 * N * 20

    @property
    def key(self):
        return f"made-{self.number}-{self.width}-{self.fault}-{self.mended}-{self.pause}"

    def __str__(self):
        return f"columns {self.start} to {self.start + self.width - 1} of thin air"

    @property
    def start(self):
        return self.number * self.width

    def values(self):
        return np.random.default_rng(self.number).normal(size=(N, self.width))

    def open(self):
        time.sleep(self.pause)
        if self.fault and not (self.mended and os.path.exists(self.mended)):  # noqa: PTH110
            if self.once:
                open(self.mended, "w").close()  # noqa: PTH123
            self._fail()
        return iter_array(self.values(), range(self.start, self.start + self.width))

    def _fail(self):
        if hasattr(signal, self.fault):
            os.kill(os.getpid(), getattr(signal, self.fault))
        elif self.fault == "exit":
            sys.exit(3)
        elif self.fault == "missing":
            raise FileNotFoundError(2, "No such file or directory", "thin.parquet")
        elif self.fault == "defect":
            raise ZeroDivisionError


def made(count, **further):
    """Return count parts, all their columns, and a target."""
    parts = [Made(number, **further) for number in range(count)]
    X = np.hstack([part.values() for part in parts])
    return parts, X, X[:, 7] - X[:, -3] + 0.1 * X[:, 31]

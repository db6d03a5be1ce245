"""Compile kernels before the clock starts: at the first run on a machine, or by `warmup`."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel import registry
from streamsel._utils.text import seconds_text
from streamsel.base.precompile import learn_rehearsal_columns, rehearsal_columns
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, note
from streamsel.cli.progress import stage_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.stream import ColumnStream

N_COLUMNS = 3
MAX_ROWS = 64


def compile_for(model: Any, stream: ColumnStream, *, supervised: bool) -> None:
    """Compile the kernels of a model by fitting a copy to a few numbers of the stream's dtype.

    Parameters
    ----------
    model
        The model that is about to learn; it is not changed.
    stream
        The stream that it is about to learn; its first block is read.
    supervised
        Whether it has a target.
    """
    # Errors in data or parameters are reported by the run itself.
    with suppress(*EXPECTED_ERRORS, CommandError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        block = next(iter(stream.blocks()), None)
        if block is None:
            return
        values = block.values
        n_rows = min(MAX_ROWS, max(8, values.shape[0]))
        dtype = values.dtype if values.dtype.kind in "biuf" else np.dtype(np.float64)
        of_classes = getattr(model._target, "is_class", False)
        kind = {"target_type": "class" if of_classes else "numeric"} if supervised else {}
        copy = type(model)(**model._get_params() | kind)
        y = np.arange(n_rows) % 2 if of_classes else np.random.default_rng(0).normal(size=n_rows)
        learn_rehearsal_columns(
            copy, rehearsal_columns(n_rows, N_COLUMNS, dtype), y if supervised else None
        )
        _ = copy.relevance


def warm_up(names: Sequence[str]) -> None:
    """Compile the kernels of methods for columns and rows; report how long it took.

    Parameters
    ----------
    names
        The methods, with default parameters; all if empty.
    """
    names = list(dict.fromkeys(names)) or registry.names()
    start = time.monotonic()
    with stage_progress() as progress:
        for i, name in enumerate(names):
            if progress is not None:
                progress(f"compiling {name}", i, len(names))
            cls = registry.fetch(name)
            model = cls()
            if model._get_params().get("n_components", 0) is None:
                model = cls(n_components=2)  # required to learn rows
            model.precompile()
    of = names[0] if len(names) == 1 else f"{len(names)} methods"
    seconds = round(time.monotonic() - start, 3)
    note(f"compiled {of} in {seconds_text(seconds)}")

"""Compiling before the clock starts: the first run on a machine does it, once, or `warmup`."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel import catalogue
from streamsel.cli._errors import EXPECTED, CommandError, note
from streamsel.cli._progress import stages
from streamsel.learner.rehearsal import columns_of, learnt_columns
from streamsel.words import seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.stream import ColumnStream

N_COLUMNS = 3
MAX_ROWS = 64


def compile_for(model: Any, stream: ColumnStream, *, supervised: bool) -> None:
    """Let a model of the same parameters learn a few numbers of the dtype that is to come.

    Parameters
    ----------
    model
        What is about to learn; it is left as it is.
    stream
        What it is about to learn; the first block is read.
    supervised
        Whether it has a target.
    """
    # What is wrong with the data or the parameters is said by the run itself.
    with suppress(*EXPECTED, CommandError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        block = next(iter(stream.blocks()), None)
        if block is None:
            return
        values = block.values
        n_rows = min(MAX_ROWS, max(8, values.shape[0]))
        dtype = values.dtype if values.dtype.kind in "biuf" else np.dtype(np.float64)
        of_classes = getattr(model._target, "is_class", False)
        kind = {"target": "class" if of_classes else "numeric"} if supervised else {}
        twin = type(model)(**model._get_params() | kind)
        y = np.arange(n_rows) % 2 if of_classes else np.random.default_rng(0).normal(size=n_rows)
        learnt_columns(twin, columns_of(n_rows, N_COLUMNS, dtype), y if supervised else None)
        _ = twin.relevance


def warm_up(names: Sequence[str]) -> None:
    """Compile what methods need for columns, and for rows; say how long it took.

    Parameters
    ----------
    names
        The methods, all for none; with the parameters that they have if nothing is said.
    """
    names = list(dict.fromkeys(names)) or catalogue.names()
    start = time.monotonic()
    with stages() as progress:
        for i, name in enumerate(names):
            if progress is not None:
                progress(f"compiling {name}", i, len(names))
            cls = catalogue.fetch(name)
            model = cls()
            if model._get_params().get("n_components", 0) is None:
                model = cls(n_components=2)  # or it would take no rows
            model.precompile()
    of = names[0] if len(names) == 1 else f"{len(names)} methods"
    seconds = round(time.monotonic() - start, 3)
    note(f"the loops of {of} are compiled, in {seconds_text(seconds)}")

"""Compiling before the clock starts: the first run on a machine does it, once."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._errors import EXPECTED, CommandError

if TYPE_CHECKING:
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
        rng = np.random.default_rng(0)
        columns = np.asfortranarray(rng.integers(0, 100, size=(n_rows, N_COLUMNS)).astype(dtype))
        parameters = model._get_params()
        of_classes = getattr(model._target, "is_class", False)
        kind = {"target": "class" if of_classes else "numeric"} if supervised else {}
        twin = type(model)(**parameters | kind)
        y = np.arange(n_rows) % 2 if of_classes else rng.normal(size=n_rows)
        covariates = parameters.get("covariates")
        Z = rng.normal(size=(n_rows, len(covariates))) if covariates else None
        twin.learn_target(y if supervised else None, covariates=Z)
        twin.learn_columns(columns)
        _ = twin.relevance

"""What is done with a saved model: apply it to another file, or look into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.cli._errors import CommandError, no_column
from streamsel.cli._inputs import open_source
from streamsel.cli._outputs import check_distinct, check_table, write_csv_to_stdout, write_table
from streamsel.cli._report import describe, show_info


def transform(
    model_path: str, path: str, orientation: str, delimiter: str | None, out: str | None
) -> None:
    """Apply a saved model to the rows of a file, and write or print what comes out.

    Parameters
    ----------
    model_path
        The model.
    path
        The file of columns.
    orientation
        Of a text file: "samples", "variables" or "auto".
    delimiter
        Of a text file; None goes by its suffix and first line.
    out
        The file to write; None prints CSV.
    """
    from streamsel.persist import load

    if out is not None:
        check_distinct({"--out": out}, {"MODEL": model_path, "FILE": path})
        check_table(out)
    model = load(model_path)
    needed: list[Any] = list(model.selected if hasattr(model, "selected") else model.loadings)
    if not needed:
        raise CommandError(f"{model_path}: the model has not learnt any column")
    source = open_source(path, orientation, [str(name) for name in needed], None, delimiter)
    try:
        matrix = model.transform_many(source.stream)
    except KeyError as error:
        raise CommandError(no_column(path, error)) from None
    names = needed if hasattr(model, "selected") else model.components
    columns = list(np.asarray(matrix).T)
    if out is None:
        write_csv_to_stdout(names, columns)
    else:
        write_table(out, names, columns)


def info(path: str, *, as_json: bool) -> None:
    """Print what a saved model holds.

    Parameters
    ----------
    path
        The model.
    as_json
        Whether to print JSON.
    """
    from streamsel.persist import load, read_notes

    model, notes = load(path), read_notes(path)
    complete = not isinstance(notes, dict) or bool(notes.get("complete", True))
    show_info(path, describe(model, complete=complete), notes, as_json=as_json)

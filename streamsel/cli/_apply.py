"""What is done with a saved model: apply it to another file, or look into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.cli._errors import CommandError, no_column
from streamsel.cli._inputs import open_source
from streamsel.cli._outputs import check_distinct, check_table, write_csv_to_stdout, write_table
from streamsel.cli._report import show_info


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
    needed, names = needs_and_makes(model)
    of_any = model.report().facts.get("any_variable", False)
    if not needed and not of_any:
        raise CommandError(f"{model_path}: the model has not learnt enough to transform anything")
    source = open_source(path, orientation, [str(name) for name in needed], None, delimiter)
    try:
        stream = source.stream.without(_dropped(model_path)) if of_any else source.stream
        matrix = model.transform_many(stream)
    except ValueError as error:
        if isinstance(error.__cause__, KeyError):
            raise CommandError(no_column(path, error.__cause__)) from None
        raise
    columns = list(np.asarray(matrix).T)
    if out is None:
        write_csv_to_stdout(names, columns)
    else:
        write_table(out, names, columns)


def needs_and_makes(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the columns that a model needs of a file, and of those it makes."""
    names = list(model.standing)
    return names, names if model.report().kind == "selected" else model.components


def _dropped(path: str) -> list[Any]:
    """Return the columns that the run left out which saved this model."""
    from streamsel.persist import read_notes

    notes = read_notes(path)
    return list(notes.get("dropped", ())) if isinstance(notes, dict) else []


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
    report = model.report()
    show_info(path, report if complete else report.unfinished(), notes, as_json=as_json)

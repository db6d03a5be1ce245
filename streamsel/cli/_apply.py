"""Apply a saved model to another file, or show its contents."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._carried import beside, carried
from streamsel.cli._drop import dropped
from streamsel.cli._errors import CommandError, no_column
from streamsel.cli._ids import parted
from streamsel.cli._inputs import check_layer, files_of, open_source
from streamsel.cli._log import log
from streamsel.cli._outputs import check_distinct, check_table, write_csv_to_stdout, write_table
from streamsel.cli._report import show_info
from streamsel.cli._saved import reading_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamsel.cli._inputs import Source
    from streamsel.stream import ColumnStream


def transform(
    model_path: str,
    given: Sequence[str],
    orientation: str,
    options: Mapping[str, Any],
    keep: Sequence[str],
    out: str | None,
) -> None:
    """Apply a saved model to the rows of files, and write or print the result.

    Parameters
    ----------
    model_path
        The model file.
    given
        The files of columns, or patterns.
    orientation
        Of text files: "samples", "variables" or "auto".
    options
        Options that set how files are read.
    keep
        Names of columns of the files that are copied to the output.
    out
        The file to write; None prints CSV.
    """
    from streamsel.persist import load

    files = files_of(given)
    check_layer(files, layer=options["layer"], raw=options["raw"])
    if out is not None:
        check_distinct({"--out": out}, {"MODEL": model_path} | {path: path for path in files})
        check_table(out)
    model = load(model_path)
    needed, names = needs_and_makes(model)
    of_any = model.report().facts.get("any_variable", False)
    if not needed and not of_any:
        raise CommandError(
            f"{model_path}: the model has not learnt enough columns to transform data"
        )
    notes = notes_of(model_path)
    if orientation == "auto":
        orientation = notes.get("orientation") or orientation
    wanted = [str(name) for name in needed]
    column, header = parted(notes["id"]) if notes.get("id") else (None, None)
    log().begin("transform", model=model_path, file=given)
    reading = reading_of(options, notes)
    source = open_source(files, orientation, wanted, None, reading, shown=given[0], id_=column)
    along = carried(keep, source, out, header=header)
    with columns_there(source):
        stream = all_but_dropped(source, notes) if of_any else source.stream
        matrix = model.transform_many(stream)
    names, columns = beside(along, names, list(np.asarray(matrix).T))
    if out is None:
        write_csv_to_stdout(names, columns)
    else:
        write_table(out, names, columns)


@contextmanager
def columns_there(source: Source) -> Iterator[None]:
    """Report which columns of a model are missing from a source, with close matches."""
    try:
        yield
    except ValueError as error:
        if isinstance(error.__cause__, KeyError):
            raise CommandError(no_column(source.path, error.__cause__)) from None
        raise


def needs_and_makes(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the input columns of a model, and those of its output columns."""
    if model.report().kind == "selected":
        return list(model.standing), list(model.standing)
    return list(model._used().names), model.components


def notes_of(path: str) -> dict[str, Any]:
    """Return the metadata that a run saved with this model; empty if it was not saved by a run."""
    from streamsel.persist import read_notes

    notes = read_notes(path)
    return notes if isinstance(notes, dict) else {}


def all_but_dropped(source: Source, notes: dict[str, Any]) -> ColumnStream:
    """Return the columns that a run with the same exclusions would read from a file."""
    from streamsel.stream._screen import Screen

    excluded = [
        *notes.get("dropped", ()),
        *notes.get("index", ()),
        *([parted(notes["id"])[0]] if notes.get("id") else []),
    ]
    excluded += [notes[name] for name in ("weights", "strata") if notes.get(name)]
    names = {source.name(name) for name in dropped(source, excluded, strict=False)}
    present = names if source.stream.names is None else names & {*source.stream.names}
    stream = source.stream.without(sorted(present, key=str)) if present else source.stream
    return Screen(stream, None, notes.get("missing", "error"), None, notes.get("min_count", 0))


def info(path: str, *, as_json: bool) -> None:
    """Print the contents of a saved model.

    Parameters
    ----------
    path
        The model file.
    as_json
        Whether to print JSON.
    """
    from streamsel.persist import load, read_notes

    model, notes = load(path), read_notes(path)
    complete = not isinstance(notes, dict) or bool(notes.get("complete", True))
    report = model.report()
    show_info(path, report if complete else report.unfinished(), notes, as_json=as_json)

"""What is done with a saved model: apply it to another file, or look into it."""

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
    """Apply a saved model to the rows of files, and write or print what comes out.

    Parameters
    ----------
    model_path
        The model.
    given
        The files of columns, or patterns.
    orientation
        Of a text file: "samples", "variables" or "auto".
    options
        How files are to be read, as far as it was said.
    keep
        Names of columns of the files that go along.
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
        raise CommandError(f"{model_path}: the model has not learnt enough to transform anything")
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
    """Say which columns that a model needs a source has not, and what comes close."""
    try:
        yield
    except ValueError as error:
        if isinstance(error.__cause__, KeyError):
            raise CommandError(no_column(source.path, error.__cause__)) from None
        raise


def needs_and_makes(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the columns that a model needs of a file, and of those it makes."""
    if model.report().kind == "selected":
        return list(model.standing), list(model.standing)
    return list(model._used().names), model.components


def notes_of(path: str) -> dict[str, Any]:
    """Return what the run that saved this model noted; nothing, if it was not a run."""
    from streamsel.persist import read_notes

    notes = read_notes(path)
    return notes if isinstance(notes, dict) else {}


def all_but_dropped(source: Source, notes: dict[str, Any]) -> ColumnStream:
    """Return the columns that a run would take of a file which left out the same ones."""
    from streamsel.stream._screen import Screen

    apart = [
        *notes.get("dropped", ()),
        *notes.get("index", ()),
        *([parted(notes["id"])[0]] if notes.get("id") else []),
    ]
    apart += [notes[name] for name in ("weights", "strata") if notes.get(name)]
    names = {source.name(name) for name in dropped(source, apart, strict=False)}
    there = names if source.stream.names is None else names & {*source.stream.names}
    stream = source.stream.without(sorted(there, key=str)) if there else source.stream
    return Screen(stream, None, notes.get("missing", "error"), None, notes.get("min_count", 0))


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

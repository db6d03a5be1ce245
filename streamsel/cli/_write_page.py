"""Write or print the report of a saved model, optionally with the rows of a file."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._apply import all_but_dropped, columns_there, needs_and_makes, notes_of
from streamsel.cli._errors import CommandError
from streamsel.cli._inputs import Source, files_of, open_source
from streamsel.cli._outputs import check_distinct, check_writable
from streamsel.cli._picture import read_stability
from streamsel.cli._saved import reading_of
from streamsel.cli._target import target_of
from streamsel.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY_SUFFIX = {".json": "json", ".md": "md", ".markdown": "md"}


def write_page(path: str, out: str | None, **options: Any) -> None:
    """Write the report of a saved model.

    Parameters
    ----------
    path
        The model file.
    out
        The file to write; None prints the report.
    options
        Further options of the command, by name.
    """
    from streamsel.page import report
    from streamsel.persist import load

    files = files_of(options["data"])
    if out is not None:
        inputs = {"MODEL": path, "--stability": options["stability"]}
        check_distinct({"--out": out}, inputs | {file: file for file in files})
        check_writable(out, "--out")
    model, known = load(path), notes_of(path)
    format_ = options["form"] or _BY_SUFFIX.get(PurePath(out or "").suffix.lower(), "html")
    stability = None if options["stability"] is None else read_stability(options["stability"])
    settings: dict[str, Any] = {"notes": known, "stability": stability, "format": format_}
    if files and format_ == "html":
        source, rows = _rows(path, model, known, options)
        with columns_there(source):
            text = report(model, rows, y=_target(source, known, model.target), **settings)
    else:
        text = report(model, **settings)
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with whole_file(out) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace")


def _rows(
    path: str, model: Any, notes: dict[str, Any], options: Mapping[str, Any]
) -> tuple[Source, Any]:
    """Return a file of rows, and the columns of it that a model is applied to."""
    needed, _ = needs_and_makes(model)
    of_any = model.report().facts.get("any_variable", False)
    if not needed and not of_any:
        raise CommandError(f"{path}: the model has not learnt enough columns to show rows")
    source = open_source(
        files_of(options["data"]),
        options["orientation"],
        [str(name) for name in needed],
        None,
        reading_of(options, notes),
        shown=options["data"][0],
    )
    return source, all_but_dropped(source, notes) if of_any else source.stream


def _target(source: Source, notes: Mapping[str, Any], kind: str) -> Any:
    """Return the target of the rows, by which they are coloured; None if they have none."""
    names = notes.get("target")
    if not isinstance(names, list) or not names:
        return None
    try:
        y = target_of(source, [str(name) for name in names], kind)
    except (CommandError, ValueError):
        return None
    # Points can be coloured by one column only.
    return y if np.ndim(y) == 1 else None

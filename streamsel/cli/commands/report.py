"""Write or print the report of a saved model, optionally with the rows of a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli.click_ext import SectionCommand
from streamsel.cli.commands.plot import read_stability
from streamsel.cli.errors import CommandError
from streamsel.cli.methods import run_options
from streamsel.cli.options import (
    INPUT,
    OUTPUT,
    config_option,
    log_options,
    option,
    orientation_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamsel.cli.log import Log
    from streamsel.cli.source import Source

_TITLES = {"html": "HTML", "json": "JSON", "md": "Markdown"}


def write_page(log: Log, path: str, out: str | None, **options: Any) -> None:
    """Write the report of a saved model.

    Parameters
    ----------
    log
        The log.
    path
        The model file.
    out
        The file to write; None prints the report.
    options
        Further options of the command, by name.
    """
    from streamsel.cli.commands.transform import read_run_metadata, report_missing_columns
    from streamsel.cli.inputs import expand_files
    from streamsel.cli.output import check_distinct_outputs, check_writable, note_written
    from streamsel.reporting import report
    from streamsel.reporting.page import format_of_path
    from streamsel.serialization.archive import load
    from streamsel.serialization.atomic import atomic_write

    files = expand_files(options["data"])
    if out is not None:
        inputs = {"MODEL": path, "--stability": options["stability"]}
        check_distinct_outputs({"--out": out}, inputs | {file: file for file in files})
        check_writable(out, "--out")
    model, known = load(path), read_run_metadata(path)
    # A terminal shows Markdown.
    default = "md" if out is None and sys.stdout.isatty() else format_of_path(out)
    format_ = options["form"] or default
    stability = None if options["stability"] is None else read_stability(options["stability"])
    settings: dict[str, Any] = {"metadata": known, "stability": stability, "format": format_}
    if files and format_ == "html":
        source, rows = _rows(log, path, model, known, options)
        with report_missing_columns(source):
            text = report(model, rows, y=_target(source, known, model.target_type), **settings)
    else:
        text = report(model, **settings)
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with atomic_write(out) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    note_written(log, out, f"report of {path} ({_TITLES[format_]})")


def _rows(
    log: Log, path: str, model: Any, metadata: dict[str, Any], options: Mapping[str, Any]
) -> tuple[Source, Any]:
    """Return a file of rows, and the columns of it that a model is applied to."""
    from streamsel.cli.commands.transform import (
        input_and_output_names,
        open_rows,
        with_exclusions,
    )

    needed, _ = input_and_output_names(model)
    of_any = model.report().details.get("any_variable", False)
    if not needed and not of_any:
        raise CommandError(f"{path}: the model has not learnt enough columns to show rows")
    names = [str(name) for name in needed]
    source, rows = open_rows(log, options["data"], names, model, metadata, options)
    return source, with_exclusions(source, metadata) if of_any else rows


def _target(source: Source, metadata: Mapping[str, Any], kind: str) -> Any:
    """Return the target of the rows, by which they are coloured; None if they have none."""
    import numpy as np

    from streamsel.cli.target import target_from_columns

    names = metadata.get("target")
    if not isinstance(names, list) or not names:
        return None
    try:
        y = target_from_columns(source, [str(name) for name in names], kind)
    except (CommandError, ValueError):
        return None
    # Points can be coloured by one column only.
    return y if np.ndim(y) == 1 else None


@click.command(cls=SectionCommand, short_help="Write a report of a saved model.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    section=INPUT,
    common="Also plot the rows of this file.",
    help="Also plot the rows of this file: correlations and histograms of selected variables, or "
    "components; only the columns that the model uses are read. May be repeated.",
)
@orientation_option
@run_options("report", INPUT)
@option(
    "--stability",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    common="Also show the results of stability --json.",
    help="Also show how often each variable is selected on subsamples: FILE is the output of "
    "streamsel stability --json with the data, the method and the -k of MODEL.",
)
@option(
    "--format",
    "form",
    type=click.Choice(["html", "json", "md"]),
    section=OUTPUT,
    common="Format; by default that of --out.",
    help="html, a self-contained page; md, the same without figures; json, all results. By "
    "default inferred from the suffix of --out; without --out md on a terminal, else html.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    common="Write to this file instead of stdout.",
    help="Write to this file instead of stdout.",
)
@log_options
@click.pass_obj
def report_command(log: Log, /, model: str, out: str | None, **options: Any) -> None:
    """Write a report of MODEL, saved by select or reduce: results, reliability and provenance.

    The HTML report is a single file without external resources. It adapts to small screens and to
    dark mode.

    \b
      streamsel report genes.model -o genes.html
    """  # noqa: D301 (\b is a click escape)
    write_page(log, model, out, **options)

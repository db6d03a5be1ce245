"""The command `report`: a report of a saved model."""

from __future__ import annotations

from typing import Any

import click

from streamsel.cli._options import (
    INPUT,
    OUTPUT,
    config_option,
    delimiter_option,
    log_options,
    option,
    orientation_option,
)
from streamsel.cli._sections import Command


@click.command(cls=Command, short_help="Write a report of a saved model.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    section=INPUT,
    help="Also plot the rows of this file; only the columns that the model uses are read. May be "
    "repeated.",
)
@orientation_option
@delimiter_option
@option(
    "--stability",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    help="Also show how often each variable is selected on subsamples: FILE is the output of "
    "streamsel stability --json.",
)
@option(
    "--format",
    "form",
    type=click.Choice(["html", "json", "md"]),
    section=OUTPUT,
    help="html, a self-contained page; md, the same without figures; json, all results. By "
    "default inferred from the suffix of --out, else html.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write to this file instead of stdout.",
)
@log_options
def report(model: str, out: str | None, **options: Any) -> None:
    """Write a report of MODEL, saved by select or reduce: results, reliability and provenance.

    The HTML report is a single file without external resources. It adapts to small screens and to
    dark mode.

    \b
      streamsel report genes.model -o genes.html
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli._write_page import write_page

    write_page(model, out, **options)

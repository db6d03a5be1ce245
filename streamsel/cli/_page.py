"""`streamsel report`: the page of a saved model."""

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


@click.command(cls=Command, short_help="Tell what a saved model has found, as a page.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    section=INPUT,
    help="Draw the rows of this file too: of its columns only those are read that the model uses; "
    "repeat it for several.",
)
@orientation_option
@delimiter_option
@option(
    "--stability",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    help="Show how often each variable is selected from other samples: FILE is what streamsel "
    "stability --json has printed.",
)
@option(
    "--format",
    "form",
    type=click.Choice(["html", "json", "md"]),
    section=OUTPUT,
    help="html, a page; md, the same without pictures; json, all that was found. If not given the "
    "suffix of --out says, or it is html.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write to this file; otherwise it is printed.",
)
@log_options
def report(model: str, out: str | None, **options: Any) -> None:
    """Tell what MODEL, saved by select or reduce, has found, whether to believe it, and from what.

    The page is one HTML file: it fetches nothing, can be read on a telephone and in the dark, and
    can be sent to anybody.

    \b
      streamsel report genes.model -o genes.html
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel.cli._write_page import write_page

    write_page(model, out, **options)

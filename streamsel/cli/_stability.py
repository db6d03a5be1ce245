"""The command `stability`: how often each variable is selected of half the rows."""

from __future__ import annotations

from typing import Any

import click

from streamsel.cli._methods import MethodCommand
from streamsel.cli._options import (
    LEARNER,
    OUTPUT,
    candidates_each_option,
    input_options,
    json_option,
    log_options,
    max_memory_option,
    method_options,
    no_target_option,
    option,
)

DRAWS = "Subsamples"


@click.command(
    cls=MethodCommand, kind="selector", short_help="Say how stable a selection is: by subsamples."
)
@input_options
@no_target_option
@method_options("selector")
@option(
    "-k",
    metavar="K",
    section=LEARNER,
    parameter="k",
    help="Number of variables to select; every method has its default.",
)
@candidates_each_option
@option(
    "--subsamples",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="M",
    section=DRAWS,
    help="How many are drawn.",
)
@option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    metavar="X",
    section=DRAWS,
    help="Share of the rows that each has; of classes the same share of each.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    section=DRAWS,
    help="Of the draws.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write how often each variable was selected, as .csv, .tsv, .parquet, .feather or .arrow.",
)
@max_memory_option
@json_option
@log_options
@click.pass_context
def stability(ctx: click.Context, /, **_: Any) -> None:
    """Select of many subsamples of the rows of FILE, and say how much that agrees.

    Each block of columns is handed to all models: FILE is read once. With --set exact=yes every
    model reads it by itself.

    \b
      streamsel stability expression.parquet --target survival -k 20
      streamsel stability expression.parquet --target survival -k 20 --json > stability.json
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel.cli._crowd import run
    from streamsel.cli._stable import judge

    run(ctx, judge)

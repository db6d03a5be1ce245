"""The command `stability`: selection frequencies on subsamples of the rows."""

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

_SUBSAMPLES = "Subsamples"


@click.command(
    cls=MethodCommand,
    kind="selector",
    short_help="Measure the stability of a selection on subsamples.",
)
@input_options
@no_target_option
@method_options("selector")
@option(
    "-k",
    metavar="K",
    section=LEARNER,
    parameter="k",
    help="Number of variables to select; the default depends on the method.",
)
@candidates_each_option
@option(
    "--subsamples",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="M",
    section=_SUBSAMPLES,
    help="Number of subsamples.",
)
@option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    metavar="X",
    section=_SUBSAMPLES,
    help="Share of the rows in each subsample; stratified by class.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    section=_SUBSAMPLES,
    help="Random seed of the subsamples.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write the selection frequency of each variable, as .csv, .tsv, .parquet, .feather or "
    ".arrow.",
)
@max_memory_option
@json_option
@log_options
@click.pass_context
def stability(ctx: click.Context, /, **_: Any) -> None:
    """Select variables on many subsamples of the rows of FILE, and measure how well they agree.

    All models learn from the same pass over FILE. With --set exact=yes each model reads FILE
    separately.

    \b
      streamsel stability expression.parquet --target survival -k 20
      streamsel stability expression.parquet --target survival -k 20 --json > stability.json
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli._crowd import run
    from streamsel.cli._stable import judge

    run(ctx, judge)

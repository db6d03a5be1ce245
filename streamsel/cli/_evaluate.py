"""The command `evaluate`: what a selection predicts, by nested folds."""

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
    option,
)

FOLDS = "Folds"


class Sizes(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.1 has none
    """Whole numbers from 1 on, with commas between."""

    name = "sizes"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return the numbers."""
        texts = [text.strip() for text in value.split(",")]
        if not all(text.isdecimal() and int(text) for text in texts):
            self.fail(f"{value!r} is not numbers such as 5,10,25", param, ctx)
        return [int(text) for text in texts]


@click.command(
    cls=MethodCommand, kind=None, short_help="Say what a selection predicts: by nested folds."
)
@input_options
@method_options(None)
@option(
    "-k",
    "-q",
    "sizes",
    type=Sizes(),
    metavar="K[,K...]",
    section=LEARNER,
    help="Number of variables to select, or of components to build; of several the best is chosen "
    "by inner folds.",
)
@candidates_each_option
@option(
    "--model",
    "predictor",
    type=click.Choice(["logistic", "ridge", "knn"]),
    section=FOLDS,
    help="What predicts by these variables.  [default: logistic of classes, ridge of numbers]",
)
@option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="How many folds are held out, one at a time.",
)
@option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="How often the rows are dealt out to them anew.",
)
@option(
    "--inner-folds",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="How many inner folds choose among several K.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="Of the folds, and of the variables drawn by lot.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write the scores of every fold, as .csv, .tsv, .parquet, .feather or .arrow.",
)
@max_memory_option
@json_option
@log_options
@click.pass_context
def evaluate(ctx: click.Context, /, **_: Any) -> None:
    """Select, or build, variables of FILE inside training folds, and predict the rows held out.

    Beside them: as many variables by lot, all of them if 256 MB hold them, and none. All models
    learn by one reading of FILE. Needs scikit-learn: streamsel[evaluate].

    \b
      streamsel evaluate expression.parquet --target survival -k 5,10,25
      streamsel evaluate expression.parquet --target tissue --method PLS -q 2,5 --model knn
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel.cli._crowd import run
    from streamsel.cli._evaluated import judge, stand_in

    learner = stand_in(ctx)
    run(ctx, judge, learner=learner)

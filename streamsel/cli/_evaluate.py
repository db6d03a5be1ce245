"""The command `evaluate`: predictive performance by nested cross-validation."""

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
    """Positive integers separated by commas."""

    name = "sizes"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return the numbers."""
        texts = [text.strip() for text in value.split(",")]
        if not all(text.isdecimal() and int(text) for text in texts):
            self.fail(f"{value!r} is not a list of positive integers such as 5,10,25", param, ctx)
        return [int(text) for text in texts]


@click.command(
    cls=MethodCommand, kind=None, short_help="Evaluate predictions by nested cross-validation."
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
    help="Number of variables to select, or of components to build; one of several is chosen by "
    "inner cross-validation.",
)
@candidates_each_option
@option(
    "--model",
    "predictor",
    type=click.Choice(["logistic", "ridge", "knn"]),
    section=FOLDS,
    help="Predictive model fitted on the variables.  [default: logistic for classes, ridge for "
    "numeric targets]",
)
@option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="Number of outer folds.",
)
@option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="Number of repetitions with different random folds.",
)
@option(
    "--inner-folds",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="Number of inner folds that choose among several K.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    section=FOLDS,
    help="Random seed of the folds and of the random variables.",
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
    """Select variables, or build components, in training folds and score predictions on test folds.

    Baselines are the same number of random variables, all variables if they fit in 256 MB, and no
    variables. All models learn from one pass over FILE. Needs scikit-learn: streamsel[evaluate].

    \b
      streamsel evaluate expression.parquet --target survival -k 5,10,25
      streamsel evaluate expression.parquet --target tissue --method PLS -q 2,5 --model knn
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli._crowd import run
    from streamsel.cli._evaluated import judge, stand_in

    learner = stand_in(ctx)
    run(ctx, judge, learner=learner)

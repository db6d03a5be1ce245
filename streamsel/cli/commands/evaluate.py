"""Run `evaluate` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel._utils.text import count_text
from streamsel.cli.errors import note
from streamsel.cli.methods import MethodCommand, learner_of
from streamsel.cli.options import (
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.cli.run import Run
    from streamsel.cli.signals import Interrupts
    from streamsel.evaluate.nested_result import NestedScores

TITLES = ("variables", "score", "value", "low", "high", "difference", "diff_low", "diff_high")
SCORE_NAMES = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "auc": "AUC",
    "r2": "R²",
}
# By the names of the baselines in `NestedScores`.
BASELINE_NAMES = {
    "random": "as many random variables",
    "all": "all variables",
    "nothing": "no variables",
}


def learner_for_evaluation(ctx: click.Context) -> Any:
    """Return the learner that the options describe, and let the target be read even if it has none.

    For an unsupervised method the options are changed to a supervised one, so that the target's
    options apply.
    """
    if ctx.params["weights"] is not None:
        raise click.UsageError("--weights is not supported: scores weight all rows equally", ctx)
    source = ctx.get_parameter_source("target_type")
    learner = None
    try:
        learner = learner_of(ctx)
    except click.UsageError:
        # An unsupervised method has no parameter for the kind of target.
        ctx.set_parameter_source("target_type", ParameterSource.DEFAULT)
        learner = learner_of(ctx)
        if learner._is_supervised:
            raise
    if not learner._is_supervised:
        ctx.params |= {"method": "SelectKBest", "set": ()}
    if source is not None:
        ctx.set_parameter_source("target_type", source)
    return learner


def run_evaluation(
    job: Run, interrupts: Interrupts, *, options: dict[str, Any], learner: Any
) -> None:
    """Learn all folds, and write and print the scores."""
    from streamsel.cli.model_batch import MEGABYTE, learn_model_batch, show_batch_result
    from streamsel.cli.output import write_table
    from streamsel.cli.progress import meter
    from streamsel.evaluate.nested import NestedCrossValidation

    nested = NestedCrossValidation(
        learner.clone({"covariates": names} if (names := job.model.covariates) else {}),
        job.all_columns(),
        job.given.y,
        covariates=job.given.covariates or None,
        sizes=options["sizes"],
        model=options["predictor"],
        target_type=job.model.target_type,
        n_folds=options["folds"],
        n_repeats=options["repeats"],
        n_inner=options["inner_folds"],
        seed=options["seed"],
        level=0.95,
        max_bytes=MEGABYTE * options["max_memory"],
    )
    learn_model_batch(
        job,
        nested.crowd,
        "learning folds",
        interrupts,
        MEGABYTE * options["max_memory"],
        nested.record,
    )
    job.check(nested.first_report)
    with meter("predicting", job.screen.n_columns):
        found = nested.result()
    if job.request.out is not None:
        write_table(job.request.out, *_by_folds(found))
    show_batch_result(job, found, _show_table, TITLES, _lines(found), _words(found))
    if n := job.metadata["filled"]:
        note(
            f"missing values of {count_text(n, 'column')} were replaced by means over all rows, "
            "including test folds"
        )


def _lines(found: NestedScores) -> Iterator[list[Any]]:
    """Yield a row of values per contestant and score."""
    for row in found.as_dict()["scores"]:
        difference = row.pop("difference") or dict.fromkeys(("value", "low", "high"))
        values = [row["value"], row["low"], row["high"], *difference.values()]
        cells = ["" if value is None else f"{value:.6g}" for value in values]
        yield [row["variables"], row["score"], *cells]


def _words(found: NestedScores) -> list[str]:
    """Return sentences that summarise the scores."""
    score = found.scores[0]
    value, low, high = found.score()
    lines = [f"{SCORE_NAMES[score]} {value:.3f} ({low:.3f} to {high:.3f}) on test folds"]
    for other in found.variable_sets[1:]:
        value, low, high = found.difference(other)
        verdict = "better than" if low > 0 else "worse than" if high < 0 else "no different from"
        lines.append(f"{verdict} {BASELINE_NAMES[other]}: {value:+.3f} ({low:+.3f} to {high:+.3f})")
    if found.all_excluded_reason:
        lines.append(f"no model of all variables was fitted: {found.all_excluded_reason}")
    if found.sizes is not None and len(found.sizes) > 1:
        chosen = [fold.size for fold in found.folds]
        sizes_chosen = ", ".join(
            f"{size} in {count_text(chosen.count(size), 'fold')}" for size in found.sizes
        )
        lines.append(f"size chosen by inner cross-validation: {sizes_chosen}")
    return lines


def _show_table(found: NestedScores) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("variables", style="bold")
    for score in found.scores:
        table.add_column(SCORE_NAMES[score], justify="right")
    for contestant in found.variable_sets:
        intervals = [found.score(contestant, score) for score in found.scores]
        cells = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in intervals]
        table.add_row(BASELINE_NAMES.get(contestant, found.learner), *cells)
    console.print(table)
    for line in _words(found):
        console.print(Text(f"{line[0].upper()}{line[1:]}.", style="dim"))


def _by_folds(found: NestedScores) -> tuple[list[str], list[Any]]:
    """Return the scores of every fold as columns, and their names."""
    import numpy as np

    rows = [
        (number, fold.size, fold.n_train, fold.n_test, len(fold.names), who, *scores.values())
        for number, fold in enumerate(found.folds, start=1)
        for who, scores in fold.scores.items()
    ]
    titles = ["fold", "size", "n_train", "n_test", "n_selected", "variables", *found.scores]
    columns = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
    return titles, columns


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
    common="Number of variables, or several to try.",
    help="Number of variables to select, or of components to build; one of several is chosen by "
    "inner cross-validation.",
)
@candidates_each_option
@option(
    "--model",
    "predictor",
    type=click.Choice(["logistic", "ridge", "knn"]),
    section=FOLDS,
    common="Predictive model.",
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
    common="Number of outer folds.",
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
    common="Write the scores to this file.",
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
    from streamsel.cli.model_batch import run_model_batch

    learner = learner_for_evaluation(ctx)
    run_model_batch(ctx, run_evaluation, learner=learner)

"""Run `evaluate` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel._utils.text import count_text
from streamsel.cli.methods import (
    MethodCommand,
    batch_options,
    candidates_each_option,
    input_options,
)
from streamsel.cli.options import LEARNER, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from streamsel.base.report import Report
    from streamsel.cli.run import Run
    from streamsel.data.chunks import Block
    from streamsel.evaluate.model_batch import ModelBatch
    from streamsel.evaluate.nested_result import NestedScores

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
    """Return the learner that the options describe.

    If it is unsupervised, the options are changed to a supervised method, so that the target is
    read, and its options apply.
    """
    from streamsel.cli.request import learner_of

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


def comparison_text(other: str, difference: tuple[float, float, float]) -> str:
    """Return the sentence that compares the selected variables with others."""
    value, low, high = difference
    interval = f"{low:+.3f} to {high:+.3f}"
    if low > 0 or high < 0:
        return f"{'better' if low > 0 else 'worse'} than {other}: {value:+.3f} ({interval})"
    # Absence of evidence, rather than equality.
    contains = ", contains 0" if low <= 0 <= high else ""
    return f"not significantly different from {other}: {value:+.3f} ({interval}{contains})"


class EvaluationTask:
    """Learn on training folds, and show the scores on test folds.

    Parameters
    ----------
    learner
        The learner to evaluate.
    """

    progress_title = "learning folds"
    titles = ("variables", "score", "value", "low", "high", "difference", "diff_low", "diff_high")

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        # A run reads the target by another learner, if this one has none.
        self.has_groups = learner._supports_groups()

    def start(self, run: Run, options: Mapping[str, Any], max_bytes: int) -> ModelBatch:
        """Return the models of all training folds and sizes."""
        from streamsel.cli.groups import check_learns_groups
        from streamsel.cli.model_batch import with_covariates
        from streamsel.evaluate.folds import NestedFolds
        from streamsel.evaluate.nested import NestedCrossValidation

        if run.settings.groups is not None and not self.has_groups:
            check_learns_groups(self._learner, run.settings.groups)
        self._nested = NestedCrossValidation(
            with_covariates(self._learner, run),
            run.all_columns(),
            run.side_inputs.y,
            covariates=run.side_inputs.covariates or None,
            sizes=options["sizes"],
            model=options["predictor"],
            target_type=run.model.target_type,
            folds=NestedFolds(
                n_folds=options["folds"],
                n_repeats=options["repeats"],
                n_inner=options["inner_folds"],
                seed=options["seed"],
                level=0.95,
            ),
            max_bytes=max_bytes,
        )
        return self._nested.model_batch

    def record(self, block: Block) -> None:
        """Store a block for the baseline of all variables."""
        self._nested.record(block)

    def report(self) -> Report:
        """Return the report of one model."""
        return self._nested.first_report

    def result(self, run: Run) -> NestedScores:
        """Return the scores of predictions."""
        from streamsel.cli.progress import meter

        with meter(run.log, "predicting", run.n_columns) as bar:
            bar.begin()
            return self._nested.result()

    def columns(self, found: NestedScores) -> tuple[list[str], list[Any]]:
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

    def lines(self, found: NestedScores) -> Iterator[list[Any]]:
        """Yield a row of values per contestant and score."""
        for row in found.as_dict()["scores"]:
            difference = row.pop("difference") or dict.fromkeys(("value", "low", "high"))
            values = [row["value"], row["low"], row["high"], *difference.values()]
            cells = ["" if value is None else f"{value:.6g}" for value in values]
            yield [row["variables"], row["score"], *cells]

    def words(self, found: NestedScores) -> list[str]:
        """Return sentences that summarise the scores."""
        score = found.scores[0]
        value, low, high = found.score()
        lines = [f"{SCORE_NAMES[score]} {value:.3f} ({low:.3f} to {high:.3f}) on test folds"]
        lines += [
            comparison_text(BASELINE_NAMES[other], found.difference(other))
            for other in found.variable_sets[1:]
        ]
        if found.all_excluded_reason:
            lines.append(f"no model of all variables was fitted: {found.all_excluded_reason}")
        if found.sizes is not None and len(found.sizes) > 1:
            chosen = [fold.size for fold in found.folds]
            sizes_chosen = ", ".join(
                f"{size} in {count_text(chosen.count(size), 'fold')}" for size in found.sizes
            )
            lines.append(f"size chosen by inner cross-validation: {sizes_chosen}")
        return lines

    def show_table(self, found: NestedScores, console: Console) -> None:
        """Print the scores, with intervals."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("variables", style="bold")
        for score in found.scores:
            table.add_column(SCORE_NAMES[score], justify="right")
        for contestant in found.variable_sets:
            intervals = [found.score(contestant, score) for score in found.scores]
            cells = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in intervals]
            table.add_row(BASELINE_NAMES.get(contestant, found.learner), *cells)
        console.print(table)

    def check(self, run: Run, found: NestedScores) -> None:  # noqa: ARG002 (as others)
        """Report missing values that were imputed."""
        if n := run.metadata["filled"]:
            run.log.note(
                f"missing values of {count_text(n, 'column')} were replaced by means over all "
                "rows, including test folds"
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
@input_options("evaluate", None)
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
@batch_options(
    "evaluate",
    section=FOLDS,
    seed_of="the folds and of the random variables",
    out="Write the scores to this file.",
    out_help="Write the scores of every fold, as .csv, .tsv, .parquet, .feather or .arrow.",
)
@click.pass_context
def evaluate(ctx: click.Context, /, **_: Any) -> None:
    """Select variables, or build components, in training folds and score predictions on test folds.

    Baselines are the same number of random variables, all variables if they fit in --max-memory,
    and no variables. Selected groups are represented by all their columns. FILE is read once if
    --max-memory suffices for all models, or for a copy of its columns. Needs scikit-learn:
    streamsel[evaluate].

    \b
      streamsel evaluate expression.parquet --target survival -k 5,10,25
      streamsel evaluate expression.parquet --target tissue --method PLS -q 2,5 --model knn
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.model_batch import run_model_batch

    run_model_batch(ctx, EvaluationTask(learner_for_evaluation(ctx)))

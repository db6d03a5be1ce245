"""Run `evaluate` and print its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from streamsel.cli._crowd import MEGABYTE, learn_crowd, show
from streamsel.cli._errors import note
from streamsel.cli._methods import learner_of
from streamsel.cli._outputs import write_table
from streamsel.cli._progress import meter
from streamsel.evaluate.nested import Nested
from streamsel.evaluate.nested_result import ALL, NOTHING, RANDOM, NestedScores
from streamsel.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamsel.cli._interrupt import Interrupts
    from streamsel.cli._job import Job

TITLES = ("variables", "score", "value", "low", "high", "difference", "diff_low", "diff_high")
WORDS = {"balanced_accuracy": "balanced accuracy", "accuracy": "accuracy", "auc": "AUC", "r2": "R²"}
OTHERS = {RANDOM: "as many random variables", ALL: "all variables", NOTHING: "no variables"}


def stand_in(ctx: click.Context) -> Any:
    """Return the learner that the options describe, and let the target be read even if it has none.

    For an unsupervised method the options are changed to a supervised one, so that the target's
    options apply.
    """
    if ctx.params["weights"] is not None:
        raise click.UsageError("--weights is not supported: scores weight all rows equally", ctx)
    said = ctx.get_parameter_source("target_kind")
    learner = None
    try:
        learner = learner_of(ctx)
    except click.UsageError:
        # An unsupervised method has no parameter for the kind of target.
        ctx.set_parameter_source("target_kind", ParameterSource.DEFAULT)
        learner = learner_of(ctx)
        if learner.supervised:
            raise
    if not learner.supervised:
        ctx.params |= {"method": "SelectKBest", "set": ()}
    if said is not None:
        ctx.set_parameter_source("target_kind", said)
    return learner


def judge(job: Job, interrupts: Interrupts, *, options: dict[str, Any], learner: Any) -> None:
    """Learn all folds, and write and print the scores."""
    nested = Nested(
        learner.clone({"covariates": job.model.covariates}),
        job.whole(),
        job.given.y,
        covariates=job.given.covariates or None,
        sizes=options["sizes"],
        model=options["predictor"],
        target=job.model.target,
        n_folds=options["folds"],
        n_repeats=options["repeats"],
        n_inner=options["inner_folds"],
        seed=options["seed"],
        level=0.95,
        max_bytes=MEGABYTE * options["max_memory"],
    )
    learn_crowd(
        job,
        nested.crowd,
        "learning folds",
        interrupts,
        MEGABYTE * options["max_memory"],
        nested.see,
    )
    job.check(nested.first)
    with meter("predicting", job.screen.n_columns):
        found = nested.result()
    if job.request.out is not None:
        write_table(job.request.out, *_by_folds(found))
    show(job, found, _show_table, TITLES, _lines(found), _words(found))
    if n := job.notes["filled"]:
        note(
            f"missing values of {count(n, 'column')} were replaced by means over all rows, "
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
    lines = [f"{WORDS[score]} {value:.3f} ({low:.3f} to {high:.3f}) on test folds"]
    for other in found.contestants[1:]:
        value, low, high = found.difference(other)
        verdict = "better than" if low > 0 else "worse than" if high < 0 else "no different from"
        lines.append(f"{verdict} {OTHERS[other]}: {value:+.3f} ({low:+.3f} to {high:+.3f})")
    if found.why_not_all:
        lines.append(f"no model of all variables was fitted: {found.why_not_all}")
    if found.sizes is not None and len(found.sizes) > 1:
        chosen = [fold.size for fold in found.folds]
        sizes_chosen = ", ".join(
            f"{size} in {count(chosen.count(size), 'fold')}" for size in found.sizes
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
        table.add_column(WORDS[score], justify="right")
    for contestant in found.contestants:
        intervals = [found.score(contestant, score) for score in found.scores]
        cells = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in intervals]
        table.add_row(OTHERS.get(contestant, found.learner), *cells)
    console.print(table)
    for line in _words(found):
        console.print(Text(f"{line[0].upper()}{line[1:]}.", style="dim"))


def _by_folds(found: NestedScores) -> tuple[list[str], list[Any]]:
    """Return the scores of every fold as columns, and their names."""
    rows = [
        (number, fold.size, fold.n_train, fold.n_test, len(fold.names), who, *scores.values())
        for number, fold in enumerate(found.folds, start=1)
        for who, scores in fold.scores.items()
    ]
    titles = ["fold", "size", "n_train", "n_test", "n_selected", "variables", *found.scores]
    columns = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
    return titles, columns

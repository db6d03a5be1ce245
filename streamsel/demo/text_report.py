"""The printed report of the demonstration."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from streamsel.demo.classify import WORDS

if TYPE_CHECKING:
    from rich.console import Console

    from streamsel.demo.results import DemoReport, Phrase, Score, Task

_PHRASES = 5  # shown for each sub-package
_BAR = 30  # characters for 100 %

_SELECT = """\
streamsel select FILE --target COLUMN --method ForwardSelection -k 20 -o selected.csv

model = ForwardSelection(k=20)
model.learn_target(y)            # labels or numbers
model.learn_columns(X)           # an array, frame, file or generator of columns
model.selected"""
_REDUCE = """

streamsel reduce FILE --target COLUMN -q 7 --out scores.csv"""


def print_report(report: DemoReport, console: Console) -> None:
    """Print the data, the answers and their accuracy, the cost, and commands for own data."""
    console.print(Text(_read(report)))
    for task in report.tasks:
        console.print("", f"[bold]{task.question}[/]", "", sep="\n")
        console.print(_phrases(task) if len(task.classes) == 2 else _table(task))
        console.print("", _scores(task), sep="\n")
        for score in task.scores[2:]:
            console.print(Text(_compared(score, task.scores[1])))
    if report.n_loadings is not None and report.n_above_noise is not None:
        console.print(
            f"The components are weighted sums of {report.n_loadings:,} words and phrases; "
            f"{report.n_above_noise:,} are more relevant than the noise floor, "
            f"{report.noise_floor:.3f}."
        )
    following = _SELECT if report.n_loadings is None else _SELECT + _REDUCE
    console.print("", _costs(report), "", "[bold]On your own data[/]", Text(following), sep="\n")


def _read(report: DemoReport) -> str:
    """Describe the data."""
    models = "one model" if report.n_models == 1 else f"{report.n_models} models at once"
    return (
        f"{report.n_columns:,} columns × {report.n_train:,} rows were read once: all 1- to "
        f"{report.longest}-grams of as many docstrings of SciPy {report.version}, "
        f"{report.columns_per_second:,.0f} columns/s through {models}. Names of sub-packages and "
        f"imports are blanked (___). Test set: {report.n_test:,} docstrings of other source "
        "files."
    )


def _phrases(task: Task) -> Text:
    """List the phrases for a question with two answers."""
    first = next(iter(task.classes))
    listed = ", ".join(f"{phrase.name} {_share(phrase, first)}" for phrase in task.selected)
    return Text(
        f"The {len(task.selected)} phrases of ForwardSelection, in order of selection, each with "
        f"the share of training docstrings containing it that are from {first} "
        f"({task.classes[first]:,} of {sum(task.classes.values()):,}):\n{listed}"
    )


def _table(task: Task) -> Table:
    """Lay out the phrases for each class."""
    table = Table(
        title=f"The first of {len(task.selected)} phrases of ForwardSelection",
        caption="With each phrase, the share of training docstrings containing it that are from "
        "that sub-package. Last column: recall on the test set, with the components.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("sub-package")
    table.add_column("docstrings", justify="right")
    table.add_column("phrases")
    table.add_column("recall", justify="right")
    for label, count in task.classes.items():
        mine = _first([phrase for phrase in task.selected if phrase.label == label])
        phrases = ", ".join(f"{phrase.name} {_share(phrase, label)}" for phrase in mine)
        table.add_row(label, f"{count:,}", Text(phrases), f"{task.recall[label]:.0%}")
    return table


def _share(phrase: Phrase, label: str) -> str:
    return f"{phrase.documents[label] / sum(phrase.documents.values()):.0%}"


def _first(phrases: list[Phrase]) -> list[Phrase]:
    """Return the first few phrases that have no word in common."""
    words: set[str] = set()
    first: list[Phrase] = []
    for phrase in phrases:
        if len(first) < _PHRASES and words.isdisjoint(phrase.name.split()):
            first.append(phrase)
            words.update(phrase.name.split())
    return first


def _scores(task: Task) -> Table:
    """Lay out the accuracies."""
    table = Table(
        title="Accuracy on the test set of one and the same model: softmax regression",
        title_justify="left",
    )
    table.add_column("number", justify="right")
    table.add_column("variables")
    table.add_column("accuracy", justify="right")
    table.add_column("")
    for score in task.scores:
        bar = "█" * round(_BAR * score.accuracy)
        number = f"{score.n_variables:,}"
        table.add_row(number, score.variables, f"{score.accuracy:.1%}", bar.ljust(_BAR))
    return table


def _compared(score: Score, words: Score) -> str:
    """Compare a few variables with all single words, by the documents on which they differ."""
    number, what = score.n_variables, score.variables.split(",")[0]
    beyond_chance = abs(score.gained - score.lost) > 2.0 * sqrt(score.gained + score.lost)
    if not beyond_chance:
        result = f"{number} {what} are as accurate as {WORDS}, within chance"
    elif score.gained > score.lost:
        result = f"{number} {what} are more accurate than {WORDS}"
    else:
        result = f"{number} {what} are less accurate than {WORDS}: so few lose accuracy here"
    return (
        f"{result}. {score.accuracy:.1%} against {words.accuracy:.1%}; {score.gained} test "
        f"docstrings are classified correctly only with the {what}, {score.lost} only with the "
        f"{words.n_variables:,} words."
    )


def _costs(report: DemoReport) -> Text:
    """List times and memory."""
    lines = [f"{seconds:6.1f} s  {stage}" for stage, seconds in report.seconds.items()]
    dense = f"a dense matrix of the variables would take {_size(report.dense_bytes)}."
    if report.peak_bytes is None or report.growth_bytes is None:
        lines.append(f"Memory: not reported by this system; {dense}")
    else:
        added = "the model" if report.n_models == 1 else f"the {report.n_models} models"
        lines.append(
            f"Memory: {_size(report.peak_bytes)} at most, of which {added} added "
            f"{_size(report.growth_bytes)}; {dense}"
        )
    return Text("\n".join(lines))


def _size(n_bytes: int) -> str:
    """Format a number of bytes."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"

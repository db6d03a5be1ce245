"""The report of the demonstration, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from streamsel.demo._report import DemoReport, Phrase

_PHRASES = 5  # shown of each sub-package
_BAR = 30  # characters of 100 %

_NEXT = """\
streamsel reduce FILE --target COLUMN -q 7 --out scores.csv

model = RidgeComponents(n_components=7)
model.learn_target(y)            # labels or numbers
model.learn_columns(X)           # an array, frame, file or generator of columns
Z = model.transform_many(X_new)"""


def render_report(report: DemoReport, console: Console) -> None:
    """Print the report: what passed, what was found, how good it is, what it cost, what next."""
    console.print(
        f"[bold]Which of eight sub-packages of SciPy {report.version} is a docstring from?[/]\n"
    )
    console.print(_passed(report), "", _told(report), "", _scores(report), sep="\n")
    console.print(
        f"The components get {report.gained} docstrings right that all single words get wrong, and "
        f"{report.lost} the other way round. They are weighted sums of {report.n_loadings:,} "
        f"words and phrases; {report.n_above_noise:,} are more relevant than noise would be "
        f"(floor {report.noise_floor:.3f}).\n"
    )
    console.print(_costs(report), "", "[bold]On your own data[/]", Text(_NEXT), sep="\n")


def _passed(report: DemoReport) -> Text:
    """Say what went by."""
    text = (
        f"{report.n_columns:,} columns × {report.n_train:,} rows went by: all 1- to "
        f"{report.longest}-grams of as many docstrings, {report.columns_per_second:,.0f} columns/s "
        f"through two models at once. Names and imports are blanks (___). Judged on "
        f"{report.n_test:,} docstrings of other source files."
    )
    return Text(text)


def _told(report: DemoReport) -> Table:
    """Lay out what tells each sub-package."""
    table = Table(
        title=f"What tells: the first of {len(report.selected)} phrases, ForwardSelection",
        caption="Of docstrings with the phrase so many are from there. Right: held out, by the "
        "components.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("sub-package")
    table.add_column("docstrings", justify="right")
    table.add_column("phrases")
    table.add_column("right", justify="right")
    for package, count in report.documents.items():
        phrases = ", ".join(
            f"{phrase.name} {phrase.documents[package] / sum(phrase.documents.values()):.0%}"
            for phrase in _first([p for p in report.selected if p.package == package])
        )
        table.add_row(package, f"{count:,}", Text(phrases), f"{report.recall[package]:.0%}")
    return table


def _first(phrases: list[Phrase]) -> list[Phrase]:
    """Return the first few that have no word in common."""
    words: set[str] = set()
    first: list[Phrase] = []
    for phrase in phrases:
        if len(first) < _PHRASES and words.isdisjoint(phrase.name.split()):
            first.append(phrase)
            words.update(phrase.name.split())
    return first


def _scores(report: DemoReport) -> Table:
    """Lay out how the classifiers did."""
    table = Table(
        title="How good that is: one and the same classifier, docstrings held out",
        title_justify="left",
    )
    table.add_column("given", justify="right")
    table.add_column("variables")
    table.add_column("right", justify="right")
    table.add_column("")
    for score in report.scores:
        bar = "█" * round(_BAR * score.accuracy)
        given = f"{score.n_variables:,}"
        table.add_row(given, score.variables, f"{score.accuracy:.1%}", bar.ljust(_BAR))
    return table


def _costs(report: DemoReport) -> Text:
    """Say what it cost."""
    lines = [f"{seconds:6.1f} s  {stage}" for stage, seconds in report.seconds.items()]
    dense = f"a dense matrix of the variables would take {_size(report.dense_bytes)}."
    if report.peak_bytes is None or report.growth_bytes is None:
        lines.append(f"Memory: not told by this system; {dense}")
    else:
        lines.append(
            f"Memory: {_size(report.peak_bytes)} at most, of which the two models added "
            f"{_size(report.growth_bytes)}; {dense}"
        )
    return Text("\n".join(lines))


def _size(n_bytes: int) -> str:
    """Write a number of bytes for people to read."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"

"""The command that draws what a saved model has found."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli._errors import CommandError
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

KINDS = ("relevance", "null", "path", "scree", "loadings", "scatter", "heatmap", "stability")
FORMATS = (".svg", ".png", ".pdf")
# What is said to some pictures only.
_OF = {
    "--data": ("heatmap", "scatter"),
    "--by": ("scatter",),
    "--component": ("loadings",),
}


def _one_kind(_: click.Context, __: click.Parameter, kinds: Sequence[str]) -> str:
    """Return the kind that was asked for."""
    if len(kinds) != 1:
        raise click.BadParameter(
            f"one kind a picture. Got: {', '.join(kinds)}. Hint: run it once for each"
        )
    return kinds[0]


@click.command("plot", cls=Command, short_help="Draw what a saved model has found.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--kind",
    type=click.Choice(KINDS),
    multiple=True,
    required=True,
    callback=_one_kind,
    section=OUTPUT,
    help="What to draw. Relevance of the columns by arrival (relevance) and against noise (null); "
    "of selectors the order of selection (path) and correlations (heatmap, with --data); of "
    "extractors what components have (scree), are made of (loadings), and where they place rows "
    "(scatter). For stability MODEL is what streamsel stability --json has printed.",
)
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    help="Rows to draw: of heatmap, and of scatter unless MODEL holds those that it has learnt. "
    "Only the columns that are needed are read.",
)
@option(
    "--by",
    metavar="NAME",
    section=INPUT,
    help="Column of --data by which scatter colours rows: labels or numbers.",
)
@orientation_option
@delimiter_option
@option(
    "--component",
    type=click.IntRange(min=0),
    metavar="N",
    section=OUTPUT,
    help="Of loadings: the number of the component, as in its name.  [default: 0]",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    required=True,
    section=OUTPUT,
    help="Write to this file, as .svg, .png or .pdf: 85 mm wide, a column of a journal.",
)
@log_options
def plot(model: str, kind: str, out: str, **options: Any) -> None:
    """Draw what MODEL, saved by select or reduce, has found.

    \b
      streamsel plot genes.model --kind relevance -o relevance.svg
      streamsel plot genes.model --kind heatmap --data expression.parquet -o together.pdf
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel import extras
    from streamsel.cli._outputs import check_distinct, check_writable
    from streamsel.files import whole_file

    _check_said(kind, options)
    suffix = os.path.splitext(out)[1].lower()  # noqa: PTH122 (a string, as the user gave it)
    if suffix not in FORMATS:
        raise click.UsageError(
            f"--out {out}: unknown format {suffix!r}. Hint: the name must end in one of "
            f"{', '.join(FORMATS)}"
        )
    check_distinct({"--out": out}, {"MODEL": model, "--data": options["data"]})
    extras.matplotlib()
    check_writable(out, "--out")
    drawn: Any = _drawn(model, kind, options)
    with whole_file(out) as beside:
        drawn.figure.savefig(beside, format=suffix[1:])


def _check_said(kind: str, options: dict[str, Any]) -> None:
    """Refuse what says nothing of this picture, and this picture without what it needs."""
    for name, kinds in _OF.items():
        if options[name.lstrip("-")] is not None and kind not in kinds:
            raise click.UsageError(f"{name} is of --kind {' and '.join(kinds)}. Got: {kind}")
    if kind == "heatmap" and options["data"] is None:
        raise click.UsageError("--kind heatmap needs --data FILE: rows that have the variables")
    if options["by"] is not None and options["data"] is None:
        raise click.UsageError("--by names a column of --data FILE, which is not given")


def _drawn(path: str, kind: str, options: dict[str, Any]) -> Axes:
    """Draw a picture of a saved model."""
    from streamsel import plot
    from streamsel.cli._apply import notes_of
    from streamsel.persist import load

    if kind == "stability":
        return plot.stability(read_stability(path))
    model = load(path)
    if kind in _OF["--data"]:
        return _of_rows(model, kind, options, notes_of(path))
    complete = notes_of(path).get("complete", True)
    shown = model if complete else model.report().unfinished()
    if kind == "loadings":
        return plot.loadings(shown, component=options["component"] or 0)
    drawn: Axes = getattr(plot, kind)(shown)
    return drawn


def _of_rows(model: Any, kind: str, options: dict[str, Any], notes: dict[str, Any]) -> Axes:
    """Draw rows of a file, or those that the model holds."""
    from streamsel import plot
    from streamsel.cli._apply import columns_there, needs_and_makes
    from streamsel.cli._inputs import files_of, open_source
    from streamsel.cli._saved import reading_of
    from streamsel.plot._reports import expect_found

    expect_found(model.report(), "selected" if kind == "heatmap" else "components")
    if options["data"] is None:
        return plot.scatter(model)
    by = [] if options["by"] is None else [options["by"]]
    wanted = [str(name) for name in needs_and_makes(model)[0]]
    source = open_source(
        files_of([options["data"]]),
        options["orientation"],
        [*wanted, *by],
        None,
        reading_of(options, notes),
        shown=options["data"],
    )
    with columns_there(source):
        if kind == "heatmap":
            return plot.heatmap(model, source.stream)
        names = [source.name(name) for name in by]
        y = source.take(names)[names[0]] if names else None
        return plot.scatter(model, source.stream, y)


def read_stability(path: str) -> Any:
    """Read what `streamsel stability --json` has printed."""
    import json

    from streamsel.evaluate import SubsampleStability

    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 (the error names it as given)
            return SubsampleStability.from_dict(json.load(file))
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(
            f"{path}: not what streamsel stability --json prints. Hint: streamsel stability FILE "
            "... --json > stability.json"
        ) from error

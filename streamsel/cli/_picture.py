"""The command `plot`: plot the results of a saved model."""

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
# Options that apply to some kinds only.
_KINDS_OF_OPTION = {
    "--data": ("heatmap", "scatter"),
    "--by": ("scatter",),
    "--component": ("loadings",),
}


def _one_kind(_: click.Context, __: click.Parameter, kinds: Sequence[str]) -> str:
    if len(kinds) != 1:
        raise click.BadParameter(
            f"expected one kind per figure. Got: {', '.join(kinds)}. Hint: run the command "
            "once per kind"
        )
    return kinds[0]


@click.command("plot", cls=Command, short_help="Plot the results of a saved model.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--kind",
    type=click.Choice(KINDS),
    multiple=True,
    required=True,
    callback=_one_kind,
    section=OUTPUT,
    help="What to plot. All models: relevance by arrival of the columns (relevance) and compared "
    "with noise (null). Selectors: order of selection (path), correlations (heatmap, with "
    "--data). Extractors: scree plot (scree), loadings (loadings), positions of rows "
    "(scatter). For stability MODEL is the output of streamsel stability --json.",
)
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    help="Rows to plot: required by heatmap, and by scatter unless MODEL keeps the rows that it "
    "has learnt. Only the columns that are needed are read.",
)
@option(
    "--by",
    metavar="NAME",
    section=INPUT,
    help="Column of --data, labels or numbers, that colours the points of scatter.",
)
@orientation_option
@delimiter_option
@option(
    "--component",
    type=click.IntRange(min=0),
    metavar="N",
    section=OUTPUT,
    help="Component plotted by loadings, by its number.  [default: 0]",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    required=True,
    section=OUTPUT,
    help="Write to this file, as .svg, .png or .pdf; the width is 85 mm, one journal column.",
)
@log_options
def plot(model: str, kind: str, out: str, **options: Any) -> None:
    """Plot the results of MODEL, saved by select or reduce.

    \b
      streamsel plot genes.model --kind relevance -o relevance.svg
      streamsel plot genes.model --kind heatmap --data expression.parquet -o together.pdf
    """  # noqa: D301 (\b is a click escape)
    from streamsel import extras
    from streamsel.cli._outputs import check_distinct, check_writable
    from streamsel.files import whole_file

    _check_options(kind, options)
    suffix = os.path.splitext(out)[1].lower()  # noqa: PTH122 (a string, as the user gave it)
    if suffix not in FORMATS:
        raise click.UsageError(
            f"--out {out}: unknown format {suffix!r}. Hint: the name must end in one of "
            f"{', '.join(FORMATS)}"
        )
    check_distinct({"--out": out}, {"MODEL": model, "--data": options["data"]})
    extras.matplotlib()
    check_writable(out, "--out")
    drawn: Any = _plot_model(model, kind, options)
    with whole_file(out) as temporary:
        drawn.figure.savefig(temporary, format=suffix[1:])


def _check_options(kind: str, options: dict[str, Any]) -> None:
    """Refuse options that do not apply to this kind, and a kind without the options it requires."""
    for name, kinds in _KINDS_OF_OPTION.items():
        if options[name.lstrip("-")] is not None and kind not in kinds:
            raise click.UsageError(
                f"{name} is only valid with --kind {' or '.join(kinds)}. Got: {kind}"
            )
    if kind == "heatmap" and options["data"] is None:
        raise click.UsageError("--kind heatmap requires --data FILE")
    if options["by"] is not None and options["data"] is None:
        raise click.UsageError("--by requires --data FILE")


def _plot_model(path: str, kind: str, options: dict[str, Any]) -> Axes:
    """Plot a saved model."""
    from streamsel import plot
    from streamsel.cli._apply import notes_of
    from streamsel.persist import load

    if kind == "stability":
        return plot.stability(read_stability(path))
    model = load(path)
    if kind in _KINDS_OF_OPTION["--data"]:
        return _plot_rows(model, kind, options, notes_of(path))
    complete = notes_of(path).get("complete", True)
    shown = model if complete else model.report().unfinished()
    if kind == "loadings":
        return plot.loadings(shown, component=options["component"] or 0)
    drawn: Axes = getattr(plot, kind)(shown)
    return drawn


def _plot_rows(model: Any, kind: str, options: dict[str, Any], notes: dict[str, Any]) -> Axes:
    """Plot rows of a file, or those that the model keeps."""
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
    """Read the output of `streamsel stability --json`."""
    import json

    from streamsel.evaluate import SubsampleStability

    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 (the error names it as given)
            return SubsampleStability.from_dict(json.load(file))
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(
            f"{path}: expected the output of streamsel stability --json. Hint: streamsel "
            "stability FILE ... --json > stability.json"
        ) from error

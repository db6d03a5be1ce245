"""The command `plot`: plot the results of a saved model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli.click_ext import SectionCommand
from streamsel.cli.errors import CommandError
from streamsel.cli.methods import run_options
from streamsel.cli.options import (
    INPUT,
    OUTPUT,
    config_option,
    log_options,
    option,
    orientation_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from streamsel.cli.log import Log

KINDS = (
    "manhattan",
    "qq",
    "selection_path",
    "scree",
    "loadings",
    "scatter",
    "heatmap",
    "stability",
)
FORMATS = (".svg", ".png", ".pdf")
# Options that apply to some kinds only.
_KINDS_OF_OPTION = {
    "--data": ("heatmap", "scatter", "manhattan"),
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


@click.command("plot", cls=SectionCommand, short_help="Plot the results of a saved model.")
@config_option
@click.argument("model", type=click.Path())
@option(
    "--kind",
    type=click.Choice(KINDS),
    multiple=True,
    required=True,
    callback=_one_kind,
    section=OUTPUT,
    common="What to plot.",
    help="What to plot. All models: relevance by arrival of the columns (manhattan; with --data "
    "p-values along the genome) and compared with noise (qq). Selectors: order of selection "
    "(selection_path), correlations (heatmap, with --data). Extractors: scree plot (scree), "
    "loadings (loadings), positions of rows "
    "(scatter). For stability MODEL is the output of streamsel stability --json.",
)
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    section=INPUT,
    common="Rows, or genotypes for manhattan.",
    help="Rows to plot: required by heatmap, and by scatter unless MODEL keeps the rows that it "
    "has learnt. Only the columns that are needed are read. With manhattan, .bed or VCF files that "
    "MODEL has learnt: p-values are plotted by their chromosomes and positions.",
)
@option(
    "--by",
    metavar="NAME",
    section=INPUT,
    common="Column of --data for the colours.",
    help="Column of --data, labels or numbers, that colours the points of scatter.",
)
@orientation_option
@run_options("plot", INPUT)
@option(
    "--component",
    type=click.IntRange(min=0),
    metavar="N",
    section=OUTPUT,
    common="Component to plot, for loadings.",
    help="Component plotted by loadings, by its number.  [default: 0]",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    required=True,
    section=OUTPUT,
    common="Write to this .svg, .png or .pdf file.",
    help="Write to this file, as .svg, .png or .pdf; the width is 85 mm, one journal column.",
)
@log_options
@click.pass_obj
def plot(log: Log, /, model: str, kind: str, out: str, **options: Any) -> None:
    """Plot the results of MODEL, saved by select or reduce.

    \b
      streamsel plot genes.model --kind manhattan -o relevance.svg
      streamsel plot genes.model --kind heatmap --data expression.parquet -o together.pdf
    """  # noqa: D301 (\b is a click escape)
    from streamsel._utils import optional
    from streamsel.cli.output import check_distinct_outputs, check_writable, note_written
    from streamsel.serialization.atomic import atomic_write

    _check_options(kind, options)
    suffix = os.path.splitext(out)[1].lower()  # noqa: PTH122 (a string, as the user gave it)
    if suffix not in FORMATS:
        raise click.UsageError(
            f"--out {out}: unknown format {suffix!r}. Hint: the name must end in one of "
            f"{', '.join(FORMATS)}"
        )
    check_distinct_outputs({"--out": out}, {"MODEL": model, "--data": options["data"]})
    optional.import_matplotlib()
    check_writable(out, "--out")
    from streamsel.plot.style import figure

    drawn, ax = figure()
    _plot_model(log, model, kind, options, ax)
    with atomic_write(out) as temporary:
        drawn.savefig(temporary, format=suffix[1:])
    note_written(log, out, f"plot of {kind}")


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


def _plot_model(log: Log, path: str, kind: str, options: dict[str, Any], ax: Axes) -> None:
    """Plot a saved model."""
    from streamsel import plot
    from streamsel.cli.commands.transform import open_rows, read_run_metadata
    from streamsel.serialization.archive import load

    if kind == "stability":
        plot.stability(read_stability(path), ax)
        return
    model = load(path)
    if kind in ("heatmap", "scatter"):
        _plot_rows(log, model, kind, options, read_run_metadata(path), ax)
        return
    complete = read_run_metadata(path).get("complete", True)
    source = model if complete else model.report().without_certification()
    if kind == "loadings":
        plot.loadings(source, ax, component=options["component"] or 0)
    elif options["data"] is not None:
        metadata = read_run_metadata(path)
        file, _ = open_rows(log, [options["data"]], [], model, metadata, options)
        plot.manhattan(model, ax, metadata=file.stream)
    else:
        getattr(plot, kind)(source, ax)


def _plot_rows(
    log: Log, model: Any, kind: str, options: dict[str, Any], metadata: dict[str, Any], ax: Axes
) -> None:
    """Plot rows of a file, or those that the model keeps."""
    from streamsel import plot
    from streamsel.cli.commands.transform import (
        input_and_output_names,
        open_rows,
        report_missing_columns,
    )
    from streamsel.plot.inputs import check_has_results_of_kind

    check_has_results_of_kind(model.report(), "selected" if kind == "heatmap" else "components")
    if options["data"] is None:
        plot.scatter(model, ax=ax)
        return
    by = [] if options["by"] is None else [options["by"]]
    model_names = [str(name) for name in input_and_output_names(model)[0]]
    names = [*model_names, *by]
    source, rows = open_rows(log, [options["data"]], names, model, metadata, options)
    with report_missing_columns(source):
        if kind == "heatmap":
            plot.heatmap(model, rows, ax)
            return
        colours = [source.name(name) for name in by]
        y = source.take(colours)[colours[0]] if colours else None
        plot.scatter(model, rows, y, ax)


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

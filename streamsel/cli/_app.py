"""The command line: what can be asked, and how it is asked.

Only click is imported here: `--help` has no use for numpy.
"""

from __future__ import annotations

import warnings
from typing import Any

import click

from streamsel import __version__
from streamsel.cli._errors import (
    EXPECTED,
    CommandError,
    message_of,
    silence_stdout,
    stop,
    warn_in_one_line,
)
from streamsel.cli._options import (
    INPUT,
    LEARNER,
    OUTPUT,
    delimiter_option,
    input_options,
    option,
    output_options,
)
from streamsel.cli._request import Request, make_request
from streamsel.cli._sections import Command

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96}


class Application(click.Group):
    """The group of commands; it turns what goes wrong into messages and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warn_in_one_line()
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                stop("interrupted", 130)
            except BrokenPipeError:
                silence_stdout()
                ctx.exit(141)
            except EXPECTED as error:
                raise CommandError(message_of(error)) from error


@click.group(
    cls=Application,
    context_settings=CONTEXT,
    epilog="streamsel COMMAND --help says more about a command.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Pick the variables that matter, or build new ones, from files wider than memory.

    Columns are read one after the other, once, and are never all in memory.
    """


@app.command(cls=Command, short_help="Keep the variables that matter (ProjSe).")
@input_options
@option(
    "-k",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="K",
    section=LEARNER,
    help="Number of variables to select.",
)
@option(
    "--no-target",
    is_flag=True,
    section=INPUT,
    help="Select the variables that explain all the others.",
)
@option(
    "--kernel",
    type=click.Choice(["linear", "poly", "rbf"]),
    default="linear",
    show_default=True,
    section=LEARNER,
    help="Kernel between variables.",
)
@option(
    "--degree",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    section=LEARNER,
    help="Of poly.",
)
@option(
    "--gamma",
    type=float,
    metavar="X",
    section=LEARNER,
    help="Of poly and rbf; chosen from the target if not given.",
)
@option(
    "--coef0",
    type=float,
    default=0.0,
    show_default=True,
    metavar="X",
    section=LEARNER,
    help="Of poly.",
)
@option(
    "--max-candidates",
    type=click.IntRange(min=1),
    metavar="M",
    section=LEARNER,
    help="Keep no more candidates than this, in constant memory, such as 4 times K. If not given "
    "all columns are candidates: exact, some numbers a column.",
)
@option(
    "--exact",
    is_flag=True,
    section=LEARNER,
    help="With --max-candidates: read the file again until the selection is proven exact.",
)
@option(
    "--after-rank",
    type=click.Choice(["restart", "stop"]),
    default="restart",
    show_default=True,
    section=LEARNER,
    help="What to do when the target is explained in full before K are selected.",
)
@output_options
@click.pass_context
def select(ctx: click.Context, /, **options: Any) -> None:
    """Keep the K variables of FILE that together explain the target best.

    FILE is Parquet, Arrow IPC (Feather), .npy or text (CSV, TSV, also .gz). Its columns go by
    once and are never all in memory.

    \b
      streamsel select expression.parquet --target survival -k 50
      streamsel select genes.tsv.gz --target-file labels.txt --orientation variables -m genes.model
    """  # noqa: D301 (\b is a character that click knows)

    def make_model() -> Any:
        from streamsel import ProjSe

        names = "kernel degree gamma coef0 max_candidates exact after_rank n_jobs"
        parameters = {name: options[name] for name in names.split()}
        return ProjSe(options["k"], target=options["target_kind"], **parameters)

    _run(make_request(ctx, make_model))


@app.command(cls=Command, short_help="Build a few new variables out of many (SOSPCA).")
@input_options
@option(
    "--n-components",
    "-q",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="Q",
    section=LEARNER,
    help="Number of components.",
)
@option(
    "--rotation",
    type=click.Choice(["jacobi", "paper"]),
    default="jacobi",
    show_default=True,
    section=LEARNER,
    help="Rotation of two components: jacobi decorrelates them exactly.",
)
@option(
    "--signed",
    is_flag=True,
    section=LEARNER,
    help="Take a negative correlation with the target for a small one, as the paper does.",
)
@output_options
@click.pass_context
def reduce(ctx: click.Context, /, **options: Any) -> None:
    """Build Q components, sparse combinations of the variables of FILE, that explain the target.

    FILE is Parquet, Arrow IPC (Feather), .npy or text (CSV, TSV, also .gz). Its columns go by
    once and are never all in memory.

    \b
      streamsel reduce expression.parquet --target survival -q 10 -o components.csv
    """  # noqa: D301 (\b is a character that click knows)

    def make_model() -> Any:
        from streamsel import SOSPCA

        return SOSPCA(
            options["n_components"],
            rotation=options["rotation"],
            signed=options["signed"],
            target=options["target_kind"],
            n_jobs=options["n_jobs"],
        )

    _run(make_request(ctx, make_model))


def _run(request: Request) -> None:
    from streamsel.cli._learn import run

    run(request)


@app.command(cls=Command, short_help="Apply a saved model to another file.")
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@option(
    "--orientation",
    type=click.Choice(["auto", "samples", "variables"]),
    default="auto",
    show_default=True,
    section=INPUT,
    help="What a line of a text file is; auto sees where the model's variables are.",
)
@delimiter_option
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write to this file, as .parquet, .feather, .arrow, .npy, .csv or .tsv; otherwise CSV is "
    "printed.",
)
def transform(
    model: str, file: str, orientation: str, delimiter: str | None, out: str | None
) -> None:
    """Apply MODEL, saved by select or reduce, to the rows of FILE.

    Only the columns that the model needs are read; FILE must have all of them.
    """
    from streamsel.cli._apply import transform as apply

    apply(model, file, orientation, delimiter, out)


@app.command(cls=Command, short_help="Say what a saved model holds.")
@click.argument("model", type=click.Path())
@option("--json", "as_json", is_flag=True, section=OUTPUT, help="Print JSON.")
def info(model: str, as_json: bool) -> None:
    """Say what MODEL is, what it has seen, and what it has found."""
    from streamsel.cli._apply import info as describe

    describe(model, as_json=as_json)


@app.command(cls=Command, short_help="Show it at work on a million variables; needs no data.")
@option(
    "--quick",
    is_flag=True,
    section="Size",
    help="Take fewer documents and shorter n-grams: some seconds.",
)
def demo(quick: bool) -> None:
    """Find the n-grams that tell numpy's docstrings from scipy's, out of a million.

    Needs no download: the documents are those of the installed libraries.
    """
    from rich.console import Console

    from streamsel import demo as demonstration
    from streamsel.cli._progress import stages

    with stages() as progress:
        report = demonstration.run(quick=quick, progress=progress)
    demonstration.render(report, Console(highlight=False))

"""The command line: what can be asked, and how it is asked.

Only click is imported here: `--help` has no use for numpy.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import click

from streamsel import __version__, catalogue
from streamsel.cli._errors import (
    EXPECTED,
    CommandError,
    message_of,
    say_defect,
    show_usage_error,
    stop,
    warn_in_one_line,
)
from streamsel.cli._evaluate import evaluate
from streamsel.cli._interrupt import exit_code_of
from streamsel.cli._log import begin_log, log, silence
from streamsel.cli._methods import MethodCommand
from streamsel.cli._options import (
    INPUT,
    LEARNER,
    OUTPUT,
    config_option,
    decimal_option,
    delimiter_option,
    files_argument,
    input_options,
    keep_option,
    layer_options,
    log_options,
    method_options,
    na_values_option,
    no_target_option,
    option,
    orientation_option,
    output_options,
    permutation_options,
)
from streamsel.cli._page import report as page
from streamsel.cli._picture import plot
from streamsel.cli._request import make_request
from streamsel.cli._sections import Command, Several
from streamsel.cli._stability import stability
from streamsel.cli._values import Method

if TYPE_CHECKING:
    from collections.abc import Sequence


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 96,
    "auto_envvar_prefix": "STREAMSEL",
}


class Application(click.Group):
    """The group of commands; it turns what goes wrong into messages and exit codes."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        """Run the command, and leave with its exit code."""
        begin_log(sys.argv[1:] if args is None else args)
        # A result is not to be lost by a name that the locale has no letters for.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        code = self._run(args, *rest, **settings | {"standalone_mode": False})
        log().end(code)
        sys.exit(code)

    def _run(self, *args: Any, **settings: Any) -> int:
        """Run the command, say what goes wrong, and return the exit code."""
        try:
            # After --help and the like it is returned; commands return nothing.
            return super().main(*args, **settings) or 0
        except CommandError as error:
            error.show()
            return error.exit_code
        except click.ClickException as error:
            show_usage_error(error)
            return error.exit_code
        except click.Abort:
            log().say("interrupted", "interrupted", level="error", exit_code=130)
            return 130
        except Exception as error:
            if not log().as_json:
                raise
            # A defect of ours; but whoever reads objects is to get one.
            say_defect(error)
            return 1

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warn_in_one_line()
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                stop("interrupted", exit_code_of(error))
            except BrokenPipeError:
                silence(sys.stdout)  # whoever read it has stopped reading
                ctx.exit(141)
            except EXPECTED as error:
                raise CommandError(message_of(error)) from error


@click.group(
    cls=Application,
    context_settings=CONTEXT,
    epilog="streamsel COMMAND --help says more about a command. Exit codes: 0 if all went well, 1 "
    "after a failure, 2 if called wrongly, 129, 130 or 143 if ended by SIGHUP, Ctrl-C or SIGTERM, "
    "141 if nobody reads the output.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Pick the variables that matter, or build new ones, from files wider than memory.

    Columns are read one after the other, once, and are never all in memory.
    """


@app.command(cls=MethodCommand, kind="selector", short_help="Keep the variables that matter.")
@input_options
@no_target_option
@method_options("selector")
@permutation_options
@option(
    "-k",
    metavar="K",
    section=LEARNER,
    parameter="k",
    help="Number of variables to select; every method has its default.",
)
@option(
    "--kernel",
    metavar="NAME",
    section=LEARNER,
    parameter="kernel",
    help="Kernel between variables: linear, poly or rbf.",
)
@option(
    "--degree",
    metavar="N",
    section=LEARNER,
    parameter="degree",
    help="Of poly.",
)
@option(
    "--gamma",
    metavar="X",
    section=LEARNER,
    parameter="gamma",
    help="Of poly and rbf; chosen from the target if not given.",
)
@option(
    "--coef0",
    metavar="X",
    section=LEARNER,
    parameter="coef0",
    help="Of poly.",
)
@option(
    "--max-candidates",
    metavar="M",
    section=LEARNER,
    parameter="max_candidates",
    help="Keep no more candidates than this, in constant memory, such as 4 times K. If not given "
    "all columns are candidates: exact, some numbers a column; where their observations are kept, "
    "as many as 64 MB hold (--set max_pool_bytes).",
)
@option(
    "--exact/--no-exact",
    default=None,
    section=LEARNER,
    parameter="exact",
    help="With --max-candidates, read the files again until the selection is proven to equal that "
    "over all columns.  [default: --exact, unless --checkpoint or --resume is given]",
)
@option(
    "--after-rank",
    metavar="WHAT",
    section=LEARNER,
    parameter="after_rank",
    help="What to do when the target is explained in full before K are selected: restart or stop.",
)
@output_options
@click.pass_context
def select(ctx: click.Context, /, **_: Any) -> None:
    """Keep the variables of FILE that explain the target best.

    FILE is Parquet, Arrow IPC (Feather), .npy or text (CSV, TSV, also .gz). Its columns go by
    once and are never all in memory. Those of several files, or of a pattern in quotes, stand side
    by side.

    \b
      streamsel select expression.parquet --target survival -k 50
      streamsel select 'part-*.parquet' --target-file survival.csv
      streamsel select genes.tsv.gz --target-file labels.txt --orientation variables -m genes.model
    """  # noqa: D301 (\b is a character that click knows)
    _run(ctx)


@app.command(cls=MethodCommand, kind="extractor", short_help="Build a few new variables of many.")
@input_options
@method_options("extractor")
@permutation_options
@option(
    "--n-components",
    "-q",
    metavar="Q",
    section=LEARNER,
    parameter="n_components",
    help="Number of components; every method has its default.",
)
@option(
    "--max-support",
    metavar="M",
    section=LEARNER,
    parameter="max_support",
    help="Make them of no more variables than this, in constant memory; if not given of all, by "
    "the inner products of the rows, of which there may be 15,000.",
)
@option(
    "--rotation",
    metavar="NAME",
    section=LEARNER,
    parameter="rotation",
    help="Rotation of two components: jacobi, which decorrelates them exactly, or paper.",
)
@option(
    "--signed",
    is_flag=True,
    section=LEARNER,
    parameter="signed",
    help="Take a negative correlation with the target for a small one, as the paper does.",
)
@output_options
@click.pass_context
def reduce(ctx: click.Context, /, **_: Any) -> None:
    """Build components, new variables out of those of FILE, that explain the target.

    FILE is Parquet, Arrow IPC (Feather), .npy or text (CSV, TSV, also .gz). Its columns go by
    once and are never all in memory. Those of several files, or of a pattern in quotes, stand side
    by side.

    \b
      streamsel reduce expression.parquet --target survival -q 10 -o components.csv
    """  # noqa: D301 (\b is a character that click knows)
    _run(ctx)


def _run(ctx: click.Context) -> None:
    from streamsel.cli._learn import run

    run(make_request(ctx))


@app.command(cls=Command, short_help="Apply a saved model to another file.")
@config_option
@click.argument("model", type=click.Path())
@files_argument
@orientation_option
@delimiter_option
@decimal_option
@na_values_option
@layer_options
@keep_option
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    help="Write to this file, as .parquet, .feather, .arrow, .npy, .csv or .tsv; otherwise CSV is "
    "printed.",
)
@log_options
def transform(
    model: str,
    files: tuple[str, ...],
    orientation: str,
    keep: list[str],
    out: str | None,
    **options: Any,
) -> None:
    """Apply MODEL, saved by select or reduce, to the rows of FILE.

    Only the columns that the model needs are read; FILE must have all of them, or several files
    together.
    """
    from streamsel.cli._apply import transform as apply

    apply(model, files, orientation, options, keep, out)


@app.command(cls=Command, short_help="Say what a saved model holds.")
@click.argument("model", type=click.Path())
@option("--json", "as_json", is_flag=True, section=OUTPUT, help="Print JSON.")
def info(model: str, as_json: bool) -> None:
    """Say what MODEL is, what it has seen, and what it has found."""
    from streamsel.cli._apply import info as describe

    describe(model, as_json=as_json)


@app.command(cls=Command, short_help="Put models together that were learnt apart.")
@config_option
@click.argument(
    "models", cls=Several, type=click.Path(), nargs=-1, required=True, metavar="MODEL..."
)
@option(
    "--along",
    type=click.Choice(["columns", "rows"]),
    default="columns",
    show_default=True,
    section=INPUT,
    help="What the models have learnt: other columns of the same rows, or other rows.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    required=True,
    section=OUTPUT,
    help="Save the merged model.",
)
@option("--json", "as_json", is_flag=True, section=OUTPUT, help="Print JSON.")
@log_options
def merge(models: tuple[str, ...], along: str, out: str, as_json: bool, **_: Any) -> None:
    """Merge MODELs, saved by select or reduce over parts of the data, into one.

    They are of one method with the same parameters. They are merged in the order given; those of a
    pattern in quotes by name, with numbers in their order.

    \b
      streamsel merge 'part-*.model' -o all.model
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel.cli._merge import merge as put_together

    put_together(models, out, along, as_json=as_json)


@app.command(cls=Command, short_help="Compile the loops before they are needed.")
@option(
    "--method",
    "methods",
    type=Method(catalogue.names()),
    multiple=True,
    metavar="NAME",
    section=LEARNER,
    help="A method, as select and reduce have it; may be given several times.  [default: all]",
)
def warmup(methods: tuple[str, ...]) -> None:
    """Compile the loops of the methods, for columns and for rows.

    Otherwise that is done at their first use on a machine. What is compiled is kept on disk, where
    NUMBA_CACHE_DIR says: run it where an image is built, or a machine set up.

    \b
      streamsel warmup --method SelectKBest --method PCA
    """  # noqa: D301 (\b is a character that click knows)
    from streamsel.cli._warmup import warm_up

    warm_up(methods)


@app.command(cls=Command, short_help="Show it at work on 300,000 variables; needs no data.")
@option(
    "--quick",
    is_flag=True,
    section="Size",
    help="One question of fewer documents and shorter n-grams: a few seconds.",
)
def demo(quick: bool) -> None:
    """Find out from which sub-package of SciPy a docstring is, by its words and phrases.

    There are 300,000 of those. The accuracy of a few of them is compared with that of all words.
    Needs no download: the docstrings are those of the installed SciPy.
    """
    from rich.console import Console

    from streamsel import demo as demonstration
    from streamsel.cli._progress import stages

    with stages() as progress:
        report = demonstration.run(quick=quick, progress=progress)
    demonstration.render(report, Console(highlight=False))


app.add_command(plot)
app.add_command(page)
app.add_command(stability)
app.add_command(evaluate)

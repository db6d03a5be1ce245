"""The click application and the definitions of its commands.

Only click is imported here, so that `--help` does not load numpy.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from streamsel import registry
from streamsel._utils.text import printable, seconds_text, spelling_hint
from streamsel._version import __version__
from streamsel.cli.click_ext import FilesArgument, MethodType, SectionCommand
from streamsel.cli.commands.evaluate import evaluate
from streamsel.cli.commands.plot import plot
from streamsel.cli.commands.report import report_command as page
from streamsel.cli.commands.stability import stability_command
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, message_of, usage_text
from streamsel.cli.log import Log, redirect_to_null
from streamsel.cli.methods import (
    MethodCommand,
    input_options,
    n_jobs_option,
    output_options,
    permutations_option,
    run_options,
)
from streamsel.cli.options import (
    INPUT,
    LEARNER,
    OUTPUT,
    config_option,
    files_argument,
    log_options,
    option,
    orientation_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 96,
    "auto_envvar_prefix": "STREAMSEL",
}


class Application(click.Group):
    """The group of commands; turns errors into messages and exit codes."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        """Run the command and exit with its exit code."""
        log = Log.of_arguments(sys.argv[1:] if args is None else args)
        # A name that the locale cannot encode must not lose a result.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            log.capture_warnings()
            code = self._run(log, args, *rest, **settings | {"standalone_mode": False, "obj": log})
        log.end(code)
        sys.exit(code)

    def _run(self, log: Log, *args: Any, **settings: Any) -> int:
        """Run the command, report errors, and return the exit code."""
        try:
            # click returns the exit code of --help and the like; commands return None.
            return super().main(*args, **settings) or 0
        except CommandError as error:
            log.show_error(error.format_message(), error.exit_code)
            return error.exit_code
        except click.ClickException as error:
            if log.as_json:
                log.show_error(usage_text(error), error.exit_code)
            elif isinstance(error, click.exceptions.NoArgsIsHelpError):
                error.show()
            else:
                click.UsageError(printable(usage_text(error)), getattr(error, "ctx", None)).show()
            return error.exit_code
        except click.Abort:
            log.emit("interrupted", "interrupted", level="error", exit_code=130)
            return 130
        except Exception as error:
            if not log.as_json:
                raise
            # A bug in streamsel; with a JSON log it is reported as an event too.
            import traceback

            log.show_error(
                message_of(error), 1, traceback="".join(traceback.format_exception(error))
            )
            return 1

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command.

        Raises
        ------
        click.UsageError
            For an unknown command.
        """
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            hint = spelling_hint(name, known)
            raise click.UsageError(f"No such command: {name}. Hint: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the requested command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            ctx.obj.stop("interrupted", getattr(error, "exit_code", 130))
        except BrokenPipeError:
            redirect_to_null(sys.stdout)  # the reader has closed the pipe
            ctx.exit(141)
        except EXPECTED_ERRORS as error:
            raise CommandError(message_of(error)) from error


@click.group(
    cls=Application,
    context_settings=CONTEXT,
    epilog="COMMAND -h shows the common options of a command, COMMAND --help all. Exit codes: "
    "0 success, 1 failure, 2 usage error, 129, 130 or 143 if ended by SIGHUP, Ctrl-C or SIGTERM, "
    "141 if the reader closed the pipe.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Select variables, or build components, from files with more columns than fit in memory."""


@app.command(
    cls=MethodCommand, kind="selector", short_help="Select the variables that explain a target."
)
@input_options("select", "selector")
@permutations_option
@option(
    "-k",
    metavar="K",
    section=LEARNER,
    parameter="k",
    common="Number of variables.",
    help="Number of variables to select; the default depends on the method.",
)
@option(
    "--kernel",
    metavar="NAME",
    section=LEARNER,
    parameter="kernel",
    help="Kernel on the variables: linear, poly or rbf.",
)
@option(
    "--degree",
    metavar="N",
    section=LEARNER,
    parameter="degree",
    help="Degree of the poly kernel.",
)
@option(
    "--gamma",
    metavar="X",
    section=LEARNER,
    parameter="gamma",
    help="Gamma of the poly and rbf kernels; derived from the target if not given.",
)
@option(
    "--coef0",
    metavar="X",
    section=LEARNER,
    parameter="coef0",
    help="Constant term of the poly kernel.",
)
@option(
    "--max-candidates",
    metavar="M",
    section=LEARNER,
    parameter="max_candidates",
    common="Keep at most M candidates: bounded memory.",
    help="Keep at most M candidates, in constant memory; 4 times K is a good value. By default "
    "all columns are candidates, with a few numbers of state per column. Methods that keep the "
    "observations of candidates are limited to 64 MB (--set max_pool_bytes).",
)
@option(
    "--exact/--no-exact",
    default=None,
    section=LEARNER,
    parameter="exact",
    help="With --max-candidates, read the files again until the selection is proven to equal "
    "that over all columns.  [default: --exact, unless --checkpoint or --resume is given]",
)
@option(
    "--on-rank-exhausted",
    metavar="WHAT",
    section=LEARNER,
    parameter="on_rank_exhausted",
    help="If the target is explained in full before K variables are selected: restart or stop.",
)
@n_jobs_option
@output_options("select")
@click.pass_context
def select_command(ctx: click.Context, /, **_: Any) -> None:
    """Select the variables of FILE that best explain the target.

    FILE is {formats}. Columns are read one after the other and are never all in memory. The columns
    of several files, or of a quoted pattern of file names, are concatenated.

    \b
      streamsel select expression.parquet --target survival -k 50
      streamsel select 'part-*.parquet' --target-file survival.csv
      streamsel select genes.tsv.gz --target-file labels.txt --orientation variables -m genes.model
    """  # noqa: D301 (\b is a click escape)
    _run(ctx)


@app.command(
    cls=MethodCommand, kind="extractor", short_help="Build a few components from many variables."
)
@input_options("reduce", "extractor")
@permutations_option
@option(
    "--n-components",
    "-q",
    metavar="Q",
    section=LEARNER,
    parameter="n_components",
    common="Number of components.",
    help="Number of components; the default depends on the method.",
)
@option(
    "--max-support",
    metavar="M",
    section=LEARNER,
    parameter="max_support",
    common="Use at most M variables: bounded memory.",
    help="Build components from at most M variables, in constant memory; if not given, from all "
    "variables, through the Gram matrix of the rows (at most 15,000 rows).",
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
    help="Treat negative correlations with the target as small, as in the paper.",
)
@n_jobs_option
@output_options("reduce")
@click.pass_context
def reduce(ctx: click.Context, /, **_: Any) -> None:
    """Build components, combinations of the columns of FILE, that explain the target.

    FILE is {formats}. Columns are read one after the other and are never all in memory. The columns
    of several files, or of a quoted pattern of file names, are concatenated.

    \b
      streamsel reduce expression.parquet --target survival -q 10 -o components.csv
    """  # noqa: D301 (\b is a click escape)
    _run(ctx)


def _run(ctx: click.Context) -> None:
    from streamsel.cli.commands.select import run_learning
    from streamsel.cli.request import make_settings

    run_learning(make_settings(ctx), ctx.obj)


@app.command(cls=SectionCommand, short_help="Apply a saved model to another file.")
@config_option
@click.argument("model", type=click.Path())
@files_argument
@orientation_option
@run_options("transform", INPUT, OUTPUT)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    section=OUTPUT,
    common="Write to this file instead of stdout.",
    help="Write to this file (.parquet, .feather, .arrow, .npy, .csv or .tsv) instead of CSV to "
    "stdout.",
)
@log_options
@click.pass_obj
def transform(
    log: Log,
    /,
    model: str,
    files: tuple[str, ...],
    orientation: str,
    keep: list[str],
    out: str | None,
    **options: Any,
) -> None:
    """Apply MODEL, saved by select or reduce, to the rows of FILE.

    Only the columns that the model uses are read; FILE, or several files together, must contain all
    of them.

    \b
      streamsel transform genes.model new.parquet -o components.csv
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.commands.transform import transform_files as apply

    apply(log, model, files, orientation, options, keep, out)


@app.command(cls=SectionCommand, short_help="Show the contents of a saved model.")
@click.argument("model", type=click.Path())
@option(
    "--verbose",
    is_flag=True,
    section=OUTPUT,
    help="Also show parameters that have their defaults, and all metadata of the run, such as the "
    "fingerprint of its input.",
)
@option("--json", "as_json", is_flag=True, section=OUTPUT, help="Print JSON, with everything.")
def info(model: str, as_json: bool, verbose: bool) -> None:
    """Show the parameters, the training data and the results of MODEL."""
    from streamsel.cli.commands.transform import print_info as describe

    describe(model, as_json=as_json, verbose=verbose)


@app.command(cls=SectionCommand, short_help="Merge models that were fitted on parts of the data.")
@config_option
@click.argument(
    "models", cls=FilesArgument, type=click.Path(), nargs=-1, required=True, metavar="MODEL..."
)
@option(
    "--along",
    type=click.Choice(["columns", "rows"]),
    default="columns",
    show_default=True,
    section=INPUT,
    common="Axis along which the parts differ.",
    help="How the parts differ: other columns of the same rows, or other rows of the same columns.",
)
@option(
    "--out",
    "-o",
    metavar="FILE",
    type=click.Path(),
    required=True,
    section=OUTPUT,
    common="Save the merged model to this file.",
    help="Save the merged model.",
)
@option("--json", "as_json", is_flag=True, section=OUTPUT, common="Print JSON.", help="Print JSON.")
@log_options
@click.pass_obj
def merge(
    log: Log, /, models: tuple[str, ...], along: str, out: str, as_json: bool, **_: Any
) -> None:
    """Merge MODELs, saved by select or reduce on parts of the data, into one.

    All models must have the same method and parameters. They are merged in the order given; those
    of a quoted pattern in the natural order of their names (numbers by value).

    \b
      streamsel merge 'part-*.model' -o all.model
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.commands.merge import merge_models

    merge_models(log, models, out, along, as_json=as_json)


@app.command(cls=SectionCommand, short_help="Compile the numerical kernels in advance.")
@option(
    "--method",
    "methods",
    type=MethodType(registry.names()),
    multiple=True,
    metavar="NAME",
    section=LEARNER,
    help="Method of select or reduce; may be repeated.  [default: all]",
)
@click.pass_obj
def warmup(log: Log, /, methods: tuple[str, ...]) -> None:
    """Compile the numerical kernels of the methods, for column-wise and row-wise learning.

    By default they are compiled at first use on a machine. The result is cached on disk, in
    NUMBA_CACHE_DIR: run this command when a container image or a machine is set up.

    \b
      streamsel warmup --method SelectKBest --method PCA
    """  # noqa: D301 (\b is a click escape)
    from streamsel.cli.progress import stage_progress

    names = list(dict.fromkeys(methods)) or registry.names()
    start = time.monotonic()
    with stage_progress(log) as progress:
        for i, name in enumerate(names):
            if progress is not None:
                progress(f"compiling {name}", i, len(names))
            cls = registry.fetch(name)
            model = cls()
            if model._get_params().get("n_components", 0) is None:
                model = cls(n_components=2)  # required to learn rows
            model.precompile()
    of = names[0] if len(names) == 1 else f"{len(names)} methods"
    seconds = round(time.monotonic() - start, 3)
    log.note(f"compiled {of} in {seconds_text(seconds)}")


@app.command(
    cls=SectionCommand, short_help="Run a demonstration on 300,000 variables (no data needed)."
)
@option(
    "--quick",
    is_flag=True,
    section="Size",
    help="Run one task with fewer documents and shorter n-grams, in a few seconds.",
)
@click.pass_obj
def demo(log: Log, /, quick: bool) -> None:
    """Predict the SciPy sub-package of a docstring from its words and phrases.

    The data have 300,000 variables. The accuracy with a few of them is compared with that of all
    words. No download is needed: the docstrings come from the installed SciPy.
    """
    from streamsel import demo as demonstration
    from streamsel.cli.display import stdout_console
    from streamsel.cli.progress import stage_progress

    with stage_progress(log) as progress:
        report = demonstration.run(quick=quick, progress=progress)
    demonstration.render(report, stdout_console())


app.add_command(plot)
app.add_command(page)
app.add_command(stability_command)
app.add_command(evaluate)

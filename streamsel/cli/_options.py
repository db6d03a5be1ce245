"""The options that `select` and `reduce` share.

An option that says a parameter of a learner is a text: the learner's rule reads it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

import click

from streamsel import catalogue
from streamsel.cli._config import take_config
from streamsel.cli._log import FORMATS, VARIABLES, take_log_format, take_quiet
from streamsel.cli._sections import Option, Several
from streamsel.cli._values import Delimiter, Method, Name, Setting

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

INPUT, LEARNER, OUTPUT, LONG = "Input", "Method", "Output", "Long runs"

# What --resume means where no model is named: the one that --model names.
THAT_OF_MODEL = ""


def option(*names: str, section: str, **settings: Any) -> Decorator:
    """Make a click option that stands in a section of the help page."""
    return click.option(*names, cls=Option, section=section, **settings)


def names_option(
    *names: str, section: str = INPUT, metavar: str = "NAME", **settings: Any
) -> Decorator:
    """Make an option that takes names: said several times, or with commas between."""
    return option(
        *names,
        type=Name(),
        metavar=metavar,
        multiple=True,
        callback=_split_names,
        section=section,
        **settings,
    )


def _split_names(_: click.Context, __: click.Parameter, values: Sequence[str]) -> list[str]:
    """Split names at commas, but not inside double quotes."""
    try:
        rows = [row for value in values for row in csv.reader([value], skipinitialspace=True)]
    except csv.Error as error:
        raise click.BadParameter(f"{error}. Hint: put the name in double quotes") from error
    return [name.strip() for row in rows for name in row]


def all_of(*decorators: Decorator) -> Decorator:
    """Make one decorator of several, the first on top."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


delimiter_option = option(
    "--delimiter",
    type=Delimiter(),
    metavar="C",
    section=INPUT,
    help="Character between the cells of a text file, or tab; otherwise the suffix and the first "
    "line say.",
)

decimal_option = option(
    "--decimal",
    type=click.Choice([".", ","]),
    section=INPUT,
    help="Decimal mark of a text file; otherwise a comma if the first lines have numbers with one "
    "and none with a point, and cells are parted by something else. Where every comma may set off "
    "thousands it must be said.",
)

na_values_option = names_option(
    "--na-values",
    metavar="CELL",
    help="Cell of a text file that stands for a missing value, such as . or '<0.01', besides the "
    "usual ones: empty, NA, N/A, NaN, nan, null, NULL, None, n/a, #N/A, and - among numbers; "
    "several as with --target.",
)

# Which matrix of an AnnData file.
layer_options = all_of(
    option(
        "--layer",
        metavar="NAME",
        section=INPUT,
        help="Read this layer of an .h5ad file instead of X.",
    ),
    option(
        "--raw",
        is_flag=True,
        section=INPUT,
        help="Read raw of an .h5ad file instead of X: mostly the counts of all genes.",
    ),
)

keep_option = names_option(
    "--keep",
    section=OUTPUT,
    help="Columns that go along into what is written, such as identifier and target; several as "
    "with --target.",
)

# Before all others: what they are may stand in the file.
config_option = option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    is_eager=True,
    callback=take_config,
    section=INPUT,
    help="Take options that are not given from this TOML file: a table for each command, its keys "
    "long options.",
)

log_options = all_of(
    option(
        "--log-format",
        type=click.Choice(FORMATS),
        default=FORMATS[0],
        show_default=True,
        is_eager=True,
        callback=take_log_format,
        expose_value=False,
        envvar=VARIABLES["log_format"],
        section=LONG,
        help="What stderr has where it is no terminal: now and then a line of text, or a JSON "
        "object for everything that happens.",
    ),
    option(
        "--quiet",
        is_flag=True,
        is_eager=True,
        callback=take_quiet,
        expose_value=False,
        envvar=VARIABLES["quiet"],
        section=LONG,
        help="Say nothing but errors.",
    ),
)

files_argument = click.argument(
    "files", cls=Several, type=click.Path(), nargs=-1, required=True, metavar="FILE..."
)

input_options = all_of(
    config_option,
    files_argument,
    names_option(
        "--target",
        "-t",
        help="Column to be explained; several: repeat it, or put commas between.",
    ),
    option(
        "--target-file",
        metavar="FILE",
        type=click.Path(),
        section=INPUT,
        help="Take the target from this file: npy, text with one value a line, or a table (its "
        "columns --target, or all).",
    ),
    option(
        "--id",
        metavar="COLUMN",
        section=INPUT,
        help="Column of identifiers, by which FILE and the --target-file are joined, in whatever "
        "order they are; FILE_COLUMN=TARGET_COLUMN if it has two names. Of text with one variable "
        "a line FILE's identifiers are its header. Never a candidate.",
    ),
    option(
        "--by-position",
        is_flag=True,
        section=INPUT,
        help="Match FILE and the --target-file row after row, though both have identifiers.",
    ),
    option(
        "--event",
        metavar="NAME",
        section=INPUT,
        help="Column that says whether the --target, a time, ended in an event (1) or was cut "
        "short before (0): relevance is then that of Cox's score test.",
    ),
    option(
        "--target-kind",
        metavar="KIND",
        section=INPUT,
        parameter="target",
        help="Whether the target is labels (class), quantities (numeric), or time and event "
        "(survival); auto takes whole numbers of 2 to 20 distinct values, at most one for every "
        "two rows, as labels, and other numbers as quantities.  [default: auto]",
    ),
    option(
        "--missing-target",
        type=click.Choice(["drop", "error"]),
        default="drop",
        show_default=True,
        section=INPUT,
        help="Rows without a target (an empty or NA cell, NaN, -9 with a .bed FILE, an --id that "
        "the --target-file lacks): leave them out, or stop.",
    ),
    names_option(
        "--covariate",
        parameter="covariates",
        help="Column given which everything is asked, such as age or batch: of FILE, or of the "
        "--target-file; several as with --target.",
    ),
    option(
        "--weights",
        metavar="NAME",
        section=INPUT,
        help="Column that says how much each row counts, 0 or above: of FILE, or of the "
        "--target-file.",
    ),
    option(
        "--orientation",
        type=click.Choice(["auto", "samples", "variables"]),
        default="auto",
        show_default=True,
        section=INPUT,
        help="What a line of a text file is: a sample (a header names the columns) or a variable "
        "(its name comes first); auto sees where the target's name is.",
    ),
    delimiter_option,
    decimal_option,
    na_values_option,
    layer_options,
    names_option(
        "--drop",
        help="Column to leave out, such as another outcome, or a pattern of names in quotes: "
        "'f0_*'; several as with --target.",
    ),
    option(
        "--keep-index",
        is_flag=True,
        section=INPUT,
        help="Take a column that only numbers the rows, such as pandas' unnamed index, as a "
        "candidate; otherwise it is left out, with a warning.",
    ),
    option(
        "--missing",
        type=click.Choice(["skip", "mean", "keep", "error"]),
        section=INPUT,
        help="Columns with missing or infinite values: leave them out, put the mean in place, keep "
        "those with missing ones, or stop at the first (and at the first with text).  [default: "
        "keep where the method takes missing values; otherwise mean of .bed files, skip of others]",
    ),
    option(
        "--min-count",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        section=INPUT,
        help="Leave out columns that differ from their most frequent value in fewer than N rows: "
        "a word of one document, a variant of one sample.",
    ),
    option(
        "--max-skipped",
        type=click.FloatRange(min=0, max=1),
        metavar="SHARE",
        section=INPUT,
        help="Fail, and write no results, if more than this share of the columns had to be left "
        "out; if not given more than 0.1 are an alarm.",
    ),
)


def _beside_default(kind: str | None) -> str:
    if kind != "selector":
        return ""
    return " BackwardElimination selects 10 and more variables as well, where all fit in memory."


def method_options(kind: str | None) -> Decorator:
    """Return the options that say a method of a kind, or of any, and any parameter of it."""
    methods = catalogue.names(kind)
    return all_of(
        option(
            "--method",
            type=Method(methods),
            default=methods[0],
            show_default=True,
            metavar="NAME",
            # Before --help, which then tells of this method.
            is_eager=True,
            section=LEARNER,
            help="One of those below; with --help after it: its parameters, and their defaults."
            + _beside_default(kind),
        ),
        option(
            "--set",
            type=Setting(),
            metavar="PARAM=VALUE",
            multiple=True,
            section=LEARNER,
            help="Any parameter of the method; otherwise it is as the method has it.",
        ),
    )


permutation_options = all_of(
    option(
        "--permutations",
        metavar="B",
        section=LEARNER,
        parameter="permutations",
        help="Compare with B permuted targets in the same pass: noise floor and p-values then hold "
        "for counts, rare variants and small classes, too; 1000 is usual.  [default: 0]",
    ),
    option(
        "--strata",
        metavar="NAME",
        section=INPUT,
        help="Column of groups, such as batch or family, within which the target is permuted: of "
        "FILE, or of the --target-file.",
    ),
)
# Of the rows that a saved model is applied to.
orientation_option = option(
    "--orientation",
    type=click.Choice(["auto", "samples", "variables"]),
    default="auto",
    show_default=True,
    section=INPUT,
    help="What a line of a text file is; auto sees where the model's variables are.",
)
json_option = option(
    "--json",
    "as_json",
    is_flag=True,
    section=OUTPUT,
    help="Print JSON. Otherwise: a table on a terminal, tab-separated values elsewhere.",
)
no_target_option = option(
    "--no-target",
    is_flag=True,
    section=INPUT,
    help="Select the variables that explain all the others, by ProjSe.",
)
# Of many models that learn at once.
max_memory_option = option(
    "--max-memory",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    metavar="MB",
    section=LONG,
    help="What the models that learn in one pass may hold together; FILE is read as often as that "
    "takes.",
)
candidates_each_option = option(
    "--max-candidates",
    metavar="M",
    section=LEARNER,
    parameter="max_candidates",
    help="Let each model keep no more candidates than this, in constant memory; a method that has "
    "no such parameter refuses it.",
)

output_options = all_of(
    option(
        "--n-jobs",
        metavar="N",
        section=LEARNER,
        parameter="n_jobs",
        help="Threads; -1 for one a core. The result does not depend on it.  [default: 1]",
    ),
    option(
        "--model",
        "-m",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        help="Save the model, for transform, info, --resume and streamsel.load.",
    ),
    option(
        "--out",
        "-o",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        help="Write the resulting columns, as .parquet, .feather, .arrow, .npy, .csv or .tsv.",
    ),
    keep_option,
    json_option,
    option(
        "--list-skipped",
        "skipped_file",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        help="Write name, reason and detail of every column left out, as it is met; - for stderr.",
    ),
    option(
        "--resume",
        metavar="[MODEL]",
        type=click.Path(),
        is_flag=False,
        flag_value=THAT_OF_MODEL,
        section=LONG,
        help="Go on where the run that saved this model stopped, and save there again; begin if "
        "there is none, and write the outputs again if it is complete. Without MODEL, after FILE: "
        "that of --model.",
    ),
    option(
        "--force",
        is_flag=True,
        section=LONG,
        help="With --resume: go on although FILE or the target is not as it was.",
    ),
    option(
        "--checkpoint",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        section=LONG,
        help="Save the model this often while it learns.",
    ),
    option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=1),
        section=LONG,
        help="Let N processes read parts of the files. The result does not depend on N.",
    ),
    option(
        "--scheduler",
        metavar="ADDRESS",
        section=LONG,
        help="Let the workers of a Dask scheduler read them: where all see the same files.",
    ),
    log_options,
)

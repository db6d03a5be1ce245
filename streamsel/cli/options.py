"""Options shared by several commands.

An option that sets a parameter of a learner is passed as text: the learner's rule parses it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

import click

from streamsel import registry
from streamsel.cli.click_ext import (
    DelimiterType,
    FilesArgument,
    MethodType,
    NameType,
    SectionOption,
    SettingType,
)
from streamsel.cli.config import load_config
from streamsel.cli.log import FORMATS, VARIABLES, set_log_format, set_quiet
from streamsel.stream.formats import suffixes_text

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

INPUT, LEARNER, OUTPUT, LONG_RUNS = "Input", "Method", "Output", "Long runs"

# Value of --resume without a MODEL: the file of --model.
SAME_AS_MODEL = ""


def option(*names: str, section: str, **settings: Any) -> Decorator:
    """Return a click option that belongs to a section of the help page."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


def names_option(
    *names: str, section: str = INPUT, metavar: str = "NAME", **settings: Any
) -> Decorator:
    """Return an option that takes names, repeated or separated by commas."""
    return option(
        *names,
        type=NameType(),
        metavar=metavar,
        multiple=True,
        callback=_split_names,
        section=section,
        **settings,
    )


def _split_names(_: click.Context, __: click.Parameter, values: Sequence[str]) -> list[str]:
    """Split names at commas outside double quotes."""
    try:
        rows = [row for value in values for row in csv.reader([value], skipinitialspace=True)]
    except csv.Error as error:
        raise click.BadParameter(f"{error}. Hint: write the name in double quotes") from error
    return [name.strip() for row in rows for name in row]


def all_of(*decorators: Decorator) -> Decorator:
    """Combine several decorators into one, the first on top."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


delimiter_option = option(
    "--delimiter",
    type=DelimiterType(),
    metavar="C",
    section=INPUT,
    help="Character between the cells of a text file, or tab; inferred from the suffix and the "
    "first line if not given.",
)

decimal_option = option(
    "--decimal",
    type=click.Choice([".", ","]),
    section=INPUT,
    help="Decimal mark of a text file. If not given: a comma if the first lines have numbers "
    "with a decimal comma and none with a point, and cells are not separated by commas. "
    "Required where every comma might be a thousands separator.",
)

na_values_option = names_option(
    "--na-values",
    metavar="CELL",
    help="Cell of a text file that means a missing value, such as . or '<0.01', in addition to "
    "the usual ones: empty, NA, N/A, NaN, nan, null, NULL, None, n/a, #N/A, and - among "
    "numbers. May be repeated or comma-separated.",
)

# The matrix of an AnnData file.
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
        help="Read raw of an .h5ad file, usually the counts of all genes, instead of X.",
    ),
)

keep_option = names_option(
    "--keep",
    section=OUTPUT,
    common="Column to copy to the output.",
    help="Column to copy to the output, such as an identifier or the target. May be repeated or "
    "comma-separated.",
)

# Eager: the file may set the other options.
config_option = option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    is_eager=True,
    callback=load_config,
    section=INPUT,
    help="Read options that are not given elsewhere from this TOML file: one table per command, "
    "with long option names as keys.",
)

log_options = all_of(
    option(
        "--log-format",
        type=click.Choice(FORMATS),
        default=FORMATS[0],
        show_default=True,
        is_eager=True,
        callback=set_log_format,
        expose_value=False,
        envvar=VARIABLES["log_format"],
        section=LONG_RUNS,
        help="Log format when stderr is not a terminal: periodic text lines, or JSON events.",
    ),
    option(
        "--quiet",
        is_flag=True,
        is_eager=True,
        callback=set_quiet,
        expose_value=False,
        envvar=VARIABLES["quiet"],
        section=LONG_RUNS,
        help="Print errors only.",
    ),
)

files_argument = click.argument(
    "files", cls=FilesArgument, type=click.Path(), nargs=-1, required=True, metavar="FILE..."
)

input_options = all_of(
    config_option,
    files_argument,
    names_option(
        "--target",
        "-t",
        common="Target column.",
        help="Target column. May be repeated or comma-separated.",
    ),
    option(
        "--target-file",
        metavar="FILE",
        type=click.Path(),
        section=INPUT,
        common="Read the target from this file.",
        help="Read the target from this file: .npy, text with one value per line, or a table "
        "(the columns of --target, or all).",
    ),
    option(
        "--id",
        metavar="COLUMN",
        section=INPUT,
        help="Column of identifiers by which the rows of FILE and --target-file are joined, in "
        "any order; FILE_COLUMN=TARGET_COLUMN if the names differ. In text with one "
        "variable per line, the identifiers of FILE are in its header. Never a candidate.",
    ),
    option(
        "--by-position",
        is_flag=True,
        section=INPUT,
        help="Match the rows of FILE and --target-file by position, even if both have identifiers.",
    ),
    option(
        "--event",
        metavar="NAME",
        section=INPUT,
        help="Column of event indicators: 1 if the time in --target ended in an event, 0 if it "
        "was censored. Relevance is then that of Cox's score test.",
    ),
    option(
        "--target-type",
        metavar="KIND",
        section=INPUT,
        parameter="target_type",
        help="Type of the target: labels (class), numbers (numeric), or time and event "
        "(survival); auto treats integers with 2 to 20 distinct values, at most one for "
        "every two rows, as labels and other numbers as numeric.  [default: auto]",
    ),
    option(
        "--missing-target",
        type=click.Choice(["drop", "error"]),
        default="drop",
        show_default=True,
        section=INPUT,
        help="Rows without a target (an empty or NA cell, NaN, -9 with genotypes, an --id that "
        "is not in --target-file): drop them, or stop with an error.",
    ),
    names_option(
        "--covariate",
        parameter="covariates",
        help="Covariate, such as age or batch, for which all results are adjusted: a column of "
        "FILE or --target-file. May be repeated or comma-separated.",
    ),
    option(
        "--weights",
        metavar="NAME",
        section=INPUT,
        help="Column of sample weights, 0 or above, in FILE or --target-file.",
    ),
    option(
        "--orientation",
        type=click.Choice(["auto", "samples", "variables"]),
        default="auto",
        show_default=True,
        section=INPUT,
        help="Content of a line of a text file: a sample (a header names the columns) or a "
        "variable (its name comes first); auto infers it from where the target's name is.",
    ),
    delimiter_option,
    decimal_option,
    na_values_option,
    layer_options,
    names_option(
        "--drop",
        common="Column to exclude, or a pattern of names.",
        help="Column to exclude, such as another outcome, or a quoted pattern of names: 'f0_*'. "
        "May be repeated or comma-separated.",
    ),
    option(
        "--keep-index",
        is_flag=True,
        section=INPUT,
        help="Treat a column that only numbers the rows, such as pandas' unnamed index, as a "
        "candidate; otherwise it is excluded with a warning.",
    ),
    option(
        "--missing",
        type=click.Choice(["skip", "mean", "keep", "error"]),
        section=INPUT,
        common="Columns with missing values.",
        help="Columns with missing or infinite values: skip them, impute the mean, keep those "
        "with missing values, or stop with an error at the first (or at the first with "
        "text).  [default: keep if the method accepts missing values; otherwise mean for "
        f"genotypes ({suffixes_text(genotypes=True)}), skip for others]",
    ),
    option(
        "--min-count",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        section=INPUT,
        help="Skip columns that differ from their most frequent value in fewer than N rows, such "
        "as a word of one document or a variant of one sample.",
    ),
    option(
        "--max-skipped",
        type=click.FloatRange(min=0, max=1),
        metavar="SHARE",
        section=INPUT,
        help="Fail without writing results if more than this share of the columns is skipped; if "
        "not given, a share above 0.1 causes a warning.",
    ),
)


def _default_advice(kind: str | None) -> str:
    if kind != "selector":
        return ""
    return (
        " BackwardElimination is an alternative for 10 or more variables if all columns fit in "
        "memory."
    )


def method_options(kind: str | None) -> Decorator:
    """Return the options that set a method of a kind (None for any kind) and its parameters."""
    methods = registry.names(kind)
    return all_of(
        option(
            "--method",
            type=MethodType(methods),
            default=methods[0],
            show_default=True,
            metavar="NAME",
            # Eager, so that a later --help describes this method.
            is_eager=True,
            section=LEARNER,
            common="Method, one of those below.",
            help="Method, one of those below; --method NAME --help shows its parameters and their "
            "defaults." + _default_advice(kind),
        ),
        option(
            "--set",
            type=SettingType(),
            metavar="PARAM=VALUE",
            multiple=True,
            section=LEARNER,
            common="Set any parameter of the method.",
            help="Set any parameter of the method; others keep their defaults. May be repeated.",
        ),
    )


permutation_options = all_of(
    option(
        "--permutations",
        metavar="B",
        section=LEARNER,
        parameter="permutations",
        common="Permutations for p-values; 1000 is usual.",
        help="Compare with B permutations of the target, in the same pass: noise floor and "
        "p-values are then also valid for counts, rare variants and small classes; 1000 is "
        "usual.  [default: 0]",
    ),
    option(
        "--strata",
        metavar="NAME",
        section=INPUT,
        help="Column of groups, such as batch or family, within which the target is permuted, in "
        "FILE or --target-file.",
    ),
)
# For commands that apply a saved model.
orientation_option = option(
    "--orientation",
    type=click.Choice(["auto", "samples", "variables"]),
    default="auto",
    show_default=True,
    section=INPUT,
    help="Content of a line of a text file; auto infers it from where the model's variables are.",
)
json_option = option(
    "--json",
    "as_json",
    is_flag=True,
    section=OUTPUT,
    help="Print JSON instead of a table (on a terminal) or tab-separated values (elsewhere).",
)
no_target_option = option(
    "--no-target",
    is_flag=True,
    section=INPUT,
    help="Select the variables that explain all others (ProjSe by default).",
)
# For commands that learn many models together.
max_memory_option = option(
    "--max-memory",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    metavar="MB",
    section=LONG_RUNS,
    help="Memory limit for the models of one pass; FILE is read in as many passes as needed.",
)
candidates_each_option = option(
    "--max-candidates",
    metavar="M",
    section=LEARNER,
    parameter="max_candidates",
    help="Keep at most M candidates per model, in constant memory; an error for methods without "
    "this parameter.",
)

output_options = all_of(
    option(
        "--n-jobs",
        metavar="N",
        section=LEARNER,
        parameter="n_jobs",
        help="Number of threads; -1 for one per core. The result does not depend on it.  "
        "[default: 1]",
    ),
    option(
        "--model",
        "-m",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        common="Save the model to this file.",
        help="Save the model to this file, for transform, info, --resume and streamsel.load.",
    ),
    option(
        "--out",
        "-o",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        common="Write the results to this file.",
        help="Write the selected variables or components to this file (.parquet, .feather, "
        ".arrow, .npy, .csv or .tsv).",
    ),
    keep_option,
    json_option,
    option(
        "--list-skipped",
        "skipped_file",
        metavar="FILE",
        type=click.Path(),
        section=OUTPUT,
        help="Write name, reason and detail of every skipped column to this file during the run; "
        "- for stderr.",
    ),
    option(
        "--resume",
        metavar="[MODEL]",
        type=click.Path(),
        is_flag=False,
        flag_value=SAME_AS_MODEL,
        section=LONG_RUNS,
        help="Continue the run that saved MODEL, and save there again; start a new run if the "
        "file does not exist; write the outputs again if the run is complete. Without "
        "MODEL, after FILE: the file of --model.",
    ),
    option(
        "--force",
        is_flag=True,
        section=LONG_RUNS,
        help="With --resume: continue even if FILE or the target has changed.",
    ),
    option(
        "--checkpoint",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        section=LONG_RUNS,
        help="Interval between saves of the model during the run.",
    ),
    option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=1),
        section=LONG_RUNS,
        help="Read parts of the files in N processes. The result does not depend on N.",
    ),
    option(
        "--scheduler",
        metavar="ADDRESS",
        section=LONG_RUNS,
        help="Read parts of the files on the workers of a Dask scheduler; all must have access "
        "to the same files.",
    ),
    log_options,
)

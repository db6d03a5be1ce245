"""The settings of a run: each field declares its option, and what a model file keeps of it.

The options of the commands, the metadata of model files, and the checks of `--resume` and `merge`
follow from these declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli.click_ext import DelimiterType, UntilType
from streamsel.cli.options import (
    LONG_RUNS,
    OUTPUT,
    RUNS,
    Options,
    Setting,
    Stored,
    names_settings,
    setting,
)
from streamsel.stream.formats import MAX_CATEGORIES, suffixes_text

if TYPE_CHECKING:
    from streamsel.cli.resume import SavedRun
    from streamsel.stream.files import ReadOptions

STDIN = "-"
"""The file name that denotes standard input."""

_LEARNING = ("select", "reduce")
# Values of --relatedness, and of --loco without a value.
AUTO, CHROMOSOME = "auto", "chromosome"
# Value of --resume without a MODEL: the file of --model.
SAME_AS_MODEL = ""
_LIST: Stored = (list,), []
_TEXT: Stored = (str, NoneType), None
_FLAG: Stored = (bool, NoneType), None


def _has_target(metadata: Options) -> bool:
    return bool(metadata["target"] or metadata["target_file"])


def _agreed_target(options: Options, metadata: Options) -> Any:
    """Return the target of a saved run, if this one has any."""
    return metadata["target"] if _has_target(options) else options["target"]


def _agreed_target_file(options: Options, metadata: Options) -> Any:
    """Return the target file of a saved run, if this one has a target but no file, or vice versa.

    The path may change.
    """
    given, saved = options["target_file"], metadata["target_file"]
    return saved if _has_target(options) and bool(given) != bool(saved) else given


def _agreed_orientation(options: Options, metadata: Options) -> Any:
    given = options["orientation"]
    return given if given == "auto" else metadata["orientation"] or given


def _agreed_missing(options: Options, metadata: Options) -> Any:
    # With --missing error there was none so far, so any choice is consistent.
    given, saved = options["missing"], metadata["missing"]
    return given if given is None or saved == "error" else saved


def _agreed_relatedness(options: Options, metadata: Options) -> Any:
    """Return the relatedness of a saved run, unless both are files: the path may change."""
    given, saved = options["relatedness"], metadata["relatedness"]
    are_files = None not in (given, saved) and AUTO not in (given, saved)
    return given if given is None or are_files else saved


def _complete_target_type(_ctx: click.Context, _option: click.Parameter, typed: str) -> list[str]:
    # The help page does not load the learners.
    from streamsel.targets.target import KINDS

    return [kind for kind in KINDS if kind.startswith(typed)]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run of many columns.

    Parameters
    ----------
    command
        Its command, such as "select".
    arguments
        The files of columns, or patterns, as the user wrote them.
    files
        These files, in the order of their columns.
    file
        The name of the files in messages.
    read_options
        How files are read.
    learner
        A new learner with the given method and parameters.
    saved
        The content of `resume`; None to start a new run.
    """

    command: str
    arguments: Sequence[str]
    files: Sequence[str]
    file: str
    read_options: ReadOptions
    learner: Any
    saved: SavedRun | None

    target: Sequence[str] = setting(
        "--target",
        "-t",
        stored=_LIST,
        agrees=_agreed_target,
        shared=True,
        common="Target column.",
        help="Target column. May be repeated or comma-separated.",
        **names_settings(),
    )
    target_file: str | None = setting(
        "--target-file",
        stored=_TEXT,
        agrees=_agreed_target_file,
        may_change=True,
        shared=True,
        metavar="FILE",
        type=click.Path(),
        common="Read the target from this file.",
        help="Read the target from this file: .npy, text with one value per line, or a table "
        "(the columns of --target, or all).",
    )
    id: str | None = setting(
        "--id",
        stored=_TEXT,
        agrees=True,
        shared=True,
        metavar="COLUMN",
        help="Column of identifiers by which the rows of FILE and --target-file are joined, in "
        "any order; FILE_COLUMN=TARGET_COLUMN if the names differ. In text with one "
        "variable per line, the identifiers of FILE are in its header.",
    )
    by_position: bool = setting(
        "--by-position",
        stored=_FLAG,
        agrees=lambda options, metadata: options["by_position"] and not metadata["id"],
        is_flag=True,
        help="Match the rows of FILE and --target-file by position, even if both have identifiers.",
    )
    event: str | None = setting(
        "--event",
        metavar="NAME",
        help="Column of event indicators: 1 if the time in --target ended in an event, 0 if it "
        "was censored. Relevance is then that of Cox's score test.",
    )
    target_type: str = setting(
        "--target-type",
        parameter="target_type",
        metavar="KIND",
        shell_complete=_complete_target_type,
        help="Type of the target: labels (class), numbers (numeric), or time and event (survival). "
        "binary (two classes) and count select score tests of a logistic or Poisson regression. "
        "With auto, integers with 2 to 20 distinct values, at most half as many as rows, are "
        "labels; other numbers are numeric.  [default: auto]",
    )
    missing_target: str = setting(
        "--missing-target",
        stored=((str,), "error"),
        agrees=True,
        shared=True,
        type=click.Choice(["drop", "error"]),
        default="drop",
        show_default=True,
        help="Rows without a target (an empty or NA cell, NaN, -9 with genotypes, an --id that "
        "is not in --target-file): drop them, or stop with an error.",
    )
    covariates: Sequence[str] = setting(
        "--covariate",
        stored=_LIST,
        shared=True,
        parameter="covariates",
        help="Covariate, such as age or batch, for which all results are adjusted: a column of "
        "FILE or --target-file. May be repeated or comma-separated.",
        **names_settings(),
    )
    weights: str | None = setting(
        "--weights",
        stored=_TEXT,
        agrees=True,
        shared=True,
        metavar="NAME",
        help="Column of sample weights, 0 or above, in FILE or --target-file.",
    )
    relatedness: str | None = setting(
        "--relatedness",
        commands=_LEARNING,
        stored=_TEXT,
        agrees=_agreed_relatedness,
        may_change=True,
        shared=True,
        metavar="auto|FILE",
        type=click.Path(),
        help="Account for relatedness of the rows (such as people) by a mixed model. With auto the "
        "matrix is computed by a first pass over all columns. A file holds the n x n matrix (.npy, "
        "or text as GEMMA writes it), or a model of the same rows, such as PCA.",
    )
    loco: str | None = setting(
        "--loco",
        commands=("select",),
        stored=_TEXT,
        agrees=True,
        shared=True,
        metavar="[COLUMN|FILE]",
        is_flag=False,
        flag_value=CHROMOSOME,
        help="Leave one chromosome out: with --relatedness auto, each column is tested with the "
        "relatedness by the other chromosomes. COLUMN names other groups in the metadata of "
        "columns; a file has two columns, name and group. Without a value, put --loco after FILE.",
    )
    groups: str | None = setting(
        "--groups",
        commands=("select", "evaluate", "stability"),
        stored=_TEXT,
        agrees=True,
        shared=True,
        metavar="FILE",
        type=click.Path(),
        help="Select whole groups of columns, such as loci or pathways, by SelectKBest, ProjSe, "
        "ForwardSelection or Lasso. FILE is a .gmt file, or a table with two columns, name and "
        "group. A column may be in several groups; one without a group is a group of one.",
    )
    orientation: str = setting(
        "--orientation",
        stored=_TEXT,
        agrees=_agreed_orientation,
        shared=True,
        type=click.Choice(["auto", "samples", "variables"]),
        default="auto",
        show_default=True,
        help="Content of a line of a text file: a sample (a header names the columns) or a "
        "variable (its name comes first); auto infers it from the position of the target's name, "
        "or else from the cells of the first lines.",
    )
    delimiter: str | None = setting(
        "--delimiter",
        commands=(*RUNS, "transform", "plot", "report"),
        stored=_TEXT,
        agrees=True,
        type=DelimiterType(),
        metavar="C",
        help="Character between the cells of a text file, or tab; inferred from the suffix and the "
        "first line if not given.",
    )
    decimal: str | None = setting(
        "--decimal",
        commands=(*RUNS, "transform"),
        stored=_TEXT,
        agrees=True,
        type=click.Choice([".", ","]),
        help="Decimal mark of a text file; inferred from the first lines if not given. Required if "
        "every comma might be a thousands separator.",
    )
    na_values: Sequence[str] = setting(
        "--na-values",
        commands=(*RUNS, "transform"),
        stored=_LIST,
        agrees=True,
        help="Cell of a text file that means a missing value, such as . or '<0.01'. Empty cells, "
        "NA, N/A, NaN, null, None, #N/A, and - among numbers, are always missing. May be repeated "
        "or comma-separated.",
        **names_settings(metavar="CELL"),
    )
    layer: str | None = setting(
        "--layer",
        commands=(*RUNS, "transform"),
        stored=_TEXT,
        agrees=True,
        metavar="NAME",
        help="Read this layer of an .h5ad file instead of X.",
    )
    raw: bool = setting(
        "--raw",
        commands=(*RUNS, "transform"),
        stored=_FLAG,
        agrees=True,
        is_flag=True,
        help="Read raw of an .h5ad file, usually the counts of all genes, instead of X.",
    )
    drop: Sequence[str] = setting(
        "--drop",
        key="dropped",
        stored=_LIST,
        agrees=True,
        common="Column to exclude, or a pattern of names.",
        help="Column to exclude, such as another outcome, or a quoted pattern of names: 'f0_*'. "
        "May be repeated or comma-separated.",
        **names_settings(),
    )
    keep_index: bool = setting(
        "--keep-index",
        stored=_FLAG,
        agrees=lambda options, metadata: options["keep_index"] and not metadata["index"],
        is_flag=True,
        help="Treat a column that only numbers the rows, such as pandas' unnamed index, as a "
        "candidate. By default it is excluded with a warning.",
    )
    missing: str | None = setting(
        "--missing",
        stored=((str,), "skip"),
        agrees=_agreed_missing,
        may_change=True,
        shared=True,
        type=click.Choice(["skip", "mean", "keep", "error"]),
        common="Columns with missing values.",
        help="Columns with missing or infinite values: skip them, impute the mean (also in "
        "transforms), keep those with missing values, or stop with an error (also for text).  "
        "[default: keep if the method accepts missing values; otherwise mean for genotypes "
        f"({suffixes_text(genotypes=True)}), skip for others]",
    )
    min_count: int = setting(
        "--min-count",
        stored=((int,), 0),
        agrees=True,
        shared=True,
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Skip columns that differ from their most frequent value in fewer than N rows, such "
        "as a word in one document or a variant in one sample.",
    )
    max_categories: int = setting(
        "--max-categories",
        stored=((int,), 0),
        agrees=True,
        shared=True,
        type=click.IntRange(min=0),
        default=MAX_CATEGORIES,
        show_default=True,
        metavar="N",
        help="Encode text with at most N categories, and at most half as many as rows, as "
        "indicators, and dates as numbers. Other text, such as identifiers, is skipped. 0 skips "
        "all text and dates.",
    )
    max_skipped: float | None = setting(
        "--max-skipped",
        stored=((int, float, NoneType), None),
        may_change=True,
        type=click.FloatRange(min=0, max=1),
        metavar="SHARE",
        help="Fail without writing results if more than this share of the columns is skipped. By "
        "default more than one column, and a share above 0.1, causes a warning.",
    )
    no_target: bool = setting(
        "--no-target",
        commands=("select", "stability"),
        agrees=lambda options, metadata: options["no_target"] and not _has_target(metadata),
        is_flag=True,
        help="Select the variables that explain all others (ProjSe by default).",
    )
    strata: str | None = setting(
        "--strata",
        commands=_LEARNING,
        stored=_TEXT,
        agrees=True,
        shared=True,
        metavar="NAME",
        help="Column of groups, such as batch or family, within which the target is permuted, in "
        "FILE or --target-file.",
    )
    model: str | None = setting(
        "--model",
        "-m",
        section=OUTPUT,
        commands=_LEARNING,
        metavar="FILE",
        type=click.Path(),
        common="Save the model to this file.",
        help="Save the model to this file, for transform, info, --resume and streamsel.load.",
    )
    out: str | None = setting(
        "--out",
        "-o",
        section=OUTPUT,
        commands=_LEARNING,
        metavar="FILE",
        type=click.Path(),
        common="Write the columns or components by row.",
        help="Write the values of the selected variables, or of the components, one row per row of "
        "FILE, to this file (.parquet, .feather, .arrow, .npy, .csv or .tsv).",
    )
    statistics: str | None = setting(
        "--statistics",
        section=OUTPUT,
        commands=("select",),
        metavar="FILE",
        type=click.Path(),
        help="Write a table of the statistics of all columns, not only of the selected ones, to "
        "this file (.parquet, .feather, .arrow, .csv or .tsv): effect, standard error, p-values, "
        "and chromosome, position and alleles of genotypes. Requires --method SelectKBest.",
    )
    keep: Sequence[str] = setting(
        "--keep",
        section=OUTPUT,
        commands=(*_LEARNING, "transform"),
        common="Column to copy to the output.",
        help="Column to copy to the output, such as an identifier or the target. May be repeated "
        "or comma-separated.",
        **names_settings(),
    )
    as_json: bool = setting(
        "--json",
        section=OUTPUT,
        is_flag=True,
        help="Print JSON instead of a table (on a terminal) or tab-separated values (elsewhere).",
    )
    skipped_file: str | None = setting(
        "--list-skipped",
        section=OUTPUT,
        commands=_LEARNING,
        metavar="FILE",
        type=click.Path(),
        help="Write name, reason and detail of every skipped column to this file during the run; "
        "- for stderr.",
    )
    resume: str | None = setting(
        "--resume",
        section=LONG_RUNS,
        commands=_LEARNING,
        metavar="[MODEL]",
        type=click.Path(),
        is_flag=False,
        flag_value=SAME_AS_MODEL,
        help="Continue the run that saved MODEL, and save to it again. Start a new run if the "
        "file does not exist; write the outputs again if the run is complete. Without a "
        "value, put --resume after FILE: MODEL is then the file of --model.",
    )
    force: bool = setting(
        "--force",
        section=LONG_RUNS,
        commands=_LEARNING,
        is_flag=True,
        help="With --resume: continue even if FILE or the target has changed.",
    )
    until: str | None = setting(
        "--until",
        section=LONG_RUNS,
        commands=_LEARNING,
        stored=_TEXT,
        agrees=True,
        metavar="certified|budget|N",
        type=UntilType(),
        help="Stop when k variables are certified and above the noise floor, when the error budget "
        "of AlphaInvesting or OnlineFDR is spent, or when N columns have not changed the set "
        "of selected variables.",
    )
    checkpoint: float | None = setting(
        "--checkpoint",
        section=LONG_RUNS,
        commands=_LEARNING,
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        help="Interval between saves of the model during the run.",
    )
    workers: int | None = setting(
        "--workers",
        section=LONG_RUNS,
        commands=_LEARNING,
        metavar="N",
        type=click.IntRange(min=1),
        help="Read parts of the files in N processes. The result does not depend on N.",
    )
    scheduler: str | None = setting(
        "--scheduler",
        section=LONG_RUNS,
        commands=_LEARNING,
        metavar="ADDRESS",
        help="Read parts of the files on the workers of a Dask scheduler; all must have access "
        "to the same files.",
    )

    @property
    def in_parts(self) -> bool:
        """Whether parts of the files are read by other processes."""
        return self.workers is not None or self.scheduler is not None

    @property
    def worker_options(self) -> list[str]:
        """The options that choose the processes that read parts."""
        if self.workers is not None:
            return ["--workers", str(self.workers)]
        return [] if self.scheduler is None else ["--scheduler", self.scheduler]

    def metadata(self, *, that_may_change: bool = False) -> dict[str, Any]:
        """Return what a model file stores; on request only what a resumed run may change."""
        files = self.arguments[0] if len(self.arguments) == 1 else list(self.arguments)
        found: dict[str, Any] = {"command": self.command, "file": files}
        for name, key, declared in stored_settings():
            if declared.may_change or not that_may_change:
                value = getattr(self, name)
                # A flag that is not set is stored as None.
                found[key] = None if value is False else value
        return found


SETTINGS: dict[str, Setting] = {
    field.name: field.metadata["setting"]
    for field in fields(RunSettings)
    if "setting" in field.metadata
}


def stored_settings() -> Iterator[tuple[str, str, Setting]]:
    """Yield the settings that a model file stores: name, key and declaration."""
    for name, declared in SETTINGS.items():
        if declared.stored is not None:
            yield name, declared.key or name, declared

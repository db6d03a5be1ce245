"""The settings of a run of `select` or `reduce`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli.errors import CommandError, note
from streamsel.cli.methods import learner_of
from streamsel.cli.options import SAME_AS_MODEL
from streamsel.cli.resume import agreed_options, read_options_of, read_saved
from streamsel.cli.spool import STDIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.cli.resume import SavedRun
    from streamsel.stream.files import Missing, ReadOptions


@dataclass(frozen=True)
class Request:
    """The settings of a run.

    Parameters
    ----------
    command
        "select" or "reduce".
    arguments
        The files of columns, or patterns, as the user wrote them.
    files
        These files, in the order of their columns.
    learner
        A new learner with the given method and parameters.
    weights
        Name of the column of sample weights.
    strata
        Name of the column of groups within which the target is permuted.
    target, target_file
        Columns and file of the target; both empty to learn without a target.
    id, by_position
        The identifier columns of FILE and of the target file, as in `--id`; whether their rows are
        matched by position.
    missing_target
        "drop" to drop rows without a target, "error" to stop.
    drop
        Names of columns to exclude.
    keep_index
        Whether columns that only number the rows are candidates.
    orientation, missing, min_count, max_skipped
        As the options of the same names.
    read_options
        How files are read.
    keep
        Names of columns that are copied to `out`.
    model, resume, out, skipped_file
        The model to write, the model to resume, the table of results, and the list of skipped
        columns.
    saved
        The content of `resume`; None to start a new run.
    force
        Whether to continue if the file or the target has changed.
    checkpoint
        Seconds between saves of the model during the run; None for no checkpoints.
    workers, scheduler
        Number of processes that read parts of the files, or the address of the Dask scheduler whose
        workers do; None for neither.
    as_json
        Whether the result is printed as JSON.
    """

    command: str
    arguments: Sequence[str]
    files: Sequence[str]
    learner: Any
    weights: str | None
    strata: str | None
    target: Sequence[str]
    target_file: str | None
    id: str | None
    by_position: bool
    missing_target: str
    drop: Sequence[str]
    keep_index: bool
    orientation: str
    read_options: ReadOptions
    missing: Missing | None
    min_count: int
    max_skipped: float | None
    keep: Sequence[str]
    model: str | None
    resume: str | None
    saved: SavedRun | None
    force: bool
    out: str | None
    skipped_file: str | None
    checkpoint: float | None
    workers: int | None
    scheduler: str | None
    as_json: bool

    @property
    def file(self) -> str:
        """The name of the files in messages."""
        first, last = self.arguments[0], self.arguments[-1]
        return " to ".join(
            "standard input" if path == STDIN else path for path in dict.fromkeys((first, last))
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

    @property
    def covariates(self) -> Sequence[str]:
        """Names of the covariates."""
        return [str(name) for name in self.learner.covariates or ()]

    @property
    def row_columns(self) -> list[str]:
        """Names of the columns of weights and strata."""
        return [name for name in (self.weights, self.strata) if name is not None]


def make_request(ctx: click.Context) -> Request:
    """Return the settings of a run; check dependencies between options, and the parameters."""
    from streamsel.cli.inputs import check_layer, expand_files

    _take_event(ctx)
    options = ctx.params
    files = expand_files(options["files"])
    check_layer(files, layer=options["layer"], raw=options["raw"])
    _check_workers(ctx)
    if options["by_position"] and options["id"] is not None:
        raise click.UsageError("--id and --by-position are mutually exclusive", ctx)
    model, resume = _model_files(ctx)
    saved = None if resume is None else read_saved(resume, str(ctx.info_name))
    if saved is None:
        learner = _learner_to_begin(ctx, resume)
    else:
        _check_missing(ctx, saved)
        options, learner = {**options, **agreed_options(ctx, saved)}, saved.model.clone()
        if saved.cannot_continue:
            note(
                f"--resume {resume}: a run with --exact cannot be continued; starting from the "
                "beginning"
            )
            saved = None
    return Request(
        command=str(ctx.info_name),
        arguments=options["files"],
        files=files,
        learner=learner,
        weights=options["weights"],
        strata=options.get("strata"),
        target=options["target"],
        target_file=options["target_file"],
        id=options["id"],
        by_position=options["by_position"],
        missing_target=options["missing_target"],
        drop=options["drop"],
        keep_index=options["keep_index"],
        orientation=options["orientation"],
        read_options=read_options_of(options),
        missing=options["missing"],
        min_count=options["min_count"],
        max_skipped=options["max_skipped"],
        keep=options["keep"],
        model=model,
        resume=resume,
        saved=saved,
        force=options["force"],
        out=options["out"],
        skipped_file=options["skipped_file"],
        checkpoint=options["checkpoint"],
        workers=options["workers"],
        scheduler=options["scheduler"],
        as_json=options["as_json"],
    )


def _take_event(ctx: click.Context) -> None:
    """Make time and event the target, if --event is given."""
    options, event = ctx.params, ctx.params["event"]
    if event is None:
        return
    if len(options["target"]) != 1:
        raise click.UsageError("--event requires exactly one --target, the time", ctx)
    if options["target_type"] not in (None, "survival"):
        raise click.UsageError("--event requires --target-type survival", ctx)
    options["target"] = [*options["target"], event]


def _model_files(ctx: click.Context) -> tuple[str | None, str | None]:
    """Return the path where the model is saved, and that of the run to resume."""
    model, resume = ctx.params["model"], ctx.params["resume"]
    if resume == SAME_AS_MODEL:
        if model is None:
            raise click.UsageError("--resume requires MODEL or --model FILE", ctx)
        resume = model
    model = model or resume
    if ctx.params["checkpoint"] is not None and model is None:
        raise click.UsageError("--checkpoint requires --model FILE", ctx)
    if ctx.params["force"] and resume is None:
        raise click.UsageError("--force requires --resume", ctx)
    if ctx.params["keep"] and ctx.params["out"] is None:
        raise click.UsageError("--keep requires --out FILE", ctx)
    return model, resume


def _learner_to_begin(ctx: click.Context, resume: str | None) -> Any:
    """Return the learner of a new run; raise if a required option is missing."""
    if resume is not None:
        note(f"--resume {resume}: no such file; starting a new run")
    learner = learner_of(ctx)
    _check_target(ctx, learner)
    if ctx.params["missing"] == "keep" and not learner._takes_missing:
        raise click.UsageError(missing_values_text(type(learner).__name__), ctx)
    return learner


def _check_missing(ctx: click.Context, saved: SavedRun) -> None:
    if ctx.params["missing"] == "keep" and not saved.model._takes_missing:
        raise CommandError(
            f"--resume {saved.path}: {missing_values_text(type(saved.model).__name__)}"
        )


def _check_workers(ctx: click.Context) -> None:
    """Refuse options that cannot be combined with parallel reading."""
    workers, scheduler = ctx.params["workers"], ctx.params["scheduler"]
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers and --scheduler are mutually exclusive", ctx)
    if (workers or scheduler) and ctx.params["skipped_file"] is not None:
        raise click.UsageError(
            "--list-skipped cannot be combined with --workers or --scheduler, which only "
            "count skipped columns",
            ctx,
        )


def _check_target(ctx: click.Context, learner: Any) -> None:
    """Raise if the method cannot learn with, or without, the given target."""
    options, method = ctx.params, type(learner).__name__
    has_target, without = options["target"] or options["target_file"], options.get("no_target")
    if without and has_target:
        raise click.UsageError("--no-target cannot be combined with --target or --target-file", ctx)
    if not learner._is_supervised:
        if has_target:
            raise click.UsageError(
                f"{method} is unsupervised and takes no target. Hint: remove --target and "
                "--target-file",
                ctx,
            )
        has_target, without = False, True
    elif without and not learner._takes_no_target:
        raise click.UsageError(f"--no-target: {method} requires a target", ctx)
    if not has_target and not without:
        alternatives = "--target NAME or --target-file FILE"
        alternatives += (
            ", or --no-target" if "no_target" in options and learner._takes_no_target else ""
        )
        raise click.UsageError(f"Missing option: {alternatives}.", ctx)
    covariates = learner.covariates or ()
    if covariates and not has_target:
        raise click.UsageError("--covariate requires a target", ctx)
    for name in ("weights", "strata"):
        column = options.get(name)
        also = () if name == "strata" else covariates
        if column is not None and column in {*also, *options["target"]}:
            roles = "target" if name == "strata" else "target or covariate"
            raise click.UsageError(f"--{name} {column}: already used as {roles}", ctx)
    if options.get("strata") is not None and not getattr(learner, "permutations", 0):
        raise click.UsageError("--strata requires --permutations, for example 1000", ctx)
    if both := set(covariates).intersection(options["target"]):
        raise click.UsageError(f"--covariate {min(both)}: already used as target", ctx)


def missing_values_text(method: str) -> str:
    """Return the message for a method that does not accept missing values."""
    return (
        f"--missing keep: {method} does not accept missing values. Hint: use --missing mean or skip"
    )


def check_same_parts(request: Request, metadata: Mapping[str, Any]) -> None:
    """Refuse to resume a run in parts as one without parts, or the reverse.

    Progress is counted in parts, not columns: only the same parts give bit-identical results.
    """
    if metadata["columns_read"] and request.in_parts != ("parts" in metadata):
        begun = "without --workers and --scheduler; it must be resumed without them"
        if "parts" in metadata:
            begun = "with --workers or --scheduler; it must be resumed with one of them"
        raise CommandError(f"--resume {request.resume}: that run was started {begun}")

"""What the user asks of a run of `select` or `reduce`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from streamsel.cli._errors import CommandError, note
from streamsel.cli._methods import learner_of
from streamsel.cli._options import THAT_OF_MODEL
from streamsel.cli._saved import agreed, read_saved, reading_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamsel.cli._saved import Saved
    from streamsel.stream._read_options import ReadOptions
    from streamsel.stream._screen import Missing

# What stands for standard input.
STDIN = "-"


@dataclass(frozen=True)
class Request:
    """What the user asks of a run.

    Parameters
    ----------
    command
        "select" or "reduce".
    given
        The files of columns, or patterns, as the user wrote them.
    files
        These files, in the order of their columns.
    learner
        A fresh one, of the method and the parameters asked for.
    weights
        Name of the column that says how much each row counts.
    strata
        Name of the column of groups within which the target is permuted.
    target, target_file
        Where the target is; neither of them learns without one.
    id, by_position
        Which columns of FILE and of the target's file say which row is which, as `--id` has them;
        whether their rows are taken as they stand.
    missing_target
        "drop" where rows without a target are left out, "error" where they end the run.
    drop
        Names of columns to leave out.
    keep_index
        Whether columns that only number the rows are candidates.
    orientation, missing, min_count, max_skipped
        As the options of the same names.
    reading
        How files are to be read.
    keep
        Names of columns that go along into `out`.
    model, resume, out, skipped_file
        Files to write, to go on from, and to write.
    saved
        What is in the file to go on from; None to begin.
    force
        Whether to go on although the file or the target has changed.
    checkpoint
        Seconds between saves of the model while it learns; None for none.
    workers, scheduler
        How many processes read parts of the files, or the address of the Dask scheduler whose
        workers do; None for neither.
    as_json
        Whether the result is printed as JSON.
    """

    command: str
    given: Sequence[str]
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
    reading: ReadOptions
    missing: Missing | None
    min_count: int
    max_skipped: float | None
    keep: Sequence[str]
    model: str | None
    resume: str | None
    saved: Saved | None
    force: bool
    out: str | None
    skipped_file: str | None
    checkpoint: float | None
    workers: int | None
    scheduler: str | None
    as_json: bool

    @property
    def file(self) -> str:
        """What the files are called in a message."""
        first, last = self.given[0], self.given[-1]
        return " to ".join(
            "standard input" if path == STDIN else path for path in dict.fromkeys((first, last))
        )

    @property
    def in_parts(self) -> bool:
        """Whether others read parts of the files."""
        return self.workers is not None or self.scheduler is not None

    @property
    def readers(self) -> list[str]:
        """Who reads parts of the files, as it is said."""
        if self.workers is not None:
            return ["--workers", str(self.workers)]
        return [] if self.scheduler is None else ["--scheduler", self.scheduler]

    @property
    def covariates(self) -> Sequence[str]:
        """Names of the columns given which everything is asked."""
        return [str(name) for name in self.learner.covariates or ()]

    @property
    def of_rows(self) -> list[str]:
        """Names of the columns that say something of each row but are not learnt."""
        return [name for name in (self.weights, self.strata) if name is not None]


def make_request(ctx: click.Context) -> Request:
    """Check what click cannot: options that exclude or need each other, and the parameters."""
    from streamsel.cli._inputs import check_layer, files_of

    _take_event(ctx)
    options = ctx.params
    files = files_of(options["files"])
    check_layer(files, layer=options["layer"], raw=options["raw"])
    _check_workers(ctx)
    if options["by_position"] and options["id"] is not None:
        raise click.UsageError("--id joins rows by name, --by-position by place: say one", ctx)
    model, resume = _model_files(ctx)
    saved = None if resume is None else read_saved(resume, str(ctx.info_name))
    if saved is None:
        learner = _learner_to_begin(ctx, resume)
    else:
        _check_missing(ctx, saved)
        options, learner = {**options, **agreed(ctx, saved)}, saved.model.clone()
        if saved.is_lost:
            note(f"--resume {resume}: a run with --exact has no middle to go on from: begins anew")
            saved = None
    return Request(
        command=str(ctx.info_name),
        given=options["files"],
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
        reading=reading_of(options),
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
    """Let times and events be the target, where events are named."""
    options, event = ctx.params, ctx.params["event"]
    if event is None:
        return
    if len(options["target"]) != 1:
        raise click.UsageError("--event goes with one --target, the time", ctx)
    if options["target_kind"] not in (None, "survival"):
        raise click.UsageError("--event makes the target a time: --target-kind survival", ctx)
    options["target"] = [*options["target"], event]


def _model_files(ctx: click.Context) -> tuple[str | None, str | None]:
    """Return where the model is to be saved, and what is to be gone on from."""
    model, resume = ctx.params["model"], ctx.params["resume"]
    if resume == THAT_OF_MODEL:
        if model is None:
            raise click.UsageError("--resume needs a MODEL, or --model FILE", ctx)
        resume = model
    model = model or resume
    if ctx.params["checkpoint"] is not None and model is None:
        raise click.UsageError("--checkpoint needs --model FILE to save to", ctx)
    if ctx.params["force"] and resume is None:
        raise click.UsageError("--force goes with --resume", ctx)
    if ctx.params["keep"] and ctx.params["out"] is None:
        raise click.UsageError("--keep goes with --out FILE, into which the columns go", ctx)
    return model, resume


def _learner_to_begin(ctx: click.Context, resume: str | None) -> Any:
    """Return a learner of what is asked for, if all is said that it takes to begin."""
    if resume is not None:
        note(f"--resume {resume}: there is no such file yet: begins")
    learner = learner_of(ctx)
    _check_target(ctx, learner)
    if ctx.params["missing"] == "keep" and not learner.takes_missing:
        raise click.UsageError(takes_none(type(learner).__name__), ctx)
    return learner


def _check_missing(ctx: click.Context, saved: Saved) -> None:
    if ctx.params["missing"] == "keep" and not saved.model.takes_missing:
        raise CommandError(f"--resume {saved.path}: {takes_none(type(saved.model).__name__)}")


def _check_workers(ctx: click.Context) -> None:
    """Refuse what does not go with parts that others read."""
    workers, scheduler = ctx.params["workers"], ctx.params["scheduler"]
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers starts processes, --scheduler has some: say one", ctx)
    if (workers or scheduler) and ctx.params["skipped_file"] is not None:
        raise click.UsageError(
            "--list-skipped goes without --workers and --scheduler, which count what they skip", ctx
        )


def _check_target(ctx: click.Context, learner: Any) -> None:
    """Refuse a target, or none, where the method cannot learn with that."""
    options, method = ctx.params, type(learner).__name__
    has_target, without = options["target"] or options["target_file"], options.get("no_target")
    if without and has_target:
        raise click.UsageError("--no-target goes without --target and --target-file", ctx)
    if not learner.supervised:
        if has_target:
            raise click.UsageError(f"{method} learns without a target, and takes none", ctx)
        has_target, without = False, True
    elif without and not learner.takes_no_target:
        raise click.UsageError(f"--no-target: {method} selects by a target", ctx)
    if not has_target and not without:
        ways = "--target NAME or --target-file FILE"
        ways += ", or --no-target" if "no_target" in options and learner.takes_no_target else ""
        raise click.UsageError(f"What is to be explained? Say {ways}.", ctx)
    covariates = learner.covariates or ()
    if covariates and not has_target:
        raise click.UsageError("--covariate goes with a target", ctx)
    for name in ("weights", "strata"):
        column = options.get(name)
        also = () if name == "strata" else covariates
        if column is not None and column in {*also, *options["target"]}:
            which = "target" if name == "strata" else "target or covariate"
            raise click.UsageError(f"--{name} {column}: it is {which}", ctx)
    if options.get("strata") is not None and not getattr(learner, "permutations", 0):
        raise click.UsageError("--strata goes with --permutations, such as 1000", ctx)
    if both := set(covariates).intersection(options["target"]):
        raise click.UsageError(f"--covariate {min(both)}: it is the target", ctx)


def takes_none(method: str) -> str:
    """Say that a method cannot be left columns with missing values."""
    return f"--missing keep: {method} takes no missing values. Hint: --missing mean, or skip"

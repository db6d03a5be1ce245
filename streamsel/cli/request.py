"""The settings of a run and its learner, from the options of a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel import registry
from streamsel._utils.text import close_spellings
from streamsel.cli.click_ext import section_options
from streamsel.cli.errors import CommandError
from streamsel.cli.inputs import check_layer, expand_files
from streamsel.cli.settings import (
    AUTO,
    SAME_AS_MODEL,
    SETTINGS,
    STDIN,
    RunSettings,
    stored_settings,
)
from streamsel.params import rules_of
from streamsel.stream.files import ReadOptions
from streamsel.targets.glm import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamsel.cli.resume import SavedRun
    from streamsel.params import Rule

# A parameter in an error message of a learner; replaced by its option.
PARAMETER_OF = re.compile(r"Expected (\w+) of \w+ to be ")


def make_settings(ctx: click.Context) -> RunSettings:
    """Return the settings of a run; check dependencies between options, and the parameters."""
    # Commands have some of these options only.
    ctx.params = {name: declared.default for name, declared in SETTINGS.items()} | ctx.params
    _take_event(ctx)
    options = ctx.params
    files = expand_files(options["files"])
    check_layer(files, ctx.obj, layer=options["layer"], raw=options["raw"])
    _check_workers(ctx)
    if options["groups"] is not None:
        _check_groups(ctx)
    if options["by_position"] and options["id"] is not None:
        raise click.UsageError("--id and --by-position are mutually exclusive", ctx)
    model, resume = _model_files(ctx)
    saved = None if resume is None else _saved_run(ctx, resume)
    if saved is None:
        learner = learner_of(ctx)
        _check_target(ctx, learner)
        _check_missing(ctx, learner)
        _check_statistics(ctx, learner)
        _check_relatedness(ctx, learner)
    else:
        options, learner = {**options, **_agreed_options(ctx, saved)}, saved.model.clone()
        _note_unrepeated(ctx, saved)
        if saved.cannot_continue:
            ctx.obj.note(
                f"--resume {resume}: a run with --exact or --groups cannot be continued; starting "
                "from the beginning"
            )
            saved = None
    arguments = options["files"]
    ends = dict.fromkeys((arguments[0], arguments[-1]))
    values = {name: options[name] for name in SETTINGS} | {
        "model": model,
        "resume": resume,
        "target_type": learner.target_type,
        "covariates": [str(name) for name in learner.covariates or ()],
    }
    return RunSettings(
        command=str(ctx.info_name),
        arguments=arguments,
        files=files,
        file=" to ".join("standard input" if path == STDIN else path for path in ends),
        read_options=read_options_of(options),
        learner=learner,
        saved=saved,
        **values,
    )


def read_options_of(
    options: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> ReadOptions:
    """Return how files are read.

    Parameters
    ----------
    options
        Options of the command, which may lack some.
    metadata
        Metadata of the applied model: defaults for options on cells and layers.
    """
    known = {} if metadata is None else metadata
    cells, layer, raw = options.get("na_values"), options.get("layer"), options.get("raw")
    if not cells and isinstance(known.get("na_values"), list):
        cells = [text for text in known["na_values"] if isinstance(text, str)]
    if layer is None and not raw:
        layer, raw = known.get("layer"), known.get("raw")
    if layer is not None and raw:
        raise click.UsageError("--raw and --layer are mutually exclusive")
    return ReadOptions(
        delimiter=options.get("delimiter"),
        decimal=options.get("decimal"),
        na_values=tuple(cells or ()),
        layer=layer if isinstance(layer, str) else None,
        raw=raw is True,
        # During a run `CleanStream` imputes and counts them.
        missing="mean" if known.get("missing") == "mean" else "keep",
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


def _saved_run(ctx: click.Context, resume: str) -> SavedRun | None:
    """Return the run to resume; None if there is no such file."""
    from streamsel.cli.resume import read_saved

    saved = read_saved(resume, str(ctx.info_name))
    if saved is None:
        ctx.obj.note(f"--resume {resume}: no such file; starting a new run")
    else:
        _check_missing(ctx, saved.model, f"--resume {saved.path}: ")
        _check_statistics(ctx, saved.model)
    return saved


def _check_missing(ctx: click.Context, learner: Any, of_saved: str = "") -> None:
    """Raise if the method does not accept the missing values that would be kept."""
    if ctx.params["missing"] == "keep" and not learner._allows_missing:
        text = (
            f"{of_saved}--missing keep: {type(learner).__name__} does not accept missing values. "
            "Hint: use --missing mean or skip"
        )
        raise CommandError(text) if of_saved else click.UsageError(text, ctx)


def _check_statistics(ctx: click.Context, learner: Any) -> None:
    """Raise if the method has no statistics of all columns."""
    if ctx.params["statistics"] is not None and not hasattr(learner, "statistics"):
        raise click.UsageError(
            f"--statistics: {type(learner).__name__} has no statistics of single columns. Hint: "
            "use --method SelectKBest",
            ctx,
        )


def _check_relatedness(ctx: click.Context, learner: Any) -> None:
    """Raise if relatedness cannot be combined with the method or other options."""
    relatedness, loco = ctx.params["relatedness"], ctx.params["loco"]
    if loco is not None and relatedness != AUTO:
        raise click.UsageError("--loco requires --relatedness auto", ctx)
    if relatedness is None:
        return
    method = type(learner).__name__
    if not ctx.params["target"] and not ctx.params["target_file"]:
        raise click.UsageError("--relatedness requires a target", ctx)
    if ctx.params["weights"] is not None:
        raise click.UsageError("--relatedness and --weights are mutually exclusive", ctx)
    if learner.target_type in FAMILIES:
        raise click.UsageError(
            f"--relatedness cannot be combined with --target-type {learner.target_type}", ctx
        )
    if not learner._takes_weights:
        raise click.UsageError(
            f"--relatedness: {method} with these parameters uses single observations, which cannot "
            "be whitened. Hint: use principal components as covariates",
            ctx,
        )
    if loco is not None and not learner._is_univariate:
        raise click.UsageError(
            f"--loco: {method} compares columns with each other. Hint: use --method SelectKBest, "
            "which tests every column by itself, or omit --loco",
            ctx,
        )
    if loco is not None and learner.permutations:
        raise click.UsageError("--loco cannot be combined with --permutations", ctx)


def _check_groups(ctx: click.Context) -> None:
    """Refuse options that cannot be combined with groups of columns."""
    for name in ("resume", "workers", "scheduler", "loco"):
        if ctx.params[name] is not None:
            # Groups are complete only once all their members were read.
            raise click.UsageError(f"--groups and --{name} are mutually exclusive", ctx)


def _check_workers(ctx: click.Context) -> None:
    """Refuse options that cannot be combined with parallel reading."""
    workers, scheduler = ctx.params["workers"], ctx.params["scheduler"]
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers and --scheduler are mutually exclusive", ctx)
    if (workers or scheduler) and ctx.params["until"] is not None:
        raise click.UsageError(
            "--until cannot be combined with --workers or --scheduler, which read several parts at "
            "a time",
            ctx,
        )
    if (workers or scheduler) and ctx.params["skipped_file"] is not None:
        raise click.UsageError(
            "--list-skipped cannot be combined with --workers or --scheduler, which only "
            "count skipped columns",
            ctx,
        )


def _check_target(ctx: click.Context, learner: Any) -> None:
    """Raise if the method cannot learn with, or without, the given target."""
    options, method = ctx.params, type(learner).__name__
    has_target, without = options["target"] or options["target_file"], options["no_target"]
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
        has_option = ctx.info_name in SETTINGS["no_target"].commands
        alternatives += ", or --no-target" if has_option and learner._takes_no_target else ""
        raise click.UsageError(f"Missing option: {alternatives}.", ctx)
    covariates = learner.covariates or ()
    if covariates and not has_target:
        raise click.UsageError("--covariate requires a target", ctx)
    for name in ("weights", "strata"):
        column = options[name]
        also = () if name == "strata" else covariates
        if column is not None and column in {*also, *options["target"]}:
            roles = "target" if name == "strata" else "target or covariate"
            raise click.UsageError(f"--{name} {column}: already used as {roles}", ctx)
    if options["strata"] is not None and not getattr(learner, "permutations", 0):
        raise click.UsageError("--strata requires --permutations, for example 1000", ctx)
    if both := set(covariates).intersection(options["target"]):
        raise click.UsageError(f"--covariate {min(both)}: already used as target", ctx)


def _agreed_options(ctx: click.Context, saved: SavedRun) -> dict[str, Any]:
    """Return the options of a resumed run, taken from the earlier run.

    Raises
    ------
    CommandError
        For an option that differs from that run: the model would be another one.
    """
    for spelt, known, current in _repeated_options(ctx, saved):
        if known != current:
            raise CommandError(
                f"--resume {saved.path}: the saved run has {spelt} {_text(known)}. Got: "
                f"{spelt} {_text(current)}. Hint: omit {spelt} to resume, or use another --model"
            )
    given = explicit_parameters(ctx, type(saved.model).__name__)
    if is_option_given(ctx, "n_jobs"):  # the result does not depend on it
        saved.model.n_jobs = given["n_jobs"][1]
    begins_to_impute = ctx.params["missing"] == "mean" != saved.metadata["missing"]
    if begins_to_impute and hasattr(saved.model, "missing") and "missing" not in given:
        saved.model.missing = "mean"
    return {
        name: declared.default if saved.metadata[key] is None else saved.metadata[key]
        for name, key, declared in stored_settings()
        if not (declared.may_change and ctx.params[name] is not None)
    }


def _note_unrepeated(ctx: click.Context, saved: SavedRun) -> None:
    """Say that relatedness and left-out groups of the saved run apply, if they are not repeated."""
    names = [
        name
        for name in ("relatedness", "loco")
        if saved.metadata.get(name) is not None and ctx.params[name] is None
    ]
    if names:
        used = " ".join(f"{SETTINGS[name].spelt} {saved.metadata[name]}" for name in names)
        ctx.obj.note(f"--resume {saved.path}: continuing with {used} of the saved run")


def _repeated_options(ctx: click.Context, saved: SavedRun) -> Iterator[tuple[str, Any, Any]]:
    """Yield options that are both saved and set: the option, the saved and the new value."""
    options, metadata, method = ctx.params, saved.metadata, type(saved.model).__name__
    if is_option_given(ctx, "method"):
        yield "--method", method, options["method"]
    for name, (spelt, value) in explicit_parameters(ctx, method).items():
        known = getattr(saved.model, name)
        if name == "covariates":  # names of array columns are numbers
            yield spelt, [str(column) for column in known or ()], list(value)
        elif name != "n_jobs":
            yield spelt, known, value
    for name, declared in SETTINGS.items():
        if callable(declared.agrees):
            yield declared.spelt, declared.agrees(options, metadata), options[name]
        elif declared.agrees and is_option_given(ctx, name):
            yield declared.spelt, metadata[declared.key or name], options[name]


def is_option_given(ctx: click.Context, name: str) -> bool:
    """Return whether the user set an option, on the command line or elsewhere."""
    return ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)


def _text(value: Any) -> str:
    """Return a value as on the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def learner_of(ctx: click.Context) -> Any:
    """Create the learner that the options describe.

    Raises
    ------
    click.UsageError
        For a parameter that the method does not have, that is given twice, or that is invalid.
    """
    method = _method(ctx)
    cls = registry.fetch(method)
    rules = rules_of(cls)
    given_values = {name: value for name, (_, value) in explicit_parameters(ctx, method).items()}
    if ctx.params["event"] is not None and "target_type" in rules:
        given_values["target_type"] = "survival"
    if ctx.params["missing"] == "mean" and "missing" in rules:
        # Transforms of new rows impute as the run does.
        given_values.setdefault("missing", "mean")
    bounded = "max_pool_bytes" in rules or given_values.get("max_candidates") is not None
    if given_values.get("exact") and not bounded:
        raise click.UsageError(
            "--exact requires --max-candidates; without it the selection is always exact", ctx
        )
    if _may_reread(ctx) and "max_candidates" in given_values and "exact" in rules:
        given_values.setdefault("exact", True)
    try:
        return cls(**given_values)
    except ValueError as error:
        raise click.UsageError(_with_option_names(str(error), ctx), ctx) from error


def _method(ctx: click.Context) -> str:
    """Return the chosen method; with --no-target and no --method, the first without a target."""
    method: str = ctx.params["method"]
    if is_option_given(ctx, "method") or not ctx.params.get("no_target"):
        return method
    names = registry.names(getattr(ctx.command, "kind", None))
    return next(name for name in names if registry.fetch(name)._takes_no_target)


def _may_reread(ctx: click.Context) -> bool:
    """Return whether a run may read its files again; runs that must be resumable read them once."""
    given = ctx.params
    return (
        "exact" in given
        and given["checkpoint"] is None
        and given["resume"] is None
        and STDIN not in given["files"]
    )


def explicit_parameters(ctx: click.Context, method: str) -> dict[str, tuple[str, Any]]:
    """Return the parameters of a method that the user set: the option used, and the value.

    Raises
    ------
    click.UsageError
        For a parameter that the method does not have, that is given twice, or that is invalid.
    """
    rules = rules_of(registry.fetch(method))
    given_values: dict[str, tuple[str, Any]] = {}
    for name, spelt, value in _given_parameters(ctx):
        if name not in rules:
            raise click.UsageError(_unknown_parameter_text(name, spelt, method, rules), ctx)
        if name in given_values:
            raise click.UsageError(f"{spelt}: {name} is given more than once", ctx)
        given_values[name] = spelt, _read(rules[name], spelt, value, ctx)
    return given_values


def _given_parameters(ctx: click.Context) -> Iterator[tuple[str, str, Any]]:
    """Yield the parameters that were set: name, the option used, and value."""
    spelt = {option.name: option.given_as(ctx) for option in section_options(ctx.command)}
    for option in section_options(ctx.command):
        if option.parameter is not None and is_option_given(ctx, str(option.name)):
            value = ctx.params[str(option.name)]
            several = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
            yield option.parameter, spelt[option.name], several
    for text in ctx.params["set"]:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"{spelt['set']} {text}: expected PARAM=VALUE", ctx)
        yield name.strip(), f"{spelt['set']} {name.strip()}", value.strip()


def _read(rule: Rule, spelt: str, value: Any, ctx: click.Context) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return rule.read(value)
    except ValueError:
        raise click.UsageError(f"{spelt}: expected {rule}. Got: {value!r}.", ctx) from None


def _unknown_parameter_text(name: str, spelt: str, method: str, rules: Mapping[str, Rule]) -> str:
    kind = next(entry.kind for entry in registry.LEARNERS if entry.name == method)
    methods_with: dict[str, list[str]] = {}
    for other in registry.names(kind):
        for parameter in rules_of(registry.fetch(other)):
            methods_with.setdefault(parameter, []).append(other)
    if name in methods_with:
        hint = f"--method {' or '.join(methods_with[name])}"
    elif close := close_spellings(name, rules):
        hint = f"did you mean {' or '.join(close)}? It has {', '.join(rules)}"
    elif close := close_spellings(name, methods_with):
        hint = f"did you mean {close[0]}, with --method {' or '.join(methods_with[close[0]])}?"
    else:
        hint = f"it has {', '.join(rules)}"
    return f"{spelt}: {method} has no such parameter. Hint: {hint}"


def _with_option_names(text: str, ctx: click.Context) -> str:
    """Return a learner's error message with its parameters replaced by options."""
    spelt = {
        o.parameter: o.given_as(ctx)
        for o in section_options(ctx.command)
        if o.parameter is not None
    }
    text = " ".join(text.split())
    text = PARAMETER_OF.sub(
        lambda found: f"{spelt.get(found[1], f'--set {found[1]}')}: expected ", text
    )
    for name, option in spelt.items():
        text = text.replace(f" {name} = ", f" {option} = ")
    return text

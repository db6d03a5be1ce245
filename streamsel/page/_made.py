"""How a model came to be: from what, by which command, with which parameters and versions."""

from __future__ import annotations

import inspect
import platform
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from streamsel import __version__, catalogue
from streamsel.learner.report import Report
from streamsel.page._blocks import Block, Code, Fold, Name, Row, Table, Text
from streamsel.page._blocks import Facts as Pairs
from streamsel.page._cite import bibtex
from streamsel.words import (
    bytes_text,
    count,
    filled_text,
    option_name,
    rows_left_out_text,
    seconds_text,
)

# Parameters with options of their own; the rest is said by --set.
_OPTIONS = {"k": "-k", "n_components": "-q", "target": "--target-kind"}
# Parameters that are said otherwise, or change nothing.
_ELSEWHERE = {"covariates", "n_jobs"}
# What notes say in a word, by the option's name.
_SAID = (
    *("target_file", "id", "weights", "strata", "missing_target"),
    *("orientation", "delimiter", "decimal", "layer", "missing"),
)


def of_kind(notes: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return what notes say under a name; None if of other kinds: they may be anybody's."""
    value = notes.get(name)
    is_number = isinstance(value, bool) and bool not in kinds
    return value if isinstance(value, kinds) and not is_number else None


def files_of(notes: Mapping[str, Any]) -> list[str]:
    """Return the files that a model was learnt from, as far as anybody has noted."""
    files = notes.get("file")
    return [files] if isinstance(files, str) else _texts(notes, "file")


def _texts(notes: Mapping[str, Any], name: str) -> list[str]:
    return [str(one) for one in of_kind(notes, name, list, tuple) or ()]


def made(report: Report, notes: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return what is known of how a model came to be.

    Parameters
    ----------
    report
        What it has found.
    notes
        What was noted beside it.
    """
    blocks: list[Block] = [Pairs(list(_facts(report, notes)))]
    if line := command_of(report, notes):
        blocks += [Text(("To learn it anew:",)), Code(line, "sh")]
    rows = [Row((name, _value(value))) for name, value in report.parameters.items()]
    table = Table("Parameters", ("parameter", "value"), rows, n_open=len(rows))
    blocks.append(Fold(f"Parameters of {report.learner} ({len(rows)})", (table,)))
    if known := of_kind(notes, "fingerprint", dict):
        rows = [Row((str(name), _value(value))) for name, value in known.items()][:20]
        table = Table("Fingerprint of the input", ("what", "value"), rows, n_open=len(rows))
        blocks.append(Fold("Fingerprint of the input", (table,)))
    return tuple(blocks)


def _facts(report: Report, notes: Mapping[str, Any]) -> Any:
    """Yield what is known of the run, in pairs."""
    if files := files_of(notes):
        yield "input", _names(files)
    if target := _texts(notes, "target"):
        yield "target", _names(target)
    if file := of_kind(notes, "target_file", str):
        yield "target file", (Name(file),)
    if report.target is not None:
        yield "target taken as", (Name(report.target),)
    if covariates := report.parameters.get("covariates"):
        yield "given", _names(list(covariates))
    if merged := of_kind(notes, "merged", list):
        yield "merged of", count(len(merged), "model")
    yield "rows", (f"{report.rows:,}", Name(rows_left_out_text(report.rows_left_out)))
    yield "columns", f"{report.columns_seen:,}"
    if n_read := of_kind(notes, "columns_read", int):
        yield "columns read", f"{n_read:,}"
    if filled := filled_text(notes):
        yield "missing", filled
    if n_passes := report.facts.get("n_passes"):
        yield "readings", f"{n_passes:.3g}"
    if seconds := of_kind(notes, "seconds", int, float):
        yield "time", seconds_text(seconds)
    if n_bytes := of_kind(notes, "peak_memory", int):
        yield "memory", bytes_text(n_bytes)
    if saved := of_kind(notes, "saved", str):
        yield "learnt", saved
    learnt_by = of_kind(notes, "version", str)
    yield (
        "streamsel",
        __version__ + (f" (learnt by {learnt_by})" if learnt_by not in (None, __version__) else ""),
    )
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "river"))
    yield "with", f"Python {platform.python_version()}, {others}"


def _names(names: list[Any]) -> tuple[Any, ...]:
    """Write names with commas between; of many the first."""
    parts: list[Any] = []
    for name in names[:10]:
        parts += [*[", "] * bool(parts), Name(name)]
    return (*parts, f" and {len(names) - 10:,} more") if len(names) > 10 else tuple(parts)


def _value(value: Any) -> str:
    return Name("none" if value is None else value).text


def command_of(report: Report, notes: Mapping[str, Any]) -> str | None:
    """Return the command that learns a model anew; None where no one command has learnt it."""
    files, command = files_of(notes), notes.get("command")
    if command not in ("select", "reduce") or not files:
        return None
    lines = [["streamsel", command, *files]]
    for option in ("target", "covariates", "dropped"):
        spelt = {"covariates": "--covariate", "dropped": "--drop"}.get(option, f"--{option}")
        lines += [[spelt, name] for name in _texts(notes, option)]
    if command == "select" and not (_texts(notes, "target") or notes.get("target_file")):
        lines.append(["--no-target"])
    lines += [["--na-values", option_name(cell)] for cell in _texts(notes, "na_values")]
    for option in _SAID:
        if value := of_kind(notes, option, str):
            lines.append([f"--{option.replace('_', '-')}", value])
    if of_kind(notes, "raw", bool):
        lines.append(["--raw"])
    if least := of_kind(notes, "min_count", int):
        lines.append(["--min-count", str(least)])
    lines.append(["--method", report.learner])
    for name, value in _changed(report).items():
        own = _OPTIONS.get(name)
        lines.append([own, str(value)] if own else ["--set", f"{name}={_said(value)}"])
    # The command's own default beside a bounded pool.
    if report.parameters.get("max_candidates") and report.parameters.get("exact") is False:
        lines.append(["--no-exact"])
    return " \\\n  ".join(map(shlex.join, lines))


def _changed(report: Report) -> dict[str, Any]:
    """Return the parameters that are not as the method has them."""
    if report.learner not in catalogue.names():
        return dict(report.parameters)
    usual = inspect.signature(catalogue.fetch(report.learner)).parameters
    return {
        name: value
        for name, value in report.parameters.items()
        if name not in _ELSEWHERE and (name not in usual or usual[name].default != value)
    }


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def cited(report: Report) -> tuple[Block, ...]:
    """Return how to cite the method and streamsel."""
    return (Code(bibtex(report.learner), "bibtex"),)

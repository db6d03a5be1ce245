"""Provenance of a model: its data, command, parameters and versions."""

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

# Parameters with options of their own; the others are set by --set.
_OPTIONS = {"k": "-k", "n_components": "-q", "target": "--target-kind"}
# Parameters that are set by other means, or do not change the result.
_ELSEWHERE = {"covariates", "n_jobs"}
# Metadata with one value, by the name of the option.
_SINGLE_VALUED = (
    *("target_file", "id", "weights", "strata", "missing_target"),
    *("orientation", "delimiter", "decimal", "layer", "missing"),
)


def of_kind(notes: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return the metadata under a name; None if its type is none of these: a file may hold any."""
    value = notes.get(name)
    is_number = isinstance(value, bool) and bool not in kinds
    return value if isinstance(value, kinds) and not is_number else None


def files_of(notes: Mapping[str, Any]) -> list[str]:
    """Return the files that a model was learnt from, as far as they are recorded."""
    files = notes.get("file")
    return [files] if isinstance(files, str) else _texts(notes, "file")


def _texts(notes: Mapping[str, Any], name: str) -> list[str]:
    return [str(one) for one in of_kind(notes, name, list, tuple) or ()]


def made(report: Report, notes: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the provenance of a model.

    Parameters
    ----------
    report
        The results.
    notes
        Metadata of the model file.
    """
    blocks: list[Block] = [Pairs(list(_facts(report, notes)))]
    if line := command_of(report, notes):
        blocks += [Text(("Command that reproduces the model:",)), Code(line, "sh")]
    rows = [Row((name, _value(value))) for name, value in report.parameters.items()]
    table = Table("Parameters", ("parameter", "value"), rows, n_open=len(rows))
    blocks.append(Fold(f"Parameters of {report.learner} ({len(rows)})", (table,)))
    if fingerprint := of_kind(notes, "fingerprint", dict):
        rows = [Row((str(name), _value(value))) for name, value in fingerprint.items()][:20]
        table = Table("Fingerprint of the input", ("property", "value"), rows, n_open=len(rows))
        blocks.append(Fold("Fingerprint of the input", (table,)))
    return tuple(blocks)


def _facts(report: Report, notes: Mapping[str, Any]) -> Any:
    """Yield the recorded facts of the run, in pairs."""
    if files := files_of(notes):
        yield "input", _names(files)
    if target := _texts(notes, "target"):
        yield "target", _names(target)
    if file := of_kind(notes, "target_file", str):
        yield "target file", (Name(file),)
    if report.target is not None:
        yield "target type", (Name(report.target),)
    if covariates := report.parameters.get("covariates"):
        yield "covariates", _names(list(covariates))
    if merged := of_kind(notes, "merged", list):
        yield "merged from", count(len(merged), "model")
    yield "rows", (f"{report.rows:,}", Name(rows_left_out_text(report.rows_left_out)))
    yield "columns", f"{report.columns_seen:,}"
    if n_read := of_kind(notes, "columns_read", int):
        yield "columns read", f"{n_read:,}"
    if filled := filled_text(notes):
        yield "missing values", filled
    if n_passes := report.facts.get("n_passes"):
        yield "passes", f"{n_passes:.3g}"
    if seconds := of_kind(notes, "seconds", int, float):
        yield "time", seconds_text(seconds)
    if n_bytes := of_kind(notes, "peak_memory", int):
        yield "peak memory", bytes_text(n_bytes)
    if saved := of_kind(notes, "saved", str):
        yield "learnt", saved
    learnt_by = of_kind(notes, "version", str)
    yield (
        "streamsel",
        __version__ + (f" (learnt by {learnt_by})" if learnt_by not in (None, __version__) else ""),
    )
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "river"))
    yield "versions", f"Python {platform.python_version()}, {others}"


def _names(names: list[Any]) -> tuple[Any, ...]:
    """Return names separated by commas; only the first of many."""
    parts: list[Any] = []
    for name in names[:10]:
        parts += [*[", "] * bool(parts), Name(name)]
    return (*parts, f" and {len(names) - 10:,} more") if len(names) > 10 else tuple(parts)


def _value(value: Any) -> str:
    return Name("none" if value is None else value).text


def command_of(report: Report, notes: Mapping[str, Any]) -> str | None:
    """Return the command that reproduces a model; None if no single command does."""
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
    for option in _SINGLE_VALUED:
        if value := of_kind(notes, option, str):
            lines.append([f"--{option.replace('_', '-')}", value])
    if of_kind(notes, "raw", bool):
        lines.append(["--raw"])
    if least := of_kind(notes, "min_count", int):
        lines.append(["--min-count", str(least)])
    lines.append(["--method", report.learner])
    for name, value in _changed(report).items():
        own = _OPTIONS.get(name)
        lines.append([own, str(value)] if own else ["--set", f"{name}={_option_value(value)}"])
    # The command's default for a bounded pool is exact.
    if report.parameters.get("max_candidates") and report.parameters.get("exact") is False:
        lines.append(["--no-exact"])
    return " \\\n  ".join(map(shlex.join, lines))


def _changed(report: Report) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    if report.learner not in catalogue.names():
        return dict(report.parameters)
    defaults = inspect.signature(catalogue.fetch(report.learner)).parameters
    return {
        name: value
        for name, value in report.parameters.items()
        if name not in _ELSEWHERE and (name not in defaults or defaults[name].default != value)
    }


def _option_value(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def cited(report: Report) -> tuple[Block, ...]:
    """Return the citations of the method and of streamsel."""
    return (Code(bibtex(report.learner), "bibtex"),)

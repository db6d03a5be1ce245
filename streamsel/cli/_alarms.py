"""What looks like a mistake, though it can be computed: a sentence for each, and no more."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsel.stream._numerals import why_not_numbers
from streamsel.words import count, option_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamsel.learner.report import Report

# Of the columns read so many may be left out before somebody ought to know.
MAX_SKIPPED = 0.1
# What is left out on demand, or could tell nothing, is no loss.
_NO_LOSS = frozenset({"constant", "rare"})
# Fewer rows than this are too few to tell an identifier from anything else.
_FEW = 8
_SAME = 0.99
_HIGH = 0.9
_ALIKE = 0.8
_EXAMPLES = 3
# Commands that can name what they leave out.
_LISTING = frozenset({"select", "reduce"})
_LIST = "--list-skipped names them"


class Alarm(NamedTuple):
    """What looks like a mistake: a code for programs, and a sentence."""

    code: str
    text: str


def of_target(columns: Mapping[str, Any], kind: str) -> list[Alarm]:
    """Return what looks wrong about a target, column by column.

    Parameters
    ----------
    columns
        Its columns by name.
    kind
        "auto", "class", "numeric" or "survival".
    """
    looks = (classes, numbering, cells)
    found = [each(name, y, kind) for name, y in columns.items() for each in looks]
    return [alarm for alarm in found if alarm is not None]


def columns_of(y: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a target by name; one without a name is called nothing.

    Parameters
    ----------
    y
        An array, a table with names, or None.
    names
        Of its columns, where they are known.
    """
    if y is None:
        return {}
    if hasattr(y, "column_names"):
        return {str(name): y[name].to_numpy() for name in y.column_names}
    columns = [y] if y.ndim == 1 else list(y.T)
    if len(names) != len(columns):
        names = [""] if len(columns) == 1 else [str(j) for j in range(len(columns))]
    return dict(zip(names, columns, strict=True))


def classes(name: str, y: Any, kind: str) -> Alarm | None:
    """Look for a target with as many classes as rows, or nearly."""
    y = np.asarray(y)
    if len(y) < _FEW or not (kind == "class" or y.dtype.kind in "OUS"):
        return None
    n_classes, n = len({str(value) for value in y.tolist()}), len(y)
    if n_classes <= n / 2:
        return None
    what = "every row is a class of its own" if n_classes == n else f"{n_classes:,} classes"
    return Alarm(
        "classes",
        f"{_called(name)} has {n:,} rows, and {what}: an identifier, or quantities read as text?",
    )


def numbering(name: str, y: Any, kind: str) -> Alarm | None:
    """Look for a target that numbers the rows."""
    y = np.asarray(y)
    if kind in ("class", "survival") or y.ndim != 1 or y.dtype.kind not in "iuf" or len(y) < _FEW:
        return None
    first = y.min()
    if not np.array_equal(np.sort(y), np.arange(len(y)) + first):
        return None
    return Alarm(
        "numbering",
        f"{_called(name)} numbers the rows from {first:g} to {y.max():g}: an identifier, or ranks?",
    )


def cells(name: str, y: Any, kind: str) -> Alarm | None:
    """Look for a target of numbers with some cells that are none: it is taken as classes."""
    y = np.asarray(y)
    if kind == "class" or y.dtype != object:
        return None
    why = why_not_numbers(y)
    if why.reason != "mixed":
        return None
    cell = str(y[why.place])
    return Alarm(
        "cells",
        f"{_called(name)} is taken as classes for {cell!r} in row {why.place}, {why.detail}. Hint: "
        f"--na-values {_as_option(cell)} takes such cells as missing, --target-kind class says "
        "that they are classes",
    )


def _called(name: str) -> str:
    return f"the target {name}" if name else "the target"


def left_out(notes: Mapping[str, Any]) -> Alarm | None:
    """Look for many columns that were left out of a run, given its notes."""
    can_list = notes["command"] in _LISTING
    return skipped(notes["columns_read"], notes["skipped"], notes["max_skipped"], listed=can_list)


def skipped(
    n_read: int, reasons: Mapping[str, int], limit: float | None = None, *, listed: bool = True
) -> Alarm | None:
    """Look for many columns that were left out.

    Parameters
    ----------
    n_read
        Columns read.
    reasons
        How many were left out, by reason.
    limit
        What share of them may be; None for what is usual.
    listed
        Whether the command has --list-skipped.
    """
    lost = {reason: n for reason, n in reasons.items() if n and reason not in _NO_LOSS}
    n_lost = sum(lost.values())
    # One is a column of labels among a few others.
    may_be = max(1, MAX_SKIPPED * n_read) if limit is None else limit * n_read
    if n_lost <= may_be:
        return None
    most = max(lost, key=lambda reason: lost[reason])
    hints = {
        "missing": "--missing mean fills the gaps",
        "text": "decimal commas are read by --decimal ,",
        "mixed": "--na-values names cells that stand for missing values",
        "ambiguous": "--decimal says what a comma is",
    }
    hint = [*([hints[most]] if most in hints else ()), *([_LIST] if listed else ())]
    why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(lost.items()))
    return Alarm(
        "skipped",
        f"{n_lost:,} of {n_read:,} columns ({n_lost / n_read:.0%}) were left out ({why}), and "
        "what they say is not in the result" + (f". Hint: {'; '.join(hint)}" if hint else ""),
    )


def unread(notes: Mapping[str, Any]) -> list[Alarm]:
    """Look for columns of numbers that were left out for some cells, given the notes of a run."""
    found = []
    for reason, why in (
        ("mixed", "for cells that are no numbers"),
        ("ambiguous", "as their numbers can be read in two ways"),
    ):
        if n := notes["skipped"].get(reason, 0):
            name, detail, cell = notes["examples"].get(reason, ("", "", ""))
            example = f", such as {name}: {detail.rstrip('.')}" if detail else ""
            hint = "write them as numbers"
            if notes["orientation"]:  # of text
                option = f"--na-values {_as_option(cell)} takes such cells as missing"
                hint = option if reason == "mixed" else "--decimal . or --decimal , decides"
                hint = hint if detail else "--list-skipped names them, without --workers"
            text = f"{count(n, 'column')} of numbers {'was' if n == 1 else 'were'} left out {why}"
            found.append(Alarm("cells", f"{text}{example}. Hint: {hint}"))
    return found


def _as_option(name: str) -> str:
    """Write a name as an option takes it in a shell."""
    return shlex.quote(option_name(name))


def outcome(found: Sequence[Mapping[str, Any]], targets: Sequence[str]) -> Alarm | None:
    """Look for another outcome among the variables that were selected.

    Parameters
    ----------
    found
        What is known of each, as a report has it.
    targets
        Names of the target's columns.
    """
    for why, alike in (
        ("says the same as the target", _says_the_same),
        ("is called like the target", lambda rows: _called_alike(rows, targets)),
        ("tells far more than all others", _stands_out),
    ):
        names = alike(found)
        if names:
            listed = ", ".join(map(str, names[:_EXAMPLES]))
            more = ", ..." if len(names) > _EXAMPLES else ""
            return Alarm(
                "outcome",
                f"{listed}{more} {why}: another outcome, or made of it? Hint: --drop leaves it out",
            )
    return None


def _says_the_same(found: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [row["name"] for row in found if _relevance(row) > _SAME and row["above_noise"]]


def _called_alike(found: Sequence[Mapping[str, Any]], targets: Sequence[str]) -> list[Any]:
    names = [
        row["name"]
        for row in found
        if any(_alike(str(row["name"]), target) for target in targets if target)
    ]
    # Where most are called so, it is how all columns are called.
    return names if len(names) <= len(found) / 2 else []


def _alike(name: str, target: str) -> bool:
    """Tell whether one name is the other with something behind it: y_2, survival.months."""
    short, long = sorted((name.lower(), target.lower()), key=len)
    digits = "" if short[-1:].isdigit() else r"|\d+"
    return re.fullmatch(rf"{re.escape(short)}(?:[_.: -].*{digits})", long) is not None


def _stands_out(found: Sequence[Mapping[str, Any]]) -> list[Any]:
    ordered = sorted(found, key=_relevance, reverse=True)
    if len(ordered) < 2 or not ordered[0]["above_noise"]:
        return []
    first, second = map(_relevance, ordered[:2])
    return [ordered[0]["name"]] if first > _HIGH and second < first / 2 else []


def _relevance(row: Mapping[str, Any]) -> float:
    return float(row["relevance"] or 0)


def is_ranking(report: Report, rank: int | None) -> bool:
    """Whether a selection is a ranking by correlation: there is one dimension to explain."""
    return report.learner == "ProjSe" and rank == 1 and len(report.found) > 1


def ranking(n_found: int, n_alike: int | None) -> Alarm | None:
    """Return what is to be said of a ranking.

    Parameters
    ----------
    n_found
        Variables in it.
    n_alike
        Those that repeat one before them; None if nobody has looked.
    """
    if n_alike == 0:
        return None
    seen = "variables that say the same are selected together"
    if n_alike is not None:
        seen = f"{n_alike:,} of {n_found:,} say nearly what one before them says"
    return Alarm(
        "ranking",
        "this is a ranking: where the target has one dimension ProjSe has nothing left to explain "
        f"after each pick; {seen}. Hint: --method ForwardSelection, or MRMR, looks at that",
    )


def count_alike(columns: Sequence[Any]) -> int:
    """Count the columns that correlate highly with one before them."""
    values = np.array(columns, dtype=np.float64)
    values -= values.mean(axis=1, keepdims=True)
    norms = np.sqrt((values**2).sum(axis=1, keepdims=True))
    values /= np.where(norms > 0, norms, 1)
    return int((np.abs(np.tril(values @ values.T, -1)).max(axis=1) >= _ALIKE).sum())


def of_result(report: Report, notes: Mapping[str, Any], targets: Sequence[str]) -> list[Alarm]:
    """Return what looks wrong about what a run has found.

    Parameters
    ----------
    report
        What was found.
    notes
        Of the run.
    targets
        Names of the target's columns.
    """
    found = [
        left_out(notes),
        *unread(notes),
        outcome(report.found, targets) if report.kind == "selected" else None,
    ]
    return [alarm for alarm in found if alarm is not None]

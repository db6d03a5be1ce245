"""Warn of target leakage: selected variables that look like copies of the target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamsel.base.report import Report, ResultWarning

_NEAR_PERFECT = 0.99
_HIGH_RELEVANCE = 0.9
_MAX_EXAMPLES = 3


def warnings_of(report: Report, targets: Sequence[str]) -> list[ResultWarning]:
    """Return the warnings of a report, with that of variables named like one of the targets."""
    outcome = outcome_warning(report.results, targets) if report.kind == "selected" else None
    others = [warning for warning in report.warnings if warning.code != "outcome"]
    return others if outcome is None else [outcome, *others]


def outcome_warning(
    found: Sequence[Mapping[str, Any]], targets: Sequence[str] = ()
) -> ResultWarning | None:
    """Return a warning if a selected variable looks like another outcome (target leakage).

    Parameters
    ----------
    found
        Rows of the report, one per selected variable.
    targets
        Names of the target columns, if known.
    """
    for what, find_suspects in (
        ("a relevance near 1", _near_perfect),
        ("a name like the target's", lambda rows: _named_like_target(rows, targets)),
        ("a relevance far above all others", _dominant),
    ):
        names = find_suspects(found)
        if names:
            listed = ", ".join(map(str, names[:_MAX_EXAMPLES]))
            more = ", ..." if len(names) > _MAX_EXAMPLES else ""
            # A text that began with a name would change its case at the start of a sentence.
            of = "the variables" if len(names) > 1 else "the variable"
            have = "have" if len(names) > 1 else "has"
            return ResultWarning(
                "outcome",
                f"{of} {listed}{more} {have} {what}. Is it another outcome, or derived from the "
                "target? Hint: --drop excludes it, in Python drop=[...] or X without it",
            )
    return None


def _near_perfect(found: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [row["name"] for row in found if _relevance(row) > _NEAR_PERFECT and row["above_noise"]]


def _named_like_target(found: Sequence[Mapping[str, Any]], targets: Sequence[str]) -> list[Any]:
    names = [
        row["name"]
        for row in found
        if any(_names_match(str(row["name"]), target) for target in targets if target)
    ]
    # If most names match, the pattern is how all columns are named.
    return names if len(names) <= len(found) / 2 else []


def _names_match(name: str, target: str) -> bool:
    """Return whether one name is the other with a suffix: y_2, survival.months."""
    short, long = sorted((name.lower(), target.lower()), key=len)
    digits = "" if short[-1:].isdigit() else r"|\d+"
    return re.fullmatch(rf"{re.escape(short)}(?:[_.: -].*{digits})", long) is not None


def _dominant(found: Sequence[Mapping[str, Any]]) -> list[Any]:
    ordered = sorted(found, key=_relevance, reverse=True)
    if len(ordered) < 2 or not ordered[0]["above_noise"]:
        return []
    first, second = map(_relevance, ordered[:2])
    return [ordered[0]["name"]] if first > _HIGH_RELEVANCE and second < first / 2 else []


def _relevance(row: Mapping[str, Any]) -> float:
    return float(row["relevance"] or 0)

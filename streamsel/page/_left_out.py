"""The table of excluded columns, by reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsel.learner.report import Report
from streamsel.page._blocks import Block, Row, Table, Text
from streamsel.page._made import of_kind
from streamsel.page._verdict import share

CONSTANT = "do not vary"


def left_out(report: Report, notes: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return a table of all columns by outcome; nothing if it is unknown.

    Parameters
    ----------
    report
        The results.
    notes
        Metadata of the run: the skipped columns.
    """
    counted = [(f"skipped: {reason}", n) for reason, n in sorted(skipped(notes).items()) if n]
    why = dict(report.left_out)
    if report.columns_constant and CONSTANT not in why:
        why = {CONSTANT: report.columns_constant} | why
    counted += [(reason, n) for reason, n in why.items() if n]
    if report.kind == "selected":
        n_rest = report.columns_seen - len(report.found) - sum(why.values())
        counted += [("not selected", n_rest)] if n_rest > 0 else []
        counted.append(("selected", len(report.found)))
    if not counted or not report.columns_seen:
        return ()
    # Skipped columns are not among those that the learner has seen.
    n_all = report.columns_seen + sum(skipped(notes).values())
    rows = [Row((reason, f"{n:,}", share(n / n_all))) for reason, n in counted]
    head = ("outcome", "columns", "share")
    table = Table("Columns by outcome", head, rows, frozenset({1, 2}), n_open=30)
    if not skipped(notes):
        return (table,)
    hint = "Skipped columns were not learnt; --list-skipped FILE lists each with its reason."
    return table, Text((hint,))


def skipped(notes: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of columns that a run skipped, by reason."""
    counts = of_kind(notes, "skipped", dict) or {}
    return {str(reason): n for reason, n in counts.items() if type(n) is int and n > 0}

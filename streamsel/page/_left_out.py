"""Why columns are not among those chosen, and how many for each reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsel.learner.report import Report
from streamsel.page._blocks import Block, Row, Table, Text
from streamsel.page._made import of_kind
from streamsel.page._verdict import share

STILL = "do not vary"


def left_out(report: Report, notes: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the table of what became of all columns; nothing where nobody knows.

    Parameters
    ----------
    report
        What was found.
    notes
        What was noted of the run: the columns that it did not learn.
    """
    counted = [(f"skipped: {reason}", n) for reason, n in sorted(skipped(notes).items()) if n]
    why = dict(report.left_out)
    if report.columns_constant and STILL not in why:
        why = {STILL: report.columns_constant} | why
    counted += [(reason, n) for reason, n in why.items() if n]
    if report.kind == "selected":
        n_rest = report.columns_seen - len(report.found) - sum(why.values())
        counted += [("not chosen", n_rest)] if n_rest > 0 else []
        counted.append(("chosen", len(report.found)))
    if not counted or not report.columns_seen:
        return ()
    # What was skipped was not seen by the learner, and is none of its columns.
    n_all = report.columns_seen + sum(skipped(notes).values())
    rows = [Row((reason, f"{n:,}", share(n / n_all))) for reason, n in counted]
    head = ("what became of them", "columns", "of all")
    table = Table("What became of the columns", head, rows, frozenset({1, 2}), n_open=30)
    if not skipped(notes):
        return (table,)
    told = "Skipped columns were never learnt; --list-skipped FILE lists each with its reason."
    return table, Text((told,))


def skipped(notes: Mapping[str, Any]) -> dict[str, int]:
    """Return how many columns a run has skipped, by reason."""
    known = of_kind(notes, "skipped", dict) or {}
    return {str(reason): n for reason, n in known.items() if type(n) is int and n > 0}

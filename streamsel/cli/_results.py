"""Outputs of a run: write columns, print results, and explain fewer results than requested."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.cli._alarms import left_out
from streamsel.cli._carried import beside
from streamsel.cli._errors import EXPECTED, CommandError, note, reason_of
from streamsel.cli._outputs import write_table
from streamsel.cli._report import n_found
from streamsel.cli._report import show as show_report
from streamsel.stream._base import ColumnStream
from streamsel.words import count, filled_text, skipped_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.cli._job import Job
    from streamsel.learner.report import Report


def finish(job: Job, unwritten: dict[str, str]) -> None:
    """Write and print the results of a run.

    Parameters
    ----------
    job
        The run.
    unwritten
        Outputs that could not be written, by option, with the reason.

    Raises
    ------
    CommandError
        If there are no results, or a file could not be written; the results are printed first.
    """
    check_skipped(job)
    out, report = job.request.out, job.report()
    n, asked = n_found(report), report.asked
    if out is not None and n:
        try:
            _write(job, out, report)
        except EXPECTED as error:
            unwritten = {**unwritten, "--out": f"--out {out}: not written ({reason_of(error)})"}
    show(report, job.notes, as_json=job.request.as_json)
    if not n:
        done = {"select": "selected", "reduce": "learnt"}[job.request.command]
        raise CommandError(f"nothing was {done}: {_why_no_more(job, report)}")
    if asked is not None and n < asked:
        done = {"select": "selected", "reduce": "built"}[job.request.command]
        note(f"{done} {n} of {asked} requested: {_why_no_more(job, report)}")
    if unwritten:
        raise CommandError("; ".join(unwritten.values()))


def check_skipped(job: Job) -> None:
    """Raise if more columns were skipped than --max-skipped allows."""
    notes, path = job.notes, job.request.model
    if notes["max_skipped"] is None:
        return
    found = left_out(notes)
    if found is not None:
        kept = "" if path is None else f"; the model was saved to {path}"
        raise CommandError(
            f"--max-skipped {notes['max_skipped']:g}: {found.text} (results not written{kept})"
        )


def show(report: Report, notes: Any, *, as_json: bool) -> None:
    """Print the results, and how many columns were skipped."""
    show_report(report, notes, as_json=as_json)
    if "caution" in report.facts and not sys.stdout.isatty():
        note(f"caution: {report.facts['caution']}")
    skipped = skipped_text(notes["skipped"])
    if skipped and not sys.stdout.isatty():
        n_skipped = sum(notes["skipped"].values())
        note(f"skipped {count(n_skipped, 'column')}: {skipped}")
    filled = filled_text(notes)
    if filled and not sys.stdout.isatty():
        note(filled)


def _why_no_more(job: Job, report: Report) -> str:
    n_usable = report.columns_seen - report.columns_constant
    if not n_usable:
        n_read = job.notes["columns_read"]
        return f"none of {count(n_read, 'column')} read could be used"
    if report.asked is None and report.kind == "selected":
        return f"none of {count(n_usable, 'column')} passes the selection criterion"
    n = n_found(report)
    if n == n_usable:
        return f"only {count(n_usable, 'column')} could be used"
    if report.parameters.get("after_rank") == "stop":
        return "the target is explained in full (--after-rank stop)"
    # Degrees of freedom after the mean and the covariates.
    max_components = report.rows - 1 - len(job.model.covariates or ())
    if report.kind == "components" and n >= max_components:
        return f"{count(report.rows, 'row')} allow no more components"
    why: str = job.model._why_no_more
    return why


def _write(job: Job, out: str, report: Report) -> None:
    if report.kind == "selected":
        names = [row["name"] for row in report.found]
        found = in_all_rows(job, names)
        columns = [found[name] for name in names]
    else:
        matrix = _components(job)
        names, columns = job.model.components[: matrix.shape[1]], list(matrix.T)
    write_table(out, *beside(job.carried, names, columns))


def _components(job: Job) -> Any:
    """Return the components of the training rows."""
    if hasattr(job.model, "landmarks") or job.model.takes_missing:
        # transform_many approximates: by landmarks, or with means for missing values. The
        # embedding of the training rows is more accurate.
        return job.model.embedding
    # Only the columns that the components use are read again.
    if job.given.counted.kept is None:
        return job.model.transform_many(job.whole())
    return job.model.transform_many(
        ColumnStream(tuple, n_rows=job.given.counted.kept.n, take=partial(in_all_rows, job))
    )


def in_all_rows(job: Job, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return columns with a value in every row of FILE, including rows that are not used.

    In the latter a missing or infinite value is the mean of the used rows with `--missing mean`,
    and NaN otherwise.
    """
    found, kept = job.screen.take(names), job.given.counted.kept
    if kept is None:
        return found
    others = np.ones(kept.n, dtype=np.bool_)
    others[kept.index] = False
    whole = job.source.stream.take(names)
    for name in names:
        values, used = (_dense(columns[name]) for columns in (whole, found))
        if values.dtype.kind not in "biu":
            values = np.array(values, dtype=used.dtype)
            fill = used.mean() if job.notes["missing"] == "mean" else np.nan
            values[others & ~np.isfinite(values)] = fill
            values[kept.index] = used
        whole[name] = values
    return whole


def _dense(values: Any) -> Any:
    return values.toarray()[:, 0] if hasattr(values, "toarray") else np.asarray(values)

"""Outputs of a run: write columns, print results, and explain fewer results than requested."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import count_text, filled_text, skipped_text
from streamsel.cli.diagnostics import exclusion_warning
from streamsel.cli.display import n_results, show_report
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, note, reason_of
from streamsel.cli.output import write_table
from streamsel.cli.passthrough import prepend_columns
from streamsel.stream import ColumnStream

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamsel.base.report import Report
    from streamsel.cli.run import Run


def write_results(job: Run, unwritten: dict[str, str]) -> None:
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
    n, asked = n_results(report), report.n_requested
    if out is not None and n:
        try:
            _write(job, out, report)
        except EXPECTED_ERRORS as error:
            unwritten = {**unwritten, "--out": f"--out {out}: not written ({reason_of(error)})"}
    show_results(report, job.metadata, as_json=job.request.as_json)
    if not n:
        done = {"select": "selected", "reduce": "learnt"}[job.request.command]
        raise CommandError(f"nothing was {done}: {_why_no_more(job, report)}")
    if asked is not None and n < asked:
        done = {"select": "selected", "reduce": "built"}[job.request.command]
        note(f"{done} {n} of {asked} requested: {_why_no_more(job, report)}")
    if unwritten:
        raise CommandError("; ".join(unwritten.values()))


def check_skipped(job: Run) -> None:
    """Raise if more columns were skipped than --max-skipped allows."""
    metadata, path = job.metadata, job.request.model
    if metadata["max_skipped"] is None:
        return
    found = exclusion_warning(metadata)
    if found is not None:
        kept = "" if path is None else f"; the model was saved to {path}"
        raise CommandError(
            f"--max-skipped {metadata['max_skipped']:g}: {found.text} (results not written{kept})"
        )


def show_results(report: Report, metadata: Any, *, as_json: bool) -> None:
    """Print the results, and how many columns were skipped."""
    show_report(report, metadata, as_json=as_json)
    if "caution" in report.details and not sys.stdout.isatty():
        note(f"caution: {report.details['caution']}")
    skipped = skipped_text(metadata["skipped"])
    if skipped and not sys.stdout.isatty():
        n_skipped = sum(metadata["skipped"].values())
        note(f"skipped {count_text(n_skipped, 'column')}: {skipped}")
    filled = filled_text(metadata)
    if filled and not sys.stdout.isatty():
        note(filled)


def _why_no_more(job: Run, report: Report) -> str:
    n_usable = report.columns_seen - report.columns_constant
    if not n_usable:
        n_read = job.metadata["columns_read"]
        return f"none of {count_text(n_read, 'column')} read could be used"
    if report.n_requested is None and report.kind == "selected":
        return f"none of {count_text(n_usable, 'column')} passes the selection criterion"
    n = n_results(report)
    if n == n_usable:
        return f"only {count_text(n_usable, 'column')} could be used"
    if report.parameters.get("on_rank_exhausted") == "stop":
        return "the target is explained in full (--on-rank-exhausted stop)"
    # Degrees of freedom after the mean and the covariates.
    max_components = report.rows - 1 - len(job.model.covariates or ())
    if report.kind == "components" and n >= max_components:
        return f"{count_text(report.rows, 'row')} allow no more components"
    why: str = job.model._stop_reason
    return why


def _write(job: Run, out: str, report: Report) -> None:
    if report.kind == "selected":
        names = [row["name"] for row in report.results]
        found = in_all_rows(job, names)
        columns = [found[name] for name in names]
    else:
        matrix = _components(job)
        names, columns = job.model.components[: matrix.shape[1]], list(matrix.T)
    write_table(out, *prepend_columns(job.passthrough, names, columns))


def _components(job: Run) -> Any:
    """Return the components of the training rows."""
    if hasattr(job.model, "landmarks") or job.model._takes_missing:
        # transform_many approximates: by landmarks, or with means for missing values. The
        # embedding of the training rows is more accurate.
        return job.model.embedding
    # The second pass reads only the columns that the components use.
    if job.given.used_rows.kept is None:
        return job.model.transform_many(job.all_columns())
    return job.model.transform_many(
        ColumnStream(tuple, n_rows=job.given.used_rows.kept.n, take=partial(in_all_rows, job))
    )


def in_all_rows(job: Run, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return columns with a value in every row of FILE, including rows that are not used.

    In the latter a missing or infinite value is the mean of the used rows with `--missing mean`,
    and NaN otherwise.
    """
    found, kept = job.screen.take(names), job.given.used_rows.kept
    if kept is None:
        return found
    others = np.ones(kept.n, dtype=np.bool_)
    others[kept.index] = False
    whole = job.source.stream.take(names)
    for name in names:
        values, used = (_dense(columns[name]) for columns in (whole, found))
        if values.dtype.kind not in "biu":
            values = np.array(values, dtype=used.dtype)
            fill = used.mean() if job.metadata["missing"] == "mean" else np.nan
            values[others & ~np.isfinite(values)] = fill
            values[kept.index] = used
        whole[name] = values
    return whole


def _dense(values: Any) -> Any:
    return values.toarray()[:, 0] if hasattr(values, "toarray") else np.asarray(values)

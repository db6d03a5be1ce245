"""Warnings about input or results that look like mistakes, one sentence each."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.text import count_text, option_name
from streamsel.base.leakage import warnings_of
from streamsel.base.report import ResultWarning
from streamsel.stream.files import diagnose_non_numeric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamsel.base.report import Report
    from streamsel.cli.log import Log

# Share of skipped columns above which the user is warned.
MAX_SKIPPED = 0.1
# Skipping these loses no information: requested by the user, or constant.
_HARMLESS_REASONS = frozenset({"constant", "rare"})
# With fewer rows an identifier cannot be recognised.
_MIN_ROWS = 8
_HIGH_CORRELATION = 0.8
MAX_EXAMPLES = 3
# Commands with --list-skipped.
_COMMANDS_WITH_LIST = frozenset({"select", "reduce"})
_LIST_HINT = "--list-skipped lists them"


class WarningList:
    """The warnings of a run.

    Parameters
    ----------
    log
        The log.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._found: list[ResultWarning] = []

    def add(self, found: Iterable[ResultWarning]) -> list[dict[str, str]]:
        """Log warnings; return all of the run, as its metadata."""
        for warning in found:
            self._log.show_warning(warning.text, code=warning.code)
            self._found.append(warning)
        return [warning._asdict() for warning in self._found]


def target_warnings(columns: Mapping[str, Any], kind: str) -> list[ResultWarning]:
    """Return warnings about a target, column by column.

    Parameters
    ----------
    columns
        Target columns by name.
    kind
        "auto", "class", "numeric" or "survival".
    """
    looks = (too_many_classes_warning, row_number_warning, mixed_cells_warning)
    found = [each(name, y, kind) for name, y in columns.items() for each in looks]
    return [warning for warning in found if warning is not None]


def target_columns(y: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a target by name; a single column without a name has the name "".

    Parameters
    ----------
    y
        An array, a table with column names, or None.
    names
        Names of its columns, where they are known.
    """
    if y is None:
        return {}
    if hasattr(y, "column_names"):
        return {str(name): y[name].to_numpy() for name in y.column_names}
    columns = [y] if y.ndim == 1 else list(y.T)
    if len(names) != len(columns):
        names = [""] if len(columns) == 1 else [str(j) for j in range(len(columns))]
    return dict(zip(names, columns, strict=True))


def too_many_classes_warning(name: str, y: Any, kind: str) -> ResultWarning | None:
    """Return a warning if a target has nearly as many classes as rows."""
    y = np.asarray(y)
    is_label = kind == "class" or (kind == "auto" and y.dtype.kind in "OUS")
    if len(y) < _MIN_ROWS or not is_label:
        return None
    n_classes, n = len({str(value) for value in y.tolist()}), len(y)
    if n_classes <= n / 2:
        return None
    what = "every row is its own class" if n_classes == n else f"{n_classes:,} classes"
    return ResultWarning(
        "classes",
        f"{_target_name(name)}: {what} ({n:,} rows). Is it an identifier, or are quantities read "
        "as text?",
    )


def row_number_warning(name: str, y: Any, kind: str) -> ResultWarning | None:
    """Return a warning if a target only numbers the rows."""
    y = np.asarray(y)
    if (
        kind in ("class", "survival")
        or y.ndim != 1
        or y.dtype.kind not in "iuf"
        or len(y) < _MIN_ROWS
    ):
        return None
    first = y.min()
    if not np.array_equal(np.sort(y), np.arange(len(y)) + first):
        return None
    return ResultWarning(
        "numbering",
        f"{_target_name(name)} numbers the rows from {first:g} to {y.max():g}. Is it an "
        "identifier, or are these ranks?",
    )


def mixed_cells_warning(name: str, y: Any, kind: str) -> ResultWarning | None:
    """Return a warning if a numeric target is taken as classes because of non-numeric cells."""
    y = np.asarray(y)
    if kind != "auto" or y.dtype != object:
        return None
    why = diagnose_non_numeric(y)
    if why.reason != "mixed":
        return None
    cell = str(y[why.position])
    return ResultWarning(
        "cells",
        f"{_target_name(name)} is taken as classes because of {cell!r} in row {why.position}: "
        f"{why.detail}. Hint: --na-values {_as_option(cell)} reads such cells as missing; "
        "--target-type class confirms that they are classes",
    )


def _target_name(name: str) -> str:
    return f"the target {name}" if name else "the target"


def row_number_exclusion_warning(path: str, names: Sequence[str]) -> list[ResultWarning]:
    """Return the warning for columns that are excluded because they number the rows."""
    if not names:
        return []
    listed = ", ".join(map(repr, names))
    text = (
        f"the column {listed} of {path} numbers the rows and is"
        if len(names) == 1
        else f"the columns {listed} of {path} number the rows and are"
    )
    return [ResultWarning("index", f"{text} excluded. Hint: --keep-index keeps it as a candidate")]


def exclusion_warning(metadata: Mapping[str, Any]) -> ResultWarning | None:
    """Return a warning if a run skipped many columns, given the metadata of the run."""
    can_list = metadata["command"] in _COMMANDS_WITH_LIST
    # Columns of numbers that encoded columns became may be skipped one by one.
    n_encoded = sum(metadata.get("encoded", {}).values())
    n_made = metadata.get("columns_made", 0)
    n_candidates = metadata["columns_read"] - n_encoded + n_made
    return skipped_warning(
        n_candidates,
        metadata["skipped"],
        metadata["max_skipped"],
        listed=can_list,
        encoded=(n_encoded, n_made),
    )


def skipped_warning(
    n_read: int,
    reasons: Mapping[str, int],
    limit: float | None = None,
    *,
    listed: bool = True,
    encoded: tuple[int, int] = (0, 0),
) -> ResultWarning | None:
    """Return a warning if many columns were skipped.

    Parameters
    ----------
    n_read
        Number of columns read.
    reasons
        Number of columns skipped, by reason.
    limit
        Share of columns that may be skipped; None for `MAX_SKIPPED`.
    listed
        Whether the command has --list-skipped.
    encoded
        Number of encoded columns, and of the columns of numbers that are counted instead.
    """
    harmful = {reason: n for reason, n in reasons.items() if n and reason not in _HARMLESS_REASONS}
    n_harmful = sum(harmful.values())
    # One skipped column is usual: labels in a table with few columns.
    n_allowed = max(1, MAX_SKIPPED * n_read) if limit is None else limit * n_read
    if n_harmful <= n_allowed:
        return None
    most_frequent = max(harmful, key=lambda reason: harmful[reason])
    hints = {
        "missing": "--missing mean imputes missing values",
        "mixed": "--na-values lists cells that mean a missing value",
        "ambiguous": "--decimal sets the meaning of commas",
    }
    hint = [
        *([hints[most_frequent]] if most_frequent in hints else ()),
        *([_LIST_HINT] if listed else ()),
    ]
    why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(harmful.items()))
    n_encoded, n_made = encoded
    share = f"{n_harmful / n_read:.0%}"
    if n_encoded:
        counts = "counts" if n_encoded == 1 else "count"
        share += f"; {count_text(n_encoded, 'encoded column')} {counts} as {n_made:,}"
    of = f"{n_read:,} columns ({share})"
    return ResultWarning(
        "skipped",
        f"{n_harmful:,} of {of} were skipped ({why}) and could not be selected or used"
        + (f". Hint: {'; '.join(hint)}" if hint else ""),
    )


def unreadable_warning(metadata: Mapping[str, Any]) -> list[ResultWarning]:
    """Return warnings about numeric columns skipped because of some cells."""
    found = []
    for reason, why in (
        ("mixed", "because of non-numeric cells"),
        ("ambiguous", "because {} numbers are ambiguous"),
    ):
        if n := metadata["skipped"].get(reason, 0):
            name, detail, cell = metadata["examples"].get(reason, ("", "", ""))
            example = f", for example {name}: {detail.rstrip('.')}" if detail else ""
            hint = "write them as numbers"
            if metadata["orientation"]:  # of text
                option = f"--na-values {_as_option(cell)} reads such cells as missing"
                hint = option if reason == "mixed" else "set --decimal . or --decimal ,"
                hint = hint if detail else "--list-skipped lists them (without --workers)"
            were, their = ("was", "its") if n == 1 else ("were", "their")
            text = f"{count_text(n, 'numeric column')} {were} skipped {why.format(their)}"
            found.append(ResultWarning("cells", f"{text}{example}. Hint: {hint}"))
    return found


def _as_option(name: str) -> str:
    """Quote a name for use as an option value in a shell."""
    return shlex.quote(option_name(name))


def is_univariate_ranking(report: Report, rank: int | None) -> bool:
    """Return whether a selection is a ranking by correlation: the target has one dimension."""
    return report.learner == "ProjSe" and rank == 1 and len(report.results) > 1


def ranking_warning(n_found: int, n_similar: int | None) -> ResultWarning | None:
    """Return the warning for a selection that is a univariate ranking.

    Parameters
    ----------
    n_found
        Number of selected variables.
    n_similar
        How many of them nearly repeat an earlier one; None if that was not computed.
    """
    if n_similar == 0:
        return None
    seen = "redundant variables are selected together"
    if n_similar is not None:
        seen = f"{n_similar:,} of {n_found:,} nearly repeat an earlier one"
    return ResultWarning(
        "ranking",
        "this is a univariate ranking: with a one-dimensional target ProjSe has nothing left "
        f"to explain after each pick and starts over; {seen}. Hint: --method ForwardSelection "
        "or MRMR accounts for redundancy",
    )


def count_similar(columns: Sequence[Any]) -> int:
    """Count the columns that correlate highly with an earlier one."""
    values = np.array(columns, dtype=np.float64)
    values -= values.mean(axis=1, keepdims=True)
    norms = np.sqrt((values**2).sum(axis=1, keepdims=True))
    values /= np.where(norms > 0, norms, 1)
    return int((np.abs(np.tril(values @ values.T, -1)).max(axis=1) >= _HIGH_CORRELATION).sum())


def counting_warning(names: Sequence[str]) -> ResultWarning | None:
    """Return a warning about columns that number the rows without a usual name of an index."""
    if not names:
        return None
    listed = ", ".join(names[:MAX_EXAMPLES]) + (", ..." if names[MAX_EXAMPLES:] else "")
    what = f"the column {listed} counts" if len(names) == 1 else f"the columns {listed} count"
    text = f"{what} up with the rows and may only number them"
    return ResultWarning("index", f"{text}. Hint: --drop excludes such columns")


def result_warnings(
    report: Report, metadata: Mapping[str, Any], targets: Sequence[str]
) -> list[ResultWarning]:
    """Return warnings about the result of a run.

    Parameters
    ----------
    report
        The result.
    metadata
        Metadata of the run.
    targets
        Names of the target columns.
    """
    found = [
        exclusion_warning(metadata),
        *unreadable_warning(metadata),
        counting_warning(metadata["counting"]),
        *warnings_of(report, targets),
    ]
    return [warning for warning in found if warning is not None]

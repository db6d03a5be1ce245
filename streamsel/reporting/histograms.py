"""Small histograms of the selected variables, one line per class or per half of the target."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.text import count_text
from streamsel.base.report import Report
from streamsel.plot.inputs import check_has_columns, check_has_rows
from streamsel.reporting.document import NameText
from streamsel.state.base import Floats
from streamsel.state.pool.pool import Pool
from streamsel.state.pool.pooled_state import PooledState
from streamsel.stream import ColumnStream
from streamsel.targets.encoding import encode_target, is_missing
from streamsel.targets.target import Target

_N_BINS = 24
# Shares of values below and above the ends of a histogram; they count in its first and last bin.
_TAIL = 0.005
# Maximum number of classes with a line each; of more, one class is compared with all others.
MAX_LINES = 6


@dataclass(frozen=True)
class Histogram:
    """Histograms of a variable, one per group of rows.

    Parameters
    ----------
    shares
        (g, b) share of each group's values in each bin, up to `_N_BINS` of equal width.
    groups
        Names of the groups.
    medians
        (g,) median of each group.
    low, high
        The least and the largest value.
    """

    shares: Floats
    groups: tuple[str, ...]
    medians: tuple[float, ...]
    low: float
    high: float

    @property
    def text(self) -> str:
        """The medians and the range, for those who do not see the lines."""
        parts = [
            f"{group or 'all rows'} {median:.3g}"
            for group, median in zip(self.groups, self.medians, strict=True)
        ]
        return f"From {self.low:.3g} to {self.high:.3g}; median: {', '.join(parts)}"


class Groups(NamedTuple):
    """Groups of rows.

    Parameters
    ----------
    codes
        (n,) index of the group of each row; -1 for none.
    labels
        Names of the groups.
    is_class
        Whether these are the classes of the target.
    """

    codes: NDArray[np.intp]
    labels: list[str]
    is_class: bool

    @property
    def are_many(self) -> bool:
        """Whether a histogram compares one class with all others."""
        return len(self.labels) > MAX_LINES

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each group."""
        sizes = np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))
        return [int(n) for n in sizes]

    @property
    def legend(self) -> list[str]:
        """Names of the lines."""
        if self.are_many:
            return ["the class under “direction”", "all other rows"]
        pairs = zip(self.labels, self.sizes, strict=True)
        return [f"{label} ({count_text(n, 'row')})" if label else "" for label, n in pairs]


class SelectedValues(NamedTuple):
    """Values of the first selected variables.

    Parameters
    ----------
    names, X
        The variables, and their (n, k) values, NaN where missing.
    groups
        Groups of the rows.
    """

    names: list[Hashable]
    X: Floats
    groups: Groups


def values_of_data(
    report: Report,
    data: Any,
    y: Any,
    max_variables: int,
    columns: Mapping[Hashable, Hashable] | None = None,
) -> SelectedValues:
    """Return the values of the first selected variables in rows, grouped by their target.

    Parameters
    ----------
    report
        The results.
    data, y
        The rows, as in `streamsel.report`.
    max_variables
        Maximum number of variables.
    columns
        The variables to return, and the column of each; None for all, by their own names.

    Raises
    ------
    ValueError
        For fewer than two rows, rows that lack a variable, and a target of another length.
    """
    from streamsel.base.frame_columns import select_features

    if columns is None:
        columns = {row["name"]: row["name"] for row in report.results}
    names = [*columns][:max_variables]
    used = [columns[name] for name in names]
    if not isinstance(data, ColumnStream):
        check_has_columns(data, used)
    X = select_features(data, used)
    check_has_rows(X)
    if y is not None and len(y) != len(X):
        raise ValueError(f"Expected a y for each of {len(X):,} rows. Got: {len(y):,}.")
    kind = str(report.parameters.get("target_type", "auto"))
    return SelectedValues(names, X, groups_of(y, len(X), kind))


def values_of_model(model: Any, report: Report, max_variables: int) -> SelectedValues | None:
    """Return the values of the first selected variables that a model stores; None if it does not.

    Parameters
    ----------
    model
        A learner, or a report.
    report
        Its results.
    max_variables
        Maximum number of variables.
    """
    state = getattr(model, "_state", None)
    target = getattr(model, "_target", None)
    pool = state.pool if isinstance(state, PooledState) else state
    if not (isinstance(pool, Pool) and pool.has_samples and isinstance(target, Target)):
        return None
    # Adjusted or weighted samples are not those of the data.
    if pool.covariate_basis is not None or target.row_transform is not None:
        return None
    names: list[Hashable] = [row["name"] for row in report.results[:max_variables]]
    indices = np.array([pool.index_of[name] for name in names], dtype=np.intp)
    stats = pool.stats(indices)
    X = (pool.samples(indices) * np.sqrt(stats.m2)[:, None] + stats.mean[:, None]).T
    columns = target.columns()
    if target.is_class:
        labels = [NameText(name).text for name in target.names]
        groups = Groups(columns.argmax(axis=1), labels, is_class=True)
    else:
        groups = _halves(columns) if model.target_type != "survival" else _one_group(len(X))
    return SelectedValues(names, X, groups)


def target_of_model(model: Any) -> Any:
    """Return the labels or numbers of the rows that a model has learnt; None if not known."""
    target = getattr(model, "_target", None)
    if not isinstance(target, Target) or target.row_transform is not None:
        return None
    columns = target.columns()
    if target.is_class:
        values = [target.names[k] for k in columns.argmax(axis=1).tolist()]
    else:
        values = columns[:, 0].tolist()
    is_whole = target.kept is None and (target.is_class or columns.shape[1] == 1)
    return values if is_whole else None


def groups_of(y: Any, n: int, kind: str) -> Groups:
    """Return the groups of n rows: classes, or halves of a numeric target; one for any other."""
    if y is None or np.ndim(y) != 1 or kind == "survival":
        return _one_group(n)
    kind = kind if kind in ("class", "numeric") else "auto"
    labels = np.asarray(y, dtype=object)
    known = np.array([not is_missing(value) for value in labels.tolist()], dtype=np.bool_)
    if known.sum() < 2:
        return _one_group(n)
    try:
        encoded = encode_target(np.array(labels[known].tolist()), kind, by_values=True)
    except (ValueError, TypeError):
        return _one_group(n)
    if encoded.is_class:
        found = Groups(
            encoded.columns.argmax(axis=1),
            [NameText(name).text for name in encoded.names],
            is_class=True,
        )
    else:
        found = _halves(encoded.columns)
    codes = np.full(n, -1, dtype=np.intp)
    codes[known] = found.codes
    return found._replace(codes=codes)


def _one_group(n: int) -> Groups:
    return Groups(np.zeros(n, dtype=np.intp), [""], is_class=False)


def _halves(columns: Floats) -> Groups:
    """Return the rows up to the median of a numeric target, and those above it."""
    if columns.shape[1] != 1:
        return _one_group(len(columns))
    values = columns[:, 0]
    median = float(np.median(values))
    above = values > median
    if not above.any():
        return _one_group(len(columns))
    labels = [f"target up to {median:.4g}", f"target above {median:.4g}"]
    return Groups(above.astype(np.intp), labels, is_class=False)


def histograms_of(found: SelectedValues, report: Report) -> dict[Hashable, Histogram]:
    """Return the histograms of selected variables: name -> histogram.

    Parameters
    ----------
    found
        Values of the variables.
    report
        The results, with the directions of the variables. If there are many classes, the class of
        the direction is compared with the others.
    """
    histograms = {}
    for name, x in zip(found.names, found.X.T, strict=True):
        groups = found.groups
        codes, labels = groups.codes, groups.labels
        if groups.are_many:
            direction = (report.directions or {}).get(name)
            of = None if direction is None else NameText(direction.of).text
            if of not in labels:
                continue
            codes = np.where(codes < 0, -1, np.where(codes == labels.index(of), 0, 1))
            labels = [of, "others"]
        if (one := _histogram(x, codes, labels)) is not None:
            histograms[name] = one
    return histograms


def _histogram(x: Floats, codes: NDArray[np.intp], labels: Sequence[str]) -> Histogram | None:
    """Return the histogram of a variable; None without values in each group."""
    is_used = np.isfinite(x) & (codes >= 0)
    x, codes = x[is_used], codes[is_used]
    sizes = np.bincount(codes, minlength=len(labels))
    if not sizes.all():
        return None
    low, high = np.quantile(x, [_TAIL, 1.0 - _TAIL])
    if low == high:
        low, high = x.min(), x.max()
    if low == high:
        return None
    bins = np.clip((x - low) / (high - low) * _N_BINS, 0, _N_BINS - 1).astype(np.intp)
    counts = np.zeros((len(labels), _N_BINS))
    np.add.at(counts, (codes, bins), 1.0)
    medians = tuple(float(np.median(x[codes == k])) for k in range(len(labels)))
    shares = counts / sizes[:, None]
    return Histogram(shares, tuple(labels), medians, float(x.min()), float(x.max()))

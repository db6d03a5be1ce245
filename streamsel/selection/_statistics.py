"""Table of the univariate statistics of all tracked columns: effects, standard errors, p-values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.base.column_metadata import locate_names, metadata_arrays
from streamsel.base.null import harmonic_number
from streamsel.base.phase import Phase
from streamsel.base.significance import Significance
from streamsel.selection._scores import UnivariateScore
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.pool.group_pool import GroupPool
from streamsel.targets.encoding import is_covariate
from streamsel.targets.target import Target
from streamsel.targets.whitening import Whitening

COLUMNS = ("all", "selected")
# Metadata that makes the mean of a column a count of alleles, of two per sample.
_COUNTED = "effect_allele"


class Statistics(NamedTuple):
    """Statistics of the variables of a state.

    Parameters
    ----------
    view
        The state.
    score
        The univariate score.
    phase, significance
        The phase of the learner, and the comparison with noise.
    """

    view: VariableState
    score: UnivariateScore
    phase: Phase
    significance: Significance

    def table(self, metadata: Any, picked: Indices | None) -> dict[str, NDArray[Any]]:
        """Return the statistics of all variables that vary, or of those picked, by title.

        Parameters
        ----------
        metadata
            Metadata of columns, as `metadata_of` accepts it; None for none.
        picked
            Indices of the variables to return, which all vary; None for all.
        """
        view = self.view
        indices = np.flatnonzero(np.isfinite(view.relevance()))
        names = [view.names[j] for j in indices.tolist()]
        # Metadata may have constant columns only.
        is_grouped = isinstance(view, GroupPool)
        known = {} if metadata is None or is_grouped else metadata_of(view.names, metadata)
        known = {title: values[indices] for title, values in known.items()}
        found = self._tests(indices)
        has_means = not is_grouped and self._has_plain_means
        frequency = allele_frequency(known, found["mean"]) if has_means else {}
        known = {title: values for title, values in known.items() if title not in ("name", *found)}
        table = {"name": np.fromiter(names, object, len(names)), **known, **frequency, **found}
        if picked is None:
            return table
        rows = np.searchsorted(indices, picked)
        return {title: values[rows] for title, values in table.items()}

    @property
    def _has_plain_means(self) -> bool:
        """Whether means are over rows of equal weight, without a transform of rows."""
        target, n_rows = self.phase.target, self.phase.n_rows
        if target is not None and target.row_transform is not None:
            return False
        return self.phase.moments is None or self.significance.n == n_rows

    def effects(self, indices: Indices) -> dict[str, Floats]:
        """Return effects and their standard errors; none if the score or the target has none."""
        column, target = effect_column(self.phase), self.phase.target
        if column is None:
            return {}
        scales: Floats | float | None = 1.0
        if isinstance(target, Target) and isinstance(target.row_transform, Whitening):
            names = self.view.names
            scales = target.row_transform.target_scales([names[j] for j in indices.tolist()])
        found = self.score.effects(self.view, indices, column, self.significance)
        if scales is None or found is None:
            return {}
        return {title: values * scales for title, values in found._asdict().items()}

    def _tests(self, indices: Indices) -> dict[str, NDArray[Any]]:
        """Return the statistics of all variables that vary."""
        view, significance = self.view, self.significance
        stats: Any = view.stats(indices)
        target, n_rows = self.phase.target, self.phase.n_rows
        if self.score.needs_samples and isinstance(target, Target):
            # Rows are scored by windows.
            n_rows = target.n
        found: dict[str, NDArray[Any]] = {"n": self.score.observed(view, indices, n_rows)}
        if isinstance(view, GroupPool):
            found |= {"members": stats.size, "degrees_of_freedom": stats.rank}
        else:
            found |= {"mean": stats.mean + stats.mean_error, **self.effects(indices)}
        found["score"] = self.score.scores(view, indices, significance)
        if self.score.has_p_values:
            p_values = self.score.p_values(view, indices, significance)
            # Discarded columns count, too.
            m = max(indices.size, self.phase.n_varying)
            adjusted = fdr_adjusted(p_values, m)
            found |= {"p_value": p_values, "p_bh": adjusted[0], "p_by": adjusted[1]}
        if significance.null is not None:
            found["p_adjusted"] = significance.adjusted_p_values(view.relevance(indices))
        return found


def effect_column(phase: Phase) -> int | None:
    """Return the index, among the target's columns, of the one that slopes are of.

    None for several targets, or classes; of two classes the indicator of the second in sorted
    order.
    """
    moments, target = phase.moments, phase.target
    if moments is not None and moments.target is not None:
        names, is_class = [*moments.target.index_of], moments.target.form == "class"
    elif isinstance(target, Target):
        names, is_class = target.names, target.is_class
    else:
        return None
    targets = [names[j] for j in np.flatnonzero(~is_covariate(names)).tolist()]
    return _index_of_last(targets) if len(targets) == 1 + is_class else None


def _index_of_last(labels: Sequence[Any]) -> int:
    """Return the index of the last of at most two labels in sorted order."""
    if len(labels) == 1:
        return 0
    try:
        return int(labels[0] < labels[1])
    except TypeError:  # labels of different types
        return int(str(labels[0]) < str(labels[1]))


def fdr_adjusted(p: Floats, m: int) -> tuple[Floats, Floats]:
    """Return p-values adjusted by Benjamini-Hochberg and by Benjamini-Yekutieli.

    Parameters
    ----------
    p
        The smallest p-values of m tests.
    m
        Number of tests.
    """
    order = np.argsort(p, kind="stable")
    ratios = p[order] * (m / np.arange(1, p.size + 1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum.accumulate(ratios[::-1])[::-1]
    return np.minimum(adjusted, 1.0), np.minimum(adjusted * harmonic_number(m), 1.0)


def metadata_of(names: Sequence[Hashable], metadata: Any) -> dict[str, NDArray[Any]]:
    """Return the metadata of these columns, None where there is none.

    Parameters
    ----------
    names
        The columns.
    metadata
        Arrays of equal length by title, or a frame; "name", or else the first, has the names of
        columns.

    Raises
    ------
    TypeError, ValueError
        For metadata of another form, and without any of the columns.
    """
    arrays = metadata_arrays(metadata, "a mapping of arrays, or a frame")
    if not arrays:
        return {}
    known = arrays.pop("name" if "name" in arrays else next(iter(arrays)))
    indices = locate_names(known, names)
    return {title: _select(values, indices) for title, values in arrays.items()}


def _select(values: NDArray[Any], indices: Indices) -> NDArray[Any]:
    lacks = indices < 0
    if not lacks.any():
        return values[indices]
    found = np.full(indices.size, None, dtype=object)
    found[~lacks] = values[indices[~lacks]]
    return found


def allele_frequency(found: Mapping[str, NDArray[Any]], means: Floats) -> dict[str, Floats]:
    """Return the frequency of the effect allele, if the metadata shows that it is counted."""
    if _COUNTED not in found:
        return {}
    counted = np.array([allele is not None for allele in found[_COUNTED].tolist()], dtype=np.bool_)
    return {"effect_allele_frequency": np.where(counted, means / 2.0, np.nan)}

"""Define `Report`, the results of a model for all output formats, and count excluded columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.state.base import VariableState

# Probability that the best of all columns exceeds the noise floor, if all are noise.
NOISE_LEVEL = 0.05


class ResultWarning(NamedTuple):
    """A warning about the reliability of a result.

    Parameters
    ----------
    code
        Short identifier of the kind of warning, for programs.
    text
        One sentence: the observation, its meaning, and what to do.
    """

    code: str
    text: str


class Direction(NamedTuple):
    """The sign of the correlation of a variable with the target, given the covariates.

    Parameters
    ----------
    sign
        1 or -1; 0 if they do not correlate.
    of
        The class, or target column, that the variable correlates with most, by absolute value;
        of two classes, that of positive correlation. None for a single numeric column.
    is_class
        Whether the target is classes.
    """

    sign: int
    of: Hashable | None
    is_class: bool

    @property
    def text(self) -> str:
        """The direction in words."""
        if not self.sign:
            return "none"
        if self.is_class:
            return f"{'higher' if self.sign > 0 else 'lower'} in {self.of}"
        text = "positive" if self.sign > 0 else "negative"
        return text if self.of is None else f"{text}: {self.of}"


@dataclass(frozen=True)
class Density:
    """Histogram of the non-constant columns, arrival by relevance, of bounded size.

    Parameters
    ----------
    counts
        (a, b) numbers of columns, in a bins of arrival, at most 64, and b bins of relevance. After
        a merge of models of different columns, a column may be counted in the bin of arrival before
        its own.
    step
        Number of columns per bin of arrival, constant columns included.
    edges
        (b + 1,) edges of the relevance bins, each about 4 % above the previous one; the last is 1.
        The sign of a correlation is ignored.
    null
        (b + 1,) probability that a column of pure noise exceeds each edge, under the distribution
        that the noise floor assumes; None if not known.
    points
        (p,) relevances of p columns in order of arrival, -1 for a constant column; None for more
        than 500 columns.
    p_values
        (p,) probability that a column of pure noise exceeds each of `points`, NaN for a constant
        column; None if not known, or for more than 500 columns.
    """

    counts: NDArray[np.int64]
    step: int
    edges: NDArray[np.float64]
    null: NDArray[np.float64] | None
    points: NDArray[np.float64] | None = None
    p_values: NDArray[np.float64] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the histogram as JSON-compatible values."""
        return {
            "step": self.step,
            "edges": self.edges.tolist(),
            "null": None if self.null is None else self.null.tolist(),
            "counts": self.counts.tolist(),
            "points": None if self.points is None else self.points.tolist(),
            "p_values": None if self.p_values is None else [*map(number, self.p_values.tolist())],
        }


@dataclass(frozen=True)
class Report:
    """Results of a model.

    Parameters
    ----------
    learner, parameters
        Class name, and parameters by name.
    rows, columns_seen, columns_constant
        Numbers of rows, of columns, and of constant columns. If columns have groups, numbers of
        groups instead of columns, here and in `excluded`; `details["n_columns"]` is that of
        columns.
    noise_floor
        Relevance that pure noise reaches; None if not applicable.
    kind
        "selected" or "components": the kind of results in `results`.
    results
        The results, each as a dict with the same keys; None for a value that does not apply. For a
        variable, `arrival` is the number of columns before it.
    n_requested
        Number of results requested; None if not fixed.
    details
        Further details of the model: name -> value.
    density
        Histogram of all columns; None without a target, or if not available.
    alternatives
        For each selected variable at most three tracked variables that could replace it, with their
        correlations, of absolute value .8 or above, in descending order. None if correlations are
        not available.
    excluded
        Why columns were not selected: reason -> count; the counts sum to the number of columns not
        selected. If not all columns are tracked, counts near the noise floor are estimates.
    directions
        For each selected variable the sign of its correlation with the target; None without one.
    redundancy
        For each selected variable the other one that it correlates with most, and the correlation.
        None if correlations are not available, or for more than 1,000 variables.
    n_near_duplicates
        Number of selected variables whose correlation with an earlier one is .8 or more; None if
        correlations are not available.
    score_meaning
        Definition of the scores; None for components.
    target
        How the target was interpreted, such as "10 classes, 31 to 37 rows each" or "numeric, 0 to
        9"; None without a target.
    class_sizes
        Number of rows of each class; None without classes, and on rows.
    n_permutations
        Number of permuted targets that the noise floor and adjusted p-values are based on; None if
        the noise floor assumes normal distributions.
    normal_scores
        Whether noise floor and tests are based on normal scores of the target, because of its heavy
        tails.
    inflation
        Genomic inflation factor: the median test statistic of all columns divided by its median
        under the null hypothesis; None if not known.
    warnings
        Warnings about the reliability of the results.
    rows_excluded
        Numbers of excluded rows of the columns, by reason; `rows` counts the others.
    """

    learner: str
    parameters: dict[str, Any]
    rows: int
    columns_seen: int
    columns_constant: int
    noise_floor: float | None
    kind: str
    results: list[dict[str, Any]]
    n_requested: int | None
    details: dict[str, Any] = field(default_factory=dict)
    density: Density | None = field(default=None, repr=False)
    alternatives: dict[Hashable, list[tuple[Hashable, float]]] | None = None
    excluded: dict[str, int] = field(default_factory=dict)
    directions: dict[Hashable, Direction] | None = None
    redundancy: dict[Hashable, tuple[Hashable, float]] | None = None
    n_near_duplicates: int | None = None
    score_meaning: str | None = None
    target: str | None = None
    class_sizes: dict[Hashable, int] | None = None
    n_permutations: int | None = None
    normal_scores: bool = False
    inflation: float | None = None
    warnings: tuple[ResultWarning, ...] = ()
    rows_excluded: dict[str, int] = field(default_factory=dict)

    @property
    def candidate(self) -> str:
        """Name of what is selected or left out: "group" if columns have groups, or "variable"."""
        is_group = self.kind == "selected" and "n_columns" in self.details
        return "group" if is_group else "variable"

    def without_certification(self) -> Report:
        """Return the report of a model that has not seen all columns yet: no pick is certified."""
        found = [row | {"certified": False} if "certified" in row else row for row in self.results]
        facts = self.details | ({"n_certified": 0} if "n_certified" in self.details else {})
        return replace(self, results=found, details=facts)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible values."""
        return {
            "class": self.learner,
            "parameters": self.parameters,
            "rows": self.rows,
            "rows_excluded": self.rows_excluded,
            "target": self.target,
            "class_sizes": _pairs(self.class_sizes, "class", "rows"),
            "columns_seen": self.columns_seen,
            "columns_constant": self.columns_constant,
            "noise_floor": self.noise_floor,
            "n_permutations": self.n_permutations,
            "normal_scores": self.normal_scores,
            "inflation": self.inflation,
            "warnings": [warning._asdict() for warning in self.warnings],
            **self.details,
            "n_near_duplicates": self.n_near_duplicates,
            "score_meaning": self.score_meaning,
            self.kind: self.results,
            "excluded": self.excluded,
            "alternatives": self._alternatives(),
            "directions": self._directions(),
            "redundancy": self._redundancy(),
            "density": None if self.density is None else self.density.as_dict(),
        }

    def _alternatives(self) -> list[dict[str, Any]] | None:
        """Return alternatives as lists, as names need not be text."""
        if self.alternatives is None:
            return None
        return [
            {"name": name, "like": [{"name": of, "correlation": r} for of, r in others]}
            for name, others in self.alternatives.items()
        ]

    def _directions(self) -> list[dict[str, Any]] | None:
        if self.directions is None:
            return None
        return [
            {"name": name, "sign": found.sign, "of": found.of}
            for name, found in self.directions.items()
        ]

    def _redundancy(self) -> list[dict[str, Any]] | None:
        if self.redundancy is None:
            return None
        return [
            {"name": name, "most_similar": other, "correlation": r}
            for name, (other, r) in self.redundancy.items()
        ]


def _pairs(found: dict[Hashable, int] | None, key: str, value: str) -> list[dict[str, Any]] | None:
    """Return a dict as a list, as names need not be text."""
    return None if found is None else [{key: name, value: n} for name, n in found.items()]


def number(value: float) -> float | None:
    """Return a finite number, or None, as JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def is_above(relevance: float | None, floor: float | None) -> bool | None:
    """Whether a relevance is above the noise floor; None if either is not known."""
    return None if relevance is None or floor is None else relevance > floor


# Reasons why a column was not selected.
EXCLUDED_CONSTANT = "do not vary"
EXCLUDED_COVARIATE = "explained by the covariates"
EXCLUDED_NOISE = "below the noise floor"
EXCLUDED_SIMILAR = "nearly identical to a selected column"
EXCLUDED_BEYOND_K = "relevant, but not among the k"
EXCLUDED_NOT_SELECTED = "above the noise floor, but not selected"
EXCLUDED_OTHER = "not selected"


def count_excluded(
    report: Report,
    selected: Sequence[float],
    near_duplicates: Sequence[float],
    state: VariableState | None,
) -> dict[str, int]:
    """Return the numbers of columns not selected, by reason; they sum to all not selected.

    Parameters
    ----------
    report
        Report of the model.
    selected, near_duplicates
        Relevances of the selected variables, and of other tracked variables similar to them.
    state
        State of the variables.
    """
    floor, n_others = report.noise_floor, max(0, report.columns_seen - len(selected))
    constant = min(report.columns_constant, n_others)
    n_others -= constant
    reasons = {EXCLUDED_CONSTANT: constant}
    counts = None if floor is None else _count_varying(state, report.density, floor)
    if counts is None or floor is None:
        reasons |= {
            EXCLUDED_SIMILAR: len(near_duplicates),
            EXCLUDED_OTHER: n_others - len(near_duplicates),
        }
    else:
        varying, below = counts
        explained = min(max(0, n_others + len(selected) - varying), n_others)
        similar = min(sum(relevance > floor for relevance in near_duplicates), n_others - explained)
        below -= sum(relevance <= floor for relevance in selected)
        below = min(max(0, below), n_others - explained - similar)
        other_reason = (
            EXCLUDED_BEYOND_K if report.n_requested == len(selected) else EXCLUDED_NOT_SELECTED
        )
        reasons |= {
            EXCLUDED_COVARIATE: explained,
            EXCLUDED_NOISE: below,
            EXCLUDED_SIMILAR: similar,
            other_reason: n_others - explained - similar - below,
        }
    return {reason: n for reason, n in reasons.items() if n > 0}


def _count_varying(
    state: VariableState | None, density: Density | None, floor: float
) -> tuple[int, int] | None:
    """Return the number of non-constant columns, and how many are not above the noise floor.

    Within the bin of relevance that contains the noise floor, the count is interpolated, unless all
    columns are tracked. None if untracked columns were not counted.
    """
    if state is not None and state.complete:
        relevance = state.relevance()
        varies = relevance >= 0.0
        return int(varies.sum()), int((varies & (relevance <= floor)).sum())
    if density is None:
        return None
    cumulative = np.append(0, np.cumsum(density.counts.sum(axis=0)))
    return int(cumulative[-1]), round(float(np.interp(floor, density.edges, cumulative)))

"""What a model has found, in terms that a terminal, a page and JSON know."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Of so many columns of pure noise the best exceeds the noise floor with this chance.
NOISE_LEVEL = 0.05


class Caution(NamedTuple):
    """A reason to doubt a result.

    Parameters
    ----------
    code
        A short name of the kind of reason, for programs.
    text
        One sentence: what was seen, what it means, what to do.
    """

    code: str
    text: str


@dataclass(frozen=True)
class Density:
    """Where the columns lie that vary, arrival by relevance: of a size that does not grow.

    Parameters
    ----------
    counts
        (a, b) columns, in a bins of arrival, 64 at most, and b bins of relevance. Where models of
        other columns were merged a column may stand in the bin of arrival before its own.
    step
        How many columns a bin of arrival has, those that do not vary among them.
    edges
        (b + 1,) relevances where bins begin, each about 4 % above the one before, and the last one
        ends, at 1. The sign of a correlation is left out.
    null
        (b + 1,) the chance that a column of pure noise is more relevant than each edge, by the law
        that the noise floor goes by; None where it is not known.
    points
        (p,) the relevances of p columns in order of arrival, -1 for one that does not vary; None
        for more than 500 columns.
    """

    counts: NDArray[np.int64]
    step: int
    edges: NDArray[np.float64]
    null: NDArray[np.float64] | None
    points: NDArray[np.float64] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "step": self.step,
            "edges": self.edges.tolist(),
            "null": None if self.null is None else self.null.tolist(),
            "counts": self.counts.tolist(),
            "points": None if self.points is None else self.points.tolist(),
        }


@dataclass(frozen=True)
class Report:
    """What a model has found.

    Parameters
    ----------
    learner, parameters
        Its class, and its parameters by name.
    rows, columns_seen, columns_constant
        How many.
    noise_floor
        The relevance that pure noise reaches; None where there is none.
    kind
        "selected" or "components": what `found` lists.
    found
        What was found, each as name -> value, all of them with the same names; None is a value that
        does not apply. Of a variable its arrival too: how many columns came before it.
    asked
        How many were asked for; None for as many as there are.
    facts
        What else is known of the model: name -> value.
    density
        Where all columns lie; None where nobody has counted them, and without a target.
    alternatives
        Of each variable chosen those, three at most, that could as well have been: others that are
        held, with their correlation, of which no size is below .8, the most alike first. None where
        it is not held how variables vary with one another.
    left_out
        Why columns were not chosen, in words, and how many for which reason; they sum up to all
        that were not. Where not all are held those near the noise floor are estimated.
    n_near_duplicates
        How many of the selected variables have a correlation of .8 or more with an earlier one;
        None where correlations are not known.
    score_meaning
        What the score of a variable is; None of components.
    target
        How the target was taken, such as "10 classes, 31 to 37 rows each" or "numeric, 0 to 9";
        None without one.
    n_permutations
        From how many permuted targets the noise floor and adjusted p-values are; None where the
        floor assumes normal distributions.
    normal_scores
        Whether variables were compared with the noise floor, and tested, by normal scores of the
        target, because its tails are heavy.
    inflation
        The genomic inflation factor: the median test statistic of all columns, in units of its
        median under no association; None where it is not known.
    warnings
        Reasons to doubt the result.
    rows_left_out
        How many rows of the columns were left out, and why; rows counts the others.
    """

    learner: str
    parameters: dict[str, Any]
    rows: int
    columns_seen: int
    columns_constant: int
    noise_floor: float | None
    kind: str
    found: list[dict[str, Any]]
    asked: int | None
    facts: dict[str, Any] = field(default_factory=dict)
    density: Density | None = None
    alternatives: dict[Hashable, list[tuple[Hashable, float]]] | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    n_near_duplicates: int | None = None
    score_meaning: str | None = None
    target: str | None = None
    n_permutations: int | None = None
    normal_scores: bool = False
    inflation: float | None = None
    warnings: tuple[Caution, ...] = ()
    rows_left_out: dict[str, int] = field(default_factory=dict)

    def unfinished(self) -> Report:
        """Return the report of a model that has not seen all its columns: nothing is certain."""
        found = [row | {"certified": False} if "certified" in row else row for row in self.found]
        facts = self.facts | ({"n_certified": 0} if "n_certified" in self.facts else {})
        return replace(self, found=found, facts=facts)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "class": self.learner,
            "parameters": self.parameters,
            "rows": self.rows,
            "rows_left_out": self.rows_left_out,
            "target": self.target,
            "columns_seen": self.columns_seen,
            "columns_constant": self.columns_constant,
            "noise_floor": self.noise_floor,
            "n_permutations": self.n_permutations,
            "normal_scores": self.normal_scores,
            "inflation": self.inflation,
            "warnings": [warning._asdict() for warning in self.warnings],
            **self.facts,
            "n_near_duplicates": self.n_near_duplicates,
            "score_meaning": self.score_meaning,
            self.kind: self.found,
            "left_out": self.left_out,
            "alternatives": self._alternatives(),
            "density": None if self.density is None else self.density.as_dict(),
        }

    def _alternatives(self) -> list[dict[str, Any]] | None:
        """Return alternatives in lists, for a name need not be text."""
        if self.alternatives is None:
            return None
        return [
            {"name": name, "like": [{"name": of, "correlation": r} for of, r in others]}
            for name, others in self.alternatives.items()
        ]


def number(value: float) -> float | None:
    """Return a number for JSON, which does not know NaN."""
    return float(value) if math.isfinite(value) else None


def is_above(relevance: float | None, floor: float | None) -> bool | None:
    """Whether a relevance is above the noise floor; None where there is one of them only."""
    return None if relevance is None or floor is None else relevance > floor

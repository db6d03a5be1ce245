"""Results of nested cross-validation: mean scores, differences, and their intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamsel.evaluate._models import SCORE_NAMES, SCORE_RANGES, Interval, fold_interval

SELECTED, RANDOM, ALL, NONE = "selected", "random", "all", "nothing"
"""Sets of variables: the learner's, as many at random, all of them, and none."""


class NestedFold(NamedTuple):
    """Results of one fold.

    Attributes
    ----------
    size
        Number of variables or components, selected by inner folds if there are several sizes.
    names
        The variables selected; for an extractor the names of its components.
    n_train, n_test
        Rows.
    scores
        Set of variables -> score -> value.
    """

    size: int | None
    names: list[Hashable]
    n_train: int
    n_test: int
    scores: dict[str, dict[str, float]]


@dataclass(frozen=True)
class NestedScores:
    """Scores of a learner's variables on rows that were not used to select them.

    Parameters
    ----------
    learner, parameters
        Its class, and its parameters by name; without its size if that is one of several `sizes`.
    rows, n_columns
        Number of rows, and of columns.
    is_class
        Whether classes were predicted, or numbers.
    sizes
        The sizes compared by inner folds; one, or None for the learner's own.
    n_folds, n_repeats, n_inner, seed, level
        As requested.
    folds
        Results of each outer fold.
    all_excluded_reason
        The reason, as text, why all variables together were not evaluated; None if they were.

    Attributes
    ----------
    variable_sets
        The sets of variables compared: "selected", "random" (as many variables at random), "all"
        (if they are few enough) and "nothing" (the most frequent class, or the mean; with
        covariates these alone).
    scores
        Names of the scores; the first one selects the size.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest
    >>> from streamsel.evaluate import nested_scores
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> found = nested_scores(SelectKBest(k=1), X, X[:, 3], n_folds=3)
    >>> found.variable_sets, found.scores
    (['selected', 'random', 'all', 'nothing'], ('r2',))
    >>> found.score() > found.score("random")
    True
    """

    learner: str
    parameters: dict[str, Any]
    rows: int
    n_columns: int
    is_class: bool
    sizes: list[int] | None
    n_folds: int
    n_repeats: int
    n_inner: int
    seed: int
    level: float
    folds: list[NestedFold]
    all_excluded_reason: str | None

    @property
    def variable_sets(self) -> list[str]:
        """The sets of variables compared."""
        return list(self.folds[0].scores)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores; the first one selects the size."""
        return SCORE_NAMES[self.is_class]

    def score(self, contestant: str = SELECTED, score: str | None = None) -> Interval:
        """Return the mean of a score over the folds, and its interval."""
        limits = SCORE_RANGES.get(score or self.scores[0], (0.0, 1.0))
        return self._interval(self._values(contestant, score), limits)

    def difference(self, other: str, score: str | None = None) -> Interval:
        """Return the mean difference between the selected variables and another set, by fold."""
        mine, others = self._values(SELECTED, score), self._values(other, score)
        lower, upper = SCORE_RANGES.get(score or self.scores[0], (0.0, 1.0))
        differences = [a - b for a, b in zip(mine, others, strict=True)]
        return self._interval(differences, (lower - upper, upper - lower))

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dict."""
        return {
            "kind": "evaluation",
            "class": self.learner,
            "parameters": self.parameters,
            "rows": self.rows,
            "n_columns": self.n_columns,
            "is_class": self.is_class,
            "sizes": self.sizes,
            "n_folds": self.n_folds,
            "n_repeats": self.n_repeats,
            "n_inner": self.n_inner,
            "seed": self.seed,
            "level": self.level,
            "why_not_all": self.all_excluded_reason,
            "scores": [
                {
                    "variables": contestant,
                    "score": score,
                    **self.score(contestant, score)._asdict(),
                    "difference": None
                    if contestant == SELECTED
                    else self.difference(contestant, score)._asdict(),
                }
                for contestant in self.variable_sets
                for score in self.scores
            ],
            "folds": [fold._asdict() for fold in self.folds],
        }

    def _values(self, contestant: str, score: str | None) -> list[float]:
        score = self.scores[0] if score is None else score
        return [fold.scores[contestant][score] for fold in self.folds]

    def _interval(self, values: Sequence[float], limits: tuple[float, float]) -> Interval:
        share = float(np.mean([fold.n_test / fold.n_train for fold in self.folds]))
        return fold_interval(values, share, self.level, limits)

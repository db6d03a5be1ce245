"""Univariate scores of columns, as functions of relevance or of the values of a column."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.system import effective_jobs, run_in_threads
from streamsel.base.null import f_statistic, marginal_p_values
from streamsel.base.significance import Significance
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._binned_scores import (
    BinnedTarget,
    ScoreOptions,
    accuracy,
    mutual_information_p_values,
    score_margin,
    score_misclassification,
    score_mutual_information,
)
from streamsel.selection._effects import Effects, effects_of
from streamsel.selection._rank_scores import (
    OrderedTarget,
    RankedTarget,
    compare_classes,
    score_ranks,
    score_xi,
)
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.pool import MOST_RELEVANT, Pool, Ranking, TopRanked
from streamsel.targets.target import Target

# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18
# Fewer numbers than this are scored in one thread: waking others takes longer.
_MIN_SIZE_FOR_THREADS = 1 << 18
# The smallest positive float.
_MIN_P_VALUE = 5e-324
# Scores from relevance, and the number of observations, rank and scale of `Freedom`.


def correlation(
    relevance: Floats,
    n: float,  # noqa: ARG001
    rank: int,  # noqa: ARG001
    scale: float | None = None,  # noqa: ARG001
) -> Floats:
    """Return the relevance itself."""
    return relevance


def t_statistic(relevance: Floats, n: float, rank: int, scale: float | None = None) -> Floats:
    """Return the absolute t or z statistics, for a target of rank 1."""
    return np.sqrt(f_statistic(relevance, n, rank, scale))


def first_field(p_value: Floats, *others: Floats) -> Floats:  # noqa: ARG001
    """Return p-values that are a field themselves."""
    return p_value


def evidence(p_values: Floats, strengths: Floats) -> Floats:
    """Return numbers of at least 0 that fall with the p-values; of p = 0 they rise with strength.

    Scores alone do not rank by p-value: the null distribution depends on ties in the column.
    """
    logs = -np.log(np.maximum(p_values, _MIN_P_VALUE))
    return np.where(p_values > 0.0, logs, logs + strengths / (1.0 + strengths))


class TargetKind(NamedTuple):
    """Targets that a score supports: any of these kinds.

    Parameters
    ----------
    name
        Their name, for errors.
    numeric, classes
        Largest number of numeric columns, and of classes.
    """

    name: str
    numeric: float
    classes: float

    def includes(self, c: int, *, is_class: bool) -> bool:
        """Return whether a target of c columns is one."""
        return c <= (self.classes if is_class else self.numeric)


@dataclass(frozen=True, kw_only=True)
class UnivariateScore(abc.ABC):
    """A score of `SelectKBest`: the fields it keeps of a column, and functions of these.

    Parameters
    ----------
    meaning
        Definition of the score, for reports.
    targets
        The targets that it supports.
    fields
        Names of the fields kept of a column in addition to its moments.

    Attributes
    ----------
    needs_samples
        Whether values of columns are required, not only moments: rows are learnt by windows.
    p_values_of_relevance
        Whether p-values are a function of the relevance.
    """

    needs_samples: ClassVar[bool]
    p_values_of_relevance: ClassVar[bool]

    meaning: str
    targets: TargetKind
    fields: tuple[str, ...] = ()

    @property
    def tests_noise(self) -> bool:
        """Whether its own p-values, not those of the relevance, are compared with noise."""
        return False

    @property
    def has_p_values(self) -> bool:
        """Whether the score has p-values."""
        return True

    def field_shapes(self, prepared: Any) -> dict[str, tuple[int, ...]]:  # noqa: ARG002
        """Return the shapes of the fields of a column, given what `prepare` returned."""
        return dict.fromkeys(self.fields, ())

    def prepare(self, target: Target, options: ScoreOptions) -> Any:  # noqa: ARG002
        """Return what `of_chunk` needs of a target; it is computed once per target."""
        return None

    def of_chunk(
        self,
        chunk: Chunk,  # noqa: ARG002
        stats: Stats,  # noqa: ARG002
        prepared: Any,  # noqa: ARG002
        n_jobs: int,  # noqa: ARG002
    ) -> dict[str, Floats]:
        """Return the fields of the columns of a chunk that `stats` has moments of."""
        return {}

    def ranking(self, *, by_p_value: bool) -> Ranking:  # noqa: ARG002
        """Return how a bounded pool ranks its columns, for a selection by p-values or scores."""
        return MOST_RELEVANT

    def strengths(self, view: VariableState) -> Floats:
        """Return the strengths of all variables: larger is better, -inf for constant ones."""
        return view.relevance()

    def relevance(self, view: VariableState, indices: Indices) -> Floats:
        """Return the relevances of variables, for reports."""
        return view.relevance(indices)

    def noise_relevance(
        self,
        view: VariableState,
        indices: Indices,
        significance: Significance,  # noqa: ARG002
    ) -> Floats:
        """Return the relevances to compare with the noise floor."""
        return view.noise_relevance(indices)

    def observed(self, view: VariableState, indices: Indices, n_rows: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the number of observations of variables, given the number of rows."""
        return np.full(indices.size, n_rows, dtype=np.int64)

    def effects(
        self,
        view: VariableState,  # noqa: ARG002
        indices: Indices,  # noqa: ARG002
        column: int,  # noqa: ARG002
        significance: Significance,  # noqa: ARG002
    ) -> Effects | None:
        """Return the effects of variables on a target column, covariates not counted, if any."""
        return None

    @abc.abstractmethod
    def scores(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the scores of variables."""

    @abc.abstractmethod
    def p_values(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the p-values of variables; NaN if the score has none."""


@dataclass(frozen=True, kw_only=True)
class MomentScore(UnivariateScore):
    """Univariate score that is a function of the relevance.

    Parameters
    ----------
    of_relevance
        Returns the scores from relevance and `Freedom`.
    """

    needs_samples = False
    p_values_of_relevance = True

    of_relevance: Callable[[Floats, float, int, float | None], Floats]

    def effects(
        self, view: VariableState, indices: Indices, column: int, significance: Significance
    ) -> Effects | None:
        """Return the effects of variables on a target column, covariates not counted."""
        return effects_of(view, indices, column, significance.freedom)

    def scores(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the scores of variables."""
        return self.of_relevance(view.relevance(indices), *significance.freedom)

    def p_values(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the p-values of variables: of permutations, or of the F test."""
        relevance, null = view.noise_relevance(indices), significance.null
        if null is not None:
            return null.p_values(relevance)
        return marginal_p_values(relevance, *significance.freedom)


@dataclass(frozen=True, kw_only=True)
class GroupScore(MomentScore):
    """Score of groups of columns: their F statistics, or a function of their relevance.

    Parameters
    ----------
    is_f
        Whether it is the F statistic.
    """

    is_f: bool

    def effects(
        self,
        view: VariableState,  # noqa: ARG002
        indices: Indices,  # noqa: ARG002
        column: int,  # noqa: ARG002
        significance: Significance,  # noqa: ARG002
    ) -> Effects | None:
        """Return None: a group has no single effect."""
        return None

    def scores(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the scores of groups."""
        if not self.is_f or not isinstance(view, GroupPool):
            return super().scores(view, indices, significance)
        stats = view.stats(indices)
        return view.test.f_statistics(stats.trace, stats.rank)


@dataclass(frozen=True, kw_only=True)
class SampleScore(UnivariateScore):
    """Univariate score that needs the values of a column, on arrival.

    Parameters
    ----------
    of_target
        Returns what `of_columns` needs of a target.
    of_columns
        Returns the fields of a slice of the columns of a chunk, in the order of `fields`; the first
        is the score.
    strength
        Returns strengths of scores, at least 0, with the same ranking; larger is better.
    p_value
        Returns p-values from the other fields; None if the score has none.
    """

    needs_samples = True
    p_values_of_relevance = False

    fields: tuple[str, ...] = ("score",)
    of_target: Callable[[Target, ScoreOptions], Any]
    of_columns: Callable[[Chunk, slice, Any], Sequence[Floats]]
    strength: Callable[[Floats], Floats]
    p_value: Callable[..., Floats] | None = None

    @property
    def tests_noise(self) -> bool:
        """Whether its own p-values, not those of the relevance, are compared with noise."""
        return "p_value" in self.fields

    def noise_relevance(
        self, view: VariableState, indices: Indices, significance: Significance
    ) -> Floats:
        """Return the relevances that have these p-values, or the relevances themselves."""
        if not self.tests_noise:
            return view.noise_relevance(indices)
        return significance.freedom.relevance_of(self.p_values(view, indices, significance))

    @property
    def has_p_values(self) -> bool:
        """Whether the score has p-values."""
        return self.p_value is not None

    def prepare(self, target: Target, options: ScoreOptions) -> Any:
        """Return what `of_chunk` needs of a target."""
        return self.of_target(target, options)

    def of_chunk(self, chunk: Chunk, stats: Stats, prepared: Any, n_jobs: int) -> dict[str, Floats]:
        """Return the fields of the columns of a chunk that `stats` has moments of."""
        size = stats.m2.size
        shapes = self.field_shapes(prepared)
        fields = {name: np.zeros((size, *shape)) for name, shape in shapes.items()}
        step = max(1, _BATCH_NUMBERS // chunk.n)

        def score_part(columns: slice) -> None:
            for start in range(columns.start, columns.stop, step):
                part = slice(start, min(start + step, columns.stop))
                found = self.of_columns(chunk, part, prepared)
                for values, of_part in zip(fields.values(), found, strict=True):
                    values[part] = of_part

        jobs = effective_jobs(n_jobs)
        if jobs == 1 or size * chunk.n < _MIN_SIZE_FOR_THREADS:
            score_part(slice(0, size))
        else:
            run_in_threads(score_part, size, jobs)
        return fields

    def ranking(self, *, by_p_value: bool) -> Ranking:
        """Return the ranking of columns by their p-values, or by the strength of their scores."""
        if by_p_value:
            return TopRanked(self._evidence_of_rows, key="p_value")
        return TopRanked(self._strengths_of_rows)

    def _strengths_of_rows(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        return self.strength(rows["score"])

    def _evidence_of_rows(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG002
        assert self.p_value is not None  # noqa: S101
        p_values = self.p_value(*(rows[field] for field in self.fields[1:]))
        return evidence(p_values, self.strength(rows["score"]))

    def evidence(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:
        """Return the numbers by which a pool ranks variables by p-value."""
        strengths = self.strength(view.extra_field("score")[indices])
        return evidence(self.p_values(view, indices, significance), strengths)

    def strengths(self, view: VariableState) -> Floats:
        """Return the strengths of all variables, -inf for constant ones."""
        found = self.strength(view.extra_field("score"))
        return np.where(view.relevance() >= 0.0, found, -np.inf)

    def scores(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:  # noqa: ARG002
        """Return the scores of variables."""
        return view.extra_field("score")[indices]

    def p_values(self, view: VariableState, indices: Indices, significance: Significance) -> Floats:  # noqa: ARG002
        """Return the p-values of variables, which follow from their fields."""
        if self.p_value is None:
            return np.full(len(indices), np.nan)
        return self.p_value(*(view.extra_field(field)[indices] for field in self.fields[1:]))


@dataclass(frozen=True, kw_only=True)
class ClassScore(SampleScore):
    """A sample score that also compares each class with the rest: fields `z` and `ties`."""

    def field_shapes(self, prepared: RankedTarget | None) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fields of a column: `z` has one number per class."""
        n_classes = 0 if prepared is None else prepared.sizes.size
        return super().field_shapes(prepared) | {"z": (n_classes,)}


_ANY = TargetKind("any target", math.inf, math.inf)
_CLASSES = TargetKind("classes", 0, math.inf)
_NUMERIC_OR_CLASSES = TargetKind("one numeric target or classes", 1, math.inf)
_NUMERIC_OR_PAIR = TargetKind("one numeric target or two classes", 1, 2)

SCORES: dict[str, UnivariateScore] = {
    "correlation": MomentScore(meaning="relevance", targets=_ANY, of_relevance=correlation),
    "f": MomentScore(meaning="F statistic", targets=_ANY, of_relevance=f_statistic),
    "t": MomentScore(
        meaning="absolute t statistic",
        targets=_NUMERIC_OR_PAIR,
        of_relevance=t_statistic,
    ),
    "mutual_info": SampleScore(
        meaning="mutual information in nats, minus its mean under independence",
        targets=_NUMERIC_OR_CLASSES,
        fields=("score", "statistic", "dof"),
        of_target=BinnedTarget.of,
        of_columns=score_mutual_information,
        strength=np.exp,
        p_value=mutual_information_p_values,
    ),
    "misclassification": SampleScore(
        meaning="error rate of the best threshold, from 0 to 1; smaller is better",
        targets=_CLASSES,
        of_target=BinnedTarget.of,
        of_columns=score_misclassification,
        strength=accuracy,
    ),
    "margin": SampleScore(
        meaning="smallest distance between values of different classes, in standard deviations",
        targets=_CLASSES,
        of_target=BinnedTarget.of,
        of_columns=score_margin,
        strength=np.positive,
    ),
    "rank": SampleScore(
        meaning="Spearman's rank correlation; for classes the Kruskal-Wallis statistic",
        targets=_NUMERIC_OR_CLASSES,
        fields=("score", "p_value"),
        of_target=RankedTarget.of,
        of_columns=score_ranks,
        strength=np.abs,
        p_value=first_field,
    ),
    "xi": SampleScore(
        meaning="Chatterjee's correlation of the target as a function of the variable",
        targets=_NUMERIC_OR_PAIR,
        fields=("score", "p_value"),
        of_target=OrderedTarget.of,
        of_columns=score_xi,
        strength=np.exp,
        p_value=first_field,
    ),
}

# Scores of groups of columns.
GROUP_SCORES: dict[str, UnivariateScore] = {
    "correlation": GroupScore(
        meaning="relevance of a single column with the same p-value",
        targets=_ANY,
        of_relevance=correlation,
        is_f=False,
    ),
    "f": GroupScore(
        meaning="F statistic of the group (for several targets that of Pillai's trace)",
        targets=_ANY,
        of_relevance=f_statistic,
        is_f=True,
    ),
}

# The rank score, with a comparison of each class with the rest.
RANKS_PER_CLASS = ClassScore(
    meaning="Kruskal-Wallis statistic; variables are ranked by the tests of each class",
    targets=_CLASSES,
    fields=("score", "p_value", "z", "ties"),
    of_target=RankedTarget.of,
    of_columns=compare_classes,
    strength=np.abs,
    p_value=first_field,
)

"""SelectKBest: the k variables of the best score, each scored by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from streamsel import params
from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Held, Places
from streamsel.held.pool import Picks, Pool
from streamsel.learner.noise import chance, discoveries, f_statistic
from streamsel.learner.river import Supervised
from streamsel.learner.selector import ALL, Selector
from streamsel.params import param
from streamsel.selection._sample_scores import (
    bins_of_columns,
    bins_of_target,
    codes_of,
    noted,
    p_values,
    score_columns,
    strength,
)
from streamsel.target.target import Target
from streamsel.ties import most_relevant_first

_OF_MOMENTS = ("correlation", "f", "t")
_OF_SAMPLES = ("mutual_info", "misclassification", "margin")
# So many are selected where neither k nor fdr is given.
_K = 10
_WITHOUT_P_VALUES = ("misclassification", "margin")
_MEANINGS = {
    "correlation": "relevance",
    "f": "F statistic",
    "t": "t statistic, without its sign",
    "mutual_info": "mutual information in nats, less its mean under no association",
    "misclassification": "error of the best threshold, from 0 to 1; smaller is better",
    "margin": "smallest distance between values of different classes, in standard deviations",
}


class SelectKBest(Selector[Held], Supervised):
    r"""The k variables of the best score, each scored by itself.

    The filter that everybody knows: no variable is asked what another has said already, so copies
    of a good one are all good. In return it costs no more than a ranking.

    Parameters
    ----------
    k
        How many variables to select: a number, or `"all"` for every variable that varies, in order
        of score. None for 10, or, where `fdr` is given, for as many as pass.
    score
        `"correlation"`: relevance, for one numeric target $|r|$. `"f"`: $\frac{r^2}{1 - r^2}
        \frac{n - 1 - d}{d}$, $d$ the rank of the target, for classes the $F$ of the analysis of
        variance. `"t"`: $\sqrt{F}$ where $d = 1$, for two classes the $t$ of the difference of
        their means with a pooled variance. `"mutual_info"`: of the binned variable with the classes
        or the binned target, in nats, less its mean under independence.
        `"misclassification"`: the error, in [0, 1], of the best threshold with the best class on
        each side; the fewer the better. `"margin"`: the smallest distance between values of
        different classes, in standard deviations.
    fdr
        Instead of k: the share of noise among the selected, in expectation, by the procedure of
        Benjamini and Hochberg. For scores that have p-values: not the last two.
    n_bins, binning
        mutual_info: into how many bins numbers are cut at most, `"frequency"` into equally full
        ones, `"width"` into equally wide ones. Fewer are made where a cell of the table would hold
        fewer than 8 observations (but at least 3 of a variable, and 2 of a numeric target).
    n_outliers
        margin: how many of the smallest distances are overlooked.
    window_size
        On rows, for the last three scores: how many rows are gathered before they are scored, as
        columns.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when it comes, for a target that the score does not
        take: t takes two classes or one numeric target, mutual_info that or classes, the last two
        classes.

    Notes
    -----
    **p-values of mutual information** are given the sizes of the bins on either side. For a table
    of two by two they are exact. For a larger one $2nI$ is compared with $\chi^2$, after it was
    scaled down by its exact mean under independence: a p-value of 5e-5 is then mostly within 20 %,
    and too large where cells hold fewer than 4 observations. Hence `fdr=0.05` selects any of 1,000
    columns of noise in about 5 % of streams or fewer, from 60 observations on, whether targets and
    columns are numbers, counts or classes.

    **Cost.** A column costs one pass over it, and for the last three scores a sort; a row $O(c)$
    for each feature, $c$ the number of target columns, or its share of a window's sorts; a row
    transformed $O(k)$.

    **Memory.** $O(n c)$ for the target and $c + 4$ numbers a candidate, one more for the last two
    scores and three for mutual information; with `max_candidates` constant, and still exact. On
    rows $3c + 6$ numbers a variable, or a window of rows.

    **Rows.** The first three scores are functions of the moments, which rows accumulate: the answer
    is that on the columns of the same rows. The last three know no covariates and no fading; the
    answer is that of the last full window, and before there is one everything passes.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None counts as if it had its mean; a new variable, class or
    target was 0 before. Ties, within 1e-12, go to the column that arrived first.

    References
    ----------
    [^1]: Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. Journal of
    the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    Three variables tell of two classes, one of them a copy:

    >>> import numpy as np
    >>> from streamsel import SelectKBest

    >>> rng = np.random.default_rng(0)
    >>> labels = np.array(["sick", "well"] * 50)
    >>> sick = labels == "sick"
    >>> X = rng.normal(size=(100, 1000))
    >>> X[:, 10] += 2.0 * sick
    >>> X[:, 20] = X[:, 10] + 0.1 * rng.normal(size=100)
    >>> X[:, 30] -= sick

    >>> model = SelectKBest(k=3, score="t")
    >>> model.learn_target(labels)
    >>> model.learn_columns(X)
    >>> model.selected
    [20, 10, 30]

    How many are no chance? At most one in twenty of these, in expectation:

    >>> model = SelectKBest(fdr=0.05)
    >>> model.learn_target(labels)
    >>> model.learn_columns(X)
    >>> model.selected
    [20, 10, 30]
    >>> max(model.p_values.values()) < 1e-6
    True
    """

    k: int | str | None = param(
        params.NamedOr(params.Choice((ALL,)), (params.Whole(1, optional=True),)),
        default=None,
        kw_only=False,
        default_text=f"{_K}, or as many as fdr lets pass",
    )
    score: str = param(params.Choice((*_OF_MOMENTS, *_OF_SAMPLES)), default="f")
    fdr: float | None = param(params.Real(0.0, open=True, optional=True, below=1.0), default=None)
    n_bins: int = param(params.Whole(2), default=10)
    binning: str = param(params.Choice(("frequency", "width")), default="frequency")
    n_outliers: int = param(params.Whole(0), default=0)
    window_size: int = param(params.Whole(2), default=200)

    # The target's classes, or bins, and how many there are; and the bins of a column.
    _codes = (np.empty(0, dtype=np.int64), 0)
    _bins = 0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {"k": 2, "score": "correlation", "fading_factor": 0.05, "renewal": 4.0, "slack": 1.5}
        yield {"k": 2, "score": "t", "max_features": 4, "grace_period": 20}
        yield {"fdr": 0.1}
        window = {"k": 2, "window_size": 20}
        yield window | {"score": "mutual_info", "n_bins": 3}
        yield window | {"k": "all", "score": "mutual_info", "binning": "width"}
        for score in _WITHOUT_P_VALUES:
            yield window | {"score": score, "target": "class"}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = f"Got k={self.k!r}, fdr={self.fdr!r} and score={self.score!r} instead."
        if self.k is not None and self.fdr is not None:
            raise ValueError(
                f"Expected k or fdr, not both. {given}\nHint: leave out k, and as many variables "
                "are selected as fdr lets pass."
            )
        if self.k == ALL and self.max_candidates is not None:
            raise ValueError(
                f"Expected max_candidates=None where k={ALL!r}, for the score of every variable is "
                f"kept. Got max_candidates={self.max_candidates!r} instead."
            )
        if self.fdr is not None and self.score in _WITHOUT_P_VALUES:
            raise ValueError(f"Expected a score with p-values, as fdr asks for. {given}")
        if self.permutations and self._by_window:
            raise ValueError(
                f"Expected permutations=0 with score={self.score!r}: permuted targets are compared "
                f"by correlation. Got: {self.permutations}.\n"
                f"Hint: score='f' and {', '.join(map(repr, _OF_MOMENTS[::2]))} have permutations."
            )

    @property
    def _asked(self) -> int | None:
        return _K if self.k is None and self.fdr is None else super()._asked

    def _check_target(self, c: int, *, is_class: bool) -> None:
        one, two = not is_class and c == 1, is_class and c <= 2
        takes = {
            "t": (one or two, "one numeric target or two classes"),
            "mutual_info": (one or is_class, "one numeric target or classes"),
            "misclassification": (is_class, "classes"),
            "margin": (is_class, "classes"),
        }
        fits, what = takes.get(self.score, (True, ""))
        if not fits:
            raise ValueError(
                f"Expected {what}, as score={self.score!r} requires. Got: {c} "
                f"{'classes' if is_class else 'numeric columns'}.\n"
                "Hint: target='class' takes numbers as classes, target='numeric' takes them as a "
                "quantity; score='f' takes any target."
            )

    def _take_target(self, target: Target) -> None:
        super()._take_target(target)
        if self._by_window:
            of_target = bins_of_target(target.n, self.n_bins)
            self._codes = codes_of(target, of_target, self.binning)
            self._bins = bins_of_columns(self._codes, self.n_bins)

    # Scores. Of each there is a strength, the greater the better, that ranks as it does.

    @property
    def _score_meaning(self) -> str:
        return _MEANINGS[self.score]

    @property
    def _by_window(self) -> bool:
        return self.score in _OF_SAMPLES

    def _noted(self) -> tuple[str, ...]:
        return noted(self.score) if self._by_window else ()

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        pool = self._columns
        assert isinstance(pool, Pool)  # noqa: S101
        scores = {}
        if self._by_window:
            sizes = self._bins, self.binning, self.n_outliers
            scores = score_columns(self.score, chunk, stats.m2.size, self._codes, *sizes)
        pool.admit(chunk, stats, self.n_columns, noted=scores)

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        if not self._by_window:
            return np.maximum(super()._bound(pool, rows), 0.0)
        return strength(self.score, rows["score"])

    def _relevance_at(self, bound: float) -> float:
        return bound

    def _best(self, held: Held) -> tuple[Places, Floats]:
        """Return the variables that vary, the best first, and their strengths."""
        # What does not vary, beside covariates, has none, and is never selected.
        found = held.relevance()
        if self._by_window:
            found = np.where(found >= 0.0, strength(self.score, held.noted("score")), -np.inf)
        order = most_relevant_first(found)
        order = order[np.isfinite(found[order])]
        return order, found[order]

    def _select(self, held: Held, k: int) -> Picks:
        order, found = self._best(held)
        if self.fdr is not None:
            m = max(1, self.n_columns - self.n_constant)
            passes = discoveries(self._p_values_of(held, order), m, self.fdr)
            order, found = order[passes], found[passes]
        return Picks(order[:k].tolist(), found[:k].tolist(), [0] * order[:k].size)

    def _refill(self, pool: Pool, limit: int) -> Picks:
        order, found = self._best(pool)
        return Picks(order[:limit].tolist(), found[:limit].tolist(), [0] * limit)

    def _p_values_of(self, held: Held, places: Places) -> Floats:
        if self._by_window:
            return p_values(held.noted("statistic")[places], held.noted("dof")[places])
        relevance, null = held.noise_relevance(places), self._null
        return chance(relevance, *self._freedom()) if null is None else null.p_values(relevance)

    def _freedom(self) -> tuple[float, int]:
        """Return how many observations there are, less covariates, and the rank of the target."""
        n, space = self._space_of_rows()
        return n - len(space.given), space.rank

    @property
    def n_certified(self) -> int:
        """How many leading picks are proven to be those over all columns at once."""
        # A discarded column may have had a smaller p-value than its relevance says.
        pool = self._columns
        if self.fdr is not None and isinstance(pool, Pool) and pool.scores and not pool.complete:
            return 0
        return super().n_certified

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable, in order, as the parameter `score` says."""
        places = np.asarray(self._picks().places, dtype=np.intp)
        if self._held is None or not places.size:
            return {}
        found = self._scores_of(self._held, places)
        return dict(zip(self._selected(), found.tolist(), strict=True))

    def _scores_of(self, held: Held, places: Places) -> Floats:
        if self._by_window:
            return held.noted("score")[places]
        found = held.relevance(places)
        if self.score != "correlation":
            found = f_statistic(found, *self._freedom())
        return np.sqrt(found) if self.score == "t" else found

    def _of_all_variables(self) -> tuple[list[Hashable], Floats, Floats | None]:
        """Return all variables that vary, as far as they are kept, their scores and p-values."""
        held = self._held
        if held is None:
            return [], np.zeros(0), np.zeros(0)
        places = np.flatnonzero(np.isfinite(held.relevance()))
        names = held.names
        has_p_values = self.score not in _WITHOUT_P_VALUES
        p_values = self._p_values_of(held, places) if has_p_values else None
        return [names[j] for j in places.tolist()], self._scores_of(held, places), p_values

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {} if self.score in _WITHOUT_P_VALUES else {"p_value": self.p_values}

    @property
    def p_values(self) -> dict[Hashable, float]:
        """Chance of noise to score as well, of each selected, in order; NaN if a score has none."""
        if self.score in _WITHOUT_P_VALUES or self._held is None:
            return dict.fromkeys(self._selected(), float("nan"))
        places = np.asarray(self._picks().places, dtype=np.intp)
        found = self._p_values_of(self._held, places)
        return dict(zip(self._selected(), found.tolist(), strict=True))

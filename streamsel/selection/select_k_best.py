"""SelectKBest: top k variables by a univariate score, or a false discovery rate (FDR) threshold."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.caching import cached_until_update
from streamsel.base.null import FDR_METHODS, fdr_discoveries
from streamsel.base.report import Report, ResultWarning
from streamsel.base.river import Supervised
from streamsel.base.selector import EVERY_COLUMN, Selector
from streamsel.base.significance import OwnTests
from streamsel.data.chunks import Chunk, Stats
from streamsel.params import param
from streamsel.selection._binned_scores import ScoreOptions
from streamsel.selection._markers import ClassComparisons, class_sizes
from streamsel.selection._pairwise import PAIRWISE_SCORES
from streamsel.selection._rank_scores import warning_of_ranks, warning_of_xi
from streamsel.selection._score_tests import SCORE_TESTS
from streamsel.selection._scores import (
    GROUP_SCORES,
    RANKS_PER_CLASS,
    SCORES,
    SampleScore,
    UnivariateScore,
)
from streamsel.selection._statistics import COLUMNS, Statistics
from streamsel.state.base import ColumnState, Floats, Indices, VariableState
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.pool import Picks, Pool, Ranking
from streamsel.targets.glm import FAMILIES
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.target import Target

# Default of k when fdr is None.
_K = 10
# Maximum number of markers of a class in a report.
_MAX_REPORTED_MARKERS = 25


class SelectKBest(Selector[VariableState], Supervised):
    r"""Select the top k variables by a univariate score, or all below a false discovery rate.

    Each variable is scored by itself, so redundant copies of a good variable are all selected. The
    cost is that of a ranking.

    Parameters
    ----------
    k
        Number of variables to select, or `"all"` for every variable that varies, in order of score.
        None means 10, or, with `fdr`, as many as pass.
    score
        Univariate score. `"correlation"`: relevance, for one numeric target $|r|$. `"f"`:
        $\frac{r^2}{1 - r^2} \frac{n - 1 - d}{d}$, $d$ the rank of the target; for classes the ANOVA
        $F$. `"t"`: $\sqrt{F}$ with $d = 1$; for two classes the pooled-variance two-sample $t$.
        `"mutual_info"`: mutual information in nats of the binned variable with the classes or the
        binned target, minus its mean under independence. `"misclassification"`: error rate in [0,
        1] of the best threshold, with the best class on each side; smaller is better. `"margin"`:
        the smallest distance between values of different classes, in standard deviations.
        `"rank"`: for a numeric target Spearman's $\rho$, ranked by its absolute value; for classes
        the Kruskal-Wallis statistic, $(n - 1) R^2$ of the mid-ranks on the classes, for two classes
        the square of the Mann-Whitney $z$. `"xi"`: Chatterjee's $\xi$ of a numeric target, or of
        two classes, as a function of the variable, which also detects relations that are not
        monotone.
    fdr
        Expected share of false discoveries among the selected variables, instead of k. Requires a
        score with p-values, i.e. neither `"misclassification"` nor `"margin"`.
    fdr_method
        How `fdr` is controlled. `"bh"`: the Benjamini-Hochberg procedure, for independent or
        positively dependent variables; `"by"`: the Benjamini-Yekutieli procedure, for any
        dependence, with less power.
    per_class
        With `score="rank"` and classes: compare each class with all others by the Mann-Whitney
        test, and select the k variables (or those that pass `fdr`) of each class with the largest
        $|z|$. `markers` has a table per class; `selected` is their union: the best variable of each
        class, then the second of each, and so on.
    n_bins, binning
        With `score="mutual_info"`: maximum number of bins of a numeric variable; `"frequency"`
        makes bins of equal counts, `"width"` bins of equal width. Fewer bins are made where a cell
        of the contingency table would hold fewer than 8 observations (but at least 3 bins for a
        variable, and 2 for a numeric target).
    n_outliers
        With `score="margin"`: number of smallest distances to ignore.
    pairwise
        Whether columns may have missing values, NaN: each is scored on its observed rows. Requires
        one of the first three scores.
    window_size
        On rows, with other scores than the first three or after groups of columns: number of rows
        buffered before they are scored as columns.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when the target arrives, for a target that the score
        does not support: `"t"` and `"xi"` require two classes or one numeric target;
        `"mutual_info"` and `"rank"` one numeric target or classes; `"misclassification"`,
        `"margin"` and `per_class` classes. For `per_class` with another score than `"rank"`, or
        with `max_candidates`.

    Notes
    -----
    **p-values of mutual information** are conditional on the bin sizes of both variables. For a 2 x
    2 table they are exact. For larger tables $2nI$ is scaled down by its exact mean under
    independence, and compared with $\chi^2$: a p-value of 5e-5 is then usually accurate to 20 %,
    and too large where cells hold fewer than 4 observations. Hence, with `fdr=0.05` and at least 60
    observations, at least one of 1,000 noise columns is selected in at most about 5 % of streams,
    whether targets and columns are numbers, counts or classes.

    **Rank tests** correct for ties. The p-value of $\rho$ is exact for at most 10 rows, and up to
    20 rows for variables of few distinct values. Otherwise it is that of a $t$ distribution with a
    saddlepoint correction of the tails, as those of $\rho$ are wider: by a factor of 2.4 at 1e-4
    with 14 rows, 1.25 with 50, 1.1 with 100. Without ties it is then accurate to 15 %
    from 0.05 to 1e-6, and with 20 rows or more to 3 %. If most values of
    the target and of the variable are equal, it may be several times too small (2 to 6 at 1e-4),
    and reports contain a warning: confirm these variables with `score="mutual_info"`, which tests
    2 x 2 tables exactly, or by `permutations` of another score. The p-value of the
    Kruskal-Wallis statistic is that of $\chi^2$, without continuity correction, and that of $z$ is
    two-sided and normal. In a table of markers `p_adjusted` is adjusted for all
    variables, but not for the number of classes.

    **Chatterjee's xi** is $\xi = 1 - n \sum |r_{i+1} - r_i| / (2 \sum l_i (n - l_i))$, with the
    observations in the order of the variable, $r_i$ the number of targets not above the i-th and
    $l_i$ the number not below it. The sum is averaged over all orders of equal values, so that the
    order of rows has no influence. The p-value is one-sided. If the values of the variable are
    distinct, it is normal with variance $2/(5n)$ for distinct targets, and exact for two classes,
    by the number of runs. Otherwise the distribution is Pearson's type III with the variance of
    permutations; for distinct targets this is the asymptotic variance times the ratio of
    permutation variances with equal values and without. In simulations with 400 rows, 0.8 to 1.2 %
    of noise columns had p-values below 0.01, whether numbers or counts, for a numeric target or
    equal classes. P-values of columns with equal values are too small if classes are unequal: with
    one row in ten in a class, 1 to 5 times as many as expected are below 0.001. Reports then
    contain a warning. Integers beyond $2^{53}$ are ranked as the nearest floats. With `"rank"` and
    `"xi"`, `above_noise` compares p-values with 5 % divided by the number of columns, and the
    noise floor is that of the relevance.

    **Score tests.** With `target_type="binary"` or `"count"` the score `"f"` is the $\chi^2$
    statistic of the score test given the covariates, and `"t"` its root. Where $\chi^2$ exceeds 4,
    the p-value is that of the saddlepoint approximation, which holds for few cases and rare
    variants, and costs about twenty further passes over the values of the column. `k` selects by
    the statistic, `fdr` by the p-values. The noise floor is that of the $\chi^2$ distribution;
    `above_noise` compares p-values.

    **Groups of columns** (`learn_group`, `stream.grouped`) are compared by p-values, with
    `score="f"` or `"correlation"`: those of Pillai's trace, or for one numeric target those of the
    regression on the group. The relevance of a group is that of a single column with the same
    p-value. The score `"f"` is the F statistic of the group. A group of m columns costs $O(n m^2)$;
    rows after groups are learnt by windows.

    **Cost.** One pass over each column, and for all scores but the first three a sort; `"rank"`
    counts small integers instead, and takes the stored values of a sparse column only. Learning a
    row costs $O(c)$ per feature, with $c$ the number of target columns, or its share of a window's
    sorts; transforming one $O(k)$. All classes of `per_class` use the same sort.

    **Memory.** $O(n c)$ for the target and $c + 4$ numbers per candidate, one more for
    misclassification and margin, two for rank and xi, three for mutual information, and $c + 3$ for
    `per_class`; with `max_candidates` memory is constant and the result still exact, with two
    exceptions. With `fdr`, some variables are lost if more than `max_candidates` would pass.
    With `fdr`, one of the first three scores, and a heavy-tailed numeric target or score tests, the
    pool keeps the columns of the largest relevance, but p-values are those of other statistics
    (normal scores of the target): fewer variables may be selected. Then `n_certified` is 0, and
    reports contain a warning. With other scores and `fdr`, the pool keeps the columns of the
    smallest p-values. `per_class` needs all variables. On rows $3c + 6$ numbers per variable, or a
    window of rows.

    **Rows.** The first three scores are functions of the moments, which rows accumulate: the result
    equals that on the columns of the same rows. The others support neither covariates, weights nor
    fading; their result is that of the last full window; before the first, all variables pass.

    **Missing and new features.** A column with a missing value is refused, unless `pairwise` is
    True: each column is then scored on its observed rows, like `pandas.DataFrame.corrwith`, with
    $r$, $F$ and $t$ of these rows and a p-value that depends on their number. Variables are ranked
    by this p-value; a column without values counts as constant. Covariates, weights, permutations
    and rows after columns are refused. In a row an absent variable is 0, and NaN or None counts as
    the variable's mean, with `pairwise` too; a new variable, class or target counts as 0 in earlier
    rows. Ties, within 1e-12, go to the column that arrived first.

    References
    ----------
    [^1]: Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. Journal of
    the Royal Statistical Society B 57, 289-300.

    [^2]: Benjamini, Y. and Yekutieli, D. (2001). The control of the false discovery rate in
    multiple testing under dependency. Annals of Statistics 29, 1165-1188.

    [^3]: Kruskal, W. H. and Wallis, W. A. (1952). Use of ranks in one-criterion variance analysis.
    Journal of the American Statistical Association 47, 583-621.

    [^4]: Chatterjee, S. (2021). A new coefficient of correlation. Journal of the American
    Statistical Association 116, 2009-2022.

    [^5]: Dey, R., Schmidt, E. M., Abecasis, G. R. and Lee, S. (2017). A fast and accurate
    algorithm to test for binary phenotypes. American Journal of Human Genetics 101, 37-49.

    Examples
    --------
    Three variables separate two classes; one of them is a noisy copy:

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

    Bound the expected share of false discoveries by 5 %:

    >>> model = SelectKBest(fdr=0.05)
    >>> model.learn_target(labels)
    >>> model.learn_columns(X)
    >>> model.selected
    [20, 10, 30]
    >>> max(model.p_values.values()) < 1e-6
    True

    The variables by which each class differs most from the others, by rank tests:

    >>> model = SelectKBest(k=2, score="rank", per_class=True)
    >>> model.learn_target(labels)
    >>> model.learn_columns(X)
    >>> markers = model.markers["sick"]
    >>> markers["name"].tolist(), markers["auc"].round(2).tolist(), markers["direction"].tolist()
    ([20, 10], [0.93, 0.93], ['higher', 'higher'])
    """

    _is_univariate = True

    k: int | str | None = param(
        params.ChoiceOrNumber(
            params.ChoiceRule((EVERY_COLUMN,)), (params.IntRule(1, optional=True),)
        ),
        default=None,
        kw_only=False,
        default_text=f"{_K}, or as many as pass fdr",
    )
    score: str = param(params.ChoiceRule(tuple(SCORES)), default="f")
    fdr: float | None = param(
        params.FloatRule(0.0, open=True, optional=True, below=1.0), default=None
    )
    fdr_method: str = param(params.ChoiceRule(FDR_METHODS), default="bh")
    per_class: bool = param(params.FlagRule(), default=False)
    n_bins: int = param(params.IntRule(2), default=10)
    binning: str = param(params.ChoiceRule(("frequency", "width")), default="frequency")
    n_outliers: int = param(params.IntRule(0), default=0)
    window_size: int = param(params.IntRule(2), default=200)
    pairwise: bool = param(params.FlagRule(), default=False)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 2}
        yield {
            "k": 2,
            "score": "correlation",
            "fading_factor": 0.05,
            "refresh_factor": 4.0,
            "hysteresis": 1.5,
        }
        yield {"k": 2, "score": "t", "max_features": 4, "grace_period": 20}
        yield {"fdr": 0.1}
        window = {"k": 2, "window_size": 20}
        yield window | {"score": "mutual_info", "n_bins": 3}
        yield window | {"k": "all", "score": "mutual_info", "binning": "width"}
        for score in ("misclassification", "margin"):
            yield window | {"score": score, "target_type": "class"}
        yield window | {"score": "rank"}
        yield {"score": "rank", "window_size": 20, "fdr": 0.5, "fdr_method": "by"}
        yield window | {"score": "rank", "per_class": True, "target_type": "class"}
        yield window | {"score": "xi"}

    def __post_init__(self) -> None:
        super().__post_init__()
        # What the score needs of the target, once it is known.
        self._prepared: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        got = f"Got: k={self.k!r}, fdr={self.fdr!r} and score={self.score!r}."
        if self.k is not None and self.fdr is not None:
            raise ValueError(
                f"Expected k or fdr, not both. {got}\nHint: leave out k to select all variables "
                "that pass fdr."
            )
        if self.k == EVERY_COLUMN and self.max_candidates is not None:
            raise ValueError(
                f"Expected max_candidates=None with k={EVERY_COLUMN!r}, which keeps the score of "
                f"every variable. Got: max_candidates={self.max_candidates!r}."
            )
        if self.fdr is not None and not SCORES[self.score].has_p_values:
            raise ValueError(f"Expected a score with p-values, as fdr requires. {got}")
        if self.per_class and self.score != "rank":
            raise ValueError(
                f"Expected score='rank' with per_class=True. Got: score={self.score!r}."
            )
        if self.per_class and self.max_candidates is not None:
            raise ValueError(
                "Expected max_candidates=None with per_class=True: which variables are the best of "
                "a class is certain only if all are tracked. "
                f"Got: max_candidates={self.max_candidates!r}."
            )
        if self.target_type in FAMILIES and self.score not in SCORE_TESTS:
            raise ValueError(
                f"Expected score='f', 't' or 'correlation' with target_type={self.target_type!r}, "
                f"whose score test is a function of the correlation. {got}\n"
                "Hint: target_type='class' or 'numeric' supports other scores."
            )
        if self.pairwise:
            self._check_pairwise()
        if self.permutations and self._by_window:
            raise ValueError(
                f"Expected permutations=0 with score={self.score!r}: permutations need a score "
                f"based on correlation. Got: {self.permutations}.\n"
                "Hint: use score='f' or 'correlation' or 't'."
            )

    def _check_pairwise(self) -> None:
        """Raise ValueError for parameters that need all values of a column."""
        for name, is_valid, expected in (
            ("score", self.score in PAIRWISE_SCORES, "'f', 't' or 'correlation'"),
            ("target_type", self.target_type not in FAMILIES, "another than 'binary' and 'count'"),
            ("covariates", self.covariates is None, "None"),
            ("permutations", not self.permutations, "0"),
        ):
            if not is_valid:
                text = f"{expected} with pairwise=True, for columns with missing values"
                value = getattr(self, name)
                raise params.parameter_error(type(self).__name__, name, text, value)

    @property
    def _takes_generated(self) -> bool:
        return super()._takes_generated and not self._univariate.needs_samples

    @property
    def _allows_missing(self) -> bool:
        return self.pairwise

    def _normal_scores(self) -> NormalScores | None:
        # Scores of the values have p-values of their own.
        return None if self.pairwise or self._by_window else super()._normal_scores()

    def _observed_moments(self, chunk: Chunk, stats: Stats) -> Stats:
        moments: Stats = self._prepared.moments(chunk, stats)
        return moments

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        self._refuse_rows_after_columns()
        super()._learn_row(x, y, w)

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:
        self._refuse_rows_after_columns()
        super()._learn_rows(X, y, w)

    def _refuse_rows_after_columns(self) -> None:
        if self.pairwise and self._columns is not None:
            raise ValueError(
                "Expected columns, as the model has learnt columns with pairwise=True, each on "
                "rows of its own. Got: a row.\n"
                "Hint: learn the rows with model.clone()."
            )

    @property
    def _n_requested(self) -> int | None:
        # With per_class the number of variables depends on the overlap of the classes.
        return None if self.per_class else self._n_best

    @property
    def _n_best(self) -> int | None:
        """Number of variables requested, of each class with `per_class`; None for all."""
        return _K if self.k is None and self.fdr is None else super()._n_requested

    def _check_target(self, c: int, *, is_class: bool) -> None:
        targets = self._univariate.targets
        if not targets.includes(c, is_class=is_class):
            option = f"score={self.score!r}" if not self.per_class else "per_class=True"
            raise ValueError(
                f"Expected {targets.name}, as {option} requires. Got: {c} "
                f"{'classes' if is_class else 'numeric columns'}.\n"
                "Hint: target_type='class' treats numbers as classes, target_type='numeric' as a "
                "quantity; score='f' supports any target."
            )

    def _take_target(self, target: Target) -> None:
        if self.pairwise and target.covariate_kinds:
            raise ValueError(
                "Expected no covariates with pairwise=True, for columns with missing values. Got: "
                "covariates.\nHint: impute the columns, for example with streamsel.stream.clean."
            )
        super()._take_target(target)
        options = ScoreOptions(self.n_bins, self.binning, self.n_outliers)
        self._prepared = self._univariate.prepare(target, options)

    # Scores

    @property
    def _univariate(self) -> UnivariateScore:
        if self._phase.group_counts is not None:
            return GROUP_SCORES[self.score]
        if self.target_type in FAMILIES:
            return SCORE_TESTS.get(self.score, SCORES[self.score])
        if self.pairwise and not self._phase.on_rows:
            return PAIRWISE_SCORES.get(self.score, SCORES[self.score])
        return RANKS_PER_CLASS if self.per_class else SCORES[self.score]

    @property
    def _score_meaning(self) -> str:
        return self._univariate.meaning

    @property
    def _by_window(self) -> bool:
        return SCORES[self.score].needs_samples

    def _extra_fields(self) -> Mapping[str, tuple[int, ...]]:
        return self._univariate.field_shapes(self._prepared)

    def _new_groups(self, n: int) -> ColumnState:
        if self.score not in GROUP_SCORES or self.pairwise:
            option = "pairwise=True" if self.pairwise else f"score={self.score!r}"
            raise ValueError(
                "Expected score='f' or 'correlation', and pairwise=False, with groups of columns, "
                f"which are compared by their F tests. Got: {option}."
            )
        return GroupPool(
            self._significance.known_space,
            n,
            self.max_candidates,
            normal_scores=self._normal_scores(),
        )

    def _add_columns(self, pool: ColumnState, chunk: Chunk, stats: Stats) -> None:
        assert isinstance(pool, Pool)  # noqa: S101
        fields = self._univariate.of_chunk(chunk, stats, self._prepared, self.n_jobs)
        pool.admit(chunk, stats, self.n_columns, fields)

    def _ranking(self) -> Ranking:
        return self._univariate.ranking(by_p_value=self.fdr is not None)

    def _best(self, view: VariableState) -> tuple[Indices, Floats]:
        """Return the indices of the variables that vary, best first, and their strengths."""
        # A variable that is constant after adjustment for covariates has relevance -inf.
        strengths = self._univariate.strengths(view)
        order = argsort_by_relevance(strengths)
        order = order[np.isfinite(strengths[order])]
        return order, strengths[order]

    def _select(self, view: VariableState, k: int) -> Picks:
        if self.per_class:
            return ClassComparisons.of(view).union(self._n_best, self.fdr, self.fdr_method)
        order, strengths = self._best(view)
        if self.fdr is not None:
            m = max(1, self._phase.n_varying)
            passes = fdr_discoveries(self._p_values_of(view, order), m, self.fdr, self.fdr_method)
            order, strengths = order[passes], strengths[passes]
        return Picks(order[:k].tolist(), strengths[:k].tolist(), [0] * order[:k].size)

    def _p_values_of(self, view: VariableState, indices: Indices) -> Floats:
        return self._univariate.p_values(view, indices, self._significance)

    def _scores_of(self, view: VariableState, indices: Indices) -> Floats:
        return self._univariate.scores(view, indices, self._significance)

    def _relevances(self, view: VariableState, indices: Indices) -> Floats:
        return self._univariate.relevance(view, indices)

    def _noise_relevance(self) -> list[float]:
        state, indices = self._state, self._picked()
        if state is None or not (self.pairwise or self._univariate.tests_noise):
            return super()._noise_relevance()
        values = self._univariate.noise_relevance(state, indices, self._significance)
        return [*values.tolist()]

    @property
    def n_certified(self) -> int:
        """Number of leading picks certified to be those of a selection over all columns at once.

        With `fdr` and a score of the values, such as `"xi"`, those whose p-value is below that of
        every discarded column, in order of score.
        """
        if self._may_miss_discoveries:
            return 0
        state, score, indices = self._state, self._univariate, self._picked()
        if self.fdr is None or state is None or not isinstance(score, SampleScore):
            return super().n_certified
        found = score.evidence(state, indices, self._significance)
        return state.count_certified(found.tolist(), [0] * indices.size)

    @property
    def _may_miss_discoveries(self) -> bool:
        """Whether a discarded column may have a smaller p-value than those that were kept.

        This may happen with normal scores, in score tests, and in files of earlier versions, whose
        pools of other scores were not ranked by p-value.
        """
        pool = self._columns
        if self.fdr is None or not isinstance(pool, Pool) or pool.complete:
            return False
        is_other = pool.normal_scores is not None or self.target_type in FAMILIES
        return is_other or pool.has_other_bound

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable, in order, as defined by the parameter `score`."""
        indices = self._picked()
        if self._state is None or not indices.size:
            return {}
        values = self._scores_of(self._state, indices)
        return dict(zip(self._selected(), values.tolist(), strict=True))

    def _all_scores(self) -> tuple[list[Hashable], Floats, Floats | None]:
        """Return the names, scores and p-values of all tracked variables that vary."""
        view = self._state
        if view is None:
            return [], np.zeros(0), np.zeros(0)
        indices = np.flatnonzero(np.isfinite(view.relevance()))
        names = view.names
        p_values = self._p_values_of(view, indices) if self._univariate.has_p_values else None
        return [names[j] for j in indices.tolist()], self._scores_of(view, indices), p_values

    @cached_until_update
    def _own_tests(self) -> OwnTests | None:
        score = self._univariate
        if score.p_values_of_relevance or self._significance.null is not None:
            return None
        state, p_values = self._state, None
        if state is not None and state.complete and state.names:
            p_values = self._all_scores()[2]
        return OwnTests(p_values, score.tests_noise)

    def _extra_report_columns(self) -> Mapping[str, Mapping[Hashable, float]]:
        found: dict[str, Mapping[Hashable, float]] = {}
        view = self._state
        if view is not None:
            for title, values in self._statistics(view).effects(self._picked()).items():
                found[title] = dict(zip(self._selected(), values.tolist(), strict=True))
        return found | ({"p_value": self.p_values} if self._univariate.has_p_values else {})

    def _statistics(self, view: VariableState) -> Statistics:
        return Statistics(view, self._univariate, self._phase, self._significance)

    def statistics(self, metadata: Any = None, columns: str = "all") -> dict[str, NDArray[Any]]:
        r"""Return a table of the statistics of all columns, or of the selected ones.

        Parameters
        ----------
        metadata
            Metadata of columns to include, such as `ColumnStream.column_metadata`: a mapping of
            arrays of equal length, or a frame of any library supported by narwhals. `"name"`, or
            else the first entry, has the names of columns.
        columns
            `"all"`: all tracked variables that vary, in order of arrival. `"selected"`: the
            selected ones, in order.

        Returns
        -------
        A dict: title -> array with one number or text per variable; `pandas.DataFrame` takes it.

        | title | content |
        |---|---|
        | `name` | name of the variable |
        | as in `metadata` | its metadata, None if none; except titles that this table has |
        | `effect_allele_frequency` | half the mean, if `metadata` has `effect_allele` |
        | `n` | number of observations: rows, with `pairwise` the observed ones |
        | `mean` | mean of the variable |
        | `effect` | slope $b$ of the target on the variable, given the covariates |
        | `standard_error` | its standard error $s$ |
        | `score` | score, as defined by the parameter `score` |
        | `p_value` | p-value, as in `p_values` |
        | `p_bh`, `p_by` | adjusted for all columns: Benjamini-Hochberg, Benjamini-Yekutieli |
        | `p_adjusted` | adjusted by permutations, as in `adjusted_p_values` |

        Statistics that do not exist have no entry: effects if the target has several columns or
        more than two classes, or the score is not a function of moments; p-values if the score has
        none; `p_adjusted` without permutations; the frequency where `mean` is not the plain mean of
        the rows: with weights, relatedness, or covariates and the target type `"binary"` or
        `"count"`.

        Raises
        ------
        ValueError
            For another value of `columns`; for `metadata` with arrays that are not one-dimensional
            or not of equal length, and for one without any column of the model.
        TypeError
            If `metadata` is neither a mapping nor a frame; for names that are not hashable.

        Notes
        -----
        For two classes, `effect` is the slope of the indicator (0 or 1) of the second class in
        sorted order. $(b / s)^2$ is the $F$ statistic: effects, standard errors and p-values are
        those of least squares on the variable and the covariates, or with relatedness of
        generalised least squares. With `target_type="binary"` or `"count"`, $b = U / V$ is the
        one-step estimate of the log odds ratio or log rate ratio, and $s = V^{-1/2}$, from the
        score $U$ and its variance $V$: $(b / s)^2$ is the score statistic, and the estimate is too
        small where effects are large.

        p-values differ from those of $b / s$ in three cases. With permutations they are those of
        permuted targets. If a numeric target has heavy tails, they are those of its normal scores,
        whereas the effect is on the scale of the target; not so with relatedness. For a GLM they
        are saddlepoint approximations where $|b / s| > 2$.

        `mean` is the estimate that the effect is based on: the weighted mean with weights, or with
        a GLM, whose variances are the weights; the generalised least squares estimate with
        relatedness. With weights the number of observations in $s$ is $(\sum w)^2 / \sum w^2$.

        With `max_candidates` the table has the candidates; `p_bh` and `p_by` are then upper bounds,
        adjusted for all columns that were learnt. Costs $O(c)$ per variable and a sort of the
        p-values; memory is that of the table.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = rng.integers(0, 3, size=(200, 5)).astype(np.int8)
        >>> model = SelectKBest(1)
        >>> model.learn_target(0.5 * X[:, 3] + rng.normal(size=200))
        >>> model.learn_columns(X)
        >>> table = model.statistics(columns="selected")
        >>> list(table)
        ['name', 'n', 'mean', 'effect', 'standard_error', 'score', 'p_value', 'p_bh', 'p_by']
        >>> table["name"], table["effect"].round(2), table["standard_error"].round(2)
        (array([3], dtype=object), array([0.46]), array([0.08]))
        """
        if not isinstance(columns, str) or columns not in COLUMNS:
            expected = f"one of {', '.join(map(repr, COLUMNS))}"
            raise params.parameter_error("statistics", "columns", expected, columns)
        if self._state is None:
            return {"name": np.empty(0, dtype=object)}
        picked = self._picked() if columns == "selected" else None
        return self._statistics(self._state).table(metadata, picked)

    @property
    def p_values(self) -> dict[Hashable, float]:
        """p-value of each selected variable, in order; NaN if the score has none."""
        if not self._univariate.has_p_values or self._state is None:
            return dict.fromkeys(self._selected(), float("nan"))
        indices = self._picked()
        values = self._p_values_of(self._state, indices)
        return dict(zip(self._selected(), values.tolist(), strict=True))

    @property
    def markers(self) -> dict[Hashable, dict[str, NDArray[Any]]]:
        """Markers of each class, with `per_class=True`: class -> table, best first.

        A table has one array per title, as that of `statistics`: the `name` of a variable, `z` of
        the Mann-Whitney test of the class against all other observations, `auc`, the probability
        that a value of the class is larger than one of the others (ties count half), its
        `direction` (`"higher"` or `"lower"` in the class), the `p_value`, and `p_adjusted` for all
        variables, by `fdr_method`. Empty before any data.
        """
        target, state = self._target, self._state
        if not self.per_class or state is None or not isinstance(target, Target):
            return {}
        found, sizes = ClassComparisons.of(state), class_sizes(target)
        tables = {}
        for c, name in enumerate(target.names):
            best = found.best(c, self._n_best, self.fdr, self.fdr_method)
            tables[name] = found.table(c, best, state.names, sizes, self.fdr_method)
        return tables

    def _own_warnings(self) -> Iterator[ResultWarning]:
        warning_of = {"rank": warning_of_ranks, "xi": warning_of_xi}.get(self.score)
        if warning_of is not None and isinstance(self._target, Target):
            warning = warning_of(self._target)
            if warning is not None:
                yield warning
        if self._may_miss_discoveries:
            yield _pool_warning()

    def report(self) -> Report:
        """Return the results as a `Report`; `details["markers"]` has the best 25 of each class."""
        report = super().report()
        report = replace(report, warnings=(*report.warnings, *self._own_warnings()))
        if not self.per_class:
            return report
        rows = [
            {"class": name} | row
            for name, table in self.markers.items()
            for row in _first_rows(table, _MAX_REPORTED_MARKERS)
        ]
        return replace(report, details=report.details | {"markers": rows})


def _pool_warning() -> ResultWarning:
    return ResultWarning(
        "pool",
        "The bounded pool keeps the columns of the largest relevance or score, but fdr selects by "
        "p-values that do not follow from it, such as those of normal scores of a heavy-tailed "
        "target: further variables may pass. "
        "Hint: a larger max_candidates (--max-candidates), or none",
    )


def _first_rows(table: Mapping[str, NDArray[Any]], n: int) -> list[dict[str, Any]]:
    """Return the first n rows of a table as dicts."""
    columns = (values[:n].tolist() for values in table.values())
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]

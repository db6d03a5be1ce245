"""RidgeComponents: canonical ridge on columns weighted by their relevance."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import Extractor
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.linear_map import LinearMap
from streamsel.base.null import noise_floor
from streamsel.base.report import NOISE_LEVEL, Report, number
from streamsel.base.river import Supervised
from streamsel.base.undo import learn_atomically
from streamsel.extraction import _second_pass
from streamsel.extraction._canonical_ridge import (
    SolveOptions,
    WeightedSolution,
    WeightedVariables,
    loadings_by_gram,
    regressed_loadings,
    solve_by_correlations,
    solve_by_gram,
    solve_from_columns,
)
from streamsel.extraction._loadings import LoadingsPass, LoadingsRequest
from streamsel.extraction._regressed_loadings import largest_signs
from streamsel.extraction._ridge_criteria import CRITERIA
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.gram.gram import Gram, check_rows
from streamsel.state.gram.pivoted_factor import bound_rank
from streamsel.state.gram.pooled import GramState
from streamsel.state.gram.view import JointState, adjusted_squares, among
from streamsel.state.gram.weighting import RelevanceWeights
from streamsel.state.moments.joint import WeightedCrossMoments
from streamsel.state.pool.relevance_pool import RelevancePool
from streamsel.state.pool.representatives import Representatives, select_representatives
from streamsel.targets.target import Target


class RidgeComponents(Extractor, Supervised):
    r"""Ridge components: canonical ridge on relevance-weighted columns, then PCA of the residual.

    Every column is weighted by a power of its relevance to the target, so that noise is attenuated
    and weak signals of many columns add up. The first components are those of ridge regression on
    the weighted columns, as many as the target has dimensions; the others are the principal
    components of the residual.

    Parameters
    ----------
    max_support
        None uses all columns, exactly and in any order, by the $n \times n$ Gram matrix of the
        observations. A number $m$ keeps a pool of $m$ to $2m$ columns that represent the others:
        memory is constant in the number of columns, observations are unlimited, and components have
        at most $m$ variables.
    relevance_power
        The power $\gamma$ in the weight $\rho^\gamma$ of a column of relevance $\rho$: 0 for equal
        weights, 8 for a target that few variables explain. With several powers, a column's squared
        weights are summed, each power having an equal share; each power needs a Gram matrix of its
        own.
    alpha
        The ridge: chosen by restricted maximum likelihood, `"reml"`, or by generalised
        cross-validation, `"gcv"`; or a number, relative to the mean eigenvalue of the weighted
        columns.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, and without `max_support` for a target with more
        observations than `max_gram_rows`.

    Notes
    -----
    **Method.** With $U$ an orthonormal basis of the target space, $x$ a centred column of length 1,
    $\rho = \|U^T x\|$ and $D = \rho^\gamma$, scaled so that the mean of the squares is 1, the
    weighted columns are $XD = E \sqrt{d} V^T$, and $h = \sqrt{d} E^T U$. The ridge $\lambda$ is
    chosen from a grid relative to the mean of the eigenvalues $d$. With $S = (d + \lambda)^{-1/2}
    h$ and $Q$ the eigenvectors of $S^T S$, the first components are $F = (d + \lambda)^{-1} h Q$,
    each of length 1 in the weighted columns: canonical ridge. The others are the leading
    eigenvectors of $C - CF(F^TCF)^{-1}F^TC$, with $C = \mathrm{diag}(d)$, made uncorrelated with
    $F$, and scaled by one factor so that on the rows learnt none has a larger variance than any of
    $F$. Finally all are scaled by one factor so that the largest variance is 1: later components
    are smaller, as they are less relevant, which suits nearest neighbours. Among the columns of
    the pool, scaled to length 1, the largest loading is positive.

    **Loadings.** The Gram matrix contains the observations, and `embedding` is exact after one
    pass. Loadings, and thus transforms of new rows, need the columns. While the pool alongside the
    matrix holds all columns, loadings are exact too. Otherwise the pool has the most relevant
    columns, two to four times `max_loadings`. The components are regressed on twice `max_loadings`
    of these that represent the others (ridge regression) until `learn_loadings` makes a second
    pass. Loadings are then exact for up to `max_loadings` columns; with more, the columns of
    largest loadings are kept and the residual is regressed on them.

    **Representatives.** With `max_support` a column is admitted if its $\rho^2$ is above a
    threshold, with weight $\mu = 1$. When the pool holds $2m$ columns, it keeps the first $m$
    pivots of a Cholesky factorisation of their correlations $R$ weighted by $\sqrt{\mu} \rho$,
    which are relevant and dissimilar. An evicted column adds $\mu R^4$ to the weight of the kept
    column most similar to it. In the solution $D = \rho^\gamma \sqrt{\mu}$. The result depends
    slightly on the order of the columns, and not on how they are cut into blocks.

    **Cost.** With a Gram matrix $n^2$ per column, as one matrix product for hundreds of columns,
    half of it saved by symmetry; $s^2$ for a sparse column of $s$ values. Computing components
    takes $4 n^3 / 3$. With `max_support` a discarded column costs one pass over its values;
    eviction takes $O(n m^2 + m^3)$ once for every $m$ admitted columns, components $O(m^3)$.
    Learning a row costs $O(m^2)$ for its $m$ features, a refresh on rows $O(m^3)$, transforming a
    row $O(m q)$.

    **Memory.** $4 n^2$ bytes for each power, up to 1,024 rows $8 n^2$, twice that while columns
    arrive, and $8 n^2$ more while components are computed; $32 n m$ for the pool, $m$ being
    `max_loadings`. With `max_support` only $16 n m$. On rows $2 m^2$ numbers, $m$ at most
    `max_features`.

    **Rows.** The joint moments of the representatives, with their weights, and of all variables
    that arrive with rows, with weight 1, are tracked. Components are those of all rows so far, and
    the same as from columns. See `max_features` for variables that arrive late.

    **Significance.** If variables outnumber rows, a component of noise is as relevant on the rows
    learnt as one of signal. `n_above_noise` counts the variables above the noise floor: if it is 0,
    the result may be due to chance. A variable that is relevant only jointly with another is not
    found, because variables are weighted by their individual relevance.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    **Stable transforms.** On rows, a transform uses the components of the last refresh. These are
    rotated to differ least from those in use before (orthogonal Procrustes, under the covariance of
    the rows so far). `loadings` and `relevance` are those of the current components.

    References
    ----------
    [^1]: Vinod, H. D. (1976). Canonical ridge and econometrics of joint production. Journal of
    Econometrics 4(2), 147-166.

    [^2]: Patterson, H. D. and Thompson, R. (1971). Recovery of inter-block information when block
    sizes are unequal. Biometrika 58(3), 545-554.

    Examples
    --------
    100 of 2,000 columns are noisy measurements of the signal that determines the target:

    >>> import numpy as np
    >>> from streamsel import RidgeComponents

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=300)
    >>> X = rng.normal(size=(300, 2_000))
    >>> X[:, :100] += 0.5 * hidden[:, None]
    >>> y = np.where(hidden + 0.3 * rng.normal(size=300) > 0.0, "yes", "no")

    >>> model = RidgeComponents(n_components=2)
    >>> model.learn_target(y[:200])
    >>> model.learn_columns(X[:200])
    >>> model.n_above_noise
    77

    On new rows the first component recovers the signal:

    >>> Z = model.transform_many(X[200:])
    >>> bool(abs(np.corrcoef(Z[:, 0], hidden[200:])[0, 1]) > 0.9)
    True

    It also learns from rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[200])), y[200])
    >>> list(model.transform_one(dict(enumerate(X[201]))))
    ['ridgecomponents0', 'ridgecomponents1']
    """

    _weights_replicate_rows: ClassVar[bool] = False
    _column_state_type = Representatives
    _row_state_type = WeightedCrossMoments
    _loads_all_variables = True

    max_support: int | None = param(params.IntRule(1, optional=True), default=None)
    relevance_power: float | tuple[float, ...] = param(
        params.NumberOrTuple(params.FloatRule(0.0)), default=2.0
    )
    alpha: str | float = param(
        params.ChoiceOrNumber(
            params.ChoiceRule(tuple(CRITERIA)), (params.FloatRule(0.0, open=True),)
        ),
        default="reml",
    )
    max_features: int | None = max_joint_features()
    max_loadings: int = _second_pass.max_loadings_param(
        """
        Number of variables with loadings after a second pass (`learn_loadings`). Without one, twice
        as many have loadings, and rows continue from them; a pool of at most four times as many
        columns is kept alongside the Gram matrix.
        """
    )
    max_gram_rows: int = _second_pass.max_gram_rows_param()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "warm_up": 10, "max_loadings": 20}
        yield {"n_components": 2, "max_support": 4, "relevance_power": (1.0, 2.0), "alpha": "gcv"}
        yield {"n_components": 3, "max_support": 8, "fading_factor": 0.05, "refresh_factor": 1.0}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_exceeds("n_components", self.n_components, "max_support")

    # State

    def _take_target(self, target: Target) -> None:
        if self.max_support is None:
            check_rows(
                target.n,
                self.max_gram_rows,
                "max_support=500 keeps a pool of as many columns instead, in constant memory.",
            )
        super()._take_target(target)

    @property
    def _powers(self) -> tuple[float, ...]:
        power = self.relevance_power
        return power if isinstance(power, tuple) else (power,)

    @property
    def _limit(self) -> int:
        return self.max_support or self.max_loadings

    def _new_columns(self, n: int) -> Representatives | GramState[RelevancePool]:
        target, space = self._target, self._space
        assert isinstance(target, Target)  # noqa: S101
        assert space is not None  # noqa: S101
        # No eviction happens before 2 m columns, so their noise floor is the one that matters.
        # That of permutations depends on the data.
        n_free = space.effective_rows - len(space.covariate_map)
        threshold = noise_floor(n_free, space.rank, 2 * self._limit, NOISE_LEVEL)
        if self.permutations:
            threshold = 0.0
        target_rows = target.Y[: target.c]
        if self.max_support is not None:
            return Representatives(space, n, self.max_support, threshold, target_rows)
        pool = RelevancePool(space, n, 2 * self.max_loadings, threshold, target_rows)
        gram = Gram(n, len(self._powers), self.n_jobs)
        return GramState(gram, pool, RelevanceWeights(space, self._powers))

    @property
    def _gram_state(self) -> GramState[RelevancePool] | None:
        """The state on columns, if it has a Gram matrix."""
        if self.max_support is not None:
            return None
        return cast("GramState[RelevancePool] | None", self._columns)

    @property
    def _pool(self) -> Representatives | RelevancePool | None:
        """The pool of columns; None on rows."""
        if self._gram_state is not None:
            return self._gram_state.pool
        return cast("Representatives | None", self._columns)

    def _new_row_extension(self) -> WeightedCrossMoments:
        return WeightedCrossMoments(self.fading_factor)

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        loadings = None if self._gram_state is None else self._gram_state.loadings
        if loadings is not None:
            loadings.expect_components(self.n_components)

    @property
    def _weighted_moments(self) -> WeightedCrossMoments:
        """The extension of the moments on rows."""
        return cast("WeightedCrossMoments", self._row_extension)

    # Components

    @cached_until_update
    def _solution(self) -> WeightedSolution | None:
        """Return the components; None if no column is relevant."""
        state, space = self._state, None if self._state is None else self._state.space
        if state is None or space is None or not space.rank or not state.names:
            return None
        pool = self._pool
        n = state.effective_rows if pool is None else space.effective_rows
        effective = float(n - len(space.covariate_map))
        rank = bound_rank(float(state.n), float(state.effective_rows if pool is None else state.n))
        options = SolveOptions(
            self.n_components, self.alpha, self._powers, effective, state.n, rank
        )
        if self._gram_state is not None:
            return solve_by_gram(self._gram_state, options)
        joint = cast("JointState", state)
        return solve_by_correlations(
            self._variables(joint, self._representative_weights()), options
        )

    def _representative_weights(self) -> Floats:
        """Return the weights of the variables in the state, as representatives of others."""
        if self._pool is not None:
            return self._pool.table["weight"]
        names = [] if self._state is None else self._state.names
        return self._weighted_moments.weights_of(names)

    def _variables(self, state: JointState, weights: Floats) -> WeightedVariables:
        """Return the variables with loadings: all in the state, or `max_support` of them."""
        # On rows some variables may be constant.
        indices = np.flatnonzero(adjusted_squares(state.space, state.stats()))
        weights = weights[indices]
        R, G = among(state.products(indices), indices), state.coordinates(indices)
        if self.max_support is not None and weights.size > self.max_support:
            kept = select_representatives(R, np.square(G).sum(axis=1), weights, self.max_support)
            weights, indices = kept.weight, indices[kept.indices]
            R, G = R[np.ix_(kept.indices, kept.indices)], G[kept.indices]
        return WeightedVariables(indices, weights, R, G)

    def _component_map(self) -> LinearMap:
        state, found, gram = self._state, self._solution(), self._gram_state
        if state is None or found is None:
            return LinearMap.empty(self.n_components)
        indices = found.indices
        if gram is None:
            weights = solve_from_columns(found)
        elif gram.loadings is not None:
            return LinearMap(*gram.loadings[:3])
        elif gram.complete:
            weights = loadings_by_gram(gram, found)
            weights *= largest_signs(weights)
        else:
            kept = gram.pool.representatives()
            indices, weights = kept.indices, regressed_loadings(gram, found, kept)
        stats = state.stats(indices)
        residual = adjusted_squares(state.space, stats)
        weights = weights / np.sqrt(np.where(residual > 0.0, residual, np.inf))[:, None]
        return LinearMap([state.names[index] for index in indices], stats.mean, weights)

    # Second pass

    def learn_loadings(
        self,
        X: Any,
        names: Sequence[Any] | None = None,
        to: str | Path | None = None,
        *,
        max_loadings: int | None = None,
    ) -> None:
        """Make a second pass over the columns, for the loadings of all of them, or of the largest.

        Parameters
        ----------
        X, names
            As in `learn_columns`: exactly the columns that were learnt, in any order.
        to
            Path of a `.csv` or `.parquet` file that receives the loadings of all columns, of any
            number, as they arrive: one line per column, with name, mean and one weight per
            component.
        max_loadings
            Number of variables with loadings, all in memory during the pass; None for the parameter
            of this name.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; for other columns than those learnt; and without a Gram matrix: with
            `max_support`, before columns, or after rows. The model is unchanged.

        Notes
        -----
        Without this pass the components are regressed on the variables of the pool; if the pool
        holds all columns, loadings are exact and nothing changes. Columns outside the pool that
        were exchanged or negated are not detected. Costs O(n q) per column.
        """
        _second_pass.learn_loadings(self, X, names, to, max_loadings)

    @property
    def _wants_second_pass(self) -> bool:
        return self._gram_state is not None and self._gram_state.lacks_loadings

    def _next_pass(self) -> LoadingsPass | None:
        return _second_pass.loadings_pass(self) if self._wants_second_pass else None

    def _apply_pass(self, request: Any, found: Any) -> None:
        del request
        learn_atomically(self, _second_pass.accept_loadings, self, found)

    def _loadings_request(self) -> tuple[GramState[RelevancePool], LoadingsRequest]:
        """Return the state, and what a second pass needs; ValueError if it is impossible."""
        state, found = self._gram_state, self._solution()
        if state is None or found is None:
            if self.max_support is not None:
                got = "max_support, which keeps a pool"
            else:
                got = "no columns yet" if self._state is None else "columns without any relevance"
            raise ValueError(
                f"Expected columns with a Gram matrix. Got: {got}.\n"
                "Hint: learn_columns(X) first, with max_support=None."
            )
        up = largest_signs(loadings_by_gram(state, found))
        return state, LoadingsRequest(
            duals=found.duals * up,
            scores=found.scores * up,
            n=found.problem.n,
            trace=found.trace,
            scales=found.scales,
            probes=state.pool.basis.T,
            gram_times_probes=found.gram_times_target,
        )

    # Results

    @property
    def fitted_alpha(self) -> float:
        """The ridge, relative to the mean eigenvalue of the weighted columns; NaN before a fit.

        The grid is 1e-5 to 1e5. The lower end means that the columns explain the target without
        regularisation, which is usual if they far outnumber the rows, also for noise.
        """
        found = self._solution()
        return np.nan if found is None else found.fit.alpha

    @property
    def n_above_noise(self) -> int:
        """Number of variables above the noise floor, `noise_floor()`.

        Discarded columns are counted by a histogram with bins of 1 / 4096 of relevance; on rows,
        tracked variables are counted. If it is 0, the result may be due to chance.
        """
        state, pool = self._state, self._pool
        if state is None or state.space is None:
            return 0
        threshold = self.noise_floor(NOISE_LEVEL)
        if pool is not None and not pool.complete:
            return pool.histogram.above(threshold)
        return int(np.count_nonzero(state.relevance() > threshold))

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance.

        If variables outnumber rows it is near 1 for any target, also for noise: `n_above_noise` is
        more informative.
        """
        found = self._solution()
        if found is None:
            return {}
        relevance = found.fit.relevance[: found.fit.n_existing].tolist()
        return dict(zip(self.components, relevance, strict=False))

    def _embedding(self) -> Floats:
        pool, found = self._pool, self._solution()
        if pool is None or found is None:
            return np.zeros((self.n_rows, 0))
        if self._gram_state is not None:
            up = largest_signs(loadings_by_gram(self._gram_state, found))
            return (found.scores * up)[:, : found.fit.n_existing]
        embedding: Floats = pool.samples(found.indices).T @ solve_from_columns(found)
        return embedding[:, : found.fit.n_existing]

    def report(self) -> Report:
        """Return the results as a `Report`: the source of the command's output and the HTML report.

        Returns
        -------
        One row per component: its relevance, and its loadings, the largest first. A component
        combines many variables, so its relevance is not compared with the noise floor;
        `n_above_noise` counts the variables above it.
        """
        report = super().report()
        found = [row | {"above_noise": None} for row in report.results]
        details: dict[str, Any] = {
            "n_above_noise": self.n_above_noise,
            "alpha": number(self.fitted_alpha),
        }
        if found and not details["n_above_noise"]:
            details["caution"] = "no variable is above the noise floor: this may all be chance"
        return replace(report, results=found, details=report.details | details)

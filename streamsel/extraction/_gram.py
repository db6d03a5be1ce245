"""Base classes of the linear methods on the Gram matrix of all columns."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import JointExtractor, LinearMap
from streamsel.base.report import Report
from streamsel.base.shared_gram import SharesGram
from streamsel.data.columns import Stats
from streamsel.extraction._canonical_ridge import (
    largest_signs,
    project_out,
    regress_scores,
    rescale_loadings,
    residual_trace,
)
from streamsel.extraction._eigen import GramImage, RefinementPass, SubspaceRefinement
from streamsel.extraction._loadings import LoadingsRequest
from streamsel.extraction._second_pass import SecondPass
from streamsel.params import param
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.gram.gram import check_rows
from streamsel.state.gram.pooled import SharedGram
from streamsel.state.gram.view import GramScale, GramView, gram_of_variables, residual_squares
from streamsel.state.moments.aligned_view import RowView
from streamsel.state.moments.moments import Moments
from streamsel.state.pool.pool import MOST_RELEVANT, Pool, Ranking, TopRanked
from streamsel.targets.target import Target


class GramSolution(NamedTuple):
    """Components, signed: the largest loading of each is positive.

    Parameters
    ----------
    scores, duals
        (s, k) scores of the observations, and α: loadings are (Dx̃)ᵀα.
    relevance
        (k,) of each.
    indices, scale
        (m,) indices of the variables with loadings, and their factors D.
    loadings
        (m, k) their exact loadings.
    trace, n, weight
        As in `GramView`.
    probes, gram_times_probes
        (s, j) random vectors, and their products with K.
    """

    scores: Floats
    duals: Floats
    relevance: Floats
    indices: Indices
    scale: Floats
    loadings: Floats
    trace: float
    n: float
    weight: float
    probes: Floats
    gram_times_probes: Floats


def _equal_scores(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    return np.ones(rows["m2"].size)


def _sums_of_squares(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    return rows["m2"]


class GramFunctionExtractor(JointExtractor):
    """An extractor of linear components, which `_dual_weights` gives from inner products."""

    # Whether a pool ranks columns by relevance, and not by variance.
    _ranks_by_relevance: ClassVar[bool] = False

    scale: bool = param(
        params.FlagRule(),
        default=False,
        doc="""
        Whether all columns are standardised to variance 1: for columns whose units are not
        comparable.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        """Return α (s, k) of the first k components, at most q: their scores are Kα."""

    def _candidate_indices(self, held: Any) -> Indices:
        """Return the indices of the variables that components may be made of."""
        return np.flatnonzero(residual_squares(held))

    def _ranking(self) -> Ranking:
        """Return how a pool ranks its columns."""
        if self._ranks_by_relevance:
            return MOST_RELEVANT
        return TopRanked(_equal_scores if self.scale else _sums_of_squares)

    def _relevances_of_stats(self, moments: Moments, stats: Stats) -> Floats:
        # On rows, the vocabulary evicts by the same ranking.
        if not self._ranks_by_relevance:
            return stats.m2
        return super()._relevances_of_stats(moments, stats)

    # Components

    @cached_until_update
    def _solution(self) -> GramSolution | None:
        """Return the components; None if there are no variables for them."""
        held = self._state
        if held is None or not held.names:
            return None
        if self._is_supervised and (held.space is None or not held.space.rank):
            return None
        indices = self._candidate_indices(held)
        if not indices.size:
            return None
        return self._solve(held, indices)

    def _solve(self, held: Any, indices: Indices) -> GramSolution:
        weight = self._unit_sum_of_squares(held)
        scale = self._scale_factors(held, indices, weight)
        inner, weighted = gram_of_variables(held, indices, scale, self._gram_scale(held, weight))
        return self._solution_of(inner, weighted, indices, scale)

    def _solution_of(
        self, inner: GramView, weighted: Floats, indices: Indices, scale: Floats, probes: int = 0
    ) -> GramSolution:
        alpha = self._dual_weights(
            inner, inner.size if self._fixed_n_components is None else self._fixed_n_components
        )
        loadings = weighted @ alpha
        up = largest_signs(loadings)
        scores = inner.matmul(alpha) * up
        length = np.linalg.norm(scores, axis=0)
        if self._is_supervised:
            along = np.linalg.norm(inner.U.T @ scores, axis=0)
            relevance = np.minimum(along / np.where(length > 0.0, length, 1.0), 1.0)
        else:
            relevance = np.ones(length.size)
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=(inner.size, probes))
        return GramSolution(
            scores=scores,
            duals=alpha * up,
            relevance=relevance,
            indices=indices,
            scale=scale,
            loadings=loadings * up,
            trace=inner.trace,
            n=inner.n,
            weight=inner.weight,
            probes=probe,
            gram_times_probes=inner.matmul(probe),
        )

    def _unit_sum_of_squares(self, held: VariableState) -> float:
        """Return the sum of squares of a variable of variance 1."""
        n = float(held.n)
        equal = held.effective_rows if isinstance(held, RowView) else n
        return max(n - n / equal, 0.0) if equal else 0.0

    def _gram_scale(self, held: VariableState, weight: float) -> GramScale:
        n = held.effective_rows if isinstance(held, RowView) else float(held.n)
        space = held.space
        n_covariates = 0 if space is None else len(space.covariate_map)
        cyy = np.zeros((0, 0)) if space is None else space.target_products
        return GramScale(n - n_covariates, float(held.n), weight, 0, 0.0, cyy)

    def _scale_factors(self, held: VariableState, indices: Indices, weight: float) -> Floats:
        """Return the factors of centred variables, (m,)."""
        if not self.scale:
            return np.ones(indices.size)
        scale: Floats = np.sqrt(weight / residual_squares(held, indices))
        return scale

    def _pool_loadings(self, found: GramSolution) -> Floats:
        """Return the loadings of the variables in the state, (m, k), for transforms."""
        return found.loadings

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        del names  # the map contains all variables with loadings
        held, found = self._state, self._solution()
        if held is None or found is None:
            return LinearMap([], np.zeros(0), np.zeros((0, self._fixed_n_components or 1)))
        weights = found.scale[:, None] * self._pool_loadings(found)
        mean = held.stats(found.indices).mean
        names = [held.names[index] for index in found.indices]
        return LinearMap(names, mean, self._pad_components(weights))

    def _pad_components(self, weights: Floats) -> Floats:
        """Return weights (m, k) with zeros for the components that do not exist."""
        k = weights.shape[1]
        width = max(1, k) if self._fixed_n_components is None else self._fixed_n_components
        return np.pad(weights, ((0, 0), (0, width - k)))

    # Results

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance.

        Without a target it is 1.
        """
        found = self._solution()
        if found is None:
            return {}
        names = self._names_of(found.relevance.size)
        return dict(zip(names, found.relevance.tolist(), strict=True))

    def _embedding(self) -> Floats:
        found = self._solution()
        return np.zeros((self.n_rows, 0)) if found is None else found.scores.copy()


# Number of random vectors by which a second pass verifies that the columns are the same.
_PROBES = 2
# Number of axes kept in addition to twice the components.
_SPARE_AXES = 10


class GramExtractor(GramFunctionExtractor, SecondPass, SharesGram):
    """A linear extractor on the Gram matrix of all columns; on rows, on their joint moments."""

    _column_state_type = SharedGram
    # Whether the method needs the exact product of the Gram matrix with the target.
    _needs_target_products: ClassVar[bool] = False

    @property
    def _full_matrix_hint(self) -> str:
        """Hint for more rows than a Gram matrix is kept for; "" if leading axes suffice."""
        return ""

    def _excluded_directions(self, held: SharedGram) -> Floats | None:
        """Return directions that components must be orthogonal to, (n, r); None for none."""
        del held
        return None

    @property
    def _n_axes(self) -> int:
        """Number of leading axes kept in place of a Gram matrix."""
        return 2 * (self._fixed_n_components or 0) + _SPARE_AXES

    # State

    def _new_columns(self, n: int) -> SharedGram:
        rank = None
        if n > self.max_gram_rows:
            if self._full_matrix_hint:
                check_rows(n, self.max_gram_rows, self._full_matrix_hint)
            rank = self._n_axes
        target = self._target
        held = SharedGram(
            self._space,
            n,
            self.max_loadings,
            self._ranking(),
            scaled=self.scale,
            rank=rank,
            n_jobs=self.n_jobs,
            target_rows=target.Y[: target.c] if isinstance(target, Target) else None,
        )
        if isinstance(target, Target) and self._needs_target_products:
            held.track_exactly()
        return held

    def _check_shared(self, held: SharedGram) -> None:
        n, rank = held.n, held.rank
        if rank is None:
            return
        if self._full_matrix_hint:
            check_rows(n, self.max_gram_rows, self._full_matrix_hint)
        if rank < self._n_axes:
            raise ValueError(
                f"Expected a model of at least {self._fixed_n_components} components, as {n} "
                f"rows are too many for a Gram matrix. Got: {rank} axes.\n"
                "Hint: let the model with most components learn, and the others share its state."
            )

    def report(self) -> Report:
        """Return the results as a `Report`: the source of the command's output and the HTML report.

        Returns
        -------
        One row per component, the most relevant first: its relevance, whether that is above the
        noise floor of single columns, and its loadings, the largest first.
        """
        report, state = super().report(), self._columns
        if not isinstance(state, SharedGram):
            return report
        axes = f"incremental SVD of rank {state.rank}"
        facts = {
            "gram_state": "Gram matrix" if state.rank is None else axes,
            "n_passes": self.n_passes,
        }
        return replace(report, details=report.details | facts)

    # Components

    def _solve(self, held: Any, indices: Indices) -> GramSolution:
        if not isinstance(held, SharedGram):
            return super()._solve(held, indices)
        scale = self._scale_factors(held, indices, self._unit_sum_of_squares(held))
        weighted = self._weighted_samples(held, indices, scale)
        if held.rank is None:
            return self._solution_of(held.inner(), weighted, indices, scale, _PROBES)
        if held.complete:
            # All columns are available, so their inner products are exact.
            about = self._gram_scale(held, self._unit_sum_of_squares(held))
            inner, along = gram_of_variables(held, indices, scale, about)
            E = weighted.T @ (along / inner.K)
        else:
            inner, E = held.inner_along_axes()
            along = weighted @ E
        found = self._solution_of(inner, along, indices, scale)
        return found._replace(
            scores=E @ found.scores,
            duals=E @ found.duals,
            probes=E @ found.probes,
            gram_times_probes=E @ found.gram_times_probes,
        )

    @staticmethod
    def _weighted_samples(held: SharedGram, indices: Indices, scale: Floats) -> Floats:
        """Return variables of the pool, centred and weighted, (m, n)."""
        weighted: Floats = (
            held.samples(indices) * (np.sqrt(residual_squares(held, indices)) * scale)[:, None]
        )
        return weighted

    def _pool_loadings(self, found: GramSolution) -> Floats:
        held = self._columns
        if not isinstance(held, SharedGram) or held.complete:
            return found.loadings
        weighted = self._weighted_samples(held, found.indices, found.scale)
        residual = residual_trace(found.trace, weighted)
        loadings = regress_scores(weighted, found.scores, found.n, residual)
        loadings = rescale_loadings(loadings, weighted, found.scores)
        hidden = self._excluded_directions(held)
        return loadings if hidden is None else project_out(loadings, weighted @ hidden)

    def _refinement_pass(self) -> RefinementPass | None:
        held = self._columns
        if not isinstance(held, SharedGram) or held.rank is None or held.complete:
            return None
        settling = self._subspace_refinement()
        return None if settling.is_finished else RefinementPass(self._empty_clone(), settling.asked)

    def _accept_refinement(self, found: GramImage) -> None:
        held, settling = self._columns, self._subspace_refinement()
        assert isinstance(held, SharedGram)  # noqa: S101
        found.expect_all(self.n_columns, held.total)
        settling.accept_product(found.product)
        self._phase.n_passes += 1
        if settling.is_finished:
            settling.store()
            self._invalidate()
            self._cache["_subspace_refinement"] = settling

    @cached_until_update
    def _subspace_refinement(self) -> SubspaceRefinement:
        """Return the refinement of the leading axes, with the products of additional passes."""
        assert isinstance(self._columns, SharedGram)  # noqa: S101
        assert self._fixed_n_components is not None  # noqa: S101
        return SubspaceRefinement(self._columns, self._fixed_n_components)

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        held = self._columns
        if isinstance(held, SharedGram) and held.loadings is not None:
            loadings = held.loadings
            return LinearMap(loadings.names, loadings.means, self._pad_components(loadings.weights))
        return super()._linear_map(names)

    def _loadings_request(self) -> LoadingsRequest:
        held, found = self._columns, self._solution()
        if not isinstance(held, SharedGram) or found is None:
            got = "no columns yet" if held is None else "constant columns only"
            raise ValueError(
                f"Expected columns for a second pass. Got: {got}.\nHint: learn_columns(X) first."
            )
        return LoadingsRequest(
            found.duals,
            found.scores,
            found.n,
            found.trace,
            np.sqrt([held.unit]),
            found.probes,
            found.gram_times_probes,
            self._excluded_directions(held),
        )

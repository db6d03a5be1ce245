"""Linear components from inner products: of all columns, or of individual variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from streamsel.base.linear_map import LinearMap
from streamsel.extraction._regressed_loadings import largest_signs, project_out
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.gram.view import GramScale, GramView, InnerProducts, residual_squares


class GramSolution(NamedTuple):
    """Components, signed: of the variables with loadings, the largest loading is positive.

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

    def linear_map(self, state: VariableState, loadings: Floats) -> LinearMap:
        """Return the map of these loadings, (m, k), of the variables of a state."""
        names = [state.names[index] for index in self.indices]
        weights = self.scale[:, None] * loadings
        return LinearMap(names, state.stats(self.indices).mean, weights)


class GramSolver(NamedTuple):
    """Solver for components that are functions of inner products.

    Parameters
    ----------
    dual_weights
        Returns α (s, k) of at most so many components: their scores are Kα.
    q
        Number of components; None for as many as `dual_weights` decides.
    scale
        Whether variables are standardised.
    is_supervised
        Whether components have a relevance to a target.
    excludes_target
        Whether components must be orthogonal to the target.
    """

    dual_weights: Callable[[GramView, int], Floats]
    q: int | None
    scale: bool
    is_supervised: bool
    excludes_target: bool = False

    def candidates(self, state: VariableState | None) -> Indices:
        """Return the indices of the variables that components may be made of."""
        if (
            state is None
            or not state.names
            or (self.is_supervised and (state.space is None or not state.space.rank))
        ):
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(residual_squares(state))

    def scaling(self, state: VariableState, indices: Indices) -> tuple[Floats, GramScale]:
        """Return the factors of centred variables, (m,), and the scale of their products."""
        n, equal, space = float(state.n), state.effective_rows, state.space
        # The sum of squares of a variable of variance 1.
        weight = max(n - n / equal, 0.0) if equal else 0.0
        n_covariates = 0 if space is None else len(space.covariate_map)
        cyy = np.zeros((0, 0)) if space is None else space.target_products
        about = GramScale(equal - n_covariates, n, weight, 0, 0.0, cyy)
        if not self.scale:
            return np.ones(indices.size), about
        factors: Floats = np.sqrt(weight / residual_squares(state, indices))
        return factors, about

    def solve(
        self, products: InnerProducts, indices: Indices, scale: Floats, probes: int = 0
    ) -> GramSolution:
        """Return the components.

        Parameters
        ----------
        products
            The inner products.
        indices, scale
            (m,) indices of the variables, and their factors.
        probes
            Number of random vectors to multiply, if the products are those of observations.
        """
        inner, variables, axes = products
        alpha = self.dual_weights(inner, inner.size if self.q is None else self.q)
        loadings = variables @ alpha
        up = largest_signs(loadings)
        scores, loadings = inner.matmul(alpha) * up, loadings * up
        if self.excludes_target:
            # Inner products have rounding errors relative to the largest variance. A component of
            # far smaller variance would show them, so the target is projected out again.
            scores = project_out(scores, inner.U)
            loadings = project_out(loadings, variables @ inner.U)
        relevance = np.ones(scores.shape[1])
        if self.is_supervised:
            along, length = (np.linalg.norm(part, axis=0) for part in (inner.U.T @ scores, scores))
            relevance = np.minimum(along / np.where(length > 0.0, length, 1.0), 1.0)
        size = inner.size, probes if axes is None else 0
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=size)
        found = scores, alpha * up, probe, inner.matmul(probe)
        if axes is not None:
            found = axes @ found[0], axes @ found[1], axes @ found[2], axes @ found[3]
        scores, duals, probe, gram_times_probe = found
        return GramSolution(
            scores=scores,
            duals=duals,
            relevance=relevance,
            indices=indices,
            scale=scale,
            loadings=loadings,
            trace=inner.trace,
            n=inner.n,
            weight=inner.weight,
            probes=probe,
            gram_times_probes=gram_times_probe,
        )

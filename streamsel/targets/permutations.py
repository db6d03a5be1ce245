"""Permuted copies of a target, for the null distribution of relevances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target
from streamsel.targets.weights import ObservationWeights

Floats = NDArray[np.float64]

# The bases are cached up to this size; otherwise they are computed for every tile.
_KEPT_BYTES = 64 << 20
# Size of a block of bases computed at once.
_BLOCK_SIZE = 1 << 20
# A direction whose residual on the covariates is below this share is explained by them.
_ZERO_TOL = 1e-10
# Residuals are divided by the root of the weight, which leaves those of a smaller weight (the mean
# is 1) without correct digits. They are not permuted: these rows hardly count.
_MIN_WEIGHT = 1e-12


class Bases(NamedTuple):
    """Orthonormal bases of some permuted target spaces.

    Parameters
    ----------
    start, stop
        The range of permutations.
    rank
        Dimension of each space.
    vectors
        (n, (stop - start) * rank) the bases, one vector per column.
    """

    start: int
    stop: int
    rank: int
    vectors: Floats


class PermutedTarget:
    """Permuted copies of a target, and orthonormal bases of the spaces that they span.

    The residuals of the target on the covariates are permuted, within strata if there are any, and
    the covariates are projected out of the permuted residuals again (Freedman and Lane 1983).
    Weights stay on their rows, and the permuted residuals are centred with them again; residuals of
    weight 0 are not permuted. Given relatedness, whitened residuals are permuted. The residuals of
    a null model are permuted in units of their standard deviations: those of the variance function
    for two classes, and of `NullModel.dispersion` for counts. If they vary less than that, as where
    covariates make outcomes nearly certain, the bases are longer than 1 by the root of the ratio.

    Parameters
    ----------
    target, space
        The target, and its space with the linear kernel.
    n_permutations
        Number of copies, B.
    seed
        Seed of the random number generator.

    Notes
    -----
    Without covariates and relatedness, all permutations of the target are equally likely if it is
    independent of the columns and their weights, so tests are exact. Residuals on covariates, and
    martingale residuals of weighted observations, are only approximately exchangeable.

    Costs O(B n r (r + d)), r the rank of the target and d that of the covariates, once, or per tile
    of columns if the bases exceed 64 MB. Memory O(B n) for the permutations.
    """

    def __init__(self, target: Target, space: TargetSpace, n_permutations: int, seed: int) -> None:
        self.n_permutations = n_permutations
        self.rank = space.rank
        Y = target.Y[: target.c]
        self._basis: Floats = space.weights @ Y
        self._covariates: Floats | None = (
            space.covariate_map @ Y if len(space.covariate_map) else None
        )
        self._row_transform = target.row_transform
        if self._row_transform is not None:
            self._basis = self._row_transform.reflect(self._basis)
        self._scale = _scale_of(target)
        if self._scale is not None:
            inverse = np.zeros(self._scale.size)
            np.divide(1.0, self._scale, out=inverse, where=self._scale > 0.0)
            self._basis = self._basis * inverse
        self._inflation = _inflation_of(target, space)
        self._target, self._seed = target, seed
        # Computed when the first column needs them.
        self._orders: NDArray[np.int32] | None = None
        self._kept: list[Bases] | None = None

    def bases(self) -> Iterator[Bases]:
        """Yield the bases of all permutations, in blocks."""
        if self._kept is not None:
            yield from self._kept
            return
        if self._orders is None:
            self._orders = _permutations(self._target, self.n_permutations, self._seed)
        n = self._basis.shape[1]
        step = max(1, _BLOCK_SIZE // (n * self.rank))
        starts = range(0, self.n_permutations, step)
        made = (self._compute_bases(start, self._orders[start : start + step]) for start in starts)
        if 8 * n * self.rank * self.n_permutations <= _KEPT_BYTES:
            self._kept = list(made)
            yield from self._kept
        else:
            yield from made

    def _compute_bases(self, start: int, orders: NDArray[np.int32]) -> Bases:
        """Return the bases of a block of permutations."""
        # (s, r, n): the permuted residuals.
        U = self._basis[:, orders].transpose(1, 0, 2)
        if self._scale is not None:
            U = U * self._scale
        if self._row_transform is not None:
            U = self._row_transform.reflect(U)
            U -= U.mean(axis=2, keepdims=True)
        if self._covariates is not None:
            U = U - (U @ self._covariates.T) @ self._covariates
        if self._row_transform is not None or self._covariates is not None:
            U = _orthonormal(U)
        U *= self._inflation
        s, r, n = U.shape
        return Bases(start, start + s, r, np.ascontiguousarray(U.reshape(s * r, n).T))


def _scale_of(target: Target) -> Floats | None:
    """Return the factors (n,) by which the rows scale exchangeable residuals; None for equal ones.

    Rows that are not permuted have 0.
    """
    weights = target.row_transform
    if not isinstance(weights, ObservationWeights):
        return None
    if target.null_model is not None:
        return np.sqrt(target.null_model.dispersion)
    return np.sqrt(np.where(_is_permuted(target), weights.row_weights, 0.0))


def _inflation_of(target: Target, space: TargetSpace) -> float:
    """Return the factor of permuted relevances, above 1 if residuals vary less than a null model.

    A row whose outcome is nearly certain has almost always a residual of 0, and a row that receives
    it by a permutation would vary too little. Without covariates all rows have one mean.
    """
    model = target.null_model
    if model is None or not len(space.covariate_map):
        return 1.0
    freedom = target.n - 1.0 - len(space.covariate_map)
    squares = float((np.square(model.residual) / (model.variance * model.dispersion)).sum())
    return float(np.sqrt(max(1.0, freedom / squares)))


def _is_permuted(target: Target) -> NDArray[np.bool_]:
    """Return which observations are permuted, (n,)."""
    if target.row_transform is None or target.null_model is not None:
        return np.ones(target.n, dtype=np.bool_)
    return target.row_transform.row_weights > _MIN_WEIGHT


def _permutations(target: Target, n_permutations: int, seed: int) -> NDArray[np.int32]:
    """Return the order of the observations in each permutation, (B, n).

    Each permutation has a random stream of its own, so the first b do not depend on B.
    """
    n = target.n
    orders = np.tile(np.arange(n, dtype=np.int32), (n_permutations, 1))
    strata = np.zeros(n, dtype=np.intp) if target.strata is None else target.strata
    is_permuted = _is_permuted(target)
    groups = [np.flatnonzero(is_permuted & (strata == stratum)) for stratum in np.unique(strata)]
    for b, order in enumerate(orders):
        rng = np.random.default_rng((seed, b))
        for group in groups:
            order[group] = rng.permutation(group)
    return orders


def _orthonormal(U: Floats) -> Floats:
    """Return orthonormal bases of the spans of the rows of (s, r, n) matrices.

    A direction that the covariates explain in full is zero.
    """
    vectors, values, _ = np.linalg.svd(U @ U.transpose(0, 2, 1))
    inverse = np.where(values > _ZERO_TOL * values[:, :1], 1.0 / np.sqrt(values), 0.0)
    bases: Floats = (vectors * inverse[:, None, :]).transpose(0, 2, 1) @ U
    return bases

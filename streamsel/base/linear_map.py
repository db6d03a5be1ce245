"""Linear maps from variables to components, and their alignment with the map in use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel.state.base import Floats, Indices, VariableState

# Regularizes the alignment towards the identity, relative to unit variances.
_IDENTITY_WEIGHT = 1e-9
# Maximum ratio of the scales of a component and of the one that it replaces.
_MAX_RATIO = 1e12
# A rotated component of a smaller variance, of components of unit variance, is not scaled.
_MIN_VARIANCE = 1e-6
# Power of ρ² in the part of the scale in use: on a stationary stream, components then stay within
# about a third of their scale, for fading factors up to 0.1.
_PERSISTENCE = 4


class LinearMap(NamedTuple):
    """An affine map from variables to components: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        The s variables, and their means (s,).
    weights
        (s, q).
    reference_scale
        (q,) standard deviations that components tend to when they turn; 0 where they are not known.
        None counts as zeros.
    """

    names: Iterable[Hashable]
    means: Floats
    weights: Floats
    reference_scale: Floats | None = None

    @classmethod
    def empty(cls, q: int) -> Self:
        """Return the map of no variables to q components."""
        return cls([], np.zeros(0), np.zeros((0, q)))

    def padded(self, width: int) -> Self:
        """Return the map with zero components appended, `width` in all."""
        missing = width - self.weights.shape[1]
        if not missing:
            return self
        return self._replace(
            weights=np.pad(self.weights, ((0, 0), (0, missing))),
            reference_scale=np.pad(self.known_reference, (0, missing)),
        )

    @property
    def known_reference(self) -> Floats:
        """The reference scale, (q,); 0 where it is not known."""
        return (
            np.zeros(self.weights.shape[1])
            if self.reference_scale is None
            else self.reference_scale
        )

    def apply(self, X: Floats) -> Floats:
        """Return the components of rows, (s,) or (n, s); NaN is replaced by the mean."""
        centred = X - self.means
        Z: Floats = centred @ self.weights
        # A NaN input makes every component NaN, as NaN times zero is NaN.
        if np.isnan(Z).any():
            centred[np.isnan(centred)] = 0.0
            Z = centred @ self.weights
        return Z

    def alignment(self, in_use: LinearMap, state: VariableState, first_weight: float) -> Alignment:
        """Return the alignment of the components with those in use (`align_components`).

        A state without covariances treats the variables as uncorrelated.
        """
        indices, new, old = shared_weights(self, in_use, state.index_of)
        q = new.shape[1]
        covariance = state.gram_of(indices, np.hstack([new, old])) / state.n
        return align_components(
            covariance[:q, q:],
            covariance[:q, :q],
            np.diag(covariance)[q:],
            in_use.known_reference,
            first_weight,
        )

    def aligned(self, by: Alignment) -> Self:
        """Return the map of the components aligned with those in use."""
        return self._replace(
            names=list(self.names),
            weights=self.weights @ by.matrix,
            reference_scale=by.reference_scale,
        )


class Alignment(NamedTuple):
    """How new components are aligned with those in use.

    Parameters
    ----------
    matrix
        (q, q); the new weights times this matrix are the weights in use from now on.
    reference_scale
        As in `LinearMap`, of the aligned components.
    """

    matrix: Floats
    reference_scale: Floats

    @classmethod
    def identity(cls, q: int) -> Self:
        """Return the alignment of q components that replace none."""
        return cls(np.eye(q), np.zeros(q))


def shared_weights(
    new: LinearMap, in_use: LinearMap, index_of: Mapping[Hashable, int]
) -> tuple[Indices, Floats, Floats]:
    """Return the indices of the tracked variables of either map, and their weights in each."""
    names = [name for name in dict.fromkeys([*new.names, *in_use.names]) if name in index_of]
    indices = np.array([index_of[name] for name in names], dtype=np.intp)
    return indices, _weights_of_names(names, new), _weights_of_names(names, in_use)


def _weights_of_names(names: list[Hashable], of: LinearMap) -> Floats:
    """Return the weights of these variables, (s, q); zero for variables that the map lacks."""
    weights = np.zeros((len(names), of.weights.shape[1]))
    index_of = {name: i for i, name in enumerate(names)}
    for name, row in zip(of.names, of.weights, strict=True):
        if name in index_of:
            weights[index_of[name]] = row
    return weights


def are_comparable(in_use: Floats, new: Floats) -> NDArray[np.bool_]:
    """Return whether new components can take the scales of those in use, given both, (q,)."""
    ratio = in_use / np.where(new > 0.0, new, 1.0)
    return (new > 0.0) & (ratio > 1.0 / _MAX_RATIO) & (ratio < _MAX_RATIO)


def align_components(
    covariance: Floats,
    new: Floats,
    in_use: Floats,
    reference_scale: Floats,
    first_weight: float = 1.0,
) -> Alignment:
    """Return the alignment of new components of unit variance with those in use.

    The new components are rotated by orthogonal Procrustes, which preserves their span, and each
    takes the scale of the component in use that it replaces. With fading, the logarithm of the
    scale of a component that correlates with that one by ρ has a part of 1 - ρ⁸ from the reference
    scale.

    Parameters
    ----------
    covariance
        (q, q) covariances of the new components, in rows, with those in use. A component whose
        covariances are all zero is left unchanged.
    new
        (q, q) covariances of the new components, in the same units.
    in_use
        (q,) variances of those in use, in the same units. A component keeps its own scale if that
        of the one in use is 1e12 times larger or smaller, and there is no reference scale.
    reference_scale
        (q,) as in `LinearMap`.
    first_weight
        Weight of the first row: 1 without fading, and otherwise near 0 after many rows.

    Notes
    -----
    The variance of a component is estimated from the rows that determined it, and differs from its
    variance over later rows by a factor that depends on the method. If each refresh passed on the
    estimate alone, these factors would multiply: with fading, where the number of rows does not
    grow, components would grow or shrink without limit. The reference scale limits this. A
    component that does not turn keeps its weights exactly.
    """
    variances = np.diag(new)
    new_scale = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    scale_in_use = np.sqrt(np.maximum(in_use, 0.0))
    # In other units the old scale means nothing, and its square might overflow.
    replaces = are_comparable(scale_in_use, new_scale)
    has_reference = are_comparable(reference_scale, new_scale)
    scale_in_use = np.where(
        replaces, scale_in_use, np.where(has_reference, reference_scale, new_scale)
    )
    reference = np.where(has_reference, reference_scale, scale_in_use)
    reference *= (scale_in_use / reference) ** first_weight
    # Estimated covariances may exceed the Cauchy-Schwarz bound.
    correlation = np.clip(covariance / new_scale[:, None] / scale_in_use, -1.0, 1.0)
    U, _, Vt = np.linalg.svd(correlation + _IDENTITY_WEIGHT * np.eye(len(new_scale)))
    rotation = U @ Vt
    # A rotation of correlated components has other variances than 1. Unless they are divided out,
    # every refresh shrinks or stretches the components once more.
    among_new = np.clip(new / new_scale[:, None] / new_scale, -1.0, 1.0)
    achieved = ((among_new @ rotation) * rotation).sum(axis=0)
    achieved = np.where(achieved > _MIN_VARIANCE, achieved, 1.0)
    squared = np.minimum(np.square((correlation * rotation).sum(axis=0)) / achieved, 1.0)
    scale = scale_in_use * (reference / scale_in_use) ** (1.0 - squared**_PERSISTENCE)
    matrix: Floats = rotation / new_scale[:, None] * (scale / np.sqrt(achieved))
    return Alignment(matrix, np.where(replaces | has_reference, reference, 0.0))

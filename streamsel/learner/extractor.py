"""Define the base class of linear extractors and the alignment of their components over time."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats
from streamsel.held.possible import expect_bounded
from streamsel.learner.builder import Builder
from streamsel.learner.cached import until_learnt
from streamsel.learner.report import Report, is_above, number
from streamsel.shapes import Count, expect, expect_shapes

# Regularizes the alignment towards the identity, relative to unit variances.
_IDENTITY_WEIGHT = 1e-9


class LinearMap(NamedTuple):
    """An affine map from variables to components: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        The s variables, and their means (s,).
    weights
        (s, q).
    """

    names: Iterable[Hashable]
    means: Floats
    weights: Floats

    def padded(self, width: int) -> LinearMap:
        """Return the map with zero components appended, `width` in all."""
        missing = width - self.weights.shape[1]
        if not missing:
            return self
        return self._replace(weights=np.pad(self.weights, ((0, 0), (0, missing))))


class Extractor(Builder):
    """Base class of linear extractors: `_linear_map` maps variables to components."""

    _hooks: ClassVar[tuple[str, ...]] = ("_linear_map",)

    # Implemented by methods

    @abc.abstractmethod
    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        """Return the linear map, over the variables that have weights.

        Parameters
        ----------
        names
            Variables to include, for methods whose weights are a function of the name.
        """

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        """Return the matrix that aligns new components with those in use, as `least_motion` does.

        Called once per refresh. Moments do not contain covariances of the variables, so these are
        assumed to be uncorrelated.
        """
        state = self._held
        if standing is None or state is None:
            return np.eye(new.weights.shape[1])
        names = list(dict.fromkeys([*new.names, *standing.names]))
        names = [name for name in names if name in state.slots]
        m2 = state.stats(np.array([state.slots[name] for name in names], dtype=np.intp)).m2
        new_weights, weights_in_use = (weights_for(names, part) for part in (new, standing))
        variances = (np.square(part).T @ m2 for part in (new_weights, weights_in_use))
        return least_motion((new_weights.T * m2) @ weights_in_use, *variances)

    # Shared behaviour

    @until_learnt
    def _map(self) -> LinearMap:
        return self._linear_map()

    def _protected(self) -> Collection[Hashable]:
        # An extension of the moments knows which variables its components need.
        if self._beside is not None:
            return self._beside.protected()
        return () if self._standing is None else self._standing.names

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival; on rows, in the order in which the variables became candidates.
        """
        return self._weights_of(self._map())

    def _weights_of(self, linear_map: LinearMap | None) -> dict[Hashable, dict[str, float]]:
        return {} if linear_map is None else self._weights_by(linear_map.names, linear_map.weights)

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per component, in descending order of relevance: its relevance, whether this is
        above the noise floor of single columns, and its loadings in descending order of size: the
        weight of each variable times its standard deviation over the rows learnt, and the weight
        itself.
        """
        floor = self._floor()
        relevance = self.relevance
        loadings: dict[str, list[dict[str, Any]]] = {str(name): [] for name in relevance}
        deviations = self._deviations()
        for variable, weights in self.loadings.items():
            deviation = deviations.get(variable, math.nan)
            for component, weight in weights.items():
                row = {"variable": variable, "loading": number(weight * deviation)}
                loadings[component].append(row | {"weight": float(weight)})
        found = []
        for name in sorted(loadings, key=relevance.__getitem__, reverse=True):
            value = number(relevance[name])
            largest = sorted(loadings[name], key=lambda row: -abs(row["loading"] or 0.0))
            row = {"name": name, "relevance": value, "above_noise": is_above(value, floor)}
            found.append(row | {"loadings": largest})
        return self._report(floor, "components", found, self._n_asked)

    def _deviations(self) -> dict[Hashable, float]:
        """Return the known standard deviations of variables that may have loadings."""
        state = self._held
        if state is None or not state.names:
            return {}
        deviations = np.sqrt(state.stats().m2 / state.n)
        deviation_of = dict(zip(state.names, deviations.tolist(), strict=True))
        kept: Loadings | None = getattr(state, "loadings", None)
        if kept is not None:
            deviation_of |= zip(kept.names, kept.deviations.tolist(), strict=True)
        return deviation_of

    # Snapshot in use, and transforms

    def _now(self) -> LinearMap | None:
        return None if self._held is None else self._map()

    def _renewed(self, *, calmly: bool) -> LinearMap:
        del calmly  # components are always aligned with those in use
        new, standing = self._map(), self._standing
        if standing is not None:
            # Where the data determine the number, components in use are kept and new ones appended.
            width = max(new.weights.shape[1], standing.weights.shape[1])
            new, standing = new.padded(width), standing.padded(width)
        weights = new.weights @ self._turn(new, standing)
        return new._replace(names=list(new.names), weights=weights)

    @property
    def standing(self) -> dict[Hashable, dict[str, float]]:
        """Linear map that a transform applies: variable -> {component: weight}."""
        return self._weights_of(self._in_use())

    def _standing_to_state(self) -> dict[str, Any] | None:
        if self._standing is None:
            return None
        state: dict[str, Any] = self._standing._asdict()
        return (
            state
            if self._n_asked is not None
            else state | {"n_components": self._standing.weights.shape[1]}
        )

    def _stand_by_state(self, state: dict[str, Any] | None) -> None:
        if state is None:
            self._standing = None
            return
        self._expect_held(state["names"])
        size = len(state["names"])
        width = self._n_asked
        if width is None:
            expect(state, n_components=Count())
            width = state["n_components"]
        expect_shapes(state, means=(size,), weights=(size, width))
        expect_bounded("loadings", state["means"], state["weights"])
        self._standing = LinearMap(state["names"], state["means"], state["weights"])

    def _used(self) -> LinearMap:
        return self._in_use() or LinearMap((), np.zeros(0), np.zeros((0, self._n_asked or 1)))

    def _apply(self, used: LinearMap, X: Floats) -> Floats:
        centred = X - used.means
        Z: Floats = centred @ used.weights
        # A NaN input makes every component NaN, as NaN times zero is NaN.
        if np.isnan(Z).any():
            centred[np.isnan(centred)] = 0.0
            Z = centred @ used.weights
        return Z


def least_motion(covariance: Floats, new: Floats, standing: Floats) -> Floats:
    """Return the matrix that aligns new components of unit variance with those in use.

    The new components are rotated by orthogonal Procrustes, which preserves their span, and each is
    scaled like the component in use that it replaces.

    Parameters
    ----------
    covariance
        (q, q) covariances of the new components, in rows, with those in use. A component whose
        covariances are all zero is left unchanged.
    new, standing
        (q,) variances of the new components and of those in use, in the same units.

    Returns
    -------
    (q, q); the new weights times this matrix are the weights in use from now on.
    """
    new_scale = np.sqrt(np.where(new > 0.0, new, 1.0))
    scale_in_use = np.sqrt(np.where(standing > 0.0, standing, np.where(new > 0.0, new, 1.0)))
    # Estimated covariances may exceed the Cauchy-Schwarz bound.
    correlation = np.clip(covariance / new_scale[:, None] / scale_in_use, -1.0, 1.0)
    U, _, Vt = np.linalg.svd(correlation + _IDENTITY_WEIGHT * np.eye(len(new_scale)))
    alignment: Floats = (U @ Vt) / new_scale[:, None] * scale_in_use
    return alignment


def weights_for(names: list[Hashable], of: LinearMap) -> Floats:
    """Return the weights of these variables, (s, q); zero for variables that the map lacks."""
    weights = np.zeros((len(names), of.weights.shape[1]))
    index_of = {name: i for i, name in enumerate(names)}
    for name, row in zip(of.names, of.weights, strict=True):
        if name in index_of:
            weights[index_of[name]] = row
    return weights

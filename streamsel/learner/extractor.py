"""What extractors have in common: they build new variables, linear in the original ones."""

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

# So much of a component's covariance with the one that stands in its place is presumed.
_AT_REST = 1e-9


class LinearMap(NamedTuple):
    """New variables out of old ones: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        s variables, and what is taken off each (s,).
    weights
        (s, q).
    """

    names: Iterable[Hashable]
    means: Floats
    weights: Floats

    def padded(self, width: int) -> LinearMap:
        """Return the map with void components behind the others, `width` in all."""
        missing = width - self.weights.shape[1]
        if not missing:
            return self
        return self._replace(weights=np.pad(self.weights, ((0, 0), (0, missing))))


class Extractor(Builder):
    """A learner that builds new variables, linear in the original ones: `_linear_map` says how."""

    _hooks: ClassVar[tuple[str, ...]] = ("_linear_map",)

    # What a method says

    @abc.abstractmethod
    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        """Return the map of the variables that have weights.

        Parameters
        ----------
        names
            Those that are at hand: for a method whose weights are a function of the name.
        """

    def _turn(self, new: LinearMap, standing: LinearMap | None) -> Floats:
        """Return what turns new components onto those that stand, as `least_motion` does.

        Asked once at every renewal. The moments do not tell how variables vary with one another: it
        is taken that they do not.
        """
        held = self._held
        if standing is None or held is None:
            return np.eye(new.weights.shape[1])
        names = list(dict.fromkeys([*new.names, *standing.names]))
        names = [name for name in names if name in held.slots]
        m2 = held.stats(np.array([held.slots[name] for name in names], dtype=np.intp)).m2
        mine, theirs = (weights_for(names, part) for part in (new, standing))
        squares = (np.square(part).T @ m2 for part in (mine, theirs))
        return least_motion((mine.T * m2) @ theirs, *squares)

    # What follows

    @until_learnt
    def _map(self) -> LinearMap:
        return self._linear_map()

    def _protected(self) -> Collection[Hashable]:
        # Those beside the moments, where components are more than a function of these, know best.
        if self._beside is not None:
            return self._beside.protected()
        return () if self._standing is None else self._standing.names

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """The support: variable -> {component: weight}, without zeros.

        In order of arrival; on rows in that in which they became candidates.
        """
        return self._weights_of(self._map())

    def _weights_of(self, found: LinearMap | None) -> dict[Hashable, dict[str, float]]:
        return {} if found is None else self._weights_by(found.names, found.weights)

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a component, the most relevant first: its relevance, whether that is above the noise
        floor of single columns, and its loadings, the largest first: the weight of each variable
        times its standard deviation over the rows learned, and the weight itself.
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
            mine = number(relevance[name])
            largest = sorted(loadings[name], key=lambda row: -abs(row["loading"] or 0.0))
            row = {"name": name, "relevance": mine, "above_noise": is_above(mine, floor)}
            found.append(row | {"loadings": largest})
        return self._report(floor, "components", found, self._n_asked)

    def _deviations(self) -> dict[Hashable, float]:
        """Return the standard deviations of variables that may have loadings, as far as known."""
        held = self._held
        if held is None or not held.names:
            return {}
        known = np.sqrt(held.stats().m2 / held.n)
        found = dict(zip(held.names, known.tolist(), strict=True))
        kept: Loadings | None = getattr(held, "loadings", None)
        if kept is not None:
            found |= zip(kept.names, kept.deviations.tolist(), strict=True)
        return found

    # What stands, and transforms

    def _now(self) -> LinearMap | None:
        return None if self._held is None else self._map()

    def _renewed(self, *, calmly: bool) -> LinearMap:
        del calmly  # a component has no other place to go to
        new, standing = self._map(), self._standing
        if standing is not None:
            # The data may determine the number: components in use remain, and new ones follow them.
            width = max(new.weights.shape[1], standing.weights.shape[1])
            new, standing = new.padded(width), standing.padded(width)
        weights = new.weights @ self._turn(new, standing)
        return new._replace(names=list(new.names), weights=weights)

    @property
    def standing(self) -> dict[Hashable, dict[str, float]]:
        """The linear map that a transform applies: variable -> {component: weight}."""
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
        """Return the map that a transform applies."""
        return self._in_use() or LinearMap((), np.zeros(0), np.zeros((0, self._n_asked or 1)))

    def _apply(self, used: LinearMap, X: Floats) -> Floats:
        centred = X - used.means
        Z: Floats = centred @ used.weights
        # NaN shows in every component, for NaN times zero is NaN.
        if np.isnan(Z).any():
            centred[np.isnan(centred)] = 0.0
            Z = centred @ used.weights
        return Z


def least_motion(covariance: Floats, new: Floats, standing: Floats) -> Floats:
    """Return what makes new components, of unit variance, those nearest to the ones that stand.

    That is orthogonal Procrustes: a rotation, so that they tell the same as before it; each then
    takes the scale of the one in whose place it stands.

    Parameters
    ----------
    covariance
        (q, q) of the new components, in rows, with those that stand. Where they have none, a
        component stays what it is.
    new, standing
        (q,) their variances, in the same units.

    Returns
    -------
    (q, q); the new weights times this are those that stand from here on.
    """
    mine = np.sqrt(np.where(new > 0.0, new, 1.0))
    theirs = np.sqrt(np.where(standing > 0.0, standing, np.where(new > 0.0, new, 1.0)))
    # Covariances that were guessed in part may say more than is possible.
    correlation = np.clip(covariance / mine[:, None] / theirs, -1.0, 1.0)
    U, _, Vt = np.linalg.svd(correlation + _AT_REST * np.eye(len(mine)))
    turned: Floats = (U @ Vt) / mine[:, None] * theirs
    return turned


def weights_for(names: list[Hashable], of: LinearMap) -> Floats:
    """Return the weights of these variables, (s, q), zero where a map has none."""
    weights = np.zeros((len(names), of.weights.shape[1]))
    place = {name: i for i, name in enumerate(names)}
    for name, row in zip(of.names, of.weights, strict=True):
        if name in place:
            weights[place[name]] = row
    return weights

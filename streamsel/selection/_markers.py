"""Marker variables: those by which one class differs from all others, by rank tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.null import fdr_discoveries
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.pool.pool import Picks
from streamsel.targets.target import Target


class ClassComparisons(NamedTuple):
    """Rank tests of every class against the rest.

    Parameters
    ----------
    indices
        (m,) indices of the variables that vary.
    z
        (m, C) statistics of the Mann-Whitney test, above 0 for larger values in the class.
    ties
        (m,) factors by which ties reduce the variance of rank sums.
    """

    indices: Indices
    z: Floats
    ties: Floats

    @classmethod
    def of(cls, view: VariableState) -> ClassComparisons:
        """Return the comparisons of the variables of a state."""
        indices = np.flatnonzero(view.relevance() >= 0.0)
        return cls(indices, view.extra_field("z")[indices], view.extra_field("ties")[indices])

    def p_values(self, c: int) -> Floats:
        """Return the two-sided p-values of a class."""
        from scipy.special import ndtr

        p: Floats = 2.0 * ndtr(-np.abs(self.z[:, c]))
        return p

    def best(self, c: int, k: int | None, fdr: float | None, method: str) -> Indices:
        """Return positions of the markers of a class in `indices`, by descending |z|.

        Parameters
        ----------
        c
            The class.
        k
            Maximum number of markers; None for all.
        fdr, method
            False discovery rate among the markers of the class, and how it is controlled; None for
            no threshold.
        """
        if not self.z[:, c].any():  # a class without observations in a window
            return np.zeros(0, dtype=np.intp)
        order = argsort_by_relevance(np.abs(self.z[:, c]))
        if fdr is not None:
            p = self.p_values(c)[order]
            order = order[fdr_discoveries(p, max(1, p.size), fdr, method)]
        return order[:k]

    def union(self, k: int | None, fdr: float | None, method: str) -> Picks:
        """Return the markers of all classes: the best of each class, then the second, and so on.

        Those of the same rank in their classes are in the order of their scores, |z|, whatever the
        order of the classes.
        """
        of_class = [self.best(c, k, fdr, method) for c in range(self.z.shape[1])]
        found: dict[int, float] = {}
        for rank in range(max((best.size for best in of_class), default=0)):
            scores: dict[int, float] = {}
            for c, best in enumerate(of_class):
                if rank < best.size and best[rank] not in found:
                    j = int(best[rank])
                    scores[j] = max(scores.get(j, 0.0), abs(float(self.z[j, c])))
            by_arrival = sorted(scores)
            order = argsort_by_relevance(np.array([scores[j] for j in by_arrival]))
            found |= {by_arrival[i]: scores[by_arrival[i]] for i in order.tolist()}
        return Picks([int(self.indices[j]) for j in found], [*found.values()], [0] * len(found))

    def table(
        self, c: int, best: Indices, names: list[object], sizes: NDArray[np.int64], method: str
    ) -> dict[str, NDArray[Any]]:
        """Return the table of the markers of a class, one array per title.

        Parameters
        ----------
        c
            The class.
        best
            Positions of the markers, as `best` returns them.
        names
            Names of all variables of the state.
        sizes
            (C,) number of observations of each class.
        method
            How p-values are adjusted.
        """
        from scipy.stats import false_discovery_control

        n, size = int(sizes.sum()), int(sizes[c])
        z, p = self.z[:, c], self.p_values(c)
        # The standard deviation of the AUC is the difference from 1/2 at z = 1.
        scale = np.sqrt((n + 1) * self.ties / (12.0 * max(1, size * (n - size))))
        adjusted = false_discovery_control(p, method=method) if p.size else p
        return {
            "name": np.fromiter((names[j] for j in self.indices[best].tolist()), object, best.size),
            "z": z[best],
            "auc": 0.5 + (z * scale)[best],
            "direction": np.where(z[best] >= 0.0, "higher", "lower"),
            "p_value": p[best],
            "p_adjusted": adjusted[best],
        }


def class_sizes(target: Target) -> NDArray[np.int64]:
    """Return the number of observations of each class."""
    codes = np.argmax(target.columns(), axis=1)
    return np.bincount(codes, minlength=int((~target.is_covariate).sum()))

"""What extractors have in common: they build new variables, linear in the original ones."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.base import Learner
from streamsel.rows import as_frame, first_bad, gather, read_some, why_bad

Floats = NDArray[np.float64]


class Extractor(Learner):
    """A learner that builds new variables, linear in the original ones."""

    @property
    @abc.abstractmethod
    def components(self) -> list[str]:
        """Names of the new variables, as they come out of a transform."""

    @abc.abstractmethod
    def _linear_map(self) -> tuple[Iterable[Hashable], Floats, Floats]:
        """Return s names, their means (s,) and weights (s, q): z = (x - means) @ weights."""

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        """Return the components of a row, as floats.

        Parameters
        ----------
        x
            A row. A variable of the support that it lacks counts as 0, as everywhere in River; NaN
            or None counts as not observed, that is, as its mean; new features are ignored.

        Raises
        ------
        ValueError, TypeError
            For a value of the support that is infinite, or no number.
        """
        support, means, weights = self._linear_map()
        row = read_some(x, support)
        bad = first_bad(row)
        if bad is not None:
            raise why_bad(list(support)[bad], row[bad])
        z = _apply(row, means, weights)
        return dict(zip(self.components, z.tolist(), strict=True))

    def transform_many(self, X: Any) -> Any:
        """Return the components of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library, or, for anything but a frame, an array of shape (n, q).
        """
        support, means, weights = self._linear_map()
        Z = _apply(gather(X, list(support)), means, weights)
        frame = as_frame(X)
        if frame is None:
            return Z
        from river.utils.dataframe import to_native_frame

        return to_native_frame(Z, like=frame, columns=self.components)


def _apply(X: Floats, means: Floats, weights: Floats) -> Floats:
    centred = X - means
    Z: Floats = centred @ weights
    # NaN shows in every component, for NaN times zero is NaN.
    if np.isnan(Z).any():
        centred[np.isnan(centred)] = 0.0
        Z = centred @ weights
    return Z

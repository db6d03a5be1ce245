"""Define the base class of learners that build new variables (components)."""

from __future__ import annotations

import abc
import functools
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.part import Floats
from streamsel.learner.base import Learner
from streamsel.params import param
from streamsel.rows import as_frame, first_bad, gather, read_some, why_bad


class Builder(Learner):
    """Base class of learners that build components: `_used` returns a map, `_apply` applies it."""

    n_components: int = param(
        params.Whole(1, below=params.MANY),
        default=10,
        kw_only=False,
        doc="Number of components, $q$.",
    )
    warm_up: int = param(
        params.Whole(0),
        default=20,
        doc="""
        Number of rows before components are in use: until then `transform_one` returns `{}`, and
        `transform_many` returns columns of 0.0. A model that has learnt columns uses its components
        at once.
        """,
    )

    def _check_parameters(self) -> None:
        self._more_than("n_components", self._n_asked, "max_features")

    # Implemented by methods

    @abc.abstractmethod
    def _used(self) -> Any:
        """Return the map that `transform_one` applies, with empty `names` if there is none."""

    @abc.abstractmethod
    def _apply(self, used: Any, X: Floats) -> Floats:
        """Return the components, (q,) or (n, q), of rows restricted to the variables of a map.

        Parameters
        ----------
        used
            The map.
        X
            (s,) or (n, s) values, which may be overwritten; NaN where not observed.
        """

    # Shared behaviour

    @property
    def _why_no_more(self) -> str:
        return "the columns vary in no more directions"

    @property
    def _n_asked(self) -> int | None:
        """Number of components requested; None where the data determine the number."""
        return self.n_components

    @property
    def components(self) -> list[str]:
        """Names of the components, as the transforms return them."""
        return list(self._names_of(self._width))

    @property
    def _width(self) -> int:
        """Number of components that a transform returns."""
        return self.n_components

    def _names_of(self, width: int) -> tuple[str, ...]:
        return _component_names(type(self).__name__.lower(), width)

    @property
    def embedding(self) -> Floats:
        """Components of the training rows, (n, number of components found), as a copy.

        ValueError once rows were learnt, as rows are not stored. With weights, components
        documented as uncorrelated are uncorrelated in the weighted sense. The values are NaN for
        observations of weight 0 and for those excluded because their target is missing.
        """
        if self._on_rows:
            raise ValueError(
                "Expected a model that has learnt columns only. Got: a model that has learnt "
                "rows, which are not stored.\nHint: transform_many(X) returns the embedding of X."
            )
        found, target = self._embedding(), self._target
        if target is not None and target.weights is not None:
            found = target.weights.back(found)
        return found if target is None or target.kept is None else target.kept.back(found)

    def _embedding(self) -> Floats:
        """Return the components of the observations; an empty array if these are not stored."""
        return np.zeros((self.n_rows, 0))

    def _weights_by(
        self, keys: Iterable[Hashable], weights: Floats
    ) -> dict[Hashable, dict[str, float]]:
        """Return rows of weights as dicts: key -> {component: weight}, without zeros."""
        names = self._names_of(weights.shape[1])
        return {
            key: {names[k]: w for k, w in enumerate(row) if w != 0.0}
            for key, row in zip(keys, weights.tolist(), strict=True)
        }

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        r"""Return the components of a row as floats; `{}` while no components are in use.

        A downstream scaler learns nothing from `{}`. From $n$ rows of zeros it would learn a zero
        variance, and then scale the first component to up to $\sqrt{n}$ standard deviations.

        Parameters
        ----------
        x
            A row. Variables of the map that are absent count as 0, as everywhere in River; NaN or
            None counts as not observed and is replaced by the mean; unknown features are ignored.

        Raises
        ------
        ValueError, TypeError
            For a value of a variable of the map that is infinite, or not a number.
        """
        used = self._used()
        row = read_some(x, used.names)
        if not row.size:
            return {}
        bad = first_bad(row)
        if bad is not None:
            raise why_bad(list(used.names)[bad], row[bad])
        z = self._apply(used, row)
        return dict(zip(self._names_of(z.size), z.tolist(), strict=True))

    def transform_many(self, X: Any) -> Any:
        """Return the components of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library, or an array of shape (n, q) for any other input. The number of
        columns is constant: components that do not exist yet are 0.0.

        Raises
        ------
        ValueError, TypeError
            For a value of a variable of the map that is infinite, or not a number.
        """
        frame = as_frame(X)
        used = self._used()
        names = list(used.names)
        values = gather(X, names)
        infinite = np.argwhere(np.isinf(values))
        if infinite.size:
            row, column = infinite[0].tolist()
            raise why_bad(names[column], values[row, column], row)
        Z = self._apply(used, values)
        if frame is None:
            return Z
        from river.utils.dataframe import to_native_frame

        return to_native_frame(Z, like=frame, columns=list(self._names_of(Z.shape[1])))


@functools.cache
def _component_names(prefix: str, q: int) -> tuple[str, ...]:
    # Cached, as it is called for every row.
    return tuple(f"{prefix}{k}" for k in range(q))

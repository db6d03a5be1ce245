"""Define the base class of extractors: components, transforms, and the map in use."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Collection, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.caching import cached_until_update
from streamsel.base.frame_columns import as_frame, select_features
from streamsel.base.learner import Learner
from streamsel.base.linear_map import Alignment, LinearMap
from streamsel.base.report import Report, is_above, number
from streamsel.base.row_values import bad_value_error, first_bad_value, read_features
from streamsel.params import param
from streamsel.serialization.invariants import MAX_FACTOR, expect_between, expect_bounded
from streamsel.serialization.schema import CountKind, expect, expect_shapes
from streamsel.state.base import Floats, StoredLoadings
from streamsel.state.gram.landmarks import Landmarks
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension

# A refresh of m variables takes about m² (rank + `_RANK_OFFSET`) operations. It is spread over
# rows, `_OPERATIONS_PER_ROW` operations per row.
_OPERATIONS_PER_ROW, _RANK_OFFSET = 1.5e7, 150


class Extractor(Learner):
    """Base class of extractors: `_component_map` maps variables to components.

    The map is linear, except that of an `Embedder`.
    """

    # Whether all tracked variables have loadings: then half of `max_features` are protected from
    # eviction, and an evicted variable remains part of the map in use until the next refresh.
    _loads_all_variables: ClassVar[bool] = False
    # Details that every report of the class states, for pages and plots, which do not know it.
    _report_details: ClassVar[dict[str, Any]] = {}

    n_components: int = param(
        params.IntRule(1, below=params.MAX_COUNT),
        default=10,
        kw_only=False,
        doc="Number of components, $q$.",
    )
    warm_up: int = param(
        params.IntRule(0),
        default=20,
        doc="""
        Number of rows before components are in use: until then `transform_one` returns `{}`, and
        `transform_many` returns columns of 0.0. A model that has learnt columns uses its components
        at once.
        """,
    )

    def _check_parameters(self) -> None:
        self._check_exceeds("n_components", self._fixed_n_components, "max_features")

    # Implemented by methods

    @abc.abstractmethod
    def _component_map(self) -> LinearMap | Landmarks:
        """Return the current map, over the variables that have weights."""

    def _alignment(self, new: LinearMap, in_use: LinearMap | None) -> Alignment:
        """Return the alignment of new components with those in use, once per refresh."""
        state = self._state
        if in_use is None or state is None:
            return Alignment.identity(new.weights.shape[1])
        return new.alignment(in_use, state, self._first_weight)

    # Shared behaviour

    @property
    def _first_weight(self) -> float:
        """Weight of the first row: 1 without fading, and near 0 after many rows with fading."""
        return float((1.0 - self.fading_factor) ** self.n_rows)

    @property
    def _stop_reason(self) -> str:
        return "the columns vary in no more directions"

    @property
    def _fixed_n_components(self) -> int | None:
        """Number of components requested; None where the data determine the number."""
        return self.n_components

    @property
    def components(self) -> list[str]:
        """Names of the components, as the transforms return them."""
        return list(self._names_of(self._n_outputs))

    @property
    def _n_outputs(self) -> int:
        """Number of components that a transform returns."""
        return self.n_components

    def _names_of(self, width: int) -> tuple[str, ...]:
        return _component_names(type(self).__name__.lower(), width)

    @property
    def embedding(self) -> Floats:
        """Components of the training rows, (n, number of components found), as a copy.

        Raises ValueError once rows were learnt, as rows are not stored. With weights, components
        documented as uncorrelated are uncorrelated in the weighted sense. The values are NaN for
        observations of weight 0 and for those excluded because their target is missing.
        """
        if self._phase.on_rows:
            raise ValueError(
                "Expected a model that has learnt columns only. Got: a model that has learnt "
                "rows, which are not stored.\nHint: transform_many(X) returns the embedding of X."
            )
        found, target = self._embedding(), self._target
        if target is not None and target.row_transform is not None:
            found = target.row_transform.inverse_transform(found)
        return found if target is None or target.kept is None else target.kept.expand(found)

    def _embedding(self) -> Floats:
        """Return the components of the observations; an empty array if these are not stored."""
        return np.zeros((self.n_rows, 0))

    def _weights_as_dicts(
        self, keys: Iterable[Hashable], weights: Floats
    ) -> dict[Hashable, dict[str, float]]:
        """Return rows of weights as dicts: key -> {component: weight}, without zeros."""
        names = self._names_of(weights.shape[1])
        return {
            key: {names[k]: w for k, w in enumerate(row) if w != 0.0}
            for key, row in zip(keys, weights.tolist(), strict=True)
        }

    @cached_until_update
    def _map(self) -> Any:
        """Return the current map."""
        return self._component_map()

    def _protected(self, moments: Moments, extension: RowExtension | None) -> Collection[Hashable]:
        if self._loads_all_variables:
            return self._most_relevant_half(moments)
        # An extension of the moments reports which variables its components need.
        if extension is not None:
            return extension.protected()
        return () if self._refresh.stored is None else self._refresh.stored.names

    def _most_relevant_half(self, moments: Moments) -> Collection[Hashable]:
        """Return the most relevant variables past their grace period, up to half of `max_features`.

        Otherwise a row with many new variables would evict all others, and the next such row these.
        """
        if self.max_features is None:
            return ()
        indices = np.flatnonzero(moments.arrival_rows + self.grace_period <= moments.rows)
        ranking = argsort_by_relevance(self._relevances_of_stats(moments, moments.stats(indices)))
        names = moments.names
        return [names[index] for index in indices[ranking[: self.max_features // 2]].tolist()]

    def _check_tracked(self, names: Any) -> None:
        if not self._loads_all_variables:
            super()._check_tracked(names)
        elif type(names) is not list or len({*names}) < len(names):
            raise ValueError(f"Corrupt model file: names in use must be distinct. Got: {names!r}.")

    def _weights_of(self, used: Any) -> dict[Hashable, dict[str, float]]:
        """Return the weights of a map as dicts; without a map there are none."""
        return {} if used is None else self._weights_as_dicts(used.names, used.weights)

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per component, in descending order of relevance: its relevance, whether this is
        above the noise floor of single columns, and its loadings in descending order of size: the
        weight of each variable times its standard deviation over the rows learnt, and the weight
        itself. The results are empty before the first column or row.

        Notes
        -----
        Costs O(m q) for m variables with loadings, in addition to the computation of the
        components. Components of a method without a target have `above_noise` None.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import PCA
        >>> rng = np.random.default_rng(0)
        >>> factor = rng.normal(size=100)
        >>> model = PCA(1)
        >>> model.learn_columns(np.column_stack([3.0 * factor, factor, rng.normal(size=100)]))
        >>> row, = model.report().results
        >>> row["name"], [entry["variable"] for entry in row["loadings"]]
        ('pca0', [0, 1, 2])
        """
        floor = self._report_noise_floor()
        relevance = self.relevance
        loadings: dict[str, list[dict[str, Any]]] = {str(name): [] for name in relevance}
        deviations = self._deviations()
        for variable, weights in self._weights_of(self._map()).items():
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
        return self._report(
            floor, "components", found, self._fixed_n_components, self._report_details
        )

    def _deviations(self) -> dict[Hashable, float]:
        """Return the known standard deviations of variables that may have loadings."""
        state = self._state
        if state is None or not state.names:
            return {}
        deviations = np.sqrt(state.stats().m2 / state.n)
        deviation_of = dict(zip(state.names, deviations.tolist(), strict=True))
        kept: StoredLoadings | None = getattr(state, "loadings", None)
        if kept is not None:
            deviation_of |= zip(kept.names, kept.deviations.tolist(), strict=True)
        return deviation_of

    # Snapshot in use, and transforms

    def _current(self) -> Any:
        return None if self._state is None else self._map()

    def _rows_of_refresh(self, rows: int) -> int:
        joint = self._row_extension
        if not self._loads_all_variables or not isinstance(joint, CrossMoments):
            return 0
        m = joint.n_variables
        return int(m * m * (min(m, rows) + _RANK_OFFSET) / _OPERATIONS_PER_ROW)

    def _refreshed(self, *, keep_stable: bool) -> Any:
        del keep_stable  # components are always aligned with those in use
        new, in_use = self._map(), self._refresh.stored
        if in_use is not None:
            # Where the data determine the number, components in use are kept and new ones appended.
            width = max(new.weights.shape[1], in_use.weights.shape[1])
            new, in_use = new.padded(width), in_use.padded(width)
        return new.aligned(self._alignment(new, in_use))

    @property
    def in_use(self) -> dict[Hashable, dict[str, float]]:
        """Linear map that a transform applies: variable -> {component: weight}."""
        return self._weights_of(self._in_use())

    def _snapshot_to_state(self, snapshot: Any) -> dict[str, Any] | None:
        if snapshot is None:
            return None
        state: dict[str, Any] = snapshot._asdict()
        state["reference_scale"] = snapshot.known_reference
        if self._fixed_n_components is None:
            state["n_components"] = snapshot.weights.shape[1]
        return state

    def _snapshot_from_state(self, state: dict[str, Any] | None) -> Any:
        if state is None:
            return None
        self._check_tracked(state["names"])
        size = len(state["names"])
        width = self._fixed_n_components
        if width is None:
            expect(state, n_components=CountKind())
            width = state["n_components"]
        expect_shapes(state, means=(size,), weights=(size, width))
        expect_bounded("loadings", state["means"], state["weights"])
        # Files of 0.4.0 and earlier have no scales.
        scale = state.setdefault("reference_scale", np.zeros(width))
        expect_shapes(state, reference_scale=(width,))
        expect_between("reference scales", scale, 0.0, MAX_FACTOR)
        return LinearMap(state["names"], state["means"], state["weights"], scale)

    @property
    def _empty_map(self) -> LinearMap | Landmarks:
        """The map of no variables."""
        return LinearMap.empty(self._fixed_n_components or 1)

    def _map_in_use(self) -> Any:
        """Return the map that `transform_one` applies, with empty `names` if there is none."""
        return self._in_use() or self._empty_map

    def _apply(self, used: Any, X: Floats) -> Floats:
        """Return the components, (q,) or (n, q), of rows restricted to the variables of a map.

        Parameters
        ----------
        used
            The map.
        X
            (s,) or (n, s) values, which may be overwritten; NaN where not observed.
        """
        components: Floats = used.apply(X)
        return components

    # Transforms

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, float]:
        r"""Return the components of a row as floats; `{}` while no components are in use.

        A downstream scaler learns nothing from `{}`. From $n$ rows of zeros it would learn a zero
        variance, and then scale the first component to up to $\sqrt{n}$ standard deviations.

        Parameters
        ----------
        x
            A row. Variables of the map that are absent count as 0, as everywhere in River; NaN or
            None counts as not observed and is replaced by the mean; unknown features are ignored.
            Text and dates are not encoded: if the columns were (`stream.encode`), pass their
            indicators, or a frame of one row to `transform_many`.

        Returns
        -------
        Component -> value, q entries in the order of `components`.

        Raises
        ------
        ValueError, TypeError
            For a value of a variable of the map that is infinite, or not a number, and for an x
            that is not a mapping.

        Notes
        -----
        Costs O(m q) for m variables with loadings.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import PCA
        >>> model = PCA(1)
        >>> model.transform_one({"a": 1.0})
        {}
        >>> model.learn_columns(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), ["a", "b"])
        >>> model.transform_one({"a": 2.0, "b": 4.0, "new": 9.0})
        {'pca0': 0.0}
        >>> model.transform_one({"a": None, "b": float("nan")})
        {'pca0': 0.0}
        """
        used = self._map_in_use()
        row = read_features(x, used.names)
        if not row.size:
            return {}
        bad = first_bad_value(row)
        if bad is not None:
            raise bad_value_error(list(used.names)[bad], row[bad])
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
        columns is constant: components that do not exist yet are 0.0. A missing value is replaced
        by the mean; a variable that a frame lacks counts as 0.

        Raises
        ------
        ValueError, TypeError
            For a value of a variable of the map that is infinite, or not a number; for an array or
            matrix without a column for each variable of the map; for an X of another type.

        Notes
        -----
        Costs one copy of the m variables with loadings, O(n m), and O(n m q) for the product.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from streamsel import PCA
        >>> X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0]})
        >>> model = PCA(1)
        >>> model.learn_columns(X)
        >>> Z = model.transform_many(X)
        >>> list(Z.columns), Z["pca0"].round(2).tolist()
        (['pca0'], [-2.24, 0.0, 2.24])
        """
        frame = as_frame(X)
        used = self._map_in_use()
        names = list(used.names)
        values = select_features(X, names)
        infinite = np.argwhere(np.isinf(values))
        if infinite.size:
            row, column = infinite[0].tolist()
            raise bad_value_error(names[column], values[row, column], row)
        Z = self._apply(used, values)
        if frame is None:
            return Z
        from river.utils.dataframe import to_native_frame

        return to_native_frame(Z, like=frame, columns=list(self._names_of(Z.shape[1])))


@functools.cache
def _component_names(prefix: str, q: int) -> tuple[str, ...]:
    # Cached, as it is called for every row.
    return tuple(f"{prefix}{k}" for k in range(q))

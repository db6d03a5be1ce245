"""The target: what is to be explained, as columns of numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.scan import SMALL, UNDERFLOW, variation
from streamsel.held.possible import expect_means, expect_sums
from streamsel.shapes import Count, Flag, Maybe, Text, expect, expect_shapes
from streamsel.summation import two_sum
from streamsel.target.covariates import (
    encode_covariates,
    is_given,
    names_from_state,
    names_to_state,
)
from streamsel.target.describe import describe, of_survival
from streamsel.target.encode import encode, kinds_from_state, kinds_to_state
from streamsel.target.kept import KeptRows, same_rows
from streamsel.target.space import TargetSpace
from streamsel.target.strata import encode_strata, same_strata, strata_from_state
from streamsel.target.survival import encode_survival
from streamsel.target.weights import Weights, same_weights, weights_from_state, weights_to_state

Floats = NDArray[np.float64]

KINDS = ("auto", "class", "numeric", "survival")

# Rows of a tile of a transposing copy.
_TILE = 1024


class Target:
    """The observations of what is to be explained, centred, and their moments.

    Parameters
    ----------
    y
        (n,) or (n, c) numbers, (n,) labels, or a Series or DataFrame of either, of any library that
        narwhals knows. Labels (strings, booleans, categories) become one indicator column a class.
    kind
        "class" makes classes of numbers too, "numeric" refuses labels, "auto" takes labels, and
        whole numbers of few distinct values, for classes (`encode`); "survival" takes
        times and events, of which the martingale residuals become the target.
    covariates
        Further columns, given which everything is asked; None for none.
    covariate_names
        What they are called, if not as their frame says.
    weights
        (n,) how much each observation counts; None for all the same.
    strata
        (n,) groups within which the target is permuted; None for one.
    kept
        Which rows of the columns these observations are; None for all.

    Attributes
    ----------
    names
        One a column: the class of an indicator, the column's name or its number; a covariate's is a
        `Given`, and comes after the others.
    n, c
        Observations, and columns.
    is_class, kinds, given_kinds
        Whether it is one set of labels, which columns of a frame were, and which covariates.
    mean, low, cyy
        (c,) means, what rounding took from them, and (c, c) centred sums of products.
    by_rule
        Whether it came as whole numbers that may be classes or a quantity, and its values decided.
    description
        How it was taken, such as "10 classes, 31 to 37 rows each" or "numeric, 0 to 9"; None of a
        file of a version before.
    Y
        (c', n) the centred columns, one a row: c' = 1, or c and zero rows up to a multiple of four,
        as the loops over them like it. With weights they are turned, as the columns will be.
    is_pair, scanned
        Whether it is two classes without covariates, whose second column is the first, negated, and
        what columns are multiplied with then: the first column of Y; all of Y otherwise.
    weights
        Of the observations; None where all weigh the same.
    strata
        (n,) numbers of the groups within which the target is permuted; None for one.
    effective_rows
        How many observations of equal weight tell as much.
    """

    def __init__(
        self,
        y: Any,
        kind: str = "auto",
        covariates: Any = None,
        covariate_names: tuple[Hashable, ...] | None = None,
        weights: Any = None,
        strata: Any = None,
        kept: KeptRows | None = None,
    ) -> None:
        self.kept = kept
        self.weights: Weights | None = None
        self.description: str | None
        if kind == "survival":
            encoded, event, self.weights = encode_survival(y, weights)
            self.description = of_survival(event)
        else:
            encoded = encode(y, kind, by_values=True)
            self.description = describe(
                encoded.columns, encoded.names, is_class=encoded.is_class, kinds=encoded.kinds
            )
            if weights is not None:
                self.weights = Weights.of(weights, len(encoded.columns))
        self.by_rule, self.is_class = encoded.by_rule, encoded.is_class
        self.kinds, self.given_kinds = dict(encoded.kinds), dict[Hashable, bool]()
        if covariates is not None:
            beside = encode_covariates(covariates, covariate_names)
            if len(beside.columns) != len(encoded.columns):
                raise ValueError(
                    f"Expected covariates of {len(encoded.columns)} rows, as the target has. Got: "
                    f"{len(beside.columns)}."
                )
            self.given_kinds = dict(beside.kinds)
            encoded = encoded._replace(
                columns=np.hstack([encoded.columns, beside.columns]),
                names=[*encoded.names, *beside.names],
            )
        self.strata = None if strata is None else encode_strata(strata, len(encoded.columns))
        self._centre(encoded.columns, encoded.names)

    @classmethod
    def of_columns(
        cls, columns: Floats, names: list[Hashable], *, is_class: bool = False
    ) -> Target:
        """Return the target of these (n, c) columns."""
        target = cls.__new__(cls)
        target.by_rule, target.is_class, target.kinds, target.given_kinds = False, is_class, {}, {}
        target.description = describe(columns, names, is_class=is_class, kinds={})
        target.weights = target.strata = target.kept = None
        target._centre(columns, names)
        return target

    def _centre(self, columns: Floats, names: list[Hashable]) -> None:
        n, c = columns.shape
        if n < 2:
            raise ValueError(
                f"Expected a target of at least 2 observations. Got: {n}.\n"
                "Hint: a relation between a column and a target needs several rows."
            )
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0]
            raise ValueError(
                f"Expected a finite target. Got: {columns[row, column]} in row {row}, column "
                f"{names[column]!r}.\n"
                "Hint: learn_target(y, missing='drop') leaves out rows whose target is missing."
            )
        if self.weights is None:
            # The first row is near enough to the mean to keep an offset of 1e9 from eating digits.
            shift = columns[0]
            centred = columns - shift
            offset = centred.mean(axis=0)
            centred -= offset
            self.mean, self.low = two_sum(shift, offset)
        else:
            turned, self.mean, self.low = self.weights.turned(columns.T)
            centred = turned.T
            # What does not count does not vary either.
            columns = columns[self.weights.w > 0.0]
        squares = np.einsum("ij,ij->j", centred, centred)
        if not np.isfinite(squares).all():
            raise ValueError(
                "Expected a target whose squares fit into float64. Got: values beyond 1e150.\n"
                "Hint: divide the target by its scale; relevance does not depend on it."
            )
        tiny = (
            (squares < UNDERFLOW)
            & (np.abs(self.mean) < SMALL)
            & (columns != columns[0]).any(axis=0)
        )
        if tiny.any():
            raise ValueError(
                "Expected a target whose squares float64 can tell from 0. Got: values up to "
                f"{np.abs(columns[:, tiny]).max():.3g} in column {names[int(tiny.argmax())]!r}.\n"
                "Hint: divide the target by its scale; relevance does not depend on it."
            )
        for k in range(c):
            squares[k] = variation(squares[k], self.mean[k], n)
        if not squares[~is_given(names)].any():
            raise ValueError(
                "Expected a target that varies. Got: one value in all "
                f"{n} rows.\nHint: check that the right column was taken as the target."
            )
        centred[:, squares == 0.0] = 0.0
        self.names = names
        if self.is_class and c == 2:
            # To the last bit, as the moments of the second are those of the first, negated.
            centred[:, 1] = -centred[:, 0]
        self._hold(centred.T)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Target:
        """Return the target that `to_state` described."""
        expect(state, n_rows=Count(2), target_is_class=Flag(), target_description=Maybe(Text()))
        target = cls.__new__(cls)
        target.by_rule = False
        target.names = names_from_state(state["target_names"])
        c = len(target.names)
        shapes = {"target_Y": (c, state["n_rows"]), "target_mean": (c,), "target_low": (c,)}
        expect_shapes(state, **shapes)
        target.is_class = state["target_is_class"]
        target.description = state["target_description"]
        target.kinds = kinds_from_state(state["target_kinds"])
        target.given_kinds = kinds_from_state(state["target_given_kinds"])
        target.mean, target.low = state["target_mean"], state["target_low"]
        target.weights = weights_from_state(state, state["n_rows"])
        target.strata = strata_from_state(state, state["n_rows"])
        kept = state.get("target_kept")
        target.kept = None if kept is None else KeptRows.restored(kept, state["n_rows"])
        target._hold(state["target_Y"])
        return target

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs, but for n."""
        kept = {} if self.kept is None else {"target_kept": self.kept.to_state()}
        return {
            "target_names": names_to_state(self.names),
            "target_is_class": self.is_class,
            "target_kinds": kinds_to_state(self.kinds),
            "target_given_kinds": kinds_to_state(self.given_kinds),
            "target_mean": self.mean,
            "target_low": self.low,
            "target_Y": self.Y[: self.c],
            "target_description": self.description,
            **weights_to_state(self.weights),
            **({} if self.strata is None else {"target_strata": self.strata}),
            **kept,
        }

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no target has: a file may hold any."""
        expect_sums("targets", self.cyy)
        expect_means(self.mean, self.low, np.sqrt(self.cyy.diagonal()))

    def _hold(self, centred: Floats) -> None:
        self.c, self.n = c, n = centred.shape
        self.is_pair = self.is_class and c == 2
        self.cyy: Floats = centred @ centred.T
        rows = 1 if c == 1 else -(-c // 4) * 4
        self.Y: Floats = np.zeros((rows, n))
        # In tiles: centred mostly lies the other way round, and would be read across the cache.
        for start in range(0, n, _TILE):
            self.Y[:c, start : start + _TILE] = centred[:, start : start + _TILE]
        self._transposed: Floats | None = None
        self.scanned = self.Y[:1] if self.is_pair else self.Y

    @property
    def effective_rows(self) -> float:
        """How many observations of equal weight tell as much."""
        return float(self.n) if self.weights is None else self.weights.effective_rows

    def kurtosis(self, basis: Floats) -> float:
        """Return the excess kurtosis of r orthonormal vectors of observations, (r, n).

        n Σ h² - r(r + 2), h the squared norms of an observation: 0 for normal variables (Mardia
        1970), and of one vector n Σ d⁴ - 3. `basis_of` has those of the target itself.
        """
        if self.weights is None:
            squares = np.square(np.einsum("ij,ij->j", basis, basis))
        else:
            w, basis = self.weights.w, self.weights.reflected(basis)
            squares = np.square(np.einsum("ij,ij->j", basis, basis)) / np.where(w > 0.0, w, np.inf)
        return float(self.n * squares.sum() - len(basis) * (len(basis) + 2))

    def basis_of(self, space: TargetSpace) -> Floats:
        """Return an orthonormal basis of the target, without what the covariates explain."""
        found: Floats = space.weights @ self.Y[: self.c]
        return found

    @property
    def is_given(self) -> NDArray[np.bool_]:
        """Which columns are covariates, (c,)."""
        return is_given(self.names)

    def columns(self) -> Floats:
        """Return the columns as they came, (n, number of them), without the covariates.

        NaN in rows that weigh nothing.
        """
        asked = np.flatnonzero(~self.is_given)
        found: Floats = self.Y[asked].T
        if self.weights is not None:
            found = self.weights.back(found)
        return found + self.mean[asked]

    @property
    def YT(self) -> Floats:
        """Y transposed, (n, c') in rows: made when the first sparse column asks for it."""
        if self._transposed is None:
            self._transposed = np.ascontiguousarray(self.Y.T)
        return self._transposed

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other target has the same observations."""
        return (
            self.names == other.names
            and self.Y.shape == other.Y.shape
            and bool(np.array_equal(self.Y, other.Y))
            and same_strata(self.strata, other.strata)
            and same_weights(self.weights, other.weights)
            and same_rows(self.kept, other.kept)
        )


class NoTarget:
    """Stands for the target where variables explain each other: n rows, no columns."""

    names: tuple[Hashable, ...] = ()
    is_class = is_pair = False
    c = 0
    description: str | None = None
    by_rule = False
    kept: KeptRows | None = None

    def __init__(self, n: int, weights: Weights | None = None) -> None:
        self.n, self.weights = n, weights
        self.mean: Floats = np.zeros(0)
        self.cyy: Floats = np.zeros((0, 0))
        self.is_given = np.zeros(0, dtype=np.bool_)
        self.Y: Floats = np.zeros((0, n))
        self.scanned = self.Y
        self.YT: Floats = np.zeros((n, 0))

    @classmethod
    def of_weights(cls, weights: Any) -> NoTarget:
        """Return what stands for no target of observations that have weights."""
        n = np.size(weights)
        if n < 2:
            raise ValueError(f"Expected weights of at least 2 observations. Got: {n}.")
        return cls(n, Weights.of(weights, n))

    @property
    def effective_rows(self) -> float:
        """How many observations of equal weight tell as much."""
        return float(self.n) if self.weights is None else self.weights.effective_rows

    @classmethod
    def restored(cls, state: dict[str, Any]) -> NoTarget:
        """Return what `to_state` described."""
        return cls(state["n_rows"], weights_from_state(state, state["n_rows"]))

    def expect_possible(self) -> None:
        """Do nothing: there are no numbers."""

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs, but for n."""
        return weights_to_state(self.weights)

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other stands for no target too, of as many rows."""
        return (
            isinstance(other, NoTarget)
            and self.n == other.n
            and same_weights(self.weights, other.weights)
        )

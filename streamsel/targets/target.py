"""The target as centred columns of numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.scan import SMALL, UNDERFLOW, variation
from streamsel._utils.numeric import mid_ranks, two_sum
from streamsel.serialization.invariants import expect_means, expect_sums
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    OptionalKind,
    StringKind,
    expect,
    expect_shapes,
)
from streamsel.targets.description import describe_target, of_survival
from streamsel.targets.encoding import (
    Covariates,
    encode_covariates,
    encode_target,
    is_covariate,
    kinds_from_state,
    kinds_to_state,
    names_from_state,
    names_to_state,
)
from streamsel.targets.glm import FAMILIES, NullModel, encode_glm, fit_null_model
from streamsel.targets.kept_rows import KeptRows, same_kept_rows
from streamsel.targets.row_transform import RowTransform, same_transform, transform_from_state
from streamsel.targets.space import TargetSpace
from streamsel.targets.strata import encode_strata, same_strata, strata_from_state
from streamsel.targets.survival import encode_survival
from streamsel.targets.weights import ObservationWeights

Floats = NDArray[np.float64]

# Returns the whitening of observations with these targets (n, c) and covariates (n, d).
Whiten = Callable[[Floats, Floats], RowTransform]

KINDS = ("auto", "class", "numeric", "survival", *FAMILIES)

# Rows of a tile of a transposing copy.
_TILE = 1024


class Target:
    """The target's observations as centred columns, and their moments.

    Parameters
    ----------
    y
        (n,) or (n, c) numbers, (n,) labels, or a Series or DataFrame of either, of any library that
        narwhals supports. Labels (strings, booleans, categories) become one indicator column per
        class.
    kind
        "class" treats numbers as classes too, "numeric" rejects labels, "auto" treats labels, and
        whole numbers of few distinct values, as classes (`encode_target`); "survival" expects times
        and events, and uses their martingale residuals; "binary" and "count" use the residuals and
        variances of a null model.
    covariates
        Further columns to adjust for; None for none.
    covariate_names
        Their names, if not those of their frame.
    weights
        (n,) observation weights; None for equal ones.
    strata
        (n,) groups within which the target is permuted; None for one.
    kept
        The rows of the columns that these observations are; None for all.
    whiten
        Returns the row transformation, given relatedness, of targets (n, c) and covariates (n, d);
        None for none.
    awaits_relatedness
        Whether relatedness follows, by `with_relatedness`.

    Attributes
    ----------
    names
        One per column: the class of an indicator, the column's name or its number; a covariate's is
        a `Covariates`, and comes after the others.
    n, c
        Observations, and columns.
    is_class, kinds, covariate_kinds
        Whether it is one set of labels, which columns of a frame have labels, and which covariates.
    mean, low, cyy
        (c,) means, their rounding errors, and (c, c) centred sums of products.
    decided_by_values
        Whether the target was whole numbers, and their values decided between classes and a
        quantity.
    description
        Such as "10 classes, 31 to 37 rows each" or "numeric, 0 to 9"; None in files of earlier
        versions.
    Y
        (c', n) the centred columns, one per row: c' = 1, or c padded with zero rows to a multiple
        of four, for speed. With weights they are transformed, as the columns will be.
    is_pair, scan_rows
        Whether it is two classes without covariates, whose second column is the first, negated; and
        the rows to multiply columns with: the first row of Y in this case, else all of Y.
    row_transform
        Transformation of the rows by observation weights, which are the variances if there is a
        null model, or by relatedness; None for none.
    order
        (n,) ranks of one numeric column, as `mid_ranks` returns them, because distinct values may
        be equal once they are centred. None for other targets, with covariates or relatedness, and
        with weights in files of earlier versions.
    untransformed
        (n, c) the columns as they came, while relatedness is awaited; else None.
    null_model
        The null model of a GLM; None for other targets.
    strata
        (n,) numbers of the groups within which the target is permuted; None for one.
    effective_rows
        Effective number of observations of equal weight.
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
        whiten: Whiten | None = None,
        *,
        awaits_relatedness: bool = False,
    ) -> None:
        self.kept = kept
        self.row_transform: RowTransform | None = None
        self.description: str | None
        if kind == "survival":
            encoded, event, self.row_transform = encode_survival(y, weights)
            self.description = of_survival(event)
        elif kind in FAMILIES:
            encoded, self.description = encode_glm(y, kind)
            if weights is not None:
                _refuse_weights(ObservationWeights.of(weights, len(encoded.columns)), kind)
        else:
            encoded = encode_target(y, kind, by_values=True)
            self.description = describe_target(
                encoded.columns, encoded.names, is_class=encoded.is_class, kinds=encoded.kinds
            )
            if weights is not None:
                self.row_transform = ObservationWeights.of(weights, len(encoded.columns))
        self.decided_by_values, self.is_class = encoded.by_rule, encoded.is_class
        self.kinds, self.covariate_kinds = dict(encoded.kinds), dict[Hashable, bool]()
        if covariates is not None:
            covariate_columns = encode_covariates(covariates, covariate_names)
            if len(covariate_columns.columns) != len(encoded.columns):
                raise ValueError(
                    f"Expected covariates of {len(encoded.columns)} rows, as the target has. Got: "
                    f"{len(covariate_columns.columns)}."
                )
            self.covariate_kinds = dict(covariate_columns.kinds)
            encoded = encoded._replace(
                columns=np.hstack([encoded.columns, covariate_columns.columns]),
                names=[*encoded.names, *covariate_columns.names],
            )
        self.strata = None if strata is None else encode_strata(strata, len(encoded.columns))
        self.null_model: NullModel | None = None
        if kind in FAMILIES:
            values = encoded.columns.copy()
            self.null_model = fit_null_model(kind, values[:, 0], values[:, 1:])
            values[:, 0] = self.null_model.working_residual
            self.row_transform = ObservationWeights.of(self.null_model.variance, len(values))
            encoded = encoded._replace(columns=values)
        self._centre(encoded.columns, encoded.names, whiten)
        self.untransformed = encoded.columns if awaits_relatedness else None

    @classmethod
    def of_columns(
        cls, columns: Floats, names: list[Hashable], *, is_class: bool = False
    ) -> Target:
        """Return the target with these (n, c) columns."""
        target = cls.__new__(cls)
        target.decided_by_values, target.is_class, target.kinds, target.covariate_kinds = (
            False,
            is_class,
            {},
            {},
        )
        target.description = describe_target(columns, names, is_class=is_class, kinds={})
        target.row_transform = target.strata = target.kept = None
        target.untransformed = target.null_model = None
        target._centre(columns, names)
        return target

    def with_relatedness(self, whiten: Whiten) -> Target:
        """Return a target that awaits relatedness, whitened by it."""
        assert self.untransformed is not None  # noqa: S101
        target = copy.copy(self)
        target._centre(self.untransformed, self.names, whiten)
        target.untransformed = None
        return target

    def _centre(self, columns: Floats, names: list[Hashable], whiten: Whiten | None = None) -> None:
        n, c = columns.shape
        if n < 2:
            raise ValueError(
                f"Expected a target of at least 2 observations. Got: {n}.\n"
                "Hint: relevance needs several rows."
            )
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0]
            hint = "replace infinite values by numbers, or by NaN, which is a missing target."
            if np.isnan(columns[row, column]):
                hint = "learn_target(y, missing='drop') excludes rows with a missing target."
            raise ValueError(
                f"Expected a finite target. Got: {columns[row, column]} in row {row}, column "
                f"{names[column]!r}.\nHint: {hint}"
            )
        is_number = c == 1 and not self.is_class and whiten is None and self.null_model is None
        # Ranked when a method needs the order: most do not.
        self._order: NDArray[np.int32] | None = None
        self._ordered_values = columns[:, 0].copy() if is_number else None
        if whiten is not None:
            # The second of two classes is the first, negated.
            targets = columns[:, ~is_covariate(names)]
            targets = targets[:, :1] if self.is_class and targets.shape[1] == 2 else targets
            self.row_transform = whiten(targets, columns[:, is_covariate(names)])
        if self.row_transform is None:
            # Shifted by the first row, so that a large offset costs no precision.
            shift = columns[0]
            centred = columns - shift
            offset = centred.mean(axis=0)
            centred -= offset
            self.mean, self.low = two_sum(shift, offset)
        else:
            transformed, self.mean, self.low = self.row_transform.transform(columns.T)
            centred = transformed.T
            # Rows of weight 0 do not vary.
            columns = columns[self.row_transform.row_weights > 0.0]
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
            k = int(tiny.argmax())
            raise _underflow_error(names[k], float(np.abs(columns[:, k]).max()))
        for k in range(c):
            squares[k] = variation(squares[k], self.mean[k], n)
        if not squares[~is_covariate(names)].any():
            raise ValueError(
                "Expected a target that varies. Got: one value in all "
                f"{n} rows.\nHint: check that the target is the right column."
            )
        centred[:, squares == 0.0] = 0.0
        self.names = names
        if self.is_class and c == 2:
            # Exact negation, because the second column's moments are those of the first, negated.
            centred[:, 1] = -centred[:, 0]
        self._set_columns(centred.T)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Target:
        """Return the target that `to_state` saved."""
        expect(
            state,
            n_rows=CountKind(2),
            target_is_class=BoolKind(),
            target_description=OptionalKind(StringKind()),
        )
        target = cls.__new__(cls)
        target.decided_by_values = False
        target.names = names_from_state(state["target_names"])
        c = len(target.names)
        shapes = {"target_Y": (c, state["n_rows"]), "target_mean": (c,), "target_low": (c,)}
        expect_shapes(state, **shapes)
        target.is_class = state["target_is_class"]
        target.description = state["target_description"]
        target.kinds = kinds_from_state(state["target_kinds"])
        target.covariate_kinds = kinds_from_state(state["target_covariate_kinds"])
        target.mean, target.low = state["target_mean"], state["target_low"]
        target.row_transform = transform_from_state(state, state["n_rows"])
        target.strata = strata_from_state(state, state["n_rows"])
        kept = state.get("target_kept")
        target.kept = None if kept is None else KeptRows.restored(kept, state["n_rows"])
        if "target_order" in state:
            expect(state, target_order=ArrayKind((state["n_rows"],), np.int32))
        target.untransformed = state.get("target_untransformed")
        if target.untransformed is not None:
            expect_shapes(state, target_untransformed=(state["n_rows"], c))
        null = state.get("target_null_model")
        target.null_model = None if null is None else NullModel.restored(null, state["n_rows"])
        target._set_columns(state["target_Y"])
        is_number = c == 1 and not (target.is_class or target.row_transform or null)
        target._order = state.get("target_order")
        target._ordered_values = target.Y[0] if is_number else None
        return target

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays and JSON-compatible values, without n."""
        kept = {} if self.kept is None else {"target_kept": self.kept.to_state()}
        null = self.null_model
        return {
            "target_names": names_to_state(self.names),
            "target_is_class": self.is_class,
            "target_kinds": kinds_to_state(self.kinds),
            "target_covariate_kinds": kinds_to_state(self.covariate_kinds),
            "target_mean": self.mean,
            "target_low": self.low,
            "target_Y": self.Y[: self.c],
            "target_description": self.description,
            **({} if self.row_transform is None else self.row_transform.to_state()),
            **({"target_order": self.order} if self._has_own_order else {}),
            **({} if self.untransformed is None else {"target_untransformed": self.untransformed}),
            **({} if self.strata is None else {"target_strata": self.strata}),
            **kept,
            **({} if null is None else {"target_null_model": null.to_state()}),
        }

    def expect_valid(self) -> None:
        """Raise ValueError for values that no target can have, as a file may hold."""
        expect_sums("targets", self.cyy)
        expect_means(self.mean, self.low, np.sqrt(self.cyy.diagonal()))
        if self._order is not None and not np.array_equal(self._order, mid_ranks(self._order)):
            raise ValueError("Corrupt model file: the order of the target must be its ranks.")

    def _set_columns(self, centred: Floats) -> None:
        self.c, self.n = c, n = centred.shape
        self.is_pair = self.is_class and c == 2
        self.cyy: Floats = centred @ centred.T
        rows = 1 if c == 1 else -(-c // 4) * 4
        self.Y: Floats = np.zeros((rows, n))
        # In tiles, because `centred` is mostly the transpose of a C-contiguous array.
        for start in range(0, n, _TILE):
            self.Y[:c, start : start + _TILE] = centred[:, start : start + _TILE]
        self._transposed: Floats | None = None
        self.scan_rows = self.Y[:1] if self.is_pair else self.Y

    @property
    def effective_rows(self) -> float:
        """The effective number of observations of equal weight."""
        # The weights of a null model are variances: all observations count.
        if self.row_transform is None or self.null_model is not None:
            return float(self.n)
        return self.row_transform.effective_rows

    @property
    def order(self) -> NDArray[np.int32] | None:
        """Ranks of one numeric column; None for other targets."""
        if self._order is None and self._ordered_values is not None:
            self._order = mid_ranks(self._ordered_values)
        return self._order

    @property
    def _has_own_order(self) -> bool:
        """Whether the order of the values is not that of Y."""
        return self.order is not None and not np.array_equal(self.order, mid_ranks(self.Y[0]))

    def ranks(self) -> NDArray[np.int32]:
        """Return the ranks of the first column, as `mid_ranks` does."""
        return mid_ranks(self.Y[0]) if self.order is None else self.order

    def kurtosis(self, basis: Floats) -> float:
        """Return the excess kurtosis of r orthonormal vectors of observations, (r, n).

        n Σ h² - r(r + 2), h the squared norms of the observations: 0 for normal variables (Mardia
        1970), and n Σ d⁴ - 3 for one vector. `basis_of` returns those of the target itself.
        """
        if self.row_transform is None:
            squares = np.square(np.einsum("ij,ij->j", basis, basis))
        else:
            w, basis = self.row_transform.row_weights, self.row_transform.reflect(basis)
            squares = np.square(np.einsum("ij,ij->j", basis, basis)) / np.where(w > 0.0, w, np.inf)
        return float(self.n * squares.sum() - len(basis) * (len(basis) + 2))

    def basis_of(self, space: TargetSpace) -> Floats:
        """Return an orthonormal basis of the target, covariates projected out."""
        found: Floats = space.weights @ self.Y[: self.c]
        return found

    @property
    def is_covariate(self) -> NDArray[np.bool_]:
        """Which columns are covariates, (c,)."""
        return is_covariate(self.names)

    def columns(self) -> Floats:
        """Return the original columns, (n, number of them), without the covariates.

        NaN in rows of weight 0.
        """
        indices = np.flatnonzero(~self.is_covariate)
        found: Floats = self.Y[indices].T
        if self.row_transform is not None:
            found = self.row_transform.inverse_transform(found)
        return found + self.mean[indices]

    @property
    def YT(self) -> Floats:
        """Y transposed, (n, c') in rows; computed when the first sparse column needs it."""
        if self._transposed is None:
            self._transposed = np.ascontiguousarray(self.Y.T)
        return self._transposed

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other target has the same observations."""
        return (
            self.names == other.names
            and self.Y.shape == other.Y.shape
            and bool(np.array_equal(self.Y, other.Y))
            and (
                self.order is None
                or other.order is None
                or bool(np.array_equal(self.order, other.order))
            )
            and same_strata(self.strata, other.strata)
            and same_transform(self.row_transform, other.row_transform)
            and same_kept_rows(self.kept, other.kept)
            and (self.untransformed is None) is (other.untransformed is None)
        )


def _refuse_weights(weights: ObservationWeights | None, kind: str) -> None:
    """Raise ValueError for unequal weights, as the scale of the score test would be unknown."""
    if weights is not None:
        raise ValueError(
            f"Expected no weights, or equal ones, with target_type={kind!r}, whose variances are "
            "the weights. Got: weights that differ.\n"
            "Hint: repeat each row in proportion to its weight, or omit weights."
        )


def complete_target(
    y: Any, kind: str, hint: str = "leave out the rows without a target, of the columns too"
) -> Target:
    """Return a target; if values are missing, raise ValueError with the caller's hint."""
    with hint_for_missing(hint):
        return Target(y, kind)


@contextmanager
def hint_for_missing(hint: str, replaced: str = "learn_target") -> Iterator[None]:
    """Replace the hint of a ValueError, if it begins with `replaced`.

    By default, that is the hint for missing targets: learn_target(y, missing='drop').
    """
    try:
        yield
    except ValueError as error:
        message, found, _ = str(error).partition(f"\nHint: {replaced}")
        if not found:
            raise
        raise ValueError(f"{message}\nHint: {hint}.") from None


def _underflow_error(name: Hashable, largest: float) -> ValueError:
    """Return the error for a column, of the target or a covariate, of too small values."""
    what, column = "the target", f"column {name!r}"
    if isinstance(name, Covariates):
        what, column = "the covariate", f"{name.name!r}"
    return ValueError(
        f"Expected values of {what} whose squares do not underflow in float64. Got: values up to "
        f"{largest:.3g} in {column}.\n"
        f"Hint: divide {what} by its scale; relevance does not depend on it."
    )


class NoTarget:
    """Placeholder for the target of unsupervised learners: n rows, no columns."""

    names: tuple[Hashable, ...] = ()
    is_class = is_pair = False
    c = 0
    description: str | None = None
    decided_by_values = False
    kept: KeptRows | None = None
    untransformed: Floats | None = None

    def __init__(self, n: int, row_transform: RowTransform | None = None) -> None:
        self.n, self.row_transform = n, row_transform
        self.mean: Floats = np.zeros(0)
        self.cyy: Floats = np.zeros((0, 0))
        self.is_covariate = np.zeros(0, dtype=np.bool_)
        self.Y: Floats = np.zeros((0, n))
        self.scan_rows = self.Y
        self.YT: Floats = np.zeros((n, 0))

    @classmethod
    def of_weights(cls, weights: Any) -> NoTarget:
        """Return the placeholder for observations that have weights."""
        n = np.size(weights)
        if n < 2:
            raise ValueError(f"Expected weights of at least 2 observations. Got: {n}.")
        return cls(n, ObservationWeights.of(weights, n))

    @property
    def effective_rows(self) -> float:
        """The effective number of observations of equal weight."""
        return float(self.n) if self.row_transform is None else self.row_transform.effective_rows

    @classmethod
    def restored(cls, state: dict[str, Any]) -> NoTarget:
        """Return the placeholder that `to_state` saved."""
        return cls(state["n_rows"], transform_from_state(state, state["n_rows"]))

    def expect_valid(self) -> None:
        """Do nothing, because there are no values."""

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays and JSON-compatible values, without n."""
        return {} if self.row_transform is None else self.row_transform.to_state()

    def same_as(self, other: Target | NoTarget) -> bool:
        """Whether the other is also a placeholder, with as many rows and the same weights."""
        return (
            isinstance(other, NoTarget)
            and self.n == other.n
            and same_transform(self.row_transform, other.row_transform)
        )

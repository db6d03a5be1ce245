"""Whitening of related observations, so that formulas for independent ones are exact.

With V = λK + I, T = V^-½ scaled so that ‖T1‖ = √n, and an orthogonal matrix R that takes T1 / √n to
1 / √n, a column x becomes x' = R T x. Then x' has the generalised least-squares mean of x, and
⟨x' - mean, y' - mean⟩ is (x - x̄)ᵀV⁻¹(y - ȳ) up to the scale: every method that only uses means and
inner products is exact given relatedness without change (EMMAX; Kang et al. 2010).

If the columns of one group are left out of the K of that group (leave one chromosome out), every
group has its own V. Its R also takes the covariates and the target, orthonormalised, to those of
the reference: one target then serves all groups, with exactly the relevances of each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.lapack import fill_product
from streamsel._kernels.whitening import center_about_mean
from streamsel._utils.numeric import two_sum
from streamsel._utils.system import run_in_threads
from streamsel.params import parameter_repr
from streamsel.serialization.schema import (
    BoolKind,
    FloatKind,
    ListKind,
    NamesKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.targets.encoding import is_missing
from streamsel.targets.reml import Reml, Spectrum, VarianceComponents

Floats = NDArray[np.float64]
Groups = Mapping[Hashable, Hashable] | Callable[[Hashable], Hashable]

# Columns that are multiplied at once. BLAS computes a column by the same operations wherever it is,
# if the number of columns is a multiple of its own small tiles.
_TILE, _MULTIPLE = 192, 24
# A column that adds less than this share of its variance to those before it adds none, as for the
# space of the target.
_RANK_TOLERANCE = 1e-10


def as_group(value: Any) -> Hashable:
    """Return a group as files store it: None if it is missing, a NumPy number as one of Python.

    TypeError if it cannot be hashed.
    """
    found = value.item() if isinstance(value, np.generic) else value
    if is_missing(found):
        return None
    try:
        hash(found)
    except TypeError:
        raise TypeError(
            "Expected groups that can be hashed, such as text or numbers. Got: "
            f"{parameter_repr(found)}."
        ) from None
    group: Hashable = found
    return group


def group_of(groups: Groups, name: Hashable) -> Hashable:
    """Return the group of a column; None if it has none."""
    return as_group(groups(name) if callable(groups) else groups.get(name))


class Frame(NamedTuple):
    """The transformation of the columns of one group.

    Parameters
    ----------
    reflections
        (k, n) vectors v of the reflections x - (x·v) v, whose product is -R.
    mean_weights
        (n,) weights g of the generalised least-squares mean.
    transposed
        (n, n) the transpose of R T (I - 1 gᵀ).
    target_length
        Length of the whitened residual of a single target on mean and covariates, in a unit that
        all groups share.
    """

    reflections: Floats
    mean_weights: Floats
    transposed: Floats
    target_length: float = 1.0

    @classmethod
    def of(cls, root: Floats, basis: Floats, reference: Floats) -> Frame:
        """Return the frame in which (n, k) orthonormal vectors `basis` become `reference`.

        `root` is T, (n, n); the first of the vectors is T1 / √n.
        """
        n = len(root)
        reflections: list[Floats] = []
        for a, b in zip(basis.T, reference.T, strict=True):
            # Reflect a to -b, as both may be equal; the vectors before stay unchanged.
            v = _reflect(a, reflections)
            if v @ b < 0.0:
                reflections.append(b * np.sqrt(2.0))
                v = _reflect(v, reflections[-1:])
            v = v + b
            reflections.append(v * np.sqrt(2.0 / (v @ v)))
        ones = root.sum(axis=1)
        # g = V⁻¹1 / n, as 1ᵀV⁻¹1 = n.
        mean_weights = root @ ones / n
        mean_weights /= mean_weights.sum()
        # Reflected as a matrix whose columns are those of the transformation.
        transformation = -_reflect(root - np.outer(ones, mean_weights), reflections)
        vectors = np.array(reflections).reshape(-1, n)
        return cls(vectors, mean_weights, np.ascontiguousarray(transformation.T))

    def root(self) -> Floats:
        """Return T, (n, n)."""
        n = self.mean_weights.size
        found = self.undo(self.transposed.T)
        found = found + np.outer(self.undo(np.ones(n)), self.mean_weights)
        return 0.5 * (found + found.T)

    def undo(self, columns: Floats) -> Floats:
        """Return Rᵀ times columns (n, ...): transformed columns become whitened residuals."""
        return -_reflect(columns, self.reflections[::-1])

    def transform(self, X: NDArray[Any], n_jobs: int, out: Floats) -> tuple[Floats, Floats]:
        """Fill out (b, n) with transformed columns; return their means and rounding errors."""
        b, n = X.shape
        shift, mean = np.empty(b), np.empty(b)

        def transform_tiles(part: slice) -> None:
            for start in range(part.start * _TILE, min(b, part.stop * _TILE), _TILE):
                tile = slice(start, min(b, start + _TILE))
                size = tile.stop - start
                padded = -(-size // _MULTIPLE) * _MULTIPLE
                centred = np.zeros((padded, n))
                with np.errstate(all="ignore"):
                    center_about_mean(
                        X[tile], self.mean_weights, centred[:size], shift[tile], mean[tile]
                    )
                if padded == size:
                    fill_product(centred, self.transposed, out[tile])
                else:
                    product = np.empty((padded, n))
                    fill_product(centred, self.transposed, product)
                    out[tile] = product[:size]

        n_tiles = -(-b // _TILE)
        run_in_threads(transform_tiles, n_tiles, max(1, min(n_jobs, n_tiles)))
        with np.errstate(all="ignore"):
            return two_sum(shift, mean)


class Whitening:
    """Whitening of related observations.

    Parameters
    ----------
    frames
        Group -> the transformation of its columns. None is for the columns of all other groups;
        the first is the reference, which transforms the target.
    components
        Group -> its variance components.
    groups
        The group of a column by its name; None for a single V, and if it is not known.

    Attributes
    ----------
    n, effective_rows
        Number of observations: those of a whitened column are independent.
    row_weights
        (n,) ones.
    by_column
        Whether the transformation of a column depends on its name.
    has_found_groups
        Whether a column that `groups` contains, with or without a group, was transformed; True
        for a single V, and after a copy or file.
    """

    def __init__(
        self,
        frames: Mapping[Hashable, Frame],
        components: Mapping[Hashable, VarianceComponents],
        groups: Groups | None = None,
        *,
        by_column: bool,
    ) -> None:
        self._frames, self.components, self.groups = dict(frames), dict(components), groups
        self._reference = next(iter(self._frames.values()))
        self.n = self._reference.mean_weights.size
        self.effective_rows = float(self.n)
        self.row_weights: Floats = np.ones(self.n)
        self.by_column = by_column
        self.has_found_groups = not by_column

    @property
    def is_identity(self) -> bool:
        """Whether observations are independent: one V, whose ratio is 0."""
        return not self.by_column and not any(found.ratio for found in self.components.values())

    @classmethod
    def of(
        cls,
        spectra: Iterable[tuple[Hashable, Spectrum]],
        target: Floats,
        covariates: Floats,
        groups: Groups | None = None,
        ratio: float | None = None,
    ) -> Self:
        """Return the whitening by relatedness matrices.

        Parameters
        ----------
        spectra
            Groups, and the eigendecompositions of their matrices; the first is the reference.
        target, covariates
            (n, c) and (n, d) columns.
        groups
            As in the constructor; None for a single matrix.
        ratio
            The variance ratio λ; None estimates that of every matrix by REML.
        """
        n = len(target)
        ones = np.full((n, 1), n**-0.5)
        fixed = np.hstack([ones, independent_columns(covariates)])
        basis = np.hstack([ones, independent_columns(np.hstack([covariates, target]))])
        frames: dict[Hashable, Frame] = {}
        components: dict[Hashable, VarianceComponents] = {}
        reference = ones
        for group, spectrum in spectra:
            reml = Reml(spectrum, target, fixed)
            found = components[group] = reml.components(
                reml.best_ratio() if ratio is None else ratio
            )
            root = spectrum.inverse_root(found.ratio)
            root *= np.sqrt(n) / np.linalg.norm(root.sum(axis=1))
            own, length = _orthonormal(root @ (basis if groups is not None else ones))
            # A single reflection, which is its own inverse, takes T1 / √n to -1 / √n.
            frame = Frame.of(root, own, reference) if frames else Frame.of(root, own[:, :1], ones)
            reference = reference if frames else frame.undo(own)
            frames[group] = frame._replace(target_length=length)
        return cls(frames, components, groups, by_column=groups is not None)

    def transform(
        self, X: NDArray[Any], names: Sequence[Hashable] = (), n_jobs: int = 1
    ) -> tuple[Floats, Floats, Floats]:
        """Return columns X (b, n), one per row, transformed and centred.

        Columns without names are transformed as the target is.

        Returns
        -------
        (b, n) the columns, of mean 0 up to rounding, (b,) their generalised least-squares means,
        and the rounding errors of these.
        """
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False
        if not self.by_column or not len(names):
            out = np.empty(X.shape)
            mean, low = self._reference.transform(X, n_jobs, out)
            return out, mean, low
        out, mean, low = np.empty(X.shape), np.empty(len(X)), np.empty(len(X))
        for frame, indices in self._by_frame(names):
            part = X[indices]
            part.flags.writeable = False
            transformed = np.empty(part.shape)
            mean[indices], low[indices] = frame.transform(part, n_jobs, transformed)
            out[indices] = transformed
        return out, mean, low

    def reflect(self, rows: Floats) -> Floats:
        """Return rows (..., n) reflected: the target becomes its whitened residuals.

        It is its own inverse.
        """
        return np.moveaxis(self._reference.undo(np.moveaxis(rows, -1, 0)), 0, -1)

    def inverse_transform(self, Z: Floats) -> Floats:
        """Return transformed and centred columns (n, k) on the original scale."""
        from scipy.linalg import cho_factor, cho_solve

        found: Floats = cho_solve(cho_factor(self._reference.root()), self.reflect(Z.T).T)
        return found

    def observations(
        self, X: Floats, transformed: Floats, mean: Floats, names: Sequence[Hashable]
    ) -> Floats:
        """Return the whitened residuals of columns X (b, n), plus their means."""
        found = np.empty(X.shape)
        for frame, indices in self._by_frame(names):
            found[indices] = frame.undo(transformed[indices].T).T + mean[indices, None]
        return found

    def target_scales(self, names: Sequence[Hashable]) -> Floats | None:
        """Return the length of the target in the frames of columns, relative to the reference.

        None if the groups of columns are not known, as after loading those of a function.
        """
        if self.by_column and self.groups is None:
            return None
        found = np.ones(len(names))
        for frame, indices in self._by_frame(names):
            found[indices] = frame.target_length / self._reference.target_length
        return found

    def _by_frame(self, names: Sequence[Hashable]) -> Iterator[tuple[Frame, NDArray[np.intp]]]:
        """Yield the frames of columns, and the indices of the columns of each."""
        if not self.by_column:
            yield self._reference, np.arange(len(names))
            return
        members: dict[Hashable, list[int]] = {}
        for index, name in enumerate(names):
            group = self._group_of(name)
            members.setdefault(group, []).append(index)
            if not self.has_found_groups:
                is_key = isinstance(self.groups, Mapping) and name in self.groups
                self.has_found_groups = is_key or group is not None
        for group, indices in members.items():
            yield self._frames[group], np.array(indices)

    def _group_of(self, name: Hashable) -> Hashable:
        """Return the group of a column that has a V; ValueError if there is none."""
        if self.groups is None:
            raise self.unknown_groups_error()
        group = group_of(self.groups, name)
        if group in self._frames:
            return group
        if None in self._frames:
            return None
        raise ValueError(
            f"Expected a column of one of the groups of relatedness, {list(self._frames)!r:.80}. "
            f"Got: column {parameter_repr(name)} of group {parameter_repr(group)}.\n"
            "Hint: give the matrix for columns of other groups under None."
        )

    @property
    def stores_groups(self) -> bool:
        """Whether a copy can transform further columns: it does not store a function of names."""
        return not self.by_column or isinstance(self.groups, Mapping)

    def unknown_groups_error(self) -> ValueError:
        """Return the error for further columns of a copy that has not stored their groups."""
        return ValueError(
            "Expected the groups of the columns, to leave them out of the relatedness. Got: a "
            "model whose groups were a function, which copies and files do not store.\n"
            "Hint: groups={column: group} is stored."
        )

    def no_group_text(self) -> str:
        """Return a warning that no column has a group."""
        some = f", {[*islice(self.groups, 5)]!r:.60}" if isinstance(self.groups, Mapping) else ""
        return (
            "None of the columns has a group that is left out of the relatedness: all were tested "
            "with the matrix for other columns. Hint: names of columns must be those of groups"
            f"{some}."
        )

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the whitening for a file; groups that are a function are not stored."""
        groups = self.groups if isinstance(self.groups, Mapping) else None
        return {
            "target_whitening": {
                "left_out": list(self._frames),
                "frames": [frame._asdict() for frame in self._frames.values()],
                "components": [self.components[group]._asdict() for group in self._frames],
                "by_column": self.by_column,
                "groups": None if groups is None else [list(groups), list(groups.values())],
            }
        }

    @classmethod
    def from_state(cls, state: Any, n: int) -> Self:
        """Return the whitening of n rows that `to_state` saved."""
        expect(state, by_column=BoolKind())
        size = length_in(state, "left_out")
        frames = [_frame_from_state(frame, n) for frame in _list(state, "frames", size)]
        components = [_components_from_state(one) for one in _list(state, "components", size)]
        left_out, groups = state["left_out"], state.get("groups")
        expect({"left_out": left_out}, left_out=NamesKind())
        if not size or (size > 1 and not state["by_column"]):
            raise ValueError(f"Expected relatedness of one group. Got: {size} groups.")
        if groups is not None:
            names, members = _list(state, "groups", 2)
            expect({"names": names}, names=NamesKind())
            groups = dict(zip(names, _list({"groups": members}, "groups", len(names)), strict=True))
        found = cls(
            dict(zip(left_out, frames, strict=True)),
            dict(zip(left_out, components, strict=True)),
            groups,
            by_column=state["by_column"],
        )
        found.has_found_groups = True
        return found

    def same_as(self, other: object) -> bool:
        """Whether another transformation is the same."""
        return (
            isinstance(other, Whitening)
            and self.by_column == other.by_column
            # Functions are equal only if they are one object; copies and files store none.
            and self.groups == other.groups
            and self._frames.keys() == other._frames.keys()
            and all(
                np.array_equal(frame.transposed, other._frames[group].transposed)
                for group, frame in self._frames.items()
            )
        )


def _reflect(columns: Floats, vectors: Sequence[Floats] | Floats) -> Floats:
    """Return columns (n, ...) after the reflections x - (x·v) v, in order."""
    found = columns
    for v in vectors:
        found = found - np.multiply.outer(v, np.tensordot(v, found, 1))
    return found


def independent_columns(columns: Floats) -> Floats:
    """Return orthonormal directions that each of (n, c) columns adds to the mean and those before.

    A column that adds less than 1e-10 of its variance adds none.
    """
    # In units of the largest values, whose squares cannot overflow.
    units = np.abs(columns).max(axis=0, initial=0.0)
    centred = columns / np.where(units > 0.0, units, 1.0)
    centred -= centred[0]
    centred -= centred.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    found = np.zeros((len(columns), 0))
    for x in (centred[:, lengths > 0.0] / lengths[lengths > 0.0]).T:
        # Projected twice: once is inaccurate for a small residual.
        residual = x
        for _ in range(2):
            residual = residual - found @ (found.T @ residual)
            residual = residual - residual.mean()
        square = float(residual @ residual)
        if square > _RANK_TOLERANCE:
            found = np.hstack([found, residual[:, None] / np.sqrt(square)])
    return found


def _orthonormal(columns: Floats) -> tuple[Floats, float]:
    """Return Q (n, k) of the QR decomposition of independent columns, R's diagonal positive.

    Also return the length of the residual of the last column on the others.
    """
    Q, R = np.linalg.qr(columns)
    found: Floats = Q * np.where(R.diagonal() < 0.0, -1.0, 1.0)
    return found, abs(float(R[-1, -1]))


def _list(state: dict[str, Any], name: str, size: int) -> list[Any]:
    """Return a list of a state after checking its length."""
    found = state.get(name)
    if type(found) is not list or len(found) != size:
        raise ValueError(f"Expected a list of {size} {name}. Got: {found!r:.60}.")
    return found


def _frame_from_state(state: dict[str, Any], n: int) -> Frame:
    k = length_in(state, "reflections")
    expect_shapes(state, reflections=(k, n), mean_weights=(n,), transposed=(n, n))
    expect(state, target_length=FloatKind(0.0))
    arrays = {name: np.array(state[name]) for name in ("reflections", "mean_weights", "transposed")}
    frame = Frame(**arrays, target_length=state["target_length"])
    squares = np.square(frame.reflections).sum(axis=1)
    if not (np.isfinite(frame.transposed).all() and np.abs(squares - 2.0).max(initial=0.0) < 1e-9):
        raise ValueError("Expected a whitening by reflections. Got: others.")
    return frame


def _components_from_state(state: dict[str, Any]) -> VarianceComponents:
    sizes = {name: ListKind(length_in(state, name), FloatKind(0.0)) for name in _SIGMAS}
    expect(state, ratio=FloatKind(0.0), heritability=FloatKind(0.0), log_likelihood=FloatKind())
    expect(state, **sizes)
    return VarianceComponents(*(state[name] for name in VarianceComponents._fields))


_SIGMAS = ("sigma2_u", "sigma2_e")

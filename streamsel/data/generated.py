"""Columns that follow from others, whose moments are computed without making them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class GeneratedMoments(NamedTuple):
    """Moments of generated columns.

    Parameters
    ----------
    mean, mean_error, m2
        (b,) means, their rounding errors, and sums of squares about the means.
    cxy
        (b, c) inner products with rows.
    is_accurate
        (b,) whether the moments of a column have a relative error below 1e-10; others are ignored.
    """

    mean: Floats
    mean_error: Floats
    m2: Floats
    cxy: Floats
    is_accurate: NDArray[np.bool_]

    def part(self, which: slice) -> GeneratedMoments:
        """Return those of consecutive columns."""
        return GeneratedMoments(
            self.mean[which],
            self.mean_error[which],
            self.m2[which],
            self.cxy[which],
            self.is_accurate[which],
        )


# A learner multiplies columns with its target, and some with its normal scores.
_MAX_CACHED = 2


class MomentsCache:
    """Moments of the columns of a block for the last targets, as chunks ask for them in turn."""

    def __init__(self) -> None:
        self._found: tuple[tuple[Floats, GeneratedMoments], ...] = ()

    def of(self, Y: Floats, compute: Callable[[], GeneratedMoments]) -> GeneratedMoments:
        """Return the moments for the rows Y, computed if these are new."""
        for rows, moments in self._found:
            if rows is Y:
                return moments
        moments = compute()
        self._found = ((Y, moments), *self._found)[:_MAX_CACHED]
        return moments


class GeneratedColumns(abc.ABC):
    """Columns of a block that are made on request, and whose moments are computed without them.

    The values of a `Block` can be such an object, instead of an array. `ColumnStream.blocks`
    makes the columns, unless its caller accepts generated ones.

    Attributes
    ----------
    shape
        (n, b), observations and columns.
    dtype
        float64, the type of the columns when they are made.
    """

    shape: tuple[int, int]
    dtype = np.dtype(np.float64)

    @abc.abstractmethod
    def moments(self, Y: Floats, n_jobs: int = 1) -> GeneratedMoments:
        """Return the moments of all columns.

        Parameters
        ----------
        Y
            (c, n) rows to multiply the columns with, each of mean 0 up to rounding.
        n_jobs
            Number of threads; the result does not depend on it.

        Returns
        -------
        The moments. An accurate column of sum of squares 0.0 is constant, and all accurate moments
        are finite.
        """

    @abc.abstractmethod
    def products(self, V: Floats) -> Floats:
        """Return the inner products of all columns with the rows of V (q, n), (b, q)."""

    @abc.abstractmethod
    def columns(self, indices: NDArray[np.intp]) -> Floats:
        """Make the columns at `indices`, one per row, (k, n), C-contiguous."""

    @abc.abstractmethod
    def part(self, which: slice) -> GeneratedColumns:
        """Return consecutive columns, without making them."""

    def make(self, which: slice = slice(None)) -> Floats:
        """Make consecutive columns, (n, k), Fortran-contiguous."""
        return self.columns(np.arange(*which.indices(self.shape[1]))).T


def parts_of_width(size: int, width: int) -> Iterator[slice]:
    """Yield slices that cut `size` columns into parts of at most `width`."""
    for start in range(0, size, width):
        yield slice(start, min(start + width, size))

"""Dependence between distant columns, which knockoffs of neighbouring columns do not imitate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Largest sample; half of it is dropped if there are more.
_MAX_SAMPLE = 32
# Comparisons needed to judge a column, and columns needed to judge a stream.
_MIN_COMPARISONS, _MIN_COLUMNS = 20, 8
# A column depends on a distant one if the square of its largest correlation exceeds the largest by
# chance by this factor.
_FACTOR = 2.0


class DistantDependence:
    """Correlations of columns, given their neighbours, with distant columns.

    The residuals of a sample of columns are compared with all later columns. So are the same
    residuals in a random order, whose largest correlation is due to chance, for any distribution of
    the columns.

    Parameters
    ----------
    n
        Number of rows.
    distance
        Columns more than this number apart are distant.
    """

    def __init__(self, n: int, distance: int) -> None:
        self._distance = distance
        self._stride, self._n_read = 1, 0
        # Indices of the sample, residuals and these in a random order, the largest squared
        # correlations of both, and the number of columns compared.
        self._index = np.empty(0, dtype=np.intp)
        self._units = np.empty((0, 2, n))
        self._largest = np.empty((0, 2))
        self._n_compared = np.empty(0, dtype=np.intp)

    def add(self, X: Floats, residual: Floats, permuted: Floats) -> None:
        """Compare the next columns (b, n), of norm 1, and sample from them.

        Parameters
        ----------
        X, residual, permuted
            The columns, their residuals given their neighbours, and the random parts of the same
            norm that replace these; 0 for columns without a knockoff.
        """
        first, last = self._n_read, self._n_read + len(X)
        self._n_read = last
        size, n = len(self._index), X.shape[1]
        if size:
            squares = (self._units.reshape(2 * size, n) @ X.T).reshape(size, 2, -1) ** 2
            is_distant = np.arange(first, last) - self._index[:, None] > self._distance
            squares *= is_distant[:, None, :]
            np.maximum(self._largest, squares.max(axis=2), out=self._largest)
            self._n_compared += is_distant.sum(axis=1)
        lengths = np.linalg.norm(residual, axis=1)
        sampled = np.flatnonzero((np.arange(first, last) % self._stride == 0) & (lengths > 0.0))
        units = np.stack([residual[sampled], permuted[sampled]], axis=1)
        self._index = np.concatenate([self._index, first + sampled])
        self._units = np.concatenate([self._units, units / lengths[sampled, None, None]])
        self._largest = np.concatenate([self._largest, np.zeros((sampled.size, 2))])
        self._n_compared = np.concatenate([self._n_compared, np.zeros(sampled.size, np.intp)])
        while len(self._index) > _MAX_SAMPLE:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        kept = self._index % self._stride == 0
        self._index, self._units = self._index[kept], self._units[kept]
        self._largest, self._n_compared = self._largest[kept], self._n_compared[kept]

    def share(self) -> float:
        """Return the share of the sample that depends on a distant column; NaN if it is small.

        Maxima vary by chance if columns correlate strongly. Therefore the share of columns whose
        largest correlation by chance exceeds the actual one is subtracted.
        """
        known = self._n_compared >= _MIN_COMPARISONS
        if np.count_nonzero(known) < _MIN_COLUMNS:
            return float("nan")
        actual, chance = self._largest[known].T
        return float((actual > _FACTOR * chance).mean() - (chance > _FACTOR * actual).mean())

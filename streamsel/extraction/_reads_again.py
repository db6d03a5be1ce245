"""Second passes over the columns, for the loadings of methods that keep a Gram matrix."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from streamsel import params
from streamsel.extraction._loadings_file import loadings_file
from streamsel.extraction._second_reading import (
    Again,
    LoadingsFound,
    LoadingsReading,
    loadings_of,
)
from streamsel.extraction._settling import SettlingFound, SettlingReading
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.same import Learnt
from streamsel.learner.joint_extractor import JointExtractor
from streamsel.params import param
from streamsel.stream import ColumnStream, as_stream


class ReadsAgain(JointExtractor):
    """An extractor with a Gram matrix of observations, and a second pass for loadings."""

    max_loadings: int = param(
        params.Whole(1),
        default=500,
        doc="""
        Number of variables with loadings after a second pass (`learn_loadings`). A pool of as many,
        and at most twice as many, is kept alongside the Gram matrix: its variables have loadings
        without a second pass, and rows continue from them.
        """,
    )
    max_rows_gram: int = param(
        params.Whole(2),
        default=15_000,
        doc="""
        Maximum number of observations for a Gram matrix; 15,000 take 0.9 GB, and nine times as much
        while components are computed. With more, PCA and related methods keep the leading axes
        only, by incremental SVD, which `report()` shows; a method that needs the whole matrix
        refuses them.
        """,
    )

    @abc.abstractmethod
    def _again(self) -> Again:
        """Return the quantities for a second pass; ValueError if it is impossible."""

    @property
    def _reads_again(self) -> bool:
        held = self._columns
        return isinstance(held, GramAndPool) and not held.complete and held.loadings is None

    def learn_loadings(
        self,
        X: Any,
        names: Sequence[Any] | None = None,
        to: str | Path | None = None,
        *,
        max_loadings: int | None = None,
    ) -> None:
        """Make a second pass over the columns, for the loadings of all of them, or of the largest.

        Parameters
        ----------
        X, names
            As in `learn_columns`: exactly the columns that were learnt, in any order.
        to
            Path of a `.csv` or `.parquet` file that receives the loadings of all columns, of any
            number, as they arrive: one line per column, with name, mean and one weight per
            component.
        max_loadings
            Number of variables with loadings, all in memory during the pass; None for the parameter
            of this name.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; for other columns than those learnt; and without a Gram matrix: with
            `max_support`, before columns, or after rows. The model is unchanged.

        Notes
        -----
        Without this pass the components are regressed on the variables of the pool; if the pool
        holds all columns, loadings are exact and nothing changes. Columns outside the pool that
        were exchanged or negated are not detected. Costs O(n q) per column.

        With more observations than a Gram matrix is kept for, components are not exact after one
        pass. A source that can be read again is read up to 12 times, until no variance of the
        leading axes changes by more than 1e-9 of itself, and as many powers of the matrix times the
        target are known as there are components; and once more for the loadings. `n_passes` counts
        the passes.
        """
        rule = params.Whole(1, optional=True)
        params.check("learn_loadings", {"max_loadings": rule}, {"max_loadings": max_loadings})
        self._refuse_after_rows()
        self._again()
        source = as_stream(X, names)
        self._in_session(BaseException, self._learn_loadings, source, to, max_loadings)

    def _learn_loadings(
        self, source: ColumnStream, to: str | Path | None, max_loadings: int | None
    ) -> None:
        while source.rereadable:
            settling = self._whole(self._settling_reading)
            if settling is None:
                break
            self._whole(self._take_settled, settling.read(source))
        with nullcontext() if to is None else loadings_file(to, self.components) as sink:
            found = self._loadings_reading(max_loadings).read(source, sink=sink)
        self._whole(self._take_loadings, found)

    def _loadings_reading(self, limit: int | None = None) -> LoadingsReading:
        """Return the second pass for the loadings."""
        held = self._columns
        assert isinstance(held, GramAndPool)  # noqa: S101
        learnt = Learnt(held, self.n_columns)
        again, limit = self._again(), limit or self.max_loadings
        observed = limit < self.n_columns or again.hidden is not None
        return LoadingsReading(self._blank(), again, held.given, learnt, limit, observed=observed)

    def _take_loadings(self, found: LoadingsFound) -> None:
        held = self._columns
        assert isinstance(held, GramAndPool)  # noqa: S101
        loadings = loadings_of(found, self._again(), held.given, Learnt(held, self.n_columns))
        self.n_passes += 1
        if not held.complete:
            held.take(loadings)
            self._found.pop("_map", None)

    def _settling_reading(self) -> SettlingReading | None:
        """Return the next pass that refines the components; None if none is needed."""
        return None

    def _take_settled(self, found: SettlingFound) -> None:
        """Store the result of a pass over all columns."""
        raise NotImplementedError

    def _next_reading(self) -> LoadingsReading | SettlingReading | None:
        if not self._reads_again:
            return None
        settling = self._whole(self._settling_reading)
        return self._loadings_reading() if settling is None else settling

    def _take_reading(self, reading: Any, found: Any) -> None:
        take = self._take_settled if isinstance(reading, SettlingReading) else self._take_loadings
        self._whole(take, found)

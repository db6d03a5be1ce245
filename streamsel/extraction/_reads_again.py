"""A second reading of the columns, for the loadings: of whoever keeps a Gram matrix."""

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
    """An extractor that knows observations, and reads columns again to know these."""

    max_loadings: int = param(
        params.Whole(1),
        default=500,
        doc="""
        How many variables have loadings after a second reading (`learn_loadings`). A pool of as
        many, and at most twice as many, is held beside the Gram matrix: those that have loadings
        without a second reading, and that rows go on from.
        """,
    )
    max_rows_gram: int = param(
        params.Whole(2),
        default=15_000,
        doc="""
        Most observations of which a Gram matrix is kept; 15,000 take 0.9 GB, and nine times as much
        when components are asked for. Of more, PCA and its kin keep the leading axes only, by
        incremental singular values, and `report()` says so; a method that needs the whole matrix
        refuses them.
        """,
    )

    @abc.abstractmethod
    def _again(self) -> Again:
        """Return what columns are read again for; ValueError where there is nothing."""

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
        """Read the same columns again, for the loadings of all of them, or of the largest.

        Parameters
        ----------
        X, names
            As `learn_columns` has them: all columns that were learnt, and no others, in any order.
        to
            A file to which the loadings of all columns are written as they come, whatever their
            number: a line each, the name, the mean and a weight a component. `.csv` or `.parquet`.
        max_loadings
            How many variables have loadings then, and are held meanwhile; None for as many as the
            parameter of this name says.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`, for other columns than those learnt, and where no Gram matrix is
            kept: with `max_support`, before columns, or after rows. The model is as it was.

        Notes
        -----
        Without it the components are regressed on the variables of the pool, unless that holds all
        columns: then all is known, and nothing changes. Columns that are not the pool's and were
        swapped or negated go unnoticed. Costs O(n q) a column.

        Of more observations than a Gram matrix is kept of the components are not exact after one
        reading. A source that can be read again is read, at most 12 times, until no variance of the
        leading axes changes by more than 1e-9 of itself, and as many powers of the matrix as
        components are known on the target; and then for the loadings. `n_passes` counts.
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
        """Return what the columns are read again for."""
        held = self._columns
        assert isinstance(held, GramAndPool)  # noqa: S101
        learnt = Learnt(held, self.n_columns)
        again, limit = self._again(), limit or self.max_loadings
        observed = limit < self.n_columns or again.hidden is not None
        return LoadingsReading(self._blank(), again, held.given, learnt, limit, observed=observed)

    def _take_loadings(self, found: LoadingsFound) -> None:
        """Take up what was found in all columns."""
        held = self._columns
        assert isinstance(held, GramAndPool)  # noqa: S101
        loadings = loadings_of(found, self._again(), held.given, Learnt(held, self.n_columns))
        self.n_passes += 1
        if not held.complete:
            held.take(loadings)
            self._found.pop("_map", None)

    def _settling_reading(self) -> SettlingReading | None:
        """Return what is asked of the columns that one reading cannot know; None for nothing."""
        return None

    def _take_settled(self, found: SettlingFound) -> None:
        """Take up what was found in all columns."""
        raise NotImplementedError

    def _next_reading(self) -> LoadingsReading | SettlingReading | None:
        if not self._reads_again:
            return None
        settling = self._whole(self._settling_reading)
        return self._loadings_reading() if settling is None else settling

    def _take_reading(self, reading: Any, found: Any) -> None:
        take = self._take_settled if isinstance(reading, SettlingReading) else self._take_loadings
        self._whole(take, found)

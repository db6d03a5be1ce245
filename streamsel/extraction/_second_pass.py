"""Second passes over the columns, for the loadings of methods that keep a Gram matrix."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from streamsel import params
from streamsel.base.extractor import JointExtractor
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.extraction._eigen import GramImage, RefinementPass
from streamsel.extraction._loadings import (
    LoadingsPass,
    LoadingsPassResult,
    LoadingsRequest,
    collect_loadings,
    loadings_file,
)
from streamsel.params import param
from streamsel.state.gram.pooled import GramWithPool
from streamsel.state.source_check import LearntColumns
from streamsel.stream import ColumnStream, as_stream


class SecondPass(JointExtractor):
    """An extractor with a Gram matrix of observations, and a second pass for loadings."""

    max_loadings: int = param(
        params.IntRule(1),
        default=500,
        doc="""
        Number of variables with loadings after a second pass (`learn_loadings`). A pool of as many,
        and at most twice as many, is kept alongside the Gram matrix: its variables have loadings
        without a second pass, and rows continue from them.
        """,
    )
    max_gram_rows: int = param(
        params.IntRule(2),
        default=15_000,
        doc="""
        Maximum number of observations for a Gram matrix; 15,000 take 0.9 GB, and nine times as much
        while components are computed. With more, PCA and related methods keep the leading axes
        only, by incremental SVD, which `report()` shows; a method that needs the whole matrix
        refuses them.
        """,
    )

    @abc.abstractmethod
    def _loadings_request(self) -> LoadingsRequest:
        """Return the quantities for a second pass; ValueError if it is impossible."""

    @property
    def _wants_second_pass(self) -> bool:
        held = self._columns
        return isinstance(held, GramWithPool) and not held.complete and held.loadings is None

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
        pass. A re-readable source is read up to 12 times, until no variance of the
        leading axes changes by more than 1e-9 of itself, and as many powers of the matrix times the
        target are known as there are components; and once more for the loadings. `n_passes` counts
        the passes.
        """
        rule = params.IntRule(1, optional=True)
        params.check("learn_loadings", {"max_loadings": rule}, {"max_loadings": max_loadings})
        self._column_phase  # noqa: B018 (raises after rows)
        self._loadings_request()
        source = as_stream(X, names)
        learn_in_session(self, BaseException, self._learn_loadings, source, to, max_loadings)

    def _learn_loadings(
        self, source: ColumnStream, to: str | Path | None, max_loadings: int | None
    ) -> None:
        while source.reiterable:
            settling = learn_atomically(self, self._refinement_pass)
            if settling is None:
                break
            learn_atomically(self, self._accept_refinement, settling.read(source))
        with nullcontext() if to is None else loadings_file(to, self.components) as sink:
            found = self._loadings_pass(max_loadings).read(source, sink=sink)
        learn_atomically(self, self._accept_loadings, found)

    def _loadings_pass(self, limit: int | None = None) -> LoadingsPass:
        """Return the second pass for the loadings."""
        held = self._columns
        assert isinstance(held, GramWithPool)  # noqa: S101
        learnt = LearntColumns(held, self.n_columns)
        again, limit = self._loadings_request(), limit or self.max_loadings
        observed = limit < self.n_columns or again.excluded_directions is not None
        return LoadingsPass(
            self._empty_clone(), again, held.covariate_basis, learnt, limit, observed=observed
        )

    def _accept_loadings(self, found: LoadingsPassResult) -> None:
        held = self._columns
        assert isinstance(held, GramWithPool)  # noqa: S101
        loadings = collect_loadings(
            found,
            self._loadings_request(),
            held.covariate_basis,
            LearntColumns(held, self.n_columns),
        )
        self._phase.n_passes += 1
        if not held.complete:
            held.set_loadings(loadings)
            self._cache.pop("_map", None)

    def _refinement_pass(self) -> RefinementPass | None:
        """Return the next pass that refines the components; None if none is needed."""
        return None

    def _accept_refinement(self, found: GramImage) -> None:
        """Store the result of a pass over all columns."""
        raise NotImplementedError

    def _next_pass(self) -> LoadingsPass | RefinementPass | None:
        if not self._wants_second_pass:
            return None
        settling = learn_atomically(self, self._refinement_pass)
        return self._loadings_pass() if settling is None else settling

    def _apply_pass(self, reading: Any, found: Any) -> None:
        take = (
            self._accept_refinement
            if isinstance(reading, RefinementPass)
            else self._accept_loadings
        )
        learn_atomically(self, take, found)

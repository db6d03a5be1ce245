"""Linear methods on the Gram matrix of all columns: what they have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from streamsel.extraction._canonical_ridge import as_long, besides, regressed, without
from streamsel.extraction._of_inner import OfInner, Solution
from streamsel.extraction._reads_again import ReadsAgain
from streamsel.extraction._second_reading import Again
from streamsel.extraction._settling import Settling, SettlingFound, SettlingReading
from streamsel.held.gram import check_rows
from streamsel.held.gram_columns import GramColumns
from streamsel.held.inner import left_of, of_variables
from streamsel.held.part import Floats, Places
from streamsel.learner.cached import until_learnt
from streamsel.learner.extractor import LinearMap
from streamsel.learner.report import Report
from streamsel.learner.sharing import Sharing
from streamsel.target.target import Target

# Vectors by which a second reading tells whether the columns are the same ones.
_PROBES = 2
# So many axes are kept beyond twice the components.
_SPARE = 10


class GramExtractor(OfInner, ReadsAgain, Sharing):
    """A linear extractor on the Gram matrix of all columns; on rows, on their joint moments."""

    keeps = GramColumns
    # Whether the method needs what columns make of the target, exactly.
    _aims: ClassVar[bool] = False

    @property
    def _needs_matrix(self) -> str:
        """What to do where there are too many rows for a Gram matrix; "" where axes do."""
        return ""

    def _hidden(self, held: GramColumns) -> Floats | None:
        """Return what components are to have no part in, (n, r); None for nothing."""
        del held
        return None

    @property
    def _rank(self) -> int:
        """How many of the leading axes are kept where there is no more."""
        return 2 * (self._n_asked or 0) + _SPARE

    # What it keeps

    def _new_columns(self, n: int) -> GramColumns:
        rank = None
        if n > self.max_rows_gram:
            if self._needs_matrix:
                check_rows(n, self.max_rows_gram, self._needs_matrix)
            rank = self._rank
        held = GramColumns(
            self._space, n, self.max_loadings, scaled=self.scale, rank=rank, n_jobs=self.n_jobs
        )
        held.serve(self)
        if isinstance(self._target, Target):
            held.follow(self._target.Y[: self._target.c])
            if self._aims:
                held.aim()
        return held

    def _check_shared(self, held: GramColumns) -> None:
        if held.rank is None:
            return
        if self._needs_matrix:
            check_rows(held.n, self.max_rows_gram, self._needs_matrix)
        if held.rank < self._rank:
            raise ValueError(
                f"Expected a model of at least {self._n_asked} components, for {held.n} rows "
                f"are too many for a Gram matrix. Got: {held.rank} axes.\n"
                "Hint: let the one of most components learn, and the others from it."
            )

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a component, the most relevant first: its relevance, whether that is above the noise
        floor of single columns, and its loadings, the largest first.
        """
        report, held = super().report(), self._columns
        if not isinstance(held, GramColumns):
            return report
        axes = f"incremental SVD of rank {held.rank}"
        facts = {"held": "Gram matrix" if held.rank is None else axes, "n_passes": self.n_passes}
        return replace(report, facts=report.facts | facts)

    # What it finds

    def _solved(self, held: Any, places: Places) -> Solution:
        if not isinstance(held, GramColumns):
            return super()._solved(held, places)
        scale = self._scale_of(held, places, self._weight_of(held))
        weighted = self._weighted(held, places, scale)
        if held.rank is None:
            return self._components_of(held.inner(), weighted, places, scale, _PROBES)
        if held.complete:
            # All columns are there: what they make of one another is exact.
            about = self._about(held, self._weight_of(held))
            inner, along = of_variables(held, places, scale, about)
            E = weighted.T @ (along / inner.K)
        else:
            inner, E = held.along_axes()
            along = weighted @ E
        found = self._components_of(inner, along, places, scale)
        return found._replace(
            scores=E @ found.scores,
            duals=E @ found.duals,
            probe=E @ found.probe,
            of_probe=E @ found.of_probe,
        )

    @staticmethod
    def _weighted(held: GramColumns, places: Places, scale: Floats) -> Floats:
        """Return variables of the pool, centred and weighted, (m, n)."""
        weighted: Floats = held.samples(places) * (np.sqrt(left_of(held, places)) * scale)[:, None]
        return weighted

    def _loadings_of(self, found: Solution) -> Floats:
        held = self._columns
        if not isinstance(held, GramColumns) or held.complete:
            return found.loadings
        weighted = self._weighted(held, found.places, found.scale)
        others = besides(found.trace, weighted)
        loadings = regressed(weighted, found.scores, found.n, others)
        loadings = as_long(loadings, weighted, found.scores)
        hidden = self._hidden(held)
        return loadings if hidden is None else without(loadings, weighted @ hidden)

    def _settling_reading(self) -> SettlingReading | None:
        held = self._columns
        if not isinstance(held, GramColumns) or held.rank is None or held.complete:
            return None
        settling = self._settling()
        return None if settling.done else SettlingReading(self._blank(), settling.asked)

    def _take_settled(self, found: SettlingFound) -> None:
        held, settling = self._columns, self._settling()
        assert isinstance(held, GramColumns)  # noqa: S101
        found.expect_all(self.n_columns, held.total)
        settling.take(found.product)
        self.n_passes += 1
        if settling.done:
            settling.settle()
            self._outdate()
            self._found["_settling"] = settling

    @until_learnt
    def _settling(self) -> Settling:
        """Return what is known of the leading axes, from readings since the first."""
        assert isinstance(self._columns, GramColumns)  # noqa: S101
        assert self._n_asked is not None  # noqa: S101
        return Settling(self._columns, self._n_asked)

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        held = self._columns
        if isinstance(held, GramColumns) and held.loadings is not None:
            loadings = held.loadings
            return LinearMap(loadings.names, loadings.means, self._padded(loadings.weights))
        return super()._linear_map(names)

    def _again(self) -> Again:
        held, found = self._columns, self._solution()
        if not isinstance(held, GramColumns) or found is None:
            got = "no columns yet" if held is None else "columns none of which varies"
            raise ValueError(
                f"Expected columns to read again. Got: {got}.\nHint: learn_columns(X) first."
            )
        return Again(
            found.duals,
            found.scores,
            found.n,
            found.trace,
            np.sqrt([held.unit]),
            found.probe,
            found.of_probe,
            self._hidden(held),
        )

"""Base class of the linear methods on the Gram matrix of all columns."""

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

# Number of random vectors by which a second pass verifies that the columns are the same.
_PROBES = 2
# Number of axes kept in addition to twice the components.
_SPARE_AXES = 10


class GramExtractor(OfInner, ReadsAgain, Sharing):
    """A linear extractor on the Gram matrix of all columns; on rows, on their joint moments."""

    keeps = GramColumns
    # Whether the method needs the exact product of the Gram matrix with the target.
    _aims: ClassVar[bool] = False

    @property
    def _needs_matrix(self) -> str:
        """Hint for more rows than a Gram matrix is kept for; "" if leading axes suffice."""
        return ""

    def _hidden(self, held: GramColumns) -> Floats | None:
        """Return directions that components must be orthogonal to, (n, r); None for none."""
        del held
        return None

    @property
    def _rank(self) -> int:
        """Number of leading axes kept in place of a Gram matrix."""
        return 2 * (self._n_asked or 0) + _SPARE_AXES

    # State

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
                f"Expected a model of at least {self._n_asked} components, as {held.n} rows are "
                f"too many for a Gram matrix. Got: {held.rank} axes.\n"
                "Hint: let the model with most components learn, and the others share its state."
            )

    def report(self) -> Report:
        """Return the results as a `Report`: the source of the command's output and the HTML report.

        Returns
        -------
        One row per component, the most relevant first: its relevance, whether that is above the
        noise floor of single columns, and its loadings, the largest first.
        """
        report, held = super().report(), self._columns
        if not isinstance(held, GramColumns):
            return report
        axes = f"incremental SVD of rank {held.rank}"
        facts = {"held": "Gram matrix" if held.rank is None else axes, "n_passes": self.n_passes}
        return replace(report, facts=report.facts | facts)

    # Components

    def _solved(self, held: Any, places: Places) -> Solution:
        if not isinstance(held, GramColumns):
            return super()._solved(held, places)
        scale = self._scale_of(held, places, self._weight_of(held))
        weighted = self._weighted(held, places, scale)
        if held.rank is None:
            return self._components_of(held.inner(), weighted, places, scale, _PROBES)
        if held.complete:
            # All columns are available, so their inner products are exact.
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
        residual = besides(found.trace, weighted)
        loadings = regressed(weighted, found.scores, found.n, residual)
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
        """Return the refinement of the leading axes, with the products of additional passes."""
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
            got = "no columns yet" if held is None else "constant columns only"
            raise ValueError(
                f"Expected columns for a second pass. Got: {got}.\nHint: learn_columns(X) first."
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

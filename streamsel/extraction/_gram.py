"""Base class of the linear methods on the Gram matrix of all columns."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import Extractor
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.linear_map import LinearMap
from streamsel.base.report import Report
from streamsel.base.shared_gram import share_columns
from streamsel.base.undo import learn_atomically
from streamsel.data.chunks import Stats
from streamsel.extraction import _second_pass
from streamsel.extraction._eigen import GramImage, RefinementPass, SubspaceRefinement
from streamsel.extraction._gram_solution import GramSolution, GramSolver
from streamsel.extraction._loadings import LoadingsPass, LoadingsRequest
from streamsel.extraction._regressed_loadings import (
    project_out,
    regress_scores,
    rescale_loadings,
    residual_trace,
)
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.gram.gram import check_rows
from streamsel.state.gram.pooled import SharedGram
from streamsel.state.gram.view import GramView
from streamsel.state.moments.aligned_view import RowView
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.pool.pool import (
    Pool,
    Ranking,
    TopRanked,
    equal_scores,
    relevance_of_rows,
    sums_of_squares,
)
from streamsel.stream import ColumnStream
from streamsel.targets.target import Target

# Number of random vectors by which a second pass verifies that the columns are the same.
_PROBES = 2
# Number of axes kept in addition to twice the components.
_SPARE_AXES = 10


class GramExtractor(Extractor):
    """A linear extractor on the Gram matrix of all columns; on rows, on their joint moments.

    A method gives the components as a function of inner products, `_dual_weights`.
    """

    _column_state_type = SharedGram
    _row_state_type: ClassVar[type[RowExtension]] = CrossMoments
    _loads_all_variables = True
    # Whether the pool ranks columns by relevance, and not by variance.
    _ranks_by_relevance: ClassVar[bool] = False
    # Whether the method needs the exact product of the Gram matrix with the target.
    _needs_target_products: ClassVar[bool] = False
    # Whether components must be orthogonal to the target.
    _excludes_target: ClassVar[bool] = False
    # Whether the components are the leading axes, so that no other axes are needed.
    _needs_leading_axes_only: ClassVar[bool] = False

    max_features: int | None = max_joint_features()
    max_loadings: int = _second_pass.max_loadings_param()
    max_gram_rows: int = _second_pass.max_gram_rows_param()
    scale: bool = param(
        params.FlagRule(),
        default=False,
        doc="""
        Whether all columns are standardised to variance 1: for columns whose units are not
        comparable.
        """,
    )

    # Implemented by methods

    @abc.abstractmethod
    def _dual_weights(self, inner: GramView, q: int) -> Floats:
        """Return α (s, k) of the first k components, at most q: their scores are Kα."""

    @property
    def _full_matrix_hint(self) -> str:
        """Hint for more rows than a Gram matrix is kept for; "" if leading axes suffice."""
        return ""

    # State

    @property
    def _gram_state(self) -> SharedGram | None:
        """The state on columns."""
        return cast("SharedGram | None", self._columns)

    @property
    def _n_axes(self) -> int:
        """Number of leading axes kept in place of a Gram matrix."""
        return 2 * (self._fixed_n_components or 0) + _SPARE_AXES

    def _new_columns(self, n: int) -> SharedGram:
        rank = None
        if n > self.max_gram_rows:
            if self._full_matrix_hint:
                check_rows(n, self.max_gram_rows, self._full_matrix_hint)
            rank = self._n_axes
        target = self._target
        target_rows = target.Y[: target.c] if isinstance(target, Target) else None
        pool = Pool(
            self._space,
            n,
            self.max_loadings,
            self._ranking,
            samples=True,
            target_rows=target_rows,
        )
        return SharedGram(
            pool,
            target_rows,
            scaled=self.scale,
            rank=rank,
            n_jobs=self.n_jobs,
            exact=self._needs_target_products,
            n_needed=self._fixed_n_components if self._needs_leading_axes_only else None,
            effective_rows=None if target is None else target.effective_rows,
        )

    @property
    def _ranking(self) -> Ranking:
        if self._ranks_by_relevance:
            return TopRanked(relevance_of_rows, is_relevance=True)
        return TopRanked(equal_scores if self.scale else sums_of_squares)

    def _relevances_of_stats(self, moments: Moments, stats: Stats) -> Floats:
        # On rows, the vocabulary evicts by the ranking of the pool.
        if not self._ranks_by_relevance:
            return stats.m2
        return super()._relevances_of_stats(moments, stats)

    def learn_from(self, other: Extractor) -> None:
        """Learn the columns of another fitted model, without a pass over them.

        The Gram matrix is stored once, until one of the two models learns more.

        Parameters
        ----------
        other
            A fitted learner of this family, such as PCA or KernelPCA, with the same `scale`
            (KernelPCA counts as False) and without covariates; it is not changed. Its target may
            differ: the Gram matrix does not depend on the target; only the columns in the pool do.

        Raises
        ------
        TypeError
            For a learner of another family.
        ValueError
            If `scale` or the number of rows differ, either model has learnt rows, this model has
            learnt columns, or the other has covariates. The model is not changed.

        Notes
        -----
        With more rows than `max_gram_rows`, only the leading axes are shared, and the products of
        the columns with another target are known only along these axes. For five components of PLS
        on 400 rows the error was 3 to 12 %. Learning the columns with that target gives exact
        components.
        """
        share_columns(self, other, self._check_shared)

    def _check_shared(self, state: SharedGram) -> None:
        """Raise ValueError if the state of another model does not suffice."""
        n, rank = state.n, state.rank
        if rank is None:
            return
        if self._full_matrix_hint:
            check_rows(n, self.max_gram_rows, self._full_matrix_hint)
        if rank < self._n_axes:
            raise ValueError(
                f"Expected a model of at least {self._fixed_n_components} components, as {n} "
                f"rows are too many for a Gram matrix. Got: {rank} axes.\n"
                "Hint: let the model with most components learn, and the others share its state."
            )

    # Components

    @property
    def _solver(self) -> GramSolver:
        return GramSolver(
            self._dual_weights,
            self._fixed_n_components,
            self.scale,
            self._is_supervised,
            self._excludes_target,
        )

    @cached_until_update
    def _solution(self) -> GramSolution | None:
        """Return the components; None if there are no variables for them."""
        state, solver = cast("SharedGram | RowView | None", self._state), self._solver
        indices = solver.candidates(state)
        if state is None or not indices.size:
            return None
        factors, about = solver.scaling(state, indices)
        if isinstance(state, RowView):
            n_needed = self._fixed_n_components if self._needs_leading_axes_only else None
            products = state.inner_products(indices, factors, about, n_needed)
        else:
            products = state.inner_products(indices, factors, about)
        return solver.solve(products, indices, factors, _PROBES)

    def _component_map(self) -> LinearMap:
        columns = self._gram_state
        if columns is not None and columns.loadings is not None:
            return self._padded(LinearMap(*columns.loadings[:3]))
        state, found = self._state, self._solution()
        if state is None or found is None:
            return LinearMap.empty(self._fixed_n_components or 1)
        loadings = found.loadings
        if columns is not None and not columns.complete:
            loadings = self._regressed_loadings(columns, found)
        return self._padded(found.linear_map(state, loadings))

    def _padded(self, found: LinearMap) -> LinearMap:
        """Return a map with zeros for the components that do not exist."""
        return found.padded(self._fixed_n_components or max(1, found.weights.shape[1]))

    def _regressed_loadings(self, state: SharedGram, found: GramSolution) -> Floats:
        """Return the loadings of the pool's variables, (m, k), that fit the scores best."""
        weighted = state.weighted_samples(found.indices, found.scale)
        residual = residual_trace(found.trace, weighted)
        loadings = regress_scores(weighted, found.scores, found.n, residual)
        loadings = rescale_loadings(loadings, weighted, found.scores)
        if self._excludes_target:
            loadings = project_out(loadings, weighted @ state.pool.basis.T)
        return loadings

    # Passes after the first

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
            As `learn_columns`; for other columns than those learnt; and without a Gram matrix:
            before columns, or after rows. The model is unchanged.

        Notes
        -----
        Without this pass the components are regressed on the variables of the pool; if the pool
        holds all columns, loadings are exact and nothing changes. Columns outside the pool that
        were exchanged or negated are not detected. Costs O(n q) per column.

        With more observations than `max_gram_rows`, components are not exact after one pass. Up to
        12 passes are made over a re-iterable source, until no variance of the leading axes changes
        by more than 1e-9 of itself, and as many powers of the matrix times the target are known as
        there are components. One more pass computes the loadings. `n_passes` counts the passes.

        Examples
        --------
        A generator is exhausted after one pass; another one of the same columns gives the loadings:

        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from streamsel import PCA
        >>> X = np.random.default_rng(0).normal(size=(50, 2000))
        >>> model = PCA(2, max_loadings=10)
        >>> model.learn_columns((f"v{j}", X[:, j]) for j in range(2000))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "loadings.csv")
        ...     model.learn_loadings(((f"v{j}", X[:, j]) for j in range(2000)), to=path)
        ...     lines = path.read_text().splitlines()
        >>> lines[0], len(lines), len(model.loadings), model.n_passes
        ('name,mean,pca0,pca1', 2001, 10, 2)
        """
        _second_pass.learn_loadings(self, X, names, to, max_loadings, self._refine)

    @property
    def _wants_second_pass(self) -> bool:
        return self._gram_state is not None and self._gram_state.lacks_loadings

    def _next_pass(self) -> LoadingsPass | RefinementPass | None:
        if not self._wants_second_pass:
            return None
        refinement = learn_atomically(self, self._refinement_pass)
        return _second_pass.loadings_pass(self) if refinement is None else refinement

    def _apply_pass(self, request: Any, found: Any) -> None:
        if isinstance(request, RefinementPass):
            learn_atomically(self, self._accept_refinement, found)
        else:
            learn_atomically(self, _second_pass.accept_loadings, self, found)

    def _loadings_request(self) -> tuple[SharedGram, LoadingsRequest]:
        """Return the state, and what a second pass needs; ValueError if it is impossible."""
        state, found = self._gram_state, self._solution()
        if state is None or found is None:
            got = "no columns yet" if state is None else "constant columns only"
            raise ValueError(
                f"Expected columns for a second pass. Got: {got}.\nHint: learn_columns(X) first."
            )
        return state, LoadingsRequest(
            found.duals,
            found.scores,
            found.n,
            found.trace,
            np.sqrt([state.unit]),
            found.probes,
            found.gram_times_probes,
            state.pool.basis.T if self._excludes_target else None,
        )

    def _refine(self, source: ColumnStream) -> None:
        """Refine the leading axes by further passes, as many as needed and the source allows."""
        while source.reiterable:
            refinement = learn_atomically(self, self._refinement_pass)
            if refinement is None:
                break
            learn_atomically(self, self._accept_refinement, refinement.read(source))

    def _refinement_pass(self) -> RefinementPass | None:
        """Return the next pass that refines the leading axes; None if none is needed."""
        state = self._gram_state
        if state is None or state.rank is None or state.complete:
            return None
        if self._needs_leading_axes_only and state.subspace.is_exact:
            return None
        refinement = self._subspace_refinement()
        if refinement.is_finished:
            return None
        scan = self._empty_clone()._scanned
        return RefinementPass(scan, state.weights, refinement.requested, self.n_jobs)

    def _accept_refinement(self, found: GramImage) -> None:
        """Store the result of a pass over all columns."""
        refinement = self._subspace_refinement()
        found.expect_all(self.n_columns, refinement.state.total)
        refinement.accept_product(found.product)
        self._phase.n_passes += 1
        if refinement.is_finished:
            refinement.store()
            self._invalidate()
            self._cache["_subspace_refinement"] = refinement

    @cached_until_update
    def _subspace_refinement(self) -> SubspaceRefinement:
        """Return the refinement of the leading axes, with the products of additional passes."""
        assert self._gram_state is not None  # noqa: S101
        assert self._fixed_n_components is not None  # noqa: S101
        return SubspaceRefinement(self._gram_state, self._fixed_n_components)

    # Results

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance.

        Without a target it is 1.
        """
        found = self._solution()
        if found is None:
            return {}
        names = self._names_of(found.relevance.size)
        return dict(zip(names, found.relevance.tolist(), strict=True))

    def _embedding(self) -> Floats:
        found = self._solution()
        return np.zeros((self.n_rows, 0)) if found is None else found.scores.copy()

    def report(self) -> Report:
        """Return the results as a `Report`: the source of the command's output and the HTML report.

        Returns
        -------
        One row per component, the most relevant first: its relevance, whether that is above the
        noise floor of single columns, and its loadings, the largest first.
        """
        report, state = super().report(), self._gram_state
        if state is None:
            return report
        if state.rank is None:
            kept = "Gram matrix"
        elif state.subspace.is_exact:
            kept = "columns as stored"
        else:
            kept = f"incremental SVD of rank {state.rank}"
        details = {
            "gram_state": kept,
            "n_passes": self.n_passes,
        }
        return replace(report, details=report.details | details)

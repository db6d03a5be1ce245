"""SupervisedPCA: principal components of the most relevant variables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, cast

import numpy as np

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import Extractor
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.linear_map import LinearMap
from streamsel.base.river import Supervised
from streamsel.extraction._gram_solution import GramSolution, GramSolver
from streamsel.params import param
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.gram.view import GramView, JointState, gram_along_some_axes, residual_squares
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.pool import Pool, TopRanked, relevance_of_rows
from streamsel.targets.target import Target


class SupervisedPCA(Extractor, Supervised):
    r"""Supervised principal components: PCA of the variables most relevant to the target.

    PCA ignores the target, and if most variables are unrelated to it, so are the components. Here
    variables are first screened one by one by their relevance, and components are made of those
    that pass. Memory is constant in the number of columns, and components have few variables.

    Parameters
    ----------
    threshold
        Minimum relevance of a variable; None keeps the `max_candidates` most relevant.
    max_candidates
        Maximum number of variables that components are made of: the most relevant.
    scale
        Whether all columns are standardised to variance 1: for columns whose units are not
        comparable.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, such as `max_candidates` not above `n_components`.

    Notes
    -----
    **Method.** The relevance of a centred column is $\|U^T x\| / \|x\|$, for one numeric target the
    absolute correlation. Bair et al. rank by the coefficient of the standardised variable, which
    gives the same order. The components are the leading principal components of the variables $X$
    that pass, with loadings of length 1; Bair et al. regress the target on the first, and choose
    the threshold by cross-validation of that regression. `noise_floor()` is a starting value.

    **Pool.** Variables are kept in a pool of at most twice `max_candidates`, from which the least
    relevant are evicted. It contains the most relevant of any number of columns, in any order; on
    ties the earlier column is kept. A variable that is relevant only jointly with another is not
    found, because variables are screened one by one.

    **Selection bias.** Variables selected for their relevance on the rows learnt, and components
    made of them, are relevant on these rows by construction: evaluate them on other rows.

    **Cost.** A discarded column costs one pass over its values. Computing components takes $O(n m^2
    + m^3)$, $m$ being `max_candidates`. Learning a row costs $O(f^2)$ for its $f$ features,
    transforming a row $O(m q)$.

    **Memory.** $16 n m$ bytes. On rows $2 f^2$ numbers, $f$ at most `max_features`.

    **Rows.** Joint moments of the variables of the pool, and of all variables that arrive with
    rows, are tracked: the relevant variables, and their components, are those of all rows so far.
    See `max_features` for variables that arrive late.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Bair, E., Hastie, T., Paul, D. and Tibshirani, R. (2006). Prediction by supervised
    principal components. Journal of the American Statistical Association 101(473), 119-137.

    Examples
    --------
    50 of 5,000 columns measure the signal of the target, and 500 share a signal unrelated to it:

    >>> import numpy as np
    >>> from streamsel import SupervisedPCA

    >>> rng = np.random.default_rng(0)
    >>> hidden, other = rng.normal(size=(2, 200, 1))
    >>> X = rng.normal(size=(200, 5_000))
    >>> X[:, :50] += hidden
    >>> X[:, 50:550] += 2.0 * other
    >>> y = hidden[:, 0] + 0.3 * rng.normal(size=200)

    >>> model = SupervisedPCA(n_components=1, threshold=0.5)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> len(model.loadings), max(model.loadings)
    (50, 49)
    >>> bool(abs(np.corrcoef(model.embedding[:, 0], hidden[:, 0])[0, 1]) > 0.95)
    True

    It also learns from rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[0])), y[0])
    >>> list(model.transform_one(dict(enumerate(X[1]))))
    ['supervisedpca0']
    """

    _column_state_type = Pool
    _row_state_type = CrossMoments
    _loads_all_variables = True

    threshold: float | None = param(params.FloatRule(0.0, below=1.0, optional=True), default=None)
    max_candidates: int = param(params.IntRule(2), default=500)
    scale: bool = param(params.FlagRule(), default=False)
    max_features: int | None = max_joint_features()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "max_candidates": 3, "scale": True}
        yield {"n_components": 2, "threshold": 0.1, "fading_factor": 0.05}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_exceeds("n_components", self.n_components, "max_candidates")

    def _new_columns(self, n: int) -> Pool:
        target, space = self._target, self._space
        assert isinstance(target, Target)  # noqa: S101
        ranking = TopRanked(relevance_of_rows, is_relevance=True)
        rows = target.Y[: target.c]
        return Pool(space, n, self.max_candidates, ranking, samples=True, target_rows=rows)

    # Components

    @cached_until_update
    def _solution(self) -> GramSolution | None:
        """Return the components; None if there are no variables for them."""
        state = self._state
        solver = GramSolver(_principal_axes, self.n_components, self.scale, is_supervised=True)
        indices = solver.candidates(state)
        if state is not None and indices.size:
            indices = self._most_relevant(state, indices)
        if state is None or not indices.size:
            return None
        factors, about = solver.scaling(state, indices)
        joint = cast("JointState", state)
        products = gram_along_some_axes(joint, indices, factors, about)
        return solver.solve(products, indices, factors)

    def _most_relevant(self, state: VariableState, indices: Indices) -> Indices:
        relevance = state.relevance(indices)
        first = argsort_by_relevance(relevance)[: self.max_candidates]
        if self.threshold is not None:
            first = first[relevance[first] >= self.threshold]
        return np.sort(indices[first])

    def _component_map(self) -> LinearMap:
        state, found = self._state, self._solution()
        if state is None or found is None:
            return LinearMap.empty(self.n_components)
        return found.linear_map(state, found.loadings).padded(self.n_components)

    @property
    def _stop_reason(self) -> str:
        if self.threshold is None:
            which = f"the columns kept, of max_candidates={self.max_candidates},"
        elif self._solution() is None:
            return f"no column is as relevant as threshold={self.threshold}"
        else:
            which = f"the columns at least as relevant as threshold={self.threshold}"
        return f"{which} vary in no more directions"

    # Results

    def _used_variables(self) -> Collection[Hashable]:
        return self.loadings.keys()

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance."""
        found = self._solution()
        if found is None:
            return {}
        names = self._names_of(found.relevance.size)
        return dict(zip(names, found.relevance.tolist(), strict=True))

    def _embedding(self) -> Floats:
        pool, found = cast("Pool | None", self._columns), self._solution()
        if pool is None or found is None:
            return np.zeros((self.n_rows, 0))
        weights = found.scale * np.sqrt(residual_squares(pool, found.indices))
        embedding: Floats = pool.samples(found.indices).T @ (weights[:, None] * found.loadings)
        return embedding


def _principal_axes(inner: GramView, q: int) -> Floats:
    """Return the duals of at most q principal components."""
    d, E = inner.axes(q)
    duals: Floats = E / np.sqrt(d)
    return duals

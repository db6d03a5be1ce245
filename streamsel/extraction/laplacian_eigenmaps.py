"""LaplacianEigenmaps: spectral embedding of a k-NN graph, or of a given graph."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.embedder import Embedder
from streamsel.base.undo import learn_atomically
from streamsel.extraction._eigen import lowest_laplacian_eigenpairs, nearest_mask
from streamsel.params import param
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.landmarks import NeighborGraph, Similarity
from streamsel.targets.target import NoTarget, Target


class LaplacianEigenmaps(Embedder):
    r"""Laplacian eigenmaps: spectral embedding of the k-nearest-neighbour graph of the rows.

    The graph is computed from the distances between observations over all columns, which the Gram
    matrix contains after one pass. Alternatively, a graph is passed to `learn_graph`, without
    columns: this embeds non-numeric data.

    Parameters
    ----------
    n_neighbors
        Two observations are neighbours if one of them is among the `n_neighbors` nearest of the
        other; all observations tied with the last one are included.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables;
        number of constant variables.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for columns with more observations than
        `max_gram_rows`.

    Notes
    -----
    **Method.** With $A$ the graph's weights, 1 for neighbours, and $D$ the diagonal of the degrees,
    $L = D - A$ is the unnormalised Laplacian, and $f^\top L f = \sum_{i<j} A_{ij} (f_i - f_j)^2$.
    The components are the eigenvectors of the $q$ smallest eigenvalues, of length 1 and orthogonal
    to one another. The first eigenvector, the constant vector, is left out; all components are
    orthogonal to it. A graph of $m$ connected components has $m$ eigenvalues 0: the first $m - 1$
    components are then constant on each connected component and separate them. The largest entry of
    each is positive; for equal eigenvalues, the basis is chosen so that rounding does not affect
    it.

    **New rows.** A new row is mapped to the mean of its `n_neighbors` nearest, which adds least to
    $f^\top L f$. `transform_columns` searches for them among all rows learnt, in another pass over
    all columns. `transform_one` and `transform_many` search among the landmarks: `n_landmarks` of
    the rows, represented by the `max_variables` variables of largest variance; distances are then
    estimated, up to a factor that does not matter, and the number of neighbours is reduced in
    proportion to the number of rows. A row that was learnt is one of its own neighbours, so its
    transform is close to its embedding, but not equal.

    **Cost.** $n^2$ operations per column, half of them saved by symmetry; $O(n^2)$ for the graph,
    and at most $O(n^3)$ for components, less for the graph of a line or a surface. Transforming a
    row costs $O(m s)$ with $m$ landmarks and $s$ variables.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $29 n^2$ while components are
    computed; $16 n s$ for the pool. A given graph takes memory for its edges.

    **Rows.** A window of `window_size` rows is buffered and then learnt as columns. The components
    in use are refreshed with it, and rotated to differ least from the previous ones over the rows
    of the window (orthogonal Procrustes). Each keeps its standard deviation over the landmarks. A
    given graph applies to the observations learnt, until rows are learnt.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable is ignored until
    the next window.

    References
    ----------
    [^1]: von Luxburg, U. (2007). A tutorial on spectral clustering. Statistics and Computing 17,
    395-416.

    [^2]: Belkin, M. and Niyogi, P. (2003). Laplacian eigenmaps for dimensionality reduction and
    data representation. Neural Computation 15(6), 1373-1396.

    [^3]: Jung, A. (2022). Machine Learning: The Basics. Springer. Chapter 9, feature learning for
    non-numeric data.

    Examples
    --------
    The first component of a spiral is the position of an observation along it:

    >>> import numpy as np
    >>> from streamsel import LaplacianEigenmaps

    >>> along = np.linspace(1.0, 4.0 * np.pi, 300)
    >>> X = np.c_[along * np.cos(along), along * np.sin(along)]
    >>> model = LaplacianEigenmaps(n_components=1, n_neighbors=4)
    >>> model.learn_columns(X)
    >>> z = model.embedding[:, 0]
    >>> bool(abs(np.corrcoef(z, along)[0, 1]) > 0.99)
    True

    A graph of co-authorship of six papers, without numbers; two of them are a separate component:

    >>> papers = np.zeros((6, 6))
    >>> for i, j in [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5)]:
    ...     papers[i, j] = papers[j, i] = 1.0
    >>> model = LaplacianEigenmaps(n_components=2)
    >>> model.learn_graph(papers)
    >>> model.embedding.round(2).tolist()
    [[-0.29, -0.41], [-0.29, -0.41], [-0.29, 0.0], [-0.29, 0.82], [0.58, 0.0], [0.58, 0.0]]
    """

    n_neighbors: int = param(params.IntRule(1), default=10)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "n_neighbors": 3, "window_size": 30, "max_variables": 20}
        yield {
            "n_components": 3,
            "n_neighbors": 4,
            "n_landmarks": 12,
            "max_features": 4,
            "window_size": 20,
            "max_variables": 10,
        }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._given_graph: NeighborGraph | None = None

    def learn_graph(self, adjacency: Any) -> None:
        """Learn the graph of neighbours, instead of computing it from columns.

        Parameters
        ----------
        adjacency
            Symmetric (n, n) array or `scipy.sparse` matrix of the weights of the edges, 0 for no
            edge. Its nodes are the observations of the columns, which may be learnt before or
            after. Columns are optional: they are used only to transform new rows.

        Raises
        ------
        ValueError, TypeError
            For an invalid matrix, a number of nodes other than that of the observations learnt, and
            after rows. The model is unchanged.

        Notes
        -----
        Memory and the time of this call are proportional to the number of edges. Components are
        computed when they are requested, in at most $O(n^3)$.

        Examples
        --------
        The first component of a path of six nodes orders them:

        >>> import numpy as np
        >>> from scipy.sparse import diags_array
        >>> from streamsel import LaplacianEigenmaps
        >>> path = diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1])
        >>> model = LaplacianEigenmaps(1)
        >>> model.learn_graph(path)
        >>> order = np.argsort(model.embedding[:, 0]).tolist()
        >>> order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0])
        True
        """
        self._refuse_after_rows()
        graph = NeighborGraph.from_adjacency(adjacency)
        if self._target is not None and self._target.n != graph.n:
            raise ValueError(
                f"Expected a graph of the {self._target.n} observations learnt. Got: one of "
                f"{graph.n}.\nHint: each row and column of adjacency is one observation."
            )
        learn_atomically(self, self._set_graph, graph)

    def _set_graph(self, graph: NeighborGraph) -> None:
        self._given_graph = graph
        phase = self._column_phase
        phase.target = NoTarget(graph.n) if phase.target is None else phase.target
        self._invalidate()

    # Components

    @cached_until_update
    def _observation_embedding(self) -> Floats | None:
        if self._given_graph is None:
            return super()._observation_embedding()
        return lowest_laplacian_eigenpairs(self._given_graph.A, self.n_components)[1]

    def _embed(self, rows: Similarity) -> Floats:
        squares = rows.distances()
        np.fill_diagonal(squares, np.inf)
        neighbors = csr_array(nearest_mask(squares, self.n_neighbors), dtype=np.float64)
        return lowest_laplacian_eigenpairs(neighbors.maximum(neighbors.T), self.n_components)[1]

    def _similarity(self, rows: Similarity) -> Floats:
        # The number of neighbours, in proportion to the share of rows that are landmarks.
        k = math.ceil(self.n_neighbors * rows.density)
        neighbors = nearest_mask(rows.distances(), k).astype(np.float64)
        neighbors /= np.maximum(neighbors.sum(axis=1, keepdims=True), 1.0)
        return neighbors

    def _extension_weights(
        self, rows: Similarity, indices: Indices, Z: Floats
    ) -> tuple[Floats, Floats]:
        del rows  # the weights of the landmarks are in `_similarity`; a component is their mean
        return Z[indices], np.zeros(Z.shape[1])

    # A given graph

    def _learn_window(self, names: list[Hashable], X: Floats, target: Target | None) -> None:
        super()._learn_window(names, X, target)
        self._given_graph = None

    def _merge_along_columns(self, other: Self) -> None:
        mine, theirs = self._given_graph, other._given_graph
        if mine is not None and theirs is not None and not mine.same_as(theirs):
            raise ValueError(
                "Expected two models of the same graph. Got: different graphs.\n"
                "Hint: models of different columns of the same rows can be merged."
            )
        super()._merge_along_columns(other)
        self._given_graph = mine or theirs

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        return (
            state if self._given_graph is None else state | {"graph": self._given_graph.to_state()}
        )

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if "graph" in state:
            graph = NeighborGraph(csr_array((0, 0)))
            graph.set_state(state["graph"])
            if graph.n != state["n_rows"]:
                raise ValueError(f"Expected a graph of {state['n_rows']} rows. Got: {graph.n}.")
            self._given_graph = graph
            self._invalidate()

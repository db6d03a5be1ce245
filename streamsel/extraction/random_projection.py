"""Random projections that nothing is held of: the entries of a variable follow from its name."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from streamsel import params
from streamsel.hashing import NameHash
from streamsel.held.part import Floats
from streamsel.held.sketch import Entries
from streamsel.learner.by_name import ByName
from streamsel.params import param


class RandomProjection(ByName):
    r"""Random sums of all variables, which keep the distances between rows.

    Component $c$ is $z_c = \sum_j x_j r_{jc}$, and the entries $r_{jc}$, independent with mean 0
    and variance $1/k$, are a function of the name of variable $j$ and of the seed. So nothing is
    held of the variables; their order does not matter; a name has the same entries on both axes,
    in every process and on every machine; and a transform needs nothing to be learnt before.

    Parameters
    ----------
    n_components
        The number $k$ of components; None for as many as keep all distances between the rows of
        the columns, by `eps` and `beta`.
    kind
        `"sign"`: $\pm 1/\sqrt{k}$. `"gaussian"`: normal. `"sparse"`: $\pm 1/\sqrt{dk}$ with the
        chance $d$, the `density`, and else 0 (Achlioptas 2003; Li, Hastie and Church 2006).
    density
        Of `kind="sparse"`: what part of the entries is not 0. A third is proven to keep distances
        as well as any; $1/\sqrt{p}$, where $p$ variables are expected, is many times as fast, and
        does where no few variables make up a distance.
    eps, beta
        With `n_components=None`: squared distances between all pairs of $n$ rows are kept within
        $1 \pm$ `eps` with a chance of at least $1 - n^{-\mathtt{beta}}$, and $k \geq
        (4 + 2 \beta) / (\varepsilon^2/2 - \varepsilon^3/3) \ln n$.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables that came as columns, and
        those among them that do not vary. On rows variables are not counted, for that would take
        their names.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for rows, without columns before them, where
        `n_components` is None.

    Notes
    -----
    **Cost.** A column costs one pass over its $n$ values and $O(n k)$, or $O(n k d)$ with
    `kind="sparse"`; a sparse one $O(k)$ and as much for each value that it has. A row transformed
    costs $O(k)$ for each of its features that is not 0; a row learnt, to be counted.

    **Memory.** The embedding of the columns, $n k$ numbers, and on rows nothing but their number.
    Entries of the names that came lately are kept aside, up to 16 MB, so as not to make them anew
    at every row; they are no part of a copy or a file.

    **The same bits.** Entries are made of BLAKE2b or, for whole numbers, of splitmix64, and of
    operations that IEEE 754 rounds the same everywhere. Names that are equal, such as 1 and 1.0,
    have the same. Sums are added up in the order in which columns come, and agree to rounding.
    More components with the same seed begin with those of fewer, but for the scale.

    **No means.** Variables are not centred: a row has the same components before anything is
    learnt as after, and what is absent costs nothing. Distances do not depend on it. A variable of
    a large scale counts for much: standardise first.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent, NaN or None counts as 0. A new one has its weights at once.

    References
    ----------
    [^1]: Johnson, W. B. and Lindenstrauss, J. (1984). Extensions of Lipschitz mappings into a
    Hilbert space. Contemporary Mathematics 26.

    [^2]: Achlioptas, D. (2003). Database-friendly random projections: Johnson-Lindenstrauss with
    binary coins. Journal of Computer and System Sciences 66.

    [^3]: Li, P., Hastie, T. J. and Church, K. W. (2006). Very sparse random projections. KDD.

    Examples
    --------
    Three rows of 10,000 variables, in 500 components:

    >>> import numpy as np
    >>> from streamsel import RandomProjection

    >>> X = np.random.default_rng(0).normal(size=(3, 10_000))
    >>> model = RandomProjection(n_components=500)
    >>> model.learn_columns(X)
    >>> Z = model.embedding
    >>> Z.shape
    (3, 500)

    The distance between two of them is what it was, to a tenth:

    >>> ratio = np.linalg.norm(Z[0] - Z[1]) / np.linalg.norm(X[0] - X[1])
    >>> abs(float(ratio) - 1.0) < 0.1
    True

    Columns are learnt once; any row can be transformed, and is what the embedding of it was:

    >>> row = dict(enumerate(X[2].tolist()))
    >>> np.allclose(list(model.transform_one(row).values()), Z[2])
    True

    How many components it takes that no distance between 1,000 rows is off by more than a fifth:

    >>> RandomProjection.n_components_for(1000, eps=0.2, beta=1.0)
    2392
    """

    n_components: int | None = param(  # type: ignore[assignment]
        params.Whole(1, optional=True, below=params.MANY), default=100, kw_only=False
    )
    kind: str = param(params.Choice(("sign", "gaussian", "sparse")), default="sign")
    density: float = param(params.Real(0.0, open=True, below=1.0), default=1 / 3)
    eps: float = param(params.Real(0.0, open=True, below=1.0), default=0.1)
    beta: float = param(params.Real(0.0), default=1.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 3}
        yield {"n_components": 4, "kind": "gaussian", "seed": 5}
        yield {"n_components": 5, "kind": "sparse"}

    @staticmethod
    def n_components_for(n_rows: int, eps: float, beta: float = 1.0) -> int:
        """Return how many components keep the distances between so many rows.

        Parameters
        ----------
        n_rows
            Number of rows, n.
        eps
            By what part a squared distance may be off, in (0, 1).
        beta
            All are kept so with a chance of at least 1 - n^-beta.
        """
        asked = {"n_rows": n_rows, "eps": eps, "beta": beta}
        own = params.rules_of(RandomProjection)
        rules = {"n_rows": params.Whole(1), "eps": own["eps"], "beta": own["beta"]}
        params.check("n_components_for", rules, asked)
        return max(1, math.ceil((4 + 2 * beta) / (eps**2 / 2 - eps**3 / 3) * math.log(n_rows)))

    def to_matrix(self, names: Sequence[Hashable]) -> Floats:
        """Return the entries of these variables, (p, k), in this order: Z = X @ entries."""
        return self._linear_map(names).weights * self._scale

    @property
    def _scale(self) -> float:
        density = self.density if self.kind == "sparse" else 1.0
        return 1.0 / math.sqrt(density * max(1, self._k))

    def _size(self, n: int | None) -> int | None:
        if self.n_components is not None or n is None:
            return self.n_components
        return self.n_components_for(n, self.eps, self.beta)

    def _new_entries(self, k: int) -> Entries:
        return Entries(k, self.kind, self.density, NameHash(self.seed, "projection"))

    def _finished(self, Z: Floats) -> Floats:
        Z *= self._scale
        return Z

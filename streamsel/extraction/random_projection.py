"""RandomProjection: random projections whose matrix is a hash of the variable names."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from streamsel import params
from streamsel.base.hashed_extractor import HashedExtractor
from streamsel.data.names import NameHash
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.sketch import RandomEntries


class RandomProjection(HashedExtractor):
    r"""Random projection: random linear combinations that preserve distances between rows.

    Component $c$ is $z_c = \sum_j x_j r_{jc}$. The entries $r_{jc}$ are independent with mean 0 and
    variance $1/k$, and a function of the name of variable $j$ and of the seed. So no state is kept
    per variable; the order of variables does not matter; a name has the same entries on columns and
    rows, in every process and on every machine; and a transform needs no fit.

    Parameters
    ----------
    n_components
        The number $k$ of components; None for the number that preserves all distances between the
        rows of the columns, by `eps` and `beta`.
    kind
        `"sign"`: $\pm 1/\sqrt{k}$. `"gaussian"`: normal. `"sparse"`: $\pm 1/\sqrt{dk}$ with
        probability $d$, the `density`, and 0 otherwise (Achlioptas 2003; Li, Hastie and Church
        2006).
    density
        For `kind="sparse"`: the share of non-zero entries. A density of a third is proven to
        preserve distances as well as a dense matrix. $1/\sqrt{p}$, for $p$ expected variables, is
        many times faster, and preserves distances that few variables do not dominate.
    eps, beta
        With `n_components=None`: squared distances between all pairs of $n$ rows are preserved
        within $1 \pm$ `eps` with probability at least $1 - n^{-\mathtt{beta}}$, and $k \geq (4 + 2
        \beta) / (\varepsilon^2/2 - \varepsilon^3/3) \ln n$.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        seen as columns; number of constant ones among them. On rows, variables are not counted,
        because no names are kept.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for rows without columns before them if `n_components`
        is None.

    Notes
    -----
    **Cost.** A column costs one pass over its $n$ values and $O(n k)$, or $O(n k d)$ with
    `kind="sparse"`; a sparse column $O(k)$ for itself and for each stored value. Transforming a row
    costs $O(k)$ per non-zero feature; learning a row only counts it.

    **Memory.** The embedding of the columns, $n k$ numbers, and on rows only their number. Entries
    of recent names are cached, up to 16 MB, so that they are not recomputed for every row; copies
    and model files do not contain the cache.

    **Reproducibility.** Entries are computed by BLAKE2b, or by splitmix64 for whole numbers, and by
    operations that IEEE 754 rounds identically everywhere. Equal names, such as 1 and 1.0, have
    equal entries. Sums are accumulated in the order of the columns, and agree up to rounding. With
    the same seed, the first components are the same for any number of components, up to the scale.

    **No centring.** Variables are not centred: a row has the same components before and after
    learning, and an absent variable costs nothing. Distances do not depend on centring. A variable
    of large scale dominates: standardise first.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent, NaN or None counts as 0. The entries of a new variable follow from its name.

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

    The distance between two of them is preserved, to a tenth:

    >>> ratio = np.linalg.norm(Z[0] - Z[1]) / np.linalg.norm(X[0] - X[1])
    >>> abs(float(ratio) - 1.0) < 0.1
    True

    Columns are learnt once; any row can be transformed, and the result equals its embedding:

    >>> row = dict(enumerate(X[2].tolist()))
    >>> np.allclose(list(model.transform_one(row).values()), Z[2])
    True

    The number of components that preserves all squared distances between 1,000 rows to a fifth:

    >>> RandomProjection.n_components_for(1000, eps=0.2, beta=1.0)
    2392
    """

    n_components: int | None = param(  # type: ignore[assignment]
        params.IntRule(1, optional=True, below=params.MAX_COUNT), default=100, kw_only=False
    )
    kind: str = param(params.ChoiceRule(("sign", "gaussian", "sparse")), default="sign")
    density: float = param(params.FloatRule(0.0, open=True, below=1.0), default=1 / 3)
    eps: float = param(params.FloatRule(0.0, open=True, below=1.0), default=0.1)
    beta: float = param(params.FloatRule(0.0), default=1.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 3}
        yield {"n_components": 4, "kind": "gaussian", "seed": 5}
        yield {"n_components": 5, "kind": "sparse"}

    @staticmethod
    def n_components_for(n_rows: int, eps: float, beta: float = 1.0) -> int:
        """Return the number of components that preserves the distances between n rows.

        Parameters
        ----------
        n_rows
            Number of rows, n.
        eps
            Maximum relative error of a squared distance, in (0, 1).
        beta
            All distances are preserved with probability at least 1 - n^-beta.
        """
        values = {"n_rows": n_rows, "eps": eps, "beta": beta}
        declared = params.rules_of(RandomProjection)
        rules = {"n_rows": params.IntRule(1), "eps": declared["eps"], "beta": declared["beta"]}
        params.check("n_components_for", rules, values)
        return max(1, math.ceil((4 + 2 * beta) / (eps**2 / 2 - eps**3 / 3) * math.log(n_rows)))

    def to_matrix(self, names: Sequence[Hashable]) -> Floats:
        """Return the entries of some variables, (p, k): Z = X @ entries.

        Parameters
        ----------
        names
            Names of p variables, in the order of the rows of the result.

        Notes
        -----
        Entries are computed from the names: O(pk) time and memory, whatever was learnt.
        """
        return self._entries.matrix(list(names)) * self._scale

    @property
    def _scale(self) -> float:
        density = self.density if self.kind == "sparse" else 1.0
        return 1.0 / math.sqrt(density * max(1, self._k))

    def _n_components_for(self, n: int | None) -> int | None:
        if self.n_components is not None or n is None:
            return self.n_components
        return self.n_components_for(n, self.eps, self.beta)

    def _new_entries(self, k: int) -> RandomEntries:
        return RandomEntries(k, self.kind, self.density, NameHash(self.seed, "projection"))

    def _components_of_sums(self, Z: Floats) -> Floats:
        Z *= self._scale
        return Z

"""RandomFourier: random Fourier features whose frequencies are a hash of the variable names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel._kernels.random_entries import fill_uniform
from streamsel.base.hashed_extractor import HashedExtractor
from streamsel.data.names import NameHash
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.sketch import RandomEntries


class RandomFourier(HashedExtractor):
    r"""Random Fourier features: an approximate feature map of the RBF kernel.

    Component $c$ is $z_c = \sqrt{2/k} \cos(\sum_j w_{jc} x_j + b_c)$, with normal frequencies
    $w_{jc}$ of variance $2\gamma$ and phases $b_c$ uniform on $[0, 2\pi)$ (Rahimi, Recht 2007).
    Then $z^\top z' \approx \exp(-\gamma \|x - x'\|^2)$, with an error of about $1/\sqrt{k}$, and a
    linear model of the components is nonlinear in the variables. The frequencies are a function of
    the name of variable $j$ and of the seed: no state is kept per variable, and a transform needs
    no fit.

    Parameters
    ----------
    n_components
        The number $k$ of components.
    gamma
        $\gamma$ of the kernel. Distances grow with the number of variables: for $p$ variables of
        unit variance start with $1/p$.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        seen as columns; number of constant ones among them. On rows, variables are not counted,
        because no names are kept.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A column costs one pass over its $n$ values and $O(n k)$; a sparse column $O(k)$ for
    each stored value. Transforming a row costs $O(k)$ per non-zero feature; learning a row only
    counts it.

    **Memory.** As `RandomProjection`: $n k$ numbers on columns; on rows, only a counter.

    **Reproducibility.** Frequencies and phases are the same in every process and on every machine;
    sums agree up to rounding, and cosines to one unit in the last place, as mathematical libraries
    differ. The order of the features in a row does not affect the result, because sums are
    accumulated in twice the precision.

    **No centring.** Variables are not centred, which does not affect the kernel. It depends on
    their scales: standardise first.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent, NaN or None counts as 0. The frequencies of a new variable follow from its name.

    References
    ----------
    [^1]: Rahimi, A. and Recht, B. (2007). Random features for large-scale kernel machines. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import RandomFourier

    >>> X = np.random.default_rng(0).normal(size=(4, 50))
    >>> model = RandomFourier(n_components=20_000, gamma=0.01)
    >>> model.learn_columns(X)
    >>> Z = model.embedding
    >>> K = np.exp(-0.01 * np.square(X[:, None] - X).sum(axis=2))
    >>> float(np.abs(Z @ Z.T - K).max()) < 0.03
    True
    """

    # The cosine of a large sum amplifies its rounding errors.
    _amplifies_rounding = True

    n_components: int = param(params.IntRule(1, below=params.MAX_COUNT), default=100, kw_only=False)
    gamma: float = param(params.FloatRule(0.0, open=True), default=1.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 3, "gamma": 0.1}
        yield {"n_components": 4, "seed": 5}

    def __post_init__(self) -> None:
        super().__post_init__()
        phases = np.empty(self.n_components)
        key = NameHash(self.seed, "phases").of_bytes(b"")
        fill_uniform(np.uint64(key), phases)
        self._phases: Floats = phases * (2.0 * math.pi)

    def _new_entries(self, k: int) -> RandomEntries:
        return RandomEntries(k, "gaussian", 1.0, NameHash(self.seed, "frequencies"))

    def _components_of_sums(self, Z: Floats) -> Floats:
        Z *= math.sqrt(2.0 * self.gamma)
        Z += self._phases
        np.cos(Z, out=Z)
        Z *= math.sqrt(2.0 / self.n_components)
        return Z

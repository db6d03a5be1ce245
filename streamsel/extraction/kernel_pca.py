"""KernelPCA: kernel principal components, from the Gram matrix of all columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel.base.embedder import Embedder
from streamsel.extraction._eigen import leading_eigenpairs
from streamsel.params import param
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.landmarks import Similarity

# Singular values of the landmarks' kernel below this part of the largest are treated as zero.
_ZERO_TOL = 1e-6


class KernelPCA(Embedder):
    r"""Kernel PCA: principal components in the feature space of a kernel.

    A polynomial or RBF kernel of centred columns depends only on the inner products of the
    observations, $K = \sum \tilde x \tilde x^\top$, and one pass over any number of columns
    computes $K$ exactly.

    Parameters
    ----------
    kernel
        The kernel between rows: `"rbf"`, $\exp(-\gamma \|x - x'\|^2)$, or `"poly"`, $(\gamma x^\top
        x' + c)^d$, of centred columns. For a linear kernel use PCA.
    gamma
        $\gamma$; None takes one over the total variance of the columns, so that the mean of $\gamma
        \|x - x'\|^2$ is 2. This is `gamma="scale"` of scikit-learn's SVC; its KernelPCA takes
        $1/p$, which is the same for columns of variance 1.
    degree, coef0
        $d$ and $c$ of the polynomial.

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
    **Method.** With $G$ the kernel matrix of the $n$ observations, centred in rows and columns, and
    its eigenpairs $G e = \lambda e$, component $c$ of the observations is $\sqrt{\lambda_c} e_c$.
    It is PCA in the feature space: the projection on $q$ directions with the smallest residual,
    $\sum_{c > q} \lambda_c$. Only components with $\lambda_c > 10^{-12} \lambda_1$ exist. The
    largest entry of each is positive; for equal eigenvalues, the basis is chosen so that rounding
    does not affect it.

    **New rows.** The components of a new row are $\sum_i w_{ic} k(x, x_i) + b_c$, with $w = e /
    \sqrt{\lambda}$ over all observations (Nyström). `transform_columns` makes a pass over all
    columns, of the rows learnt and of the new ones, and is exact. `transform_one` and
    `transform_many` use landmarks: `n_landmarks` of the rows, represented by the `max_variables`
    variables of largest variance. They are exact if the landmarks are all rows and the pool holds
    all columns, for new rows that have the same values of the columns that were constant: these are
    not kept. With fewer landmarks, the components of all observations are regressed on the
    landmarks' kernel; with fewer variables, inner products are estimated from these and divided by
    their share of the variance, which `report()` shows.

    **Cost.** $n^2$ operations per column, half of them saved by symmetry. Computing components
    takes $O(n^3)$, or $O(n^2 q)$ for few components of many rows. Transforming a row costs $O(m s)$
    with $m$ landmarks and $s$ variables.

    **Memory.** $4 n^2$ bytes, twice that while columns arrive, and $29 n^2$ while components are
    computed; $16 n s$ for the pool.

    **Rows.** A window of `window_size` rows is buffered and then learnt as columns. The components
    in use are refreshed with it, and rotated to differ least from the previous ones over the rows
    of the window (orthogonal Procrustes). Each keeps its standard deviation over the landmarks. For
    an unbounded number of rows in constant memory, without windows, `RandomFourier | PCA` is kernel
    PCA with the RBF kernel.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable is ignored until
    the next window.

    References
    ----------
    [^1]: Schölkopf, B., Smola, A. and Müller, K.-R. (1998). Nonlinear component analysis as a
    kernel eigenvalue problem. Neural Computation 10(5), 1299-1319.

    [^2]: Williams, C. and Seeger, M. (2000). Using the Nyström method to speed up kernel machines.
    NeurIPS.

    Examples
    --------
    Two rings, one inside the other, that no linear map separates:

    >>> import numpy as np
    >>> from streamsel import KernelPCA

    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0.0, 2.0 * np.pi, size=200)
    >>> radius = np.repeat([1.0, 4.0], 100)
    >>> X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    >>> model = KernelPCA(n_components=3, gamma=0.5)
    >>> model.learn_columns(X)
    >>> inner, outer = model.embedding[:100], model.embedding[100:]
    >>> bool(max(inner.std(axis=0)) < min(abs(inner.mean(axis=0) - outer.mean(axis=0)).max(), 1.0))
    True

    New rows, transformed exactly with all columns, or with the landmarks:

    >>> new = np.array([[0.0, 1.1], [-3.9, 0.0]])
    >>> exact = model.transform_columns(X, new)
    >>> bool(np.allclose(model.transform_many(new), exact))
    True
    >>> list(model.transform_one({0: 0.0, 1: 1.1}))
    ['kernelpca0', 'kernelpca1', 'kernelpca2']
    """

    kernel: str = param(params.ChoiceRule(("rbf", "poly")), default="rbf")
    gamma: float | None = param(params.FloatRule(0.0, open=True, optional=True), default=None)
    degree: int = param(params.IntRule(1, below=params.MAX_COUNT), default=3)
    coef0: float = param(params.FloatRule(0.0), default=1.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "window_size": 30, "max_variables": 20}
        yield {
            "n_components": 3,
            "kernel": "poly",
            "degree": 2,
            "n_landmarks": 12,
            "window_size": 20,
            "max_variables": 10,
            "max_features": 4,
        }

    def _kernel(self, rows: Similarity) -> Floats:
        """Return the kernel between rows, (b, m)."""
        gamma = 1.0 if self.gamma is None else self.gamma * rows.variance
        if self.kernel == "rbf":
            found = rows.distances()
            # The product of an infinite gamma and a distance of 0 is 0, not NaN.
            found *= -min(gamma, 1e300)
            return np.exp(found, out=found)
        with np.errstate(over="ignore"):
            found = gamma * rows.products
            found += self.coef0
            return np.power(found, self.degree, out=found)

    def _embed(self, rows: Similarity) -> Floats:
        G = self._kernel(rows)
        if not np.isfinite(G).all():
            raise ValueError(
                f"Expected a kernel of finite values. Got: gamma={self.gamma} on columns whose "
                f"variances sum to {rows.variance:.3g}.\n"
                "Hint: gamma=None is one over that sum; or scale the columns."
            )
        rounding = np.finfo(np.float64).eps * float(G.trace())
        means = G.mean(axis=0)
        G -= means
        G -= means[:, None]
        G += means.mean()
        d, E = leading_eigenpairs(G, self.n_components, rounding)
        return E * np.sqrt(d)

    def _similarity(self, rows: Similarity) -> Floats:
        return self._kernel(rows)

    def _extension_weights(
        self, rows: Similarity, indices: Indices, Z: Floats
    ) -> tuple[Floats, Floats]:
        G = self._kernel(rows)
        means = G.mean(axis=0)
        if len(indices) == len(Z):
            weights = Z / np.square(Z).sum(axis=0)
        else:
            G -= means
            d, V = np.linalg.eigh(G.T @ G)
            used = d > _ZERO_TOL * _ZERO_TOL * d[-1]
            weights = (V[:, used] / d[used]) @ (V[:, used].T @ (G.T @ Z))
        return weights, -means @ weights

"""Online matrix factorization by definition: one column at a time, coded by its observed values.

Columns are processed in batches. Each batch alternates a few times between coding its columns with
the current components, and updating the components from the codes of this and all earlier batches.
Columns processed when t had arrived get the weight √(t/p) once p have arrived.
"""

import numpy as np

FIRST, FURTHER = 30, 3
LEAST = 1e-6
PARTS = 100
VOID = 1e-6
GONE = 2.0**-30


class Factorisation:
    """Components D, in a unit, and sums over columns.

    A method defines `code(x)`: the code w of a column, and the expectations of w wᵀ, x wᵀ and ‖x‖²;
    `refresh()`; and `axes()`: the components as shown, and the map from codes to loadings.
    """

    carries = 1

    def __init__(self, n, q, batch_size=256, seed=0):
        self.n, self.q, self.width, self.seed = n, min(q, n - 1), batch_size, seed
        self.unit, self.odd = 0.0, 0
        self.begin()

    def begin(self):
        D = np.random.default_rng(self.seed).standard_normal((self.n, self.q))
        D = D - D.mean(axis=0)
        self.D = D / np.sqrt((D**2).mean(axis=0))
        self.A, self.B = np.zeros((self.q, self.q)), np.zeros((self.n, self.q))
        self.squares, self.weight, self.columns, self.noise = 0.0, 0.0, 0, 1.0
        self.gappy = 0.0

    @property
    def typical(self):
        return self.squares / self.weight / self.n

    @property
    def least_noise(self):
        return max(self.noise, LEAST * self.typical)

    def learn(self, columns):
        """Learn centred columns, NaN where not observed, a batch at a time."""
        for start in range(0, len(columns), self.width):
            self.go_over(columns[start : start + self.width])

    def go_over(self, batch):
        values = np.concatenate([x[~np.isnan(x)] for x in batch])
        largest = np.abs(values).max()
        self.in_unit(2.0 ** np.frexp(np.sqrt(((values / largest) ** 2).mean()) * largest)[1])
        batch = [x / self.unit for x in batch]
        if not self.columns:
            self.start(batch)
        A, B, squares, weight, gappy = self.A, self.B, self.squares, self.weight, self.gappy
        keep = np.sqrt(self.columns / (self.columns + len(batch)))
        odd = self.odd
        self.weight = keep * weight + len(batch)
        rounds = FURTHER if self.columns else FIRST
        for done in range(1, rounds + 1):
            # The mean square of a value is known before the codes are.
            self.squares = keep * squares + sum(np.nansum(x**2) for x in batch)
            self.odd = odd
            coded = [self.code(x) for x in batch]
            self.A = keep * A + sum(ww for _, ww, _, _ in coded)
            self.B = keep * B + sum(xw for _, _, xw, _ in coded)
            self.squares = keep * squares + sum(xx for _, _, _, xx in coded)
            # The sum grows gradually, as the first codes are of random components.
            self.gappy = keep * gappy + sum(np.isnan(x).any() for x in batch) * done / rounds
            self.refresh()
        self.columns += len(batch)

    def in_unit(self, unit):
        if unit <= self.unit:
            return
        by, self.unit = self.unit / unit, unit
        if by < GONE:
            self.begin()
            return
        self.D = self.D * by**self.carries
        self.A = self.A * by ** (2 - 2 * self.carries)
        self.B = self.B * by ** (2 - self.carries)
        self.squares, self.noise = self.squares * by**2, self.noise * by**2

    def start(self, batch):
        pass

    # Gaussian codes with Gaussian noise

    def posterior(self, x):
        """Return the posterior mean and covariance of a code, given a column's observed values."""
        seen = ~np.isnan(x)
        D = self.D[seen]
        inner = np.linalg.inv(D.T @ D + self.least_noise * np.eye(self.q))
        return inner @ D.T @ x[seen], self.least_noise * inner

    def code(self, x):
        w, spread = self.posterior(x)
        ww = np.outer(w, w) + spread
        xw, xx = np.outer(x, w), np.nansum(x**2)
        for i in np.flatnonzero(np.isnan(x)):
            xw[i] = ww @ self.D[i]
            xx += self.D[i] @ ww @ self.D[i] + self.least_noise
        return w, ww, xw, xx

    def refresh(self):
        # D_i ~ N(0, v I): a component has a hundredth of a value's mean square, where columns have
        # gaps.
        tau = self.least_noise * PARTS / self.typical * self.gappy / self.weight
        self.D = self.B @ np.linalg.inv(self.A + tau * np.eye(self.q))
        left = self.squares - 2 * np.trace(self.D.T @ self.B) + np.trace(self.D @ self.A @ self.D.T)
        self.noise = left / (self.weight * (self.n - 1))
        self.noise = self.least_noise

    def axes(self):
        """Return the principal axes of the reconstructed columns."""
        root = np.linalg.cholesky(self.A + 1e-15 * np.trace(self.A) * np.eye(self.q))
        E, spread, _ = np.linalg.svd(self.D @ root, full_matrices=False)
        E = E * (spread > VOID * spread[0])
        return E * np.sqrt(self.n), E.T @ self.D / np.sqrt(self.n)

    def noise_of_rows(self):
        return self.noise * self.unit**2

    def weights(self, W):
        """Return the posterior mean of a row's components, for loadings (p, q)."""
        inner = W.T @ W
        if not W.any():
            return np.zeros(W.shape)
        noise = max(self.noise_of_rows(), VOID**2 * np.diag(inner).max())
        return W @ np.linalg.inv(inner + noise * np.eye(len(inner)))


def shown(name, fit, X, n_components, max_loadings=500):
    """Return the results of a model that has learnt the columns 0, 1, ... of X."""
    means = [np.nanmean(x) for x in X.T]
    centred = [x - mean for x, mean in zip(X.T, means, strict=True)]
    varying = [j for j, x in enumerate(centred) if np.nanmax(x) - np.nanmin(x) > 1e-13]
    components = [f"{name}{k}" for k in range(n_components)]
    answer = {"relevance": dict.fromkeys(components, 1.0), "loadings": {}}
    if not varying:
        return answer
    fit.learn([centred[j] for j in varying])
    pool = []
    for j in varying:
        pool.append(j)
        if len(pool) == 2 * max_loadings:
            largest = sorted(pool, key=lambda j: (-np.nansum(centred[j] ** 2), j))
            pool = sorted(largest[:max_loadings])
    scores, rotation = fit.axes()
    W = np.array([rotation @ fit.code(centred[j] / fit.unit)[0] * fit.unit for j in pool])
    for j, row in zip(pool, fit.weights(W), strict=True):
        if row.any():
            pairs = zip(components, row.tolist(), strict=False)
            answer["loadings"][j] = {component: w for component, w in pairs if w != 0.0}
    answer["embedding"] = np.zeros((fit.n, n_components))
    answer["embedding"][:, : fit.q] = scores
    return answer

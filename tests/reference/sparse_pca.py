"""Sparse PCA by definition: factorization with lasso codes (Mairal et al. 2010)."""

import numpy as np

from tests.reference.factorisation import VOID, Factorisation, shown

BEGIN = 30
UNUSED = 1e-12
EDGE = 1.0 + 1e-9


class Sparse(Factorisation):
    carries = 0

    def __init__(self, *args, alpha):
        super().__init__(*args)
        self.alpha = alpha

    def start(self, batch):
        """Start with the principal axes of the first batch; missing ones stay as drawn."""
        first = Factorisation(self.n, self.q, seed=self.seed)
        first.weight, first.squares = len(batch), sum((x**2).sum() for x in batch)
        for _ in range(BEGIN):
            coded = [first.code(x) for x in batch]
            first.A, first.B = (sum(part[i] for part in coded) for i in (1, 2))
            first.refresh()
        scores, _ = first.axes()
        for k in range(self.q):
            if scores[:, k].any():
                self.D[:, k] = scores[:, k]

    def code(self, x):
        """Minimise ‖x - Dw‖² / 2n + penalty |w| by coordinate descent."""
        penalty = self.alpha * np.sqrt(self.typical)
        w = np.zeros(self.q)
        for _ in range(2000):
            before = w.copy()
            for k in range(self.q):
                g = self.D[:, k] @ self.D[:, k] / self.n
                slope = self.D[:, k] @ (x - self.D @ w) / self.n
                if g == 0.0 or (w[k] == 0.0 and abs(slope) <= penalty * EDGE):
                    continue
                whole = slope + g * w[k]
                w[k] = np.sign(whole) * max(abs(whole) - penalty, 0.0) / g
            if np.abs(w - before).max() <= 1e-14 * np.abs(w).max():
                break
        return w, np.outer(w, w), np.outer(x, w), x @ x

    def refresh(self):
        used = np.diag(self.A) > UNUSED * np.diag(self.A).max()
        D = self.D.copy()
        for k in np.flatnonzero(used):
            D[:, k] += (self.B[:, k] - D @ self.A[:, k]) / self.A[k, k]
            D[:, k] /= max(1.0, np.sqrt((D[:, k] ** 2).mean()))
        self.D = D
        left = self.squares - 2.0 * np.trace(D.T @ self.B) + np.trace(D @ self.A @ D.T)
        self.noise = left / (self.weight * (self.n - 1))
        self.noise = self.least_noise

    def axes(self):
        """Return the components, those that explain most first, and their transformation."""
        lengths = (self.D**2).mean(axis=0)
        sizes = lengths * np.diag(self.A)
        sizes[sizes <= VOID**2 * sizes.max()] = 0.0
        scores, turn = np.zeros(self.D.shape), np.zeros((self.q, self.q))
        for rank, k in enumerate(sorted(range(self.q), key=lambda k: (-sizes[k], k))):
            if sizes[k]:
                scores[:, rank] = self.D[:, k] / np.sqrt(lengths[k])
                turn[rank, k] = np.sqrt(lengths[k])
        return scores, turn

    def weights(self, W):
        lengths = (W**2).sum(axis=0)
        return W / np.where(lengths > 0.0, lengths, 1.0)


def answer(X, y, n_components=10, alpha=0.1, max_loadings=500, batch_size=256, seed=0, **_):
    assert y is None
    fit = Sparse(len(X), n_components, batch_size, seed, alpha=alpha)
    return shown("sparsepca", fit, X, n_components, max_loadings)

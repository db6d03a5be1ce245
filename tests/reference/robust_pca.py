"""Robust PCA by definition: Gaussian codes of columns without their outliers."""

import numpy as np

from tests.reference.factorisation import Factorisation, shown

ALTERNATIONS = 4


class Robust(Factorisation):
    def __init__(self, *args, threshold):
        super().__init__(*args)
        self.threshold = threshold

    def code(self, x):
        off = np.zeros(self.n)
        for turn in range(ALTERNATIONS):
            mean = (x - off).mean()
            w, _ = self.posterior(x - off - mean)
            left = x - mean - self.D @ w
            # 1 / 0.6745: the median absolute value of a standard normal variable is 0.6745.
            if turn < 2:
                typical = np.median(np.abs(left)) * 1.482602218505602
                scale = max(typical, np.sqrt(self.least_noise))
            cutoff = self.threshold * scale
            off = np.array(
                [e - cutoff if e > cutoff else e + cutoff if e < -cutoff else 0.0 for e in left]
            )
        self.odd += (off != 0.0).sum()
        return super().code(x - off - (x - off).mean())


def answer(X, y, n_components=10, threshold=3.0, max_loadings=500, batch_size=256, seed=0, **_):
    assert y is None
    fit = Robust(len(X), n_components, batch_size, seed, threshold=threshold)
    return shown("robustpca", fit, X, n_components, max_loadings)

"""stub"""

import copy

import numpy as np


class Gram:
    def __init__(self, n, q=1, n_jobs=1):
        self.K = [np.zeros((n, n)) for _ in range(q)]

    def add(self, chunk, stats, weights):
        b = stats.m2.size
        X = chunk.columns(np.arange(b)) - stats.mean[:, None]
        for i in range(len(self.K)):
            W = X * np.sqrt(weights[:, i])[:, None]
            self.K[i] = self.K[i] + W.T @ W

    def matrix(self, which=0):
        return self.K[which]

    def merge(self, other):
        self.K = [a + b for a, b in zip(self.K, other.K)]

    def as_of_now(self):
        o = copy.copy(self)
        o.K = list(self.K)
        return lambda: copy.copy(o)

    def to_state(self):
        return {"K": np.array(self.K)}

    def set_state(self, s):
        self.K = list(np.asarray(s["K"]))


def check_rows(n, most, hint):
    if n > most:
        raise ValueError(f"Expected at most {most} rows. Got: {n}.\nHint: {hint}")

"""Random Fourier features by definition, entry by entry."""

import hashlib
import math

import numpy as np

from tests.reference.random_projection import key_of, normal, secret, uniform, word


def phase(c, seed):
    digest = hashlib.blake2b(b"", digest_size=8, key=secret(seed, "phases")).digest()
    return 2.0 * math.pi * uniform(word(int.from_bytes(digest, "little"), c))


def answer(X, y, n_components=100, gamma=1.0, seed=0, **_):
    assert y is None
    keys = [key_of(j, seed, "frequencies") for j in range(X.shape[1])]
    W = np.array([[normal(word(key, c)) for c in range(n_components)] for key in keys])
    b = [phase(c, seed) for c in range(n_components)]
    Z = math.sqrt(2.0 / n_components) * np.cos(X @ W * math.sqrt(2.0 * gamma) + b)
    relevance = {f"randomfourier{c}": 1.0 for c in range(n_components)}
    return {"relevance": relevance, "loadings": {}, "embedding": Z}

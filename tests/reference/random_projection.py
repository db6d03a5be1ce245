"""Random projections by definition: entry by entry, in Python integers."""

import hashlib
import math
from statistics import NormalDist

import numpy as np

BITS = 2**64 - 1


def mixed(word):
    """Return the final mix of splitmix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & BITS
    return word ^ (word >> 31)


def secret(seed, purpose):
    return hashlib.blake2b(f"{purpose} {seed}".encode()).digest()


def key_of(name, seed, purpose):
    """Return the key of a name that is an integer, or text."""
    keyed = secret(seed, purpose)
    if isinstance(name, int):
        first, second = (int.from_bytes(keyed[i : i + 8], "little") for i in (0, 8))
        return mixed(mixed((name + first) & BITS) ^ second)
    encoded = b"s" + name.encode()
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8, key=keyed).digest(), "little")


def word(key, c):
    """Return word c of the stream that a key starts."""
    return mixed(key + (c + 1) * 0x9E3779B97F4A7C15 & BITS)


def uniform(w):
    return ((w >> 12) + 0.5) / 2**52


def normal(w):
    p = uniform(w)
    # 1 - p is exact for p of at least a half.
    return NormalDist().inv_cdf(p) if p < 0.5 else -NormalDist().inv_cdf(1.0 - p)


def entry(name, c, kind, density, seed):
    """Return the entry of variable and component, of variance 1."""
    key = key_of(name, seed, "projection")
    if kind == "sign":
        return 1.0 - 2.0 * (word(key, c // 64) >> (c % 64) & 1)
    w = word(key, c)
    if kind == "gaussian":
        return normal(w)
    return (1.0 - 2.0 * (w & 1)) / math.sqrt(density) if uniform(w) < density else 0.0


def matrix(names, k, kind="sign", density=1 / 3, seed=0):
    R = [[entry(name, c, kind, density, seed) for c in range(k)] for name in names]
    return np.array(R).reshape(len(names), k) / math.sqrt(k)


def answer(X, y, n_components=100, kind="sign", density=1 / 3, seed=0, **_):
    assert y is None
    R = matrix(range(X.shape[1]), n_components, kind, density, seed)
    relevance = {f"randomprojection{c}": 1.0 for c in range(n_components)}
    return {"relevance": relevance, "loadings": {}, "embedding": X @ R}

"""Entries of random matrices as functions of a name's key: bit-identical on every machine.

A key has 64 bits. It seeds a stream of words, splitmix64 (Steele, Lea and Flood 2014), whose word c
is computed without those before it; component c uses word c. No mathematical library is called:
only integers, and + - * / and sqrt of IEEE 754 doubles, which are rounded the same everywhere and
are not fused.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Kinds of entries.
SIGN, SPARSE, GAUSSIAN = range(3)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ONE, _SIXTY_THREE, _SIX, _TWELVE = np.uint64(1), np.uint64(63), np.uint64(6), np.uint64(12)
_52_BITS = 2.0**-52
# ln 2 in two parts: the first has trailing zeros, so that its multiples are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SQRT_HALF = 0.7071067811865476

# The inverse of the normal distribution function: rational approximations near 0, further out, and
# in the tails, to 1e-16 (Wichura 1988, algorithm AS 241, PPND16). Highest powers first.
_NEAR = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_NEAR_DENOMINATOR = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_FAR = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_FAR_DENOMINATOR = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_TAIL = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_TAIL_DENOMINATOR = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


@kernel()
def _mixed(word: np.uint64) -> np.uint64:
    """Return a word whose bits each depend on every bit of `word`: the end of splitmix64."""
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    return word ^ (word >> _31)


@kernel()
def _word(key: np.uint64, c: int) -> np.uint64:
    """Return word c of the stream that a key seeds."""
    return _mixed(key + np.uint64(c + 1) * _GOLDEN)


@kernel()
def _uniform(word: np.uint64) -> float:
    """Return one of 2**52 numbers, evenly spaced in (0, 1) and symmetric about 1/2."""
    return (np.float64(word >> _TWELVE) + 0.5) * _52_BITS


@kernel()
def _log(x: float) -> float:
    """Return ln x for x in (0, 1), to a few units in the last place."""
    exponent = 0
    while x < 1e-9:
        x *= 1073741824.0
        exponent -= 30
    while x < _SQRT_HALF:
        x *= 2.0
        exponent -= 1
    # ln x = 2 (s + s³/3 + s⁵/5 + …), |s| < 0.172
    s = (x - 1.0) / (x + 1.0)
    square = s * s
    tail = 0.0
    for power in range(23, 1, -2):
        tail = (tail + 1.0 / power) * square
    return exponent * _LN2_HIGH + (2.0 * s + (2.0 * s * tail + exponent * _LN2_LOW))


@kernel()
def _ratio(numerator: tuple[float, ...], denominator: tuple[float, ...], x: float) -> float:
    p, q = numerator[0], denominator[0]
    for i in range(1, 8):
        p = p * x + numerator[i]
        q = q * x + denominator[i]
    return p / q


@kernel()
def _normal(word: np.uint64) -> float:
    """Return the standard normal quantile of a word as a number in (0, 1)."""
    p = _uniform(word)
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(_NEAR, _NEAR_DENOMINATOR, 0.180625 - q * q)
    r = np.sqrt(-_log(min(p, 1.0 - p)))
    z = (
        _ratio(_FAR, _FAR_DENOMINATOR, r - 1.6)
        if r <= 5.0
        else _ratio(_TAIL, _TAIL_DENOMINATOR, r - 5.0)
    )
    return -z if q < 0.0 else z


@kernel()
def _entry(key: np.uint64, c: int, kind: int, density: float) -> float:
    if kind == SIGN:
        bit = (_word(key, c >> 6) >> np.uint64(c & 63)) & _ONE
        return 1.0 - 2.0 * np.float64(bit)
    word = _word(key, c)
    if kind == GAUSSIAN:
        return _normal(word)
    # The last bit is the sign; the first 52 decide whether the entry is non-zero.
    if _uniform(word) >= density:
        return 0.0
    return 1.0 - 2.0 * np.float64(word & _ONE)


@kernel()
def keys_of_numbers(
    whole: np.ndarray, first: np.uint64, second: np.uint64, keys: np.ndarray
) -> None:
    """Fill keys (b,) of integer names, (b,) int64, hashed with the two words of a secret."""
    for j in range(whole.shape[0]):
        keys[j] = _mixed(_mixed(np.uint64(whole[j]) + first) ^ second)


@kernel()
def fill_entries(keys: np.ndarray, kind: int, density: float, W: np.ndarray) -> None:
    """Fill W (b, k) with the entries of b names: mean 0, and variance 1 or `density`."""
    b, k = W.shape
    for j in range(b):
        for c in range(k):
            W[j, c] = _entry(keys[j], c, kind, density)


@kernel()
def fill_uniform(key: np.uint64, out: np.ndarray) -> None:
    """Fill out (k,) with the uniform numbers in (0, 1) of a key."""
    for c in range(out.shape[0]):
        out[c] = _uniform(_word(key, c))


@kernel()
def add_row(
    values: np.ndarray, indices: np.ndarray, W: np.ndarray, largest: float, z: np.ndarray
) -> int:
    """Add a row's values times the entries of its variables to z (k,), with 0 for NaN.

    Returns
    -------
    0, or 1 + the index of a value that is infinite or too large.
    """
    for j in range(values.shape[0]):
        x = values[j]
        if abs(x) > largest:
            return j + 1
        # False for 0 and for NaN.
        if abs(x) > 0.0:
            w = W[indices[j]]
            for c in range(z.shape[0]):
                z[c] += x * w[c]
    return 0


@kernel()
def add_row_in_any_order(
    values: np.ndarray, indices: np.ndarray, W: np.ndarray, largest: float, z: np.ndarray
) -> int:
    """Add a row as `add_row` does, in twice the precision.

    The result does not depend on the order of the variables. z must be zero on entry. The rounding
    error of each addition is computed exactly and added at the end.
    """
    errors = np.zeros(z.shape[0])
    for j in range(values.shape[0]):
        x = values[j]
        if abs(x) > largest:
            return j + 1
        if abs(x) > 0.0:
            w = W[indices[j]]
            for c in range(z.shape[0]):
                term = x * w[c]
                total = z[c] + term
                z_before = total - term
                errors[c] += (z[c] - z_before) + (term - (total - z_before))
                z[c] = total
    for c in range(z.shape[0]):
        z[c] += errors[c]
    return 0


@kernel()
def add_sparsely(X: np.ndarray, W: np.ndarray, scratch: np.ndarray, Z: np.ndarray) -> None:
    """Add XᵀW to Z (n, k), for columns as the rows of X (b, n) and sparse W (b, k).

    scratch is (k, t): t rows are processed at a time, so that their sums stay in the cache.
    """
    b, n = X.shape
    k, t = scratch.shape
    for start in range(0, n, t):
        stop = min(n, start + t)
        scratch[:] = 0.0
        for j in range(b):
            x = X[j, start:stop]
            for c in range(k):
                weight = W[j, c]
                if weight != 0.0:
                    z = scratch[c]
                    for i in range(stop - start):
                        z[i] += weight * np.float64(x[i])
        for i in range(stop - start):
            for c in range(k):
                Z[start + i, c] += scratch[c, i]


@kernel()
def add_sparse_entries(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    keys: np.ndarray,
    kind: int,
    density: float,
    w: np.ndarray,
    component: np.ndarray,
    Z: np.ndarray,
) -> None:
    """Add sparse columns times the entries of their names to Z (n, k).

    The arrays of a CSC matrix have as many columns as there are keys. w and component, (k,), are
    scratch.
    """
    k = Z.shape[1]
    for j in range(keys.shape[0]):
        start, stop = indptr[j], indptr[j + 1]
        if start == stop:
            continue
        m = 0
        for c in range(k):
            entry = _entry(keys[j], c, kind, density)
            if entry != 0.0:
                w[m], component[m] = entry, c
                m += 1
        for s in range(start, stop):
            x = np.float64(data[s])
            if not abs(x) > 0.0:
                continue
            z = Z[indices[s]]
            if m == k:
                for c in range(k):
                    z[c] += x * w[c]
            else:
                for i in range(m):
                    z[component[i]] += x * w[i]

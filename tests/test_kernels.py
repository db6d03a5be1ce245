"""Every compiled loop against NumPy, with data small enough to run without compilation."""

import math
from fractions import Fraction
from itertools import combinations
from math import comb, lgamma, log

import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from streamsel._kernels.allele_counts import fill_missing_counts, unpack_bytes
from streamsel._kernels.beta_tail import log_upper_tails, rests_of_log_tails
from streamsel._kernels.correlated_pairs import keep_first, pairs_of_products
from streamsel._kernels.gaps import fill_gaps, find_gaps, zero_gaps
from streamsel._kernels.genotypes import count_alternate_alleles
from streamsel._kernels.gram_schmidt import (
    best_candidate,
    cut_pool,
    fold_deflation,
    residual_direction,
)
from streamsel._kernels.group_bases import (
    factor_groups,
    group_products,
    orthonormalize_rows,
    scale_products,
    sparse_group_products,
)
from streamsel._kernels.group_selection import forward_scores_of_groups
from streamsel._kernels.independence import is_separated, update_kept
from streamsel._kernels.knockoffs import fill_unit_residuals
from streamsel._kernels.lapack import (
    fill_product,
    is_positive_definite,
    lower_products,
    pivoted_cholesky,
    symmetric_product,
    tridiagonal_eigenpairs,
)
from streamsel._kernels.packing import pack_columns, unpack_columns
from streamsel._kernels.pivoted_cholesky import factor
from streamsel._kernels.pivoted_cholesky import fold_cholesky as fold_in_kernel
from streamsel._kernels.pivoted_cholesky import refill_by_cholesky as refill_in_kernel
from streamsel._kernels.relevance import (
    add_above_threshold,
    append_component,
    coordinates,
    next_above_threshold,
    relevances,
    rotate_and_drop,
)
from streamsel._kernels.row_moments import any_too_large
from streamsel._kernels.scan import relevance_upper_bound, scan_dense, scan_sparse
from streamsel._kernels.series_dependence import fill_autoregression, fill_lagged_products
from streamsel._kernels.sweep import (
    moments_of_observed_rows,
    moments_of_rows,
    moments_of_transposed_rows,
)
from streamsel._kernels.transposition import (
    append_columns,
    count_entries,
    seek_column,
    take_columns,
)
from streamsel._kernels.whitening import center_about_mean
from tests.reference import vcf

DTYPES = [np.float64, np.float32, np.int8, np.uint8]


def padded(Y):
    """Return target columns in the loops' form: rows, centred, padded to a multiple of four."""
    Y = Y - Y.mean(axis=0)
    c = Y.shape[1]
    rows = np.zeros((c if c <= 1 else -(-c // 4) * 4, Y.shape[0]))
    rows[:c] = Y.T
    return rows


def scanned(X, Y, c):
    """Scan columns given as an (n, b) array or CSC matrix."""
    b = X.shape[1]
    mean, low, m2 = (np.full(b, np.nan) for _ in range(3))
    cxy = np.full((b, c), np.nan)
    if scipy.sparse.issparse(X):
        YT = np.ascontiguousarray(Y.T)
        with np.errstate(all="ignore"):  # without compilation numpy warns
            assert scan_sparse(X.data, X.indices, X.indptr, Y, YT, mean, low, m2, cxy)
    else:
        rows = np.ascontiguousarray(X.T)
        rows.flags.writeable = False
        with np.errstate(all="ignore"):
            scan_dense(rows, Y, mean, low, m2, cxy)
    finite = np.isfinite(mean) & np.isfinite(low)
    assert (np.abs(low[finite]) <= np.spacing(np.abs(mean[finite]))).all()
    return mean, m2, cxy


@pytest.mark.parametrize("c", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sparse", [False, True])
def test_scan_equals_the_moments(rng, c, dtype, sparse):
    n, b = 37, 7
    X = np.round(rng.normal(size=(n, b)) * 5).clip(0, 100).astype(dtype)
    X[:, 2] = 3
    target = rng.normal(size=(n, c))
    Y = padded(target)
    mean, m2, cxy = scanned(scipy.sparse.csc_array(X) if sparse else X, Y, c)
    exact = X.astype(np.float64)
    centred = exact - exact.mean(axis=0)
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(m2, (centred**2).sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(cxy, centred.T @ Y[:c].T, rtol=1e-11, atol=1e-12)
    assert m2[2] == 0.0


@pytest.mark.parametrize("c", [1, 5])
def test_scan_bits_do_not_depend_on_position(rng, c):
    # More columns than one group or one tile has.
    n, b = 40, 150
    X = rng.normal(size=(n, b))
    Y = padded(rng.normal(size=(n, c)))
    whole = scanned(X, Y, c)
    for start, stop in [(0, 1), (1, 2), (1, 70), (3, 36), (31, 34), (123, 150), (149, 150)]:
        part = scanned(X[:, start:stop], Y, c)
        for a, b_ in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[start:stop], b_)


def test_scan_in_tiles_equals_the_scan(rng):
    n, c = 4200, 2
    X = rng.normal(size=(n, 4))
    Y = padded(rng.normal(size=(n, c)))
    _, m2, cxy = scanned(X, Y, c)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(m2, (centred**2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(cxy, centred.T @ Y[:c].T, rtol=1e-9, atol=1e-11)


@given(
    c=st.sampled_from([0, 1, 3, 20, 100]),
    dtype=st.sampled_from(DTYPES),
    sparse=st.booleans(),
    width=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_of_a_column_do_not_depend_on_blocks(c, dtype, sparse, width, seed):
    rng = np.random.default_rng(seed)
    n, b = int(rng.integers(2, 40)), 9
    X = (8 * rng.normal(size=(n, b)) * (rng.random((n, b)) < 0.7)).clip(-100, 100).astype(dtype)
    # One column whose sum is corrected, and a constant one.
    X[:, 3] = 100 + (rng.random(n) < 0.2)
    X[:, 4] = 1
    Y = padded(rng.normal(size=(n, c)))
    whole = scanned(scipy.sparse.csc_array(X) if sparse else X, Y, c)
    for start in range(b - width + 1):
        part = X[:, start : start + width]
        found = scanned(scipy.sparse.csc_array(part) if sparse else part, Y, c)
        for mine, expected in zip(found, whole, strict=True):
            np.testing.assert_array_equal(mine, expected[start : start + width])


@pytest.mark.parametrize("c", [1, 5])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("first", [0.0, 1.0])
def test_reordered_sums_keep_their_precision(rng, c, sparse, first):
    # Sums of squares about zero would lose all digits to an offset of 1e9.
    n = 100
    small = rng.integers(-8, 8, size=(n, 4)).astype(float)
    X = small + 1e9
    X[0] = 1e9 + first
    small[0] = first
    Y = padded(rng.normal(size=(n, c)))
    mean, m2, cxy = scanned(scipy.sparse.csc_array(X) if sparse else X, Y, c)
    centred = small - small.mean(axis=0)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-15)
    np.testing.assert_allclose(m2, (centred**2).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(cxy, centred.T @ Y[:c].T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scan_of_extreme_values(rng, scale):
    x = rng.normal(size=(30, 2))
    Y = padded(rng.normal(size=(30, 1)))
    _, m2, cxy = scanned(x, Y, 1)
    _, scaled_m2, scaled_cxy = scanned(x * scale, Y, 1)
    np.testing.assert_allclose(np.sqrt(scaled_m2), scale * np.sqrt(m2), rtol=1e-13)
    np.testing.assert_allclose(scaled_cxy, scale * cxy, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("row", [0, 5])
def test_scan_shows_non_finite_values(rng, bad, sparse, row):
    X = rng.normal(size=(9, 3))
    X[row, 1] = bad
    Y = padded(rng.normal(size=(9, 2)))
    _, m2, _ = scanned(scipy.sparse.csc_array(X) if sparse else X, Y, 2)
    np.testing.assert_array_equal(np.isfinite(m2), [True, False, True])


def test_rounding_level_variation_is_zero():
    x = np.array([[0.1 + 0.2, 0.3, 0.3, 0.3]]).T
    Y = padded(np.arange(4.0)[:, None])
    assert scanned(x, Y, 1)[1][0] == 0.0
    assert scanned(np.array([[0.0, 0.0, 0.0, 1e-140]]).T, Y, 1)[1][0] > 0.0


@pytest.mark.parametrize("c", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "x", [[0, 0, 0, 1e-320], [1e-200, -1e-200, 0, 0], [1e-160, 2e-160, 3e-160, 1e-160]]
)
def test_underflowing_variation_is_reported(x, sparse, c):
    X = np.array([x, [0.0] * 4, [1e-200] * 4, [1e-310] * 4, [1.0, 2.0, 3.0, 4.0]]).T
    Y = padded(np.arange(8.0).reshape(4, 2)[:, :c])
    _, m2, _ = scanned(scipy.sparse.csc_array(X) if sparse else X, Y, c)
    np.testing.assert_array_equal(m2, [np.nan, 0.0, 0.0, 0.0, 5.0])


def test_scan_corrects_the_mean_for_rounding():
    x = 1e9 + np.array([[0.1, 0.2, 0.4, 0.1]]).T
    low, mean = np.empty(1), np.empty(1)
    scan_dense(
        np.ascontiguousarray(x.T),
        padded(np.arange(4.0)[:, None]),
        mean,
        low,
        np.empty(1),
        np.empty((1, 1)),
    )
    assert (mean[0] - 1e9) + low[0] == pytest.approx((x - 1e9).mean(), abs=1e-15)
    assert low[0] != 0.0


@pytest.mark.parametrize("indices", [[1, 0], [1, 1], [0, 9], [-1, 2]])
def test_sparse_scan_refuses_rows_out_of_order_or_range(indices):
    Y = padded(np.arange(4.0)[:, None])
    parts = (np.ones(2), np.array(indices, dtype=np.int32), np.array([0, 2], dtype=np.int32))
    out = np.empty(1), np.empty(1), np.empty(1), np.empty((1, 1))
    assert not scan_sparse(*parts, Y, np.ascontiguousarray(Y.T), *out)


def test_coordinates_and_relevances(rng):
    K, W = rng.normal(size=(6, 4)), rng.normal(size=(3, 4))
    m2 = rng.uniform(1.0, 2.0, size=6) * 100
    m2[1] = 0.0
    expected = (K / np.sqrt(np.where(m2 > 0, m2, 1.0))[:, None]) @ W.T
    expected[1] = 0.0
    G = np.empty((6, 3))
    coordinates(K, np.sqrt(m2), W, G)
    np.testing.assert_allclose(G, expected, rtol=1e-12)
    out = np.empty(6)
    relevances(K, m2, W, False, out)
    lengths = np.minimum(np.linalg.norm(expected, axis=1), 1.0)
    lengths[1] = -np.inf
    np.testing.assert_allclose(out, lengths, rtol=1e-12)
    relevances(K[:, :1], m2, W[:1, :1], True, out)
    signed = K[:, 0] / np.sqrt(np.where(m2 > 0, m2, 1.0)) * W[0, 0]
    signed[1] = -np.inf
    np.testing.assert_allclose(out, signed, rtol=1e-12)


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_fast_relevance_bounds_are_tight(rng, c, offset):
    n = 100
    Y = padded(rng.normal(size=(n, c)))
    W = rng.normal(size=(2, c))
    for x in rng.normal(size=(20, n)) + offset:
        centred = x - x.mean()
        relevance = np.linalg.norm(W @ (Y[:c] @ centred)) / np.linalg.norm(centred)
        assert 0.0 < relevance_upper_bound(x, Y, W) - relevance < 2e-6


@pytest.mark.parametrize(
    "values",
    [
        [3.0] * 4,
        [0.0, np.nan, 1.0, 2.0],
        [np.inf, 0.0, 1.0, 2.0],
        [1e200, 0.0, 1.0, 2.0],
        [0.0, 1e-160, 0.0, 2e-160],
        # The sums about the first value cancel each other.
        [1e6] + [0.0, 1.0] * 1000,
    ],
)
def test_fast_bounds_mark_columns_to_check(values):
    Y = padded(np.arange(float(len(values)))[:, None])
    with np.errstate(all="ignore"):
        assert relevance_upper_bound(np.array(values), Y, np.ones((1, 1))) == np.inf


def test_direction_is_the_unit_residual(rng):
    G = rng.normal(size=(5, 4))
    Q = scipy.linalg.qr(rng.normal(size=(4, 2)), mode="economic")[0].T.copy()
    q = np.empty(4)
    score = residual_direction(G, Q, 3, q)
    residual = G[3] - Q.T @ (Q @ G[3])
    assert score == pytest.approx(residual @ residual, rel=1e-12)
    np.testing.assert_allclose(q, residual / np.linalg.norm(residual), rtol=1e-10)


def test_best_candidate_is_the_first_maximum(rng):
    G = rng.normal(size=(8, 3))
    G[6] = G[2] = 10 * G[2]
    bound, applied = (G**2).sum(axis=1), np.zeros(8, dtype=np.int64)
    Q = np.empty((0, 3))
    assert best_candidate(G, bound, applied, Q, 1e-12) == 2
    bound[2] = -1.0
    assert best_candidate(G, bound, applied, Q, 1e-12) == 6
    Q = (G[2] / np.linalg.norm(G[2]))[None, :]
    residual = G - np.outer(G @ Q[0], Q[0])
    free = np.where(bound < 0.0, -1.0, (residual**2).sum(axis=1))
    j = best_candidate(G, bound, applied, Q, 1e-12)
    assert j == np.argmax(free)
    assert bound[j] == pytest.approx(free.max(), rel=1e-12)
    assert applied[j] == 1
    bound[:] = -1.0
    assert best_candidate(G, bound, applied, Q, 1e-12) == -1


def test_best_candidate_is_exact_for_small_residuals(rng):
    # For candidates that are nearly spent the lengths of the residuals decide.
    Q = np.eye(5)[:3].copy()
    G = rng.normal(size=(6, 5))
    G[:, 3:] = np.array([1.0, 2.0, 5.0, 5.0, 3.0, 4.0])[:, None] * [1e-8, 0.0]
    bound, applied = (G**2).sum(axis=1), np.zeros(6, dtype=np.int64)
    assert best_candidate(G, bound, applied, Q, 1e-12) == 2
    assert bound[2] == pytest.approx(25e-16, rel=1e-6)


def empty_plan(m, width):
    """Return empty arrays of picks: indices, scores, rounds, rows."""
    return (
        np.empty(m, dtype=np.int64),
        np.empty(m),
        np.empty(m, dtype=np.int64),
        np.empty((m, width)),
    )


def round_by_round(G, free, m):
    """Return greedy picks; the projector is reset whenever the rank is used up."""
    indices, scores = [], []
    while len(indices) < m:
        R, before = G.copy(), len(indices)
        while len(indices) < m:
            left = np.where([j in free for j in range(len(G))], (R**2).sum(axis=1), -1.0)
            j = int(np.argmax(left >= left.max() * (1.0 - 1e-12)))
            if left[j] < 1e-10:
                break
            indices.append(j)
            scores.append(left[j])
            free = free - {j}
            R -= np.outer(R @ R[j], R[j]) / left[j]
        if len(indices) == before:
            break
    return indices, scores


def test_cut_pool_is_greedy_at_every_cut(rng):
    m, r, offered = 6, 3, rng.normal(size=(60, 3))
    start = rng.normal(size=(4, r))
    G, whole, origin = np.empty((2 * m, r)), np.empty(2 * m), np.empty(2 * m, dtype=np.int64)
    G[:4], whole[:4] = start, (start**2).sum(axis=1)
    bounds, plan = (offered**2).sum(axis=1), empty_plan(m, r)
    pool = G, whole, origin, 4, 0, offered, bounds, plan, 0, m, -1.0, -1.0
    size, fresh, planned, discarded, floor = cut_pool(*pool, 1e-12, 1e-12)
    everything = np.vstack([start, offered])
    assert fresh == planned == m
    np.testing.assert_array_equal(G[:size], everything[origin[:size]])
    kept, bar = list(range(4)), -1.0
    for j in range(4, 64):
        if bounds[j - 4] > bar:
            kept.append(j)
        if len(kept) == 2 * m:
            indices, scores = round_by_round(everything[kept], set(range(2 * m)), m)
            kept, bar = [kept[index] for index in sorted(indices)], min(scores)
    assert origin[:size].tolist() == kept
    assert floor == pytest.approx(bar, rel=1e-12)
    lost = np.delete((everything**2).sum(axis=1), origin[:size])
    assert discarded == pytest.approx(lost.max(), rel=1e-12)


@pytest.mark.parametrize("n", [4, 20])
def test_refill_of_a_kernel_matrix_equals_coordinates(rng, n):
    p, m = 14, 7
    G = rng.normal(size=(p, n))
    G /= np.linalg.norm(G, axis=1)[:, None]
    indices, scores = round_by_round(G, set(range(p)), m)
    plan, order, L = empty_plan(m, m), np.empty(m, dtype=np.int64), np.empty((m, m))
    taken, contends = np.zeros(p, dtype=np.bool_), np.ones(p, dtype=np.bool_)
    # First from some of them, then from all.
    first = np.arange(p) >= 10
    picks = empty_plan(m, m)
    planned = refill_in_kernel(
        G @ G.T, first.copy(), contends, order, L, plan, 0, picks, 1e-12, 1e-12
    )
    now = empty_plan(m, m)
    found = refill_in_kernel(
        G @ G.T, taken, first.copy(), order, L, picks, planned, now, 1e-12, 1e-12
    )
    assert found == m
    assert now[0].tolist() == indices
    np.testing.assert_allclose(now[1], scores, rtol=1e-9)
    np.testing.assert_array_equal(np.flatnonzero(taken), np.sort(indices))


@pytest.mark.parametrize("in_kernel", [False, True])
def test_fold_scores_under_every_stage(rng, in_kernel):
    G = rng.normal(size=(30, 5))
    G /= np.linalg.norm(G, axis=1)[:, None]
    # Two rounds; no candidate is left after each.
    rounds, picks = [[7, 2, 9], [4, 11]], [7, 2, 9, 4, 11]
    steps = np.array([0, 1, 2, -1, 3, 4, -1])
    begins = np.isin(np.arange(7), [0, 4])
    scores = np.full((30, 7), np.nan)
    if in_kernel:
        K, L = G @ G[picks].T, np.zeros((5, 5))
        for part in (slice(0, 3), slice(3, 5)):
            factor(K[picks[part], part], L[part, part])
            np.testing.assert_allclose((L @ L.T)[part, part], K[picks[part], part], atol=1e-14)
        fold_in_kernel(K, L, steps, begins, scores)
    else:
        Q = np.vstack([np.linalg.qr(G[mine].T)[0].T for mine in rounds])
        fold_deflation(G, Q, steps, begins, scores)
    before = [mine[:s] for mine in rounds for s in range(len(mine) + 1)]
    for s, mine in enumerate(before):
        R = G - G @ np.linalg.pinv(G[mine]) @ G[mine] if mine else G
        np.testing.assert_allclose(scores[:, s], (R**2).sum(axis=1), atol=1e-13)


def components(rng, n=11, c=2, q=4, s=6):
    """Return components of given variances, their moments, and weights that define relevance."""
    Y = rng.normal(size=(n, c))
    Z, B = rng.normal(size=(q, n)), rng.normal(size=(s, q))
    W = np.linalg.inv(np.linalg.cholesky(Y.T @ Y))
    relevance = np.linalg.norm(W @ Y.T @ Z.T, axis=0) / np.linalg.norm(Z, axis=1)
    return Y, W, Z, Z @ Z.T, Z @ Y, B, relevance


# No covariates, for up to two target columns.
NO_GIVEN = [np.zeros((0, c)) for c in range(3)]


def drop(Z, Mzz, Czy, B, relevance, *tail, arrival=None, given=None):
    """Rotate and drop components, which by default arrived in the order of their indices."""
    arrival = np.arange(float(len(Z))) if arrival is None else arrival
    given = NO_GIVEN[Czy.shape[1]] if given is None else given
    count, W, *options = tail
    return rotate_and_drop(Z, Mzz, Czy, B, relevance, arrival, count, W, given, *options, True)


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("jacobi", [False, True])
def test_rotate_and_drop_rotates_all_state(rng, jacobi, signed, covariates):
    """All state is rotated; Jacobi's signs follow the indices, or relevance if it is signed."""
    Y, W, Z, Mzz, Czy, B, relevance = components(rng, c=1 if signed else 2)
    given = NO_GIVEN[Y.shape[1]]
    left = Z
    if covariates:
        # The last column is a covariate: its residual on the others is orthogonal to it.
        z = rng.normal(size=(len(Y), 1))
        Y = np.hstack([Y - z @ (z.T @ Y) / (z.T @ z), z])
        Czy = Z @ Y
        asked = np.linalg.inv(np.linalg.cholesky(Y[:, :-1].T @ Y[:, :-1]))
        W = np.hstack([asked, np.zeros((len(asked), 1))])
        given = np.zeros((1, Y.shape[1]))
        given[0, -1] = 1 / np.linalg.norm(z)
        left = Z - (Z @ z) @ z.T / (z.T @ z)
        relevance = np.linalg.norm(W @ Y.T @ Z.T, axis=0) / np.linalg.norm(left, axis=1)
    if signed:
        relevance = (W @ Y.T @ Z.T)[0] / np.linalg.norm(left, axis=1)
    q = len(Z)
    pair = np.argsort(relevance)[:2]
    a, b = sorted(pair) if jacobi and not signed else pair
    aa, bb, ab = left[a] @ left[a], left[b] @ left[b], left[a] @ left[b]
    theta = np.arctan2(2 * ab, aa - bb) if jacobi else np.arctan(2 * ab / np.sqrt(aa * bb))
    cos, sin = np.cos(theta / 2), np.sin(theta / 2)
    G = np.eye(q)
    G[np.ix_([a, b], [a, b])] = [[cos, -sin], [sin, cos]]
    turned_Z, turned_B = G.T @ Z, B @ G
    found = W @ Y.T @ turned_Z.T / np.linalg.norm(G.T @ left, axis=1)
    found = found[0] if signed else np.linalg.norm(found, axis=0)
    kept = [k for k in range(q) if k not in (a, b)]
    survivor = a if found[a] > found[b] else b
    last = q - 1
    low, high = sorted(pair)
    order = {k: k for k in kept} | {low: survivor}
    if high != last:
        order[high] = order.pop(last)
    arrival = rng.permutation(np.arange(float(q)))
    before = arrival.copy()
    came = before.copy()
    tail = (q, W, jacobi, signed, 1e-12, 1e-14)
    assert not drop(Z, Mzz, Czy, B, relevance, *tail, arrival=arrival, given=given)
    # Jacobi's first is the longer one; it gets the arrival of the less relevant one.
    came[[a, b]] = before[pair]
    np.testing.assert_array_equal(arrival[:last], [came[order[k]] for k in range(last)])
    indices = [order[k] for k in range(last)]
    np.testing.assert_allclose(Z[:last], turned_Z[indices], rtol=1e-12)
    np.testing.assert_allclose(B[:, :last], turned_B[:, indices], rtol=1e-12)
    np.testing.assert_allclose(relevance[:last], found[indices], rtol=1e-12)
    np.testing.assert_allclose(Mzz, Z @ Z.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(Czy, Z @ Y, rtol=1e-10, atol=1e-12)
    assert not Z[last].any()
    assert not B[:, last].any()


def test_rotate_and_drop_of_duplicate_components(rng):
    _, W, Z, Mzz, Czy, B, relevance = components(rng, q=2)
    Z[1] = 2 * Z[0]
    Mzz[:], Czy[1], relevance[1] = Z @ Z.T, 2 * Czy[0], relevance[0]
    B = np.eye(2)
    before = relevance[0]
    assert not drop(Z, Mzz, Czy, B, relevance, 2, W, True, False, 1e-12, 1e-14)
    assert relevance[0] == pytest.approx(before, rel=1e-12)
    np.testing.assert_allclose(np.abs(B[:, 0]), [np.sqrt(0.2), np.sqrt(0.8)], rtol=1e-12)


def test_ties_are_in_order_of_arrival(rng):
    """Ties of relevance are in order of arrival."""
    _, W, Z, Mzz, Czy, B, relevance = components(rng, q=3)
    relevance[:] = 0.5
    kept = Z[1].copy()
    tail = (3, W, True, False, 1e-12, 1e-14)
    drop(Z, Mzz, Czy, B, relevance, *tail, arrival=np.array([1.0, 7.0, 0.0]))
    np.testing.assert_array_equal(Z[1], kept)


def test_rotate_and_drop_reports_variables_without_loading(rng):
    _, W, Z, Mzz, Czy, B, relevance = components(rng, q=2)
    Z[:] = np.eye(2, Z.shape[1])
    Mzz[:] = Z @ Z.T
    B[:] = np.eye(6, 2)
    # Uncorrelated: there is no rotation, and the dropped component takes its variable along.
    assert drop(Z, Mzz, Czy, B, relevance, 2, W, True, False, 1e-12, 1e-14)


@pytest.mark.parametrize("most", [2, 3])
def test_insertion_equals_join_then_rotate_and_drop(rng, most):
    Y, W, Z, Mzz, Czy, B, relevance = components(rng, q=3)
    x, means = rng.normal(size=Z.shape[1]) + 5, np.zeros(6)
    centred = x - x.mean()
    m2, cxy = centred @ centred, centred @ Y
    found = np.linalg.norm(W @ cxy) / np.sqrt(m2)
    for array in (Z, Czy, relevance):
        array[2:] = 0.0
    Mzz[2:], Mzz[:, 2:], B[:, 2:] = 0.0, 0.0, 0.0
    step = [a.copy() for a in (Z, Mzz, Czy, B, relevance)]
    tail = (W, True, False, 1e-12, 1e-14)
    arrival, options = np.array([0.0, 1.0, 0.0]), (W, NO_GIVEN[2], *tail[1:])
    bar = relevance[:2].min()
    # The first does not exceed the threshold; the last does not exceed the raised one.
    X, moments = np.stack([x] * 3), (np.full(3, x.mean()), np.full(3, m2), np.stack([cxy] * 3))
    state = (Z, Mzz, Czy, B, means, relevance, arrival, 2, 4, X, *moments)
    all_found, joined = np.array([bar, bar + found, bar]), np.empty(3, dtype=np.bool_)
    count, unloaded, bar = add_above_threshold(*state, all_found, bar, most, *options, joined)
    found = all_found[1]
    assert joined.tolist() == [False, True, False]
    append_component(*step[:3], x, x.mean(), m2, cxy, 2)
    step[4][2] = found
    step[3][4] = [0.0, 0.0, 1.0]
    if most == 2:
        assert drop(*step[:3], step[3][:5], step[4], 3, *tail) == unloaded
    else:
        assert arrival[2] == 2.0
    assert count == most
    assert bar == step[4][:most].min() + 1e-12
    assert means[4] == x.mean()
    for mine, expected in zip((Z, Mzz, Czy, B, relevance), step, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_join_adds_a_component_and_its_moments(rng):
    n, q = 9, 3
    Z, Mzz, Czy = np.zeros((q, n)), np.zeros((q, q)), np.zeros((q, 2))
    X, Y = rng.normal(size=(q, n)), rng.normal(size=(n, 2))
    for k, x in enumerate(X):
        centred = x - x.mean()
        append_component(Z, Mzz, Czy, x, x.mean(), centred @ centred, centred @ Y, k)
    np.testing.assert_allclose(Z, X - X.mean(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(Mzz, Z @ Z.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(Czy, Z @ Y, rtol=1e-10, atol=1e-12)


def test_next_above_threshold():
    values, indices = np.array([0.1, 0.5, 0.2, 0.5, 0.9]), np.empty(2, dtype=np.intp)
    assert next_above_threshold(values, 0, 0.4, indices) == (2, 4)
    assert indices.tolist() == [1, 3]
    assert next_above_threshold(values, 4, 0.4, indices) == (1, 5)
    assert indices[0] == 4
    assert next_above_threshold(values, 2, 0.5, indices) == (1, 5)
    assert next_above_threshold(values, 0, 0.9, indices) == (0, 5)


# ------------------------------------------------------------------------- many rows at once


def swept(kernel, X, w, Y):
    """Return mean, m2 and products of X (b, m) with weights and targets; None if not finite."""
    m = X.shape[1]
    Y = Y - w @ Y / w.sum()
    mean, m2, products = np.full(m, np.nan), np.full(m, np.nan), np.full((Y.shape[1], m), np.nan)
    rows = np.ascontiguousarray(X if kernel is moments_of_rows else X.T)
    rows.flags.writeable = False
    shift, targets = X[-1].copy(), np.ascontiguousarray((w[:, None] * Y).T)
    whole = kernel(rows, w, targets, shift, mean, m2, products)
    return (shift, mean, m2, products.T) if whole else None


def swept_observed(X, w, Y):
    """Return weight, value, mean, m2, products and means over the observed rows."""
    m, c = X.shape[1], Y.shape[1]
    found = [np.full(m, np.nan) for _ in range(4)] + [np.full((c, m), np.nan) for _ in range(2)]
    rows = np.ascontiguousarray(X)
    rows.flags.writeable = False
    moments_of_observed_rows(rows, w, np.ascontiguousarray((w[:, None] * Y).T), *found)
    return *found[:4], found[4].T, found[5].T


def weighted(x, w, Y):
    """Return the weighted mean, sum of squares, products with targets, and means of these."""
    mean, means = w @ x / w.sum(), w @ Y / w.sum()
    return mean, w @ (x - mean) ** 2, (w * (x - mean)) @ (Y - means), means


@pytest.mark.parametrize("kernel", [moments_of_rows, moments_of_transposed_rows])
@pytest.mark.parametrize("c", [1, 2, 5])
@pytest.mark.parametrize(("b", "m"), [(1, 3), (2, 1), (7, 4), (8, 3), (5, 259), (3, 0)])
def test_sweep_equals_the_moments(rng, kernel, c, b, m):
    X, w, Y = rng.normal(size=(b, m)), rng.uniform(0.5, 2.0, size=b), rng.normal(size=(b, c))
    X[:, :1] = 3.1
    shift, mean, m2, products = swept(kernel, X, w, Y)
    for j in range(m):
        exact = weighted(X[:, j], w, Y)
        assert shift[j] + mean[j] == pytest.approx(exact[0], rel=1e-13)
        assert m2[j] == pytest.approx(exact[1], rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(products[j], exact[2], rtol=1e-11, atol=1e-13)
    assert not m2[:1].any()
    assert not products[:1].any()


@pytest.mark.parametrize("kernel", [moments_of_rows, moments_of_transposed_rows])
def test_sweep_keeps_precision_with_an_offset(rng, kernel):
    small = rng.integers(-8, 8, size=(101, 6)).astype(float)
    # A first and a last row far from the others, and a trend.
    small[0, 1], small[-1, 2], small[:, 3] = 1e6, 1e6, small[:, 3] + np.arange(101) * 1000
    w, Y = np.ones(101), rng.normal(size=(101, 2))
    shift, mean, m2, products = swept(kernel, small + 1e9, w, Y)
    for j in range(6):
        exact = weighted(small[:, j], w, Y)
        assert (shift[j] - 1e9) + mean[j] == pytest.approx(exact[0], rel=1e-12, abs=1e-12)
        assert m2[j] == pytest.approx(exact[1], rel=1e-12)
        np.testing.assert_allclose(
            products[j], exact[2], rtol=0, atol=1e-13 * 101 * exact[1] ** 0.5
        )


@pytest.mark.parametrize("kernel", [moments_of_rows, moments_of_transposed_rows])
@pytest.mark.parametrize("scale", [1e-150, 1e148])
def test_sweep_of_extreme_values(rng, kernel, scale):
    X, w, Y = rng.normal(size=(30, 2)), np.ones(30), rng.normal(size=(30, 1))
    _, _, m2, products = swept(kernel, X, w, Y)
    _, _, scaled_m2, scaled = swept(kernel, X * scale, w, Y)
    np.testing.assert_allclose(np.sqrt(scaled_m2), scale * np.sqrt(m2), rtol=1e-13)
    np.testing.assert_allclose(scaled, scale * products, rtol=1e-12)


@pytest.mark.parametrize("kernel", [moments_of_rows, moments_of_transposed_rows])
@pytest.mark.parametrize("row", [0, 3, 4, 6])
def test_sweep_detects_missing_values(rng, kernel, row):
    X = rng.normal(size=(7, 3))
    X[row, 1] = np.nan
    assert swept(kernel, X, np.ones(7), rng.normal(size=(7, 2))) is None


@pytest.mark.parametrize("kernel", [moments_of_rows, moments_of_transposed_rows])
@pytest.mark.parametrize("value", [2e150, -2e150, 1e300, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3, 6])
def test_sweep_detects_very_large_values(rng, kernel, row, value):
    X = rng.normal(size=(7, 3))
    X[row, 1] = value
    with np.errstate(all="ignore"):  # without compilation numpy warns
        assert swept(kernel, X, np.ones(7), rng.normal(size=(7, 2))) is None


def test_sweep_of_extreme_observed_values(rng):
    X, w, Y = rng.normal(size=(30, 2)), np.ones(30), rng.normal(size=(30, 1))
    _, _, _, m2, products, _ = swept_observed(X, w, Y)
    _, _, _, scaled_m2, scaled, _ = swept_observed(X * 1e151, w, Y)
    np.testing.assert_allclose(np.sqrt(scaled_m2), 1e151 * np.sqrt(m2), rtol=1e-13)
    np.testing.assert_allclose(scaled, 1e151 * products, rtol=1e-12)


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize(("b", "m"), [(1, 3), (6, 4), (9, 259), (3, 0)])
def test_sweep_of_observed_values(rng, c, offset, b, m):
    small = rng.integers(-8, 8, size=(b, m)).astype(float)
    small[rng.random(small.shape) < 0.3] = np.nan
    small[:, 1:2] = np.nan
    w, Y = rng.uniform(0.5, 2.0, size=b), rng.normal(size=(b, c))
    seen, shift, mean, m2, products, means = swept_observed(small + offset, w, Y)
    for j in range(m):
        rows = ~np.isnan(small[:, j])
        assert seen[j] == pytest.approx(w[rows].sum(), rel=1e-14)
        if not rows.any():
            assert (shift[j], mean[j], m2[j]) == (0.0, 0.0, 0.0)
            assert not products[j].any()
            assert not means[j].any()
            continue
        exact = weighted(small[rows, j], w[rows], Y[rows])
        assert (shift[j] - offset) + mean[j] == pytest.approx(exact[0], rel=1e-12, abs=1e-12)
        assert m2[j] == pytest.approx(exact[1], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(products[j], exact[2], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(means[j], exact[3], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("at", [0, 3, 10])
@pytest.mark.parametrize(
    ("value", "bad"),
    [
        (np.inf, True),
        (-np.inf, True),
        (2e152, True),
        (-2e152, True),
        (1e152, False),
        (np.nan, False),
    ],
)
def test_too_large_values_are_detected(rng, at, value, bad):
    values = rng.normal(size=11)
    values[at] = value
    assert bool(any_too_large(values)) is bad


def independent_given(C, G, x, few, bars):
    """Return whether x is independent given a few, by inversion of their correlations."""
    few = list(few)
    target = np.eye(G.shape[1])
    A = np.linalg.pinv(C[np.ix_(few, few)])
    left = C[x, x] - C[x, few] @ A @ C[few, x]
    rest = target - G[few].T @ A @ G[few]
    shared = G[x] - G[few].T @ A @ C[few, x]
    rank = np.linalg.matrix_rank(rest, tol=1e-9, hermitian=True)
    return (
        shared @ np.linalg.pinv(rest, rcond=1e-9, hermitian=True) @ shared
        <= left * (bars[len(few), rank])
    )


def separated_by_definition(C, G, x, among, also, bars):
    """Return whether x is independent given any subset that includes `also`."""
    sizes = range(max(1, len(also)), len(bars))
    sets = (few for size in sizes for few in combinations([*also, *among], size))
    return any(independent_given(C, G, x, few, bars) for few in sets if {*also} <= {*few})


@pytest.mark.parametrize("r", [1, 2, 4])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_conditional_independence_of_the_target(rng, r, depth):
    m, n = 6, 9
    bars = np.full((depth + 1, r + 1), np.inf)
    bars[:, 1:] = rng.uniform(0.02, 0.1, size=(depth + 1, r))
    for _ in range(8):
        U = np.linalg.qr(rng.normal(size=(n, r)))[0]
        V = rng.normal(size=(n, m)) + 2.0 * U @ rng.normal(size=(r, m))
        V /= np.linalg.norm(V, axis=0)
        C, G = V.T @ V, V.T @ U
        M = C - G @ G.T
        among = np.array([1, 2, 4])
        for also in ([], [0]):
            expected = separated_by_definition(C, G, 5, among.tolist(), also, bars)
            assert bool(is_separated(C, G, M, 5, among, also[0] if also else -1, bars)) is expected
        for fast in (True, False):
            stays = np.empty(m, dtype=bool)
            update_kept(C, G, M, bars, fast, stays)
            assert np.flatnonzero(stays).tolist() == reviewed(C, G, bars, fast)


def reviewed(C, G, bars, fast):
    """Return the kept variables; the newcomer is tested first or last, the others given it."""
    *others, new = range(len(C))
    if fast and separated_by_definition(C, G, new, others, [], bars):
        return others
    for x in list(others):
        if separated_by_definition(C, G, x, [y for y in others if y != x], [new], bars):
            others.remove(x)
    refused = not fast and separated_by_definition(C, G, new, others, [], bars)
    return others if refused else [*others, new]


@given(
    st.lists(
        st.lists(
            st.sampled_from(["0|1", "1/1", "0", "./.", "2|0", "", "x", "1|", "0/10/0", "|0|1"])
        ),
        max_size=5,
    ),
    st.sampled_from(["GT", "GT:DP", "DP:GT", "DP", "G", ""]),
    st.integers(0, 4),
)
def test_alternate_alleles_up_to_the_first_bad_line(lines, form, n):
    """A line is bad if it has another number of cells, or an invalid genotype."""
    texts = []
    for cells in lines:
        padded = [f"7:{cell}" if form == "DP:GT" else cell for cell in cells]
        texts.append("\t".join([*["1", "2", "rs", "A", "G", ".", ".", "."], form, *padded]))
    text = "\n".join([*texts, ""]).encode()
    starts = np.cumsum([0, *(len(one) + 1 for one in texts)])
    counts = np.full((len(lines), n), 9, np.int8)
    found = count_alternate_alleles(np.frombuffer(text, np.uint8), starts, counts)
    has_genotypes = "GT" in form
    good = [
        len(cells) == n and not (has_genotypes and {"", "x", "1|"} & {*cells}) for cells in lines
    ]
    assert found == next((i for i, one in enumerate(good) if not one), len(lines))
    for row, one in zip(counts[:found], texts[:found], strict=True):
        ((_, expected),) = vcf.columns(f"#\n{one}")[0].items()
        np.testing.assert_array_equal(np.where(row < 0, np.nan, row), expected)


@given(st.lists(st.binary(max_size=40), max_size=4), st.integers(0, 3))
def test_arbitrary_bytes_as_lines_of_genotypes(lines, n):
    """Arbitrary bytes cause no reads or writes out of bounds."""
    starts = np.cumsum([0, *map(len, lines)])
    counts = np.empty((len(lines), n), np.int8)
    text = np.frombuffer(b"".join(lines), np.uint8)
    assert 0 <= count_alternate_alleles(text, starts, counts) <= len(lines)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_missing_values_are_found_and_imputed(rng, dtype):
    X = rng.normal(size=(4, 37)).astype(dtype)
    X[1, [0, 36]], X[2, 5], X[3] = (np.nan, np.inf), -np.inf, np.nan
    gaps = ~np.isfinite(X)
    has_gap, has_value = np.empty((2, 4), np.bool_)
    find_gaps(X, has_gap, has_value)
    assert (has_gap == gaps.any(axis=1)).all()
    assert (has_value == ~gaps.all(axis=1)).all()
    indices = np.array([1, 2])
    zeroed, n_gaps, filled = np.full((2, 37), 9, dtype), np.empty(2, np.intp), X.copy()
    zero_gaps(X, indices, zeroed, n_gaps)
    np.testing.assert_array_equal(zeroed, np.where(gaps, 0, X)[indices])
    assert n_gaps.tolist() == [2, 1]
    fill_gaps(filled, indices, np.array([7, 8], dtype))
    expected = np.where(gaps, np.array([[0], [7], [8], [np.nan]]), X)
    np.testing.assert_array_equal(filled, expected.astype(dtype))


@given(st.integers(0, 99), st.integers(0, 5), st.integers(0, 9), st.sampled_from(["i4", "i8"]))
def test_columns_from_sparse_rows(seed, first, width, dtype):
    X = scipy.sparse.random(6, 9, 0.4, "csr", rng=np.random.default_rng(seed))
    X.sort_indices()
    columns, ends = X.indices.astype(dtype), X.indptr.astype(dtype)
    counts, at = np.zeros(9, np.int64), np.empty(6, np.int64)
    assert count_entries(columns, ends, counts)
    end = min(first + width, 9)
    seek_column(columns, ends, first, at)
    expected = X.tocsc()[:, first:end]
    starts = np.append(0, np.cumsum(counts[first:end]))
    values, rows = np.full(starts[-1], np.nan), np.full(starts[-1], -1, np.int32)
    take_columns(X.data, columns, ends, (first, end), at, starts[:-1].copy(), values, rows)
    for found, other in zip((values, rows, starts), _parts(expected), strict=True):
        np.testing.assert_array_equal(found, other)
    following = np.empty(6, np.int64)
    seek_column(columns, ends, end, following)
    assert (at == following).all()
    # The same rows, twice.
    twice = scipy.sparse.vstack([expected, expected], "csc")
    free, both = (
        twice.indptr[:-1].astype(np.int64),
        (np.empty(twice.nnz), np.empty(twice.nnz, "i4")),
    )
    for first_row in (0, 6):
        append_columns(values, rows, starts + 7, first_row, free, *both)
    for found, other in zip(both, _parts(twice), strict=False):
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_columns(dtype):
    X = np.array([[0, 1, 2.5, 2.5, -127], [np.nan, np.nan, 3, 0, 127], [-0.0, 0, 1, 2, 3]], dtype)
    packed, others = np.empty(X.shape, np.int8), np.empty(3, dtype)
    assert pack_columns(X, packed, others)
    assert packed.tolist() == [
        [0, 1, -128, -128, -127],
        [-128, -128, 3, 0, 127],
        [-128, 0, 1, 2, 3],
    ]
    columns = np.full(X.shape, 9, dtype)
    unpack_columns(packed, others, columns)
    assert columns.tobytes() == X.tobytes()
    for other in (0.5, np.nan, 128.0):
        assert not pack_columns(np.array([[-0.0, other]], dtype), packed, others)


def _parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def test_allele_counts_of_bytes_and_as_numbers():
    table = np.array([[2, -1, 1, 0], [0, 0, 0, 0], [-1, -1, -1, -1]], np.int8).view(np.uint32)[:, 0]
    counts = np.empty((3, 2), np.uint32)
    unpack_bytes(np.array([[0, 1], [0, 0], [2, 2]], np.uint8), table, counts)
    counts = counts.view(np.int8)
    expected = np.array([[2, -1, 1, 0] + 4 * [0], 2 * [2, -1, 1, 0], 8 * [-1]])
    assert (counts == expected).all()
    for impute, means in ((True, [3 / 7, 1.0, np.nan]), (False, 3 * [np.nan])):
        values = np.empty((3, 8), np.float32)
        fill_missing_counts(counts, impute, values)
        fill = np.array(means, np.float32)[:, None]
        np.testing.assert_array_equal(values, np.where(expected < 0, fill, expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_center_about_mean(rng, dtype):
    X = rng.integers(0, 3, (4, 11)).astype(dtype)
    X[2] = 2
    X.flags.writeable = False
    weights = rng.random(11)
    weights /= weights.sum()
    out, shift, mean = np.full((4, 11), np.nan), np.empty(4), np.empty(4)
    center_about_mean(X, weights, out, shift, mean)
    expected = X.astype(np.float64)
    np.testing.assert_allclose(out, expected - expected.mean(axis=1, keepdims=True), atol=1e-15)
    np.testing.assert_allclose(shift + mean, expected @ weights)
    assert not out[2].any()


def test_fill_product(rng):
    A, B, out = rng.normal(size=(3, 7)), rng.normal(size=(7, 5)), np.full((6, 9), np.nan)
    fill_product(A, B, out[1:4, 2:7])
    np.testing.assert_allclose(out[1:4, 2:7], A @ B)
    out[1:4, 2:7] = np.nan
    assert np.isnan(out).all()


# ----------------------------------------------------------------------------------- beta tails


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 30), (7, 400), (40, 3)])
def test_log_of_a_beta_tail(a, b):
    """Logarithms of beta tails equal exact fractions, and the inverse returns the argument."""
    rest = np.array([1e-3, 1e-9, 1e-60]) * b / (a + b)
    exact = []
    for y in map(Fraction, rest.tolist()):
        n = a + b - 1
        # P(X > 1 - y) for X ~ Beta(a, b) is that of b or more successes of n, each with chance y.
        p = sum(comb(n, k) * y**k * (1 - y) ** (n - k) for k in range(b, n + 1))
        exact.append(log(p.numerator) - log(p.denominator))
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    found, back = np.empty(3), np.empty(3)
    every = [np.full(3, float(value)) for value in (a, b, log_beta)]
    log_upper_tails(rest, *every, found)
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    rests_of_log_tails(found, float(a), float(b), log_beta, back)
    np.testing.assert_allclose(back, rest, rtol=1e-10)


# --------------------------------------------------------------------------- bases of small groups


@pytest.mark.parametrize("sparse", [False, True])
def test_bases_of_groups(rng, sparse):
    n, sizes = 23, [1, 3, 6, 2, 5, 4]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(starts[-1], n)) * (rng.random((starts[-1], n)) < 0.4)
    X[5], X[8], X[12] = X[4], X[7] + 2.0 * X[6], 0.0
    unit = X - X.mean(axis=1, keepdims=True)
    length = np.sqrt(np.square(unit).sum(axis=1))
    unit /= np.where(length > 0.0, length, 1.0)[:, None]
    products = np.full(np.square(sizes).sum(), np.nan)
    if sparse:
        matrix = scipy.sparse.csr_array(X)
        arrays = matrix.data, matrix.indices, matrix.indptr
        sparse_group_products(*arrays, starts, X.mean(axis=1), n, products)
        scale = 1.0 / np.where(length > 0.0, length, np.inf)
    else:
        group_products(unit, starts, 10, products)
        scale = (length > 0.0) * 1.0
    scale_products(products, starts, scale, np.zeros((len(X), 0)))
    U = np.linalg.qr(rng.normal(size=(n, 3)))[0].T
    G = unit @ U.T
    rank, order = np.empty(len(sizes), dtype=np.int64), np.empty(len(X), dtype=np.int64)
    C, weights = np.empty_like(G), np.empty(products.size)
    n_axes = factor_groups(products, starts, G, 1e-10, rank, order, C, weights)
    Q, firsts = np.empty((n_axes, n)), np.concatenate([[0], np.cumsum(rank)])
    orthonormalize_rows(unit, order[:n_axes], firsts, 10, Q)
    at = 0
    for g, size in enumerate(sizes):
        members, axes = unit[starts[g] : starts[g + 1]], Q[firsts[g] : firsts[g + 1]]
        assert rank[g] == np.linalg.matrix_rank(members, tol=1e-6)
        np.testing.assert_allclose(axes @ axes.T, np.eye(rank[g]), atol=1e-12)
        np.testing.assert_allclose(members @ axes.T @ axes, members, atol=1e-9)
        np.testing.assert_allclose(C[firsts[g] : firsts[g + 1]], axes @ U.T, atol=1e-9)
        W = weights[at : at + rank[g] * size].reshape(rank[g], size)
        np.testing.assert_allclose(W @ members, axes, atol=1e-9)
        at += rank[g] * size


def test_gains_of_groups(rng):
    """Gains equal those of forward selection, also for a group partly explained by the picks."""
    Q = np.linalg.qr(rng.normal(size=(30, 9)))[0].T
    U = np.linalg.qr(rng.normal(size=(30, 2)))[0].T
    V = np.vstack([Q[0], (Q[1] + Q[5]) / np.sqrt(2.0)])
    starts = np.array([0, 3, 4, 9])
    for ridge in (0.7, 0.0):
        scores = np.empty((3, 2))
        inputs = Q @ U.T, Q @ V.T, V @ U.T, starts, np.array([0, 2])
        forward_scores_of_groups(*inputs, ridge, 1e-8, scores)
        R = np.eye(30) - V.T @ V
        for g in range(3):
            axes = Q[starts[g] : starts[g + 1]]
            for s, M in enumerate((np.eye(30), R)):
                inner = ridge * np.eye(len(axes)) + axes @ M @ axes.T
                gain = np.trace(U @ M @ axes.T @ np.linalg.pinv(inner, rcond=1e-9) @ axes @ M @ U.T)
                q = len(axes) if ridge else np.linalg.matrix_rank(inner, tol=1e-8)
                np.testing.assert_allclose(scores[g, s], gain / q if q else -np.inf, rtol=1e-9)


def test_pairs_of_columns_that_correlate(rng):
    X = rng.integers(0, 3, size=(9, 50)).astype(np.float32)
    C, sums, norms = X @ X.T, X.sum(axis=1, dtype=float), np.sqrt(50 * X.var(axis=1, dtype=float))
    found = np.empty(81, np.intp), np.empty(81, np.intp), np.empty(81)
    size = pairs_of_products(C[:4], sums[:4], sums, norms[:4], norms, 50.0, 0.1, *found)
    R = np.corrcoef(X)[:4]
    first, second = np.nonzero(np.abs(R) >= 0.1)
    assert found[0][:size].tolist() == first.tolist()
    assert found[1][:size].tolist() == second.tolist()
    np.testing.assert_allclose(found[2][:size], R[first, second], atol=1e-14)


def test_the_first_of_each_run_of_pairs_is_kept():
    first, second = np.array([1, 2, 3, 3, 4]), np.array([0, 1, 1, 2, 3])
    kept, representative = np.ones(5, dtype=bool), np.zeros(5, np.intp)
    keep_first(first, second, kept, representative)
    assert kept.tolist() == [True, False, True, False, True]
    assert representative[[1, 3]].tolist() == [0, 3]


reordered = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="sums in the order of the terms are less precise"
)


@reordered
def test_lagged_products_are_precise(rng):
    x = rng.normal(size=(2, 3001)) * 10.0 ** rng.integers(-4, 5, size=3001)
    lengths, lags = np.array([2999, 3001]), np.array([0, 1, 7, 2999])
    found = np.empty((4, 2))
    fill_lagged_products(x, lengths, lags, found)
    for i, n in enumerate(lengths.tolist()):
        for k, lag in enumerate(lags.tolist()):
            terms = x[i, : n - lag] * x[i, lag:n]
            if lag == n:
                assert np.isnan(found[k, i])
            else:
                error = abs(found[k, i] * terms.size - math.fsum(terms))
                assert error <= 1e-15 * np.abs(terms).sum()


@reordered
def test_autoregression_is_as_precise_as_qr(rng):
    """Autoregression is precise for a smooth series, whose lags are nearly collinear."""
    x = np.cumsum(np.cumsum(rng.normal(size=500)))
    x = ((x - x.mean()) / x.std())[None]
    R = np.empty((1, 6, 6))
    fill_autoregression(x, np.array([500]), 4, R)
    columns = [np.ones(496), *(x[0, 4 - lag : 500 - lag] for lag in range(1, 5)), x[0, 4:]]
    exact = np.linalg.qr(np.transpose(columns))[1]
    exact *= np.sign(np.diag(exact))[:, None]
    np.testing.assert_allclose(R[0, :5], exact[:5], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(R[0].T @ R[0], exact.T @ exact, rtol=1e-13)


@reordered
def test_residuals_of_columns_are_precise(rng):
    n = 3001
    values = rng.normal(size=(3, n)) * 10.0 ** rng.integers(-4, 5, size=(3, n)) + 1e6
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=n)]))[0].T.copy()
    units, lengths = np.empty((3, n)), np.empty(3)
    assert fill_unit_residuals(values, basis, 1e-10, units, lengths) == -1
    exact, Q = values.astype(np.longdouble), basis.astype(np.longdouble)
    for _ in range(2):
        exact -= (exact @ Q.T) @ Q
    norms = np.sqrt((exact**2).sum(axis=1))
    np.testing.assert_allclose(lengths, norms.astype(float), rtol=1e-13)
    np.testing.assert_allclose(units, (exact / norms[:, None]).astype(float), atol=1e-14)
    values[1, 7] = np.inf
    assert fill_unit_residuals(values, basis, 1e-10, units, lengths) == 1


@given(st.integers(0, 10**6), st.integers(1, 90))
def test_factors_are_those_of_scipy(seed, n):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, n + 1))
    F = rng.normal(size=(n, rank))
    C = F @ F.T
    expected, pivots, expected_rank, _ = scipy.linalg.lapack.dpstrf(C.T, lower=1)
    found = C.copy()
    order, found_rank = pivoted_cholesky(found)
    assert found_rank == expected_rank == rank
    np.testing.assert_array_equal(order, pivots)
    np.testing.assert_array_equal(np.tril(found.T), np.tril(expected))
    L = np.tril(rng.normal(size=(n, n)))
    np.testing.assert_array_equal(lower_products(L), scipy.linalg.lapack.dlauum(L, lower=1)[0])
    v = rng.normal(size=n)
    np.testing.assert_array_equal(symmetric_product(C, v), scipy.linalg.blas.dsymv(1.0, C.T, v))
    assert is_positive_definite(C + np.eye(n))
    C[n // 2, n // 2] -= 1e-3 + C[n // 2, n // 2]
    assert not is_positive_definite(C)


@pytest.mark.parametrize(("n", "first", "last"), [(1, 0, 0), (2, 0, 1), (6, 2, 4), (200, 190, 199)])
@pytest.mark.parametrize("is_split", [False, True])
def test_tridiagonal_eigenpairs(n, first, last, is_split):
    """The results are those of SciPy, also if the matrix is of several blocks."""
    rng = np.random.default_rng(n)
    diagonal, off_diagonal = rng.standard_normal(n), rng.standard_normal(n - 1)
    if is_split:
        off_diagonal[::3] = 0.0
    values, vectors = tridiagonal_eigenpairs(diagonal, off_diagonal, first, last)
    expected = scipy.linalg.eigh_tridiagonal(
        diagonal, off_diagonal, select="i", select_range=(first, last)
    )
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(vectors, expected[1])

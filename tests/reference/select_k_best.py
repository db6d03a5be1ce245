"""SelectKBest by definition: sums of squares, contingency tables, all cuts and all pairs.

A constant column has no score and is never selected. Scores are ranked by a strength, larger is
better. Strengths that differ by at most `TIE` tie, and the first column wins. The strength of
`correlation`, `f` and `t` is the relevance, which determines them: for a perfectly correlated
column f and t are ratios of rounding errors.
"""

import itertools
import math
from collections import Counter

import numpy as np
from scipy import stats

from tests.reference import target

TIE = 1e-12
# The same for p-values, relative: they are tails, and may be tiny.


def answer(
    X, y, *, k=None, score="f", fdr=None, fdr_method="bh", per_class=False, n_bins=10,
    binning="frequency", n_outliers=0, target_type="auto", **ignored,
):  # fmt: skip
    """Return the selected columns, best first, and scores and p-values of all that vary."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    scores, strengths, p_values = {}, {}, {}
    for j, x in enumerate(X.T):
        if np.ptp(x) == 0:
            continue
        if score in ("correlation", "f", "t"):
            scores[j], strengths[j], p_values[j] = of_moments(x, y, target_type, score)
        elif score == "rank":
            scores[j], p_values[j] = rank_test(x, y, target_type)
            strengths[j] = abs(scores[j])
        elif score == "xi":
            scores[j], p_values[j] = xi_test(x, y)
            strengths[j] = scores[j]
        else:
            codes = target_codes(y, target_type, bins_of_target(len(x), n_bins), binning)
            if score == "mutual_info":
                cut = bins(x, bins_of_columns(codes, n_bins), binning)
                scores[j] = strengths[j] = mutual_info(cut, codes) - mean_mutual_info(cut, codes)
                p_values[j] = chance_of_mutual_info(cut, codes)
            elif score == "misclassification":
                scores[j] = misclassification(x, codes)
                strengths[j] = -scores[j]
            else:
                scores[j] = strengths[j] = margin(x, codes, n_outliers)
    order = best_first(strengths)
    if per_class:
        selected = markers(X, y, [*scores], k or (10 if fdr is None else "all"), fdr, fdr_method)
    elif fdr is None:
        selected = order if k == "all" else order[: k or 10]
    else:
        passed = discoveries(p_values, fdr, fdr_method)
        selected = [j for j in order if j in passed]
    return {
        "selected": selected,
        "scores": {j: float(scores[j]) for j in scores},
        "p_values": {j: float(p_values[j]) for j in p_values},
    }


def best_first(strengths):
    """Return columns by descending strength; a chain of ties is one group of equals."""
    order = sorted(strengths, key=lambda j: (-strengths[j], j))
    groups = []
    for j in order:
        if groups and strengths[groups[-1][-1]] - strengths[j] <= TIE:
            groups[-1].append(j)
        else:
            groups.append([j])
    return [j for group in groups for j in sorted(group)]


def discoveries(p_values, q, method):
    """Return columns whose p is at most the largest p that is at most its rank times q / m.

    For Benjamini-Yekutieli, q is first divided by 1 + 1/2 + ... + 1/m.
    """
    ascending = sorted(p_values.values())
    m = len(ascending)
    if method == "by":
        q = q / sum(1 / i for i in range(1, m + 1))
    passing = [p for rank, p in enumerate(ascending, 1) if p <= rank * q / m]
    return {j for j, p in p_values.items() if passing and p <= passing[-1]}


def mid_ranks(x):
    """Return each value's mid-rank: smaller values, plus half the equal ones and a half."""
    return np.array([sum(u < v for u in x) + (sum(u == v for u in x) + 1) / 2 for v in x])


def rank_test(x, y, kind):
    """Return Spearman's correlation, or for classes H = (n - 1) R² of ranks on the classes."""
    ranks, n = mid_ranks(x) - (len(x) + 1) / 2, len(x)
    if not is_class(y, kind):
        other = mid_ranks(np.ravel(y)) - (n + 1) / 2
        rho = ranks @ other / math.sqrt((ranks @ ranks) * (other @ other))
        return rho, probability_of_rank_correlation(x, np.ravel(y)) if n < 11 else math.nan
    between = sum((y == c).sum() * ranks[y == c].mean() ** 2 for c in np.unique(y))
    h = (n - 1) * between / (ranks @ ranks)
    return h, stats.chi2.sf(h, len(np.unique(y)) - 1)


def probability_of_rank_correlation(x, y):
    """Return the share of permutations whose sum of products is at least as far from the mean."""
    x, y = (np.rint(2 * mid_ranks(v) - len(v) - 1).astype(int) for v in (x, y))
    # How many ways lead to each remaining multiset of x and each sum of products so far.
    ways = {tuple(sorted(Counter(x.tolist()).items())): Counter({0: 1})}
    for v in y.tolist():
        following = {}
        for left, sums in ways.items():
            for u, count in left:
                rest = tuple((w, m - (w == u)) for w, m in left if m - (w == u))
                to = following.setdefault(rest, Counter())
                for total, number in sums.items():
                    to[total + u * v] += number * count
        ways = following
    (sums,) = ways.values()
    return sum(m for s, m in sums.items() if abs(s) >= abs(x @ y)) / sums.total()


def tails_of_rank_correlations(n):
    """Return {|ρ| (n³ - n) / 6: share of permutations at least as far from 0}, without ties."""
    size = n * n * (n - 1) // 2
    sums = np.zeros((1 << n, size))
    sums[0, 0] = 1.0
    for used in range((1 << n) - 1):
        row = used.bit_count()
        for j in range(n):
            if not used >> j & 1:
                shift = row * j
                sums[used | 1 << j, shift:] += sums[used, : size - shift]
    found = Counter()
    for s, number in enumerate(sums[-1].tolist()):
        # ρ = (12 s - 3 n (n - 1)²) / (n³ - n).
        found[abs(4 * s - n * (n - 1) ** 2) // 2] += number
    keys = sorted(found, reverse=True)
    tails = itertools.accumulate(found[key] for key in keys)
    return {key: tail / found.total() for key, tail in zip(keys, tails, strict=True)}


def one_against_rest(x, of_class):
    """Return z and the AUC of a class's values against all others, by counting pairs."""
    inside, outside = x[of_class], x[~of_class]
    m, k = len(inside), len(outside)
    if not m or not k:
        return 0.0, math.nan
    wins = sum((u > v) + (u == v) / 2 for u in inside for v in outside)
    n = m + k
    ties = sum(t**3 - t for t in Counter(x.tolist()).values()) / (n * (n - 1))
    return (wins - m * k / 2) / math.sqrt(m * k / 12 * (n + 1 - ties)), wins / (m * k)


def markers(X, y, varying, k, fdr, method):
    """Return the best variable of each class, then the second, and so on, by descending |z|."""
    of_class = [marker_order(X, y, c, varying, k, fdr, method) for c in np.unique(y)]
    found = []
    for row in itertools.zip_longest(*of_class):
        z = {}
        for c, j in zip(np.unique(y), row, strict=True):
            if j is not None and j not in found:
                z[j] = max(z.get(j, 0.0), abs(one_against_rest(X[:, j], y == c)[0]))
        found += best_first(z)
    return found


def marker_order(X, y, c, varying, k, fdr, method):
    """Return the best variables of a class, by |z|."""
    z = {j: abs(one_against_rest(X[:, j], y == c)[0]) for j in varying}
    order = best_first(z)
    if fdr is not None:
        passed = discoveries({j: 2 * stats.norm.sf(z[j]) for j in z}, fdr, method)
        order = [j for j in order if j in passed]
    return order if k == "all" else order[:k]


def xi_test(x, y):
    """Return Chatterjee's correlation, averaged over the orders of tied x, and its p-value."""
    y = np.unique(np.ravel(y), return_inverse=True)[1]
    n = len(y)
    r = [sum(y <= v) for v in y]
    above = [sum(y >= v) for v in y]
    weights, distances = tie_weights(x), np.abs(np.subtract.outer(r, r)).astype(float)
    total = (weights * distances).sum() / 2
    found = 1 - n * total / (2 * sum(v * (n - v) for v in above))
    asymptotic = deviation_of_xi(r, above) / math.sqrt(n)
    sizes = np.bincount(y)
    if len(sizes) == 2 and (len(set(x)) == n or min(sizes) == 1):
        return found, probability_of_runs(math.ceil(total / sizes[1] - 1e-6), *sizes.tolist())
    if n < 4 or (len(set(x)) == n and len(sizes) == n):
        return found, stats.norm.sf(found / asymptotic)
    variance = permutation_variance(weights, distances)
    # If every permutation has the same score, rounding errors are left.
    variance *= variance > 1e-14 * (weights**2).sum() * (distances**2).sum()
    distinct = permutation_variance(tie_weights(np.arange(n)), distances)
    of_squares = 2 * (parts(distances)[1] ** 2).sum() / (n * (n - 3))
    cubes = max(np.trace(weights @ weights @ weights) - 8, 0)
    deviation = 2 * sum(v * (n - v) for v in above) / n
    if len(sizes) == n:
        deviation = math.sqrt(distinct) / asymptotic
    else:
        left = distances.mean(axis=1)[:, None] + distances.mean(axis=0) - distances
        left -= distances.mean()
        cubes += (left**3).mean() / (left**2).mean() ** 1.5 * (weights**3).sum() / 2
    skewness = 8 * cubes / (8 * variance / of_squares) ** 1.5 if variance > 0 else 0.0
    z = found * deviation / math.sqrt(variance) if variance > 0 else 0.0
    if skewness <= 0.01:
        return found, stats.norm.sf(z)
    return found, stats.pearson3.sf(z, skewness)


def probability_of_runs(changes, a, b):
    """Return the probability of at most this many changes between classes of sizes a and b."""
    ways = 0
    for runs in range(2, changes + 2):
        less, more = runs // 2, runs - runs // 2
        for one, other in ((less, more), (more, less)):
            ways += math.comb(a - 1, one - 1) * math.comb(b - 1, other - 1)
    return ways / math.comb(a + b, a)


def tie_weights(x):
    """Return how often two values are neighbours on average, over all orders of tied values."""
    groups = [np.flatnonzero(x == v) for v in np.unique(x)]
    weights = np.zeros((len(x), len(x)))
    for group in groups:
        weights[np.ix_(group, group)] = 2 / len(group)
    for one, other in itertools.pairwise(groups):
        weights[np.ix_(one, other)] = weights[np.ix_(other, one)] = 1 / (len(one) * len(other))
    np.fill_diagonal(weights, 0.0)
    return weights


def parts(matrix):
    """Return row sums about their mean, and the part of a hollow matrix whose row sums are 0."""
    n, rows = len(matrix), matrix.sum(axis=1)
    left = matrix - (rows[:, None] + rows) / (n - 2) + rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(left, 0.0)
    return rows - rows.mean(), left


def permutation_variance(one, other):
    """Return the variance of half the sum of products when one matrix is permuted."""
    n = len(one)
    (a, A), (b, B) = parts(one), parts(other)
    of_rest = 2 * (A**2).sum() * (B**2).sum() / (n * (n - 3))
    return (of_rest + 4 * (a @ a) * (b @ b) / ((n - 2) ** 2 * (n - 1))) / 4


def deviation_of_xi(r, above):
    """Return τ of Chatterjee (2021) from its sums; √(2/5) if no target values are tied."""
    n, u = len(r), sorted(r)
    if len(set(r)) == n:
        return math.sqrt(2 / 5)
    v = np.cumsum(u)
    a = sum((2 * n - 2 * i + 1) * u[i - 1] ** 2 for i in range(1, n + 1)) / n**4
    b = sum((v[i - 1] + (n - i) * u[i - 1]) ** 2 for i in range(1, n + 1)) / n**5
    c = sum((2 * n - 2 * i + 1) * u[i - 1] for i in range(1, n + 1)) / n**3
    d = sum(w * (n - w) for w in above) / n**3
    return math.sqrt(a - 2 * b + c**2) / d


def is_class(y, kind):
    """Return whether the target is labels: strings, booleans, categories, or type "class"."""
    return kind == "class" or (kind == "auto" and y.dtype.kind not in "iuf")


def of_moments(x, y, kind, score):
    """Return score, relevance and p-value of a column."""
    labels = is_class(y, kind)
    Y = target.indicators(y) if labels else np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    U = target.basis(Y)
    n, r = U.shape
    relevance = min(target.relevance(x, U), 1.0)
    left = n - 1 - r
    if left == 0:  # the target explains any column: no evidence
        return {"correlation": relevance, "f": 0.0, "t": 0.0}[score], relevance, 1.0
    f = anova_f(x, y) if labels else regression_f(x, Y, r)
    p = stats.f.sf(f if labels else regression_f(x, target.tested(Y), r), r, left)
    if score == "correlation":
        return relevance, relevance, p
    if score == "f":
        return f, relevance, p
    if labels or len(np.unique(y)) == 2:
        return two_sample_t(x, y), relevance, p
    return slope_t(x, Y), relevance, p


def divided(a, b):
    return a / b if b > 0 else math.inf


def anova_f(x, labels):
    """Return the ANOVA F statistic: variance between classes over variance within classes."""
    x = target.unit(target.centred(x))
    parts = [x[labels == label] for label in np.unique(labels)]
    between = sum(len(part) * part.mean() ** 2 for part in parts)
    within = sum(((part - part.mean()) ** 2).sum() for part in parts)
    return divided(between / (len(parts) - 1), within / (len(x) - len(parts)))


def regression_f(x, Y, r):
    """Return the F statistic of the regression of the column on the target columns."""
    x = target.unit(target.centred(x))
    Y = target.columns(np.reshape(Y, (len(Y), -1)))
    Y = np.column_stack([target.unit(column) for column in Y.T])
    fit = Y @ np.linalg.lstsq(Y, x, rcond=1e-7)[0]
    explained, rest = (fit**2).sum(), ((x - fit) ** 2).sum()
    return divided(explained / r, rest / (len(x) - 1 - r))


def two_sample_t(x, labels):
    """Return the two-sample t statistic with pooled variance."""
    x = target.unit(target.centred(x))
    a, b = (x[labels == label] for label in np.unique(labels))
    rest = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
    pooled = np.sqrt(rest / (len(x) - 2))
    return divided(abs(a.mean() - b.mean()), pooled * np.sqrt(1 / len(a) + 1 / len(b)))


def slope_t(x, Y):
    """Return the t statistic of the slope of the column on one numeric target."""
    x, (y,) = target.unit(target.centred(x)), target.columns(Y).T
    y = target.unit(y)
    slope = x @ y
    rest = ((x - slope * y) ** 2).sum()
    return divided(abs(slope), np.sqrt(rest / (len(x) - 2)))


def bins(x, n_bins, binning):
    """Return the bin of every value: by its mid-rank, or by its position in the range."""
    n = len(x)
    found = []
    for v in x:
        if np.ptp(x) == 0:
            found.append(0)
        elif binning == "width":
            index = math.floor(n_bins * (v - x.min()) / (x.max() - x.min()))
            found.append(min(index, n_bins - 1))
        else:
            smaller, equal = sum(u < v for u in x), sum(u == v for u in x)
            found.append(int(n_bins * (2 * smaller + equal)) // (2 * n))
    return found


def target_codes(y, kind, n_bins, binning):
    """Return the index of every value's class, or of its bin among the bins that are not empty."""
    if is_class(y, kind):
        return np.unique(y, return_inverse=True)[1].reshape(-1).tolist()
    (y,) = np.asarray(y, dtype=np.float64).reshape(len(y), -1).T
    cut = bins(y, n_bins, binning)
    return [sorted(set(cut)).index(b) for b in cut]


def bins_of_target(n, n_bins):
    """Return a numeric target's number of bins: 8 samples per cell of a square table, or 2."""
    return min(max(int(math.sqrt(n // 8)), 2), n_bins)


def bins_of_columns(codes, n_bins):
    """Return columns' number of bins: 8 samples per cell of a class of mean size, at least 3."""
    return min(max(int(stats.hmean([*Counter(codes).values()])) // 8, 3), n_bins)


def mutual_info(a, b):
    """Return Σ p(a, b) log p(a, b) / p(a) p(b)."""
    n = len(a)
    both, of_a, of_b = Counter(zip(a, b, strict=True)), Counter(a), Counter(b)
    info = sum(m / n * math.log(m * n / (of_a[s] * of_b[t])) for (s, t), m in both.items())
    return max(info, 0.0)


def mean_mutual_info(a, b):
    """Return the mean over all orders of b: the count of a cell is hypergeometric."""
    n = len(a)
    mean = 0.0
    for s in Counter(a).values():
        for t in Counter(b).values():
            k = np.arange(1, min(s, t) + 1)
            mean += stats.hypergeom.pmf(k, n, s, t) @ (k / n * np.log(k * n / (s * t)))
    return mean


def degrees_of_freedom(a, b):
    """Return the degrees of freedom of the table of a and b."""
    return (len(set(a)) - 1) * (len(set(b)) - 1)


def chance_of_mutual_info(a, b):
    """Return the p-value: exact for a 2 × 2 table, otherwise from a corrected χ²."""
    n, dof = len(a), degrees_of_freedom(a, b)
    if dof == 0:
        return 1.0
    if dof == 1:
        (s, t) = (min(Counter(codes).values()) for codes in (a, b))
        info = mutual_info(a, b)
        of_count = [mutual_info(*two_by_two(n, s, t, k)) for k in range(min(s, t) + 1)]
        as_much = [k for k, found in enumerate(of_count) if found >= info - TIE]
        return stats.hypergeom.pmf(as_much, n, s, t).sum()
    beyond = max(0.0, 2 * n * mean_mutual_info(a, b) / dof - 1)
    return stats.chi2.sf(2 * n * mutual_info(a, b) / (1 + 1.5 * beyond), dof)


def two_by_two(n, s, t, k):
    """Return two binary codes of n samples with s and t ones, k of them in common."""
    a = [1] * s + [0] * (n - s)
    b = [1] * k + [0] * (s - k) + [1] * (t - k) + [0] * (n - s - t + k)
    return a, b


def misclassification(x, codes):
    """Return the lowest error of any cut with the majority class on each side."""
    errors = []
    for cut in sorted(set(x)):  # no value is below the first cut
        left = [c for v, c in zip(x, codes, strict=True) if v < cut]
        right = [c for v, c in zip(x, codes, strict=True) if v >= cut]
        correct = sum(max(Counter(side).values(), default=0) for side in (left, right))
        errors.append((len(x) - correct) / len(x))
    return min(errors)


def margin(x, codes, n_outliers):
    """Return the standardised distance of the closest pair of classes after n_outliers pairs."""
    pairs = itertools.combinations(zip(x, codes, strict=True), 2)
    distances = sorted(abs(u - v) for (u, c), (v, d) in pairs if c != d)
    if not distances or np.ptp(x) == 0:
        return 0.0
    x = target.centred(x)
    deviation = np.abs(x).max() * np.sqrt(np.mean((x / np.abs(x).max()) ** 2))
    return distances[min(n_outliers, len(distances) - 1)] / deviation

"""PCA by the singular value decomposition of all columns, and the rules for how many to keep."""

import numpy as np

from tests.reference import linear


def number(d, asked):
    """Return how many components to keep of those with eigenvalues d, in descending order."""
    if isinstance(asked, str):
        return {"elbow": elbow, "profile": profile}[asked](d)
    return first_share(d, asked) if isinstance(asked, float) else asked


def first_share(d, share):
    """Return the smallest number whose share of the variance reaches this."""
    reached = np.flatnonzero(np.cumsum(d) / np.sum(d) >= share - linear.TIE)
    return int(reached[0]) + 1 if len(reached) else len(d)


def elbow(d):
    """Return the number before the elbow, the index farthest from the chord between the ends."""
    if len(d) < 3:
        return len(d)
    k = np.arange(len(d))
    ends = np.array([len(d) - 1.0, d[-1] - d[0]])
    away = np.abs(ends[0] * (d - d[0]) - ends[1] * k) / np.linalg.norm(ends)
    return max(1, int(np.argmax(away)))


def profile(d):
    """Return the split of the eigenvalues into two normal groups with one variance.

    Zhu and Ghodsi (2006): it maximises the profile log-likelihood of the end of the first group.
    """
    best, found = -np.inf, len(d)
    if len(d) < 3:
        return found
    for q in range(1, len(d)):
        groups = (d[:q], d[q:])
        squares = sum(np.sum((group - group.mean()) ** 2) for group in groups)
        variance = squares / (len(d) - 2.0)
        likelihood = sum(
            np.sum(-0.5 * np.log(2.0 * np.pi * variance) - (g - g.mean()) ** 2 / (2.0 * variance))
            for g in groups
        )
        if likelihood > best:
            best, found = likelihood, q
    return found


def parallel(d, noise):
    """Return the number of leading eigenvalues that exceed those of noise columns.

    Horn (1965): the rows of `noise` are eigenvalues of several such sets, whose mean is used.
    """
    above = d > np.mean(noise, axis=0)[: len(d)]
    return int(np.argmin(np.append(above, False)))


def answer(X, y, *, n_components=10, scale=False, **_):
    """Return the results of a model that has learnt the columns of X."""
    assert y is None
    of = linear.columns(X, scale=scale)
    V, d = linear.principal(of.W)
    q = number(d, n_components)
    found = linear.shown("pca", of, V[:, :q])
    return found | {
        "n_components_": min(q, len(d)),
        "explained_variance_": d[:q] / (len(of.W) - 1.0),
        "explained_variance_ratio_": d[:q] / np.sum(d),
        "error": np.sum(d[q:]),
    }

"""All principal components, ranked by their association with the target.

For one target the score is q²/λ, where q is the covariance of component and target and λ the
variance of the component: the squared correlation up to a constant factor. For several targets it
is the squared multiple correlation.
"""

from tests.reference import linear
from tests.reference import target as space


def ranked(squares):
    """Return indices in descending order of squares; ties in order of index."""
    left, order = list(range(len(squares))), []
    while left:
        highest = max(squares[k] for k in left)
        order.append(next(k for k in left if squares[k] >= highest - linear.TIE))
        left.remove(order[-1])
    return order


def answer(X, y, *, n_components=10, scale=False, rank_by="target", target_type="auto", **_):
    """Return the results of a model that has learnt the columns of X."""
    U = space.basis(space.numbers(y, target_type))
    of = linear.columns(X, scale=scale)
    V, _ = linear.principal(of.W)
    squares = linear.correlations(of.W @ V, U) ** 2
    order = ranked(squares if rank_by == "target" else -squares)
    return linear.shown("rankedpca", of, V[:, order[:n_components]], U)

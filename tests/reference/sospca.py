"""SOSPCA by definition, with n-vectors and the full p×q matrix B.

The survivor of a rotation takes the lower index of the pair, and the last component the other. The
order of the pair is not that of the indices: a is the least relevant component, b the next. Numbers
closer than `TIE` tie: the component that arrived first goes first, and a column is rejected unless
it is more relevant than the weakest by more than `TIE`. The survivor has the arrival of the
component whose position in the pair it takes.
"""

import numpy as np

from tests.reference import target as space

TIE = 1e-12
VANISHED = 1e-14
UNCORRELATED = 1e-14


class SOSPCA:
    def __init__(self, q, y, p, *, rotation="jacobi", signed=False):
        self.q, self.rotation, self.signed = q, rotation, signed
        self.y = np.asarray(y)
        self.U = space.basis(y)
        self.Z = []  # q centred score vectors
        self.B = np.zeros((p, 0))
        self.relevances = []
        self.came = []  # the order of arrival, by index
        self.seen = 0

    def learn(self, x):
        """Learn one column; return whether it becomes a component."""
        i = self.seen
        self.seen += 1
        x = space.centred(x)
        if not x.any():
            return False
        e = np.zeros((len(self.B), 1))
        e[i] = 1.0
        relevance = self.relevance(x)
        if len(self.Z) < self.q:  # 1. fewer than q: x becomes a component
            self.Z.append(x)
            self.B = np.hstack([self.B, e])
            self.relevances.append(relevance)
            self.came.append(len(self.came))
            return True
        if not relevance > min(self.relevances) + TIE:  # 2. not strictly above the least relevant
            return False
        # 3. x is added; the two least relevant are rotated and one of them is dropped
        self.Z, self.relevances = [*self.Z, x], [*self.relevances, relevance]
        self.B = np.hstack([self.B, e])
        self.came = [*self.came, max(self.came) + 1]
        self.rotate_and_drop()
        return True

    def rotate_and_drop(self):
        """Rotate the two least relevant components and drop one of them."""
        Z, B, R = self.Z, self.B, self.relevances
        first, second = two_least(R, self.came)
        low, high = sorted((first, second))
        # With Jacobi, a is the direction of largest variance in any order; the order sets only the
        # signs, and follows the indices if relevance has no sign.
        by_index = self.rotation == "jacobi" and not self.signed
        a, b = (low, high) if by_index else (first, second)
        za, zb, cos, sin = rotate(Z[a], Z[b], self.rotation)
        ba, bb = cos * B[:, a] + sin * B[:, b], -sin * B[:, a] + cos * B[:, b]
        ra, rb = self.rotated_relevances(za, zb, (Z[a], Z[b]))
        a_stays = ra > rb + TIE
        came = self.came[first if a_stays else second]
        Z[low], B[:, low], R[low] = (za, ba, ra) if a_stays else (zb, bb, rb)
        self.came[low] = came
        last = len(Z) - 1
        if high != last:  # the last component takes the free index
            Z[high], B[:, high], R[high] = Z[last], B[:, last], R[last]
            self.came[high] = self.came[last]
        self.Z, self.B, self.relevances = Z[:last], B[:, :last], R[:last]
        self.came = self.came[:last]

    def merge(self, other):
        """Append the components of the other, then drop components until q remain."""
        self.Z, self.relevances = [*self.Z, *other.Z], [*self.relevances, *other.relevances]
        self.B = np.hstack([self.B, other.B])
        self.came = [*self.came, *(max(self.came) + 1 + came for came in other.came)]
        while len(self.Z) > self.q:
            self.rotate_and_drop()

    def relevance(self, x):
        if self.signed:
            return space.correlation(x, self.y)
        return space.relevance(x, self.U)

    def rotated_relevances(self, za, zb, before):
        scale = max(np.abs(za).max(), np.abs(zb).max())
        sizes = [((z / scale) ** 2).sum() for z in (za, zb)]
        least = min(((z / scale) ** 2).sum() for z in before)
        return [
            self.relevance(z) if size > VANISHED * least else -np.inf
            for z, size in zip((za, zb), sizes, strict=True)
        ]

    @property
    def embedding(self):
        return np.column_stack(self.Z)

    @property
    def support(self):
        return set(np.flatnonzero(self.B.any(axis=1)))


def two_least(relevances, came):
    """Return the indices of the two least relevant, the lesser first; ties by arrival."""
    left = sorted(range(len(relevances)), key=came.__getitem__)
    found = []
    for _ in range(2):
        least = min(relevances[k] for k in left)
        found.append(next(k for k in left if relevances[k] <= least + TIE))
        left.remove(found[-1])
    return found


def rotate(za, zb, rotation):
    """Return the rotated pair, and the cosine and sine of the angle."""
    scale = max(np.abs(za).max(), np.abs(zb).max())
    u, v = za / scale, zb / scale
    s_aa, s_bb, s_ab = u @ u, v @ v, u @ v
    size = np.sqrt(s_aa) * np.sqrt(s_bb)
    if abs(s_ab) <= UNCORRELATED * size:  # the limit of the angle: none, or a quarter turn
        stay = s_aa >= s_bb or rotation == "paper"
        cos, sin = (1.0, 0.0) if stay else (0.0, 1.0)
    else:
        jacobi = np.arctan2(2 * s_ab, s_aa - s_bb)
        theta = 0.5 * (jacobi if rotation == "jacobi" else np.arctan(2 * s_ab / size))
        cos, sin = np.cos(theta), np.sin(theta)
    return cos * za + sin * zb, -sin * za + cos * zb, cos, sin


def answer(X, y, *, n_components=10, rotation="jacobi", signed=False, target_type="auto", **_):
    """Return the attributes of a model that has learnt the columns of X."""
    y = space.numbers(y, target_type)
    model = SOSPCA(n_components, y, X.shape[1], rotation=rotation, signed=signed)
    for x in X.T:
        model.learn(x)
    names = [f"sospca{k}" for k in range(len(model.Z))]
    return {
        "relevance": dict(zip(names, model.relevances, strict=True)),
        "loadings": {
            j: {name: b for name, b in zip(names, row, strict=True) if b}
            for j, row in enumerate(model.B)
            if row.any()
        },
        "embedding": np.column_stack([np.zeros((len(X), 0)), *model.Z]),
    }

"""SOSPCA with n-vectors, step by step, keeping the whole p×q matrix B.

Slots: the survivor of a rotation stands in slot a, a new column takes the slot that became free.
Numbers closer than `TIE` are equal: the least relevant is then the lowest slot, and a column that
is not more relevant than the weakest by more than `TIE` is rejected.
"""

import numpy as np

from tests.reference import target

TIE = 1e-12
VANISHED = 1e-14
UNCORRELATED = 1e-14


class SOSPCA:
    def __init__(self, q, y, p, *, rotation="jacobi", signed=False):
        self.q, self.rotation, self.signed = q, rotation, signed
        self.y = np.asarray(y)
        self.U = target.basis(y)
        self.Z = []  # q centred score vectors
        self.B = np.zeros((p, 0))
        self.relevances = []
        self.seen = 0

    def learn(self, x):
        """Take one column; return whether it entered the components."""
        i = self.seen
        self.seen += 1
        x = target.centred(x)
        if not x.any():
            return False
        e = np.zeros((len(self.B), 1))
        e[i] = 1.0
        relevance = self.relevance(x)
        if len(self.Z) < self.q:  # 1. fewer than q: x becomes one
            self.Z.append(x)
            self.B = np.hstack([self.B, e])
            self.relevances.append(relevance)
            return True
        if not relevance > min(self.relevances) + TIE:  # 2. not strictly above the weakest
            return False
        # 3. it joins; the two least relevant are rotated and one of them dropped
        Z = [*self.Z, x]
        B = np.hstack([self.B, e])
        R = [*self.relevances, relevance]
        a, b = two_least(R)
        za, zb, cos, sin = rotate(Z[a], Z[b], self.rotation)
        ba, bb = cos * B[:, a] + sin * B[:, b], -sin * B[:, a] + cos * B[:, b]
        ra, rb = self.rotated_relevances(za, zb, (Z[a], Z[b]))
        Z[a], B[:, a], R[a] = (za, ba, ra) if ra > rb + TIE else (zb, bb, rb)
        if b < self.q:  # the new column takes the free slot
            Z[b], B[:, b], R[b] = Z[self.q], B[:, self.q], R[self.q]
        self.Z, self.B, self.relevances = Z[: self.q], B[:, : self.q], R[: self.q]
        return True

    def relevance(self, x):
        if self.signed:
            return target.correlation(x, self.y)
        return target.relevance(x, self.U)

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


def two_least(relevances):
    """Return the slots a < b of the two least relevant; equal ones in the order of their slots."""
    left = list(range(len(relevances)))
    found = []
    for _ in range(2):
        least = min(relevances[k] for k in left)
        found.append(next(k for k in left if relevances[k] <= least + TIE))
        left.remove(found[-1])
    return sorted(found)


def rotate(za, zb, rotation):
    """Return the rotated pair, and the cosine and sine of the angle."""
    scale = max(np.abs(za).max(), np.abs(zb).max())
    u, v = za / scale, zb / scale
    s_aa, s_bb, s_ab = u @ u, v @ v, u @ v
    size = np.sqrt(s_aa) * np.sqrt(s_bb)
    if abs(s_ab) <= UNCORRELATED * size:  # the limit of the angle: nothing, or a quarter turn
        stay = s_aa >= s_bb or rotation == "paper"
        cos, sin = (1.0, 0.0) if stay else (0.0, np.copysign(1.0, s_ab))
    else:
        jacobi = np.arctan2(2 * s_ab, s_aa - s_bb)
        theta = 0.5 * (jacobi if rotation == "jacobi" else np.arctan(2 * s_ab / size))
        cos, sin = np.cos(theta), np.sin(theta)
    return cos * za + sin * zb, -sin * za + cos * zb, cos, sin

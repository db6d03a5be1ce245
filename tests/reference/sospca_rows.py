"""SOSPCA on rows by definition: all rows are stored, and every decision is computed from all.

A variable is tracked while it has loadings or is a candidate. A tracked variable has a value in
every row: 0 if the row lacks it; if it is not observed, its mean at the last refresh, or its first
value before that. Rows after a refresh add to a sum of products their products about their own
mean, and the product of their mean's difference from that of all rows before. A variable that was
new when it became a candidate was 0 before, so its sums since then are those over all rows. Sums
of other candidates represent all rows that observed them when they join. If rows fade, a variable
with loadings joins with the remaining part of its direction, if that is at least half of it. A
candidate that no row has observed since it became one does not join.

While there are no components, candidates whose products cover all rows that observed them also
join after every `warm_up` rows, at least 2, if their relevance is positive. The next refresh drops
these components, and computes others from more rows.
"""

import numpy as np

from tests.reference.rows import THEIRS, Rows, arrivals, observed
from tests.reference.sospca import TIE, UNCORRELATED, VANISHED

MOSTLY = 0.5
DUST = 1e-18


class SOSPCAOnRows:
    """Components and candidates, recomputed after every `grace_period` rows.

    Attributes
    ----------
    rows
        All rows.
    B, came
        Loadings of each component, name -> weight, and its position in the order of arrival.
    since
        Candidate -> number of rows when it became one.
    unknown
        Candidate -> number of these rows for which its products are unknown; 0 if it was new.
    values
        Tracked variable -> its value in every row since the last refresh.
    level
        Tracked variable -> its mean at the last refresh, 0 if it is newer.
    """

    def __init__(self, q, *, grace_period=100, warm_up=20, rotation="jacobi", signed=False, **rows):
        self.q, self.grace_period, self.first = q, grace_period, max(2, warm_up)
        self.rotation, self.signed = rotation, signed
        self.rows = Rows(**rows)
        self.order = {}  # name -> position in the order of arrival
        self.B, self.came = [], []
        self.provisional = False
        self.since, self.unknown = {}, {}
        self.values, self.fill, self.level = {}, {}, {}
        # The number of rows at the last refresh, and the sums of products then: of components, of
        # each candidate with them, and of pairs of candidates.
        self.refreshed = 0
        self.zz, self.zx, self.xx = np.zeros((0, 0)), {}, {}
        self._moments = {}

    @property
    def most(self):
        """Return the maximum number of candidates."""
        return max(32, 2 * self.q)

    @property
    def support(self):
        """Return the names with loadings, in order of arrival."""
        loaded = {name for loading in self.B for name in loading}
        return [name for name in self.order if name in loaded]

    @property
    def relevance(self):
        """Return the relevance of every component."""
        return self.relevances(self.settled()[0])

    def learn_one(self, x, y):
        t = len(self.rows.xs)
        self.rows.learn_one(x, y)
        x = self.rows.xs[-1]
        self._moments = {}
        for name in arrivals([x]):
            if name in self.order:
                continue
            self.order[name] = len(self.order)
            if len(self.since) < self.most:
                self.since[name], self.unknown[name] = t, 0
                self.values[name] = [0.0] * (t - self.refreshed)
                self.level[name] = 0.0
                self.fill[name] = float(x[name]) if observed(x[name]) else 0.0
        for name, values in self.values.items():
            value = x.get(name, 0.0)
            values.append(float(value) if observed(value) else self.fill[name])
        if (t + 1) % self.grace_period == 0:
            self.refresh()
        elif not self.B and (t + 1) % self.first == 0:
            self.start()

    # Moments of all rows

    def moments(self, name):
        """Return a variable's mean, m2 and cxy."""
        if name not in self._moments:
            self._moments[name] = self.rows.moments(name)
        return self._moments[name]

    def explained(self, *loadings):
        """Return the products between components that the covariates explain."""
        given = []
        for loading in loadings:
            found = 0.0
            for name, b in loading.items():
                if ("given", name) not in self._moments:
                    self._moments["given", name] = self.rows.given(name)
                found = found + b * self._moments["given", name]
            given.append(found)
        return np.array(given) @ np.array(given).T

    def relevance_of(self, m2, cxy):
        """Return the relevance of a variable with these moments; that of a constant is -inf."""
        if "cyy" not in self._moments:
            self._moments["cyy"] = self.rows.cyy()
        cyy = self._moments["cyy"]
        names = [t for t in cxy if cyy[t, t] > 0.0]
        if m2 == 0.0:
            return -np.inf
        if not names:
            return 0.0
        size = np.array([np.sqrt(cyy[t, t]) for t in names])
        r = np.array([cxy[t] for t in names]) / np.sqrt(m2) / size
        if self.signed:
            return max(-1.0, min(1.0, r[0]))
        gram = np.array([[cyy[s, t] for t in names] for s in names]) / np.outer(size, size)
        values, vectors = np.linalg.eigh(gram)
        nonzero = values > 1e-10 * values[-1]
        return min(1.0, np.linalg.norm((r @ vectors)[nonzero] / np.sqrt(values[nonzero])))

    def relevance_with(self, m2, loading):
        """Return the relevance of a component with this sum of squares and these loadings."""
        if self.rows.covariates:
            left = m2 - self.explained(loading)[0, 0]
            m2 = left if left > THEIRS * m2 else 0.0
        cxy = {}
        for name, b in loading.items():
            for t, c in self.moments(name)[2].items():
                cxy[t] = cxy.get(t, 0.0) + b * c
        return self.relevance_of(m2, cxy)

    def relevances(self, zz):
        return [self.relevance_with(zz[k, k], loading) for k, loading in enumerate(self.B)]

    def added(self):
        """Return the products added since the last refresh, of components and then candidates."""
        names = [*self.support, *(name for name in self.since if name not in self.support)]
        index_of = {name: i for i, name in enumerate(names)}
        T = np.zeros((len(names), len(self.B) + len(self.since)))
        for k, loading in enumerate(self.B):
            for name, b in loading.items():
                T[index_of[name], k] = b
        for k, name in enumerate(self.since, len(self.B)):
            T[index_of[name], k] = 1.0
        w = np.array(self.rows.weights, float)
        w, before = w[self.refreshed :], w[: self.refreshed].sum()
        V = np.array([np.array(self.values[name]) - self.level[name] for name in names]).T @ T
        mean = w @ V / w.sum()
        V = V - mean
        between = before * w.sum() / (before + w.sum()) * np.outer(mean, mean)
        return (w * V.T) @ V + between

    def settled(self):
        """Return the current sums of products, in the form of `zz`, `zx` and `xx`."""
        n, names, q = len(self.rows.xs), list(self.since), len(self.B)
        if n == self.refreshed or not (names or q):
            return self.zz, self.zx, self.xx
        keep = float(self.rows.retention) ** (n - self.refreshed)
        added = self.added()
        zx, xx = {}, {}
        for i, a in enumerate(names):
            zx[a] = keep * self.zx.get(a, np.zeros(q)) + added[q + i, :q]
            for j, b in enumerate(names):
                xx[a, b] = keep * self.xx.get((a, b), 0.0) + added[q + i, q + j]
        return keep * self.zz + added[:q, :q], zx, xx

    def age(self, name):
        """Return the weight of the rows in a candidate's sums of products."""
        return float(np.sum(self.rows.weights[self.unknown[name] :]))

    def seen(self, name):
        """Return the weight of every row, 0 where the variable was not observed."""
        return [
            float(w) if observed(x.get(name, 0.0)) else 0.0
            for x, w in zip(self.rows.xs, self.rows.weights, strict=True)
        ]

    # The refresh

    def start(self):
        """Add the candidates whose products are exact; all candidates remain."""
        self.zz, self.zx, self.xx = self.settled()
        self.refreshed = len(self.rows.xs)
        exact = [name for name in self.since if not sum(self.seen(name)[: self.unknown[name]])]
        found = {name: self.relevance_with(self.moments(name)[1], {name: 1.0}) for name in exact}
        relevances = []
        for name in self.ranked(exact, found):
            if found[name] > max(TIE, self.threshold(relevances)):
                self.attempt(name, relevances)
        self.provisional = bool(self.B)
        self.centre()

    def refresh(self):
        self.zz, self.zx, self.xx = self.settled()
        grown = [t + self.grace_period <= len(self.rows.xs) for t in self.since.values()]
        if self.provisional and any(grown):
            self.B, self.came, self.provisional = [], [], False
            self.zz, self.zx = np.zeros((0, 0)), {name: np.zeros(0) for name in self.since}
        self.refreshed = n = len(self.rows.xs)
        found = {
            name: self.relevance_with(self.moments(name)[1], {name: 1.0}) for name in self.order
        }
        relevances = self.relevances(self.zz)
        fit = [name for name, start in self.since.items() if start + self.grace_period <= n]
        for name in self.ranked(fit, found):
            if self.free(name) and found[name] > self.threshold(relevances):
                self.attempt(name, relevances)
        if self.rows.retention < 1:
            self.drop_dust()
        self.choose(found, self.threshold(relevances))
        self.centre()

    def centre(self):
        """Centre later values at the current means, which also replace NaN."""
        self.fill = {name: self.moments(name)[0] for name in self.values}
        self.level = dict(self.fill)
        self.values = {name: [] for name in self.values}

    def within(self, name):
        """Return the part of a variable's direction that is in the span of the components."""
        return sum(loading.get(name, 0.0) ** 2 for loading in self.B)

    def free(self, name):
        """Return whether a variable may join; one with loadings may only if rows fade."""
        return self.within(name) <= (MOSTLY if self.rows.retention < 1 else 0.0)

    def drop_dust(self):
        """Drop the loadings of variables with negligible length and variance."""
        for name in self.support:
            m2 = self.moments(name)[1]
            parts = [loading.get(name, 0.0) ** 2 for loading in self.B]
            if sum(parts) <= DUST and all(
                part * m2 <= DUST * self.zz[k, k] for k, part in enumerate(parts)
            ):
                for loading in self.B:
                    loading.pop(name, None)

    def ranked(self, names, found):
        """Sort by descending relevance; ties are in order of arrival."""
        left, ranked = sorted(names, key=self.order.__getitem__), []
        while left:
            most = max(found[name] for name in left)
            ranked.append(next(name for name in left if found[name] >= most - TIE))
            left.remove(ranked[-1])
        return ranked

    def threshold(self, relevances):
        """Return the relevance that a variable must exceed to join; below -1 if there is room."""
        return min(relevances) + TIE if len(self.B) == self.q else -1.0 - TIE

    def attempt(self, name, relevances):
        """Append a candidate as the last component if its remaining part is relevant enough."""
        m2, age, q = self.moments(name)[1], self.age(name), len(self.B)
        weights = self.seen(name)
        known = sum(weights[self.unknown[name] :])
        if not known:
            return
        row = self.zx[name] * (sum(weights) / known)
        largest = np.sqrt(m2) * np.sqrt(np.diag(self.zz))
        row = np.clip(row, -largest, largest)
        mine = np.array([loading.get(name, 0.0) for loading in self.B])
        left = np.sqrt(1.0 - self.within(name))
        residual = m2 - 2.0 * mine @ row + mine @ self.zz @ mine
        if residual < MOSTLY * m2:
            return
        m2 = residual / left**2
        row = (row - mine @ self.zz) / left
        loading = {name: 1.0}
        for b, other in zip(mine, self.B, strict=True):
            loading = combined(1.0, loading, -b, other)
        loading = {other: weight / left for other, weight in loading.items()}
        found = self.relevance_with(m2, loading)
        if found <= self.threshold(relevances):
            return
        for other in self.since:
            # The sum is over rows since both were candidates; scale it to the rows of the other.
            own = self.age(other)
            summed = self.xx[name, other] * own / min(own, age)
            last = (summed - mine @ self.zx[other]) / left
            self.zx[other] = np.append(self.zx[other], last)
        self.zz = np.block([[self.zz, row[:, None]], [row, m2]]) if q else np.full((1, 1), m2)
        self.B.append(loading)
        self.came.append(max(self.came, default=-1) + 1)
        relevances.append(found)
        if len(self.B) > self.q:
            self.rotate_and_drop(relevances)

    def rotate_and_drop(self, relevances):
        """Rotate the two least relevant components and drop the lesser; no other one moves.

        The pair is in order of relevance. With unsigned Jacobi, whose first is the direction of
        largest variance in any order, the order of indices determines the signs.
        """
        q = self.q
        least, next_ = self.two_least(relevances)
        low, high = sorted((least, next_))
        a, b = (low, high) if self.rotation == "jacobi" and not self.signed else (least, next_)
        (aa, ab), (_, bb) = self.left(a, b)
        cos, sin = angle(aa, bb, ab, self.rotation)
        R = np.eye(q + 1)
        R[a, a], R[b, b], R[a, b], R[b, a] = cos, cos, -sin, sin
        self.zz = R.T @ self.zz @ R
        self.B[a], self.B[b] = (
            combined(cos, self.B[a], sin, self.B[b]),
            combined(-sin, self.B[a], cos, self.B[b]),
        )
        for k, left in zip((a, b), np.diag(self.left(a, b)), strict=True):
            gone = left <= VANISHED * min(aa, bb)
            relevances[k] = -np.inf if gone else self.relevance_with(self.zz[k, k], self.B[k])
        survivor = a if relevances[a] > relevances[b] else b
        came = self.came[least if survivor == a else next_]
        # The survivor takes the lower index, the last component the other.
        indices = list(range(q))
        indices[low] = survivor
        if high < q:
            indices[high] = q
        self.zz = self.zz[np.ix_(indices, indices)]
        self.zx = {name: (row @ R)[indices] for name, row in self.zx.items()}
        self.B = [self.B[k] for k in indices]
        self.came = [came if k == low else self.came[indices[k]] for k in range(q)]
        relevances[:] = [relevances[k] for k in indices]

    def left(self, *components):
        """Return the products of components after the covariates are projected out."""
        zz = self.zz[np.ix_(components, components)]
        return zz - self.explained(*(self.B[k] for k in components)) if self.rows.covariates else zz

    def two_least(self, relevances):
        """Return the least relevant component and the next; ties are in order of arrival."""
        left, found = sorted(range(len(relevances)), key=self.came.__getitem__), []
        for _ in range(2):
            least = min(relevances[k] for k in left)
            found.append(next(k for k in left if relevances[k] <= least + TIE))
            left.remove(found[-1])
        return found

    def choose(self, found, threshold):
        """Choose the candidates: those that may join, by relevance, then current candidates."""
        n = len(self.rows.xs)
        free = {name for name in found if self.free(name)}
        able = [name for name in free if found[name] > threshold]
        rest = [name for name in self.since if name not in able]
        idle = [name for name in rest if name in free]
        tracked = [name for name in rest if name not in free]
        chosen = [name for part in (able, idle, tracked) for name in self.ranked(part, found)]
        chosen = chosen[: self.most]
        self.since = {name: self.since.get(name, n) for name in chosen}
        self.unknown = {name: self.unknown.get(name, n) for name in chosen}
        self.zx = {name: row for name, row in self.zx.items() if name in self.since}
        self.xx = {pair: c for pair, c in self.xx.items() if self.since.keys() >= set(pair)}
        self.values = dict.fromkeys([*self.support, *chosen])


def angle(aa, bb, ab, rotation):
    """Return the cosine and sine of the rotation of two components with these moments."""
    size = np.sqrt(aa) * np.sqrt(bb)
    if abs(ab) <= UNCORRELATED * size:  # the limit of the angle: none, or a quarter turn
        stay = aa >= bb or rotation == "paper"
        return (1.0, 0.0) if stay else (0.0, 1.0)
    jacobi = np.arctan2(2 * ab, aa - bb)
    theta = 0.5 * (jacobi if rotation == "jacobi" else np.arctan(2 * ab / size))
    return np.cos(theta), np.sin(theta)


def combined(s, one, t, other):
    """Return s times one loading plus t times another, without zeros."""
    both = {name: s * one.get(name, 0.0) + t * other.get(name, 0.0) for name in one | other}
    return {name: weight for name, weight in both.items() if weight != 0.0}

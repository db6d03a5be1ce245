"""Learning rows by definition: all rows are stored and weighted, and form columns on request.

A name that a row lacks has value 0 there, also before it first appeared. NaN and None are not
observed, and replaced by the variable's weighted mean over the rows that observed it. A label is
encoded as one indicator per class, which is 0 before the class appeared. Every new row multiplies
the weights of earlier rows by 1 - fading_factor. Sums use long doubles and are taken about the
mean.

Covariates are auxiliary columns; labels are encoded as one indicator per class. Their least-squares
fit, with a constant, is subtracted from the target's columns and from every variable.
"""

import numpy as np

from tests.reference import projse

# Two target variables are equal if their squared distance is below this fraction of their length.
SAME = 1e-12
# A variable is explained by covariates if they leave at most this fraction of its square.
THEIRS = 1e-12


def observed(value):
    return value is not None and value == value  # noqa: PLR0124 - NaN is not itself


def canonical(names):
    """Sort the names of one row by type, then by value."""
    return sorted(names, key=lambda name: (type(name).__name__, name))


def numbers(y, kind="auto"):
    """Return a row of the target as numbers: name -> number, with labels as indicators."""
    if isinstance(y, dict):
        row = {}
        for name, value in y.items():
            parts = numbers(value, kind)
            row |= {name: parts[None]} if None in parts else {(name, c): 1.0 for c in parts}
        return row
    is_label = isinstance(y, str) or (isinstance(y, bool | np.bool_) and kind != "numeric")
    return {y: 1.0} if is_label or kind == "class" else {None: float(y)}


class Rows:
    """All rows that were learnt, and their weights.

    Parameters
    ----------
    fading_factor
        Fraction of its weight that a row loses with every new row.
    target_type
        "auto", "class" or "numeric", as in the learners.
    covariates
        Features that all results are adjusted for.
    """

    def __init__(self, fading_factor=0.0, target_type="auto", covariates=()):
        self.retention = np.longdouble(1) - np.longdouble(fading_factor)
        self.kind, self.covariates = target_type, covariates
        self.xs, self.ys, self.zs, self.weights = [], [], [], np.zeros(0, np.longdouble)
        self._kept_basis = None

    def learn_one(self, x, y):
        self.weights = self.weights * self.retention
        self.learn_at_once([(x, y)])

    def learn_at_once(self, rows):
        """Learn rows as a column phase does: each with weight 1, without fading."""
        self._kept_basis = None
        for x, y in rows:
            self.xs.append({name: v for name, v in x.items() if name not in self.covariates})
            self.zs.append(numbers({name: x.get(name, 0.0) for name in self.covariates}))
            self.ys.append(numbers(y, self.kind))
            self.weights = np.append(self.weights, np.longdouble(1))

    def merge(self, other):
        self.xs += other.xs
        self.ys += other.ys
        self.zs += other.zs
        self._kept_basis = None
        self.weights = np.append(self.weights, other.weights)

    @property
    def n(self):
        """Return the sum of weights."""
        return float(np.sum(self.weights))

    @property
    def names(self):
        """Return the names in order of arrival; those of one row in canonical order."""
        return arrivals(self.xs)

    def column(self, name):
        """Return a variable's values: 0 where absent, NaN where not observed."""
        values = [x.get(name, 0.0) for x in self.xs]
        return np.array([float(v) if observed(v) else np.nan for v in values], np.longdouble)

    def matrix(self, names=None):
        """Return the (n, p) values in float64, as columns for a learner."""
        columns = [self.column(name) for name in self.names if names is None or name in names]
        return np.column_stack(columns).astype(float)

    def moments(self, name):
        """Return a variable's mean, m2 and cxy, the last a dict by target column.

        Targets are residuals on the covariates; `given` returns what these explain of the variable.
        """
        mean, x = self._centred(self.column(name))
        w = self.weights
        cxy = {t: float(np.sum(w * x * y)) for t, y in self._targets().items()}
        return float(mean), float(np.sum(w * x * x)), cxy

    def given(self, name):
        """Return a variable's products with an orthonormal basis of the covariates, (d,)."""
        x = self._centred(self.column(name))[1] * np.sqrt(self.weights)
        return np.array([float(q @ x) for q in self._basis()])

    @property
    def n_given(self):
        """Return the number of dimensions of the covariates."""
        return len(self._basis())

    def left(self, name):
        """Return a centred variable's residual on covariates, times the roots of the weights."""
        return self._left(self._centred(self.column(name))[1]) * np.sqrt(self.weights)

    def target_left(self):
        """Return the weighted residuals of the target's columns: name -> (n,)."""
        return {t: y * np.sqrt(self.weights) for t, y in self._targets().items()}

    def cyy(self):
        """Return the target's centred sums of products, by pairs of its columns."""
        Y, w = self._targets(), self.weights
        return {(s, t): float(np.sum(w * Y[s] * Y[t])) for s in Y for t in Y}

    def _targets(self):
        columns = self._columns_of(self.ys)
        return {t: self._left(column) for t, column in columns.items()}

    def _columns_of(self, rows):
        names = arrivals(rows)
        columns = {t: np.array([row.get(t, 0.0) for row in rows], np.longdouble) for t in names}
        return {t: self._centred(column)[1] for t, column in columns.items()}

    def _basis(self):
        """Return an orthonormal basis of the weighted covariates."""
        if self._kept_basis is None:
            self._kept_basis = self._made_basis() if self.covariates else []
        return self._kept_basis

    def _made_basis(self):
        roots, found = np.sqrt(self.weights), []
        columns = [
            z * roots / np.abs(z).max() for z in self._columns_of(self.zs).values() if z.any()
        ]
        columns = [z / np.sqrt(z @ z) for z in columns]
        # Pivoted Gram-Schmidt: the column with the largest residual comes first.
        while columns:
            sizes = [z @ z for z in columns]
            z = columns.pop(int(np.argmax(sizes)))
            if z @ z <= 1e-10:
                break
            found.append(z / np.sqrt(z @ z))
            columns = [other - found[-1] * (found[-1] @ other) for other in columns]
        return found

    def _left(self, x):
        """Return a centred column's residual on the covariates; 0 if that is a rounding error."""
        roots = np.sqrt(self.weights)
        largest = np.abs(x).max(initial=0)
        if not self.covariates or not largest:
            return x
        left = whole = x / largest * roots
        for _ in range(2):
            for q in self._basis():
                left = left - q * (q @ left)
        if left @ left <= THEIRS * (whole @ whole):
            return np.zeros_like(x)
        return left / roots * largest

    def _centred(self, x):
        """Return the weighted mean of observed values, and x minus it; 0 where not observed."""
        seen, w = ~np.isnan(x), self.weights
        if not seen.any():
            return np.longdouble(0), np.zeros_like(x)
        shift = x[seen][-1]
        x = np.where(seen, x - shift, 0)
        mean = np.sum(w[seen] * x[seen]) / np.sum(w[seen])
        constant = np.ptp(x[seen]) == 0
        return shift + mean, np.where(seen & ~constant, x - mean, 0)

    def _weighted(self, columns, scale):
        """Return centred columns times the roots of the weights, or scaled to squared length n."""
        roots = np.sqrt(self.weights)
        out = np.zeros((len(self.weights), len(columns)))
        for j, column in enumerate(columns):
            x = column * roots
            if x.any():
                size = np.sqrt(self.n) / np.sqrt(np.sum((x / np.abs(x).max()) ** 2))
                out[:, j] = x / np.abs(x).max() * size if scale else x
        return out

    def coordinates(self, kernel="linear", *, degree=3, gamma=None, coef0=0.0, scale=True):
        """Return the (r, p) coordinates of every variable in the target's feature space."""
        scale = scale or kernel == "linear"
        A = [self._left(self._centred(self.column(name))[1]) for name in self.names]
        A = self._weighted(A, scale)
        T = self._weighted(self._targets().values(), scale)
        T = T[:, T.any(axis=0)]
        if not T.size or not A.size:
            return np.zeros((0, A.shape[1]))
        if kernel == "linear":
            U, singular, _ = np.linalg.svd(T, full_matrices=False)
            return U[:, singular > 1e-7 * singular[0]].T @ A / np.sqrt(self.n)
        gamma = self._default_gamma(kernel, T) if gamma is None else gamma
        options = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
        values, vectors = np.linalg.eigh(projse.gram(T, T, **options))
        keep = values > 1e-10 * values[-1]
        own = np.array([projse.gram(a[:, None], a[:, None], **options)[0, 0] for a in A.T])
        live = A.any(axis=0)
        G = (vectors[:, keep] / np.sqrt(values[keep])).T @ projse.gram(T, A, **options)
        return np.where(live, G / np.sqrt(np.where(live, own, 1.0)), 0.0)

    def _default_gamma(self, kernel, T):
        squares = (T**2).sum(axis=0)
        apart = ((T[:, :, None] - T[:, None, :]) ** 2).sum(axis=0)
        same = apart < SAME * np.sqrt(np.outer(squares, squares))
        if kernel == "rbf" and same.all():
            T = T[:, :1]
        return projse.default_gamma(kernel, T, self.n)

    def relevance(self, **kernel):
        """Return the relevance of every variable, in order of arrival."""
        sizes = np.sqrt((self.coordinates(**kernel) ** 2).sum(axis=0))
        return dict(zip(self.names, sizes.tolist(), strict=True))

    def picks(self, k, on_rank_exhausted="restart", **kernel):
        """Return ProjSe's picks: (name, score, round, relevance), in order."""
        G, names = self.coordinates(**kernel), self.names
        sizes = np.sqrt((G**2).sum(axis=0)).tolist()
        found = greedy(G, k, on_rank_exhausted) if G.size else []
        return [(names[j], score, turn, sizes[j]) for j, score, turn in found]


def greedy(G, k, on_rank_exhausted):
    """Pick by explicit projectors; scores within a relative 1e-12 of the best are ties."""
    picks, taken, turn = [], [], 0
    P = np.eye(len(G))
    while len(picks) < k:
        scores = ((P @ G) ** 2).sum(axis=0)
        scores[taken] = 0.0
        j = int(np.argmax(scores >= scores.max() * (1.0 - projse.TIE)))
        if scores[j] > projse.SPENT:
            picks.append((j, float(scores[j]), turn))
            taken.append(j)
            v = P @ G[:, j]
            P -= np.outer(v, v) / (v @ v)
        elif on_rank_exhausted == "restart" and picks and picks[-1][2] == turn:
            P, turn = np.eye(len(G)), turn + 1
        else:
            break
    return picks


def arrivals(rows):
    """Return the names in rows (dicts) in order of arrival."""
    return list(dict.fromkeys(name for row in rows for name in canonical(row)))


def agree(model, rows, tolerance=1e-9):
    """Compare all attributes of a ProjSe with those computed from stored rows."""
    kernel = {key: getattr(model, key) for key in ("kernel", "degree", "gamma", "coef0", "scale")}
    picks = rows.picks(model.k, model.on_rank_exhausted, **kernel)
    assert model.n_rows == len(rows.xs)
    assert model.selected == [name for name, _, _, _ in picks]
    assert model.rounds == {name: turn for name, _, turn, _ in picks}
    close(model.scores, {name: score for name, score, _, _ in picks}, tolerance)
    close(model.relevance, {name: size for name, _, _, size in picks}, tolerance)


def same(one, other, tolerance=1e-9):
    """Compare the attributes of two models."""
    for attribute in ("selected", "rounds", "n_rows", "n_columns", "n_constant"):
        assert getattr(one, attribute) == getattr(other, attribute), attribute
    close(one.scores, other.scores, tolerance)
    close(one.relevance, other.relevance, tolerance)
    if one.kernel == "linear":  # other noise floors depend on the order of target columns
        np.testing.assert_allclose(one.noise_floor(), other.noise_floor(), atol=tolerance)


def bits(model):
    """Return a model's whole state in a form that compares exact bits."""

    def frozen(value):
        if isinstance(value, np.ndarray):
            return value.shape, value.dtype.str, value.tobytes()
        if isinstance(value, dict):
            return {key: frozen(part) for key, part in value.items()}
        return repr(value)

    return frozen(model.__getstate__())


def close(got, expected, tolerance):
    assert list(got) == list(expected)
    np.testing.assert_allclose(
        list(got.values()), list(expected.values()), rtol=tolerance, atol=tolerance
    )

"""Ridge components on rows by definition: all rows are stored, and solved as a batch.

Rows, each multiplied by the root of its weight, are the observations of columns, which are then
centred. In the likelihood, n is the effective number of rows. Weights of representatives come from
the phase on columns; a variable that first appears on rows has weight 1.
"""

import numpy as np

from tests.reference import ridge_components as batch
from tests.reference import target as space
from tests.reference.rows import Rows


class RidgeComponentsOnRows:
    """Components of all rows, computed as a batch.

    Parameters
    ----------
    mu
        Name -> μ, for variables that were learnt as columns.
    limit
        Maximum number of variables with loadings, as in a pool; None for all.
    rule
        `n_components`, `relevance_power` and `alpha`.
    rows
        Arguments of `Rows`.
    """

    def __init__(self, rule, mu=None, limit=None, **rows):
        self.rule, self.limit = rule, limit
        self.mu = dict(mu or {})
        self.rows = Rows(**rows)

    def learn_one(self, x, y):
        self.rows.learn_one(x, y)

    def learn_columns(self, X, y, names):
        """Learn the rows of a matrix of columns."""
        self.rows.learn_at_once(as_rows(X, y, names))

    @property
    def effective_rows(self):
        w = self.rows.weights
        return float(np.sum(w) ** 2 / np.sum(w**2))

    def basis(self):
        """Return an orthonormal basis of the weighted target."""
        columns = [y for y in self.rows.target_left().values() if y.any()]
        return space.span([space.unit(y.astype(float)) for y in columns], len(self.rows.xs))

    def variables(self):
        """Return the variables that vary, with weighted observations."""
        U, names, columns = self.basis(), [], []
        for name in self.rows.names:
            x = self.rows.left(name)
            if x.any():
                names.append(name)
                columns.append(x)
        largest = [np.abs(x).max() for x in columns]
        columns = [(x / size).astype(float) for x, size in zip(columns, largest, strict=True)]
        lengths = [size * np.linalg.norm(x) for x, size in zip(columns, largest, strict=True)]
        units = np.column_stack([np.zeros((len(U), 0)), *map(space.unit, columns)])
        relevance = np.sqrt(((U.T @ units) ** 2).sum(axis=0))
        mu = np.array([self.mu.get(name, 1.0) for name in names])
        found = batch.Variables(names, units, np.array(lengths, float), relevance, mu)
        return found if self.limit is None else batch.cut_back(found, self.limit)

    def solved(self):
        """Return the variables and their components."""
        of = self.variables()
        n = self.effective_rows - self.rows.n_given
        return of, batch.solve(of, self.basis(), n=n, size=self.rows.n, **self.rule)

    def answer(self):
        """Return the attributes of a model that has learnt these rows."""
        of, found = self.solved()
        answer = batch.shown(found, of, self.basis(), found.loadings)
        del answer["embedding"]
        return answer


def as_rows(X, y, names):
    """Return the rows of a matrix and a target as pairs of x and y."""
    rows = [dict(zip(names, x, strict=True)) for x in np.asarray(X).tolist()]
    targets = np.asarray(y).tolist()
    if np.ndim(y) == 2:
        targets = [dict(enumerate(t)) for t in targets]
    return list(zip(rows, targets, strict=True))

"""SupervisedPCA: principal components of the variables that are relevant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from streamsel import params
from streamsel.extraction._of_inner import OfInner
from streamsel.held.inner import Inner
from streamsel.held.part import Floats, Places
from streamsel.held.pool import SamplePool
from streamsel.learner.river import Supervised
from streamsel.params import param
from streamsel.target.target import Target
from streamsel.ties import most_relevant_first


class SupervisedPCA(OfInner, Supervised):
    r"""Principal components of the most relevant variables, and of no others.

    Principal components do not heed the target, and where most variables have nothing to do with it
    neither have the components. So the variables are judged one by one first, and only those that
    pass are summed up. Constant memory, for any number of observations; components of few
    variables.

    Parameters
    ----------
    threshold
        Variables of less relevance than this are left out; None for as many as `max_candidates`.
    max_candidates
        Of no more variables are components made: of the most relevant.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary.

    Raises
    ------
    ValueError
        For a parameter out of its range, and where no more variables are kept than components.

    Notes
    -----
    **Method.** The relevance of a centred column is $\|U^T x\| / \|x\|$, for one numeric target the
    absolute correlation: Bair et al. rank by the coefficient of the standardised variable, which is
    the same order. Of those that pass, $X$, the components are the leading ones of $X^T X$, with
    loadings of length 1; the first they regress the target on. The threshold they choose by
    cross-validation of that regression; `noise_floor()` is a start.

    **Which variables.** Those of a pool of at most twice `max_candidates`, from which the least
    relevant go: however many columns pass, and in whatever order, the most relevant stay. Of equals
    the earlier. A variable that matters only beside another one is not found, for what counts is
    the relevance of each alone.

    **What is worth believing.** Variables that were picked for their relevance on these rows are
    relevant on these rows, and their components too: judge them on others.

    **Cost.** A column that is let go costs one pass over it. Components, when they are asked for,
    take $O(n m^2 + m^3)$, $m$ being `max_candidates`. A row learnt costs $O(f^2)$ for its $f$
    features, a row transformed $O(m q)$.

    **Memory.** $16 n m$ bytes. On rows $2 f^2$ numbers, $f$ at most `max_features`.

    **Rows.** The variables of the pool, and all that come with rows, are tracked by their joint
    moments: which are relevant, and their components, are those of all rows so far. See
    `max_features` for those that come late.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    References
    ----------
    [^1]: Bair, E., Hastie, T., Paul, D. and Tibshirani, R. (2006). Prediction by supervised
    principal components. Journal of the American Statistical Association 101(473), 119-137.

    Examples
    --------
    Of 5,000 columns 50 show what the target is made of, and 500 vary together for another reason:

    >>> import numpy as np
    >>> from streamsel import SupervisedPCA

    >>> rng = np.random.default_rng(0)
    >>> hidden, other = rng.normal(size=(2, 200, 1))
    >>> X = rng.normal(size=(200, 5_000))
    >>> X[:, :50] += hidden
    >>> X[:, 50:550] += 2.0 * other
    >>> y = hidden[:, 0] + 0.3 * rng.normal(size=200)

    >>> model = SupervisedPCA(n_components=1, threshold=0.5)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> len(model.loadings), max(model.loadings)
    (50, 49)
    >>> bool(abs(np.corrcoef(model.embedding[:, 0], hidden[:, 0])[0, 1]) > 0.95)
    True

    It goes on with rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[0])), y[0])
    >>> list(model.transform_one(dict(enumerate(X[1]))))
    ['supervisedpca0']
    """

    keeps = SamplePool
    _by_relevance: ClassVar[bool] = True

    threshold: float | None = param(params.Real(0.0, below=1.0, optional=True), default=None)
    max_candidates: int = param(params.Whole(2), default=500)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "max_candidates": 3, "scale": True}
        yield {"n_components": 2, "threshold": 0.1, "fading_factor": 0.05}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._more_than("n_components", self.n_components, "max_candidates")

    def _new_columns(self, n: int) -> SamplePool:
        target, space = self._target, self._space
        assert isinstance(target, Target)  # noqa: S101
        pool = SamplePool(space, n, self.max_candidates)
        pool.serve(self)
        pool.follow(target.Y[: target.c])
        return pool

    def _places(self, held: Any) -> Places:
        places = super()._places(held)
        relevance = held.relevance(places)
        first = most_relevant_first(relevance)[: self.max_candidates]
        if self.threshold is not None:
            first = first[relevance[first] >= self.threshold]
        return np.sort(places[first])

    def _duals(self, inner: Inner, q: int) -> Floats:
        d, E = inner.axes(q)
        duals: Floats = E / np.sqrt(d)
        return duals

    @property
    def _why_no_more(self) -> str:
        if self.threshold is None:
            which = f"the columns taken, of max_candidates={self.max_candidates},"
        elif self._solution() is None:
            return f"no column is as relevant as threshold={self.threshold}"
        else:
            which = f"the columns at least as relevant as threshold={self.threshold}"
        return f"{which} vary in no more directions"

    def _embedding(self) -> Floats:
        held, found = self._columns, self._solution()
        if not isinstance(held, SamplePool) or found is None:
            return np.zeros((self.n_rows, 0))
        stats, space = held.stats(found.places), held.space
        left = stats.m2 if space is None else space.left(stats.m2, stats.cxy)
        weights = found.scale * np.sqrt(left)
        embedding: Floats = held.samples(found.places).T @ (weights[:, None] * found.loadings)
        return embedding

"""RidgeComponents: a few variables of a million, by canonical ridge on relevant columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamsel import params
from streamsel.extraction._canonical_ridge import CRITERIA
from streamsel.extraction._reads_again import ReadsAgain
from streamsel.extraction._second_reading import Again
from streamsel.extraction._weighted import (
    Asked,
    Solution,
    Variables,
    from_columns,
    from_rows,
    of_columns,
    of_pool,
)
from streamsel.held.common import Common
from streamsel.held.gram import check_rows
from streamsel.held.gram_pool import GramPool
from streamsel.held.massed import Massed
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.held.representatives import Representatives, represent
from streamsel.learner.cached import until_learnt
from streamsel.learner.extractor import LinearMap
from streamsel.learner.noise import noise_floor
from streamsel.learner.report import NOISE_LEVEL, Report, number
from streamsel.learner.river import Supervised
from streamsel.params import param
from streamsel.target.target import Target


class RidgeComponents(ReadsAgain, Supervised):
    r"""Ridge components: a few variables of a million, each a weighted sum of the relevant ones.

    Every column counts with a power of its relevance to the target, so that noise fades and what
    many columns tell adds up. The first components are those that ridge regression on the columns
    so weighted finds, as many as the target has dimensions; the others are the principal components
    of what these leave.

    Parameters
    ----------
    max_support
        None keeps what all columns together say, exactly and whatever their order: the Gram matrix
        of the $n$ observations, $n \times n$. A number $m$ keeps a pool of $m$ to $2m$ columns
        that represent the others: constant memory, for any number of observations, and components
        of at most $m$ variables.
    relevance_power
        A column of relevance $\rho$ counts with $\rho^\gamma$, and this is $\gamma$: 0 for all
        alike, 8 for a target that few variables explain. With several the squares of what a column
        counts with are summed, each $\gamma$ having an equal share; each takes a Gram matrix.
    alpha
        The ridge: chosen by restricted maximum likelihood, `"reml"`, or by generalised
        cross-validation, `"gcv"`; or a number, in mean eigenvalues of the weighted columns.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for a target of more observations than a Gram matrix
        is kept of.

    Notes
    -----
    **Method.** With $U$ an orthonormal basis of the target space, $x$ a centred column of length 1,
    $\rho = \|U^T x\|$ and $D = \rho^\gamma$, scaled so that the mean of the squares is 1, the
    weighted columns are $XD = E \sqrt{d} V^T$, and $h = \sqrt{d} E^T U$. The ridge $\lambda$ is one
    of a grid relative to the mean of the eigenvalues $d$. Then $S = (d + \lambda)^{-1/2} h$, $Q$
    are the eigenvectors of $S^T S$, and $F = (d + \lambda)^{-1} h Q$ the first components, each of
    length 1 in the weighted columns: canonical ridge. The others are the leading eigenvectors of $C
    - CF(F^TCF)^{-1}F^TC$, with $C = \mathrm{diag}(d)$, made uncorrelated with $F$, and scaled
    alike so that over the rows learnt none varies more than any of $F$. Then all are, so that the
    variance of the one that varies most is 1: a later one is smaller, as it tells less, which is
    what nearest neighbours want. The largest loading of a column of length 1 is positive.

    **Loadings.** What a Gram matrix knows of is the observations: `embedding` is exact after one
    reading. For the loadings, and so for new rows, columns are needed. As long as the pool holds
    all of them they are exact too; then the components are regressed on the pool's, by ridge
    regression again, until `learn_loadings` has read the columns once more: exact if there are no
    more than `max_loadings`; otherwise of the largest, on which what they miss is regressed.

    **Pool.** A column comes in if its $\rho^2$ is above a bar, with mass $\mu = 1$. When $2m$ are
    there the first $m$ pivots stay of a Cholesky factorisation of their correlations $R$ weighted
    by $\sqrt{\mu} \rho$: those that are relevant and unlike the others. One that goes leaves $\mu
    R^4$ of its mass to the one it is likest. In the solution $D = \rho^\gamma \sqrt{\mu}$. The
    result depends on the order of the columns, a little; not on how they are cut into blocks.

    **Cost.** With a Gram matrix $n^2$ for each column, one product of matrices for hundreds of
    them, half of it saved by symmetry; a sparse column of $s$ values $s^2$. Components, when they
    are asked for, $O(n^3)$: a minute for 5,000 rows. With a pool a column that is let go costs one
    pass over it; cutting back takes $O(n m^2 + m^3)$ once for every $m$ that come in, components
    $O(m^3)$. A row learnt costs $O(m^2)$ for its $m$ features, a row transformed $O(m q)$.

    **Memory.** $4 n^2$ bytes for each power, twice that while columns come, and $24 n^2$ when
    components are asked for; $16 n m$ for the pool, $m$ being `max_loadings`. With `max_support`
    $16 n m$ alone. On rows $2 m^2$ numbers, $m$ at most `max_features`.

    **Rows.** The variables of the pool, with their masses, and all that come with rows, each of
    mass 1, are tracked by their joint moments: components are those that all rows together give,
    and the same as of columns. See `max_features` for those that come late.

    **What is worth believing.** Where variables outnumber rows a component of noise is as relevant
    on the rows learnt as one of signal. `n_above_noise` says how many variables are above the noise
    floor: if it is 0, all may be chance. A variable that matters only beside another one is not
    found: what counts is the relevance of each alone.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    **What stands.** On rows a transform gives the components as they stood at the last renewal,
    turned, among themselves, so that they moved the least from those that stood before: the
    rotation of orthogonal Procrustes, under the rows so far. `loadings` and `relevance` are of the
    components as they come.

    References
    ----------
    [^1]: Vinod, H. D. (1976). Canonical ridge and econometrics of joint production. Journal of
    Econometrics 4(2), 147-166.

    [^2]: Patterson, H. D. and Thompson, R. (1971). Recovery of inter-block information when block
    sizes are unequal. Biometrika 58(3), 545-554.

    Examples
    --------
    Of 2,000 columns 100 show, each with much noise, what the target is made of:

    >>> import numpy as np
    >>> from streamsel import RidgeComponents

    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=300)
    >>> X = rng.normal(size=(300, 2_000))
    >>> X[:, :100] += 0.5 * hidden[:, None]
    >>> y = np.where(hidden + 0.3 * rng.normal(size=300) > 0.0, "yes", "no")

    >>> model = RidgeComponents(n_components=2)
    >>> model.learn_target(y[:200])
    >>> model.learn_columns(X[:200])
    >>> model.n_above_noise
    77

    On rows that it has not seen the first component is what was hidden:

    >>> Z = model.transform_many(X[200:])
    >>> bool(abs(np.corrcoef(Z[:, 0], hidden[200:])[0, 1]) > 0.9)
    True

    It goes on with rows, by name, in River:

    >>> model.learn_one(dict(enumerate(X[200])), y[200])
    >>> list(model.transform_one(dict(enumerate(X[201]))))
    ['ridgecomponents0', 'ridgecomponents1']
    """

    keeps = Representatives
    rows = Massed

    max_support: int | None = param(params.Whole(1, optional=True), default=None)
    relevance_power: float | tuple[float, ...] = param(
        params.Several(params.Real(0.0)), default=2.0
    )
    alpha: str | float = param(
        params.NamedOr(params.Choice(tuple(CRITERIA)), (params.Real(0.0, open=True),)),
        default="reml",
    )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "warm_up": 10, "max_loadings": 20}
        yield {"n_components": 2, "max_support": 4, "relevance_power": (1.0, 2.0), "alpha": "gcv"}
        yield {"n_components": 3, "max_support": 8, "fading_factor": 0.05, "renewal": 1.0}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._more_than("n_components", self.n_components, "max_support")

    # What it keeps

    def _take_target(self, target: Target) -> None:
        if self.max_support is None:
            check_rows(
                target.n,
                self.max_rows_gram,
                "max_support=500 keeps a pool of as many columns instead, in constant memory.",
            )
        super()._take_target(target)

    @property
    def _powers(self) -> tuple[float, ...]:
        power = self.relevance_power
        return power if isinstance(power, tuple) else (power,)

    @property
    def _limit(self) -> int:
        return self.max_support or self.max_loadings

    def _new_columns(self, n: int) -> Representatives:
        target, space = self._target, self._space
        assert isinstance(target, Target)  # noqa: S101
        assert space is not None  # noqa: S101
        # Before the first cut all that came are held: there are twice as many when it matters. The
        # floor of permutations may be anywhere: that of copies is that of one column.
        n_free = space.effective_rows - len(space.given)
        least = noise_floor(n_free, space.rank, 2 * self._limit, NOISE_LEVEL)
        if self.permutations:
            least = 0.0
        if self.max_support is not None:
            pool = Representatives(space, n, self._limit, least)
        else:
            pool = GramPool(space, n, self._limit, least, self._powers, self.n_jobs)
        pool.follow(target.Y[: target.c])
        return pool

    def _new_beside(self) -> Massed:
        return Massed(self.fading_factor)

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        held = self._columns
        if isinstance(held, GramPool) and held.loadings is not None:
            names, q = held.loadings.names, held.loadings.weights.shape[1]
            if q != self.n_components or len({*names}) < len(names):
                raise ValueError(
                    f"Expected loadings of distinct columns on {self.n_components} components. "
                    f"Got: {len(names)} names, {q} components."
                )

    def _go_over_to(self, moments: Moments) -> None:
        pool = self._columns
        super()._go_over_to(moments)
        if isinstance(pool, Representatives):
            massed = self._beside
            assert isinstance(massed, Massed)  # noqa: S101
            massed.masses = dict(zip(pool.names, pool.table["mass"].tolist(), strict=True))

    # What it finds

    @until_learnt
    def _solution(self) -> Solution | None:
        """Return the components of what is held; None where there is nothing to make them of."""
        held = self._held
        if held is None or held.space is None or not held.space.rank or not held.names:
            return None
        n = held.effective_rows if isinstance(held, Common) else held.space.effective_rows
        left = float(n - len(held.space.given))
        asked = Asked(self.n_components, self.alpha, self._powers, left, held.n)
        if isinstance(held, GramPool):
            return from_rows(held, asked)
        return from_columns(self._variables(held), asked)

    def _variables(self, held: Any) -> Variables:
        """Return those who have loadings: all who are held, or as many as there may be."""
        stats = held.stats()
        # On rows there may be some that do not vary.
        places = np.flatnonzero(held.space.left(stats.m2, stats.cxy))
        mass = self._masses(held)[places]
        R, G = held.products(places)[places], held.coordinates(places)
        if self.max_support is not None and mass.size > self.max_support:
            kept = represent(R, np.square(G).sum(axis=1), mass, self.max_support)
            mass, places = kept.mass, places[kept.places]
            R, G = R[np.ix_(kept.places, kept.places)], G[kept.places]
        return Variables(places, mass, R, G)

    def _masses(self, held: Any) -> Floats:
        if isinstance(held, Representatives):
            return held.table["mass"]
        assert isinstance(self._beside, Massed)  # noqa: S101
        return self._beside.mass_of(held.names)

    def _linear_map(self, names: Iterable[Hashable] = ()) -> LinearMap:
        del names
        held, found = self._held, self._solution()
        if held is None or held.space is None or found is None:
            return LinearMap([], np.zeros(0), np.zeros((0, self.n_components)))
        if not isinstance(held, GramPool):
            weights = of_columns(found)
        elif held.loadings is None:
            weights, _ = of_pool(held, found)
        else:
            return LinearMap(*held.loadings[:3])
        stats = held.stats(found.places)
        left = held.space.left(stats.m2, stats.cxy)
        weights = weights / np.sqrt(np.where(left > 0.0, left, np.inf))[:, None]
        return LinearMap([held.names[place] for place in found.places], stats.mean, weights)

    # A second reading

    def _again(self) -> Again:
        held, found = self._held, self._solution()
        if not isinstance(held, GramPool) or found is None:
            if self.max_support is not None:
                got = "a model that has none, for max_support is set"
            else:
                got = "no columns yet" if held is None else "columns none of which is relevant"
            raise ValueError(
                f"Expected columns of which a Gram matrix is kept. Got: {got}.\n"
                "Hint: learn_columns(X) first, with max_support=None."
            )
        _, up = of_pool(held, found)
        return Again(
            duals=found.duals * up,
            scores=found.scores * up,
            n=found.axes.n,
            trace=float(found.axes.d.sum()),
            scales=found.scales,
            probe=held.basis.T,
            of_probe=found.of_target,
        )

    # What was learnt

    @property
    def alpha_(self) -> float:
        """The ridge that was found, in mean eigenvalues of the weighted columns; NaN before.

        It is found from 1e-5 to 1e5: 1e-5 says that the columns explain the target without any, as
        they mostly do where they are many more than the rows, of noise too.
        """
        found = self._solution()
        return np.nan if found is None else found.fit.alpha

    @property
    def n_above_noise(self) -> int:
        """How many variables are more relevant than the noise floor, `noise_floor()`.

        Of columns that were let go, to 1 / 4096 of relevance; on rows of those that are tracked.
        Where it is 0 nothing that was learnt is sure to be more than chance.
        """
        held = self._held
        if held is None or held.space is None:
            return 0
        floor = self.noise_floor(NOISE_LEVEL)
        if isinstance(held, Representatives) and not held.complete:
            return held.tally.above(floor)
        return int(np.count_nonzero(held.relevance() > floor))

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component on the rows learnt: name -> relevance.

        Where variables outnumber rows it is near 1 for any target, noise too: `n_above_noise` tells
        more.
        """
        found = self._solution()
        if found is None:
            return {}
        relevance = found.relevance[: found.n_found].tolist()
        return dict(zip(self.components, relevance, strict=False))

    def _embedding(self) -> Floats:
        held, found = self._columns, self._solution()
        if held is None or found is None:
            return np.zeros((self.n_rows, 0))
        assert isinstance(held, Representatives)  # noqa: S101
        if isinstance(held, GramPool):
            _, up = of_pool(held, found)
            return (found.scores * up)[:, : found.n_found]
        embedding: Floats = held.samples(found.places).T @ of_columns(found)
        return embedding[:, : found.n_found]

    def report(self) -> Report:
        """Return what was found, for those who look at it: a command, a page, a notebook.

        Returns
        -------
        A row a component: its relevance, and its loadings, the largest first. Whether that is more
        than noise is not told by the component, which was made of many variables, but by how many
        of these are above the noise floor: `n_above_noise`.
        """
        report = super().report()
        found = [row | {"above_noise": None} for row in report.found]
        facts: dict[str, Any] = {
            "n_above_noise": self.n_above_noise,
            "alpha": number(self.alpha_),
        }
        if found and not facts["n_above_noise"]:
            facts["caution"] = "no variable is above the noise floor: this may all be chance"
        return replace(report, found=found, facts=report.facts | facts)

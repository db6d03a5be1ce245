"""SOSPCA: sparse online supervised PCA (Fillmore 2009)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._jit.search import first_above
from streamsel.columns import Chunk, Stats
from streamsel.extraction._base import Extractor
from streamsel.extraction._components import Components
from streamsel.extraction._merging import follow_merge
from streamsel.extraction._on_rows import ComponentsOnRows
from streamsel.moments import Moments
from streamsel.rows import Places
from streamsel.target import Target
from streamsel.ties import TIE

Floats = NDArray[np.float64]


# Below every relevance, signed ones too.
_NO_BAR = -2.0


class SOSPCA(Extractor):
    r"""Sparse online supervised PCA: a few components, each of few variables.

    The first $q$ columns are the first components. A later column that is more relevant to the
    target than the least relevant component joins them; then the two least relevant components are
    rotated in their plane until they are uncorrelated, and the less relevant of the two is dropped.
    A column that is not more relevant, and that is nearly every column, costs one pass over it and
    leaves no trace.

    Parameters
    ----------
    n_components
        The number $q$ of components.
    rotation
        `"jacobi"` rotates by $\theta = \frac{1}{2} \mathrm{atan2}(2\sigma_{ab}, \sigma_{aa} -
        \sigma_{bb})$, which decorrelates exactly. `"paper"` rotates by $\theta = \frac{1}{2}
        \arctan(2\sigma_{ab} / \sqrt{\sigma_{aa} \sigma_{bb}})$, the formula as printed, which does
        not, but reproduces the paper's example.
    signed
        Whether relevance is the correlation itself, as in the paper, so that a strong negative
        correlation counts for nothing. For one numeric target column only.
    fading_factor
        In [0, 1): what part of its weight a row loses with every later one; 0 forgets nothing. As
        in River, the closer to 1 the faster the old is forgotten.
    max_features
        Most variables tracked on rows, well above the support; None for all. When a new one needs
        room the least relevant go, but none of the support, no candidate, and none in its grace
        period.
    grace_period
        On rows: for how many a new variable cannot be let go, and how often variables may join.
    target
        `"auto"` takes labels for classes and numbers for quantities, `"class"` takes numbers for
        classes, `"numeric"` refuses labels.
    n_jobs
        Number of threads that read the columns; -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary, which never join.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when it comes, for a target that `signed` cannot
        take.

    Notes
    -----
    **Cost.** A rejected column costs one pass over its $n$ values; an accepted one
    $O(n q + s q)$ more, $s$ the size of the support. A row transformed costs $O(s q)$; a row learnt
    $O(c)$ for each feature that it has, and $O(s q + (q + h)^2)$ for the components and the $h \leq
    \max(32, 2q)$ candidates; a refresh $O(p (c r + \log p))$.

    **Memory.** $O(n (q + c) + s q)$, $c$ the number of target columns. For columns in random order
    $s$ grows like $q (1 + \ln(p/q))$ with the number $p$ of columns seen, not like $p$. (The
    paper's $(\log p)/p$ is the chance that one more column joins, not the number of variables
    kept.) On rows $3c + 6$ numbers a variable and $O((q + h)^2)$, however many rows there are.

    **Rows.** What a variable has to do with the components is not told by its moments with the
    target. So every `grace_period` rows those that are more relevant than the weakest component
    become candidates, whose covariances are summed from then on; at the next such refresh they join
    as columns do, the most relevant first. A variable that is new becomes a candidate at once while
    there is room; its covariances are exact, for it was 0 before. Of any other those since it
    became a candidate stand for all rows, which should come in random order or fade. With fading a
    variable that has loadings may join again, with what is left of its direction. Relevances and
    means are always those of all rows. The components of a model that has learnt columns go on with
    the weight of the rows that those had.

    **Order.** The result depends on the order of the columns. It does not depend on how they are
    cut into blocks.

    **Slots.** A component keeps its name: the survivor of a rotation stays in the lower slot, the
    last component takes the freed one. (The paper shifts all of them instead; the set is the same.)

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None was not observed and counts as if it had its mean; a new
    variable, class or target was 0 before. A transform ignores features that were never learnt.

    Two relevances that differ by less than 1e-12 count as equal: the earlier column, or lower slot,
    has precedence.

    References
    ----------
    [^1]: Fillmore, N. (2009). Sparse online supervised PCA. University of
    Wisconsin-Madison. Section 2.2.

    Examples
    --------
    The worked example of the paper (section 2.3), five columns of three observations:

    >>> import numpy as np
    >>> from streamsel import SOSPCA

    >>> X = np.array([
    ...     [ 2.0,  1.6667,  1.6667, -0.6667,  2.6667],
    ...     [ 2.0, -0.3333,  2.6667, -1.6667, -2.3333],
    ...     [-4.0, -1.3333, -4.3333,  2.3333, -0.3333],
    ... ])
    >>> y = np.array([5.3333, -4.6667, -0.6667])

    >>> model = SOSPCA(n_components=2, rotation="paper", signed=True)
    >>> model.learn_target(y)
    >>> for i in range(4):
    ...     model.learn_column(f"x{i + 1}", X[:, i])

    x3 is not more relevant than x1 and was rejected; x4 is, and was rotated with x1:

    >>> model.loadings
    {'x1': {'sospca0': 0.5206}, 'x2': {'sospca1': 1.0}, 'x4': {'sospca0': 0.8538}}
    >>> model.relevance
    {'sospca0': 0.997806, 'sospca1': 0.7370}

    The new variable, almost parallel to the target, on the training rows, and then on a new row:

    >>> model.embedding[:, 0]
    array([ 0.4721, -0.3817, -0.0903])
    >>> model.transform_one({"x1": 2.0, "x2": 1.6667, "x4": -0.6667})
    {'sospca0': 0.4721, 'sospca1': 1.6667}
    """

    _rules: ClassVar[dict[str, params.Rule]] = {
        "n_components": params.Whole(1),
        "rotation": params.Choice(("jacobi", "paper")),
        "signed": params.Flag(),
        **Extractor._rules,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        rotation: str = "jacobi",
        signed: bool = False,
        fading_factor: float = 0.0,
        max_features: int | None = None,
        grace_period: int = 100,
        target: str = "auto",
        n_jobs: int = 1,
    ) -> None:
        self.n_components = n_components
        self.rotation = rotation
        self.signed = signed
        self.fading_factor = fading_factor
        self.max_features = max_features
        self.grace_period = grace_period
        self.target = target
        self.n_jobs = n_jobs
        super().__init__()
        if max_features is not None and max_features <= n_components:
            raise ValueError(
                "The 'max_features' parameter of SOSPCA must be None or above n_components = "
                f"{n_components}. Got {max_features!r} instead."
            )
        self._state: Components | None = None
        self._bar = _NO_BAR
        self._on_rows: ComponentsOnRows | None = None
        # Made when it is asked for, and holds until the next row.
        self._found: tuple[list[Hashable], Stats, Floats] | None = None
        self._components = [f"sospca{k}" for k in range(n_components)]

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "grace_period": 10}
        yield {"n_components": 1, "rotation": "paper", "signed": True, "grace_period": 5}
        yield {"n_components": 3, "grace_period": 10}
        yield {"n_components": 2, "fading_factor": 0.05, "grace_period": 7}
        yield {"n_components": 1, "max_features": 4, "grace_period": 20}

    def _check_target(self, c: int, *, is_class: bool) -> None:
        if self.signed and (c > 1 or is_class):
            raise ValueError(
                "Expected one numeric target column, as signed=True asks for. Got: "
                f"{c} {'classes' if is_class else 'columns'}.\n"
                "Hint: signed=False measures correlation without its sign."
            )

    # Learning

    def _observe(self, chunk: Chunk, stats: Stats) -> None:
        relevance = self._relevances(stats.m2, stats.cxy)
        j = first_above(relevance, 0, self._bar)
        while j < relevance.size:
            self._accept(chunk, stats, j, float(relevance[j]))
            j = first_above(relevance, j + 1, self._bar)

    def _relevances(self, m2: Floats, cxy: Floats) -> Floats:
        assert self._space is not None  # noqa: S101
        return self._space.relevance(m2, cxy, signed=self.signed)

    def _accept(self, chunk: Chunk, stats: Stats, j: int, relevance: float) -> None:
        """Let column j of a chunk join the components, and drop one if they are too many."""
        assert self._space is not None  # noqa: S101
        if self._state is None:
            self._state = Components(self.n_components + 1, chunk.n, stats.cxy.shape[1])
        least = self._state.take_up(
            chunk.names[j],
            chunk.column(j),
            (stats.mean[j], stats.low[j], stats.m2[j], stats.cxy[j]),
            relevance,
            self._space.weights,
            jacobi=self.rotation == "jacobi",
            signed=self.signed,
        )
        if self._state.count == self.n_components:
            self._bar = least + TIE

    def _raise_bar(self) -> None:
        """Note what the relevance of a column must exceed to join."""
        state = self._state
        if state is None or state.count < self.n_components:
            self._bar = _NO_BAR
        else:
            self._bar = float(state.relevance[: state.count].min()) + TIE

    def _merge(self, other: Self) -> None:
        theirs = other._state
        if theirs is None:
            return
        if self._state is None:
            self._state = theirs.resized(theirs.size)
            self._raise_bar()
            return
        assert self._space is not None  # noqa: S101
        state = self._state.together_with(theirs)
        while state.count > self.n_components:
            state.rotate_and_drop(
                self._space.weights, jacobi=self.rotation == "jacobi", signed=self.signed
            )
        self._state = state.resized(self.n_components + 1)
        self._raise_bar()

    def _held_names(self) -> dict[Hashable, int]:
        return {} if self._state is None else self._state.support.slots

    def _mark(self) -> dict[str, Any]:
        state = self._state
        copy = None if state is None else state.resized(state.size)
        return super()._mark() | {"_state": copy, "_bar": self._bar}

    # Rows

    def _carry_over(self, moments: Moments) -> None:
        held = self._state
        if held is not None:
            moments.take_columns(held.support.slots, held.moments_of_support())
        if self.n_columns > len(moments.table):
            moments.forget()

    def _begin(self, moments: Moments) -> None:
        self._on_rows = self._components_so_far()
        self._state = None
        super()._begin(moments)

    def _components_so_far(self) -> ComponentsOnRows:
        """Return components on rows that go on from those learnt as columns, if any."""
        on_rows = ComponentsOnRows(
            self.n_components,
            self.grace_period,
            max_features=self.max_features,
            fading=self.fading_factor > 0.0,
            jacobi=self.rotation == "jacobi",
            signed=self.signed,
        )
        if self._target is not None:
            on_rows.n = float(self._target.n)
        if self._state is not None:
            on_rows.take_columns(self._state)
        return on_rows

    def _protected(self) -> Collection[Hashable]:
        return () if self._on_rows is None else self._on_rows.watched.slots

    def _all_relevances(self, stats: Stats) -> Floats:
        assert self._moments is not None  # noqa: S101
        space = self._row_space(self._moments)
        return space.relevance(stats.m2, stats.cxy, signed=self.signed)

    def _outdate(self) -> None:
        super()._outdate()
        self._found = None

    @property
    def _row_state(self) -> tuple[ComponentsOnRows, Moments]:
        """The components and the moments, once rows are learnt."""
        assert self._on_rows is not None  # noqa: S101
        assert self._moments is not None  # noqa: S101
        return self._on_rows, self._moments

    def _took_up(self, names: list[Hashable]) -> None:
        on_rows, moments = self._row_state
        on_rows.take_up(names, moments)

    def _stretch(self, moments: Moments, *, all_held: bool) -> int | None:
        limit = super()._stretch(moments, all_held=all_held)
        until = self._row_state[0].until_refresh()
        return until if limit is None else min(limit, until)

    def _observe_row(self, values: Floats, places: Places) -> None:
        on_rows, moments = self._row_state
        on_rows.learn_one(values, places, moments)
        self._refresh_if_due()

    def _observe_rows(self, X: Floats, places: Places) -> None:
        on_rows, moments = self._row_state
        on_rows.learn_many(X, places, moments)
        self._refresh_if_due()

    def _refresh_if_due(self) -> None:
        on_rows, moments = self._row_state
        if on_rows.until_refresh() == self.grace_period:
            on_rows.refresh(moments, self._row_space(moments))

    def _merged(self, other: Self, along: str) -> None:
        super()._merged(other, along)
        on_rows, moments = self._row_state
        theirs = other._components_so_far() if other._on_rows is None else other._on_rows
        follow_merge(on_rows, theirs, along, moments, self._row_space(moments))

    def _settled(self) -> tuple[list[Hashable], Stats, Floats]:
        """Return names, moments and loadings of the support on rows."""
        if self._found is None:
            on_rows, moments = self._row_state
            self._found = on_rows.settled(moments)
        return self._found

    # What was learnt

    @property
    def components(self) -> list[str]:
        """Names of the components, as they come out of a transform."""
        return list(self._components)

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component learnt so far (signed if `signed`): name -> relevance."""
        if self._on_rows is not None:
            on_rows, moments = self._row_state
            found = on_rows.relevances(self._settled(), self._row_space(moments))
            # A component that no longer varies has none.
            found = np.where(np.isfinite(found), found, 0.0)
        elif self._state is not None:
            found = self._state.relevance[: self._state.count]
        else:
            return {}
        return dict(zip(self.components, found.tolist(), strict=False))

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """The support: variable -> {component: weight}, without zeros.

        In order of arrival; on rows in that in which they became candidates.
        """
        support, _, B = self._linear_map()
        names = self.components
        return {
            variable: {names[k]: w for k, w in enumerate(row) if w != 0.0}
            for variable, row in zip(support, B.tolist(), strict=True)
        }

    @property
    def embedding(self) -> Floats:
        """The components on the training rows, (n, number of components learnt): a copy.

        ValueError once rows were learnt, for those are not kept.
        """
        if self._on_rows is not None:
            raise ValueError(
                "Expected a model that has learnt columns only. Got: one that has learnt rows, "
                "which are not kept.\nHint: transform_many(X) is the embedding of X."
            )
        if self._state is None:
            return np.zeros((self.n_rows or 0, 0))
        return self._state.Z[: self._state.count].T.copy()

    def to_matrix(self, names: Sequence[Hashable]) -> Any:
        """Return the paper's B for these variables, in this order.

        Parameters
        ----------
        names
            The p variables that the rows of the matrix stand for.

        Returns
        -------
        A `scipy.sparse.csr_array` of shape (p, q), zero for a variable without loadings.

        Raises
        ------
        ValueError
            Where a variable of the support is not among the names, or a name stands twice.
        """
        from scipy.sparse import csr_array

        place = {name: i for i, name in enumerate(names)}
        if len(place) < len(names):
            raise ValueError("Expected distinct names. Got: a name twice.")
        rows, columns, weights = [], [], []
        for variable, loading in self.loadings.items():
            if variable not in place:
                raise ValueError(
                    f"Expected names with the whole support. Got: names without {variable!r}.\n"
                    "Hint: list(model.loadings) is the support."
                )
            for component, weight in loading.items():
                rows.append(place[variable])
                columns.append(int(component.removeprefix("sospca")))
                weights.append(weight)
        return csr_array((weights, (rows, columns)), shape=(len(place), self.n_components))

    def _linear_map(self) -> tuple[Iterable[Hashable], Floats, Floats]:
        q = self.n_components
        if self._on_rows is not None:
            names, stats, B = self._settled()
            return names, stats.mean, B[:, :q]
        if self._state is None:
            return (), np.zeros(0), np.zeros((0, q))
        support = self._state.support
        return support.slots, support["mean"], support["B"][:, :q]

    # Persistence

    def _get_state(self) -> dict[str, Any]:
        state = super()._get_state()
        if self._on_rows is not None:
            state["on_rows"] = self._on_rows.to_state()
        elif self._state is not None:
            state |= self._state.to_state()
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if "on_rows" in state:
            self._on_rows = self._components_so_far()
            self._on_rows.set_state(state["on_rows"])
        if "Z" in state:
            assert isinstance(self._target, Target)  # noqa: S101
            self._state = Components(self.n_components + 1, self._target.n, self._target.c)
            self._state.set_state(state)
            self._raise_bar()

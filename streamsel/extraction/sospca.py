"""SOSPCA: sparse online supervised PCA (Fillmore 2009)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.extractor import Extractor
from streamsel.base.linear_map import Alignment, LinearMap
from streamsel.base.river import Supervised
from streamsel.data.chunks import Stats
from streamsel.extraction._sospca import SOSPCAState
from streamsel.extraction._sospca_rows import SOSPCARowState
from streamsel.params import param
from streamsel.state.base import Floats
from streamsel.state.moments.moments import Moments


class SOSPCA(Extractor, Supervised):
    r"""Sparse online supervised PCA: few components of few variables each.

    The first $q$ columns are the first components. A later column that is more relevant to the
    target than the least relevant component is added as a component; then the two least relevant
    components are rotated in their plane until they are uncorrelated, and the less relevant one is
    dropped. Nearly all columns are less relevant: such a column costs one pass over its values and
    is discarded.

    Parameters
    ----------
    rotation
        `"jacobi"` rotates by $\theta = \frac{1}{2} \mathrm{atan2}(2\sigma_{ab}, \sigma_{aa} -
        \sigma_{bb})$, which decorrelates exactly. `"paper"` rotates by $\theta = \frac{1}{2}
        \arctan(2\sigma_{ab} / \sqrt{\sigma_{aa} \sigma_{bb}})$, the formula as printed, which does
        not decorrelate, but reproduces the paper's example.
    signed
        Whether relevance is the signed correlation, as in the paper, so that strong negative
        correlations are ignored. For one numeric target column only.
    max_features
        Maximum number of variables tracked on rows, well above the number with loadings (the
        support); None for all. When a new variable needs room, the least relevant are evicted,
        except the support, candidates, and variables in their grace period.
    grace_period
        On rows: number of rows during which a new variable cannot be evicted, and after which
        variables may be added to the components again.

    Attributes
    ----------
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables, which are
        never added.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, on arrival, for a target that is incompatible with
        `signed`.

    Notes
    -----
    **Cost.** A rejected column costs one pass over its $n$ values; an accepted one $O(n q + s q)$
    more, $s$ the size of the support. Transforming a row costs $O(s q)$; learning a row $O(c)$ for
    each of its features, and $O(s q + (q + h)^2)$ for the components and the $h \leq \max(32, 2q)$
    candidates; a refresh $O(p (c r + \log p))$.

    **Memory.** $O(n (q + c) + s q)$, $c$ the number of target columns. For columns in random order
    $s$ grows like $q (1 + \ln(p/q))$ with the number $p$ of columns seen, not like $p$. (The
    paper's $(\log p)/p$ is the probability that one more column is accepted, not the number of
    variables kept.) On rows $3c + 6$ numbers per variable and $O((q + h)^2)$, for any number of
    rows.

    **First components on rows.** While there are no components, candidates are added every
    `warm_up` rows: the relevant ones that have been candidates since their first row, whose
    covariances are exact. The first refresh replaces these components by others fitted to all rows
    so far.

    **Rows.** The moments of a variable with the target do not contain its covariances with the
    components. So every `grace_period` rows the variables more relevant than the weakest component
    become candidates, whose covariances are summed from then on; at the next such refresh they are
    added as columns are, the most relevant first. A new variable becomes a candidate at once while
    there is room; its covariances are exact, because it was 0 before. For other variables, the
    covariances since they became candidates represent all rows. So rows should arrive in random
    order, or fade (`fading_factor`). With fading, a variable that has loadings may be added again,
    with its direction outside the span of the components. Relevances and means are always those of
    all rows. The components of a model that has learnt columns are continued with the weight of its
    rows.

    **Order.** The result depends on the order of the columns. It does not depend on how they are
    cut into blocks.

    **Component names.** A component keeps its index and name: the survivor of a rotation keeps the
    lower index, and the last component moves to the freed one. (The paper reorders them.) The pair
    is rotated in the order of relevance, the least first, for any indices: the paper's angle does
    not decorrelate, so the order matters.

    **Missing and new features.** A column with a missing value is refused. In a row, an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable, class or target
    was 0 in earlier rows. A transform ignores features that were never learnt.

    **Stable transforms.** On rows, a transform uses the components of the last refresh. These are
    rotated to differ least from those in use before (orthogonal Procrustes, all scaled to unit
    variance over the rows so far). They span the same space as the components of `loadings` at that
    refresh, each with the scale of the component that had its index; `relevance` refers to the
    components of `loadings`.

    Two relevances that differ by less than 1e-12 count as equal: the earlier column has precedence.

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

    The first component, almost parallel to the target, on the training rows and on a new row:

    >>> model.embedding[:, 0]
    array([ 0.4721, -0.3817, -0.0903])
    >>> model.transform_one({"x1": 2.0, "x2": 1.6667, "x4": -0.6667})
    {'sospca0': 0.4721, 'sospca1': 1.6667}
    """

    _column_state_type = SOSPCAState
    # Components are rotations of a few columns.
    _report_details: ClassVar[dict[str, Any]] = {"noise_floor_applies": True}
    _row_state_type = SOSPCARowState

    rotation: str = param(params.ChoiceRule(("jacobi", "paper")), default="jacobi")
    signed: bool = param(params.FlagRule(), default=False)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 2, "grace_period": 10, "warm_up": 10}
        yield {"n_components": 1, "rotation": "paper", "signed": True, "grace_period": 5}
        yield {"n_components": 3, "grace_period": 10}
        yield {"n_components": 2, "fading_factor": 0.05, "grace_period": 7, "refresh_factor": 1.0}
        yield {"n_components": 1, "max_features": 4, "grace_period": 20}

    def _check_target(self, c: int, *, is_class: bool) -> None:
        if self.signed and (c > 1 or is_class):
            raise ValueError(
                "Expected one numeric target column, as signed=True requires. Got: "
                f"{c} {'classes' if is_class else 'columns'}.\n"
                "Hint: target_type='numeric' takes whole numbers as a quantity; signed=False uses "
                "the absolute correlation."
            )

    # State

    @property
    def _is_signed(self) -> bool:
        return self.signed

    def _new_columns(self, n: int) -> SOSPCAState:
        assert self._space is not None  # noqa: S101
        jacobi = self.rotation == "jacobi"
        return SOSPCAState(self.n_components, n, self._space, jacobi=jacobi, signed=self.signed)

    def _new_row_extension(self) -> SOSPCARowState:
        on_rows = SOSPCARowState(
            self.n_components,
            self.grace_period,
            max_features=self.max_features,
            first=self.warm_up,
            fading=self.fading_factor > 0.0,
            jacobi=self.rotation == "jacobi",
            signed=self.signed,
        )
        if self._target is not None:
            on_rows.continue_from(self._column_state, self._target.n)
        return on_rows

    @property
    def _column_state(self) -> SOSPCAState | None:
        """The components, while only columns are learnt."""
        return cast("SOSPCAState | None", self._columns)

    @property
    def _row_state(self) -> tuple[SOSPCARowState, Moments]:
        """The components and the moments, on rows."""
        return cast("SOSPCARowState", self._row_extension), cast("Moments", self._moments)

    def _alignment(self, new: LinearMap, in_use: LinearMap | None) -> Alignment:
        if not self._phase.on_rows:
            return super()._alignment(new, in_use)
        on_rows, _ = self._row_state
        found = Alignment.identity(self.n_components)
        if in_use is not None:
            found = on_rows.alignment(in_use.known_reference, self._first_weight)
        on_rows.put_in_use(found.matrix)
        return found

    def _next_due(self, rows: int, weight: float) -> int:
        due = super()._next_due(rows, weight)
        on_rows, moments = self._row_state
        # Components that do not exist yet, or that are based on few rows, change at the next
        # refresh.
        next_refresh = rows + on_rows.rows_until_refresh(moments)
        if not on_rows.count:
            return next_refresh
        return min(due, next_refresh) if moments.rows < self.grace_period else due

    @cached_until_update
    def _support(self) -> tuple[list[Hashable], Stats, Floats]:
        """Return names, moments and loadings of the support on rows."""
        on_rows, moments = self._row_state
        return on_rows.support(moments)

    # Results

    def _used_variables(self) -> Collection[Hashable]:
        return self.loadings.keys()

    @property
    def loadings(self) -> dict[Hashable, dict[str, float]]:
        """Weights of the variables: variable -> {component: weight}, without zeros.

        In order of arrival; on rows, in the order in which the variables became candidates.
        """
        return self._weights_of(self._map())

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each component learnt so far (signed if `signed`): name -> relevance."""
        if self._phase.on_rows:
            on_rows, moments = self._row_state
            assert moments.space is not None  # noqa: S101
            found = on_rows.relevances(self._support(), moments.space)
            # A component that no longer varies has relevance 0.
            found = np.where(np.isfinite(found), found, 0.0)
        elif self._column_state is not None:
            found = self._column_state.relevances[: self._column_state.count]
        else:
            return {}
        return dict(zip(self.components, found.tolist(), strict=False))

    def _embedding(self) -> Floats:
        state = self._column_state
        if state is None:
            return np.zeros((self.n_rows, 0))
        return state.Z[: state.count].T.copy()

    def to_matrix(self, names: Sequence[Hashable]) -> Any:
        """Return the loadings of these variables, in this order: the matrix B of the paper.

        Parameters
        ----------
        names
            Names of the p variables, one per row of the matrix.

        Returns
        -------
        A `scipy.sparse.csr_array` of shape (p, q), zero for a variable without loadings.

        Raises
        ------
        ValueError
            If a variable of the support is not among the names, or a name occurs twice.
        """
        from scipy.sparse import csr_array

        index_of = {name: i for i, name in enumerate(names)}
        if len(index_of) < len(names):
            raise ValueError("Expected distinct names. Got: a name twice.")
        rows, columns, weights = [], [], []
        for variable, loading in self.loadings.items():
            if variable not in index_of:
                raise ValueError(
                    f"Expected names that include the whole support. Got: names without "
                    f"{variable!r}.\n"
                    "Hint: list(model.loadings) is the support."
                )
            for component, weight in loading.items():
                rows.append(index_of[variable])
                columns.append(int(component.removeprefix("sospca")))
                weights.append(weight)
        return csr_array((weights, (rows, columns)), shape=(len(index_of), self.n_components))

    @property
    def _stop_reason(self) -> str:
        return "no other column adds to what they explain"

    def _component_map(self) -> LinearMap:
        q, state = self.n_components, self._column_state
        if self._phase.on_rows:
            names, stats, B = self._support()
            return LinearMap(names, stats.mean, B[:, :q])
        if state is None:
            return LinearMap.empty(q)
        return LinearMap(state.names, state.table["mean"], state.table["B"][:, :q])

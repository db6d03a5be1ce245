"""Define the base class of selectors."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.direction import directions_of
from streamsel.base.fill_missing import fill_row, fill_rows
from streamsel.base.frame_columns import as_frame, frame_columns, locate_columns, select_features
from streamsel.base.leakage import outcome_warning
from streamsel.base.learner import Learner
from streamsel.base.report import Report, count_excluded, is_above, number
from streamsel.base.row_values import not_a_row_error
from streamsel.params import param
from streamsel.state.base import ColumnState, Floats, Indices, VariableState
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.pool.pool import MOST_RELEVANT, NO_PICKS, Picks, Pool, Ranking
from streamsel.state.similar import (
    correlations_among,
    count_near_duplicates,
    most_correlated,
    similar_to,
)
from streamsel.stream import ColumnStream
from streamsel.targets.glm import FAMILIES
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.target import Target

# Description of the parameter of selectors that keep statistics of all columns, or a bounded pool.
MAX_CANDIDATES = r"""
None keeps the required statistics of every column: exact, $O(c p)$ memory. A number
$m \geq k$ keeps a pool of the best $m$ to $2m$ candidates: constant memory; `n_certified`
gives the number of picks that are certified to be the same as those of an unbounded pool.
"""
# Value of k that selects every non-constant variable, in order of score.
EVERY_COLUMN = "all"
# Maximum number of alternatives reported per selected variable.
_MAX_ALTERNATIVES = 3
# At a refresh, at most one in this many of the variables beyond the best k is kept by hysteresis.
_HYSTERESIS_DIVISOR = 8

State = TypeVar("State", bound=VariableState)


class Selector(Learner, Generic[State]):
    """Base class of selectors, which keep original variables: `_select` picks them.

    `Selector[VariableState]` requires only the moments of the variables. A method whose
    `_needs_samples` is True may also use `products`, the correlations of its variables, and, with
    windows of rows, their `samples`, as in `Selector[Pool]`.
    """

    _column_state_type: ClassVar[type[ColumnState]] = Pool
    # Whether a pool stores the observations of its columns.
    _needs_samples: ClassVar[bool] = False
    # Whether a pick is certified as soon as its score is above the bounds of all discarded columns.
    # Otherwise the whole selection is certified, or none of it.
    _bound_certifies: ClassVar[bool] = True

    max_candidates: int | None = param(
        params.IntRule(1, optional=True), default=None, doc=MAX_CANDIDATES
    )

    warm_up: int = param(
        params.IntRule(0),
        default=50,
        doc="""
        Number of rows before a selection is in use: until then a transform returns all features. A
        model that has learnt columns uses its selection at once.
        """,
    )

    missing: str = param(
        params.ChoiceRule(("pass", "mean")),
        default="pass",
        doc="""
        How a transform handles None and NaN: `"pass"` leaves them as they are, `"mean"` replaces
        them by the mean of the variable over the rows so far, or by 0.0 if it has none.
        """,
    )
    hysteresis: float = param(
        params.FloatRule(1.0),
        default=3.0,
        doc="""
        Hysteresis: at a refresh a variable in use is kept while it is among the best `hysteresis`
        $k$, but at most among $k$ and an eighth of the others; at 1 only the best $k$ are kept.
        """,
    )

    def _check_parameters(self) -> None:
        k, capacity = self._n_requested, self.max_candidates
        if k is not None and capacity is not None and capacity < k:
            expected = f"None or at least k = {k}"
            raise params.parameter_error(type(self).__name__, "max_candidates", expected, capacity)
        self._check_exceeds("k", k, "max_features")

    # Implemented by methods

    @abc.abstractmethod
    def _select(self, view: State, k: int) -> Picks:
        """Return the best k variables of the state; fewer if no others are relevant."""

    def _ranking(self) -> Ranking:
        """Return how a bounded pool ranks its columns; by relevance unless a method overrides it.

        A column whose upper bound is below the lowest score kept is evicted; see
        `_bound_certifies`.
        """
        return MOST_RELEVANT

    def _relevances(self, view: VariableState, indices: Indices) -> Floats:
        return view.relevance(indices)

    @property
    def _score_meaning(self) -> str:
        """Definition of the scores, for reports."""
        return "the criterion that the variable was ranked by"

    def _extra_report_columns(self) -> Mapping[str, Mapping[Hashable, float]]:
        """Return extra report columns of the selected variables: title -> {name: value}."""
        return {}

    def _extra_fields(self) -> Sequence[str] | Mapping[str, tuple[int, ...]]:
        """Return names of extra fields of the pool's table, one number each; or with shapes."""
        return ()

    @property
    def _n_requested(self) -> int | None:
        """Number of variables requested; None for all relevant ones."""
        k: int | str | None = getattr(self, "k")  # noqa: B009 (declared where it is needed)
        return None if k == EVERY_COLUMN or k is None else int(k)

    # Shared behaviour

    def _new_columns(self, n: int) -> ColumnState:
        return self._new_pool(n, self.max_candidates)

    def _new_pool(self, n: int, limit: int | None) -> Pool:
        """Return an empty pool of the method, that is cut back to `limit`; None keeps all."""
        target = self._target
        return Pool(
            self._space,
            n,
            limit,
            self._ranking(),
            samples=self._needs_samples,
            extra_fields=self._extra_fields(),
            normal_scores=self._normal_scores(),
            target_rows=target.Y[: target.c] if isinstance(target, Target) else None,
        )

    def _normal_scores(self) -> NormalScores | None:
        target, space = self._target, self._space
        if not isinstance(target, Target) or space is None:
            return None
        # Residuals of null models are scores already, and permutations assume no distribution.
        if self.target_type in ("survival", *FAMILIES) or self.permutations:
            return None
        return NormalScores.of(target, space)

    @cached_until_update
    def _picks(self) -> Picks:
        state: Any = self._state
        if state is None:
            return NO_PICKS
        return self._select(
            state, len(state.names) if self._n_requested is None else self._n_requested
        )

    def _picked(self) -> Indices:
        """Return the indices of the selected variables, in order."""
        return np.asarray(self._picks().indices, dtype=np.intp)

    @cached_until_update
    def _selected(self) -> list[Hashable]:
        state = self._state
        return [] if state is None else [state.names[j] for j in self._picks().indices]

    def _protected(
        self,
        moments: Moments,  # noqa: ARG002
        extension: RowExtension | None,  # noqa: ARG002
    ) -> Collection[Hashable]:
        selected, in_use = self._selected(), self._refresh.stored or ()
        union = {*selected, *in_use}
        # If both would fill the table, protect only those in use, so that new variables find room.
        full = self.max_features is not None and len(union) >= self.max_features
        return (in_use or selected) if full else union

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order; fewer than k if no others are relevant."""
        return list(self._selected())

    @property
    def members(self) -> dict[Hashable, list[Hashable]]:
        """Columns of each selected group, in order: name -> names; a single column has itself."""
        return self._members_of(self._selected())

    def _members_of(self, names: Collection[Hashable]) -> dict[Hashable, list[Hashable]]:
        """Return the columns of groups, by the names of the groups."""
        groups, state = self._phase.groups, self._columns
        if groups is not None:
            return {name: list(groups.get(name, (name,))) for name in names}
        if state is None or not state.is_grouped:
            return {name: [name] for name in names}
        members = state.members_of([state.index_of[name] for name in names])
        return dict(zip(names, members, strict=True))

    @property
    def scores(self) -> dict[Hashable, float]:
        """Score of each selected variable at its selection, in order: name -> score."""
        return dict(zip(self._selected(), self._picks().scores, strict=True))

    @property
    def rounds(self) -> dict[Hashable, int]:
        """Round in which each variable was selected, in order: name -> 0, 1, ..."""
        return dict(zip(self._selected(), self._picks().rounds, strict=True))

    @property
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each selected variable, in order: name -> relevance."""
        indices = self._picked()
        if self._state is None or not indices.size:
            return {}
        values = self._relevances(self._state, indices)
        return dict(zip(self._selected(), values.tolist(), strict=True))

    def _noise_relevance(self) -> list[float]:
        """Return the values of the selected variables that are compared with the noise floor."""
        state = self._state
        if state is None or self._normal_scores() is None:
            return [*self.relevance.values()]
        values: list[float] = state.noise_relevance(self._picked()).tolist()
        return values

    @property
    def adjusted_p_values(self) -> dict[Hashable, float]:
        """P-value of each selected variable, adjusted for all columns: name -> p, in order.

        The probability that the largest relevance of all columns is at least as large if none is
        associated with the target: step-down permutation p-values (Westfall and Young 1993), which
        are computed in full for the 64 most relevant columns and bounded from above for the others.
        Approximate with covariates or relatedness, as `noise_floor`. NaN without permutations.
        """
        found = self._significance.adjusted_p_values(np.array([*self.relevance.values()]))
        return dict(zip(self._selected(), found.tolist(), strict=True))

    @property
    def n_certified(self) -> int:
        """Number of leading picks certified to be those of a selection over all columns at once."""
        state, picks = self._state, self._picks()
        if state is None:
            return 0
        if self._bound_certifies:
            return state.count_certified(picks.scores, picks.rounds)
        return len(picks.indices) if state.complete else 0

    def _used_variables(self) -> Collection[Hashable]:
        return self._selected()

    @property
    def _uncertifiable_reason(self) -> str | None:
        if self._n_requested is None:
            return "which selects any number of variables"
        if self._phase.without_target:
            return "without a target, so that there is no noise floor"
        return None

    def _is_all_certified(self) -> bool:
        if self.n_certified < (self._n_requested or 0):
            return False
        floor = self._report_noise_floor()
        return all(is_above(number(found), floor) for found in self._noise_relevance())

    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show.

        Returns
        -------
        One row per selected variable, in order: its relevance, score and round, whether it is
        certified to be the pick of a selection over all columns at once, and whether it is above
        the noise floor. The results are empty before the first column or row.

        Notes
        -----
        Costs one selection from the state, which is cached until the model learns more. On rows the
        report shows the current selection, not the snapshot `in_use`.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import ProjSe
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 50))
        >>> model = ProjSe(2)
        >>> model.learn_target(X[:, 7] - X[:, 42])
        >>> model.learn_columns(X)
        >>> report = model.report()
        >>> report.noise_floor
        0.32
        >>> for row in report.results:
        ...     print(row["name"], row["relevance"], row["certified"], row["above_noise"])
        7 0.73 True True
        42 0.67 True True
        """
        floor = self._report_noise_floor()
        relevance, scores, rounds = self.relevance, self.scores, self.rounds
        certified, extra_columns, arrivals = (
            self.n_certified,
            dict(self._extra_report_columns()),
            self._arrivals(),
        )
        if self._significance.null is not None:
            extra_columns["p_adjusted"] = self.adjusted_p_values
        if self._phase.is_grouped:
            extra_columns |= self._group_columns()
        noise_relevance = self._noise_relevance()
        found = []
        for rank, name in enumerate(self._selected()):
            row = {"name": name, "relevance": number(relevance[name])}
            row |= {"score": number(scores[name]), "round": rounds[name]}
            row |= {"certified": rank < certified, "arrival": arrivals[rank]}
            row |= {"above_noise": is_above(number(noise_relevance[rank]), floor)}
            found.append(
                row | {title: number(value[name]) for title, value in extra_columns.items()}
            )
        details: dict[str, Any] = {"n_certified": certified, "n_passes": self.n_passes}
        details["pool_complete"] = self._state is None or self._state.complete
        counts = self._phase.group_counts
        if counts is not None:
            details["n_columns"] = self.n_columns
        report = self._report(floor, "selected", found, self._n_requested, details)
        if counts is not None:
            report = replace(report, columns_seen=counts.n, columns_constant=counts.n_constant)
        alternatives, excluded = None, count_excluded(report, [], [], None)
        if self._state is not None:
            alternatives = self._alternatives()
            # Groups have neither a direction nor correlations.
            report = report if self._phase.is_grouped else self._with_relations(report)
            similar = [
                index
                for indices, _ in self._similar_variables() or ()
                for index in indices.tolist()
            ]
            similar = self._state.relevance(np.unique(np.array(similar, dtype=np.intp))).tolist()
            excluded = count_excluded(report, [*relevance.values()], similar, self._state)
        leak = outcome_warning(found)
        return replace(
            report,
            alternatives=alternatives,
            excluded=excluded,
            score_meaning=self._score_meaning,
            warnings=report.warnings if leak is None else (leak, *report.warnings),
        )

    def _group_columns(self) -> dict[str, dict[Hashable, float]]:
        """Return the report columns of groups: their numbers of members, and of dimensions."""
        state = self._columns
        sizes = {name: float(len(members)) for name, members in self.members.items()}
        if state is None or not state.is_grouped:
            return {"members": sizes, "degrees_of_freedom": dict.fromkeys(sizes, 1.0)}
        rank: Any = state.stats(self._picked())
        return {
            "members": sizes,
            "degrees_of_freedom": dict(zip(self._selected(), rank.rank.tolist(), strict=True)),
        }

    def _with_relations(self, report: Report) -> Report:
        """Return a report with the relations of selected variables to the target and each other."""
        state, names = self._state, self._selected()
        assert state is not None  # noqa: S101
        picked = self._picked()
        directions = directions_of(self._phase, state, picked)
        R = correlations_among(state, picked)
        closest = None
        if R is not None:
            pairs = zip(names, most_correlated(R), strict=False)
            closest = {name: (names[j], r) for name, (j, r) in pairs}
        return replace(
            report,
            directions=None if directions is None else dict(zip(names, directions, strict=True)),
            redundancy=closest,
            n_near_duplicates=None if R is None else count_near_duplicates(R),
        )

    @cached_until_update
    def _similar_variables(self) -> list[tuple[Indices, Floats]] | None:
        """Return the tracked variables similar to each selected one, with their correlations."""
        state = self._state
        return None if state is None else similar_to(state, self._picked())

    def _alternatives(self) -> dict[Hashable, list[tuple[Hashable, float]]] | None:
        """Return the alternatives to each selected variable: name -> at most three (name, r)."""
        found, state = self._similar_variables(), self._state
        if found is None or state is None:
            return None
        names = state.names
        return {
            name: [
                (names[j], float(x))
                for j, x in zip(indices[:_MAX_ALTERNATIVES], r[:_MAX_ALTERNATIVES], strict=True)
            ]
            for name, (indices, r) in zip(self._selected(), found, strict=True)
        }

    def _arrivals(self) -> list[int | None]:
        """Return the arrival index of each selected variable; None where it is not known."""
        state, indices = self._state, self._picked()
        arrivals = None if state is None else state.arrivals(indices)
        if arrivals is not None:
            return [int(arrival) for arrival in arrivals]
        in_order = self._moments is not None and self._moments.complete
        names = self._moments.index_of if in_order and self._moments is not None else {}
        return [names.get(name) for name in self._selected()]

    # Snapshot in use, and transforms

    @cached_until_update
    def _current(self) -> dict[Hashable, int] | None:
        """Return the selected variables, each with its rank."""
        # An empty window is data too: its selection is empty, not missing.
        return _rank_of(self._selected()) if self._has_results else None

    @property
    def _has_results(self) -> bool:
        return not self._phase.is_blank

    @property
    def _refreshes_always(self) -> bool:
        return self.refresh_factor == 1.0 and (self.hysteresis == 1.0 or self._n_requested is None)

    def _refreshed(self, *, keep_stable: bool) -> dict[Hashable, int]:
        state: Any = self._state
        k = self._n_requested
        best: Sequence[Hashable]
        if keep_stable and self._refresh.stored and k is not None and self.hysteresis > 1.0:
            names = state.names
            # With few variables the best `hysteresis` * k may be all of them, and none would ever
            # be replaced.
            margin = max(0, len(names) - k) // _HYSTERESIS_DIVISOR
            size = min(math.ceil(self.hysteresis * k), k + margin)
            best = [names[j] for j in self._select(state, size).indices]
        else:
            best = self._selected()
        return _rank_of(
            _keep_positions([*(self._refresh.stored or ())], best, len(best) if k is None else k)
        )

    @property
    def in_use(self) -> list[Hashable]:
        """Names of the variables that a transform keeps; for groups, those of their members.

        Empty while a transform returns all features, before the first selection; and if nothing is
        selected, as from a full window without features: a transform then returns none.
        """
        return list(self._features_in_use() or ())

    def _features_in_use(self) -> dict[Hashable, int] | None:
        """Return the features that a transform keeps, each with its rank; None for all."""
        in_use: dict[Hashable, int] | None = self._in_use()
        if in_use is None or not self._phase.is_grouped:
            return in_use
        known: tuple[Any, dict[Hashable, int]] = self._cache.get("features_in_use", (None, {}))
        if known[0] is not in_use:
            members = self._members_of(in_use)
            known = in_use, _rank_of(dict.fromkeys(chain.from_iterable(members.values())))
            self._cache["features_in_use"] = known
        return known[1]

    def _snapshot_to_state(self, snapshot: dict[Hashable, int] | None) -> list[Hashable] | None:
        return None if snapshot is None else list(snapshot)

    def _snapshot_from_state(self, state: list[Hashable] | None) -> dict[Hashable, int] | None:
        if state is None:
            return None
        self._check_tracked(state)
        k = self._n_requested
        if k is not None and len(state) > k:
            raise ValueError(f"Expected at most {k} names in use. Got: {state!r}.")
        return _rank_of(state)

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Keep the selected features of a row; before the warm-up ends, all but covariates.

        Parameters
        ----------
        x
            A row. Selected features that it lacks remain absent; all others are dropped. Text and
            dates are not encoded: if the columns were (`stream.encode`), pass their indicators, or
            a frame of one row to `transform_many`.

        Returns
        -------
        The features by name, in order of selection, with their values unchanged: None, NaN and
        text are passed on. With `missing="mean"`, those that are None or NaN have the mean of
        earlier rows.

        Raises
        ------
        TypeError
            If x is not a mapping.

        Notes
        -----
        Costs O(k), or O(len(x)) for rows with fewer features than k.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> model = SelectKBest(2)
        >>> model.learn_target([1.0, 2.0, 3.0, 5.0])
        >>> X = np.array([[1, 5, 2], [2, 4, 2], [3, 4, 2], [4, 1, 1]])
        >>> model.learn_columns(X, ["a", "b", "c"])
        >>> model.transform_one({"a": 7, "b": None, "c": 2, "new": 1})
        {'a': 7, 'b': None}
        >>> model.transform_one({"a": 7, "c": 2})
        {'a': 7}
        """
        if type(x) is not dict and not isinstance(x, Mapping):
            raise not_a_row_error(x)
        in_use: Any = self._features_in_use()
        if in_use is None:
            row = {name: x[name] for name in x if name not in (self.covariates or ())}
            return fill_row(row, self._mean_of) if self.missing == "mean" else row
        if len(x) < len(in_use):
            # Sparse rows, such as texts, have few of the selected features.
            in_use = sorted(x.keys() & in_use.keys(), key=in_use.__getitem__)
        if self.missing == "mean":
            return fill_row({name: x[name] for name in in_use if name in x}, self._mean_of)
        return {name: x[name] for name in in_use if name in x}

    def _mean_of(self, name: Hashable) -> float:
        """Return the mean of a variable over the rows so far; 0 if it is not tracked."""
        moments, columns = self._moments, self._columns
        if moments is not None:
            index = moments.index_of.get(name)
            return 0.0 if index is None else moments.mean_of(index)
        index = None if columns is None else columns.index_of.get(name)
        if columns is not None and columns.is_grouped:
            return self._means_of_members().get(name, 0.0)
        if columns is None or index is None:
            return 0.0
        stats = columns.stats(np.array([index]))
        return float(stats.mean[0] + stats.mean_error[0])

    @cached_until_update
    def _means_of_members(self) -> dict[Hashable, float]:
        """Return the means of the members of groups."""
        columns = self._columns
        return {} if columns is None else columns.means_of_members()

    def transform_many(self, X: Any) -> Any:
        """Keep the selected variables of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library with those selected columns that X has, in order of selection;
        an array of shape (n, number of variables in use) for any other input. X itself, without
        covariates, before the warm-up ends. Missing values are passed on, or with `missing="mean"`
        replaced by the mean of earlier rows.

        Raises
        ------
        ValueError
            For an array or matrix without a column for each selected variable.
        TypeError
            For an X of another type, such as a list.

        Notes
        -----
        Costs one copy of the selected columns, O(n k); other columns are not read, except from a
        `ColumnStream` that cannot take columns by name.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
        >>> model = SelectKBest(2)
        >>> model.learn_target(2.0 * X["d"] - X["b"])
        >>> model.learn_columns(X)
        >>> list(model.transform_many(X).columns)
        ['d', 'b']
        >>> list(model.transform_many(X[["a", "b"]]).columns)
        ['b']
        """
        in_use = self._features_in_use()
        if in_use is None:
            X = self._without_covariates(X)
            fills = self.missing == "mean" and not isinstance(X, ColumnStream)
            return fill_rows(X, None, self._mean_of) if fills else X
        names = list(in_use)
        columns = frame_columns(X, names)
        values = select_features(X, names) if columns is None else columns[1]
        return fill_rows(values, names, self._mean_of) if self.missing == "mean" else values

    def _without_covariates(self, X: Any) -> Any:
        frame = as_frame(X) if self.covariates else None
        if frame is None or self.covariates is None:
            return X
        _, covariates = locate_columns(frame, self.covariates)
        kept = [j for j in range(len(frame.columns)) if j not in covariates]
        return frame[:, kept].to_native()


def _rank_of(names: Iterable[Hashable]) -> dict[Hashable, int]:
    return {name: rank for rank, name in enumerate(names)}


def _keep_positions(before: list[Hashable], best: list[Hashable], k: int) -> list[Hashable]:
    """Return k of the best names; a name of `before` that is among the best keeps its position.

    The remaining positions are filled with the others, best first.
    """
    kept = {*before} & {*best}
    new = [name for name in best if name not in kept][::-1]
    filled = [name if name in kept else new.pop() for name in before if name in kept or new]
    return (filled + new[::-1])[: min(k, len(best))]

"""Stability of a selector on given data: repeated selection on subsamples of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamsel import params
from streamsel.base.block_callback import OnBlock
from streamsel.base.report import Report
from streamsel.evaluate.model_batch import (
    MAX_BYTES,
    ModelBatch,
    Rows,
    check_learner,
    count_rows,
    prepared_learner,
    takes_groups,
)
from streamsel.evaluate.stability import Stability, selection_stability
from streamsel.stream.inputs import numeric_stream
from streamsel.targets.encoding import only_column

# Thresholds of poor and of excellent agreement in Nogueira et al. (2018), after Fleiss.
POOR, EXCELLENT = 0.4, 0.75


@dataclass(frozen=True)
class SubsampleStability:
    """Selections of a selector on subsamples of the rows, and their stability.

    Parameters
    ----------
    learner, parameters
        Its class, and its parameters by name.
    rows, rows_drawn
        Number of rows, and number of rows of a subsample.
    n_variables
        Number of variables that vary, and so could be selected.
    share, seed, level
        As requested.
    selected
        Selection from all rows, in order.
    selections
        Selection from each subsample, in order.
    index
        Nogueira's index of the selections and its interval (`selection_stability`); None if it is
        undefined: every selection is empty, or every one contains all variables.

    Attributes
    ----------
    n_subsamples
        Number of subsamples.
    frequency
        Share of the subsamples in which a variable was selected, for all variables selected at
        least once: name -> share, in descending order.
    rating
        Verbal rating of the index: "poor" below 0.4, "excellent" above 0.75, "intermediate"
        between, "undefined" without an index.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest
    >>> from streamsel.evaluate import subsample_stability
    >>> X = np.random.default_rng(0).standard_normal((60, 100))
    >>> found = subsample_stability(SelectKBest(k=2), X, X[:, 3] + X[:, 8], n_subsamples=20)
    >>> found.frequency[3], found.rating
    (1.0, 'excellent')
    """

    learner: str
    parameters: dict[str, Any]
    rows: int
    rows_drawn: int
    n_variables: int
    share: float
    seed: int
    level: float
    selected: list[Hashable]
    selections: list[list[Hashable]]
    index: Stability | None

    @property
    def n_subsamples(self) -> int:
        """The number of subsamples."""
        return len(self.selections)

    @property
    def frequency(self) -> dict[Hashable, float]:
        """The share of subsamples in which each variable was selected, in descending order."""
        counts = self._counts()
        return {name: count / self.n_subsamples for name, count in counts.items()}

    @property
    def rating(self) -> str:
        """Verbal rating of the index."""
        if self.index is None:
            return "undefined"
        if self.index.value < POOR:
            return "poor"
        return "excellent" if self.index.value > EXCELLENT else "intermediate"

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dict, except for names that are not strings."""
        ranks = self._ranks()
        return {
            "kind": "stability",
            "class": self.learner,
            "parameters": self.parameters,
            "rows": self.rows,
            "rows_drawn": self.rows_drawn,
            "n_variables": self.n_variables,
            "n_subsamples": self.n_subsamples,
            "share": self.share,
            "seed": self.seed,
            "level": self.level,
            "index": None if self.index is None else self.index._asdict(),
            "rating": self.rating,
            "selected": self.selected,
            "selections": self.selections,
            "frequency": [
                {
                    "name": name,
                    "count": count,
                    "frequency": count / self.n_subsamples,
                    "rank": ranks.get(name),
                }
                for name, count in self._counts().items()
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the object that `as_dict` described; JSON may have changed the types of names.

        Raises
        ------
        ValueError
            For any other dict.
        """
        fields = ("parameters", "rows", "rows_drawn", "n_variables", "share", "seed", "level")
        try:
            index = data["index"]
            return cls(
                learner=data["class"],
                selected=_names_of_json(data["selected"]),
                selections=[_names_of_json(names) for names in data["selections"]],
                index=None if index is None else Stability(**index),
                **{name: data[name] for name in fields},
            )
        except (KeyError, TypeError) as error:
            raise ValueError(
                "Expected the output of SubsampleStability.as_dict() or `streamsel stability "
                f"--json`. Got: something else ({error!r})."
            ) from error

    def _ranks(self) -> dict[Hashable, int]:
        return {name: rank for rank, name in enumerate(self.selected, start=1)}

    def _counts(self) -> dict[Hashable, int]:
        """Return selection counts in descending order; ties in the order of the full selection."""
        counts = Counter(name for names in self.selections for name in names)
        ranks = self._ranks()
        order = sorted(counts, key=lambda name: (-counts[name], ranks.get(name, len(counts))))
        return {name: counts[name] for name in order}


def _names_of_json(names: Iterable[Any]) -> list[Hashable]:
    """Return names, whose tuples JSON has written as lists."""
    return [tuple(name) if isinstance(name, list) else name for name in names]


def subsample_stability(
    learner: Any,
    X: Any,
    y: Any = None,
    *,
    covariates: Any = None,
    weights: Any = None,
    n_subsamples: int = 50,
    share: float = 0.5,
    seed: int = 0,
    level: float = 0.95,
    max_bytes: int = MAX_BYTES,
    on_block: OnBlock | None = None,
) -> SubsampleStability:
    """Return the selections of a selector on many subsamples of the rows, and their stability.

    One model per subsample, and one for all rows, learn the same columns: from a copy of these, if
    that takes less memory than the models together, or in as few passes as `max_bytes` allows.

    Parameters
    ----------
    learner
        A selector, such as `ProjSe`; it is not changed.
    X
        The columns, as in `learn_columns`; in groups too (`stream.grouped`), which are then the
        variables.
    y, covariates, weights
        As in `learn_target`, for all rows.
    n_subsamples
        Number of subsamples, at least 2.
    share
        Share of the rows in a subsample, drawn without replacement; stratified by class, with at
        least one row of each. Survival targets are stratified by the event, and counts by whether
        they are 0.
    seed
        Random seed of the draws.
    level
        Confidence level of the interval of the index.
    max_bytes
        Memory limit for the models of a pass together, in bytes: it determines how many models
        learn at a time, and how often the columns are read. A copy takes up to half of it.
    on_block
        Called with the model of all rows after each block of the first pass, to show progress.

    Raises
    ------
    ValueError, TypeError
        If the learner raises it; for a learner that is not a selector, and parameters out of range.

    See Also
    --------
    selection_stability : the index of existing selections.

    Notes
    -----
    Time is that of learning ``1 + n_subsamples * share`` times as many rows. Memory is bounded by
    `max_bytes`, or by the memory of one model if that is larger. A source that can be read only
    once suffices if all models, or a copy of the columns, fit. The models of a selector with
    ``exact=True`` and a bounded pool read the columns individually, one after the other.

    In a copy, a dense column of whole numbers from -127 to 127, and at most one other value, such
    as an imputed mean, takes a byte per row; any other takes as much as in its block.

    Whether integers are classes is inferred from all rows, not per subsample.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import ProjSe
    >>> from streamsel.evaluate import subsample_stability
    >>> X = np.random.default_rng(0).standard_normal((80, 500))
    >>> found = subsample_stability(ProjSe(k=3), X, X[:, 5] + 0.1 * X[:, 9], n_subsamples=10)
    >>> found.selected[0], found.frequency[5]
    (5, 1.0)
    """
    y = only_column(y)
    stream = numeric_stream(X, groups=takes_groups(learner, y, covariates, weights))
    subsampling = Subsampling(
        learner,
        y,
        covariates,
        weights,
        n=count_rows(stream, y),
        n_subsamples=n_subsamples,
        share=share,
        seed=seed,
        level=level,
        max_bytes=max_bytes,
    )
    subsampling.model_batch.learn(
        stream, lambda _: None if on_block is None else on_block(subsampling.full_model)
    )
    return subsampling.result()


class Subsampling:
    """Models of a selector on subsamples of the rows, trained in shared passes over the columns.

    Parameters
    ----------
    learner, y, covariates, weights, n_subsamples, share, seed, level, max_bytes
        As in `subsample_stability`.
    n
        Number of rows.

    Attributes
    ----------
    model_batch
        The models, which learn columns together.
    full_model
        The model of all rows among them, until it has learnt all columns; then None.
    full_report
        Its report, from then on.
    """

    full_report: Report

    def __init__(
        self,
        learner: Any,
        y: Any,
        covariates: Any,
        weights: Any,
        *,
        n: int,
        n_subsamples: int,
        share: float,
        seed: int,
        level: float,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        params.check(
            "subsample_stability",
            {
                "n_subsamples": params.IntRule(2),
                "share": params.FloatRule(0.0, open=True, below=1.0),
                "seed": params.IntRule(0),
                "level": params.FloatRule(0.0, open=True, below=1.0),
                "max_bytes": params.IntRule(1),
            },
            {
                "n_subsamples": n_subsamples,
                "share": share,
                "seed": seed,
                "level": level,
                "max_bytes": max_bytes,
            },
        )
        check_learner(learner)
        if not hasattr(learner, "selected"):
            raise TypeError(
                "Expected learner: a selector, such as ProjSe(k=10). Got: "
                f"{type(learner).__name__}, which extracts components."
            )
        model, strata = prepared_learner(learner, y, covariates, weights)
        self._subsamples = draw(n, strata, n_subsamples, share, seed)
        self._settings = {"share": float(share), "seed": int(seed), "level": float(level)}
        self._parameters = dict(learner._get_params())
        all_rows = np.arange(n)
        members = [(model.clone(), rows) for rows in (all_rows, *self._subsamples)]
        self._selections: dict[int, list[Hashable]] = {}
        self.model_batch = ModelBatch(
            members, y, covariates, weights, n=n, finish=self._finish, max_bytes=max_bytes
        )
        self.full_model = members[0][0]
        self._learner = type(learner).__name__

    def _finish(self, number: int, model: Any) -> None:
        self._selections[number] = list(model.selected)
        if number == 0:
            self.full_report, self._n_variables = model.report(), model._phase.n_varying
            # Its state may be large.
            self.full_model = None

    def result(self) -> SubsampleStability:
        """Return the selections and their stability, after the last column."""
        report = self.full_report
        selections = [self._selections[i] for i in range(1, len(self._subsamples) + 1)]
        n_variables = self._n_variables
        sizes = sum(map(len, selections))
        index = None
        if 0 < sizes < len(selections) * n_variables:
            level = self._settings["level"]
            index = selection_stability(selections, n_variables, level=level)
        return SubsampleStability(
            learner=self._learner,
            parameters=self._parameters,
            rows=report.rows,
            rows_drawn=len(self._subsamples[0]),
            n_variables=n_variables,
            selected=self._selections[0],
            selections=selections,
            index=index,
            **self._settings,  # type: ignore[arg-type]
        )


def draw(n: int, codes: Any, n_subsamples: int, share: float, seed: int) -> list[Rows]:
    """Draw subsamples of the rows without replacement, in order.

    Parameters
    ----------
    n
        Number of rows.
    codes
        (n,) classes, or other strata, for stratification, with at least one row of each; or None.
    n_subsamples, share, seed
        Number of subsamples, share of the rows, and random seed.
    """
    strata = (
        [np.arange(n)]
        if codes is None
        else [np.flatnonzero(codes == code) for code in np.unique(codes)]
    )
    sizes = [max(1, round(share * len(rows))) for rows in strata]
    if not 2 <= sum(sizes) < n:
        raise ValueError(
            f"Expected share for subsamples of at least 2 rows, but not all. Got: share={share}, "
            f"{sum(sizes)} of {n} rows."
        )
    rng = np.random.default_rng(seed)
    return [
        np.sort(
            np.concatenate(
                [rng.choice(rows, m, replace=False) for rows, m in zip(strata, sizes, strict=True)]
            )
        )
        for _ in range(n_subsamples)
    ]

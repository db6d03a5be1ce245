"""Selection with a bound on the false discovery rate, by knockoffs."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel.data.names import knockoff_source
from streamsel.evaluate._knockoff_checks import KnockoffChecks
from streamsel.selection.lasso import Lasso
from streamsel.stream import as_stream
from streamsel.stream.knockoffs import WithKnockoffs
from streamsel.targets.kept_rows import MISSING_POLICIES, kept_rows
from streamsel.targets.target import Target, complete_target

Floats = NDArray[np.float64]

# Rows per variable at the end of the path, and limits of the number of variables there.
_ROWS_PER_VARIABLE, _MIN_K, _MAX_K = 4, 10, 500
_FDR = params.FloatRule(0.0, open=True, below=1.0)


@dataclass(frozen=True)
class KnockoffSelection:
    """Variables selected by knockoffs, and the statistics that decide.

    Parameters
    ----------
    fdr, window, seed
        As requested.
    n_columns
        Number of columns that have a knockoff that differs from them.
    statistics
        Name -> $W$, for the columns that the model uses, or whose knockoff it uses; in descending
        order. It is positive if the column matters more than its knockoff.
    model
        The fitted model of the columns and their knockoffs, which are named `("knockoff", name)`;
        None if there is none.
    distant_share
        Share of a sample of columns that depend on distant ones, as in `WithKnockoffs`.

    Attributes
    ----------
    selected
        Names of the selected variables, in descending order of $W$.
    threshold
        The smallest $W$ of a selected variable; infinite if none is selected.
    q_values
        Name -> the smallest level at which the variable would be selected, for each column of
        positive $W$.

    Examples
    --------
    >>> from streamsel.evaluate import KnockoffSelection
    >>> W = {"a": 3.0, "b": 2.0, "c": 1.0, "d": -0.5}
    >>> found = KnockoffSelection(0.4, 5, 0, 1000, W)
    >>> found.selected, found.threshold
    (['a', 'b', 'c'], 1.0)
    >>> found.q_values["c"]
    0.3333333333333333
    """

    fdr: float
    window: int
    seed: int
    n_columns: int
    statistics: Mapping[Hashable, float]
    model: Any = None
    distant_share: float = math.nan

    def __post_init__(self) -> None:
        params.check("KnockoffSelection", {"fdr": _FDR}, {"fdr": self.fdr})
        _expect_finite(self.statistics, "statistics")

    @property
    def q_values(self) -> dict[Hashable, float]:
        """The smallest level at which each variable would be selected."""
        names = [name for name, w in self.statistics.items() if w > 0.0]
        names.sort(key=self.statistics.__getitem__, reverse=True)
        w = np.array([self.statistics[name] for name in names])
        below = np.sort([-value for value in self.statistics.values() if value < 0.0])
        # Columns of equal W are selected together.
        n_above = np.searchsorted(-w, -w, side="right")
        n_below = below.size - np.searchsorted(below, w)
        estimate = np.minimum((1.0 + n_below) / np.maximum(1, n_above), 1.0)
        smallest = np.minimum.accumulate(estimate[::-1])[::-1]
        return dict(zip(names, smallest.tolist(), strict=True))

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in descending order of their statistic."""
        return [name for name, q in self.q_values.items() if q <= self.fdr]

    @property
    def threshold(self) -> float:
        """The smallest statistic of a selected variable."""
        return min((self.statistics[name] for name in self.selected), default=float("inf"))

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dict, except for names that are not strings."""
        return {
            "kind": "knockoffs",
            "fdr": self.fdr,
            "window": self.window,
            "seed": self.seed,
            "n_columns": self.n_columns,
            "selected": self.selected,
            "statistics": [{"name": name, "W": w} for name, w in self.statistics.items()],
        }


def knockoff_filter(
    X: Any,
    y: Any,
    fdr: float = 0.1,
    *,
    window: int = 5,
    covariates: Any = None,
    seed: int = 0,
    missing: str = "error",
    **parameters: Any,
) -> KnockoffSelection:
    r"""Select variables such that at most a share `fdr` of them is expected to be irrelevant.

    A variable is irrelevant if the target is independent of it, given all others. Tests of single
    columns detect any variable that correlates with the target, as neighbours of a relevant
    variable do. With knockoffs[^1] it competes with all others: a Lasso is fitted to all columns
    and their [knockoffs](stream.md#streamsel.stream.with_knockoffs), and a column is selected if
    the difference between its coefficient and that of its knockoff exceeds a threshold. The
    knockoffs that exceed their columns determine the threshold.

    Parameters
    ----------
    X
        The columns, in an order in which each depends on its neighbours only, as in
        `with_knockoffs`; without missing values, and readable several times. Where columns nearly
        repeat each other, as in smooth spectra, apply
        [`prune`](stream.md#streamsel.stream.prune) first; each kept column then represents those
        excluded.
    y
        The target: numbers, or labels of two classes, which count as 0 and 1 if there are
        covariates; values, not the name of a column.
    fdr
        Bound on the false discovery rate, in (0, 1). At least `1 / fdr` variables are selected, or
        none.
    window
        Number of columns beyond which a column depends on no other, given those between. If in
        doubt, choose a larger one.
    covariates
        Variables to adjust for, on which columns may depend too, such as principal components.
    seed
        Seed of the knockoffs. Another seed may select other variables.
    missing
        `"drop"` excludes the rows without a target; by default they are an error.
    **parameters
        Parameters of [`Lasso`](selectors.md#streamsel.Lasso). By default its path ends at
        `k=n // 4` variables, from 10 to 500, and is certified to be that of all columns
        (`exact=True`).

    Returns
    -------
    KnockoffSelection
        The `selected` variables, their `statistics` and `q_values`.

    Raises
    ------
    ValueError
        If the checks below find that a condition is violated; if neighbours explain more than half
        of the columns; if `X` can be read only once; and where `with_knockoffs` and `Lasso` raise
        it.

    See Also
    --------
    streamsel.stream.with_knockoffs : generates the knockoffs, and explains them.
    knockoff_statistics : statistics of any other model of columns and knockoffs.
    streamsel.SelectKBest : bounds the false discovery rate of single tests, for any columns.

    Notes
    -----
    With $\beta_j$ and $\tilde\beta_j$ the coefficients, for columns of norm 1, of a column and its
    knockoff at the end of the path, $W_j = |\beta_j| - |\tilde\beta_j|$ (the Lasso coefficient
    difference). The signs of $W$ of irrelevant columns are fair coins. The threshold is the
    smallest t with

    $$\frac{1 + \#\{j: W_j \le -t\}}{\#\{j: W_j \ge t\}} \le \text{fdr}$$

    (knockoff+[^2]). Columns that their neighbours explain have no W.

    **Power** falls with the correlation of neighbours, and with a window that is wider than
    needed if the rows are few.

    **Conditions.** Rows are independent, given the covariates. Columns are jointly normal, or
    nearly, and each depends on `window` neighbours on either side only. This excludes genes, words
    and products, which depend on distant columns; related individuals and mixed populations, unless
    covariates represent them; and time series whose errors are autocorrelated.

    **Checks.** After the first pass an error is raised if

    - a quarter of a sample of 32 columns correlate with distant columns, given their neighbours
      (not checked for fewer than about 40 columns);
    - adjacent rows correlate: the product of their correlations in target and columns exceeds 0.05;
    - columns are the more relevant of a pair more often than if a twentieth of all columns were
      relevant: the target depends on a confounder, or on very many columns.

    They find gross violations, [not every one](../evidence/significance.md#knockoffs). To omit the
    checks, fit a `Lasso` to `with_knockoffs(X)`, and use `knockoff_statistics` and
    `KnockoffSelection`.

    **Cost.** The cost is that of `with_knockoffs` and of an exact `Lasso` of twice the columns, in
    one or more passes.

    References
    ----------
    [^1]: Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: 'model-X' knockoffs
    for high dimensional controlled variable selection. Journal of the Royal Statistical Society B
    80, 551–577.

    [^2]: Barber, R. F. and Candès, E. (2015). Controlling the false discovery rate via knockoffs.
    Annals of Statistics 43, 2055–2085.

    Examples
    --------
    Twenty of 400 columns determine the target; each column depends on the one before it:

    >>> import numpy as np
    >>> from streamsel.evaluate import knockoff_filter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 400))
    >>> for j in range(1, 400):
    ...     X[:, j] += 0.5 * X[:, j - 1]
    >>> y = X[:, ::20].sum(axis=1) + rng.normal(size=500)
    >>> found = knockoff_filter(X, y, fdr=0.1, window=1)
    >>> len(found.selected), sum(name % 20 > 0 for name in found.selected)
    (20, 0)
    """
    rules: dict[str, params.Rule] = {"fdr": _FDR, "missing": params.ChoiceRule(MISSING_POLICIES)}
    params.check("knockoff_filter", rules, {"fdr": fdr, "missing": missing})
    own = [name for name in inspect.signature(knockoff_filter).parameters if name != "parameters"]
    params.refuse_unknown("knockoff_filter", parameters, [*params.rules_of(Lasso), *own])
    source = as_stream(X)
    if not source.reiterable:
        raise ValueError(
            "Expected a stream that can be read several times. Got: a one-shot stream.\n"
            "Hint: pass iter_columns a function that returns a new iterator."
        )
    kept = kept_rows(y, None, missing)
    if kept is not None:
        y = kept.restrict(y, "a target")
        covariates = None if covariates is None else kept.restrict(covariates, "covariates")
    model = _lasso(y, covariates, fdr, parameters)
    check = KnockoffChecks(cast("Target", model._target), has_covariates=covariates is not None)
    pairs = WithKnockoffs(source, window, covariates, seed, check.record, check.run, kept)
    model.learn_columns(pairs)
    statistics = knockoff_statistics(model.standardized_coefficients)
    statistics = {name: w for name, w in statistics.items() if name not in check.explained}
    return KnockoffSelection(
        fdr, window, seed, pairs.n_pairs, statistics, model, pairs.distant_share
    )


def _lasso(y: Any, covariates: Any, fdr: float, parameters: Mapping[str, Any]) -> Lasso:
    """Return a Lasso that has learnt the target, with defaults for what `parameters` leave out."""
    settings: dict[str, Any] = {"exact": True} | dict(parameters)
    kind = settings.get("target_type", "auto")
    target = complete_target(y, kind, "missing='drop' excludes the rows without a target")
    k = settings.get("k")
    if isinstance(k, int) and 0 < k < 1.0 / fdr:
        raise ValueError(
            f"Expected k of at least 1 / fdr = {1.0 / fdr:g}, as many variables are selected, or "
            f"none. Got: k={k}."
        )
    if k is None and settings.get("alphas") is None:
        max_candidates = settings.get("max_candidates")
        k = int(np.clip(target.n // _ROWS_PER_VARIABLE, _MIN_K, _MAX_K))
        settings["k"] = (
            min(k, max_candidates) if isinstance(max_candidates, int) and max_candidates > 0 else k
        )
    if target.is_class and target.c == 2 and covariates is not None:
        # Logistic regression has no moments given covariates.
        y, settings["target_type"] = target.columns()[:, 1], "numeric"
    model = Lasso(**settings)
    model.learn_target(y, covariates=covariates)
    return model


def knockoff_statistics(importances: Mapping[Hashable, float]) -> dict[Hashable, float]:
    r"""Return how much more important columns are than their knockoffs.

    Parameters
    ----------
    importances
        Name -> importance, by magnitude, of columns and of their knockoffs, named `("knockoff",
        name)`, for a model that does not distinguish them; 0 for those that are not named.

    Returns
    -------
    Name -> $W_j$, the absolute importance of a column minus that of its knockoff, in descending
    order; without those where both are 0.

    Raises
    ------
    TypeError, ValueError
        For anything but a mapping to finite numbers.

    Examples
    --------
    >>> from streamsel.evaluate import knockoff_statistics
    >>> knockoff_statistics({"a": -2.0, "b": 0.5, ("knockoff", "b"): 0.75})
    {'a': 2.0, 'b': -0.25}
    """
    _expect_finite(importances, "importances")
    differences: dict[Hashable, float] = {}
    for name, value in importances.items():
        source = knockoff_source(name)
        column, sign = (name, 1.0) if source is None else (source[0], -1.0)
        differences[column] = differences.get(column, 0.0) + sign * abs(float(value))
    order = sorted(differences.items(), key=lambda item: -item[1])
    return {name: w for name, w in order if w != 0.0}


def _expect_finite(values: Any, what: str) -> None:
    """Raise unless the values are a mapping to finite numbers."""
    if not isinstance(values, Mapping):
        raise TypeError(
            f"Expected a mapping from name to number as {what}. Got: {type(values).__name__}.\n"
            "Hint: Lasso has coefficients by name."
        )
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            of_name, got = (f"{params.parameter_repr(each):.60}" for each in (name, value))
            raise ValueError(f"Expected finite {what}. Got: {got} of {of_name}.")

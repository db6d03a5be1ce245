"""Select variables, or build components, in one call: columns, target, report and transform."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence, Sized
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeGuard

from streamsel import params, registry
from streamsel._utils.sparse import dense_column
from streamsel._utils.text import count_text, named_text, skipped_text, spelling_hint
from streamsel.base.frame_columns import as_frame, locate_columns
from streamsel.base.learn_columns import no_columns_error
from streamsel.fit_result import FitResult, source_of
from streamsel.stream import ColumnStream, as_stream
from streamsel.stream.files import CleanStream, find_indices
from streamsel.stream.inputs import EncodedStream
from streamsel.targets.encoding import only_column

if TYPE_CHECKING:
    from streamsel.stream.files import Missing

# Why columns were skipped -> what to do.
_HINTS = {
    "missing": "missing='mean' imputes missing values",
    "text": "streamsel.stream.iter_ngrams makes columns of the words of a text",
    "mixed": "replace cells that are not numbers by numbers, or by missing values",
    "ambiguous": "write numbers with a decimal point and without thousands separators",
    "complex": "replace complex numbers by their real and imaginary parts",
}
# Skipped columns that a warning names.
_MAX_NAMED = 5
# Parameters of the functions below, which are suggested for misspelt ones of a method.
_KEYWORDS = ("method", "covariates", "weights", "drop", "missing")


def select(
    X: Any,
    y: Any = None,
    k: int | str = 10,
    *,
    method: str | None = None,
    covariates: Any = None,
    weights: Any = None,
    drop: Iterable[Hashable] = (),
    missing: Missing = "skip",
    **parameters: Any,
) -> FitResult:
    """Select the k most useful variables of a table, a file or any other source of columns.

    Parameters
    ----------
    X
        The path or URL of a file, a frame, an (n, p) array or sparse matrix, an AnnData, or a
        `ColumnStream`: as `stream.as_stream` takes them.
    y
        The target: the name of a column of X (with an AnnData also of its obs), which is then no
        candidate; or n numbers, labels or rows of numbers in the order of the rows of X, as
        `learn_target` takes them. None selects without a target.
    k
        Number of variables. Methods that decide on it themselves, such as `OnlineFDR`, ignore it.
    method
        Name of a selector; None for `ForwardSelection`, or `ProjSe` without a target.
    covariates
        Variables to adjust for: names of columns of X, which are then no candidates; or values, as
        in `learn_target`.
    weights
        Weight of each row, or the name of a column of X.
    drop
        Names of columns that are no candidates, such as identifiers.
    missing
        Treatment of columns with missing values, as in `stream.clean`: `"skip"`, `"mean"`,
        `"keep"` or `"error"`.
    **parameters
        Further parameters of the selector.

    Returns
    -------
    The result: its `selected` variables, `report()`, `transform(X)` and fitted `model`.

    Raises
    ------
    ValueError, TypeError
        For a name that X does not have, an unknown method, no column that can be used, and where
        the learner raises it.

    See Also
    --------
    streamsel.extract : build components.

    Notes
    -----
    It calls `learn_target` and `learn_columns` of the selector, and costs as much. Text, categories
    and dates of a frame or a file are [encoded](stream.md#streamsel.stream.encode). Columns that
    cannot be encoded, are constant or have missing values are skipped and counted in `skipped`,
    with a warning unless they are constant; rows without a target are dropped. If the pool of the
    method is bounded and X is re-iterable, further passes make the selection the same as over all
    columns (`exact=True`).

    Examples
    --------
    >>> import streamsel
    >>> from sklearn.datasets import load_breast_cancer
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> result = streamsel.select(table, "target", k=3)
    >>> result
    ForwardSelection(k=3, exact=True): 3 of 30 variables selected. All exceed the noise floor
    (0.13); 1 is a near-duplicate of another.
    worst concave points, worst radius, mean concave points
    >>> result.transform(table.head(2))
       worst concave points  worst radius  mean concave points
    0                0.2654         25.38              0.14710
    1                0.1860         24.99              0.07017
    """
    method = ("ForwardSelection" if y is not None else "ProjSe") if method is None else method
    roles = _Roles(X, y, covariates, weights, drop)
    return _fit("selector", method, {"k": k}, roles, missing, parameters)


def extract(
    X: Any,
    y: Any = None,
    n_components: int = 10,
    *,
    method: str | None = None,
    covariates: Any = None,
    weights: Any = None,
    drop: Iterable[Hashable] = (),
    missing: Missing = "skip",
    **parameters: Any,
) -> FitResult:
    """Build components from the columns of a table, a file or any other source of columns.

    Parameters
    ----------
    X
        The source of columns, as in `select`.
    y
        The target, as in `select`; None for methods without one.
    n_components
        Number of components.
    method
        Name of an extractor; None for `RidgeComponents`, or `PCA` without a target.
    covariates
        Variables to adjust for, as in `select`.
    weights
        Weight of each row, as in `select`.
    drop
        Names of columns that are not used, such as identifiers.
    missing
        Treatment of columns with missing values, as in `select`.
    **parameters
        Further parameters of the extractor.

    Returns
    -------
    The result: `transform(X)` returns components, `report()` a report, and `model` is the fitted
    extractor.

    Raises
    ------
    ValueError, TypeError
        For a name that X does not have, an unknown method, and where the learner raises it.

    See Also
    --------
    streamsel.select : keep original variables.

    Notes
    -----
    It calls `learn_target` and `learn_columns` of the extractor, and costs as much.

    Examples
    --------
    >>> import streamsel
    >>> from sklearn.datasets import load_breast_cancer
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> result = streamsel.extract(table, n_components=2, drop=["target"], scale=True)
    >>> result
    PCA(n_components=2, scale=True): 2 components, which have 63.2 % of the variance of 30 columns.
    pca0, pca1
    >>> result.transform(table.head(2)).round(2)
       pca0  pca1
    0  9.18  1.95
    1  2.39 -3.76
    """
    method = ("RidgeComponents" if y is not None else "PCA") if method is None else method
    if "q" in parameters:  # the name in formulas, and the option -q of the command
        raise TypeError(
            f"Expected parameters of {method}. Got: q.\nHint: did you mean n_components?"
        )
    roles = _Roles(X, y, covariates, weights, drop)
    return _fit("extractor", method, {"n_components": n_components}, roles, missing, parameters)


class _Roles:
    """The columns of X by their role: target, covariates, weights, dropped, and candidates.

    Parameters
    ----------
    X, y, covariates, weights, drop
        As in `select`.

    Attributes
    ----------
    path
        The file of X; None if it is none.
    source
        X, or a stream of its columns if it is a file or an AnnData.
    stream
        A stream of its columns.
    is_table
        Whether X is a frame or a file, whose text, categories and dates are encoded.
    y, covariates, weights
        Values; None for none.
    names
        Role -> names of columns of X.
    candidates
        The other columns.
    """

    def __init__(
        self, X: Any, y: Any, covariates: Any, weights: Any, drop: Iterable[Hashable]
    ) -> None:
        self.path = os.fspath(X) if isinstance(X, str | os.PathLike) else None
        self.source = source_of(X, _named(y, weights, covariates, drop))
        self.stream = as_stream(self.source)
        self.is_table = self.path is not None or as_frame(self.source) is not None
        self.names: dict[str, list[Hashable]] = {}
        _expect_same_rows(self.source, y)
        self.y = self._resolve("y", only_column(y))
        self.weights = self._resolve("weights", weights)
        self.covariates = self._resolve("covariates", covariates)
        if isinstance(drop, str) or self._is_tuple_name(drop):
            drop = [drop]
        self.names["drop"] = list(drop)
        known, of_rows = self.stream.names, self.stream.row_metadata
        if known is not None:
            self._check("drop", self.names["drop"], [*known, *of_rows])
        taken = {name for names in self.names.values() for name in names}
        absent = {name for name in taken & {*of_rows} if known is None or name not in known}
        self.candidates = self.stream.without(taken - absent) if taken else self.stream

    def _resolve(self, role: str, given: Any) -> Any:
        """Return the values of a role, and record the names of columns that they come from."""
        names = self._names_in(role, given)
        if names is None:
            return given
        values = self._columns(role, names)
        self.names[role] = names
        return values if role == "covariates" else next(iter(values.values()))

    def _names_in(self, role: str, given: Any) -> list[Hashable] | None:
        """Return the names of columns, if these are given; None for values."""
        if given is None or not isinstance(given, Hashable | list):
            return None
        if isinstance(given, str | bytes) or not isinstance(given, Sized):
            return [given]
        if self._is_tuple_name(given):
            return [given]
        if role == "covariates" and given and all(map(self._is_tuple_name, given)):
            return [*given]
        known = {*(self.stream.names or ()), *self.stream.row_metadata}
        is_list = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
        # Labels, one per row, are distinct in no useful column.
        if not is_list or not known or len({*given}) != len(given):
            return None
        if role == "covariates" and given and ({*given} & known or len(given) != self._n_rows()):
            return [*given]
        if not {*given} & known:
            return None
        if {*given} <= known:
            raise ValueError(
                f"Expected {role} to be the name of a column of X, or a value per row. Got: a list "
                f"of names, {given!r:.60}.\nHint: {role}={given[0]!r}; values of several targets "
                "are a frame or an array of columns, which drop excludes from X."
            )
        return None

    def _is_tuple_name(self, given: Any) -> TypeGuard[tuple[Hashable, ...]]:
        """Return whether this is the name of a column that is a tuple, as of a MultiIndex."""
        if type(given) is not tuple:
            return False
        try:
            return given in {name for name in self.stream.names or () if type(name) is tuple}
        except TypeError:  # values that cannot be hashed
            return False

    def _n_rows(self) -> int | None:
        """Return the number of rows of X, or else of the target; None if both are unknown."""
        if self.stream.n_rows is not None or self.y is None:
            return self.stream.n_rows
        return int(self.y.shape[0]) if hasattr(self.y, "shape") else len(self.y)

    def _columns(self, role: str, names: list[Hashable]) -> dict[Hashable, Any]:
        """Return columns of X by name; those of a frame with their categories."""
        frame = None if isinstance(self.source, ColumnStream) else as_frame(self.source)
        if frame is not None:
            self._check(role, names, frame.columns)
            _, indices = locate_columns(frame, names)
            return {name: frame[:, j].to_native() for name, j in zip(names, indices, strict=True)}
        known, of_rows = {*(self.stream.names or ())}, self.stream.row_metadata
        found = {
            name: of_rows[str(name)] for name in names if name in of_rows and name not in known
        }
        others = [name for name in names if name not in found]
        try:
            found |= self.stream.take(others) if others else {}
        except KeyError as error:
            raise _unknown_error(role, error) from None
        return {name: dense_column(found[name]) for name in names}

    def _check(self, role: str, names: Sequence[Hashable], known: Sequence[Hashable]) -> None:
        try:
            find_indices(known, names)
        except KeyError as error:
            raise _unknown_error(role, error) from None


def _named(y: Any, weights: Any, *several: Any) -> list[str]:
    """Return the texts that name columns, of a target and weights, and of lists of names."""
    lists = (one for one in several if isinstance(one, list | tuple))
    given = y, weights, *several, *chain.from_iterable(lists)
    return [one for one in given if isinstance(one, str)]


def _expect_same_rows(X: Any, y: Any) -> None:
    """Raise ValueError if pandas indices show that rows of the target are in another order."""
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if not hasattr(rows, "equals") or not hasattr(labels, "equals") or len(rows) != len(labels):
        return
    if not rows.equals(labels) and rows.sort_values().equals(labels.sort_values()):
        raise ValueError(
            "Expected y in the order of the rows of X, which are matched by position. Got: the "
            "same index in another order.\nHint: y.loc[X.index]."
        )


def _unknown_error(role: str, error: KeyError) -> ValueError:
    """Return the error for a name that X does not have, with the hint of a stream's error."""
    _, _, rest = str(error.args[0]).partition("got: ")
    got, _, hint = rest.partition(". Hint: ")
    return ValueError(f"Expected {role} to name columns of X. Got: {got}.\nHint: {hint}")


def _fit(
    kind: str,
    method: str,
    size: dict[str, Any],
    roles: _Roles,
    missing: Missing,
    parameters: dict[str, Any],
) -> FitResult:
    """Fit a learner of this name, and return the result."""
    known = registry.names(kind)
    if method not in known:
        hint = spelling_hint(str(method), known)
        role = "an extractor" if kind == "extractor" else f"a {kind}"
        raise ValueError(f"Expected the name of {role} as method. Got: {method!r}.\nHint: {hint}")
    cls = registry.fetch(method)
    rules = params.rules_of(cls)
    values = {name: value for name, value in size.items() if name in rules} | parameters
    params.refuse_unknown(method, values, [*rules, *_KEYWORDS])
    if covariates := roles.names.get("covariates"):
        values.setdefault("covariates", tuple(covariates))
    if missing == "mean" and "missing" in rules:
        values.setdefault("missing", "mean")
    if "exact" in rules and roles.candidates.reiterable and values.get("estimator") is None:
        is_bounded = "max_pool_bytes" in rules or values.get("max_candidates") is not None
        values.setdefault("exact", is_bounded)
    model = cls(**registry.lift_max_features(cls, values))
    if model._is_supervised:
        model.learn_target(roles.y, roles.covariates, roles.weights, missing="drop")
    elif roles.y is not None or roles.weights is not None or roles.covariates is not None:
        model.learn_target(roles.y, roles.covariates, roles.weights)
    target = model._target
    kept = None if target is None else target.kept
    n_rows = None if target is None else target.n
    candidates, source, unusable = roles.candidates, roles.source, _Unusable()
    if roles.is_table and model._encodes_tables:
        candidates = EncodedStream(
            candidates, groups=model._takes_groups, whole=roles.stream, report=unusable.add
        )
        source = EncodedStream(roles.stream) if source is roles.stream else source
    columns = CleanStream(candidates, n_rows, missing, unusable.add, 0, kept)
    model.learn_columns(columns)
    if not columns.n_read:
        raise no_columns_error()
    if not model.n_columns:
        (most_frequent, _), *_ = columns.skipped.most_common(1)
        raise ValueError(
            f"Expected at least one column that can be used. Got: {columns.n_read:,}, all skipped "
            f"({skipped_text(columns.skipped)}).\n"
            f"Hint: {_HINTS.get(most_frequent) or _list_hint(candidates)}."
        )
    result = FitResult(model, source, roles.y, columns, _facts(kind, roles, missing))
    for text in _warnings(result, columns, unusable, _list_hint(candidates)):
        warnings.warn(text, UserWarning, stacklevel=3)
    return result


class _Unusable:
    """The first skipped columns, name and detail, except for constant ones."""

    def __init__(self) -> None:
        self.examples: list[tuple[Hashable, str]] = []

    def add(self, name: Hashable, reason: str, detail: str) -> None:
        """Record a skipped column, as a callback of `clean` and `encode`."""
        if reason != "constant" and len(self.examples) < _MAX_NAMED:
            self.examples.append((name, detail.rstrip(".")))


def _list_hint(candidates: ColumnStream) -> str:
    """Return a hint that lists the skipped columns."""
    is_encoded = isinstance(candidates, EncodedStream)
    X = "streamsel.stream.encode(X, report=print)" if is_encoded else "X"
    return f"this lists the columns: for _ in streamsel.stream.clean({X}, report=print): pass"


def _warnings(
    result: FitResult, columns: CleanStream, unusable: _Unusable, list_hint: str
) -> Iterator[str]:
    """Yield warnings about skipped columns, and about copies of the target."""
    lost = {reason: n for reason, n in columns.skipped.items() if reason != "constant" and n}
    if lost:
        # Encoded columns may be skipped one by one.
        n = columns.n_read - sum(columns.encoded.values()) + columns.n_made
        n_lost = sum(lost.values())
        hints = [_HINTS[reason] for reason in sorted(lost) if reason in _HINTS]
        if "text" in lost:
            hints.append("drop=[...] excludes identifiers and free text")
        if n_lost > len(unusable.examples):
            hints.append(list_hint)
        yield (
            f"{n_lost:,} of {count_text(n, 'column')}"
            f"{' after encoding' if columns.encoded else ''} could not be used "
            f"({skipped_text(lost)}): {named_text(unusable.examples, n_lost)}.\n"
            f"Hint: {'; '.join(hints)}."
        )
    yield from (one["text"] for one in result.warnings if one["code"] == "outcome")


def _facts(kind: str, roles: _Roles, missing: str) -> dict[str, Any]:
    """Return the metadata of the fit: those of a run of the command, if it could have made it."""
    names = {role: [str(name) for name in of_role] for role, of_role in roles.names.items()}
    facts: dict[str, Any] = {"target": names.get("y", [])}
    if roles.path is None:
        return facts
    facts["file"] = roles.path
    of_columns = ("y", roles.y), ("covariates", roles.covariates), ("weights", roles.weights)
    if all(values is None or role in names for role, values in of_columns):
        facts |= {"command": {"selector": "select", "extractor": "reduce"}[kind]}
        facts |= {"missing": missing, "dropped": names["drop"]}
        facts |= {"covariates": names.get("covariates", [])}
        facts |= {"weights": names["weights"][0]} if "weights" in names else {}
    return facts

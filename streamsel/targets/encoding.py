"""Encoding of targets and covariates, numbers, labels or frames, as columns of floats."""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel._utils.in_memory import not_in_memory_error
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.serialization.schema import BoolKind, ListKind, NamesKind, expect, length_in

Floats = NDArray[np.float64]

# A target of whole numbers with 2 to this many distinct values is classes if the kind is "auto".
FEW_VALUES = 20
# From here on float64 cannot represent every whole number.
_WHOLE = 2.0**53
# Types of missing values in pandas.
_MISSING = ("NAType", "NaTType")


class Encoded(NamedTuple):
    """A target as columns.

    Parameters
    ----------
    columns
        (n, c) float64.
    names
        One per column.
    is_class
        Whether the columns are the indicators of one set of labels.
    by_rule
        Whether the target was whole numbers, and their values alone decided between labels and a
        quantity.
    kinds
        Column of a frame -> whether it had labels, and became one column per label.
    """

    columns: Floats
    names: list[Hashable]
    is_class: bool
    by_rule: bool = False
    kinds: Mapping[Hashable, bool] = MappingProxyType({})


def encode_target(
    y: Any, kind: str, numeric: Collection[Hashable] = (), *, by_values: bool = False
) -> Encoded:
    """Return the target as columns.

    Parameters
    ----------
    y
        As in `streamsel.base.Learner.learn_target`.
    kind
        "auto", "class" or "numeric".
    numeric
        Columns of a frame whose booleans are numbers.
    by_values
        Whether "auto" treats a single column of whole numbers as labels if it has 2 to `FEW_VALUES`
        distinct values, at most one per two observations. The type of the numbers and the file
        format do not matter. Columns of a frame are not judged by their values: they are named
        targets, as in a row. `only_column` converts a frame to a single target.

    Raises
    ------
    ValueError, TypeError
        For values that are neither numbers nor labels, and for missing labels.
    """
    if isinstance(y, str):
        raise TypeError(
            f"Expected the values of a target. Got: the text {y!r:.60}.\n"
            "Hint: pass a column, such as df['name']; streamsel.select also takes its name."
        )
    plain = _plain_numbers(y)
    if plain is not None:
        return _encode_array(plain, kind, by_values=by_values)
    import narwhals.stable.v2 as nw

    native = nw.from_native(as_series(y), allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise not_in_memory_error("a target", y)
    if isinstance(native, nw.DataFrame):
        return _encode_frame(native, kind, numeric)
    if isinstance(native, nw.Series):
        if native.null_count():
            raise _missing(native.null_count(), native.is_null().arg_true()[0])
        if isinstance(native.dtype, nw.Categorical | nw.Enum):
            if kind == "numeric":
                raise _labels_error(native[0])
            return _indicators(native.to_list())
        native = native.to_list() if native.dtype == nw.String else native.to_numpy()
    elif hasattr(native, "toarray"):
        expect_consistent_sparse(native)
        native = native.toarray()
    return _encode_array(_as_array(native), kind, by_values=by_values)


def _plain_numbers(y: Any) -> NDArray[Any] | None:
    """Return arrays, and pandas series of numbers without missing values, as an array; else None.

    This avoids narwhals, whose import takes longer than a first result, and which takes longer over
    a series than learning 100 rows.
    """
    if isinstance(y, np.ndarray):
        return _as_array(y)
    from narwhals.dependencies import is_pandas_series

    if not is_pandas_series(y) or not isinstance(y.dtype, np.dtype) or y.dtype.kind not in "iuf":
        return None
    values: NDArray[Any] = y.to_numpy()
    return None if np.isnan(values).any() else values


def as_series(values: Any) -> Any:
    """Return a column or batch without its series or table as one of these; others unchanged.

    narwhals does not support extension arrays and indices of pandas, nor arrays and batches of
    pyarrow.
    """
    from narwhals.dependencies import get_pandas, get_pyarrow

    pd, pa = get_pandas(), get_pyarrow()
    if pd is not None and isinstance(values, pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(values)
    if pa is not None and isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if pa is not None and isinstance(values, pa.RecordBatch):
        return pa.Table.from_batches([values])
    return values


def only_column(y: Any) -> Any:
    """Return the column of a frame of one column; other targets unchanged."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    # Arrays do not need narwhals, whose import takes longer than a first result.
    if isinstance(y, np.ndarray) or len(shape) != 2 or shape[1] != 1:
        return y
    import narwhals.stable.v2 as nw

    native = nw.from_native(as_series(y), pass_through=True)
    return native[:, 0].to_native() if isinstance(native, nw.DataFrame) else y


def kinds_to_state(kinds: Mapping[Hashable, bool]) -> list[list[Hashable]]:
    """Return the names of labels, and those of numbers, for a file."""
    return [
        [name for name, is_label in kinds.items() if is_label is kind] for kind in (True, False)
    ]


def kinds_from_state(state: Sequence[Sequence[Hashable]]) -> dict[Hashable, bool]:
    """Return the kinds that `kinds_to_state` saved."""
    labels, numbers = state
    return dict.fromkeys(labels, True) | dict.fromkeys(numbers, False)


def _encode_frame(frame: Any, kind: str, numeric: Collection[Hashable]) -> Encoded:
    if not frame.columns:
        raise ValueError("Expected a target of at least one column. Got: a frame without columns.")
    # By position: a pandas frame may have any labels, integers too.
    parts = []
    for j, name in enumerate(frame.columns):
        as_number = name in numeric and str(frame[:, j].dtype) == "Boolean"
        parts.append(encode_target(frame[:, j].to_native(), "numeric" if as_number else kind))
    names: list[Hashable] = []
    for name, part in zip(frame.columns, parts, strict=True):
        names += [(name, label) for label in part.names] if part.is_class else [name]
    columns = np.hstack([part.columns for part in parts])
    kinds = {name: part.is_class for name, part in zip(frame.columns, parts, strict=True)}
    return Encoded(columns, names, is_class=False, kinds=kinds)


def _encode_array(values: NDArray[Any], kind: str, *, by_values: bool = False) -> Encoded:
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] == 0):
        raise ValueError(
            "Expected a target of shape (n,) or (n, c). Got: an array of shape "
            f"{values.shape}.\nHint: pass one value, or one row of values, per observation."
        )
    if len(values) == 0:
        raise ValueError("Expected a target of at least 2 observations. Got: none.")
    numeric = values.dtype.kind in "iuf"
    if values.dtype.kind == "b" and kind == "numeric":
        numeric = True
    by_rule = numeric and kind == "auto" and by_values and _is_whole_column(values)
    n_classes = _n_classes(values) if by_rule else 0
    if numeric and kind != "class" and not 2 <= n_classes <= FEW_VALUES:
        columns = values.astype(np.float64).reshape(len(values), -1)
        names: list[Hashable] = list(range(columns.shape[1]))
        return Encoded(columns, names, is_class=False, by_rule=by_rule)
    if not numeric and kind == "numeric":
        raise _labels_error(*_first_label(values))
    if values.ndim == 2:
        if values.shape[1] != 1:
            raise ValueError(
                f"Expected labels of shape (n,). Got: labels of shape {values.shape}.\n"
                "Hint: pass several sets of labels as a frame, or as indicator columns."
            )
        values = values[:, 0]
    if values.dtype.kind == "f" and _are_whole(values):
        values = values.astype(np.int64)
    return _indicators(values.tolist())._replace(by_rule=by_rule)


def _n_classes(values: NDArray[Any]) -> int:
    """Return the number of distinct values; 0 if there are more than one per two observations."""
    n_distinct = np.unique(values).size
    return n_distinct if n_distinct <= len(values) // 2 else 0


def _is_whole_column(values: NDArray[Any]) -> bool:
    """Whether this is a single column of whole numbers, which may be classes."""
    return values.size == len(values) and _are_whole(values)


def _are_whole(values: NDArray[Any]) -> bool:
    """Whether all are whole numbers that float64 represents exactly."""
    if values.dtype.kind != "f":
        return True
    return bool((np.abs(values) < _WHOLE).all() and (values == np.floor(values)).all())


def _as_array(y: Any) -> NDArray[Any]:
    """Return y as an array of numbers, booleans or labels, without converting between them."""
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    try:
        values = np.asarray(y)
        if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
            values = np.asarray(y, dtype=object)
    except ValueError as error:
        raise ValueError(
            "Expected a target of shape (n,) or (n, c). Got: rows of different lengths."
        ) from error
    if values.dtype.kind == "O" and values.size:
        values = _from_objects(values)
    if values.dtype.kind in "mMVc":
        raise TypeError(
            f"Expected a target of real numbers or labels. Got: values of type {values.dtype}.\n"
            "Hint: convert dates to numbers or strings, and complex numbers to two columns."
        )
    return values


def _from_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are all numbers, possibly with missing ones, as floats."""
    # By type, because checking every label costs more than learning many columns.
    kinds = set(map(type, values.flat))
    unfit = (dt.date, dt.timedelta, list, dict, np.ndarray)
    if any(issubclass(kind, unfit) for kind in kinds):
        example = next(value for value in values.flat if isinstance(value, unfit))
        raise TypeError(
            f"Expected a target of real numbers or labels. Got: values like {example!r}.\n"
            "Hint: convert dates to numbers or strings, and lists to columns."
        )
    known = {kind for kind in kinds if kind is not type(None) and kind.__name__ not in _MISSING}
    numeric = {kind for kind in known if issubclass(kind, numbers.Real | decimal.Decimal)}
    if not known or numeric != known or bool in known:
        return values
    try:
        floats = [np.nan if is_missing(value) else float(value) for value in values.flat]
    except OverflowError:
        raise ValueError(
            "Expected a finite target. Got: a whole number too large for float64.\n"
            "Hint: divide the target by its scale; relevance does not depend on it."
        ) from None
    return np.array(floats).reshape(values.shape)


def is_missing(value: Any) -> bool:
    """Whether a value is NaN, None, or a missing value of pandas."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, float) and np.isnan(value)


def _indicators(labels: list[Any]) -> Encoded:
    """Return one-hot columns of labels, classes sorted by type, then by value."""
    try:
        distinct = set(labels)
    except TypeError as error:
        raise TypeError(f"Expected labels that can be hashed. Got: {error}.") from error
    if any(map(is_missing, distinct)):
        missing = [row for row, label in enumerate(labels) if is_missing(label)]
        raise _missing(len(missing), missing[0])
    classes: list[Hashable] = sorted(distinct, key=lambda v: (type(v).__name__, v))
    index_of = {label: k for k, label in enumerate(classes)}
    columns = np.zeros((len(labels), len(classes)))
    columns[np.arange(len(labels)), list(map(index_of.__getitem__, labels))] = 1.0
    return Encoded(columns, classes, is_class=True)


def _first_label(values: NDArray[Any]) -> tuple[Any, int | None]:
    """Return the first value that is neither missing nor a number nor text of one, and its row.

    Without one, the first value and None.
    """
    for index, value in enumerate(values.flat):
        if not is_missing(value) and not _is_number(value):
            return value, index * len(values) // values.size
    return values.flat[0], None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _labels_error(example: Any, row: int | None = None) -> TypeError:
    got = f"values like {example!r}" if row is None else f"{example!r} in row {row}"
    return TypeError(
        f"Expected numbers, as target_type='numeric' requires. Got: {got}.\n"
        "Hint: target_type='class' or target_type='auto' accepts labels."
    )


class MissingValuesError(ValueError):
    """A target has missing values: how many, and the row of the first."""

    # Not parameters: a pickle of an exception calls the class with its text alone.
    count = row = 0


def _missing(count: int, row: int) -> ValueError:
    error = MissingValuesError(
        f"Expected a target without missing values. Got: {count} missing, the first in row {row}.\n"
        "Hint: learn_target(y, missing='drop') excludes those rows, in the columns too; or use a "
        "label for missing values."
    )
    error.count, error.row = count, row
    return error


# Covariates


@dataclass(frozen=True, slots=True)
class Covariates:
    """The name of a covariate's column among the target's columns."""

    name: Hashable


def encode_covariates(Z: Any, names: tuple[Hashable, ...] | None) -> Encoded:
    """Return covariates as columns, each named by a `Covariates`.

    Parameters
    ----------
    Z
        Numbers of shape (n,) or (n, d), labels of shape (n,), a Series or frame of either, or a
        mapping: name -> numbers or labels of shape (n,).
    names
        Their names; None for those of the frame, or numbers.

    Raises
    ------
    ValueError, TypeError
        As `encode_target`, and if `names` differ from those of the frame, or from the number of
        columns.
    """
    try:
        encoded = _encode_mapping(Z) if isinstance(Z, Mapping) else encode_target(Z, "auto")
    except MissingValuesError as error:
        name = _incomplete_covariate(Z)
        where = "" if name is None else f" in {name!r}"
        raise ValueError(
            f"Expected covariates without missing values. Got: {error.count} missing{where}, the "
            f"first in row {error.row}.\n"
            "Hint: covariates are needed in every row; drop these rows, of the target and the "
            "columns too, or impute the values."
        ) from error
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In the covariates: {error}") from error
    kinds, columns = dict(encoded.kinds), encoded.names
    if kinds and names is not None and set(kinds) != set(names):
        raise ValueError(
            f"Expected the covariates {list(names)}, as in the parameter covariates. Got: "
            f"{list(kinds)}."
        )
    if not kinds:
        n_given = 1 if encoded.is_class else len(encoded.names)
        expected = tuple(range(n_given)) if names is None else names
        if len(expected) != n_given:
            raise ValueError(
                f"Expected {len(expected)} covariates, as in the parameter covariates. "
                f"Got: {n_given}."
            )
        kinds = dict.fromkeys(expected, encoded.is_class)
        pairs = [(expected[0], label) for label in encoded.names]
        columns = [*(pairs if encoded.is_class else expected)]
    bad = np.argwhere(~(np.abs(encoded.columns) <= MAX_ABS_VALUE))
    if bad.size:
        row, column = bad[0].tolist()
        raise _not_finite(columns[column], encoded.columns[row, column], row)
    return encoded._replace(names=[Covariates(name) for name in columns], kinds=kinds)


def _incomplete_covariate(Z: Any) -> Hashable | None:
    """Return the name of the first covariate that cannot be encoded; None without names."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(Z, pass_through=True)
    columns: list[tuple[Hashable, Any]] = list(Z.items()) if isinstance(Z, Mapping) else []
    if isinstance(frame, nw.DataFrame):
        columns = [(name, frame[:, j].to_native()) for j, name in enumerate(frame.columns)]
    for name, values in columns:
        try:
            encode_target(values, "auto")
        except (ValueError, TypeError):
            return name
    return None


def _encode_mapping(Z: Mapping[Hashable, Any]) -> Encoded:
    """Return the result of `encode_target` for a frame with these columns."""
    parts = {name: encode_target(values, "auto") for name, values in Z.items()}
    if not parts or len({len(part.columns) for part in parts.values()}) > 1:
        raise ValueError(
            "Expected at least one column, all of equal length. "
            f"Got: lengths {[len(part.columns) for part in parts.values()]}."
        )
    names: list[Hashable] = []
    for name, part in parts.items():
        names += [(name, label) for label in part.names] if part.is_class else [name]
    columns = np.hstack([part.columns for part in parts.values()])
    kinds = {name: part.is_class for name, part in parts.items()}
    return Encoded(columns, names, is_class=False, kinds=kinds)


def covariates_of(
    x: Mapping[Hashable, Any], names: Sequence[Hashable]
) -> tuple[dict[Hashable, float], dict[Hashable, bool]]:
    """Return the covariates of a row, column -> value, and which of them are labels.

    A missing number is 0, as for features. A missing label is treated as the number 0, so a row is
    refused if labels came before.
    """
    values: dict[Hashable, float] = {}
    kinds: dict[Hashable, bool] = {}
    for name in names:
        value = x.get(name, 0.0)
        kinds[name] = isinstance(value, str | bytes | bool | np.bool_)
        if kinds[name]:
            values[Covariates((name, value))] = 1.0
            continue
        if is_missing(value):
            raise _not_finite(name, value)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"Expected a number or a label in the covariate {name!r}. Got: {value!r}."
            ) from None
        if not abs(number) <= MAX_ABS_VALUE:
            raise _not_finite(name, number)
        values[Covariates(name)] = number
    return values, kinds


def is_covariate(names: Sequence[Hashable]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which columns of a target are covariates, (c,)."""
    return np.array([isinstance(name, Covariates) for name in names], dtype=np.bool_)


def names_to_state(names: Sequence[Hashable]) -> dict[str, list[Any]]:
    """Return the names of a target's columns for a file, with flags for covariates."""
    return {
        "names": [name.name if isinstance(name, Covariates) else name for name in names],
        "given": is_covariate(names).tolist(),
    }


def names_from_state(state: Mapping[str, Sequence[Any]]) -> list[Hashable]:
    """Return the names that `names_to_state` saved."""
    expect(state, given=ListKind(length_in(state, "names"), BoolKind()))
    pairs = zip(state["names"], state["given"], strict=True)
    names = [Covariates(name) if flag else name for name, flag in pairs]
    expect({"names": names}, names=NamesKind())
    return names


def _not_finite(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    return ValueError(
        f"Expected a finite number, at most 1e152, in the covariate {name!r}. Got: "
        f"{value}{where}.\n"
        "Hint: covariates are needed in every row; drop the row, or impute the value."
    )

"""Stream of indicator columns: one for each category of each variable."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.in_memory import not_in_memory_error
from streamsel.data.chunks import Block
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import as_array
from streamsel.stream._blocks import BLOCK_BYTES, MAX_COLUMNS
from streamsel.stream._stream import ColumnStream
from streamsel.targets.encoding import is_missing

if TYPE_CHECKING:
    from scipy.sparse import csc_array

# Bytes of a stored entry: its value and its row.
_ENTRY_BYTES = 5


def iter_one_hot(labels: Any) -> ColumnStream:
    """Stream indicator columns of categorical variables (one-hot encoding), as sparse columns.

    Parameters
    ----------
    labels
        An eager data frame that narwhals supports, or a mapping of names to array-likes of shape
        (n,). Every column is encoded, also one of numbers.

    Raises
    ------
    TypeError
        If `labels` is neither, or a frame is lazy; while reading, if a label cannot be hashed.
    ValueError
        If two columns of a frame have the same name, or columns differ in length; while reading,
        if two categories of a variable have the same text.

    Notes
    -----
    The indicator of value "red" of a variable "colour" is named "colour_red", as River's
    `OneHotEncoder` names it, so that a model of these columns continues on encoded rows. Categories
    are sorted by type, then by value. A row with a missing label is 0 in all columns of the
    variable. Encoding takes O(n) time per variable and one stored entry per row, whatever the
    number of categories.

    See Also
    --------
    iter_frame : streams the columns of a frame as they are.

    Examples
    --------
    >>> stream = iter_one_hot({"colour": ["red", "blue", None], "size": [2, 2, 1]})
    >>> for name, column in stream:
    ...     print(name, column.toarray().ravel())
    colour_blue [0 1 0]
    colour_red [1 0 0]
    size_1 [0 0 1]
    size_2 [1 1 0]
    """
    variables = _variables(labels)
    sizes = {name: len(values) for name, values in variables.items()}
    n = next(iter(sizes.values()), 0)
    for name, size in sizes.items():
        if size != n:
            raise ValueError(
                f"Expected {n} labels, as the first variable has, in {name!r}. Got: {size}."
            )

    def blocks() -> Iterator[Block]:
        names: list[Hashable] = []
        parts: list[csc_array] = []
        for variable, values in variables.items():
            found, columns = one_hot(variable, values)
            n_bytes = (len(parts) + 1) * n * _ENTRY_BYTES
            if parts and (n_bytes > BLOCK_BYTES or len(names) + len(found) > MAX_COLUMNS):
                yield _joined(names, parts)
                names, parts = [], []
            names.extend(found)
            parts.append(columns)
        if names:
            yield _joined(names, parts)

    return ColumnStream(blocks, n_rows=n)


def one_hot(name: Hashable, labels: Any) -> tuple[list[str], csc_array]:
    """Return the names and the indicator columns, (n, c) in canonical CSC format, of n labels.

    Parameters
    ----------
    name
        Name of the variable; the first part of the names of its columns.
    labels
        A series that narwhals supports, or an array-like of shape (n,). A missing label is 0 in all
        columns.

    Raises
    ------
    TypeError
        If a label cannot be hashed.
    ValueError
        If two categories have the same text, such as 1 and "1".
    """
    from scipy.sparse import csc_array

    values = _listed(name, labels)
    try:
        distinct = dict.fromkeys(values)
    except TypeError as error:
        raise TypeError(f"Expected labels that can be hashed in {name!r}. Got: {error}.") from error
    categories = sorted(
        (value for value in distinct if not is_missing(value)),
        key=lambda value: (type(value).__name__, value),
    )
    names = [f"{name}_{value}" for value in categories]
    if len({*names}) < len(names):
        text = next(text for text in names if names.count(text) > 1)
        raise ValueError(
            f"Expected categories with distinct texts in {name!r}. Got: several named {text!r}.\n"
            "Hint: convert the labels to one type."
        )
    code_of: dict[Any, int] = dict.fromkeys(distinct, len(categories))
    code_of |= {value: code for code, value in enumerate(categories)}
    codes = np.fromiter(map(code_of.__getitem__, values), np.intp, len(values))
    indptr = np.zeros(len(categories) + 1, dtype=np.int32)
    np.cumsum(np.bincount(codes, minlength=len(categories))[: len(categories)], out=indptr[1:])
    rows = np.argsort(codes, kind="stable")[: indptr[-1]].astype(np.int32)
    shape = (len(values), len(categories))
    columns = csc_array((np.ones(rows.size, dtype=np.uint8), rows, indptr), shape=shape)
    columns.has_canonical_format = True
    return names, columns


def _variables(labels: Any) -> dict[Hashable, Any]:
    """Return the variables of a frame or mapping by name."""
    if isinstance(labels, Mapping):
        return {name: _listed(name, values) for name, values in labels.items()}
    import narwhals as nw

    frame = nw.from_native(labels, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[:, j] for j, name in enumerate(frame.columns)}
    if isinstance(frame, nw.LazyFrame):
        raise not_in_memory_error("a frame of labels", labels)
    raise TypeError(
        "Expected a data frame, or a mapping of names to labels. Got: "
        f'{type(labels).__name__}.\nHint: pass a single variable as {{"name": labels}}.'
    )


def _listed(name: Hashable, labels: Any) -> list[Any]:
    import narwhals as nw

    series = nw.from_native(labels, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return list(series.to_list())
    if isinstance(labels, list | tuple):
        return list(labels)
    values = as_array(labels, f"labels of {parameter_repr(name)}")
    if values.ndim != 1:
        raise ValueError(f"Expected labels of shape (n,) for {name!r}. Got: shape {values.shape}.")
    return list(values.tolist())


def _joined(names: list[Hashable], parts: list[Any]) -> Block:
    """Return the block of these columns, which follow one another."""
    from scipy.sparse import hstack

    if len(parts) == 1:
        return Block(names, parts[0])
    columns = hstack(parts, format="csc")
    columns.has_canonical_format = True
    return Block(names, columns)

"""Encode names and values as JSON without loss: 1, 1.0 and True differ; tuples; any float."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import is_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Types that JSON represents exactly: a list of them is not encoded item by item.
_PLAIN = frozenset({str, int, bool, type(None)})
_PLAIN_JSON = _PLAIN | {float}
# JSON would decode two adjacent lone surrogates as one character.
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_json_value(value: Any, arrays: dict[str, NDArray[Any]] | None = None, path: str = "") -> Any:
    """Encode a value as JSON; types that JSON lacks become {tag: content}.

    Arrays are put into `arrays`, if given, under `path`, their path in the state.
    """
    kind = type(value)
    if kind is str:
        return {"characters": list(value)} if _SURROGATE_PAIR.search(value) else value
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is list:
        if _is_plain(value):
            return value
        # Fast path: there can be millions of names such as (word, position).
        if set(map(type, value)) == {tuple} and _is_plain(list(chain.from_iterable(value))):
            return {"tuples": value}
        return [to_json_value(item, arrays, f"{path}/{k}") for k, item in enumerate(value)]
    if kind is tuple:
        return {
            "tuple": [to_json_value(item, arrays, f"{path}/{k}") for k, item in enumerate(value)]
        }
    if kind is dict:
        pairs = value.items()
        return {
            "dict": [
                [to_json_value(key), to_json_value(v, arrays, f"{path}/{key}")] for key, v in pairs
            ]
        }
    if kind is np.ndarray and arrays is not None:
        if not is_numeric(value.dtype):
            raise TypeError(f"The state's array {path} is not numeric. Got: {value.dtype}.")
        name = f"{path}.npy"
        while name in arrays:
            name = f"_{name}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic) and type(value.item()) in _PLAIN_JSON:
        return to_json_value(value.item())
    raise TypeError(
        "Expected names and metadata of str, int, float, bool, None and tuples of them, which a "
        f"file keeps exactly. Got: {value!r} of type {kind.__qualname__}. "
        "Hint: rename the variable, for example to its str()."
    )


def _is_plain(values: list[Any]) -> bool:
    """Whether JSON keeps every item of a list exactly, without a tag."""
    return set(map(type, values)) <= _PLAIN and not _SURROGATE_PAIR.search(
        "\n".join(item for item in values if type(item) is str)
    )


def from_json_value(value: Any, arrays: dict[str, NDArray[Any]] | None = None) -> Any:
    """Decode what `to_json_value` encoded; remove the arrays used from `arrays`."""
    if type(value) is list:
        if set(map(type, value)) <= _PLAIN_JSON:
            return value
        return [from_json_value(item, arrays) for item in value]
    if type(value) is not dict:
        return value
    ((tag, content),) = value.items()
    if tag == "array" and arrays is not None:
        if type(content) is not str or content not in arrays:
            raise ValueError(f"no entry {content!r}")
        return arrays.pop(content)
    if tag == "float" and type(content) is str:
        return float(content)
    if type(content) is list:
        if tag == "tuple":
            return tuple([from_json_value(item, arrays) for item in content])
        if tag == "tuples" and set(map(type, content)) <= {list}:
            return list(map(tuple, content))
        if tag == "dict" and set(map(type, content)) <= {list}:
            return unique_pairs(
                [(from_json_value(key), from_json_value(item, arrays)) for key, item in content]
            )
        if tag == "characters":
            return "".join(content)
    raise ValueError(f"unknown tag {tag!r} of {type(content).__name__}")


def is_iterable_collection(values: Any) -> bool:
    """Whether a value is iterable; a sparse matrix, a class and a 0-d array are not."""
    if is_sparse(values) or isinstance(values, type):
        return False
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) != 0


def as_array(values: Any, what: str) -> NDArray[Any]:
    """Return values as an array; ValueError that names `what` if NumPy cannot convert them."""
    try:
        return np.asarray(values)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {what} that form an array. Got: {error}.") from error


def unique_pairs(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict of pairs; raise ValueError for a repeated key."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key comes twice")
    return result


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is numeric and portable: no long double, object or text."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def deep_copied(state: Any) -> Any:
    """Return a state whose arrays, at any depth, are copies."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, dict):
        return {key: deep_copied(value) for key, value in state.items()}
    return state

"""Names and values as JSON keeps them exactly: 1, 1.0 and True apart, tuples, any float."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What JSON holds as it is: a list of nothing else needs no look at its members one by one.
_PLAIN = frozenset({str, int, bool, type(None)})
_PLAIN_JSON = _PLAIN | {float}
# Two lone surrogates side by side would come back from JSON as one character.
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def encode(value: Any, arrays: dict[str, NDArray[Any]] | None = None, place: str = "") -> Any:
    """Turn a value into what JSON keeps exactly; what it has no word for becomes {tag: content}.

    Arrays are put into `arrays`, if there is one, under the name of their `place` in the state.
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
        # Names such as (word, position) come by the million, too.
        if set(map(type, value)) == {tuple} and _is_plain(list(chain.from_iterable(value))):
            return {"tuples": value}
        return [encode(item, arrays, f"{place}/{k}") for k, item in enumerate(value)]
    if kind is tuple:
        return {"tuple": [encode(item, arrays, f"{place}/{k}") for k, item in enumerate(value)]}
    if kind is dict:
        pairs = value.items()
        return {"dict": [[encode(key), encode(v, arrays, f"{place}/{key}")] for key, v in pairs]}
    if kind is np.ndarray and arrays is not None:
        if not is_numeric(value.dtype):
            raise TypeError(f"The state's array {place} is not numeric. Got: {value.dtype}.")
        name = f"{place}.npy"
        while name in arrays:
            name = f"_{name}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic) and type(value.item()) in _PLAIN_JSON:
        return encode(value.item())
    raise TypeError(
        "Expected names and notes made of str, int, float, bool, None and tuples of them, as these "
        f"are what a file keeps exactly. Got: {value!r} of type {kind.__qualname__}. "
        "Hint: rename the variable, for example to its str()."
    )


def _is_plain(values: list[Any]) -> bool:
    """Whether JSON keeps every member of a list exactly, without a tag."""
    return set(map(type, values)) <= _PLAIN and not _SURROGATE_PAIR.search(
        "\n".join(item for item in values if type(item) is str)
    )


def decode(value: Any, arrays: dict[str, NDArray[Any]] | None = None) -> Any:
    """Undo `encode`, taking arrays out of `arrays`."""
    if type(value) is list:
        if set(map(type, value)) <= _PLAIN_JSON:
            return value
        return [decode(item, arrays) for item in value]
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
            return tuple([decode(item, arrays) for item in content])
        if tag == "tuples" and set(map(type, content)) <= {list}:
            return list(map(tuple, content))
        if tag == "dict" and set(map(type, content)) <= {list}:
            return without_repeats([(decode(key), decode(item, arrays)) for key, item in content])
        if tag == "characters":
            return "".join(content)
    raise ValueError(f"unknown tag {tag!r} of {type(content).__name__}")


def is_many(values: Any) -> bool:
    """Whether values can be gone through; a sparse matrix is none of the things that are."""
    if hasattr(values, "tocsc") or isinstance(values, type):
        return False
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) != 0


def array_of(values: Any, what: str) -> NDArray[Any]:
    """Return values as an array; where NumPy cannot make one of them say of what it could not."""
    try:
        return np.asarray(values)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {what} that make an array. Got: {error}.") from error


def without_repeats(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict of pairs; ValueError for a key that comes twice, for one of them would win."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key comes twice")
    return made


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether these are numbers that every machine has: no long double, no object, no text."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def own(state: Any) -> Any:
    """Return a state whose arrays, however deep, are copies: it no longer changes."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, dict):
        return {key: own(value) for key, value in state.items()}
    return state

"""Validation of names, and a 64-bit hash that, unlike `hash`, is the same in every process."""

from __future__ import annotations

import abc
import decimal
import hashlib
import numbers
import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.random_entries import keys_of_numbers
from streamsel._utils.sparse import is_sparse
from streamsel.params import parameter_repr

Keys = NDArray[np.uint64]

_KEY_BYTES = 8
# The name of random probe i is (PROBE, i).
PROBE = "probe"
# The name of the knockoff of a column is (KNOCKOFF, name).
KNOCKOFF = "knockoff"
_INT64 = range(-(1 << 63), 1 << 63)


class NameHash:
    """A keyed hash of names.

    Equal text and numbers have equal keys, as in a dict: 1, 1.0 and True are one name.
    Integers of 64 bits go through two rounds of splitmix64, since arrays can have millions of
    columns; all other names are encoded and hashed by BLAKE2b.

    Parameters
    ----------
    seed
        The seed of the hash.
    purpose
        The use of the keys: hashes for different purposes are independent.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._secret = hashlib.blake2b(f"{purpose} {seed}".encode()).digest()
        self._first, self._second = map(np.uint64, struct.unpack("<2Q", self._secret[:16]))

    def __call__(self, names: Sequence[Hashable]) -> Keys:
        """Return the keys of names, (b,)."""
        if not isinstance(names, range):
            plain: list[Any] = list(names)
            if (
                set(map(type, plain)) != {int}
                or min(plain) not in _INT64
                or max(plain) not in _INT64
            ):
                return np.fromiter(map(self._key, names), np.uint64, len(names))
        whole = np.array(names, dtype=np.int64)
        keys = np.empty(whole.size, dtype=np.uint64)
        keys_of_numbers(whole, self._first, self._second, keys)
        return keys

    def _key(self, name: Hashable) -> int:
        number = _as_int(name)
        if number is not None and number in _INT64:
            return int(self((number,))[0])
        return self.of_bytes(encode_name(name))

    def of_bytes(self, data: bytes) -> int:
        """Return the key of an encoded name."""
        digest = hashlib.blake2b(data, digest_size=_KEY_BYTES, key=self._secret).digest()
        return int.from_bytes(digest, "little")


def encode_name(name: Any) -> bytes:
    """Return a name as bytes: its type and its value.

    Equal text, numbers and tuples of them have equal bytes; other names are encoded by their
    `repr`.

    Raises
    ------
    TypeError
        For a name whose `repr` differs between processes.
    """
    if isinstance(name, str):
        return b"s" + name.encode("utf-8", "surrogatepass")
    if isinstance(name, bytes):
        return b"b" + name
    if isinstance(name, tuple):
        return b"t" + _joined(map(encode_name, name))
    if isinstance(name, frozenset):
        return b"u" + _joined(sorted(map(encode_name, name)))
    if (whole := _as_int(name)) is not None:
        return b"i%d" % whole
    if isinstance(name, numbers.Real | decimal.Decimal) and float(name) == name:
        return b"f" + struct.pack("<d", name)
    if isinstance(name, numbers.Complex):
        return b"c" + struct.pack("<2d", complex(name).real, complex(name).imag)
    kind = type(name)
    if kind.__repr__ is object.__repr__:  # type: ignore[comparison-overlap]
        raise TypeError(
            "Expected a name with the same repr in every process. Got: one of type "
            f"{kind.__qualname__}, whose repr is its memory address.\n"
            "Hint: use text, numbers or tuples of them as names."
        )
    return b"o" + _joined((kind.__qualname__.encode(), repr(name).encode()))


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _as_int(name: Any) -> int | None:
    """Return a name as an int if it equals one, else None."""
    if not isinstance(name, numbers.Number | decimal.Decimal | np.bool_):
        return None
    if isinstance(name, numbers.Complex):
        if name.imag != 0:
            return None
        name = name.real
    try:
        whole = int(name)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == name else None


class LazyNames(Sequence[Hashable]):
    """Names of columns that are made when they are indexed or iterated over.

    They are distinct, and valid names.
    """

    @abc.abstractmethod
    def find(self, name: Hashable) -> int | None:
        """Return the index of a name, None if it is not among these."""


def first_invalid_name(names: Sequence[Hashable], known: Mapping[Hashable, int]) -> int | None:
    """Return the index of the first invalid name, or None if all are valid.

    A name is invalid if it cannot be hashed, is not equal to itself, or occurs earlier in `names`
    or in `known`.
    """
    if isinstance(names, LazyNames):
        if len(known) < len(names):
            found = (names.find(name) for name in known)
            return min((index for index in found if index is not None), default=None)
        return next((index for index, name in enumerate(names) if name in known), None)
    if isinstance(names, range):
        if len(known) < len(names):
            indices = [names.index(h) for h in known if type(h) is int and h in names]
            # Known names such as True, 2.0 and NumPy's integers can equal an int of the range.
            others = [name for name in known if type(name) is not int and type(name) is not str]
            reals = [float(h) for h in others if isinstance(h, int | float | np.number | np.bool_)]
            whole = [int(h) for h in reals if h.is_integer()]
            indices += [names.index(h) for h in whole if h in names]
        elif known.keys().isdisjoint(names):
            return None
        else:
            indices = [i for i, name in enumerate(names) if name in known]
        return min(indices, default=None)
    try:
        distinct = set(names)
        # Fast path: str and int, as nearly all names are, equal themselves.
        valid = set(map(type, distinct)) <= {str, int} or all(map(_equals_itself, distinct))
        if valid and len(distinct) == len(names) and known.keys().isdisjoint(names):
            return None
    except (TypeError, RecursionError):
        return next(i for i, name in enumerate(names) if not _can_be_hashed(name))
    seen: set[Hashable] = set()
    for i, name in enumerate(names):
        if name in known or name in seen or not _equals_itself(name):
            return i
        seen.add(name)
    return None


def _can_be_hashed(name: Any) -> bool:
    """Whether a name is hashable; `isinstance(name, Hashable)` is wrong for a tuple of lists."""
    try:
        hash(name)
    except (TypeError, RecursionError):
        return False
    return True


def _equals_itself(name: Any) -> bool:
    """Whether a name can be looked up: NaN, also in a tuple, is not equal to itself."""
    try:
        if isinstance(name, tuple):
            return all(map(_equals_itself, name))
        return bool(name == name)  # noqa: PLR0124
    except (TypeError, RecursionError):  # pandas.NA has no truth value
        return False


def bad_name_error(name: Any) -> Exception:
    """Return the error for an invalid or repeated name."""
    if not _can_be_hashed(name):
        return TypeError(
            f"Expected names that can be hashed. Got: {parameter_repr(name)}.\n"
            "Hint: tuples are hashable, lists are not."
        )
    if not _equals_itself(name):
        return ValueError(
            f"Expected names that equal themselves. Got: {parameter_repr(name)}.\n"
            "Hint: give the column a name; NaN is not equal to itself."
        )
    return ValueError(
        f"Expected a new name for every column. Got: {parameter_repr(name)} again.\n"
        "Hint: a variable is learnt once; give every column a name of its own."
    )


def check_names(names: Any, n_columns: int) -> Sequence[Hashable]:
    """Check the column names of an array; return a range, or a list of distinct hashables."""
    if names is None:
        return range(n_columns)
    if isinstance(names, str) or is_sparse(names):
        got = f"the string {names!r}" if isinstance(names, str) else type(names).__name__
        raise TypeError(f"Expected names to be a sequence of names. Got: {got}.")
    if isinstance(names, range) and len(names) == n_columns:
        return names
    try:
        # tolist() converts the entries of arrays and pandas indexes to plain Python objects.
        result: list[Hashable] = list(names.tolist() if hasattr(names, "tolist") else names)
    except (TypeError, ValueError, IndexError, NotImplementedError) as error:
        raise TypeError(
            f"Expected names to be a sequence of names. Got: {type(names).__name__} ({error})."
        ) from error
    if len(result) != n_columns:
        raise ValueError(
            f"Expected {n_columns} names, one for each column. Got: {len(result)} names."
        )
    expect_distinct_names(result)
    return result


def expect_distinct_names(names: Sequence[Hashable]) -> None:
    """Raise ValueError if a name occurs more than once."""
    try:
        seen = set(names)
    except TypeError as error:
        raise TypeError(
            f"Expected hashable column names. Got: {error}.\nHint: use tuples instead of lists."
        ) from error
    if len(seen) == len(names):
        return
    repeated = []
    for name in names:
        if name in seen:
            seen.remove(name)
        elif name not in repeated:
            repeated.append(name)
    listed = ", ".join(map(repr, repeated[:5])) + (", ..." if len(repeated) > 5 else "")
    raise ValueError(
        f"Expected distinct column names. Got: {listed} more than once.\n"
        "Hint: rename or drop the repeated columns."
    )


def probe_number(name: Hashable) -> int | None:
    """Return the number of the random probe of this name, None for another column."""
    if isinstance(name, tuple) and len(name) == 2 and name[0] == PROBE:
        number = name[1]
        return number if type(number) is int and number >= 0 else None
    return None


def knockoff_source(name: Hashable) -> tuple[Hashable] | None:
    """Return the name of the column whose knockoff this is, in a tuple; None for another column."""
    if isinstance(name, tuple) and len(name) == 2 and name[0] == KNOCKOFF:
        return (name[1],)
    return None

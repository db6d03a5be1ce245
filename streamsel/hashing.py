"""Hash names to 64-bit keys, the same in every process and on every machine, unlike `hash`."""

from __future__ import annotations

import decimal
import hashlib
import numbers
import struct
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.entries import keys_of_numbers

Keys = NDArray[np.uint64]

_KEY = 8
_INT64 = range(-(1 << 63), 1 << 63)


class NameHash:
    """A keyed hash of names.

    Text and numbers that are equal have one key, as they are one key of a dict: 1, 1.0 and True.
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
        return self.of_bytes(encoded(name))

    def of_bytes(self, data: bytes) -> int:
        """Return the key of an encoded name."""
        digest = hashlib.blake2b(data, digest_size=_KEY, key=self._secret).digest()
        return int.from_bytes(digest, "little")


def encoded(name: Any) -> bytes:
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
        return b"t" + _joined(map(encoded, name))
    if isinstance(name, frozenset):
        return b"u" + _joined(sorted(map(encoded, name)))
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

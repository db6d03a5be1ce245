"""Deterministic damage to bytes: the same for the same seed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

# Numbers at which lengths, offsets and counts often fail.
_EDGES = (0, 1, -1, 2, 7, 8, 127, 128, 255, 2**15, 2**16, 2**24, 2**31 - 1, -(2**31), 2**31, 2**32)
_WIDE_EDGES = (*_EDGES, 2**40, 2**48, 2**62, 2**63 - 1, -(2**63))


def mutate(data: bytes, rng: random.Random, tokens: Sequence[bytes] = ()) -> bytes:
    """Return the bytes, damaged at one to four positions.

    Parameters
    ----------
    data
    The bytes to damage.
    rng
    Draws the positions and the kinds of damage.
    tokens
    Words of the format, inserted as well.
    """
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3, 4))):
        kinds = (*_KINDS, _token(tokens), _token(tokens)) if tokens else _KINDS
        rng.choice(kinds)(out, rng)
    return bytes(out)


def _flip_bit(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _set_integer(data: bytearray, rng: random.Random) -> None:
    """Overwrite an integer, or add a little to it."""
    size, code = rng.choice(((2, "<H"), (4, "<I"), (4, "<I"), (8, "<Q"), (8, "<Q")))
    if len(data) < size:
        return
    at = rng.randrange(len(data) - size + 1)
    if rng.random() < 0.8:
        at -= at % min(size, 4)
    near = struct.unpack_from(code, data, at)[0] + rng.choice((-9, -8, -1, 1, 2, 8, 64, 4096))
    value = rng.choice((near, rng.choice(_WIDE_EDGES), rng.randrange(len(data) + 9)))
    struct.pack_into(code, data, at, value % 2 ** (8 * size))


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(data: bytearray, rng: random.Random) -> None:
    a = rng.randrange(len(data) + 1)
    del data[a : a + rng.choice((1, 2, 4, 8, 64, rng.randrange(1, 256)))]


def _insert(data: bytearray, rng: random.Random) -> None:
    a = rng.randrange(len(data) + 1)
    data[a:a] = rng.randbytes(rng.choice((1, 2, 4, 8, 64)))


def _copy(data: bytearray, rng: random.Random) -> None:
    """Copy a piece of the bytes over another position."""
    size = rng.choice((4, 8, 16, 24, 64))
    a, b = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    piece = data[a : a + size]
    data[b : b + len(piece)] = piece


def _token(tokens: Sequence[bytes]) -> Callable[[bytearray, random.Random], None]:
    def put(data: bytearray, rng: random.Random) -> None:
        a = rng.randrange(len(data) + 1)
        data[a : a + rng.choice((0, 0, 1, 4))] = rng.choice(tokens)

    return put


# Small damage is drawn most: large damage is detected at once.
_KINDS = (
    *(_flip_bit, _flip_bit, _flip_bit, _set_byte, _set_byte),
    *(_set_integer, _set_integer, _set_integer, _set_integer),
    *(_cut, _remove, _insert, _copy),
)

"""Invalid arguments for every parameter: wrong types, shapes, values and names."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import io
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

if TYPE_CHECKING:
    import random


class PoisonedError(Exception):
    """Raised by a bad value itself: it is the caller's error, and is not caught."""


class Raises:
    """An object that raises at every access."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise PoisonedError

    __array__ = __iter__ = __len__ = __getitem__ = __float__ = __index__ = __bool__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = keys = items = _refuse
    __hash__ = None  # type: ignore[assignment]


class RaisesWhenHashed:
    """An object that raises when hashed."""

    def __hash__(self) -> int:
        raise PoisonedError


class Unequal:
    """An object that equals nothing, not even itself."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return False


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Lies:
    """An object that claims to be an array of a wrong shape."""

    shape = (14, 3)
    ndim = 2
    dtype = np.dtype(float)

    def __len__(self) -> int:
        raise PoisonedError


class Strange(np.ndarray):
    """A subclass of ndarray."""


class Endless(dict):  # type: ignore[type-arg]
    """A row that lists a feature but raises for its value."""

    def __getitem__(self, key: Any) -> Any:
        raise PoisonedError


def _deep(kind: Any = list) -> Any:
    value: Any = 1.0
    for _ in range(3000):
        value = [value] if kind is list else (value,)
    return value


def _itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def _failing() -> Any:
    yield "a", np.zeros(14)
    raise PoisonedError


_FORMATS = ("coo", "csr", "lil", "bsr")


def values(rng: random.Random) -> Any:
    """Return a bad value."""
    n = rng.choice((0, 1, 2, 13, 14, 15))
    p = rng.choice((0, 1, 3, 12))
    numbers = np.random.default_rng(rng.randrange(99))
    number = rng.choice(
        (0, -1, 1, 2, 10**9, 10**18, 2**63, 10**40, -(10**18), 0.0, 1.5, 1e-200, 1e200, 5e-324)
    )
    makers: tuple[Any, ...] = (
        lambda: None,
        lambda: rng.choice((True, False, np.True_)),
        lambda: number,
        lambda: rng.choice((np.nan, np.inf, -np.inf, np.float32(1), np.int8(3), 1j, np.float16(2))),
        lambda: rng.choice(("", "a", "v0", "nan", "1.0", "\ud800", "x" * 5000, b"v0", Text("v0"))),
        lambda: rng.choice(([], (), {}, set(), frozenset(), range(3), range(10**5), ..., object())),
        lambda: rng.choice((int, str, len, lambda: None, NotImplemented, Exception("x"))),
        lambda: rng.choice((Raises(), RaisesWhenHashed(), Unequal(), Lies(), Endless(v0=1.0))),
        lambda: rng.choice((_deep(), _deep(tuple), _itself())),
        lambda: rng.choice(
            (decimal.Decimal("NaN"), decimal.Decimal("1e999"), fractions.Fraction(1, 3))
        ),
        lambda: rng.choice(
            (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), np.datetime64("NaT"), pd.NaT, pd.NA)
        ),
        lambda: rng.choice((pathlib.Path("/nonexistent/x"), "/", "/dev/null", io.BytesIO(b"x"))),
        lambda: rng.choice((b"", bytearray(8), memoryview(b"12345678"))),
        lambda: np.full(n, rng.choice((0.0, 1.0, np.nan, np.inf, 1e200, 1e-200))),
        lambda: numbers.normal(size=n),
        lambda: numbers.normal(size=(n, p)),
        lambda: numbers.normal(size=(14, p)) * rng.choice((1e-200, 1e150, 1e160, 1.0)),
        lambda: numbers.normal(size=(n, p, 2)),
        lambda: np.array(3.0),
        lambda: np.array([["a", "b"]] * 14),
        lambda: np.array([1.0, "a", None] * 5, dtype=object)[:14],
        lambda: _objects([Raises()] * 14),
        lambda: numbers.normal(size=14).astype(
            rng.choice(
                ("f2", "f4", "i1", "u8", "c16", "?", "M8[s]", "m8[s]", ">f8", "S3", "longdouble")
            )
        ),
        lambda: np.ma.masked_array(numbers.normal(size=14), numbers.random(14) < 0.5),
        lambda: numbers.normal(size=14).view(Strange),
        lambda: np.zeros(14, dtype=[("a", float), ("b", int)]),
        lambda: np.broadcast_to(1.0, (14, 3)),
        lambda: numbers.normal(size=(28, 6))[::-2, ::2],
        lambda: sp.random(14, 3, 0.5, "csc", random_state=1),
        lambda: sp.random(n, p, 0.5, rng.choice(_FORMATS), random_state=1),
        lambda: _broken_csc(rng),
        lambda: sp.csc_matrix(np.array([[np.nan, 1.0]] * 14)),
        lambda: pd.DataFrame(numbers.normal(size=(14, 3)), columns=["a", "a", "b"]),
        lambda: pd.DataFrame({"a": ["x"] * 14, "b": [None] * 14}),
        lambda: pd.DataFrame({"a": pd.Categorical(["x", "y"] * 7)}),
        pd.DataFrame,
        lambda: pd.Series(numbers.normal(size=14), index=range(14, 0, -1)),
        lambda: pd.Series(["a", "b"] * 7),
        lambda: pd.Series([True, None] * 7),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: [1.0, "a", None] * 4,
        lambda: ["v0"] * 12,
        lambda: [f"w{i}" for i in range(12)],
        lambda: [[1]] * 12,
        lambda: [np.nan] * 12,
        lambda: (f"w{i}" for i in range(3)),
        lambda: {"v0": 1.0, "v1": number},
        lambda: {"v0": rng.choice(("a", None, [1.0], np.zeros(2), 1j, Raises(), np.nan, np.inf))},
        lambda: {number: 1.0, 1.5: 2.0, (1, 2): 3.0, None: 4.0, "v3": 5.0},
        lambda: {f"v{j}": number for j in range(12)},
        lambda: {"new": 1e200, "v1": 1.0},
        lambda: {"p": 1.0, "q": rng.choice((2.0, "a", None, np.nan))},
        lambda: [("a", np.zeros(14)), ("b", np.zeros(13))],
        lambda: [("a", np.zeros(14)), ("a", np.zeros(14))],
        lambda: [("a",), "bc", 3],
        lambda: [("a", Raises())],
        _failing,
        lambda: iter(()),
    )
    return rng.choice(makers)()


def _objects(items: list[Any]) -> Any:
    found = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        found[i] = item
    return found


def _broken_csc(rng: random.Random) -> Any:
    """Return a sparse matrix with inconsistent parts, which SciPy does not check."""
    X = sp.random(14, 5, 0.5, "csc", random_state=rng.randrange(9))
    how = rng.randrange(6)
    if how == 0:
        X.indices[0] = rng.choice((14, 10**6, -1, -(10**6)))
    elif how == 1:
        X.indptr[1] = rng.choice((10**6, -1))
    elif how == 2:
        X.indptr[-1] = rng.choice((10**6, 0))
    elif how == 3:
        X.data = X.data[:3]
    elif how == 4:
        X.indices = X.indices[:2]
    else:
        X.indptr = X.indptr[:-1]
    return X

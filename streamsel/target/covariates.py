"""Covariates: columns beside the target, given which everything is asked.

In the moments they are further target columns, under names of their own; the target space takes
them out of the target and of the variables in closed form.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsel._jit.rows import LARGEST
from streamsel.shapes import Flag, ListOf, Names, expect, rows_of
from streamsel.target.encode import Encoded, encode, is_missing


@dataclass(frozen=True, slots=True)
class Given:
    """The name of a covariate's column among those of the target."""

    name: Hashable


def encode_covariates(Z: Any, names: tuple[Hashable, ...] | None) -> Encoded:
    """Return covariates as columns, each named by a `Given`.

    Parameters
    ----------
    Z
        Numbers of shape (n,) or (n, d), labels of shape (n,), a Series or frame of either, or a
        mapping: name -> numbers or labels of shape (n,).
    names
        What they are called; None takes the names of a frame, or numbers.

    Raises
    ------
    ValueError, TypeError
        As `encode`, and where the names are not those of the frame, or as many as the columns.
    """
    try:
        encoded = _encode_mapping(Z) if isinstance(Z, Mapping) else encode(Z, "auto")
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In the covariates: {error}") from error
    kinds, columns = dict(encoded.kinds), encoded.names
    if kinds and names is not None and set(kinds) != set(names):
        raise ValueError(
            f"Expected the covariates {list(names)}, as the parameter covariates says. Got: "
            f"{list(kinds)}."
        )
    if not kinds:
        held = 1 if encoded.is_class else len(encoded.names)
        known = tuple(range(held)) if names is None else names
        if len(known) != held:
            raise ValueError(
                f"Expected {len(known)} covariates, as the parameter covariates says. Got: {held}."
            )
        kinds = dict.fromkeys(known, encoded.is_class)
        pairs = [(known[0], label) for label in encoded.names]
        columns = [*(pairs if encoded.is_class else known)]
    bad = np.argwhere(~(np.abs(encoded.columns) <= LARGEST))
    if bad.size:
        row, column = bad[0].tolist()
        raise _not_finite(columns[column], encoded.columns[row, column], row)
    return encoded._replace(names=[Given(name) for name in columns], kinds=kinds)


def _encode_mapping(Z: Mapping[Hashable, Any]) -> Encoded:
    """Return what `encode` does of a frame with these columns."""
    parts = {name: encode(values, "auto") for name, values in Z.items()}
    if not parts or len({len(part.columns) for part in parts.values()}) > 1:
        raise ValueError("Expected columns of one length. Got: others, or none.")
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

    A number that the row lacks is 0, as a feature is; a label that it lacks is not known, and the
    row is refused where labels came before.
    """
    values: dict[Hashable, float] = {}
    kinds: dict[Hashable, bool] = {}
    for name in names:
        value = x.get(name, 0.0)
        kinds[name] = isinstance(value, str | bytes | bool | np.bool_)
        if kinds[name]:
            values[Given((name, value))] = 1.0
            continue
        if is_missing(value):
            raise _not_finite(name, value)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"Expected a number or a label in the covariate {name!r}. Got: {value!r}."
            ) from None
        if not abs(number) <= LARGEST:
            raise _not_finite(name, number)
        values[Given(name)] = number
    return values, kinds


def is_given(names: Sequence[Hashable]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of a target's columns are covariates, (c,)."""
    return np.array([isinstance(name, Given) for name in names], dtype=np.bool_)


def names_to_state(names: Sequence[Hashable]) -> dict[str, list[Any]]:
    """Return the names of a target's columns for a file, those of covariates marked."""
    return {
        "names": [name.name if isinstance(name, Given) else name for name in names],
        "given": is_given(names).tolist(),
    }


def names_from_state(state: Mapping[str, Sequence[Any]]) -> list[Hashable]:
    """Return the names that `names_to_state` described."""
    expect(state, given=ListOf(rows_of(state, "names"), Flag()))
    pairs = zip(state["names"], state["given"], strict=True)
    names = [Given(name) if given else name for name, given in pairs]
    expect({"names": names}, names=Names())
    return names


def _not_finite(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    return ValueError(
        f"Expected a finite number, not beyond 1e152, in the covariate {name!r}. Got: "
        f"{value}{where}.\n"
        "Hint: what is asked given a covariate needs it in every row; drop the row, or fill it in."
    )

"""Covariates: columns alongside the target for which relevances are adjusted.

In the moments they are additional target columns with names of their own; the target space projects
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
    """The name of a covariate's column among the target's columns."""

    name: Hashable


def encode_covariates(Z: Any, names: tuple[Hashable, ...] | None) -> Encoded:
    """Return covariates as columns, each named by a `Given`.

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
        As `encode`, and if `names` differ from those of the frame, or from the number of columns.
    """
    try:
        encoded = _encode_mapping(Z) if isinstance(Z, Mapping) else encode(Z, "auto")
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
    bad = np.argwhere(~(np.abs(encoded.columns) <= LARGEST))
    if bad.size:
        row, column = bad[0].tolist()
        raise _not_finite(columns[column], encoded.columns[row, column], row)
    return encoded._replace(names=[Given(name) for name in columns], kinds=kinds)


def _encode_mapping(Z: Mapping[Hashable, Any]) -> Encoded:
    """Return the result of `encode` for a frame with these columns."""
    parts = {name: encode(values, "auto") for name, values in Z.items()}
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
    """Return which columns of a target are covariates, (c,)."""
    return np.array([isinstance(name, Given) for name in names], dtype=np.bool_)


def names_to_state(names: Sequence[Hashable]) -> dict[str, list[Any]]:
    """Return the names of a target's columns for a file, with flags for covariates."""
    return {
        "names": [name.name if isinstance(name, Given) else name for name in names],
        "given": is_given(names).tolist(),
    }


def names_from_state(state: Mapping[str, Sequence[Any]]) -> list[Hashable]:
    """Return the names that `names_to_state` saved."""
    expect(state, given=ListOf(rows_of(state, "names"), Flag()))
    pairs = zip(state["names"], state["given"], strict=True)
    names = [Given(name) if is_covariate else name for name, is_covariate in pairs]
    expect({"names": names}, names=Names())
    return names


def _not_finite(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    return ValueError(
        f"Expected a finite number, at most 1e152, in the covariate {name!r}. Got: "
        f"{value}{where}.\n"
        "Hint: covariates are needed in every row; drop the row, or impute the value."
    )

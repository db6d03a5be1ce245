"""Strata: groups of observations within which a target is permuted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.serialization.schema import ArrayKind, expect
from streamsel.targets.encoding import encode_target, only_column

Strata = NDArray[np.int64]


def encode_strata(strata: Any, n: int) -> Strata:
    """Return the number of each observation's group, (n,).

    Parameters
    ----------
    strata
        (n,) labels or whole numbers: an array, a list, a Series or a frame of one column.
    n
        Number of observations.

    Raises
    ------
    ValueError, TypeError
        For another length, missing values, and if every observation is a group of its own, so that
        no permutation is possible.
    """
    try:
        encoded = encode_target(only_column(strata), "class")
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In the strata: {error}") from error
    if len(encoded.columns) != n or not encoded.is_class:
        raise ValueError(
            f"Expected strata of shape ({n},), one group per observation. Got: "
            f"{np.shape(encoded.columns)[0]} observations."
        )
    if encoded.columns.shape[1] == n:
        raise ValueError(
            f"Expected strata of several observations. Got: {n} strata of one each.\n"
            "Hint: use a column of few distinct values, such as a batch or a family."
        )
    codes: Strata = np.argmax(encoded.columns, axis=1)
    return codes


def strata_from_state(state: dict[str, Any], n: int) -> Strata | None:
    """Return the strata in a state, if any."""
    if "target_strata" not in state:
        return None
    expect(state, target_strata=ArrayKind((n,), np.int64, 0, n))
    return np.array(state["target_strata"])


def same_strata(mine: Strata | None, theirs: Strata | None) -> bool:
    """Whether two targets are permuted within the same groups."""
    if mine is None or theirs is None:
        return mine is theirs
    return bool(np.array_equal(mine, theirs))

"""Times to an event, some cut short: what the null model leaves of them, martingale residuals.

With d_k the weight of the events at time t_k and R_k that of all who are still there, the null
model's cumulative hazard is H(t) = Σ_{t_k <= t} d_k / R_k (Nelson and Aalen; Breslow's way of
ties), and the residual of an observation is M = event - H(time): how much sooner, or later, its
event came than those of all. The residuals sum to 0, and Σ x M is Cox's score for x at no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.sparse import expect_whole
from streamsel.target.encode import Encoded
from streamsel.target.weights import Weights

Floats = NDArray[np.float64]

_NAMES = ("time", "event")


def encode_survival(y: Any, weights: Any = None) -> tuple[Encoded, Floats, Weights | None]:
    """Return the martingale residuals of the null model, as one column, events, and weights.

    Parameters
    ----------
    y
        As `times_and_events` has it.
    weights
        As `Weights.of` has them; None for equal ones.

    Raises
    ------
    ValueError, TypeError
        As `times_and_events` and `Weights.of`, and where there is no event.
    """
    time, event = times_and_events(y)
    weighted = None if weights is None else Weights.of(weights, len(time))
    w = np.ones(len(time)) if weighted is None else weighted.w
    if not event[w > 0.0].any():
        raise ValueError(
            f"Expected an event, 1, in some row. Got: none in {len(event)} rows.\n"
            "Hint: 1 is who had the event, 0 who left before it (censored)."
        )
    residuals = martingale_residuals(time, event, w)
    return Encoded(residuals[:, None], [0], is_class=False), event, weighted


def martingale_residuals(time: Floats, event: Floats, weights: Floats) -> Floats:
    """Return (n,) event - H(time), H the cumulative hazard of all, weighted."""
    distinct, place = np.unique(time, return_inverse=True)
    died = np.bincount(place, weights * event, distinct.size)
    left = np.bincount(place, weights, distinct.size)
    at_risk = np.cumsum(left[::-1])[::-1]
    hazard = np.divide(died, at_risk, out=np.zeros(distinct.size), where=died > 0.0)
    residuals: Floats = event - np.cumsum(hazard)[place]
    return residuals


def times_and_events(y: Any) -> tuple[Floats, Floats]:
    """Return times, (n,), and whether the event was seen then, 1 or 0, (n,).

    Parameters
    ----------
    y
        An (n, 2) array or list: time, then event. A frame or structured array of two columns: those
        called time and event; else the boolean one is the event; else time comes first.

    Raises
    ------
    ValueError, TypeError
        For what is not that, times that are negative, missing or infinite, and events that are
        neither 0 nor 1.
    """
    columns, names = _two_columns(y)
    order = _time_first(columns, names)
    time, event = (_numbers(columns[i], _NAMES[k]) for k, i in enumerate(order))
    _check_events(event, time)
    bad = np.flatnonzero(~((time >= 0.0) & (time < np.inf)))
    if bad.size:
        raise ValueError(
            f"Expected times that are 0 or above, and finite. Got: {time[bad[0]]} in row {bad[0]}."
            "\nHint: learn_target(y, missing='drop') leaves out rows whose time is missing."
        )
    return time, event


def _two_columns(y: Any) -> tuple[list[NDArray[Any]], list[Any]]:
    """Return two columns and their names, numbers where they have none."""
    import narwhals.stable.v2 as nw

    native = nw.from_native(y, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise TypeError(
            "Expected a target in memory. Got: a lazy frame.\nHint: call .collect() on it first."
        )
    if isinstance(native, nw.DataFrame):
        names = list(native.columns)
        if len(names) == 2:
            return [_of_series(native[:, j]) for j in range(2)], names
        raise _not_two(f"a frame of {len(names)} columns")
    if hasattr(y, "toarray"):
        expect_whole(y)
        y = y.toarray()
    # In a list a number and a boolean stay what they are.
    values = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if values.dtype.names is not None:
        names = list(values.dtype.names)
        if len(names) == 2 and values.ndim == 1:
            return [values[name] for name in names], names
        raise _not_two(f"a structured array of {len(names)} fields, shape {values.shape}")
    if values.ndim != 2 or values.shape[1] != 2:
        raise _not_two(f"an array of shape {values.shape}")
    return [values[:, 0], values[:, 1]], [0, 1]


def _of_series(series: Any) -> NDArray[Any]:
    import narwhals.stable.v2 as nw

    if series.dtype.is_numeric() or isinstance(series.dtype, nw.Boolean):
        kind = np.bool_ if isinstance(series.dtype, nw.Boolean) else np.float64
        if series.null_count():
            kind = np.float64
            series = series.cast(nw.Float64)
        return np.asarray(series.to_numpy(), dtype=kind)
    return np.array(series.to_list(), dtype=object)


def _time_first(columns: list[NDArray[Any]], names: list[Any]) -> tuple[int, int]:
    """Return the places of time and event: by name, else by type, else as they stand."""
    called = [str(name).lower() for name in names]
    for place, other in ((0, 1), (1, 0)):
        if called[place] == "time" or called[other] == "event":
            return place, other
    is_bool = [_is_bool(column) for column in columns]
    return (1, 0) if is_bool == [True, False] and names != [0, 1] else (0, 1)


def _is_bool(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "b" or (
        column.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in column)
    )


def _numbers(column: NDArray[Any], what: str) -> Floats:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind == "O" and not any(isinstance(v, str | bytes) for v in column):
        try:
            return column.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise TypeError(
        f"Expected numbers as the {what} of target='survival'. Got: values like {column[0]!r}.\n"
        "Hint: time is a number, such as days; event is 1 (seen) or 0 (censored)."
    )


def _check_events(event: Floats, time: Floats) -> None:
    bad = np.flatnonzero((event != 0.0) & (event != 1.0))
    if not bad.size:
        return
    hint = "1 is who had the event, 0 who left before it (censored)."
    seen = event[np.isfinite(event)]
    if np.isin(time, (0.0, 1.0)).all():
        hint = "the columns are time, then event; they seem to have changed places."
    elif np.isin(seen, (1.0, 2.0)).all():
        hint = "a status of 1 (censored) and 2 (event), as some files have it, is the event + 1."
    raise ValueError(
        f"Expected events that are 0 or 1. Got: {event[bad[0]]:g} in row {bad[0]}.\nHint: {hint}"
    )


def _not_two(what: str) -> ValueError:
    return ValueError(
        f"Expected times and events, (n, 2), as target='survival' says. Got: {what}.\n"
        "Hint: np.column_stack([time, event]), or a frame with the columns time and event."
    )

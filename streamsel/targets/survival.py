"""Survival targets: times to an event, possibly censored, as martingale residuals.

With d_k the weight of the events at time t_k and R_k that of all observations at risk, the null
model's cumulative hazard is H(t) = Σ_{t_k <= t} d_k / R_k (Nelson and Aalen; Breslow's handling of
ties). The residual of an observation is M = event - H(time): positive if its event came sooner than
expected. The residuals sum to 0, and Σ x M is Cox's score for x at no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.in_memory import not_in_memory_error
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.targets.encoding import Encoded
from streamsel.targets.weights import ObservationWeights

Floats = NDArray[np.float64]

_NAMES = ("time", "event")


def encode_survival(
    y: Any, weights: Any = None
) -> tuple[Encoded, Floats, ObservationWeights | None]:
    """Return the martingale residuals of the null model, as one column, events, and weights.

    Parameters
    ----------
    y
        As in `times_and_events`.
    weights
        As in `ObservationWeights.of`; None for equal ones.

    Raises
    ------
    ValueError, TypeError
        As `times_and_events` and `ObservationWeights.of`, if there is no event, and if all rows at
        risk have it at once, so that all residuals are 0.
    """
    time, event = times_and_events(y)
    weighted = None if weights is None else ObservationWeights.of(weights, len(time))
    w = np.ones(len(time)) if weighted is None else weighted.row_weights
    if not event[w > 0.0].any():
        raise ValueError(
            f"Expected an event, 1, in at least one row. Got: none in {len(event)} rows.\n"
            "Hint: 1 is an observed event, 0 a censored time."
        )
    residuals = martingale_residuals(time, event, w)
    if not residuals[w > 0.0].any():
        raise ValueError(
            "Expected an event while another row, without one, is at risk. Got: events at one time "
            "only, in all rows at risk then: no column can be tested.\n"
            "Hint: check the times; rows whose observation ends before an event are not at risk."
        )
    return Encoded(residuals[:, None], [0], is_class=False), event, weighted


def martingale_residuals(time: Floats, event: Floats, weights: Floats) -> Floats:
    """Return (n,) event - H(time), H the weighted cumulative hazard of all observations."""
    distinct, index = np.unique(time, return_inverse=True)
    events = np.bincount(index, weights * event, distinct.size)
    leaving = np.bincount(index, weights, distinct.size)
    at_risk = np.cumsum(leaving[::-1])[::-1]
    hazard = np.divide(events, at_risk, out=np.zeros(distinct.size), where=events > 0.0)
    residuals: Floats = event - np.cumsum(hazard)[index]
    return residuals


def times_and_events(y: Any) -> tuple[Floats, Floats]:
    """Return times, (n,), and whether the event was observed then, 1 or 0, (n,).

    Parameters
    ----------
    y
        An (n, 2) array or list: time, then event. A frame or structured array of two columns: those
        named time and event; else the boolean one is the event; else time comes first.

    Raises
    ------
    ValueError, TypeError
        For other input, times that are negative, missing or infinite, and events that are neither 0
        nor 1.
    """
    columns, names = _two_columns(y)
    order = _time_first(columns, names)
    time, event = (_numbers(columns[i], _NAMES[k]) for k, i in enumerate(order))
    _check_events(event, time)
    bad = np.flatnonzero(~((time >= 0.0) & (time < np.inf)))
    if bad.size:
        raise _bad_time_error(float(time[bad[0]]), int(bad[0]))
    return time, event


def _bad_time_error(time: float, row: int) -> ValueError:
    hint = "count times from the start of observation."
    if np.isnan(time):
        hint = "learn_target(y, missing='drop') excludes rows with a missing time."
    elif time > 0.0:
        hint = "the time of a row without an event is the end of its observation."
    return ValueError(
        f"Expected finite times of at least 0. Got: {time} in row {row}.\nHint: {hint}"
    )


def _two_columns(y: Any) -> tuple[list[NDArray[Any]], list[Any]]:
    """Return two columns and their names, numbers if unnamed."""
    import narwhals.stable.v2 as nw

    native = nw.from_native(y, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise not_in_memory_error("a target", y)
    if isinstance(native, nw.DataFrame):
        names = list(native.columns)
        if len(names) == 2:
            return [_of_series(native[:, j]) for j in range(2)], names
        raise _not_two(f"a frame of {len(names)} columns")
    if hasattr(y, "toarray"):
        expect_consistent_sparse(y)
        y = y.toarray()
    # In a list, numbers and booleans keep their types.
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
    """Return the indices of time and event: by name, else by type, else in order."""
    lowered = [str(name).lower() for name in names]
    for time, event in ((0, 1), (1, 0)):
        if lowered[time] == "time" or lowered[event] == "event":
            return time, event
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
        f"Expected numbers as the {what} of target_type='survival'. Got: values like "
        f"{column[0]!r}.\n"
        "Hint: time is a number, such as days; event is 1 (observed) or 0 (censored)."
    )


def _check_events(event: Floats, time: Floats) -> None:
    bad = np.flatnonzero((event != 0.0) & (event != 1.0))
    if not bad.size:
        return
    hint = "1 is an observed event, 0 a censored time."
    seen = event[np.isfinite(event)]
    if np.isin(time, (0.0, 1.0)).all():
        hint = "the columns are time, then event; they seem to be swapped."
    elif np.isnan(event[bad[0]]):
        hint = "learn_target(y, missing='drop') excludes rows with a missing event."
    elif np.isin(seen, (1.0, 2.0)).all():
        hint = "a status of 1 (censored) and 2 (event) is the event + 1; subtract 1."
    raise ValueError(
        f"Expected events that are 0 or 1. Got: {event[bad[0]]:g} in row {bad[0]}.\nHint: {hint}"
    )


def _not_two(what: str) -> ValueError:
    return ValueError(
        f"Expected times and events, (n, 2), as target_type='survival' requires. Got: {what}.\n"
        "Hint: np.column_stack([time, event]), or a frame with the columns time and event."
    )

"""Model files of earlier versions: what their states were, in today's words."""

from __future__ import annotations

from typing import Any

import numpy as np

VERSION = 3
OLDEST = 2

State = dict[str, Any]


def modern(version: int, learner: str, state: State) -> State:
    """Return the state of a learner as this version writes it.

    Parameters
    ----------
    version
        Of the format that the file was written in.
    learner
        Name of its class.
    state
        What the file holds; left as it is.
    """
    return _from_2(learner, state) if version < 3 else state


def _from_2(learner: str, state: State) -> State:
    """Return what 0.2.0 and 0.3.0 held.

    Their targets had no covariates, and no description. What ProjSe kept of columns was called
    "pool", and without a target it lacked what rounding takes from a mean; the components of SOSPCA
    lay open in the state, with one slot more than needed, and told no order of arrival: that of
    slots was it.
    """
    new = dict(state)
    if "target_names" in new:
        new["target_names"] = _named(new["target_names"])
        new["target_given_kinds"] = [[], []]
        new["target_description"] = None
    if "moments" in new:
        moments = dict(new["moments"])
        names = moments.pop("target_names")
        parts = {key: moments.pop(key) for key in ("form", "kinds", "origin")}
        moments["target"] = {**parts, "given_kinds": [[], []], "names": _named(names)}
        new["moments"] = moments
        # Transforms used what was found at every row: it is to stand at once.
        new |= {"due": None, "standing": None}
    if learner == "ProjSe":
        if "pool" in new:
            new["columns"] = _pool_from_2(new.pop("pool"))
        return new
    new["n_passes"] = int(bool(new["n_columns"]) and "moments" not in new)
    if "on_rows" in new:
        beside = _with_room_to_stand(new.pop("on_rows"))
        new["beside"] = {**beside, "arrival": np.arange(float(beside["count"]))}
    elif "Z" in new:
        parts = {key: new.pop(key) for key in ("Z", "Mzz", "Czy", "relevance", "support")}
        m, support = len(parts["Z"]), parts["support"]
        support = {**support, "B": support["B"][:, :m]}
        new["columns"] = {**parts, "support": support, "arrival": np.arange(float(m))}
    return new


def _with_room_to_stand(on_rows: State) -> State:
    """Return components on rows with room for as many that stand."""
    watched = on_rows["watched"]
    first = watched["B"].shape[1]
    size = len(on_rows["mean"]) + first - 1
    # Where the sums, and behind them the candidates, are now.
    at = np.r_[0:first, 2 * first - 1 : size]
    B, mean, J = (
        np.zeros((len(watched["B"]), 2 * first - 1)),
        np.zeros(size),
        np.zeros((size, size)),
    )
    B[:, :first], mean[at], J[np.ix_(at, at)] = watched["B"], on_rows["mean"], on_rows["J"]
    return {**on_rows, "watched": {**watched, "B": B}, "mean": mean, "J": J}


def _named(names: list[Any]) -> State:
    return {"names": names, "given": [False] * len(names)}


def _pool_from_2(pool: State) -> State:
    table = dict(pool["table"])
    p = len(table["names"])
    table.setdefault("low", np.zeros(p))
    table.setdefault("cxy", np.zeros((p, 0)))
    return {**pool, "table": table}

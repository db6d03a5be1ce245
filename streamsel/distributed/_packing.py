"""Serialization of models between machines: the target once, then only states.

Every result is bytes, even where it stays on its machine: otherwise arrays of a model that was sent
and of one that was not could differ in memory layout, and so in the last bits of results.
"""

from __future__ import annotations

import pickle
from typing import Any

from streamsel.target.target import Target


def pack_blank(model: Any) -> bytes:
    """Return a model with at most its target as bytes; its classes may be those of a script."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(model)
    return packed


def unpack_blank(blank: bytes) -> Any:
    """Return a new model that has learnt at most its target."""
    return pickle.loads(blank)  # noqa: S301 (by a task of this job, on a cluster that runs code)


def pack(model: Any) -> bytes:
    """Return the state of a model as bytes, without the observations of its target."""
    state = model._get_state()
    state.pop("target_Y", None)
    return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(blank: bytes, packed: bytes) -> Any:
    """Return a model with a packed state and the target of `blank`."""
    model = unpack_blank(blank)
    state = pickle.loads(packed)  # noqa: S301 (as above)
    if isinstance(model._target, Target):
        state["target_Y"] = model._target.to_state()["target_Y"]
    model._set_state(state)
    return model

"""Models as bytes, as they are sent between machines: the target once, and then only states.

Every result is bytes, also where it stays on its machine: a model that was sent and one that was
not would otherwise differ in how their arrays lie in memory, and so in their last bits.
"""

from __future__ import annotations

import pickle
from typing import Any

from streamsel.target.target import Target


def pack_blank(model: Any) -> bytes:
    """Return a model that knows its target at most; parameters may be of classes of a script."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(model)
    return packed


def unpack_blank(blank: bytes) -> Any:
    """Return a new model that has learnt nothing but its target."""
    return pickle.loads(blank)  # noqa: S301 (by a task of this job, on a cluster that runs code)


def pack(model: Any) -> bytes:
    """Return what a model has learnt, without the observations of its target."""
    state = model._get_state()
    state.pop("target_Y", None)
    return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(blank: bytes, packed: bytes) -> Any:
    """Return a model that has learnt what was packed, of the target that the blank has."""
    model = unpack_blank(blank)
    state = pickle.loads(packed)  # noqa: S301 (as above)
    if isinstance(model._target, Target):
        state["target_Y"] = model._target.to_state()["target_Y"]
    model._set_state(state)
    return model

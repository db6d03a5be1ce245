"""Signs of the association of selected variables with the target, and sizes of its classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from streamsel.base.phase import Phase
from streamsel.base.report import Direction
from streamsel.base.windows import WindowPhase
from streamsel.state.base import Indices, VariableState
from streamsel.targets.encoding import Covariates
from streamsel.targets.target import Target


def directions_of(phase: Phase, state: VariableState, picked: Indices) -> list[Direction] | None:
    """Return the directions of selected variables; None without a target.

    Parameters
    ----------
    phase
        The phase of the learner.
    state, picked
        Its state, and the indices of the variables.

    Notes
    -----
    The sign is that of the r_k = x̃ᵀỹ_k / ‖x̃‖ ‖ỹ_k‖ of largest absolute value, over the columns
    ỹ_k of the target. ‖x̃‖ is the same for all of these.
    """
    space, target = state.space, _target_columns(phase)
    if space is None or target is None or space.c != len(target[0]):
        return None
    names, is_class = target
    names = [name for name in names if not isinstance(name, Covariates)]
    products = state.stats(picked).cxy @ space.target_map.T
    r = products[:, : len(names)] / np.sqrt(np.maximum(np.diag(space.target_products), 1e-300))
    if is_class and len(names) == 2:
        largest = (r[:, 1] > r[:, 0]).astype(np.intp)
    else:
        largest = np.abs(r).argmax(axis=1)
    signs = np.sign(r[np.arange(len(r)), largest]).astype(int).tolist()
    is_several = is_class or len(names) > 1
    return [
        Direction(sign, names[k] if is_several else None, is_class)
        for sign, k in zip(signs, largest.tolist(), strict=True)
    ]


def _target_columns(phase: Phase) -> tuple[Sequence[Hashable], bool] | None:
    """Return the names of the target's columns, and whether these are classes."""
    if isinstance(phase.target, Target):
        return phase.target.names, phase.target.is_class
    rows = phase.window.target if isinstance(phase, WindowPhase) else None
    if phase.moments is not None:
        rows = phase.moments.target
    return None if rows is None else (list(rows.index_of), rows.form == "class")


def class_sizes_of(phase: Phase) -> dict[Hashable, int] | None:
    """Return the number of rows of each class; None if these are not known."""
    target = phase.target
    if not isinstance(target, Target) or not target.is_class:
        return None
    names = [name for name in target.names if not isinstance(name, Covariates)]
    transformed = target.row_transform is not None
    sizes = target.columns().sum(axis=0) if transformed else target.mean * target.n
    if not np.isfinite(sizes[: len(names)]).all():  # rows of weight 0
        return None
    return dict(zip(names, np.rint(sizes[: len(names)]).astype(int).tolist(), strict=True))

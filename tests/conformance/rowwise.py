"""Shared helpers for conformance tests on rows: modes that learn rows, data, and loops."""

import numpy as np

from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.row_extension import RowExtension
from tests.conformance.modes import MODES, build, close, shown

# A model that selects without a target learns no rows.
ROW_MODES = {
    name: mode for name, mode in MODES.items() if mode.has_target or not mode.cls._is_supervised
}
WITHOUT_TARGET = {name: mode for name, mode in MODES.items() if name not in ROW_MODES}
BY_WINDOW = {name: mode for name, mode in ROW_MODES.items() if build(mode)._by_window}
# Modes whose state after rows contains exactly the moments.
BY_MOMENTS = {
    name: mode
    for name, mode in ROW_MODES.items()
    if name not in BY_WINDOW and not mode.by_name
    if not issubclass(mode.cls._row_state_type, RowExtension)
    or issubclass(mode.cls._row_state_type, CrossMoments)
}


# ------------------------------------------------------------------------------------ learning


def of_target(model, y):
    """Return the target to learn with a row, for a model or for its host."""
    return (y,) if getattr(model, "_is_supervised", True) else ()


def learn_one(model, x, y):
    model.learn_one(x, *of_target(model, y))


def learn_many(model, X, y):
    model.learn_many(X, *of_target(model, y))


def taught(model, rows):
    """Return the model after it has learnt rows of x and y."""
    for x, y in rows:
        learn_one(model, x, y)
    return model


def outputs(model, rows):
    return [model.transform_one(x) for x, _ in rows]


# -------------------------------------------------------------------------------- rows, targets


def kinds_of(mode):
    """Return the types of target that rows of a mode may have; "none" without a target."""
    if not mode.cls._is_supervised:
        return ["none"]
    classes = is_of_classes(mode)
    asked = {
        "number": (3, True) if classes else (1, False),
        "labels": (3, True),
        "two labels": (2, True),
        "several": (3, False),
    }
    return [kind for kind, (c, is_class) in asked.items() if suits(mode, c, is_class=is_class)]


def is_of_classes(mode):
    """Return whether numbers are classes."""
    return mode.of_classes


def suits(mode, c, *, is_class):
    """Return whether a mode supports a target of c columns, or of classes."""
    try:
        build(mode)._check_target(c, is_class=is_class)
    except ValueError:
        return False
    return True


def of_kind(mode, kind, value, i):
    """Return the target of row i with this type; new classes and targets start at row 20."""
    if kind == "number" and is_of_classes(mode):
        return float(np.digitize(value, [-1.0, 1.0])) if i >= 20 else float(value > 0.0)
    if kind in ("number", "none"):
        return value
    if kind == "two labels":
        return "uv"[int(value > 0.0)]
    if kind == "labels":
        return "uvw"[int(value > 0.0) + int(value > 1.0 and i >= 20)]
    return {"p": value, "q": value**2} | ({"r": abs(value)} if i >= 20 else {})


def stream(mode, n, kind=None, seed=0, names="abcdef"):
    """Return rows of these features; b and, less strongly, e explain the target."""
    rng = np.random.default_rng(seed)
    rows = []
    kind = kind or kinds_of(mode)[0]
    for i in range(n):
        x = dict(zip(names, (rng.normal(size=len(names)) + 2.0).tolist(), strict=True))
        values = [*x.values()]
        value = values[1] + 0.5 * values[-2] - 3.0 + 0.5 * float(rng.normal())
        rows.append((x, of_kind(mode, kind, value, i)))
    return rows


# ---------------------------------------------------------------------------------- comparison


def assert_same_model(one, other, tolerance=1e-9):
    """Check that two models have learnt the same from rows, up to rounding."""
    mine, theirs = shown(one), shown(other)
    close(theirs, mine, tolerance)
    names = [None if model._state is None else list(model._state.names) for model in (one, other)]
    assert names[0] == names[1]
    assert one.n_rows == other.n_rows

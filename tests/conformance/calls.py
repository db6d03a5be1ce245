"""Every kind of call that changes a model, for tests of atomicity under exceptions."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from streamsel.base.windows import WindowPhase
from tests.conformance.modes import GROUP_MODES, build, data, fresh, in_groups, learnt
from tests.conformance.rowwise import ROW_MODES, kinds_of, learn_many, learn_one, stream
from tests.interruptions import Situation

NAMES = list("abcdefghij")
NAN = float("nan")


def calls(mode: Any, offset: int = 0) -> Iterator[tuple[str, Situation]]:
    """Yield the calls that a mode supports, each with a model that is about to be called.

    Situations are made one at a time; `offset` determines the first of them.
    """
    start = offset % len(KINDS)
    for kind in (*KINDS[start:], *KINDS[:start]):
        situation = _MAKERS[kind](mode)
        if situation is not None:
            yield kind, situation


def _copies(model: Any, warm: Callable[[Any], object] = lambda _: None) -> Callable[[], Any]:
    """Return a function that makes copies of a model, which then learn the last part themselves.

    A copy does not share the cached names of the row before.
    """

    def make() -> Any:
        one = copy.deepcopy(model)
        warm(one)
        return one

    return make


def _taught(mode: Any, n: int, kind: Any = None) -> tuple[Any, Any]:
    model, rows = build(mode), stream(mode, n + 12, kind)
    for x, y in rows[: n - 1]:
        learn_one(model, x, y)
    return _copies(model, lambda model: learn_one(model, *rows[n - 1])), rows[n:]


def _teach(rows: Any, model: Any) -> None:
    for x, y in rows:
        learn_one(model, x, y)


def _row(mode: Any, change: Callable[[dict[str, Any]], object], n: int = 30) -> Situation | None:
    if mode not in ROW_MODES.values():
        return None
    make, rows = _taught(mode, n)
    x, y = rows[0]
    x = dict(x)
    change(x)
    return Situation(make, partial(_learn, x, y), partial(_teach, rows[1:6]))


def _learn(x: Any, y: Any, model: Any) -> None:
    learn_one(model, x, y)


def _first_row(mode: Any) -> Situation | None:
    if mode not in ROW_MODES.values():
        return None
    rows = stream(mode, 6)
    return Situation(partial(build, mode), partial(_learn, *rows[0]), partial(_teach, rows[1:]))


def _of_columns(mode: Any) -> tuple[Any, Any, Any]:
    rows = stream(mode, 24, names=NAMES)
    return np.array([[*x.values()] for x, _ in rows[:18]]), [y for _, y in rows[:18]], rows[18:]


def _row_after_columns(mode: Any) -> Situation | None:
    if mode not in ROW_MODES.values():
        return None
    X, y, rows = _of_columns(mode)
    model = learnt(mode, X, y, NAMES)
    return Situation(_copies(model), partial(_learn, *rows[0]), partial(_teach, rows[1:]))


def _refreshing_row(mode: Any) -> Situation | None:
    """Return the row at which the snapshot is refreshed, or a window is learnt."""
    if mode not in ROW_MODES.values() or build(mode)._refreshes_always:
        return None
    model, rows = build(mode), stream(mode, 400)
    for i, (x, y) in enumerate(rows[:-10]):
        if i > 20 and _refreshes_next(model):
            make = _copies(model)
            return Situation(make, partial(_learn, x, y), partial(_teach, rows[i + 1 : i + 6]))
        learn_one(model, x, y)
    return None


def _refreshes_next(model: Any) -> bool:
    if isinstance(model._phase, WindowPhase):
        window = model._phase.window
        return bool(window.count + 1 == window.size)
    return bool(model._refresh.due_at == model.n_rows + 1)


def _new_label(mode: Any) -> Situation | None:
    if mode not in ROW_MODES.values() or (kind := kinds_of(mode)[-1]) in ("none", "number"):
        return None
    rows = stream(mode, 80, kind)
    known = {str(y) for _, y in rows[:20]}
    new = next((i for i in range(20, 70) if kind == "several" or str(rows[i][1]) not in known), 20)
    make, rest = _taught(mode, new, kind)
    return Situation(make, partial(_learn, *rest[0]), partial(_teach, rest[1:6]))


def _frame(mode: Any, change: Callable[[Any], object], size: int) -> Situation | None:
    if mode not in ROW_MODES.values():
        return None
    make, rows = _taught(mode, 12)
    more = stream(mode, size, seed=1)
    X, y = pd.DataFrame([x for x, _ in more]), pd.Series([y for _, y in more])
    change(X)
    return Situation(make, lambda model: learn_many(model, X, y), partial(_teach, rows[:5]))


def _lacking(X: Any) -> None:
    X.loc[3:6, ["b", "c"]] = NAN
    X["g"], X["h"] = np.arange(len(X)) * 0.5, 1.0


def _columns(mode: Any) -> Situation | None:
    """Return a block; learning continues from the end of a block."""
    if not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    model = learnt(mode, X[:, :30], y)

    def call(model: Any) -> None:
        model.learn_columns(X[:, 30:50], range(30, 50))

    def go_on(model: Any) -> None:
        model.learn_columns(X[:, 50:], range(50, 60))

    return Situation(_copies(model), call, go_on)


def _column(mode: Any) -> Situation | None:
    if not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    model = learnt(mode, X[:, :40], y)

    def go_on(model: Any) -> None:
        for j in range(41, 60):
            model.learn_column(j, X[:, j])

    return Situation(_copies(model), lambda model: model.learn_column(40, X[:, 40]), go_on)


def _group(mode: Any, before: str) -> Situation | None:
    """Return a single group, after groups or after single columns, which become groups of one."""
    if str(mode) not in GROUP_MODES or not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    model = fresh(mode, y)
    # A bounded pool that has discarded single columns accepts no groups.
    first = X[:, :30] if before == "groups" else X[:, :4]
    model.learn_columns(in_groups(first) if before == "groups" else first)

    def go_on(model: Any) -> None:
        model.learn_group("later", X[:, 40:44], range(40, 44))
        model.learn_columns(X[:, 44:], range(44, 60))

    def call(model: Any) -> None:
        model.learn_group("one", X[:, 30:33], range(30, 33))

    return Situation(_copies(model), call, go_on)


def _groups(mode: Any) -> Situation | None:
    """Return many groups in one block, the first of a model."""
    if str(mode) not in GROUP_MODES or not mode.in_pieces:
        return None
    X, y = data(mode, p=60)

    def go_on(model: Any) -> None:
        model.learn_group("later", X[:, :4] ** 2, NAMES[:4])

    make = _copies(fresh(mode, y))
    return Situation(make, lambda model: model.learn_columns(in_groups(X)), go_on)


def _row_after_groups(mode: Any) -> Situation | None:
    if str(mode) not in GROUP_MODES or mode not in ROW_MODES.values():
        return None
    X, y, rows = _of_columns(mode)
    model = fresh(mode, y)
    model.learn_columns(in_groups(np.asfortranarray(X), NAMES))
    if model._columns.unmergeable_reason or getattr(model._columns, "has_discarded", False):
        return None
    return Situation(_copies(model), partial(_learn, *rows[0]), partial(_teach, rows[1:]))


def _merged_groups(mode: Any) -> Situation | None:
    if str(mode) not in GROUP_MODES or not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    one, other = fresh(mode, y), fresh(mode, y)
    one.learn_columns(in_groups(X[:, :25]))
    other.learn_columns(in_groups(X[:, 25:50], list("abcdefghijklmnopqrstuvwxy")))
    if one._columns.unmergeable_reason:
        return None

    def go_on(model: Any) -> None:
        model.learn_group("later", X[:, 50:54], range(50, 54))

    return Situation(_copies(one), lambda model: model.merge(copy.deepcopy(other)), go_on)


def _target(mode: Any) -> Situation | None:
    if not mode.cls._is_supervised:
        return None
    X, y = data(mode, p=20)
    make = partial(build, mode)
    return Situation(make, lambda m: m.learn_target(y), lambda m: m.learn_columns(X))


def _merged_columns(mode: Any) -> Situation | None:
    if not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    one, other = learnt(mode, X[:, :25], y), learnt(mode, X[:, 25:50], y, range(25, 50))
    if one._columns is None or one._columns.unmergeable_reason:
        return None

    def go_on(model: Any) -> None:
        model.learn_columns(X[:, 50:], range(50, 60))

    return Situation(_copies(one), lambda model: model.merge(copy.deepcopy(other)), go_on)


def _merged_rows(mode: Any) -> Situation | None:
    if mode not in ROW_MODES.values() or build(mode)._by_window:
        return None
    make, rows = _taught(mode, 30)
    other = build(mode)
    _teach(stream(mode, 25, seed=1, names="bcdegh"), other)
    return Situation(
        make, lambda model: model.merge(copy.deepcopy(other), along="rows"), partial(_teach, rows)
    )


def _refresh(mode: Any) -> Situation | None:
    if mode not in ROW_MODES.values():
        return None
    make, rows = _taught(mode, 30)
    return Situation(make, lambda model: model.refresh(), partial(_teach, rows))


def _loadings(mode: Any) -> Situation | None:
    if not hasattr(mode.cls, "learn_loadings") or not mode.in_pieces:
        return None
    X, y = data(mode, p=60)
    model = learnt(mode, X, y)
    try:
        copy.deepcopy(model).learn_loadings(X)
    except ValueError:
        return None

    def go_on(model: Any) -> None:
        model.learn_columns(X[:, :4] ** 2, NAMES[:4])

    return Situation(_copies(model), lambda model: model.learn_loadings(X), go_on)


def _learn_from(mode: Any) -> Situation | None:
    if not hasattr(mode.cls, "learn_from"):
        return None
    X, y = data(mode, p=60)
    other = learnt(mode, X[:, :50], y)
    try:
        fresh(mode, y).learn_from(copy.deepcopy(other))
    except ValueError:
        return None

    def go_on(model: Any) -> None:
        model.learn_columns(X[:, 50:], range(50, 60))

    make = _copies(fresh(mode, y))
    return Situation(make, lambda model: model.learn_from(copy.deepcopy(other)), go_on)


_MAKERS: dict[str, Callable[[Any], Situation | None]] = {
    "first row": _first_row,
    "row after columns": _row_after_columns,
    "row": lambda mode: _row(mode, lambda x: None),
    "row in another order": lambda mode: _row(mode, lambda x: x.update(a=x.pop("a"))),
    "row with gaps": lambda mode: _row(mode, lambda x: x.update(b=None, d=NAN)),
    "row with new variables": lambda mode: _row(mode, lambda x: x.update(g=1.5, h=-0.5)),
    "row of few variables": lambda mode: _row(mode, lambda x: [x.pop(name) for name in "bcd"]),
    "refreshing row": _refreshing_row,
    "new label": _new_label,
    "frame": lambda mode: _frame(mode, lambda X: None, 5),
    "frame with gaps and new variables": lambda mode: _frame(mode, _lacking, 9),
    "large frame": lambda mode: _frame(mode, lambda X: None, 40),
    "column": _column,
    "columns": _columns,
    "target": _target,
    "group": lambda mode: _group(mode, "groups"),
    "first group after columns": lambda mode: _group(mode, "columns"),
    "groups": _groups,
    "row after groups": _row_after_groups,
    "merged groups": _merged_groups,
    "merged columns": _merged_columns,
    "merged rows": _merged_rows,
    "refresh": _refresh,
    "loadings": _loadings,
    "learn from": _learn_from,
}
KINDS = tuple(_MAKERS)

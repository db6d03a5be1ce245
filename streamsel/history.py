"""A log of the variables that a learner of a pipeline uses while it learns rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Self

from river import base as river

from streamsel import params
from streamsel.base.learner import Learner
from streamsel.base.selector import Selector


class Event(NamedTuple):
    """A change of the variables in use.

    Attributes
    ----------
    row
        The number of rows learnt when the change was noticed.
    entered, left
        Names that are in use since then, and names that no longer are.

    Examples
    --------
    >>> from streamsel.history import Event
    >>> Event(50, entered=("a", "b"), left=()).row
    50
    """

    row: int
    entered: tuple[Hashable, ...]
    left: tuple[Hashable, ...]


class History(
    river.MiniBatchSupervisedTransformer,
    river.MiniBatchTransformer,
    river.SupervisedTransformer,
):
    """A learner in a pipeline, with a log of the variables that enter and leave as it learns rows.

    It replaces the learner in the pipeline: rows are learnt and transformed by the learner, and all
    other attributes, such as `selected` or `report`, are the learner's. The log follows `in_use`,
    the names by which rows are transformed: the selected variables of a selector, and the variables
    with loadings of an extractor.

    Parameters
    ----------
    learner
        A selector or an extractor.
    max_changes
        How many names that entered or left are kept. Beyond that the oldest events are dropped, and
        the history begins with the names in use after them.

    Attributes
    ----------
    learner
        The learner.

    Raises
    ------
    TypeError
        If `learner` is not a learner of streamsel.
    ValueError
        If `max_changes` is below 1.

    See Also
    --------
    streamsel.plot.history : plot it.

    Notes
    -----
    **Cost.** One comparison per row of the snapshot in use with the previous one: they are the same
    object unless it was refreshed. Memory is bounded by `max_changes`.

    **When.** The names are compared after every call of `learn_one`, `learn_many` and `refresh`:
    changes within a frame of rows are not seen. For an extractor every refresh is an event, since
    its components have changed; for a selector only those that change its names.

    **Copies.** A clone has learnt and logged nothing; other copies keep both. `save` stores only
    learners, `save(history.learner, path)`; `pickle` keeps both.

    Examples
    --------
    After 300 rows another variable begins to matter:

    >>> import random
    >>> from river import linear_model
    >>> from streamsel import History, ProjSe

    >>> history = History(ProjSe(k=1, fading_factor=0.02))
    >>> pipeline = history | linear_model.LinearRegression()
    >>> rng = random.Random(0)
    >>> for row in range(600):
    ...     x = {name: rng.gauss(0, 1) for name in "abc"}
    ...     pipeline.learn_one(x, x["a"] if row < 300 else x["b"])
    >>> [(event.entered, event.left) for event in history.events]
    [(('a',), ()), (('b',), ('a',))]
    >>> history.selected, history.n_rows
    (['b'], 600)
    """

    def __init__(self, learner: Any, max_changes: int = 10_000) -> None:
        if not isinstance(learner, Learner):
            raise TypeError(
                f"Expected a learner of streamsel. Got: {params.type_name(learner)}.\n"
                "Hint: in a pipeline, replace ProjSe(k=5) by History(ProjSe(k=5))."
            )
        params.check("History", {"max_changes": params.IntRule(1)}, {"max_changes": max_changes})
        self.learner = learner
        self.max_changes = max_changes
        # The names in use before the first kept event, and since which row.
        self._initial_names: dict[Hashable, None] = {}
        self._initial_row = 0
        self._events: deque[Event] = deque()
        self._size = 0
        # At the last comparison: the names in use, the snapshot that has them, and the row at which
        # the next refresh was due.
        self._names: dict[Hashable, None] = {}
        self._snapshot: Any = None
        self._next_refresh: int | None = None

    def __repr__(self) -> str:
        return params.changed_parameters(self)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from streamsel.extraction.pca import PCA
        from streamsel.selection.projse import ProjSe

        yield {"learner": ProjSe(k=2)}
        yield {"learner": PCA(n_components=2, warm_up=10), "max_changes": 20}

    # The log

    @property
    def events(self) -> list[Event]:
        """The kept events, the oldest first."""
        return list(self._events)

    def spans(self) -> dict[Hashable, list[tuple[int, int]]]:
        """Return when each name was in use: name -> (first row, last row) pairs, in order of entry.

        Names in use now have the number of rows learnt as the end of their last span. The cost is
        proportional to the number of names in the kept events.

        Examples
        --------
        After 300 rows another variable begins to matter; it replaces the first one 65 rows later:

        >>> import random
        >>> from streamsel import History, ProjSe
        >>> history = History(ProjSe(k=1, fading_factor=0.02))
        >>> rng = random.Random(0)
        >>> for row in range(600):
        ...     x = {name: rng.gauss(0, 1) for name in "abc"}
        ...     history.learn_one(x, x["a"] if row < 300 else x["b"])
        >>> history.spans()
        {'a': [(50, 365)], 'b': [(365, 600)]}
        """
        began = dict.fromkeys(self._initial_names, self._initial_row)
        spans: dict[Hashable, list[tuple[int, int]]] = {name: [] for name in began}
        for event in self._events:
            for name in event.left:
                spans[name].append((began.pop(name), event.row))
            for name in event.entered:
                began[name] = event.row
                spans.setdefault(name, [])
        rows = self.learner.n_rows
        for name, start in began.items():
            spans[name].append((start, rows))
        return spans

    def _log_change(self) -> None:
        """Log an event if the names in use have changed."""
        learner = self.learner
        snapshot = learner._refresh.stored
        if snapshot is None:
            snapshot = learner._in_use()
        if snapshot is self._snapshot:
            return
        refreshed = self._next_refresh != learner._refresh.due_at and not isinstance(
            learner, Selector
        )
        self._snapshot, self._next_refresh = snapshot, learner._refresh.due_at
        names: dict[Hashable, None] = dict.fromkeys(learner.in_use)
        old = self._names
        entered = tuple(name for name in names if name not in old)
        left = tuple(name for name in old if name not in names)
        if not (entered or left or refreshed):
            return
        self._names = names
        self._append(Event(learner.n_rows, entered, left))

    def _append(self, event: Event) -> None:
        self._events.append(event)
        self._size += _size_of(event)
        while self._size > self.max_changes and len(self._events) > 1:
            oldest = self._events.popleft()
            self._size -= _size_of(oldest)
            for name in oldest.left:
                del self._initial_names[name]
            self._initial_names |= dict.fromkeys(oldest.entered)
            self._initial_row = oldest.row

    # Delegated to the learner

    @property
    def _supervised(self) -> bool:
        """Whether River passes a target; the base classes alone would imply that it does."""
        supervised: bool = self.learner._is_supervised
        return supervised

    def learn_one(self, x: dict[Hashable, Any], y: Any = None, w: float = 1.0) -> None:
        """Let the learner learn a row; log changes of the names in use.

        Parameters
        ----------
        x, y, w
            As in the learner's `learn_one`; a learner without a target ignores y.
        """
        learner: Any = self.learner
        if learner._is_supervised:
            learner.learn_one(x, y, w)
        else:
            learner.learn_one(x, w=w)
        # Nearly every row leaves the snapshot unchanged.
        snapshot = learner._refresh.stored
        if snapshot is None or snapshot is not self._snapshot:
            self._log_change()

    def learn_many(self, X: Any, y: Any = None, w: Any = 1.0) -> None:
        """Let the learner learn many rows; log changes of the names in use after them.

        Parameters
        ----------
        X, y, w
            As in the learner's `learn_many`; a learner without a target ignores y.
        """
        learner: Any = self.learner
        if learner._is_supervised:
            learner.learn_many(X, y, w)
        else:
            learner.learn_many(X, w=w)
        self._log_change()

    def refresh(self) -> None:
        """Refresh the snapshot that transforms use; log changes of the names in use."""
        self.learner.refresh()
        self._log_change()

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Transform a row by the learner.

        Parameters
        ----------
        x
            A row.
        """
        row: dict[Hashable, Any] = self.learner.transform_one(x)
        return row

    def transform_many(self, X: Any) -> Any:
        """Transform many rows by the learner.

        Parameters
        ----------
        X
            As in the learner's `transform_many`.
        """
        return self.learner.transform_many(X)

    def __getattr__(self, name: str) -> Any:
        # While a copy is being made there is no learner to delegate to.
        if name.startswith("_") or name == "learner":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.learner, name)

    # Copies

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return a history of a clone of the learner, both without what was learnt and logged.

        Parameters
        ----------
        new_params
            Parameters to change.
        include_attributes
            Whether to copy the learnt state and the log too; not with a new learner.
        """
        whole = include_attributes and "learner" not in (new_params or {})
        clone = super().clone(new_params, include_attributes=whole)
        if whole:  # River's clone drops the state of a parameter
            clone.learner = self.learner.clone(include_attributes=True)
        return clone

    def __getstate__(self) -> dict[str, Any]:
        # The snapshot of a copied learner is another object.
        return vars(self) | {"_snapshot": None}


def _size_of(event: Event) -> int:
    return 1 + len(event.entered) + len(event.left)

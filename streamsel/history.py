"""What stood when: a learner of a pipeline, and what it has let in and out on rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Self

from river import base as river

from streamsel import params
from streamsel.learner.base import Learner
from streamsel.learner.selector import Selector


class Event(NamedTuple):
    """A renewal of what stands.

    Attributes
    ----------
    row
        How many rows had been learnt when it was noticed.
    entered, left
        Names that stand since then, and that did not any more.

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
    """A learner in a pipeline, and a note of what it let in and out while it learnt rows.

    It stands where the learner would: rows are learnt and transformed by the learner, and whatever
    else is asked of it, such as `selected` or `report`, the learner answers. What it notes is what
    `standing` shows, by which rows are transformed: of a selector the variables, of an extractor
    those that components are made of.

    Parameters
    ----------
    learner
        A selector or an extractor.
    max_changes
        How many names that came and went are kept. Beyond, the oldest renewals are forgotten: what
        stood after them is what the history begins with.

    Attributes
    ----------
    learner
        The learner.

    Raises
    ------
    TypeError
        For what is no learner of streamsel.
    ValueError
        For a max_changes below 1.

    See Also
    --------
    streamsel.plot.history : draws it.

    Notes
    -----
    **Cost.** One comparison a row, of what stands with what stood: the same object, unless it was
    renewed. Memory is bounded by `max_changes`.

    **When.** After every call of `learn_one`, `learn_many` and `renew`: of a frame of rows what
    stands after it is noticed, and not what came and went within. Of an extractor every renewal is
    an event, for its components have changed; of a selector those at which its names did.

    **Copies.** A clone has learnt nothing and noted nothing; other copies have both. `save` keeps
    learners alone, `save(history.learner, path)`; `pickle` keeps both.

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
                f"Expected a learner of streamsel. Got: {params.kind_of(learner)}.\n"
                "Hint: History(ProjSe(k=5)) stands in a pipeline in place of ProjSe(k=5)."
            )
        params.check("History", {"max_changes": params.Whole(1)}, {"max_changes": max_changes})
        self.learner = learner
        self.max_changes = max_changes
        # What stood before the first event that is kept, and since which row.
        self._before: dict[Hashable, None] = {}
        self._since = 0
        self._events: deque[Event] = deque()
        self._size = 0
        # What stood when it was looked at last: names, the object that says so, and the row of the
        # renewal that was to come.
        self._names: dict[Hashable, None] = {}
        self._seen: Any = None
        self._due: int | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from streamsel.extraction.pca import PCA
        from streamsel.selection.projse import ProjSe

        yield {"learner": ProjSe(k=2)}
        yield {"learner": PCA(n_components=2, warm_up=10), "max_changes": 20}

    # What was noted

    @property
    def events(self) -> list[Event]:
        """The renewals that are kept, the oldest first."""
        return list(self._events)

    def spans(self) -> dict[Hashable, list[tuple[int, int]]]:
        """Return when each name stood: name -> rows from and to, in order of first standing.

        Names that stand now do so to the last row.
        """
        began = dict.fromkeys(self._before, self._since)
        found: dict[Hashable, list[tuple[int, int]]] = {name: [] for name in began}
        for event in self._events:
            for name in event.left:
                found[name].append((began.pop(name), event.row))
            for name in event.entered:
                began[name] = event.row
                found.setdefault(name, [])
        rows = self.learner.n_rows
        for name, start in began.items():
            found[name].append((start, rows))
        return found

    def _look(self) -> None:
        """Note what stands, if it is not what stood."""
        learner = self.learner
        standing = learner._standing
        if standing is None:
            standing = learner._in_use()
        if standing is self._seen:
            return
        renewed = self._due != learner._due and not isinstance(learner, Selector)
        self._seen, self._due = standing, learner._due
        names: dict[Hashable, None] = dict.fromkeys(learner.standing)
        old = self._names
        entered = tuple(name for name in names if name not in old)
        left = tuple(name for name in old if name not in names)
        if not (entered or left or renewed):
            return
        self._names = names
        self._keep(Event(learner.n_rows, entered, left))

    def _keep(self, event: Event) -> None:
        self._events.append(event)
        self._size += _size_of(event)
        while self._size > self.max_changes and len(self._events) > 1:
            oldest = self._events.popleft()
            self._size -= _size_of(oldest)
            for name in oldest.left:
                del self._before[name]
            self._before |= dict.fromkeys(oldest.entered)
            self._since = oldest.row

    # The learner's part

    @property
    def _supervised(self) -> bool:
        """Whether River hands over a target; the bases alone would say yes."""
        supervised: bool = self.learner.supervised
        return supervised

    def learn_one(self, x: dict[Hashable, Any], y: Any = None, w: float = 1.0) -> None:
        """Let the learner learn a row, and look at what stands.

        Parameters
        ----------
        x, y, w
            As the learner's `learn_one` has them; a learner without a target is told none.
        """
        learner: Any = self.learner
        if learner.supervised:
            learner.learn_one(x, y, w)
        else:
            learner.learn_one(x, w=w)
        # Nearly every row leaves what stands as it is.
        standing = learner._standing
        if standing is None or standing is not self._seen:
            self._look()

    def learn_many(self, X: Any, y: Any = None, w: Any = 1.0) -> None:
        """Let the learner learn many rows, and look at what stands after them.

        Parameters
        ----------
        X, y, w
            As the learner's `learn_many` has them; a learner without a target is told none.
        """
        learner: Any = self.learner
        if learner.supervised:
            learner.learn_many(X, y, w)
        else:
            learner.learn_many(X, w=w)
        self._look()

    def renew(self) -> None:
        """Let transforms use what is found now, and look at what stands then."""
        self.learner.renew()
        self._look()

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Return what the learner makes of a row.

        Parameters
        ----------
        x
            A row.
        """
        row: dict[Hashable, Any] = self.learner.transform_one(x)
        return row

    def transform_many(self, X: Any) -> Any:
        """Return what the learner makes of many rows.

        Parameters
        ----------
        X
            As the learner's `transform_many` has them.
        """
        return self.learner.transform_many(X)

    def __getattr__(self, name: str) -> Any:
        # What is asked while a copy is being made no learner is there to answer.
        if name.startswith("_") or name == "learner":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.learner, name)

    # Copies

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return a history of a clone of the learner, which has learnt and noted nothing.

        Parameters
        ----------
        new_params
            Parameters that are to be others.
        include_attributes
            Whether it is to be a copy that has learnt and noted the same; of the same learner only.
        """
        whole = include_attributes and "learner" not in (new_params or {})
        clone = super().clone(new_params, include_attributes=whole)
        if whole:  # what a parameter has learnt River's own leaves behind
            clone.learner = self.learner.clone(include_attributes=True)
        return clone

    def __getstate__(self) -> dict[str, Any]:
        # A copy of the learner shows copies of what stands.
        return vars(self) | {"_seen": None}


def _size_of(event: Event) -> int:
    return 1 + len(event.entered) + len(event.left)

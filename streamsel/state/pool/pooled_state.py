"""Define states whose variables are those of a pool."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from streamsel._utils.rollback import Restore
from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import ColumnState, Floats, Indices
from streamsel.state.pool.pool import Pool
from streamsel.targets.space import TargetSpace


class PooledState(ColumnState):
    """State that has a pool: its variables are those of the pool.

    Parameters
    ----------
    pool
        The pool.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool.n)
        self.pool = pool
        self.is_grouped = pool.is_grouped

    @property
    def index_of(self) -> Mapping[Hashable, int]:
        """Name -> index, in order of arrival; not to be modified."""
        return self.pool.index_of

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self.pool.names

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return self.pool.complete

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""
        return self.pool.space

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables; of all variables if `indices` is None."""
        return self.pool.stats(indices)

    def extra_field(self, field: str) -> Floats:
        """Return a further field of the variables, recorded on arrival, (p,)."""
        return self.pool.extra_field(field)

    def arrivals(self, indices: Indices) -> Floats | None:
        """Return how many columns came before each variable."""
        return self.pool.arrivals(indices)

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores."""
        return self.pool.noise_relevance(indices)

    def samples(self, indices: Indices) -> Floats:
        """Return the observations of variables, centred and of length 1, one variable per row."""
        return self.pool.samples(indices)

    @property
    def has_products(self) -> bool:
        """Whether `products` are available."""
        return self.pool.has_products

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        return self.pool.products(indices)

    def cross_products(self, indices: Indices) -> Floats:
        """Return the sums of cross products of variables, if `products` are available."""
        return self.pool.cross_products(indices)

    def iter_groups(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[Any, Any]]:
        """Yield the groups of columns of a chunk, as many as `stats` has, for `admit`."""
        return self.pool.iter_groups(chunk, stats)

    def adopt_columns(self, state: ColumnState) -> None:
        """Learn the columns that a state keeps, each as a group of one."""
        self.pool.adopt_columns(state)

    def members_of(self, indices: Sequence[int]) -> list[list[Hashable]]:
        """Return the names of the members of groups; of a single column its own name."""
        return self.pool.members_of(indices)

    def means_of_members(self) -> dict[Hashable, float]:
        """Return the means of the members of all groups by name."""
        return self.pool.means_of_members()

    def relevance(self, indices: Indices | None = None) -> Floats:
        """Return relevances; 1 for every variable without a target."""
        return self.pool.relevance(indices)

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        return self.pool.bytes_for(p)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        self.pool.expect_valid()

    # Undo. The pool copies itself before it changes.

    def snapshot(self) -> Restore:
        """Return a function that restores the current state."""
        restores = super().snapshot(), self.pool.snapshot()

        def restore() -> None:
            for part in restores:
                part()

        return restore

    def _copied(self) -> dict[str, Any]:
        # All other attributes are replaced, not modified.
        return dict(vars(self))

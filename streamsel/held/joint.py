"""Joint moments: how a few variables, and sums of variables, vary with one another on rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, ClassVar

import numpy as np

from streamsel._jit.joint import learn_joint
from streamsel.columns import Stats
from streamsel.held.beside import Beside, Steps, put
from streamsel.held.counts import count
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between, expect_bounded, expect_squares, expect_sums
from streamsel.held.table import Table
from streamsel.rollback import Restore
from streamsel.shapes import Count, Number, expect, expect_shapes


class JointMoments(Beside):
    """Sums of products of sums and candidates, of all of them with one another.

    A variable that is new has been 0 before: as a candidate from its first row on, it knows all.
    For any other the covariance over the rows since it became a candidate is known, and its `age`
    says how many these are. Whoever mixes the two must reckon with it; where none of these rows
    observed it, nothing is known.

    Parameters
    ----------
    n_sums
        How many linear combinations of variables are held at most.
    grace_period
        How many rows lie between two refreshes.
    most
        Most candidates.

    Attributes
    ----------
    n
        The weight of all rows, of which the newest has 1.
    rows
        Rows learnt here.
    watched
        The variables of the sums, and the candidates: `B`, a variable's loadings on the sums,
        (n_sums,), zero for one that is no more than a candidate; `shift`, its mean at the last
        refresh, or its first value, which is taken off its values, and stands for one that was not
        observed.
    candidates
        Those h of the watched: `age`, the weight of the rows since they became candidates, `start`,
        the row at which they did, and `before`, the weight of the rows before that observed them.
    mean, J
        (n_sums + h,), (n_sums + h, n_sums + h) means and sums of products of the sums and the
        candidates.
    """

    changing: ClassVar[tuple[str, ...]] = (
        *("counts", "watched", "candidates", "mean", "J"),
        *("_newcomers", "_place", "_at"),
    )

    n: float = count(0)
    rows: int = count(1, int)

    def __init__(self, n_sums: int, grace_period: int, most: int) -> None:
        self.n_sums = n_sums
        self.grace_period = grace_period
        self._most = most
        self.counts: Floats = np.zeros(2)
        self.watched = Table({"B": (n_sums,), "shift": ()})
        self.candidates = Table({"age": (), "before": (), "start": ()})
        self.mean: Floats = np.zeros(n_sums)
        self.J: Floats = np.zeros((n_sums, n_sums))
        self._newcomers: list[Hashable] = []
        # Slot -> place among the watched, -1 for none; made anew when either has changed.
        self._place: Places | None = None
        self._at: Places = np.empty(0, dtype=np.intp)

    @property
    def most(self) -> int:
        """Most candidates."""
        return self._most

    @property
    def loaded(self) -> list[Hashable]:
        """Names of the variables of the sums."""
        names = self.watched.names
        return [names[i] for i in np.flatnonzero(self.watched["B"].any(axis=1)).tolist()]

    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""
        return self.watched.slots

    # Learning

    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""
        self._place = None
        # Where variables were let go one of them may be among these, and nothing is known of it.
        if moments.forgotten[0] == 0.0:
            room = self.most - len(self.candidates) - len(self._newcomers)
            self._newcomers = [*self._newcomers, *names[: max(0, room)]]

    def until_refresh(self, moments: Moments) -> int:  # noqa: ARG002
        """Return how many rows are left before the next refresh."""
        return self.grace_period - self.rows % self.grace_period

    def learn_one(
        self,
        values: Floats,
        slots: Places,
        y: Floats,  # noqa: ARG002
        moments: Moments,
        w: float,
    ) -> None:
        """Learn a row after the moments have, unless that was done."""
        place, watched, candidates = self._places(moments), self.watched, self.candidates
        # Not views of the rows that are held: to make them takes longer than the loop.
        learn_joint(
            moments.counts,
            values,
            slots,
            place,
            len(watched),
            watched.with_room("shift"),
            watched.with_room("B"),
            self._at,
            w,
            self.counts,
            self.mean,
            self.J,
            candidates.with_room("age"),
            candidates.with_room("before"),
        )

    def detach(self) -> None:
        """Replace what loops and a refresh write into by copies."""
        self.watched.detach()
        self.candidates.detach()
        self.counts, self.mean, self.J = self.counts.copy(), self.mean.copy(), self.J.copy()

    def saved(self, slots: Places) -> Restore | None:  # noqa: ARG002
        """Return what undoes a row."""
        # Most rows after which there is more to do change all of it, at a refresh.
        self.detach()
        return None

    def prepare_many(
        self,
        X: Floats,
        slots: Places,
        Y: Floats,  # noqa: ARG002
        moments: Moments,
        w: Floats | None,
    ) -> Steps:
        """Return the steps of learning rows, by matrix products."""
        among = self._places(moments)[slots]
        shift, B = self.watched["shift"], self.watched["B"]
        x, at = X[:, among >= 0], among[among >= 0]
        U = np.broadcast_to(-shift, (len(X), shift.size)).copy()
        U[:, at] = np.where(np.isnan(x), 0.0, x - shift[at])
        V = np.hstack([U @ B, U[:, self._at]])
        left = 1.0 - moments.fading_factor
        faded = left ** np.arange(len(X) - 1.0, -1.0, -1.0)
        w = faded if w is None else faded * w
        weight, keep = float(w.sum()), left ** len(X)
        mean = w @ V / weight
        V -= mean
        apart, n = mean - self.mean, self.n * keep
        J = self.J * keep
        J += (w * V.T) @ V + np.outer(apart, apart) * (n * weight / (n + weight))
        candidates = self.candidates.with_new(("age", "before"))
        candidates["age"][:] = self.candidates["age"] * keep + weight
        candidates["before"][:] = self.candidates["before"] * keep
        attributes = {
            "counts": np.array([n + weight, self.rows + len(X)]),
            "mean": self.mean + apart * (weight / (n + weight)),
            "J": J,
            "candidates": candidates,
        }
        return put(self, moments, attributes)

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Make newcomers candidates, with what is known of the rows before they came."""
        if not self._newcomers:
            return
        names, self._newcomers = self._newcomers, []
        at = {slot: i for i, slot in enumerate(slots.tolist())}
        first = X[0, [at[moments.table.slots[name]] for name in names]]
        first[np.isnan(first)] = 0.0
        # They were 0 in every row.
        self._add_candidates(names, first, -first, self.n, np.zeros(len(names)))

    def _add_candidates(
        self, names: list[Hashable], shift: Floats, mean: Floats, age: float, before: Floats
    ) -> None:
        """Make variables candidates; their mean is about the shift."""
        h = len(names)
        new = [i for i, name in enumerate(names) if name not in self.watched.slots]
        fresh = np.zeros((len(new), self.n_sums))
        self.watched.append([names[i] for i in new], B=fresh, shift=shift[new])
        full, start = np.full(h, age), np.full(h, float(self.rows))
        self.candidates.append(names, age=full, before=before, start=start)
        self.mean = np.append(self.mean, mean)
        J = np.zeros((self.mean.size, self.mean.size))
        J[: len(self.J), : len(self.J)] = self.J
        self.J = J
        self._place = None

    def _places(self, moments: Moments) -> Places:
        """Return slot -> place among the watched."""
        slots = moments.table.slots
        if self._place is None or self._place.size < len(slots):
            place = np.full(len(slots), -1, dtype=np.intp)
            place[slots_of(self.watched, moments)] = np.arange(len(self.watched))
            places = [self.watched.slots[name] for name in self.candidates.slots]
            self._at = np.array(places, dtype=np.intp)
            # Last: an exception before it leaves nothing half made.
            self._place = place
        return self._place

    # Who is a candidate

    def choose_candidates(self, chosen: list[Hashable], moments: Moments, stats: Stats) -> None:
        """Let these be the candidates; who is one already keeps what it knows.

        The stats are those of all variables as of now.
        """
        self.keep_candidates([name for name in self.candidates.names if name in set(chosen)])
        slots = moments.slots
        # From here on values are taken about these means: a level that has moved would cost digits.
        self.watched["shift"][:] = stats.mean[[slots[name] for name in self.watched.names]]
        self.mean[:] = 0.0
        new = [name for name in chosen if name not in self.candidates.slots]
        if new:
            mean = stats.mean[[slots[name] for name in new]]
            before = moments.seen()[[slots[name] for name in new]]
            self._add_candidates(new, mean, np.zeros(len(new)), 0.0, before)

    def keep_candidates(self, staying: list[Hashable]) -> None:
        """Drop all candidates but these, and do not watch who is neither candidate nor loaded."""
        places = [self.candidates.slots[name] for name in staying]
        held = [*range(self.n_sums), *(self.n_sums + place for place in places)]
        self.mean, self.J = self.mean[held], self.J[np.ix_(held, held)]
        self.candidates.keep(places)
        needed = {*self.loaded, *staying}
        self.watched.keep([i for i, name in enumerate(self.watched.slots) if name in needed])
        self._place = None

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_bounded("loadings", self.watched["B"], self.watched["shift"], self.mean)
        # Products with a candidate are of the rows since it became one, squares of all rows: the
        # inequality of Cauchy and Schwarz need not hold.
        expect_sums("products of sums and candidates", self.J)
        expect_squares(self.J.diagonal())
        for field in ("age", "before", "start"):
            expect_between("rows of candidates", self.candidates[field], 0.0, 1e300)

    # Files

    def check(self, moments: Moments) -> None:
        """Refuse what a file says, if it is not about these moments."""
        watched, candidates = self.watched.slots.keys(), self.candidates.slots.keys()
        if not (watched <= moments.slots.keys() and candidates <= watched):
            raise ValueError("Expected joint moments of the variables held. Got: of others.")

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "n": self.n,
            "rows": self.rows,
            "watched": self.watched.to_state(),
            "candidates": self.candidates.to_state(),
            "mean": self.mean,
            "J": self.J,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, n=Number(0.0), rows=Count())
        self.n, self.rows = state["n"], state["rows"]
        self.watched = Table.from_state(state["watched"], self.watched.fields)
        self.candidates = Table.from_state(state["candidates"], self.candidates.fields)
        size = self.n_sums + len(self.candidates)
        expect_shapes(state, mean=(size,), J=(size, size))
        self.mean, self.J = np.array(state["mean"]), np.array(state["J"])


def slots_of(table: Table, moments: Moments) -> Places:
    """Return the slots of a table's variables among those of the moments."""
    return np.array([moments.table.slots[name] for name in table.slots], dtype=np.intp)

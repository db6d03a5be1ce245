"""Partitions of the rows for nested cross-validation: outer folds, and inner folds of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel._utils.optional import import_sklearn
from streamsel.evaluate.model_batch import Rows

_WHAT_FOR = "Nested folds"


class FoldTask(NamedTuple):
    """A model: its outer fold, size and inner fold, and the rows that it learns and predicts."""

    outer: int
    size: int | None
    inner: int | None
    train: Rows
    test: Rows


@dataclass(frozen=True)
class NestedFolds:
    """Numbers of folds, and the level of the intervals of their scores.

    Parameters
    ----------
    n_folds, n_repeats, n_inner, seed, level
        As in `nested_scores`.

    Raises
    ------
    ValueError, TypeError
        For numbers out of range, and others than numbers.
    """

    n_folds: int
    n_repeats: int
    n_inner: int
    seed: int
    level: float

    def __post_init__(self) -> None:
        params.check(
            "nested_scores",
            {
                "n_folds": params.IntRule(2),
                "n_repeats": params.IntRule(1),
                "n_inner": params.IntRule(2),
                "seed": params.IntRule(0),
                "level": params.FloatRule(0.0, open=True, below=1.0),
            },
            asdict(self),
        )

    @property
    def n_outer(self) -> int:
        """Number of outer folds in all repeats."""
        return self.n_folds * self.n_repeats

    def tasks(self, y: Any, sizes: Sequence[int] | None, *, is_class: bool) -> Iterable[FoldTask]:
        """Yield the models of all folds and sizes; inner folds are needed for several sizes only.

        Parameters
        ----------
        y
            (n,) codes of classes, or numbers.
        sizes
            Sizes to compare; None for the learner's own.
        is_class
            Whether y holds classes, by which folds are stratified.
        """
        every, outer = np.arange(len(y)), 0
        for repeat in range(self.n_repeats):
            seed = self.seed + repeat
            for train, test in _split(every, y, self.n_folds, seed, is_class=is_class):
                for size in sizes or (None,):
                    yield FoldTask(outer, size, None, train, test)
                if sizes is not None and len(sizes) > 1:
                    pairs = _split(train, y, self.n_inner, seed, is_class=is_class)
                    for inner, pair in enumerate(pairs):
                        for size in sizes:
                            yield FoldTask(outer, size, inner, *pair)
                outer += 1


def _split(rows: Rows, y: Any, n: int, seed: int, *, is_class: bool) -> Iterable[tuple[Rows, Rows]]:
    """Split rows into folds, stratified by class."""
    model_selection, of_rows = import_sklearn("model_selection", _WHAT_FOR), y[rows]
    n_available = (
        int(np.unique(of_rows, return_counts=True)[1].min()) if is_class else len(rows) // 2
    )
    if n_available < n:
        what = "rows of every class" if is_class else "pairs of rows"
        raise ValueError(
            f"Expected at least {n} {what}, one per fold, among {len(rows)} rows. "
            f"Got: {n_available}.\nHint: use fewer folds, or leave out the rare class."
        )
    kind = model_selection.StratifiedKFold if is_class else model_selection.KFold
    folds = kind(n, shuffle=True, random_state=seed)
    for train, test in folds.split(np.empty(len(of_rows)), of_rows):
        yield rows[train], rows[test]

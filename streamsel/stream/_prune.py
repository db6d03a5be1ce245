"""Pruning of columns that are highly correlated with one that is kept."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._utils.numeric import argsort_by_relevance
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.stream._blocks import drop_columns
from streamsel.stream._coerce import as_stream
from streamsel.stream._correlated import Comparison, Tile, tiles_of
from streamsel.stream._kept_columns import KeptColumns, PruneCallback
from streamsel.stream._locations import VariantLocations
from streamsel.stream._ranked_pruning import prune_by_rank, prune_within_reach
from streamsel.stream._stream import ColumnStream
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target, complete_target

Floats = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

By = Literal["first", "relevance"]
_RULES: dict[str, params.Rule] = {
    "max_correlation": params.FloatRule(0.0, open=True, below=1.0, closed=True),
    "by": params.ChoiceRule(get_args(By)),
}
_TARGET_TYPE = params.ChoiceRule(("auto", "class", "numeric", "survival"))
_WINDOW = params.IntRule(1, optional=True)
_DISTANCE = re.compile(r"(\d+(?:\.\d*)?|\.\d+) ?kb")


def prune(
    X: Any,
    max_correlation: float = 0.95,
    *,
    by: By = "first",
    window: int | str | None = None,
    target: Any = None,
    target_type: str = "auto",
    report: PruneCallback | None = None,
) -> Pruned:
    r"""Exclude the columns that are highly correlated with a kept column.

    The result is a maximal set: no two of its columns reach the correlation, and every excluded
    column reaches it with a kept one. With a window, this holds within the window.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.
    max_correlation
        Absolute correlation in (0, 1] from which on two columns are not both kept; 1 excludes exact
        copies, up to scale, sign and offset. A threshold on $r^2$ must be converted by a square
        root: 0.2 corresponds to 0.447.
    by
        Which of two correlated columns is kept: `"first"`, the first in the stream, or
        `"relevance"`, the one that is more relevant for the target (in genomics: clumping by
        p-value). By relevance, columns are decided on in descending order of relevance.
    window
        Which columns are compared: None for all; an integer w for columns that are at most w
        columns of the source apart; a text such as `"250kb"` for variants of one chromosome at most
        250,000 base pairs apart, by the `column_metadata` "chromosome" and "position".
    target, target_type
        With `by="relevance"`: the target, and its type, as learners accept them. Relevance is the
        multiple correlation with the target.
    report
        Called for every excluded column with its name, the name of the kept column that represents
        it, and their correlation. The representative is the first kept column that it correlates
        with: first in the stream, or the most relevant.

    Returns
    -------
    Pruned
        A stream of the kept columns, in the order of the source, that counts the excluded ones. It
        is re-readable if `X` is. Its `n_columns` is known after a complete pass.

    Raises
    ------
    ValueError
        If a parameter is out of range; if `target` is missing with `by="relevance"`, or is passed
        without; if `X` can be read only once with `by="relevance"`. While reading: a column of the
        wrong length; with a window in base pairs, a column without a position, or positions that
        are not in ascending order.

    Notes
    -----
    With `by="first"`, kept columns are yielded as soon as their block is read. Their values are
    stored, in their dtype: 1, 4 or 8 bytes each, and up to 4 for the comparison; sparse ones as
    stored. With a window only kept columns of the window are stored.

    With `by="relevance"`, the stream is read once for the relevances, which take 9 bytes per
    column, then to decide, then for the result. Within a window, one pass decides and stores the
    columns of two windows. Without a window, a pass compares all columns with about 64 MiB of the
    most relevant remaining ones, until none remains; it takes up to 0.3 GB.

    A column costs $O(n k)$ for k stored columns, in matrix products. Most pairs are dismissed by a
    part of the rows: u and v, of norm 1, with parts $u_1$, $u_2$, satisfy
    $|u^T v| \le |u_1^T v_1| + \|u_2\| \|v_2\|$. The rest is computed in double precision. The
    result does not depend on the partition into blocks; correlations within 1e-12 of the threshold
    count as reaching it, and relevances within 1e-12 are ties, which go to the first column.

    Columns without a correlation are kept and not compared: constant ones, those with missing
    values, and non-numeric ones. Apply [`clean`](stream.md#streamsel.stream.clean) first to
    exclude them. Columns of a group are compared and excluded one by one.

    PLINK's `--indep-pairwise w s r2` compares variants at most w - 1 apart, in windows that move by
    s variants, excludes pairs above r2, and keeps the variant of the larger minor allele count. Its
    `--clump` corresponds to `by="relevance"`.

    A second pass excludes the same columns, without comparisons. `skip` reads from the first
    column, so that it yields the rest of the same stream. `take` fetches columns from the source,
    including excluded ones.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array, prune
    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(size=(200, 50)), axis=1)  # each column resembles the last
    >>> few = prune(iter_array(walk), max_correlation=0.8)
    >>> [name for name, _ in few]
    [0, 1, 3, 6, 11, 19, 34]
    >>> few.n_read, few.n_pruned
    (50, 43)

    Keep the most relevant of correlated columns:

    >>> y = walk[:, 25] + rng.normal(size=200)
    >>> best = prune(walk, max_correlation=0.8, by="relevance", target=y)
    >>> [name for name, _ in best]
    [0, 2, 4, 8, 14, 25, 44]
    """
    return Pruned(as_stream(X), max_correlation, by, window, target, target_type, report)


class Pruned(ColumnStream):
    """The stream that `prune` returns.

    Attributes
    ----------
    n_read
        Number of columns read from the source, including excluded ones; columns of a second pass
        are not counted again.
    last_read
        Name of the last of them, None before the first.
    n_pruned
        Number of excluded columns among them.
    """

    def __init__(
        self,
        stream: ColumnStream,
        max_correlation: float,
        by: By = "first",
        window: int | str | None = None,
        target: Any = None,
        target_type: str = "auto",
        report: PruneCallback | None = None,
    ) -> None:
        _check_parameters(stream, max_correlation, by, target, report)
        super().__init__(
            self._pruned,
            n_rows=stream.n_rows,
            reiterable=stream.reiterable,
            take=stream.take,
            row_metadata=stream.row_metadata,
            column_metadata=stream.column_metadata,
        )
        self._source = stream
        self._max_correlation = max_correlation
        self._reach, self._in_base_pairs = _reach_of(window)
        self._target = None if by == "first" else _target_of(target, target_type)
        self._report = report
        # Which columns of the source are excluded, once that is known of all.
        self._excluded: BoolArray | None = None
        self.n_read = 0
        self.last_read: Hashable = None
        self.n_pruned = 0

    def _pruned(self) -> Iterator[Block]:
        if self._excluded is None and self._target is not None:
            self._excluded = self._excluded_by_relevance(self._target)
        excluded = self._excluded
        chosen = self._excluded_in_order() if excluded is None else self._excluded_again(excluded)
        position = 0
        for block, is_excluded in chosen:
            # A second pass excludes the same columns, which are not counted again.
            if position >= self.n_read:
                self.n_read, self.last_read = position + len(block.names), block.names[-1]
                self.n_pruned += int(np.count_nonzero(is_excluded))
            position += len(block.names)
            if not is_excluded.all():
                yield from drop_columns(block, np.flatnonzero(is_excluded).tolist())

    def _excluded_in_order(self) -> Iterator[tuple[Block, BoolArray]]:
        """Yield the blocks, and which of their columns correlate with an earlier kept one."""
        found = bytearray()

        def report_once(name: Hashable, representative: Hashable, r: float) -> None:
            if self._report is not None and len(found) >= self.n_read:
                self._report(name, representative, r)

        kept = KeptColumns(None if self._report is None else report_once)
        for block, tiles in self._tiled_blocks():
            is_excluded = np.zeros(len(block.names), dtype=np.bool_)
            for tile in tiles:
                kept.evict(float(tile.location[0]))
                is_excluded[tile.index - len(found)] = True
                is_excluded[kept.keep(tile).index - len(found)] = False
            yield block, is_excluded
            found += is_excluded.tobytes()
        self._excluded = np.frombuffer(found, dtype=np.bool_)

    def _excluded_again(self, excluded: BoolArray) -> Iterator[tuple[Block, BoolArray]]:
        start = 0
        for block in self._source.blocks():
            stop = start + len(block.names)
            self._check_size(stop, excluded.size)
            yield block, excluded[start:stop]
            start = stop

    def _excluded_by_relevance(self, target: Target) -> BoolArray:
        """Return which columns correlate with a more relevant kept one, in several passes."""
        space = TargetSpace(target.cyy, target.n, VariableKernel(), is_pair=target.is_pair)
        relevances: list[Floats] = []
        for block in self._source.blocks():
            if not _is_numeric(block):
                relevances.append(np.full(len(block.names), -np.inf))
                continue
            for chunk in iter_chunks(block, target.n):
                stats = chunk.scan(target, 1)
                relevance = space.relevance(stats.m2, stats.cxy)
                relevances.append(np.where(_varies(stats.m2), relevance, -np.inf))
        relevance = np.concatenate([np.empty(0), *relevances])
        del relevances
        rank = np.empty(relevance.size, dtype=np.intp)
        rank[argsort_by_relevance(relevance)] = np.arange(relevance.size)
        decide = prune_by_rank if self._reach == np.inf else prune_within_reach
        return decide(self._tiles, rank, relevance > -np.inf, self._report)

    def _tiles(self, selected: BoolArray) -> Iterator[Tile]:
        """Make a pass over the columns that are selected, and compared."""
        for _, tiles in self._tiled_blocks(selected):
            yield from tiles

    def _tiled_blocks(
        self, selected: BoolArray | None = None
    ) -> Iterator[tuple[Block, Iterator[Tile]]]:
        """Yield the blocks of the source, each with its columns that are selected, and compared."""
        rule: Comparison | None = None
        locations: VariantLocations | None = None
        if self._in_base_pairs:
            locations = VariantLocations(self._source.column_metadata, self._reach)
        start = 0
        for block in self._source.blocks():
            if rule is None:
                n = self._source.n_rows
                n = block.values.shape[0] if n is None else n
                rule = Comparison(n, self._max_correlation, self._reach)
            stop = start + len(block.names)
            if selected is not None:
                self._check_size(stop, selected.size)
            location = (
                np.arange(start, stop, dtype=np.float64)
                if locations is None
                else locations.of(block.names)
            )
            yield block, self._tiles_of_block(block, rule, location, start, selected)
            start = stop

    def _tiles_of_block(
        self,
        block: Block,
        rule: Comparison,
        location: Floats,
        start: int,
        selected: BoolArray | None,
    ) -> Iterator[Tile]:
        if not _is_numeric(block):
            return
        first = 0
        for chunk in iter_chunks(block, rule.n):
            here = slice(first, first + len(chunk.names))
            first = here.stop
            mask = None if selected is None else selected[start + here.start : start + here.stop]
            if mask is not None and not mask.any():
                continue
            stats = chunk.scan(NoTarget(rule.n), 1)
            compared = _varies(stats.m2) if mask is None else _varies(stats.m2) & mask
            yield from tiles_of(
                chunk,
                stats,
                np.flatnonzero(compared),
                rule,
                location[here],
                start + here.start,
                named=self._report is not None,
            )

    def _check_size(self, n: int, expected: int) -> None:
        if n > expected:
            raise ValueError(
                f"Expected the {expected} columns of the first pass in every pass. Got: more.\n"
                "Hint: prune the changed source again."
            )


def _varies(m2: Floats) -> BoolArray:
    """Return which columns with these sums of squares have a correlation with others."""
    varies: BoolArray = np.isfinite(m2) & (m2 > 0.0)
    return varies


def _is_numeric(block: Block) -> bool:
    return block.values.dtype.kind in "biuf"


def _check_parameters(
    stream: ColumnStream, max_correlation: float, by: str, target: Any, report: Any
) -> None:
    params.check("prune", _RULES, {"max_correlation": max_correlation, "by": by})
    if report is not None and not callable(report):
        raise TypeError(f"Expected report to be a function. Got: {type(report).__name__}.")
    if by == "first" and target is not None:
        raise ValueError(
            "Expected no target with by='first', which keeps the first columns. Got: a target.\n"
            "Hint: by='relevance' keeps the most relevant ones."
        )
    if by == "relevance" and target is None:
        raise ValueError(
            "Expected a target with by='relevance'. Got: None.\n"
            "Hint: prune(X, by='relevance', target=y)."
        )
    if by == "relevance" and not stream.reiterable:
        raise ValueError(
            "Expected a stream that can be read several times, with by='relevance'. Got: a "
            "one-shot stream.\nHint: pass iter_columns a function that returns a new iterator."
        )


def _reach_of(window: Any) -> tuple[float, bool]:
    """Return the maximum distance of compared columns, and whether it is in base pairs."""
    if isinstance(window, str) and (found := _DISTANCE.fullmatch(window)):
        return 1000.0 * float(found[1]), True
    if isinstance(window, str) or not _WINDOW.admits(window):
        expected = f"{_WINDOW}, or a text such as '250kb'"
        raise params.parameter_error("prune", "window", expected, window)
    return np.inf if window is None else float(window), False


def _target_of(target: Any, target_type: str) -> Target:
    params.check("prune", {"target_type": _TARGET_TYPE}, {"target_type": target_type})
    return complete_target(target, target_type)

"""Streams of groups of columns, and GMT files of groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from streamsel._utils.text import bytes_text, close_spellings
from streamsel.data.chunks import Block
from streamsel.stream._blocks import BLOCK_BYTES, gather_blocks, part_of
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream, derived_restrict
from streamsel.stream._text_cells import numbered_lines, open_text, text_errors
from streamsel.targets.encoding import is_missing

Groups = Mapping[Hashable, Sequence[Hashable]]

# Bytes of columns that wait for other members of their groups.
_MAX_WAITING = 256 << 20
# Cap on the names that a misspelt one is compared with.
_MAX_COMPARED = 20_000
_LISTS = (list, set, frozenset, np.ndarray)


def read_gmt(path: str | PathLike[str]) -> dict[str, list[str]]:
    r"""Read the groups in a GMT file, such as pathways of genes.

    Parameters
    ----------
    path
        The file, which may be compressed: a line per group with its name, a description, and its
        members, separated by tabs.

    Returns
    -------
    Group to members, in the order of the file. A member may be in several groups.

    Raises
    ------
    ValueError
        For a line with fewer than three cells, and for a name that occurs twice.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pathways.gmt")
    >>> _ = path.write_text("repair\turl\tBRCA1\tATM\ncycle\turl\tATM\tCCND1\n")
    >>> read_gmt(path)
    {'repair': ['BRCA1', 'ATM'], 'cycle': ['ATM', 'CCND1']}
    """
    path = str(path)
    groups: dict[str, list[str]] = {}
    with open_text(path) as file, text_errors(path):
        for number, line in numbered_lines(file, path):
            cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
            members = list(dict.fromkeys(filter(None, cells[2:])))
            if not cells[0] or not members:
                raise ValueError(
                    f"{path}: expected a name, a description and members, separated by tabs, in "
                    f"line {number}. Got: {len(cells)} cells.\n"
                    "Hint: read a table of columns and their groups as a dict, column to group."
                )
            if cells[0] in groups:
                raise ValueError(
                    f"{path}: expected groups of distinct names. Got: {cells[0]!r} again in line "
                    f"{number}."
                )
            groups[cells[0]] = members
    return groups


def grouped(source: Any, groups: Mapping[Hashable, Any] | str | PathLike[str]) -> ColumnStream:
    """Return a stream of columns in groups, which learners select as one.

    Parameters
    ----------
    source
        Any input that `as_stream` converts.
    groups
        Name of a column to its group; or group to the list or set of its members, in which columns
        may be in several groups; or the path of a GMT file, as `read_gmt` reads it. Columns
        without a group (or with group None or NaN) stay single; names that the source lacks are
        ignored.

    Returns
    -------
    The stream. A group comes with its last member; a column in several groups comes once for each.

    Raises
    ------
    ValueError
        If no column of the source is in a group; while reading, if the columns that wait for other
        members of their groups exceed 256 MiB.

    Notes
    -----
    If the members of every group are adjacent, such as variants of a gene, blocks are passed on,
    divided only between groups. Otherwise columns are copied, and wait in memory for the other
    members; a file whose columns can be fetched by name fetches the members of a group together
    instead. The stream cannot be split for other processes. `clean`, `ranks` and `normal_scores`
    keep groups, so they follow: `clean(grouped(source, groups))`. Any groups that the source has
    are replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import grouped
    >>> X = np.arange(8.0).reshape(2, 4)
    >>> stream = grouped(X, {0: "a", 1: "a", 3: "b"})
    >>> for block in stream.blocks():
    ...     print(list(block.names), block.groups)
    [0, 1, 2] ['a', 'a', None]
    [3] ['b']
    """
    stream = as_stream(source)
    known = None if stream.names is None else set(stream.names)
    plan = _GroupPlan.of(groups, known)
    if known is not None and not plan.members and _has_groups(groups):
        has_tuples = isinstance(groups, Mapping) and tuple in set(map(type, groups.values()))
        raise _no_members_error(plan, stream.names or (), has_tuples=has_tuples)
    if stream.names is not None and plan.is_adjacent(stream.names):
        return _derived(stream, lambda found: _annotated(found.blocks(), plan), None)
    n_columns = None
    if known is not None:
        n_repeats = sum(map(len, plan.members.values())) - len(plan.groups_of)
        n_columns = len(known) + n_repeats
    if stream._take is not None and stream.names is not None and stream.reiterable:
        return _derived(stream, lambda found: _fetched(found, plan), n_columns)
    return _derived(stream, lambda found: _collected(found, plan), n_columns)


def _no_members_error(
    plan: _GroupPlan, names: Sequence[Hashable], *, has_tuples: bool = False
) -> ValueError:
    members = [*islice(plan.listed, 3)]
    texts = [name for name in islice(names, _MAX_COMPARED) if isinstance(name, str)]
    close = [match for name in members for match in close_spellings(str(name), texts)]
    some: list[Hashable] = [*close] or [*islice(names, 3)]
    return ValueError(
        "Expected groups of columns of the source. Got: none of its columns is in a group; members "
        f"include {', '.join(map(repr, members))}."
        + (f"\nHint: its columns include {', '.join(map(repr, some))}." if some else "")
        + (" Members of a group are a list or a set; a tuple is one name." if has_tuples else "")
    )


def _derived(
    stream: ColumnStream, blocks: Callable[[ColumnStream], Iterator[Block]], n_columns: int | None
) -> ColumnStream:
    return ColumnStream(
        lambda: blocks(stream),
        n_rows=stream.n_rows,
        n_columns=stream.n_columns if n_columns is None else n_columns,
        reiterable=stream.reiterable,
        take=stream.take,
        row_metadata=stream.row_metadata,
        column_metadata=stream.column_metadata,
        restrict=derived_restrict(stream, lambda found: _derived(found, blocks, n_columns)),
    )


def _has_groups(groups: Any) -> bool:
    return not isinstance(groups, Mapping) or bool(groups)


class _GroupPlan(NamedTuple):
    """Groups of columns.

    Parameters
    ----------
    members
        Group to members.
    groups_of
        Column to its groups.
    listed
        All columns in groups, of the source or not.
    """

    members: dict[Hashable, list[Hashable]]
    groups_of: dict[Hashable, list[Hashable]]
    listed: Collection[Hashable]

    @classmethod
    def of(
        cls, groups: Mapping[Hashable, Any] | str | PathLike[str], known: set[Hashable] | None
    ) -> _GroupPlan:
        """Return the groups with the members that are known; None if none is known yet."""
        pairs = list(_pairs(groups))
        members: dict[Hashable, list[Hashable]] = {}
        groups_of: dict[Hashable, list[Hashable]] = {}
        for name, group in dict.fromkeys(pairs):
            if known is None or name in known:
                members.setdefault(group, []).append(name)
                groups_of.setdefault(name, []).append(group)
        return cls(members, groups_of, dict.fromkeys(name for name, _ in pairs))

    def is_adjacent(self, names: Sequence[Hashable]) -> bool:
        """Return whether every column has one group, whose members follow each other."""
        seen: set[Hashable] = set()
        last: Hashable = None
        for name in names:
            of_name = self.groups_of.get(name, ())
            if len(of_name) > 1:
                return False
            group = of_name[0] if of_name else None
            if group is not None and group != last and group in seen:
                return False
            last = group
            seen.add(group)
        return True


def _pairs(
    groups: Mapping[Hashable, Any] | str | PathLike[str],
) -> Iterator[tuple[Hashable, Hashable]]:
    """Yield the pairs of column and group."""
    if isinstance(groups, (str, PathLike)):
        for group, members in read_gmt(groups).items():
            yield from ((name, group) for name in members)
        return
    if not isinstance(groups, Mapping):
        raise TypeError(
            "Expected groups: a mapping, or the path of a GMT file. Got: "
            f"{type(groups).__name__}.\nHint: dict(zip(names, groups))."
        )
    for key, value in groups.items():
        if isinstance(value, _LISTS):
            yield from ((name, key) for name in value)
        elif not is_missing(value):
            yield key, value


def _annotated(blocks: Iterable[Block], plan: _GroupPlan) -> Iterator[Block]:
    """Yield blocks with the groups of their columns; a group that may go on waits for more."""
    waiting: list[Block] = []
    last: Hashable = None
    for block in blocks:
        groups = [plan.groups_of.get(name, (None,))[0] for name in block.names]
        labelled, b, start = block._replace(groups=groups), len(groups), 0
        if waiting:
            start = _n_leading(groups, last)
            if start:
                waiting.append(part_of(labelled, 0, start))
            if start == b:
                continue
            yield _joined(waiting, last)
            waiting = []
        last = groups[-1]
        stop = b if last is None else b - _n_leading(groups[::-1], last)
        if start < stop:
            yield part_of(labelled, start, stop)
        if stop < b:
            waiting = [part_of(labelled, stop, b)]
    if waiting:
        yield _joined(waiting, last)


def _n_leading(groups: Sequence[Hashable], group: Hashable) -> int:
    for j, other in enumerate(groups):
        if other != group:
            return j
    return len(groups)


def _joined(parts: Sequence[Block], group: Hashable) -> Block:
    """Return consecutive parts of a group as one block."""
    if len(parts) == 1:
        return parts[0]
    columns = [_column(part, j) for part in parts for j in range(len(part.names))]
    return _gathered([name for part in parts for name in part.names], columns, group)


def _gathered(names: list[Hashable], columns: list[Any], group: Hashable) -> Block:
    """Return columns of any kinds as one block, a group."""
    from scipy.sparse import hstack

    every = [group] * len(names)
    if all(hasattr(column, "tocsc") for column in columns):
        return Block(names, hstack([column.tocsc() for column in columns], format="csc"), every)
    dense = [
        column.toarray().ravel() if hasattr(column, "toarray") else np.ravel(column)
        for column in columns
    ]
    dtypes = {column.dtype for column in dense}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.result_type(*(c.dtype for c in dense))
    return Block(names, np.array(dense, dtype=dtype).T, every)


def _fetched(stream: ColumnStream, plan: _GroupPlan) -> Iterator[Block]:
    """Yield groups and single columns in the order of their last members, fetched by name."""
    names = stream.names or ()
    last_of = {name: j for j, name in enumerate(names)}
    due: dict[int, list[Hashable]] = {}
    for group, members in plan.members.items():
        due.setdefault(max(last_of[name] for name in members), []).append(group)
    n_rows = stream.n_rows or 1
    batch = max(1, BLOCK_BYTES // (8 * n_rows))
    singles: list[Hashable] = []
    for j, name in enumerate(names):
        if name not in plan.groups_of:
            singles.append(name)
        groups = due.get(j, ())
        if singles and (groups or len(singles) >= batch):
            yield from gather_blocks(stream.take(singles).items())
            singles = []
        for group in groups:
            members = sorted(plan.members[group], key=last_of.__getitem__)
            found = stream.take(members)
            yield _gathered(members, [found[name] for name in members], group)
    if singles:
        yield from gather_blocks(stream.take(singles).items())


def _collected(stream: ColumnStream, plan: _GroupPlan) -> Iterator[Block]:
    """Yield groups and single columns as soon as they are complete; the others wait in memory."""
    missing = {group: len(members) for group, members in plan.members.items()}
    waiting: dict[Hashable, Any] = {}
    n_due = {name: len(groups) for name, groups in plan.groups_of.items()}
    n_bytes, found_any = 0, not plan.members

    def complete(group: Hashable) -> Block:
        nonlocal n_bytes
        members = [name for name in waiting if group in plan.groups_of[name]]
        block = _gathered(members, [waiting[name] for name in members], group)
        for name in members:
            n_due[name] -= 1
            if not n_due[name]:
                n_bytes -= _n_bytes(waiting.pop(name))
        del missing[group]
        return block

    for block in stream.blocks():
        start = 0
        for j, name in enumerate(block.names):
            groups = plan.groups_of.get(name)
            if groups is None:
                continue
            found_any = True
            if start < j:
                yield part_of(block._replace(groups=None), start, j)
            start = j + 1
            column = _column(block, j)
            waiting[name] = column
            n_bytes += _n_bytes(column)
            if n_bytes > _MAX_WAITING:
                raise ValueError(
                    f"Expected at most {bytes_text(_MAX_WAITING)} of columns that wait for other "
                    f"members of their groups. Got: more, at column {name!r}.\n"
                    "Hint: order the columns by group, or use a file whose columns can be fetched "
                    "by name, such as Parquet."
                )
            for group in groups:
                missing[group] -= 1
                if not missing[group]:
                    yield complete(group)
        if start < len(block.names):
            yield part_of(block._replace(groups=None), start, len(block.names))
    # Members that the source lacks never come.
    for group in [group for group in missing if missing[group] < len(plan.members[group])]:
        yield complete(group)
    if not found_any:
        raise _no_members_error(plan, ())


def _column(block: Block, j: int) -> Any:
    """Return a copy of a column of a block."""
    column = part_of(block, j, j + 1).values
    return column.copy() if hasattr(column, "tocsc") else column[:, 0].copy()


def _n_bytes(column: Any) -> int:
    return int(column.data.nbytes)

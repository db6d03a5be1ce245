"""Groups of columns: which learners support them, and which groups rows have."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsel import registry
from streamsel._utils.sparse import is_sparse
from streamsel.data.chunks import Block
from streamsel.serialization.schema import ArrayKind, CountKind, expect, length_in
from streamsel.stream import ColumnStream
from streamsel.targets.glm import FAMILIES
from streamsel.targets.target import Target


class GroupCounts(NamedTuple):
    """Numbers of groups seen; single columns are groups of one.

    Parameters
    ----------
    n, n_constant
        All groups, and those that do not vary.
    """

    n: int
    n_constant: int

    def plus(self, n: int, n_constant: int) -> GroupCounts:
        """Return the numbers after further groups."""
        return GroupCounts(self.n + n, self.n_constant + n_constant)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> GroupCounts:
        """Return the numbers in a model file."""
        expect(state, n=CountKind(), n_constant=CountKind())
        if state["n_constant"] > state["n"]:
            raise ValueError(f"Expected at most {state['n']} constant groups. Got: more.")
        return cls(state["n"], state["n_constant"])


def _not_supported_error(learner: str) -> ValueError:
    others = [name for name in registry.names() if registry.fetch(name)._supports_groups()]
    return ValueError(
        f"Expected single columns: {learner} does not select groups of columns. Got: a "
        f"group.\nHint: {', '.join(others[:-1])} and {others[-1]} do; stream.grouped(source, {{}}) "
        "has the columns without groups."
    )


def check_groups(method: Any, target: Any) -> Target:
    """Return the target of grouped columns; ValueError for one that groups do not support."""
    name = type(method).__name__
    if not method._supports_groups():
        raise _not_supported_error(name)
    if not isinstance(target, Target):
        raise ValueError(  # noqa: TRY004
            f"Expected a target, as {name} compares groups of columns by a test of their "
            "association with it. Got: None."
        )
    for parameter, is_refused, expected in (
        ("permutations", method.permutations, "0 with groups of columns"),
        (
            "target_type",
            method.target_type in FAMILIES,
            "another than a score test with groups of columns",
        ),
    ):
        if is_refused:
            value = getattr(method, parameter)
            raise ValueError(f"Expected {parameter} to be {expected}. Got: {value!r}.")
    if target.row_transform is not None and target.row_transform.by_column:
        raise ValueError(
            "Expected relatedness without groups of its own: members of a group of columns are "
            "compared with each other, and may be whitened differently. Got: groups of "
            "relatedness.\nHint: relatedness without groups."
        )
    return target


def group_block(name: Hashable, stream: ColumnStream) -> Block:
    """Return the columns of a stream as one block, a group of this name."""
    names: list[Hashable] = []
    parts: list[Any] = []
    for block in stream.blocks():
        names.extend(block.names)
        parts.append(block.values)
    if not names:
        raise ValueError(f"Expected at least one column in group {name!r}. Got: none.")
    if len(parts) == 1:
        return Block(names, parts[0], [name] * len(names))
    if all(is_sparse(part) for part in parts):
        from scipy.sparse import hstack

        values = hstack(parts, format="csc")
    else:
        arrays = [part.toarray() if is_sparse(part) else part for part in parts]
        values = np.asfortranarray(np.hstack(arrays))
    return Block(names, values, [name] * len(names))


def groups_to_state(groups: Mapping[Hashable, Iterable[Hashable]]) -> dict[str, Any]:
    """Return the members of groups for a model file."""
    members = [list(of_group) for of_group in groups.values()]
    return {
        "names": list(groups),
        "sizes": np.array([len(of_group) for of_group in members], dtype=np.int64),
        "members": [name for of_group in members for name in of_group],
    }


def groups_from_state(state: dict[str, Any]) -> dict[Hashable, list[Hashable]]:
    """Return the members of groups from the result of `groups_to_state`."""
    size = length_in(state, "names")
    expect(state, sizes=ArrayKind((size,), np.int64, minimum=1))
    ends = np.cumsum(state["sizes"]).tolist()
    members = state["members"]
    if length_in(state, "members") != (ends[-1] if ends else 0):
        raise ValueError("Expected as many members as the groups have. Got: another number.")
    starts = [0, *ends[:-1]]
    groups = dict(
        zip(
            state["names"],
            (members[start:stop] for start, stop in zip(starts, ends, strict=True)),
            strict=True,
        )
    )
    if len(groups) < size:
        raise ValueError("Expected groups of distinct names. Got: equal ones.")
    return groups

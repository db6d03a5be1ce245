"""Streams of groups: any order of members, any blocks, and files of groups."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from streamsel.data.chunks import Block, group_slices
from streamsel.stream import (
    ColumnStream,
    clean,
    grouped,
    iter_columns,
    iter_npy,
    prune,
    ranks,
    read_gmt,
)
from streamsel.stream import _groups as module

X = np.asfortranarray(np.random.default_rng(0).normal(size=(5, 12)))
CUTS = [(0, 12), (0, 5, 12), tuple(range(13))]


def cut_stream(ends, *, sparse=False, names=None, **more):
    """Return X as a stream of blocks that end at these columns."""
    values = sp.csc_array(X) if sparse else X

    def blocks():
        for start, stop in pairwise(ends):
            yield Block(list(range(start, stop)), values[:, start:stop])

    return ColumnStream(blocks, n_rows=5, names=names, **more)


def read(stream):
    """Return the groups of a stream in order, after checks of their values and blocks."""
    found, seen = [], set()
    for names, values, groups in stream.blocks():
        array = values.toarray() if hasattr(values, "toarray") else values
        np.testing.assert_array_equal(array, X[:, list(names)])
        in_block = [None] * len(names) if groups is None else list(groups)
        for j, (name, group) in enumerate(zip(names, in_block, strict=True)):
            if group is None:
                found.append((None, [name]))
            elif j and in_block[j - 1] == group:
                found[-1][1].append(name)
            else:
                assert group not in seen  # never divided
                seen.add(group)
                found.append((group, [name]))
    return found


@pytest.mark.parametrize("ends", CUTS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_adjacent_members(ends, sparse, known):
    names = list(range(12)) if known else None
    groups = {j: "ab"[j // 4] for j in range(1, 8)} | {9: "c"}
    expected = [(None, [0]), ("a", [1, 2, 3]), ("b", [4, 5, 6, 7]), (None, [8]), ("c", [9])]
    expected += [(None, [10]), (None, [11])]
    stream = grouped(cut_stream(ends, sparse=sparse, names=names), groups)
    assert read(stream) == expected
    assert read(stream) == expected
    assert stream.n_columns == 12


OVERLAPPING = {"far": [0, 11, 99], "near": [3, 4], "both": [4, 0], "late": [8]}
IN_ORDER = [1, 2, "near", "both", 5, 6, 7, "late", 9, 10, "far"]


@pytest.mark.parametrize("ends", CUTS)
@pytest.mark.parametrize("source", ["by name", "once", "again"])
def test_groups_are_yielded_with_their_last_member(ends, source):
    if source == "by name":
        stream = grouped(X, OVERLAPPING)
        assert stream.n_columns == 14  # two columns occur twice
    else:
        known = list(range(12)) if source == "again" else None
        # Without known names, a group member may still be pending.
        groups = OVERLAPPING if known else OVERLAPPING | {"far": [0, 11]}
        stream = grouped(cut_stream(ends, names=known, reiterable=source == "again"), groups)
    found = read(stream)
    assert [name[0] if group is None else group for group, name in found] == IN_ORDER
    members = dict(found)
    assert members["both"] == [0, 4]
    assert members["far"] == [0, 11]


def test_incomplete_groups_are_yielded_last():
    found = read(grouped(cut_stream((0, 12), reiterable=False), {"g": [2, 5, 99], "h": [98]}))
    assert found[-1] == ("g", [2, 5])
    assert "h" not in dict(found)


def test_buffered_members_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MAX_WAITING", 100)
    stream = grouped(cut_stream((0, 12), reiterable=False), {"g": [0, 3, 6, 9]})
    with pytest.raises(ValueError, match="wait for other members"):
        list(stream.blocks())


def test_groups_without_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match="members include 'BRCA1'"):
        list(grouped([("x", [1.0])], {"g": ["BRCA1"]}).blocks())
    pairs = [("brca1", np.zeros(3)), ("atm", np.ones(3))]
    with pytest.raises(ValueError, match="none of its columns"):
        list(grouped(iter_columns(pairs), {"BRCA1": "repair"}).blocks())
    with pytest.raises(ValueError, match="'0'"):
        grouped(X, {"0": "g"})
    with pytest.raises(TypeError, match="mapping"):
        grouped(X, ["a"] * 12)
    with pytest.raises(ValueError, match=r"include 'g'.*\n.*a tuple is one name"):
        grouped(X, {"g": (0, 1)})
    with pytest.raises(ValueError, match=r"include 'g'.*\n.*include 0, 1, 2.$"):
        grouped(X, {"g": "h"})
    assert read(grouped(X, {})) == [(None, [j]) for j in range(12)]


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_a_column_without_a_group_is_single(missing):
    groups = {0: "a", 1: "a", 2: missing, 3: missing}
    assert read(grouped(X[:, :4], groups)) == [("a", [0, 1]), (None, [2]), (None, [3])]


def test_gmt_files(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text("a\thttp://x\t1\t2\t\t2\nb\t\t2\n\n")
    assert read_gmt(path) == {"a": ["1", "2"], "b": ["2"]}
    frame = [(str(j), X[:, j]) for j in range(4)]
    assert [b.groups for b in grouped(frame, path).blocks() if b.groups] == [["a", "a"], ["b"]]
    for text, message in (
        ("a\tx\n", "(?s)line 1.*column to group"),
        ("a\tx\t1\na\tx\t2\n", "line 2"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_gmt(path)


def test_transformations_keep_groups(tmp_path):
    """When columns are dropped, the others of their group stay adjacent, in one block."""
    values = np.random.default_rng(1).normal(size=(30, 40))
    values[:, [2, 7, 8]] = 1.0
    values[:, 13] = values[:, 12]
    np.save(tmp_path / "x.npy", np.asfortranarray(values))
    groups = {j: f"g{j // 5}" for j in range(35)}
    left = [j for j in range(40) if j not in (2, 7, 8)]
    for change, expected in (
        (clean, left),
        (ranks, left),
        (lambda s: prune(s, 0.99), [j for j in left if j != 13]),
        (lambda s: s.without([1, 11, 12]), [j for j in left if j not in (1, 11, 12)]),
    ):
        stream = clean(grouped(iter_npy(tmp_path / "x.npy"), groups))
        found = {}
        for block in change(stream).blocks():
            assert not {*block.groups} - {None} & {*found.values()}  # never divided
            found |= dict(zip(block.names, block.groups, strict=True))
        assert found == {j: groups.get(j) for j in expected}


@given(st.lists(st.integers(0, 3) | st.none(), min_size=1, max_size=20), st.integers(1, 8))
def test_slices_do_not_divide_groups(groups, step):
    slices = list(group_slices(len(groups), step, groups))
    assert [j for part in slices for j in range(part.start, part.stop)] == [*range(len(groups))]
    for part in slices[1:]:
        before, after = groups[part.start - 1], groups[part.start]
        assert after is None or after != before

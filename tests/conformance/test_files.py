"""Model files of every learner: a contradictory state is refused, never partly loaded.

Compiled loops do not check bounds, so every inconsistency must be detected on loading.
"""

import io
import json
import zipfile

import numpy as np
import pytest

from streamsel import load, save
from tests.conformance.modes import (
    CLASSES,
    COLUMN_MODES,
    GROUP_MODES,
    MODES,
    build,
    data,
    fresh,
    in_groups,
    learnt,
    sampled,
)
from tests.seed import some
from tests.test_persist import HEADER, array_entry, forge

ON_ROWS = {name: mode for name, mode in MODES.items() if mode.has_target == mode.cls._is_supervised}


def parts_of(model, path):
    """Return the header and the arrays of a model's file."""
    save(model, path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        return header, {n: archive.read(n) for n in archive.namelist() if n != "header.json"}


def is_read(path, header, entries):
    """Return whether a file of these parts is loaded."""
    path.write_bytes(forge(header, list(entries.items())))
    try:
        load(path)
    except ValueError:
        return False
    return True


def shorter(entry):
    """Yield an array shortened by one along each of its axes."""
    array = np.load(io.BytesIO(entry))
    for axis in range(array.ndim):
        if array.shape[axis]:
            yield axis, array_entry(np.delete(array, -1, axis=axis))


def item_paths(state, path=""):
    """Yield the paths of all items in the header of a state, except for nested dicts."""
    for key, value in state.items():
        if set(value) == {"dict"} if isinstance(value, dict) else False:
            yield from item_paths(dict(value["dict"]), f"{path}{key}/")
        else:
            yield f"{path}{key}"


def without(state, path):
    """Return a state without the item at a path."""
    key, _, deeper = path.partition("/")
    if not deeper:
        return {name: value for name, value in state.items() if name != key}
    part = without(dict(state[key]["dict"]), deeper)
    return state | {key: {"dict": [list(pair) for pair in part.items()]}}


# Items that files of earlier versions lack.
LATER = {"reference_scale"}


def check(model, path, mode):
    """Remove or shorten half of the items of a state; the half depends on mode and seed."""
    header, entries = parts_of(model, path)
    state = header["state"]
    assert is_read(path, header, entries)
    assert not is_read(path, header | {"state": state | {"extra": 1}}, entries)
    found = list(item_paths(state))
    for item in some(found, -(-len(found) // 2), str(mode)):
        if item.rpartition("/")[2] in LATER:
            continue
        rest = {name: entry for name, entry in entries.items() if name != f"{item}.npy"}
        assert not is_read(path, header | {"state": without(state, item)}, rest), item
    accepted = [
        (name, axis)
        for name, entry in some(entries.items(), -(-len(entries) // 2), str(mode))
        for axis, cut in shorter(entry)
        if is_read(path, header, entries | {name: cut})
    ]
    assert not accepted


@sampled(COLUMN_MODES)
def test_altered_column_states_are_refused(mode, tmp_path):
    X, y = data(mode, n=12, p=40, c=3)
    check(learnt(mode, X, y), tmp_path / "model", mode)


@sampled(GROUP_MODES)
def test_altered_group_states_are_refused(mode, tmp_path):
    X, y = data(mode, n=12, p=40, c=3)
    model = fresh(mode, y)
    model.learn_columns(in_groups(X))
    check(model, tmp_path / "model", mode)


@sampled(ON_ROWS)
def test_altered_row_states_are_refused(mode, tmp_path):
    X, y = data(mode, n=50, p=8)
    model = build(mode)
    model.learn_many(X, *([] if y is None else [y]))
    check(model, tmp_path / "model", mode)


@pytest.mark.parametrize("learner", CLASSES)
@pytest.mark.parametrize("state", [{}, {"nonsense": 1}, {"names": [1, 2, 3]}])
def test_states_of_another_structure_are_refused(learner, state, tmp_path):
    assert not is_read(tmp_path / "model", HEADER | {"class": learner, "state": state}, {})

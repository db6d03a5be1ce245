"""Forged model files: a valid checksum does not make the contents valid.

Each of these files was once accepted, and later caused an undocumented error.
"""

import contextlib
import hashlib
import io
import json

import numpy as np
import pytest
import scipy.sparse as sp

import streamsel
from streamsel import load, save
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    FloatKind,
    ListKind,
    NamesKind,
    OptionalKind,
    expect,
)
from tests.conformance.test_files import parts_of
from tests.test_persist import array_entry, forge

X = np.random.default_rng(0).normal(size=(14, 12))


def on_columns(cls=streamsel.ForwardSelection, **params):
    model = cls(**params)
    if model._is_supervised:
        model.learn_target(X[:, 0] + X[:, 1])
    model.learn_columns(X, [f"v{j}" for j in range(12)])
    return model


def on_rows(cls=streamsel.SelectKBest, **params):
    model = cls(**params)
    for row in X:
        x = {f"v{j}": float(value) for j, value in enumerate(row)}
        model.learn_one(x, *([float(row[0])] if model._is_supervised else []))
    return model


def parts(header, *keys):
    """Return the value at a path of keys in the state; dicts are lists of pairs."""
    found = header["state"]
    for key in keys:
        found = dict(map(tuple, found["dict"]))[key] if "dict" in found else found[key]
    return found


def put(header, keys, value):
    """Replace the value at a path of keys in the state."""
    *way, last = keys
    inside = parts(header, *way)
    if "dict" in inside:
        for pair in inside["dict"]:
            if pair[0] == last:
                pair[1] = value
    else:
        inside[last] = value


@pytest.fixture(name="refusal")
def read_forged(tmp_path):
    """Save a model, change its header or arrays, recompute the checksum; return the refusal."""

    def refusal(model, change):
        path = tmp_path / "forged"
        header, entries = parts_of(model, path)
        text = change(header, entries)
        path.write_bytes(forge(header if text is None else text, list(entries.items())))
        with pytest.raises(ValueError, match="forged ") as info:
            load(path)
        message = str(info.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        assert len(message) < 1000
        return message

    return refusal


IN_THE_STATE = [
    (on_columns, ("n_columns",), "12", "n_columns: an int >= 0"),
    (on_columns, ("n_columns",), True, "n_columns: an int >= 0"),
    (on_columns, ("n_columns",), -1, "n_columns"),
    (on_columns, ("n_columns",), 10**40, "n_columns"),
    (on_columns, ("n_passes",), None, "n_passes"),
    (on_columns, ("without_target",), 1, "without_target: True or False"),
    (on_columns, ("columns", "has_discarded"), 0, "has_discarded: True or False"),
    (on_columns, ("columns", "seen"), 1.0, "seen"),
    (on_columns, ("columns", "table", "names"), ["v0"] * 12, "Expected new names"),
    (on_columns, ("columns", "table", "names"), "v" * 12, "Expected an array or a list of names"),
    (on_columns, ("target_names", "given"), [0], "given"),
    (on_rows, ("moments", "rows"), 14.0, "rows: an int"),
    (on_rows, ("moments", "weights"), [14.0, 1.0], "weights: a list of length 3"),
    (on_rows, ("moments", "weights"), [14.0, 1.0, "x"], "weights"),
    (on_rows, ("moments", "complete"), [], "complete"),
    (on_rows, ("moments", "target", "form"), "none", "rows must have a target"),
    (on_rows, ("moments", "target", "form"), ["number"], "the form of a target"),
    (on_rows, ("no_room_until",), "x", "no_room_until"),
    (on_rows, ("refresh_at",), 2.0, "Expected the row number of the next refresh"),
    (on_rows, ("snapshot",), ["v0", "unknown"], "distinct names of tracked variables"),
]


@pytest.mark.parametrize(("make", "keys", "value", "why"), IN_THE_STATE)
def test_contents_of_states_are_checked(refusal, make, keys, value, why):
    assert why in refusal(make(), lambda header, _: put(header, keys, value))


def with_array(name, change):
    def act(_, entries):
        entries[name] = array_entry(change(np.load(io.BytesIO(entries[name]))))

    return act


def with_first(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


ARRAYS = [
    (on_rows, "moments/table/own.npy", lambda a: a.astype(np.float32), "float64 of shape"),
    (on_rows, "moments/of_target.npy", lambda a: a.astype(np.uint8), "float64 of shape"),
    (on_rows, "moments/of_target.npy", with_first(1e200), "means of the target"),
    (on_rows, "moments/target/origin.npy", with_first(-1e308), "origin"),
    (on_columns, "columns/table/m2.npy", with_first(-1.0), "moments must be finite"),
    (
        on_columns,
        "columns/unchanged_since.npy",
        lambda a: a.astype(float),
        "unchanged_since: int64",
    ),
    (on_columns, "columns/table/unit.npy", with_first(np.nan), "finite numbers"),
]


@pytest.mark.parametrize(("make", "name", "change", "why"), ARRAYS)
def test_arrays_are_checked(refusal, make, name, change, why):
    assert why in refusal(make(), with_array(name, change))


def times(factor):
    return lambda array: array * factor


def on_both(cls, **params):
    model = on_columns(cls, **params)
    for row in X:
        x = {f"v{j}": float(value) for j, value in enumerate(row)}
        model.learn_one(x, *([float(row[0])] if model._is_supervised else []))
    return model


def permuted(cls):
    return on_columns(cls, permutations=19)


def reread(cls):
    model = on_columns(cls, max_loadings=4)
    model.learn_loadings(X, [f"v{j}" for j in range(12)])
    return model


def heavy(cls):
    """Return a model that correlates columns with normal scores of the target."""
    model = cls()
    model.learn_target((X[:, 0] + X[:, 1]) ** 5)
    model.learn_columns(X, [f"v{j}" for j in range(12)])
    assert model.report().normal_scores
    return model


def outlying(cls):
    """Return a model whose target has values that centring makes equal."""
    model = cls()
    model.learn_target(np.append(X[1:, 0], 1e30))
    model.learn_columns(X, [f"v{j}" for j in range(12)])
    return model


def flipped(array):
    return array[::-1]


RIDGE = streamsel.RidgeComponents
NOT_LEARNT = [
    (RIDGE, on_columns, "columns/table/unit.npy", times(1e300), "observations of length 1"),
    (RIDGE, on_columns, "columns/table/unit.npy", times(2.0), "observations of length 1"),
    (
        RIDGE,
        on_columns,
        "columns/table/weight.npy",
        times(0.0),
        "weights of representatives from 0.99",
    ),
    (RIDGE, on_columns, "columns/gram/factors.npy", times(0.0), "factors with a maximum of 1"),
    (RIDGE, on_columns, "target_Y.npy", times(1e200), "targets that are sums of products"),
    (RIDGE, on_columns, "target_low.npy", with_first(1e9), "rounding corrections of means"),
    (streamsel.SelectKBest, outlying, "target_order.npy", times(2), "order of the target"),
    (streamsel.SOSPCA, on_columns, "columns/relevance.npy", times(1e300), "relevances from 0 to 1"),
    (streamsel.SOSPCA, on_columns, "columns/relevance.npy", times(-1.0), "relevances from 0 to 1"),
    (streamsel.SOSPCA, on_columns, "columns/Mzz.npy", with_first(-1.0), "no larger than their"),
    (streamsel.SOSPCA, on_columns, "columns/Z.npy", times(1e300), "whose products are finite"),
    (streamsel.ForwardSelection, on_columns, "columns/table/cxy.npy", times(1e200), "products no"),
    (streamsel.ForwardSelection, on_columns, "columns/table/cxy.npy", times(3.0), "products no"),
    (streamsel.OSFS, on_columns, "columns/table/m2.npy", times(0.0), "variables that vary"),
    (streamsel.PCA, on_columns, "columns/table/m2.npy", times(1e-310), "variables that vary"),
    (streamsel.SelectKBest, on_columns, "columns/table/arrival.npy", times(-1.0), "arrivals from"),
    (streamsel.OnlineFDR, on_columns, "columns/table/p_value.npy", with_first(2.0), "p-values"),
    (
        streamsel.PCA,
        on_columns,
        "columns/gram/buffered.npy",
        times(1e300),
        "columns whose products",
    ),
    (streamsel.SelectKBest, on_rows, "moments/of_target.npy", times(-1.0), "products no larger"),
    (streamsel.PCA, on_both, "extension/current/S.npy", times(-1.0), "products no larger"),
    (streamsel.PCA, on_both, "extension/current/sums.npy", times(1e100), "products no larger"),
    (streamsel.PCA, on_both, "snapshot/weights.npy", times(1e300), "loadings whose products"),
    (streamsel.SOSPCA, on_both, "extension/J.npy", times(-1.0), "squares of 0 or more"),
    (streamsel.SparsePCA, on_both, "extension/A.npy", times(-1.0), "products no larger"),
    (streamsel.Lasso, on_columns, "columns/table/arrival.npy", times(0.0), "arrivals that differ"),
    (streamsel.SparsePCA, on_columns, "columns/table/unit.npy", times(1e9), "observations from -2"),
    (streamsel.SparsePCA, on_columns, "columns/buffered.npy", times(1e-300), "columns that vary"),
    (streamsel.PCA, reread, "columns/loadings/deviations.npy", times(-1.0), "standard deviations"),
    (
        streamsel.SelectKBest,
        heavy,
        "columns/table/normal_score_products.npy",
        times(9.0),
        "products no larger",
    ),
    (streamsel.SelectKBest, heavy, "summary/first.npy", times(9.0), "first: float64"),
    (streamsel.SelectKBest, heavy, "summary/sample/sums.npy", times(1e300), "sums"),
    (streamsel.SelectKBest, heavy, "summary/sample/counts.npy", times(0.0), "squares of weights"),
    (streamsel.SelectKBest, permuted, "summary/null/permuted.npy", times(9.0), "permuted"),
    (streamsel.SelectKBest, permuted, "summary/null/maxima.npy", with_first(-1.0), "maxima"),
    (
        streamsel.SelectKBest,
        permuted,
        "summary/null/counts.npy",
        times(2),
        "per column and permut",
    ),
    (streamsel.SelectKBest, permuted, "summary/null/arrivals.npy", times(-1.0), "arrivals"),
    (
        streamsel.SelectKBest,
        permuted,
        "summary/null/squares.npy",
        flipped,
        "most relevant columns first",
    ),
]


@pytest.mark.parametrize(("cls", "make", "name", "change", "why"), NOT_LEARNT)
def test_impossible_numbers_are_refused(refusal, cls, make, name, change, why):
    """Finite numbers of the right type and shape are refused if learning cannot produce them."""
    few = {"warm_up": 5} if make is on_both else {}
    assert why in refusal(make(cls, **few), with_array(name, change))


def test_impossible_weights_are_refused(refusal):
    for weights in ([14.0, 1e300, 14.0], [14.0, 1.0, 1e-9], [14.0, 1.0, 1e9]):
        message = refusal(
            on_rows(),
            lambda header, _: put(header, ("moments", "weights"), weights),  # noqa: B023
        )
        assert "weights of 14 rows" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-140, 0.0), (1e150, 0.0), (1.0, 1e6), (1e7, 1e15)]
)
def test_valid_models_are_not_refused(tmp_path, scale, offset):
    """Models of large or small values, with little variation about a mean, are never refused."""
    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(14, 12)) + offset) * scale
    Z[:, 3] = Z[:, 2]
    Z[:, 5] = np.eye(14)[0] * scale
    for name in sorted(streamsel.registry.names()):
        cls = streamsel.registry.fetch(name)
        for rows, power in ((False, 1), (False, 5), (True, 1)):
            with contextlib.suppress(ValueError):  # e.g. too large to be squared
                model = learnt_on(Z, cls, rows=rows, power=power)
                save(model, tmp_path / "model")
                try:
                    load(tmp_path / "model")
                except ValueError as error:
                    pytest.fail(f"{name}: {error}")


def learnt_on(Z, cls, *, rows, power):
    few = {"warm_up": 5, "permutations": 19 if power > 1 else 0}
    known = cls()._get_params()
    model = cls(**{name: value for name, value in few.items() if name in known})
    y = Z[:, 0] + Z[:, 1] if model._is_supervised else None
    if y is not None and power > 1:  # heavy tails
        y = ((y - y.mean()) / y.std()) ** power
    if y is not None:
        model.learn_target(y)
    model.learn_columns(Z, [f"v{j}" for j in range(12)])
    for row in Z if rows else ():
        x = {f"v{j}": float(value) for j, value in enumerate(row)}
        model.learn_one(x, *([] if y is None else [float(row[0] + row[1])]))
    return model


def test_indices_of_stored_values_are_checked(refusal):
    """Indices of stored values are checked; otherwise compiled loops would write out of bounds."""
    model = streamsel.PCA(2)
    model.learn_columns(sp.random(40, 12, 0.1, "csc", random_state=0))
    name = "columns/gram/stored/rows.npy"
    for value in (40, -1, 2**31 - 1):
        assert "rows: int32" in refusal(model, with_array(name, with_first(value)))


HUGE = [
    (streamsel.SelectKBest, "k", 10**40),
    (streamsel.RandomProjection, "n_components", 10**15),
    (streamsel.PCA, "n_components", 10**9),
    (streamsel.ProjSe, "degree", 10**9),
    (streamsel.Lasso, "n_alphas", 10**12),
]


@pytest.mark.parametrize(("cls", "name", "value"), HUGE)
def test_huge_parameters_are_refused(refusal, cls, name, value):
    def change(header, _):
        header["params"]["dict"] = [
            [key, value if key == name else old] for key, old in header["params"]["dict"]
        ]

    assert f"Expected {name} of" in refusal(cls(), change)


def test_huge_windows_take_no_memory(tmp_path):
    """A huge window takes no memory before there are rows, or is refused."""
    model = streamsel.MRMR(k=2, score="mutual_info", redundancy="mutual_info", window_size=10**9)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").window_size == 10**9


TEXTS = [
    lambda text: text.replace('"n_columns"', '"n_columns": 3, "n_columns"', 1),
    lambda text: text[:-1] + ', "class": "PCA"}',
    lambda text: text.replace('"metadata": ', '"metadata": ' + "[" * 100_000, 1),
    lambda text: text.replace('"n_columns": ', '"n_columns": ' + "9" * 5000, 1),
    lambda text: text.replace('"params": ', '"params": {"float": 3}, "x": ', 1),
    lambda text: text.replace(
        '"params": {"dict": [', '"params": {"dict": [["k", 2], ["k", 3], ', 1
    ),
    lambda text: text.replace('"class": "', '"class": "' + "x" * 10_000, 1),
    lambda text: text.encode("utf-16"),
]


@pytest.mark.parametrize("change", TEXTS)
def test_repeated_keys_and_deep_nesting_are_refused(refusal, change):
    refusal(on_rows(), lambda header, _: change(json.dumps(header)))


def test_negative_archive_offsets_are_refused(tmp_path):
    path = tmp_path / "forged"
    save(on_rows(), path)
    content = bytearray(path.read_bytes()[:-64])
    at = content.rfind(b"PK\x05\x06")
    content[at + 16 : at + 20] = b"\xff\xff\xff\x7f"
    path.write_bytes(bytes(content) + hashlib.sha256(content).hexdigest().encode())
    with pytest.raises(ValueError, match="is not laid out"):
        load(path)


def test_an_inconsistent_target_flag_is_refused(refusal):
    def change(header, _):
        put(header, ("without_target",), False)

    assert "a target is missing" in refusal(on_columns(streamsel.PCA), change)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (CountKind(), [0, 3, 2**53], [-1, 1.0, True, None, "1", 2**53 + 1]),
        (FloatKind(0.0), [0, 0.5, 1e308], [-1.0, np.inf, np.nan, True, "1", None]),
        (BoolKind(), [True, False], [0, 1, None, "True"]),
        (
            NamesKind(),
            [[], ["a", 1, ("b", 2)]],
            [["a", "a"], [1, True], [[]], "ab", None, [np.nan]],
        ),
        (NamesKind({"a": 0}), [[], ["a"]], [["b"]]),
        (ListKind(2, CountKind()), [[1, 2]], [[1], [1, 2.0], (1, 2), None]),
        (OptionalKind(CountKind(1)), [None, 1], [0, "x"]),
        (
            ArrayKind((2,), np.int64, minimum=0, below=5),
            [np.array([0, 4])],
            [[0, 4], np.array([0, 5]), np.array([-1, 0]), np.array([0.0, 4.0]), np.array([0])],
        ),
        (ArrayKind((0,), minimum=0.0), [np.zeros(0)], [np.zeros(1), np.zeros((0, 1))]),
    ],
)
def test_kinds_of_values_are_checked(kind, good, bad):
    for value in good:
        expect({"x": value}, x=kind)
    for value in bad:
        with pytest.raises(ValueError, match="Expected x: "):
            expect({"x": value}, x=kind)
    for state in ({}, None, [("x", 1)]):
        with pytest.raises(ValueError, match="Expected "):
            expect(state, x=kind)

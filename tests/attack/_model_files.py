"""Model files of every learner with one change in their contents and a valid checksum."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import streamsel
from streamsel.stream import iter_array
from tests.attack._mutate import mutate
from tests.conformance.modes import (
    GROUP_MODES,
    MODES,
    REGISTERED,
    build,
    fresh,
    in_groups,
    target_of,
)

if TYPE_CHECKING:
    import random

N, P = 14, 12
_KNOWN = {entry.name for entry in REGISTERED}


class Sample(NamedTuple):
    """A model, the data that it learnt, and the parts of its file."""

    label: str
    model: Any
    X: Any
    y: Any
    header: dict[str, Any]
    arrays: dict[str, Any]
    data: bytes


def labels() -> list[str]:
    """Return the labels of `sample`: every mode, on columns, in groups, on rows, and on both."""
    found = []
    for name, mode in MODES.items():
        if mode.learner in _KNOWN:
            found.append(f"columns {name}")
            if mode.has_target == mode.cls._is_supervised:
                found += [f"rows {name}", f"both {name}"]
    return found + [f"groups {name}" for name in GROUP_MODES]


@functools.cache
def sample(label: str) -> Sample:
    """Return a model that has learnt the data that the label names."""
    how, _, name = label.partition(" ")
    mode = GROUP_MODES[name] if how == "groups" else MODES[name]
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(N, P)) + 2.0)
    y = target_of(mode, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [f"v{j}" for j in range(P)]
        model = build(mode) if how == "rows" else fresh(mode, y)
        if how != "rows":
            model.learn_columns(in_groups(X, names) if how == "groups" else iter_array(X, names))
        if how not in ("columns", "groups"):
            further = dict(zip((f"v{j}" for j in range(P)), X.T, strict=True))
            for i in range(N):
                x = {key: float(column[i]) for key, column in further.items()}
                model.learn_one(x, *([] if y is None else [y[i].item()]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        streamsel.save(model, path, metadata={"of": label})
        data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header = json.loads(archive.read("header.json"))
        arrays = {
            entry: np.load(io.BytesIO(archive.read(entry)))
            for entry in archive.namelist()
            if entry != "header.json"
        }
    return Sample(label, model, X, y, header, arrays, data)


# ------------------------------------------------------------------------------------------ mutants


def mutant(kind: str, label: str, rng: random.Random) -> bytes:
    """Return a file changed by this kind of mutation; all but `unsealed` have a valid checksum."""
    whole = sample(label)
    if kind == "unsealed":
        return mutate(whole.data, rng)
    if kind == "bytes":
        return sealed(mutate(whole.data[:-64], rng))
    header, arrays = json.loads(json.dumps(whole.header)), dict(whole.arrays)
    if kind == "text":
        return pack(_text(json.dumps(header), rng), arrays.items())
    if kind == "archive":
        return _archive(header, arrays, rng)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        {
            "header": _change_header,
            "arrays": _change_array,
            "values": _change_values,
            "foreign": _transplant,
        }[kind](header, arrays, rng)
    return pack(json.dumps(header), arrays.items())


# Almost valid files are tried most, as they pass the checks of types and shapes.
KINDS = (
    *("unsealed", "bytes", "text", "archive", "header", "arrays", "foreign", "header", "arrays"),
    *("values", "values", "values"),
)


def sealed(content: bytes) -> bytes:
    """Return bytes with their checksum, as an attacker can compute it."""
    return content + hashlib.sha256(content).hexdigest().encode()


def pack(text: str | bytes, arrays: Any, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a sealed file of a header's text and arrays, or of their replacements."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # duplicate names
        archive.writestr(zipfile.ZipInfo("header.json"), text, method)
        for name, array in arrays:
            archive.writestr(zipfile.ZipInfo(name), _entry(array), method)
        archive.comment = b"streamsel sha256 " + b"0" * 64
    return sealed(file.getvalue()[:-64])


def _entry(array: Any) -> bytes:
    if isinstance(array, bytes):
        return array
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


def _claiming(array: Any, rng: random.Random) -> bytes:
    """Return an array whose header does not match its data."""
    claimed = rng.choice(
        (
            {"descr": "<f8", "fortran_order": False, "shape": (10**15,)},
            {"descr": "<f8", "fortran_order": False, "shape": (-1, len(array.tobytes()))},
            {"descr": "<f8", "fortran_order": False, "shape": (0, 10**18)},
            {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**40, 2**40)},
            {"descr": "<f8", "fortran_order": False, "shape": (0,) * 65},
            {"descr": "|O", "fortran_order": False, "shape": array.shape},
            {"descr": "|V8", "fortran_order": False, "shape": array.shape},
            {"descr": "<c16", "fortran_order": False, "shape": array.shape},
            {"descr": [("a", "<f8")], "fortran_order": False, "shape": array.shape},
            {"descr": "<f8", "fortran_order": 3, "shape": array.shape},
            {"descr": "<f8", "fortran_order": False, "shape": (True,) * array.ndim},
            {"descr": "nonsense", "fortran_order": False, "shape": array.shape},
        )
    )
    text = rng.choice((repr(claimed), "(" * 5000, "__import__('os')", "9" * 5000, repr(claimed)))
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


# ------------------------------------------------------------------------------ headers

_EXTREME: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 10**9, 10**12, 10**18, -(10**18)),
    *(2**31, 2**63 - 1, 2**63, 2**64, 10**40, 0.0, 0.5, -0.5, 1.0, 2.5, 1e308, -1e308, 5e-324),
    *("", "x", "v0", "v1", "nan", "auto", "class", "number", "several", [], [0], ["v0"], {}),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"float": "1.5"}, {"float": 3}),
    *({"dict": []}, {"tuple": []}, {"tuples": [[1, 2]]}, {"tuples": 3}, {"characters": ["\ud800"]}),
    *({"array": "none.npy"}, {"array": []}, {"unknown": 1}, {"dict": [["a", 1], ["a", 2]]}),
    *({"dict": [[[], 1]]}, {"dict": [[{"dict": []}, 1]]}, {"dict": 3}, {"tuple": "ab"}),
    *([[]], [None], [{"float": "nan"}], ["v0", "v0"], {"float": "1", "tuple": []}),
    *({"tuple": [0, 1, 2]}, [1, 2, 3], [1.0, 2.0, 3.0], "x" * 10_000, [0] * 10_000),
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all items in a tree of lists and dicts."""
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            found += _paths(item, (*path, key))
        else:
            found.append((*path, key))
    return found


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _change_header(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> None:
    # Parameters and scalars are few compared with names, so each field is drawn equally.
    field = rng.choice(("state", "state", "state", "params", "params", "metadata", None))
    if field is None or not isinstance(header.get(field), dict):
        paths = _paths(header)[1:]
    else:
        paths = [(field, *path) for path in _paths(header[field])][1:]
    if not paths:
        return
    path = rng.choice(paths)
    parent, key = _at(header, path[:-1]), path[-1]
    value = parent[key]
    how = rng.randrange(10)
    if how < 4:
        parent[key] = json.loads(json.dumps(rng.choice(_EXTREME)))
    elif how == 4 and type(value) in (int, float, bool):
        parent[key] = rng.choice(
            (value + 1, value - 1, -value, value * 2, value * 10**6, float(value), int(value))
            if abs(value) < 1e15
            else (0,)
        )
    elif how == 5:
        del parent[key]
    elif how == 6 and isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), value)
    elif how == 7 and isinstance(value, list) and value:
        rng.choice((value.reverse, value.clear, value.pop, lambda: rng.shuffle(value)))()
    elif how == 8:
        other = rng.choice(paths)
        with_parent = _at(header, other[:-1])
        parent[key], with_parent[other[-1]] = with_parent[other[-1]], value
    elif isinstance(parent, dict):
        parent[rng.choice(("extra", "names", "rows", "n"))] = rng.choice(_EXTREME)
    else:
        parent.append(rng.choice(_EXTREME))


def _change_array(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> None:
    names = [name for name, array in arrays.items() if isinstance(array, np.ndarray)]
    if not names:
        return
    name = rng.choice(names)
    array = arrays[name]
    how = rng.randrange(12)
    values = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0, 1e9, -1e9, 2.0**31, 2.0**62, -(2.0**62))
    values = (*values, 1e160, 1e308, -1e308, 1e-320, 0.5, float(len(array)) if array.ndim else 3.0)
    if how < 4 and array.size:
        changed = np.array(array)
        some = rng.sample(range(array.size), rng.choice((1, 1, min(3, array.size), array.size)))
        changed.flat[some] = _fit(rng.choice(values), array.dtype)
        arrays[name] = changed
    elif how == 4:
        kinds = ("i8", "f4", "f2", "u1", "u8", "?", "i1", ">f8", ">i8", "c16", "U3", "f8", "m8[s]")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(rng.choice(kinds))
    elif how == 5:
        shapes = [(-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]]
        arrays[name] = np.reshape(array, rng.choice(shapes))
    elif how == 6 and array.ndim:
        axis = rng.randrange(array.ndim)
        arrays[name] = rng.choice(
            (
                np.delete(array, slice(-1, None), axis=axis),
                np.concatenate([array, array], axis=axis),
                np.flip(array, axis=axis),
                np.sum(array, axis=axis),
            )
        )
    elif how == 7:
        empty = ((0,), (0, 0), (), (1,), (5, 5), (0, 7), (10**6, 0))
        arrays[name] = np.zeros(rng.choice(empty), array.dtype)
    elif how == 8:
        arrays[name] = np.asfortranarray(array)
    elif how == 9:
        arrays[name] = _claiming(array, rng)
    elif how == 10:
        other = rng.choice(names)
        arrays[name], arrays[other] = arrays[other], array
    else:
        arrays[name] = np.array(rng.sample(list(array.flat), array.size)).reshape(array.shape)


def _change_values(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> None:
    """Replace numbers by others: finite, of the right type, mostly impossible as learnt values."""
    names = [name for name, array in arrays.items() if array.dtype == np.float64 and array.size]
    if not names or rng.random() < 0.1:
        numbers = [path for path in _paths(header["state"]) if _is_float(header, path)]
        if numbers:
            *way, last = rng.choice(numbers)
            inside = _at(header["state"], tuple(way))
            inside[last] = rng.choice(_NUMBERS)
        return
    name = rng.choice(names)
    changed = np.array(arrays[name])
    where: Any = ...
    if changed.ndim and rng.random() < 0.7:  # a row, a column, or an entry
        where = tuple(rng.choice((slice(None), rng.randrange(n))) for n in changed.shape)
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            changed[where] *= rng.choice(_FACTORS)
        else:
            changed[where] = rng.choice(_NUMBERS)
    if np.isfinite(changed).all():
        arrays[name] = changed


_FACTORS = (1e300, 1e200, 1e150, 1e80, 1e-80, 1e-300, -1.0, 2.0, 1.5, 0.5, 0.0, 1.001, -1e100)
_NUMBERS = (1e300, -1e300, 1e155, 1e-155, 2.0, 1.0001, -0.5, -1.0, 1e15, 1e9, 0.0, 1.0, 5e-324)


def _is_float(header: dict[str, Any], path: tuple[Any, ...]) -> bool:
    return bool(path) and type(_at(header["state"], path)) is float


def _fit(value: float, dtype: Any) -> Any:
    if dtype.kind == "f":
        return value
    if dtype.kind not in "iu":
        return bool(value)
    limits = np.iinfo(dtype)
    return int(np.clip(np.nan_to_num(value), limits.min, limits.max / 2))


def _transplant(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> None:
    """Insert parts of another model's file."""
    other = sample(rng.choice(labels()))
    theirs = json.loads(json.dumps(other.header))
    how = rng.randrange(5)
    if how == 0:
        header["class"] = theirs["class"]
    elif how == 1:
        header["params"] = theirs["params"]
    elif how == 2:
        header["state"] = theirs["state"]
        arrays.clear()
        arrays.update(other.arrays)
    else:
        key = rng.choice(list(theirs["state"]))
        header["state"][key] = theirs["state"][key]
        for name in [name for name in arrays if name.split("/")[0].split(".")[0] == key]:
            del arrays[name]
        arrays.update(
            {n: a for n, a in other.arrays.items() if n.split("/")[0].split(".")[0] == key}
        )


# ------------------------------------------------------------------------- text and archive


def _text(text: str, rng: random.Random) -> str | bytes:
    at = rng.randrange(len(text))
    deep = rng.choice(("[" * 100_000, '{"dict": ' * 100_000, '{"tuple": [' * 50_000))
    return rng.choice(
        (
            mutate(text.encode(), rng, (b"NaN", b"Infinity", b"null", b"{", b"[", b'"', b"1e999")),
            text[:-1] + ', "class": "SOSPCA"}',
            text[:-1] + ', "version": 1}',
            text.replace('"state": {', '"state": {"n_columns": 5, ', 1),
            text.replace('"n_columns": ', f'"n_columns": {"9" * rng.choice((19, 400, 5000))}', 1),
            text.replace('"n_columns": ', '"n_columns": NaN, "x": ', 1),
            text.replace('"metadata": ', f'"metadata": {deep}', 1),
            text.replace('"metadata": ', f'"metadata": {deep}1' + "]" * 100_000 + ', "x": ', 1),
            text.replace('"state": {', f'"state": {{"deep": {_nested(rng)}, ', 1),
            text[:at],
            text + text,
            text.encode("utf-16"),
            b"\xef\xbb\xbf" + text.encode(),
            b"\xff" + text.encode(),
            "",
            "[]",
            "null",
            "\x00" * 1000,
        )
    )


def _nested(rng: random.Random) -> str:
    size = rng.choice((50, 300, 800, 900, 990, 3000))
    return '{"tuple": [' * size + "1" + "]}" * size


def _archive(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> bytes:
    text = json.dumps(header)
    entries: list[tuple[str, Any]] = list(arrays.items())
    first = np.zeros(3)
    how = rng.randrange(9)
    if how == 0:
        return pack(text, [*entries, *entries[:1]])
    if how == 1:
        return pack(text, [*entries, ("header.json", text.encode())])
    if how == 2:
        names = (
            "../../x.npy",
            "/etc/x.npy",
            "x/",
            "",
            "a" * 60_000,
            "\x00",
            "header.json/",
            "x\ny",
        )
        return pack(text, [*entries, (rng.choice(names), first)])
    if how == 3:
        return pack(text, entries, zipfile.ZIP_DEFLATED)
    if how == 4:
        return pack(text, [*entries, *((f"{i}.npy", b"") for i in range(3000))])
    if how == 5:
        return pack(text, entries[::-1])
    if how == 6:
        return pack(text, entries[: rng.randrange(len(entries) + 1)])
    if how == 7:
        return pack(text, [(name, rng.choice((b"", b"\x93NUMPY", first))) for name, _ in entries])
    # The size or offset of one entry, in the directory at the end of the archive.
    content = bytearray(pack(text, entries)[:-64])
    at = content.rfind(b"PK\x01\x02")
    offset = rng.choice((6, 8, 10, 20, 24, 28, 30, 32, 38, 42))
    content[at + offset : at + offset + 4] = rng.choice(
        (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", rng.randbytes(4))
    )
    return sealed(bytes(content))

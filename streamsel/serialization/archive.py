"""Portable model files: arrays and JSON in one uncompressed zip archive, without pickle.

A file has ``header.json`` (format, version, class, parameters, state, metadata) and one ``.npy``
entry for each array of the state, named by its path there. Its last 64 bytes are the SHA-256 of
everything before them, stored as the comment of the zip archive: a truncated or damaged file is
detected before any of it is used, and ``numpy.load`` still opens it. Entries are not compressed, so
that none can expand to more than the size of the file.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib import format as npy

from streamsel import registry
from streamsel._utils.system import out_of_memory
from streamsel.serialization.atomic import atomic_write
from streamsel.serialization.json_values import (
    from_json_value,
    is_numeric,
    to_json_value,
    unique_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["load", "read_metadata", "save"]

FORMAT = "streamsel"
VERSION = 1

_HEADER = "header.json"
_KEYS = frozenset({"format", "version", "class", "params", "state", "metadata"})
_SEAL = b"streamsel sha256 "
_DIGEST = 64  # hexadecimal digits of a SHA-256
_CHUNK = 1 << 20
# Longest quotation of an error or of a file's content in a message, in characters.
_MAX_QUOTED = 600


def save(model: Any, path: str | os.PathLike[str], metadata: Any = None) -> None:
    """Write a learner to a file that any later streamsel can read.

    The write is atomic: a temporary file is written next to `path`, synced, then renamed over it,
    so that a reader sees either the old or the new file. Equal models give equal bytes.

    Parameters
    ----------
    model
        A learner of streamsel, in any state.
    path
        The file to write; its directory must exist. No extension is added.
    metadata
        Metadata made of dicts, lists, tuples, strings, numbers, booleans and None, which
        `read_metadata` returns.

    Raises
    ------
    TypeError
        If `model` is not a learner of streamsel (a pipeline is not); or if a variable's name or an
        item of `metadata` is not made of str, int, float, bool, None and tuples or lists of them.
        NumPy scalars are stored as the Python value they equal.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Notes
    -----
    The cost in time and disk space is that of writing the state once; the header, which
    has the names, is built in memory.

    Examples
    --------
    >>> import tempfile, numpy as np, streamsel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 100))
    >>> model = streamsel.ProjSe(k=2)
    >>> model.learn_target(X[:, 7] - X[:, 42])
    >>> model.learn_columns(X)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     streamsel.save(model, f"{directory}/model.streamsel", metadata={"source": "made up"})
    ...     copy = streamsel.load(f"{directory}/model.streamsel")
    ...     metadata = streamsel.serialization.archive.read_metadata(f"{directory}/model.streamsel")
    >>> copy.selected == model.selected
    True
    >>> metadata
    {'source': 'made up'}
    """
    learner = type(model)
    if not _is_learner(model):
        raise TypeError(
            "Expected one of streamsel's learners, such as ForwardSelection or PCA. "
            f"Got: {learner.__module__}.{learner.__qualname__}.{_hint_for(model)}"
        )
    # Arrays are written without a copy, so the model must not learn meanwhile.
    model._guard.call_when_idle(functools.partial(_save, model, path, metadata), is_copy=True)


def _save(model: Any, path: str | os.PathLike[str], metadata: Any) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    state = {key: to_json_value(value, arrays, key) for key, value in model._get_state().items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "params": _encoded_params(model),
        "state": state,
    }
    try:
        header["metadata"] = to_json_value(metadata)
        text = json.dumps(header, allow_nan=False).encode("ascii")
    except RecursionError as error:
        raise ValueError("Expected metadata of limited depth. Got: nested too deeply.") from error

    with atomic_write(path) as temporary, temporary.open("w+b") as file:
        _write(file, text, arrays)


def _is_learner(model: Any) -> bool:
    name = type(model).__name__
    return name in registry.names() and registry.fetch(name) is type(model)


def _hint_for(model: Any) -> str:
    """Return a hint for an estimator, pipeline or history that contains a learner."""
    if isinstance(model, str | os.PathLike):
        return "\nHint: the model comes first, save(model, path)."
    for within, whole in (("learner_", "the estimator"), ("learner", "its history too")):
        if _is_learner(getattr(model, within, None)):
            return f"\nHint: save(model.{within}, path) saves the learner; pickle keeps {whole}."
    if _is_learner(getattr(model, "model", None)):
        return "\nHint: save(result.model, path) saves the learner of a result."
    for name, part in _parts_of(model):
        fitted = next((f".{a}" for a in ("learner_", "learner") if hasattr(part, a)), "")
        if fitted or _is_learner(part):
            return (
                f"\nHint: save(model[{name!r}]{fitted}, path) saves the learner in it, for a new "
                "pipeline with load(path); pickle keeps the whole of this one."
            )
    return ""


def _parts_of(model: Any) -> list[tuple[Any, Any]]:
    """Return the named steps of a pipeline or union: River has a dict, scikit-learn a list."""
    for parts in (getattr(model, "steps", None), getattr(model, "transformers", None)):
        if isinstance(parts, Mapping):
            return list(parts.items())
        if isinstance(parts, list):
            return [(part[0], part[1]) for part in parts]
    return []


def _encoded_params(model: Any) -> Any:
    try:
        return to_json_value(model._get_params())
    except TypeError as error:
        raise TypeError(
            f"Expected parameters that a file can store. Got: {model._get_params()!r}.\n"
            "Hint: pickle keeps a model with an estimator of another library."
        ) from error


def load(path: str | os.PathLike[str]) -> Any:
    """Load a learner from a file that `save` wrote.

    Nothing in the file is executed: it has arrays and JSON, and its class is looked up among
    streamsel's own learners.

    Parameters
    ----------
    path
        The file to read.

    Raises
    ------
    ValueError
        If the file was not written by `save`, is truncated or damaged, was written by a newer
        version, names a class that this version lacks, or has invalid parameters or an invalid
        state.
    OSError
        If the file does not exist or cannot be read.

    Notes
    -----
    The file is read twice, for its checksum and for its content; memory use is that of the model.

    Examples
    --------
    >>> import pathlib, tempfile, streamsel
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "notes.txt")
    ...     _ = path.write_text("not a model")
    ...     streamsel.load(path)
    Traceback (most recent call last):
    ...
    ValueError: ...notes.txt is not a file written by streamsel.save: it begins with b'not '...
    """
    header, arrays = _read(path)
    learner = registry.fetch(header["class"])
    with _refusing(path, f"has parameters or a state that {header['class']} does not accept"):
        state = {key: from_json_value(value, arrays) for key, value in header["state"].items()}
        if arrays:
            raise ValueError(f"unexpected entries: {', '.join(sorted(arrays))}")
        model = learner(**from_json_value(header["params"]))
        with np.errstate(all="ignore"):  # values that overflow are rejected below
            model._set_state(state)
            model._check_reachable_state()
        if unknown := state.keys() ^ model._get_state().keys():
            raise ValueError(f"missing or unexpected: {', '.join(sorted(unknown))}")
    return model


def read_metadata(path: str | os.PathLike[str]) -> Any:
    """Return the metadata saved with a model, without building the model.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Raises
    ------
    ValueError
        As `load` does.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile, streamsel
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     streamsel.save(streamsel.SOSPCA(), f"{directory}/model", metadata=("run", 3))
    ...     streamsel.serialization.archive.read_metadata(f"{directory}/model")
    ('run', 3)
    """
    header, _ = _read(path, only_header=True)
    with _refusing(path, "has metadata that cannot be read"):
        return from_json_value(header["metadata"])


# ------------------------------------------------------------------------------------ the archive


def _write(file: IO[bytes], text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the archive and its checksum; entries have no date: equal models give equal files."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)
        archive.comment = _SEAL + b"0" * _DIGEST
    _seal(file)


def _seal(file: IO[bytes]) -> None:
    """Write the checksum of a file over its last 64 bytes, which it does not cover."""
    digest = _digest(file, file.seek(0, os.SEEK_END) - _DIGEST)
    file.seek(-_DIGEST, os.SEEK_END)
    file.write(digest)


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the checksum of the first `size` bytes of a file."""
    total = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        total.update(chunk)
        size -= len(chunk)
    return total.hexdigest().encode("ascii")


def _refuse(path: str | os.PathLike[str], found: str) -> NoReturn:
    raise ValueError(f"{os.fspath(path)} {_in_a_line(found)}")


def _in_a_line(text: str) -> str:
    """Return a text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}..."


@contextmanager
def _refusing(path: str | os.PathLike[str], found: str) -> Iterator[None]:
    """Turn any error on a malformed file into a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        # EINVAL is a seek before the start of the file; others are errors of the disk.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        # A failed allocation for a small file means a wrong size in it.
        if isinstance(error, MemoryError) and Path(path).stat().st_size >= _CHUNK:
            raise out_of_memory(path, error) or error from error
        reason = _in_a_line(str(error)) or type(error).__name__
        raise ValueError(f"{os.fspath(path)} {found}: {reason}") from error


def _read(
    path: str | os.PathLike[str], *, only_header: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file, validated where no learner is needed."""
    layout = "is not laid out as streamsel.save does it"
    with _refusing(path, "cannot be the name of a file"):
        # Opening a named pipe would block until a program writes to it.
        is_pipe = Path(path).is_fifo()
        opened = None if is_pipe else Path(path).open("rb")  # noqa: SIM115
    if opened is None:
        _refuse(path, "is a named pipe, and a model is read twice. Hint: write it to a file.")
    with opened as file:
        size = _check_seal(path, file)
        with _refusing(path, layout), zipfile.ZipFile(file) as archive:
            entries = _entries(archive, size)
            text = archive.read(entries.pop(_HEADER)).decode("ascii")
            header = json.loads(text, parse_constant=_no_constant, object_pairs_hook=unique_pairs)
        _check_header(path, header)
        if only_header:
            return header, {}
        with _refusing(path, layout), zipfile.ZipFile(file) as archive:
            arrays = {name: _read_array(archive, info) for name, info in entries.items()}
    return header, arrays


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} in {_HEADER}")


def _check_seal(path: str | os.PathLike[str], file: IO[bytes]) -> int:
    """Check that a file is streamsel's, complete and undamaged; return its size."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(4)
    if start != b"PK\x03\x04":
        if size < len(start) or b"PK\x03\x04".startswith(start):
            _refuse(
                path,
                f"is not a file written by streamsel.save: it has only {size} bytes. "
                "Hint: it was perhaps cut short while being copied; copy it again.",
            )
        hint = (
            " Hint: it looks like a pickle, which streamsel neither writes nor reads."
            if start[:1] == b"\x80"
            else ""
        )
        _refuse(path, f"is not a file written by streamsel.save: it begins with {start!r}.{hint}")
    file.seek(max(0, size - _DIGEST - len(_SEAL)))
    if file.read(len(_SEAL)) != _SEAL:
        _refuse(
            path,
            "is a zip archive without streamsel's checksum at its end: another program wrote it, "
            "or it was cut short. Hint: copy the file again, or save the model again with "
            "streamsel.save.",
        )
    file.seek(size - _DIGEST)
    if file.read(_DIGEST) != _digest(file, size - _DIGEST):
        _refuse(
            path,
            "is damaged: its checksum does not match its content. "
            "Hint: copy the file again, or save the model again with streamsel.save.",
        )
    return size


def _entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by name; together they must not be larger than the file."""
    infos = archive.infolist()
    entries = {info.filename: info for info in infos}
    if len(entries) != len(infos):
        raise ValueError("two entries with one name")
    if _HEADER not in entries:
        raise ValueError(f"no {_HEADER}")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"entry {info.filename!r} is compressed")
    if sum(info.file_size for info in infos) > size:
        raise ValueError("entries larger than the file")
    return entries


def _check_header(path: str | os.PathLike[str], header: Any) -> None:
    """Raise ValueError for an invalid header, or one of another version of the format."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse(path, f"is not a file written by streamsel.save: its {_HEADER} is another format.")
    version = header.get("version")
    if type(version) is not int or version < 1:
        _refuse(path, f"has an invalid format version. Got: {version!r}.")
    if version > VERSION:
        _refuse(
            path,
            f"was written by a newer streamsel: its format is version {version}, and this one "
            f"reads {VERSION}. Hint: pip install --upgrade streamsel.",
        )
    if header.keys() != _KEYS:
        difference = ", ".join(sorted(header.keys() ^ _KEYS))
        _refuse(path, f"has missing or unexpected fields in its {_HEADER}: {difference}.")
    if not isinstance(header["state"], dict):
        _refuse(path, f"has no state in its {_HEADER}.")
    known = registry.names()
    if not isinstance(header["class"], str) or header["class"] not in known:
        _refuse(
            path,
            f"has a {header['class']!r}, which this streamsel lacks: it has "
            f"{', '.join(sorted(known))}. Hint: pip install --upgrade streamsel.",
        )


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array, allocated only if its shape matches the stored bytes."""
    with archive.open(info) as entry:
        if npy.read_magic(entry) != (1, 0):
            raise ValueError(f"entry {info.filename!r} is of another .npy version")
        shape, _, dtype = npy.read_array_header_1_0(entry)
        if not is_numeric(dtype):
            raise ValueError(f"entry {info.filename!r} is not numeric but {dtype}")
        if min(shape, default=0) < 0:
            raise ValueError(f"entry {info.filename!r} has a negative length")
        if math.prod(shape) * dtype.itemsize != info.file_size - entry.tell():
            raise ValueError(f"entry {info.filename!r}: shape {shape} does not match its size")
        entry.seek(0)
        array = npy.read_array(entry, allow_pickle=False)
    return array.astype(dtype.newbyteorder("="), copy=False)

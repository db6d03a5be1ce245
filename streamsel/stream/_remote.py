"""Files at URLs, through fsspec: opened where they are, or copied once."""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import os
import re
import tempfile
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
# What tells one version of a file from another, as the servers that there are call it.
_VERSION = re.compile(r"(?i)etag|md5|digest|crc|modified|mtime|created|version|generation")
_GONE = 404
_SAID = "Expected ", "URLs need "
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_url(path: str | os.PathLike[str]) -> bool:
    """Tell whether this is a URL, of any scheme that fsspec may know."""
    return isinstance(path, str) and _URL.match(path) is not None


def open_binary(path: str | os.PathLike[str], *, anywhere: bool = False) -> BinaryIO:
    """Open a file, here or at a URL.

    Parameters
    ----------
    path
        Where it is.
    anywhere
        Whether it is read from any place on, not only from the first byte to the last.
    """
    if not is_url(path):
        return Path(path).open("rb")
    url = str(path)
    with _reaching(url):
        system, name = _system(url)
        has_ranges = _has_ranges(url)
        if anywhere and not has_ranges:
            copy = local_file(url)
            return Path(copy.path).open("rb")
        options = {} if has_ranges else {"block_size": 0}
        return io.BufferedReader(_Remote(url, system.open(name, "rb", **options)))


class _Remote(io.RawIOBase):
    """A file of fsspec, whose errors name it."""

    def __init__(self, url: str, file: Any) -> None:
        self._url, self._file = url, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        with _reaching(self._url):
            data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class LocalFile:
    """A file here: the one that is meant, or the copy of one at a URL, which goes with this.

    Attributes
    ----------
    path
        Where it is.
    """

    def __init__(self, path: str) -> None:
        self.path = path


_copies: weakref.WeakValueDictionary[tuple[str, int, str], LocalFile] = (
    weakref.WeakValueDictionary()
)


def local_file(path: str | os.PathLike[str]) -> LocalFile:
    """Return a file as the system can map it into memory: a URL is copied, once while it is used.

    Parameters
    ----------
    path
        Where it is.
    """
    if not is_url(path):
        return LocalFile(os.fspath(path))
    url = str(path)
    known = url, *version_of(url)
    if (found := _copies.get(known)) is not None:
        return found
    with _reaching(url):
        system, name = _system(url)
        if "file" in _protocols(system):
            return LocalFile(name)
        handle, copy = tempfile.mkstemp(prefix="streamsel-")
        os.close(handle)
        made = LocalFile(copy)
        weakref.finalize(made, _remove, copy)
        try:
            system.get_file(name, copy)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise OSError(
                error.errno,
                f"Expected room for a copy of {url!r}. Got: {error.strerror}.\n"
                "Hint: set TMPDIR to a directory with room for it.",
            ) from error
    _copies[known] = made
    return made


def version_of(url: str) -> tuple[int, str]:
    """Return how many bytes a file at a URL has, and what tells it from another version of it.

    A folder, of a Zarr array, is known by the file that describes it.
    """
    with _reaching(url):
        system, name = _system(url)
        system.invalidate_cache()  # it may be another by now
        try:
            info = system.info(name)
        except FileNotFoundError:  # of servers that know no folders
            info = {"type": "directory"}
        if info.get("type") == "directory":
            described = (f"{name}/{part}" for part in ("zarr.json", ".zarray", ".zgroup"))
            there = next((part for part in described if system.exists(part)), name)
            info = system.info(there)
        told = sorted((key, str(value)) for key, value in info.items() if _VERSION.search(key))
        # Where it says nothing else, the system may know; that of HTTP makes it of the URL alone.
        digest = hashlib.sha256(repr(told or system.ukey(name)).encode())
        return int(info.get("size") or 0), digest.hexdigest()[:16]


def files_like(pattern: str) -> list[str]:
    """Return the URLs of a pattern with stars."""
    with _reaching(pattern):
        system, name = _system(pattern)
        return [system.unstrip_protocol(found) for found in system.glob(name)]


def is_file(url: str) -> bool:
    """Tell whether there is a file at a URL."""
    with _reaching(url):
        system, name = _system(url)
        return bool(system.isfile(name))


@functools.lru_cache(maxsize=1024)
def _has_ranges(url: str) -> bool:
    """Tell whether a part of a file can be had without the rest: not every web server does that."""
    system, name = _system(url)
    if not {"http", "https"}.intersection(_protocols(system)):
        return True
    with system.open(name, "rb", cache_type="none") as file:
        try:
            file.seek(1)
            file.read(1)
        except ValueError:  # of a stream, or of a server that answers with the whole file
            return False
    return True


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def _system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and what the file is called there."""
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import known_implementations
    except ImportError as error:
        raise ImportError('URLs need fsspec. Hint: pip install "streamsel[remote]".') from error
    scheme = re.split("://|::", url)[0]
    try:
        system, name = url_to_fs(url)
    except ImportError as error:
        package = known_implementations.get(scheme, {}).get("class", scheme).split(".")[0]
        needed = "streamsel[remote]" if package == "fsspec" else package
        raise ImportError(
            f"Expected what opens {scheme}:// to be installed. Got: {url!r}, and {error}. "
            f'Hint: pip install "{needed}".'
        ) from error
    except ValueError as error:
        raise ValueError(
            f"Expected a URL whose scheme fsspec knows, such as https, s3 or gs. Got: {url!r} "
            f"({error})."
        ) from error
    return system, name


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    """Name the URL in what is said on the way to it, by any of the libraries that go there."""
    try:
        yield
    except Exception as error:
        # Of a web server every failure looks as if there were no such file, but for its cause.
        cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
        if cause is None or isinstance(cause, LookupError) or getattr(cause, "status", 0) == _GONE:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url) from error
        if (getattr(error, "strerror", None) or str(error)).startswith(_SAID) or isinstance(
            error, MemoryError
        ):
            raise
        told = " ".join(f"{type(cause).__name__}: {cause}".split())
        raise OSError(f"Expected to reach {url!r}. Got: {told}.") from error


def _remove(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()

"""Files at URLs: in fsspec's memory, on a local web server, and as file://."""

import functools
import gzip
import pickle
import re
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import polars as pl
import pytest
import zarr
from anndata import AnnData
from bed_reader import to_bed

from streamsel.stream import (
    _parts,
    _remote,
    iter_anndata,
    iter_bed,
    iter_csv,
    iter_files,
    iter_ipc,
    iter_npy,
    iter_parquet,
    iter_zarr,
)
from streamsel.stream._formats import open_columns
from tests.seed import some

# Text with one variable per line.
BY_VARIABLE = functools.partial(iter_csv, orientation="variables")

rng = np.random.default_rng(0)
N, P = 8, 12
X = rng.integers(0, 3, size=(N, P)).astype(float)
NAMES = [f"x{j}" for j in range(P)]
OPENERS = {
    "x.parquet": iter_parquet,
    "x.arrow": iter_ipc,
    "x.npy": partial(iter_npy, names=NAMES),
    "x.csv": iter_csv,
    "x.csv.gz": iter_csv,
    "x.tsv": BY_VARIABLE,
    "x.tsv.gz": BY_VARIABLE,
    "x.bed": iter_bed,
    "x.h5ad": iter_anndata,
    "x.zarr": partial(iter_zarr, names=NAMES),
}


class _Handler(SimpleHTTPRequestHandler):
    """Serve files with ETags, and byte ranges if supported and requested."""

    protocol_version = "HTTP/1.1"
    has_ranges = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, *, body):
        path = Path(self.translate_path(self.path))
        if self.path.startswith("/forbidden") or not path.is_file():
            self.send_error(403 if self.path.startswith("/forbidden") else 404)
            return
        data, asked = path.read_bytes(), self.headers.get("Range")
        part = data
        if self.has_ranges and asked:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", asked).groups()
            part = data[int(first) : int(last or len(data)) + 1]
        self.send_response(206 if self.has_ranges and asked else 200)
        if self.has_ranges:
            self.send_header("Accept-Ranges", "bytes")
        if part is not data:
            self.send_header("Content-Range", f"bytes {first}-*/{len(data)}")
        self.send_header("ETag", f'"{hash(data)}"')
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if body:
            self.wfile.write(part)


class _WithoutRanges(_Handler):
    has_ranges = False


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the same columns in every format."""
    folder = tmp_path_factory.mktemp("remote")
    frame = pl.DataFrame(X, schema=NAMES)
    frame.write_parquet(folder / "x.parquet")
    frame.write_ipc(folder / "x.arrow")
    np.save(folder / "x.npy", X)
    text = frame.write_csv()
    lines = "".join("\t".join(map(str, (n, *x))) + "\n" for n, x in zip(NAMES, X.T, strict=True))
    for name, data in (("x.csv", text.encode()), ("x.tsv", lines.encode())):
        (folder / name).write_bytes(data)
        (folder / f"{name}.gz").write_bytes(gzip.compress(data))
    to_bed(folder / "x.bed", np.asfortranarray(X, dtype=np.int8), properties={"sid": NAMES})
    cells = AnnData(X)
    cells.var_names = NAMES
    cells.write_h5ad(folder / "x.h5ad")
    zarr.create_array(folder / "x.zarr", data=X, chunks=(N, 5))
    return folder


@pytest.fixture(scope="module")
def locations(folder):
    """Return the addresses of the files: in memory, on web servers, and as file://."""
    memory = fsspec.filesystem("memory")
    memory.put(f"{folder}/", "/streamsel/", recursive=True)
    servers = []
    for handler in (_Handler, _WithoutRanges):
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
    web, plain = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    yield {
        "memory": "memory://streamsel",
        "file": folder.as_uri(),
        "web": web,
        "web without ranges": plain,
    }
    memory.rm("/streamsel", recursive=True)
    for server in servers:
        server.shutdown()
        server.server_close()


def _same(pairs, names=NAMES):
    found = dict(pairs)
    assert list(found) == list(names)
    for name in names:
        np.testing.assert_array_equal(found[name], X[:, NAMES.index(name)])


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("location", ["memory", "file", "web", "web without ranges"])
def test_every_format_at_every_location(locations, name, location):
    stream = OPENERS[name](f"{locations[location]}/{name}")
    for _ in range(2):
        _same(stream)
    _same(stream.take(["x7", "x2"]).items(), ["x7", "x2"])
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.split(3)]  # noqa: S301
    assert len(parts) == (1 if name == "x.tsv.gz" else 3)
    _same(pair for part in parts for pair in part.open())


@pytest.mark.parametrize("name", some(OPENERS, 5, "format at a URL"))
def test_formats_are_found_as_for_files(locations, name):
    orientation = "variables" if ".tsv" in name else "samples"
    url = f"{locations['web']}/{name}"
    stream = open_columns(url, orientation)
    assert dict(stream).keys() == dict(OPENERS[name](url)).keys() or stream.names == range(P)


def test_queries_are_not_patterns(locations):
    _same(iter_files(f"{locations['web']}/x.parquet?version=[2]"))


def test_patterns(locations):
    memory = fsspec.filesystem("memory")
    for i, columns in enumerate((slice(0, 5), slice(5, 9), slice(9, P))):
        with memory.open(f"/streamsel-parts/part-{i + 8}.parquet", "wb") as file:
            pl.DataFrame(X, schema=NAMES)[:, columns].write_parquet(file)
    _same(iter_files("memory://streamsel-parts/part-*.parquet"))
    with pytest.raises(FileNotFoundError, match=r"pattern 'memory://streamsel-parts/q-\*'"):
        iter_files("memory://streamsel-parts/q-*")


@pytest.mark.parametrize("name", ["x.npy", "x.arrow", "x.h5ad"])
def test_temporary_copies_are_deleted_with_the_stream(locations, name, tmp_path, monkeypatch):
    _parts._kept_open.cache_clear()  # Parts that earlier tests opened have copies.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream, again = (OPENERS[name](f"{locations['web']}/{name}") for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 1
    _same(stream)
    del stream
    _same(again)
    del again
    assert not list(tmp_path.iterdir())
    OPENERS[name](f"{locations['file']}/{name}")
    assert not list(tmp_path.iterdir())


def test_only_requested_columns_are_fetched(locations, folder, monkeypatch):
    data = rng.normal(size=(2000, 400))
    pl.DataFrame(data).write_parquet(folder / "wide.parquet", compression="uncompressed")
    fetched = []
    readinto = _remote._Remote.readinto
    monkeypatch.setattr(
        _remote._Remote,
        "readinto",
        lambda self, buffer: fetched.append(readinto(self, buffer)) or fetched[-1],
    )
    stream = iter_parquet(f"{locations['web']}/wide.parquet")
    np.testing.assert_array_equal(stream.take(["column_77"])["column_77"], data[:, 77])
    assert sum(fetched) < data.nbytes / 10


@pytest.mark.parametrize("name", OPENERS)
def test_changed_files_are_refused(locations, name):
    del locations  # requested because it clears the memory file system
    memory = fsspec.filesystem("memory")
    whole, changed = "/streamsel-versions", "x.zarr/zarr.json" if name == "x.zarr" else name
    memory.cp("/streamsel", whole, recursive=True)
    part = OPENERS[name](f"memory://streamsel-versions/{name}").split(2)[-1]
    memory.pipe(f"{whole}/{changed}", memory.cat(f"{whole}/{changed}"))
    with pytest.raises(ValueError, match=r"bytes, version \w+\)\. Got: .* version \w+\.\nHint"):
        part.open()
    memory.rm(whole, recursive=True)


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("nothing://x.parquet", ValueError, r"scheme that fsspec supports.*'nothing://x\.parquet'"),
        ("web/none.parquet", FileNotFoundError, r"none\.parquet"),
        ("web/forbidden/x.parquet", OSError, r"Expected 'http.*forbidden.*' to be reachable.*403"),
        ("memory/none.csv", FileNotFoundError, r"memory://streamsel/none\.csv"),
        ("http://127.0.0.1:9/x.parquet", OSError, r"Expected 'http.*127\.0\.0\.1:9.*reachable"),
    ],
)
def test_unreachable_files_raise_one_line_errors(locations, url, error, message):
    location, _, name = url.partition("/")
    url = f"{locations[location]}/{name}" if location in locations else url
    with pytest.raises(error, match=message) as raised:
        iter_files(url)
    assert "\n" not in str(raised.value)


def test_missing_libraries_are_reported_with_install_hints(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        ImportError, match=r'^Expected a package that opens s3://.*\n.* pip install "s3fs"\.$'
    ):
        iter_parquet("s3://bucket/x.parquet")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"^URLs need fsspec.*streamsel\[remote\]"):
        iter_parquet("s3://bucket/x.parquet")


def test_full_disk_for_a_copy(locations, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "get_file", full)
    with pytest.raises(OSError, match=r"room for a copy of 'memory://.*\nHint: set TMPDIR"):
        iter_npy(f"{locations['memory']}/x.npy")

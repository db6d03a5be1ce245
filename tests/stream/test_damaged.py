"""Damaged files are refused in one line, and never cause reads outside the file."""

import functools
import io
import os
import resource
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import streamsel
from streamsel._utils.system import out_of_memory
from streamsel.stream import iter_csv, iter_ipc, iter_npy, iter_parquet
from tests.attack._harness import FINE, attack, is_bad, judge
from tests.attack.fuzz_sources import attempts_kept, kept

# Text with one variable per line.
BY_VARIABLE = functools.partial(iter_csv, orientation="variables")

HOME = str(Path(streamsel.__file__).parents[1])


def _ipc(table, **options):
    file = io.BytesIO()
    pa.feather.write_feather(table, file, **{"compression": "uncompressed"} | options)
    return file.getvalue()


def _read(iter_file, path, data):
    path.write_bytes(data)
    return {name: values.tolist() for name, values in iter_file(path)}


def _lengths(path, data):
    return {len(values) for values in _read(iter_ipc, path, data).values()} or {3}


@pytest.mark.slow
def test_earlier_failures_are_refused_or_read():
    files = kept()
    assert len(files) > 20
    assert [
        outcome for outcome in attack(attempts_kept, range(len(files))) if is_bad(outcome)
    ] == []


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": [1.5, 2.5, None], "b": [1.0, 2.0, 3.0]}),
        pa.table({"a": ["x", None, "zz"], "b": pa.array(["u", "v", "u"]).dictionary_encode()}),
        pa.table({"a": [[1.0], None, [2.0, 3.0]], "b": [{"x": 1}, {"x": 2}, {"x": 3}]}),
    ],
    ids=["numbers", "text", "nested"],
)
def test_changed_numbers_of_arrow_files_are_checked(table, tmp_path):
    whole = _ipc(table)
    for at in range(0, len(whole) - 3, 4):
        data = bytearray(whole)
        struct.pack_into("<I", data, at, 2**12)
        path = tmp_path / "x.arrow"
        verdict, message = judge(lambda: "right" if _lengths(path, data) == {3} else "wrong")  # noqa: B023
        assert verdict in FINE, (at, message)


def test_invalid_positions_of_buffers_are_refused(tmp_path):
    whole = _ipc(pa.table({"a": np.arange(64.0), "b": np.arange(64.0) + 100}))
    # Offsets and lengths of the two buffers of "b": nulls and values.
    second = struct.pack("<qqqq", 512, 0, 512, 512)
    assert whole.count(second) == 1
    path = tmp_path / "x.arrow"
    for claim, reason in [
        ((0, 512), "overlap"),
        ((508, 512), "overlap"),
        ((2**40, 512), "outside its record batch"),
        ((512, 2**62), "outside its record batch"),
        ((2**63 - 8, 2**63 - 8), "outside its record batch"),
        ((512, -1), "negative"),
        ((516, 508), "not aligned to 8"),
        ((512, 256), "Buffer #1 too small"),
    ]:
        data = whole.replace(second, struct.pack("<qqqq", 512, 0, *claim))
        with pytest.raises(ValueError, match=rf"Expected a complete .* file.*x\.arrow.*{reason}"):
            _read(iter_ipc, path, data)


def test_a_record_batch_is_read_once(tmp_path):
    whole = _ipc(pa.table({"a": np.arange(64.0)}), chunksize=32)
    footer = whole.rindex(b"ARROW1")
    # Footer entries of both batches: offset, metadata length and body length.
    blocks = [
        at for at in range(0, footer, 8) if whole[at + 8 : at + 24] == whole[at + 32 : at + 48]
    ]
    (at,) = (at for at in blocks if struct.unpack_from("<q", whole, at + 16)[0] == 256)
    data = bytearray(whole)
    data[at + 24 : at + 32] = data[at : at + 8]
    with pytest.raises(ValueError, match="record batches overlap"):
        _read(iter_ipc, tmp_path / "x.arrow", data)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("claim", [2**62, -2, 2**40])
def test_sizes_of_compressed_buffers_are_checked(compression, claim, tmp_path):
    whole = _ipc(pa.table({"a": np.zeros(1000)}), compression=compression)
    assert whole.count(struct.pack("<q", 8000)) == 1
    data = whole.replace(struct.pack("<q", 8000), struct.pack("<q", claim))
    with pytest.raises(ValueError, match=r"Expected a complete .* file"):
        _read(iter_ipc, tmp_path / "x.arrow", data)


@pytest.mark.parametrize(
    ("iter_file", "write"), [(iter_ipc, "write_ipc"), (iter_parquet, "write_parquet")]
)
def test_invalid_text_is_refused_after_earlier_columns(iter_file, write, tmp_path):
    path = tmp_path / "x"
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": ["some words", "others"]})
    getattr(frame, write)(path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"some words", b"some w\xffrds"))
    with pytest.raises(ValueError, match=r"Expected a complete .* file.*(UTF|utf)"):
        list(iter_file(path))


def test_union_columns_are_not_numeric(tmp_path):
    kinds = pa.array([0, 1], pa.int8())
    union = pa.UnionArray.from_sparse(kinds, [pa.array([1.5, 2.5]), pa.array(["x", "y"])])
    data = _ipc(pa.table({"a": [1.0, 2.0], "u": union}))
    assert _read(iter_ipc, tmp_path / "x.arrow", data) == {"a": [1.0, 2.0], "u": [1.5, "y"]}


def test_wrong_numbers_of_rows_in_footers(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": np.arange(100.0)}).write_parquet(path, use_pyarrow=True)
    data = path.read_bytes()
    # 100 in thrift's encoding; the first occurrence is the number of rows of the file.
    at = data.index(b"\x16\xc8\x01", len(data) - 600)
    bad = data[:at] + b"\x16\xc6\x01" + data[at + 3 :]
    with pytest.raises(ValueError, match=r"Expected a complete .*100 entries, but 99 acc"):
        _read(iter_parquet, path, bad)


def test_checksums_detect_flipped_bits(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.arange(100.0) + 0.1})
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pa.parquet.write_table(table, path, **options)
    whole = path.read_bytes()
    for at in range(whole.index(struct.pack("<d", 1.1)), whole.index(struct.pack("<d", 99.1)), 37):
        bad = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
        with pytest.raises(ValueError, match=r"Expected a complete .* file.*CRC"):
            _read(iter_parquet, path, bad)


def _npy(header, version=1):
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + bytes(400)


@pytest.mark.parametrize(
    "data",
    [
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3"),
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), " + b"(" * 300),
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1" + b"0" * 30 + b")}"),
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -3)}"),
        _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}"),
        _npy(b"{'descr': '<U0', 'fortran_order': False, 'shape': (2, 999999999999)}"),
        _npy(b"{'descr': 'no such', 'fortran_order': False, 'shape': (2, 3)}"),
        _npy(b"\xff\xfe", version=3),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(400),
        b"PK\x03\x04" + bytes(400),
        b"PK\x05\x06",
        b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.",
    ],
)
def test_invalid_npy_headers_are_refused(data, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"^Expected a \.npy file.*x\.npy"):
        iter_npy(path)


@pytest.mark.parametrize("order", ["F", "C"])
@pytest.mark.parametrize("dtype", ["<U3", ">U3"])
def test_invalid_character_codes_are_refused(order, dtype, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([["a", "bcd"], ["", "\U0010ffff"]], dtype=dtype, order=order))
    assert [column.tolist() for _, column in iter_npy(path)] == [["a", ""], ["bcd", "\U0010ffff"]]
    code = np.array(0x110000, dtype[0] + "u4").tobytes()
    path.write_bytes(path.read_bytes()[:-4] + code)
    with pytest.raises(ValueError, match=r"^Expected a \.npy file .*x\.npy.*no characters"):
        list(iter_npy(path))


@pytest.mark.parametrize("iter_file", [iter_csv, BY_VARIABLE])
def test_errors_of_the_csv_module_name_the_file(iter_file, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1," + '"' + "2" * 200_000 + '"\n')
    with pytest.raises(ValueError, match=r"^Expected cells .*x\.csv.*field larger"):
        list(iter_file(path))


def test_quotes_inside_a_cell_do_not_join_lines(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,x"y\n2,z"w\n')
    with pytest.raises(ValueError, match=r"^Expected cells .*x\.csv"):
        iter_csv(path)


def test_unclosed_quotes_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,"2\n' + "1,2\n" * 100_000)
    with pytest.raises(ValueError, match=r"^Expected closing quotes. Got: line 2 of .*x\.csv"):
        iter_csv(path)


@contextmanager
def _file_size_limit(n_bytes):
    """Limit the size of files that this process writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("rows", [10, 40_000])
def test_full_disk_for_temporary_columns(rows, tmp_path, monkeypatch):
    path, folder = tmp_path / "x.csv", tmp_path / "temporary"
    folder.mkdir()
    path.write_text("a,b\n" + "1,2\n" * rows)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with (
        _file_size_limit(100),
        pytest.raises(OSError, match=r"Expected room .*x\.csv.*\n.*TMPDIR") as error,
    ):
        iter_csv(path)
    assert error.value.errno
    assert list(folder.iterdir()) == []


def test_no_writable_folder_for_temporary_columns(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(OSError, match=r"Expected room .*x\.csv.*\n.*TMPDIR"):
        iter_csv(path)


@pytest.mark.parametrize("iter_file", [iter_csv, BY_VARIABLE])
def test_memory_errors_of_lines_name_the_file(iter_file, tmp_path):
    path = tmp_path / "x.csv"
    with path.open("wb") as file:
        file.truncate(2**31)  # a sparse file of zeros
    with pytest.raises(ValueError, match=r"^Expected lines of at most 64 MiB\. Got: .*x\.csv"):
        iter_file(path)


LACKING = """
import pathlib, resource, sys
import pyarrow.parquet
from streamsel.stream import iter_files

status = pathlib.Path("/proc/self/status").read_text().splitlines()
used = next(1024 * int(line.split()[1]) for line in status if line.startswith("VmData"))
limit = used + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    for _ in iter_files(sys.argv[1], orientation="samples"):
        pass
except MemoryError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is that of Linux")
def test_memory_errors_of_arrow_are_not_damage(tmp_path):
    """Arrow's failure to allocate memory is reported as lack of memory, not as damage."""
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({f"v{j}": [1.0, 2.0] for j in range(30_000)}), path)
    for room in ("4", "16"):
        done = subprocess.run(
            [sys.executable, "-c", LACKING, path, room],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": HOME},
        )
        assert done.stdout.startswith(f"reading {str(path)!r} takes more memory than this process")


@pytest.mark.parametrize("iter_file", [iter_csv, BY_VARIABLE])
def test_memory_errors_name_the_text(iter_file, tmp_path, monkeypatch):
    def parse(*_, **__):
        raise MemoryError("Unable to allocate 8 MiB")

    path = tmp_path / "x.csv"
    path.write_text("a,1\nb,2\n")
    monkeypatch.setattr("streamsel.stream._text_cells.NumberParser.parse", parse)
    with pytest.raises(MemoryError, match=r"^reading .*x\.csv' takes .* \(Unable to allocate"):
        list(iter_file(path))


def test_impossible_sizes_are_reported_as_damage(tmp_path):
    """A library's failed allocation for a file of a few bytes is reported as damage."""
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x")
    large.write_bytes(bytes(2**20))
    lacks = OSError("Couldn't deserialize thrift: std::bad_alloc")
    assert out_of_memory(small, lacks) is None
    assert "large" in str(out_of_memory(large, lacks))
    assert "https" in str(out_of_memory("https://example.org/x.parquet", lacks))
    assert out_of_memory(large, OSError("not a file of this kind")) is None
    named = out_of_memory(small, MemoryError("malloc of size 8 failed"))
    assert str(out_of_memory(small, named)) == str(named)


def test_blocks_are_read_if_no_thread_can_start(tmp_path, monkeypatch):
    """If no thread can start, blocks are read without prefetching."""

    def start(_):
        raise RuntimeError("can't start new thread")

    pa.parquet.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), tmp_path / "x.parquet")
    stream = iter_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr("threading.Thread.start", start)
    assert [name for name, _ in stream] == ["a", "b"]

"""Parts of streams: concatenated, they are bit-identical to the whole stream."""

import gzip
import os
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsel.stream import (
    as_stream,
    clean,
    iter_csv,
    iter_files,
    iter_ipc,
    iter_ngrams,
    iter_npy,
    iter_parquet,
    iter_polynomials,
    prune,
    with_probes,
)
from streamsel.stream._parts import PART_BYTES

rng = np.random.default_rng(0)
N, P = 6, 23
X = rng.normal(size=(N, P))
FRAME = pl.DataFrame({f"x{j}": X[:, j] for j in range(P)}).with_columns(
    pl.Series("x3", [1, None, 3, 4, 5, 6]),
    pl.Series("x7", list("abcdef")),
    pl.Series("x8", [True, False] * 3),
    pl.Series("x11", X[:, 11].astype(np.float32)),
    pl.Series("x12", [1.0, None, 2.0, 3.0, np.inf, 1.5]),
)
TEXT = FRAME.drop("x7").with_columns(pl.col("x8").cast(pl.Int8), pl.col("x12").fill_null(0))


def _parquet(folder):
    FRAME.write_parquet(folder / "x.parquet", row_group_size=4)
    return iter_parquet(folder / "x.parquet")


def _some_of_parquet(folder):
    FRAME.write_parquet(folder / "x.parquet")
    return iter_parquet(folder / "x.parquet", columns=[f"x{j}" for j in (9, 2, 3, 4, 20)])


def _ipc(folder):
    FRAME.write_ipc(folder / "x.arrow")
    return iter_ipc(folder / "x.arrow")


def _compressed_ipc(folder):
    FRAME.write_ipc(folder / "x.arrow", compression="zstd")
    return iter_ipc(folder / "x.arrow")


def _npy(folder):
    np.save(folder / "x.npy", X)
    return iter_npy(folder / "x.npy")


def _named_npy(folder):
    np.save(folder / "x.npy", np.asfortranarray(X.astype(np.float32)))
    return iter_npy(folder / "x.npy", names=[f"x{j}" for j in range(P)])


def _csv(folder):
    FRAME.write_csv(folder / "x.csv")
    return iter_csv(folder / "x.csv")


def _lines(folder):
    lines = [",".join(map(str, [name, *TEXT[name].to_list()])) for name in TEXT.columns]
    text = "g," + ",".join(f"s{i}" for i in range(N)) + "\n" + "\n".join(lines) + "\n"
    (folder / "x.txt").write_text(text.replace("None", "NA"))
    return iter_csv(folder / "x.txt", orientation="variables")


def _odd_lines(folder):
    """Return a text with all line endings, quotes, blank lines, non-ASCII letters and a BOM."""
    endings = ["\n", "\r\n", "\r", "\n\n", "\r\r", "\n  \n", "\r\n\r\n"]
    text = "\ufeff\n"
    for j in range(P):
        name = [f'"a ""b"", {j}"', f"Öl{j}", f"\ufeffx{j}", f"x{j}"][j % 4]
        text += f'{name},"{j / 7}",{-j / 3},{j},NA' + endings[j % len(endings)]
    (folder / "x.txt").write_bytes(text.rstrip("\r\n").encode())
    return iter_csv(folder / "x.txt", orientation="variables", dtype=np.float32)


def _gzipped_lines(folder):
    _lines(folder)
    (folder / "x.gz").write_bytes(gzip.compress((folder / "x.txt").read_bytes()))
    return iter_csv(folder / "x.gz", orientation="variables")


def _parquet_files(folder):
    for i, start in enumerate((0, 3, 4, 11)):
        columns = FRAME.columns[start : [3, 4, 11, P][i]]
        FRAME.select(columns).write_parquet(folder / f"part-{9 + i}.parquet")
    return iter_files(folder / "part-*.parquet")


def _npy_files(folder):
    for i in range(3):
        np.save(folder / f"{i}.npy", X[:, 7 * i : 7 * i + 7])
    return iter_files(str(folder / "*.npy"))


def _files_of_all_kinds(folder):
    for name in ("1", "2"):
        (folder / name).mkdir()
    _npy(folder / "1")
    FRAME[:, :4].write_csv(folder / "1" / "x.csv")
    FRAME[:, 4:8].write_ipc(folder / "1" / "x.arrow")
    FRAME[:, 8:9].write_parquet(folder / "2" / "x.pq")
    return iter_files(folder / "**" / "x.*", orientation="samples")


def _files_of_lines(folder):
    _lines(folder)
    np.save(folder / "x.npy", X[:, :2])
    more = (folder / "x.txt").read_text().replace("x", "y")
    (folder / "y.tsv.gz").write_bytes(gzip.compress(more.replace(",", "\t").encode()))
    (folder / "z.csv").write_text(more.replace("y", "z"))
    paths = [folder / name for name in ("y.tsv.gz", "x.txt", "x.npy", "z.csv")]
    return iter_files(paths, orientation="variables")


SOURCES = [
    _parquet,
    _some_of_parquet,
    _ipc,
    _compressed_ipc,
    _npy,
    _named_npy,
    _csv,
    _lines,
    _odd_lines,
    _gzipped_lines,
    _parquet_files,
    _npy_files,
    _files_of_all_kinds,
    _files_of_lines,
]


@pytest.fixture(scope="module", params=SOURCES, ids=lambda source: source.__name__.strip("_"))
def stream(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("split"))


def _contents(stream):
    """Return the names, types and bits of all columns."""
    return [
        (name, values.dtype, values.tolist() if values.dtype == object else values.tobytes())
        for name, values in stream
    ]


def _read_apart(stream, parts):
    """Split a stream, pickle every part, and read the parts one after the other."""
    split = stream.split(parts)
    assert len(split) <= parts
    contents = []
    for part in split:
        sent = pickle.loads(pickle.dumps(part))  # noqa: S301
        assert sent == part
        # The length of the folder's path depends on the machine.
        folder = os.path.commonpath([Path(file.path).parent for file in part.files])
        assert len(pickle.dumps(part).replace(os.fsencode(folder), b"")) < 2000
        opened = sent.open()
        found = _contents(opened)
        assert found == _contents(opened)
        assert part.n_columns in (None, len(found))
        if found:
            assert opened.take([found[-1][0]])[found[-1][0]].shape == (stream.n_rows,)
        contents += found
    return contents


given_any = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given_any
@given(parts=st.integers(1, P + 3))
def test_parts_in_order_equal_the_stream(stream, parts):
    assert _read_apart(stream, parts) == _contents(stream)


NAMES = st.text("aÖ€𝄞\ufeff \x0b\x0c\x1c\x85\u2028", min_size=1, max_size=6)
LINES = st.lists(
    st.tuples(
        st.one_of(NAMES, NAMES.map(lambda name: f'"{name}"",x"')),
        st.sampled_from(["1,2", '"3.5",-1e3', "NA,", "nan,+inf", "007,1"]),
        st.sampled_from(["\n", "\r\n", "\r", "\n\r", "\n  \r\n\n", "\r\r"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, header=st.booleans(), parts=st.integers(1, 40), n=st.integers(0, 3))
def test_text_is_cut_at_line_starts(tmp_path_factory, lines, header, parts, n):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    text = "s,t,u\n" * header + "".join(f"{name},{cells}{end}" for name, cells, end in lines)
    path.write_bytes(text.encode())
    stream = iter_csv(path, orientation="variables", header=header, delimiter=",", on_bad="pass")
    whole = _contents(stream)
    assert len(whole) == len(lines)
    assert [one for part in stream.skip(n).split(parts) for one in _contents(part.open())] == whole[
        n:
    ]


@given_any
@given(parts=st.integers(1, 9), n=st.integers(0, P + 2), m=st.integers(0, 3))
def test_parts_after_skipped_columns(stream, parts, n, m):
    rest = stream.skip(n).skip(m)
    assert _read_apart(rest, parts) == _contents(stream)[n + m :]


@given_any
@given(parts=st.integers(1, 9), n=st.integers(0, 9), gone=st.sets(st.integers(0, P - 1)))
def test_parts_without_some_columns(stream, parts, n, gone):
    names = [name for name, _ in stream]
    left_out = [names[j] for j in gone if j < len(names)]
    rest = stream.skip(n).without(left_out)
    assert _read_apart(rest, parts) == [
        one for one in _contents(stream)[n:] if one[0] not in left_out
    ]
    for part in rest.split(parts):
        with pytest.raises(KeyError):
            part.open().take([*left_out, "nowhere"])
    if stream.names is None:
        with pytest.raises(ValueError, match=r"Hint: use stream\.skip"):
            stream.without(left_out).skip(1).split()
    else:
        assert (
            _read_apart(stream.without(left_out).skip(n), parts)
            == [one for one in _contents(stream) if one[0] not in left_out][n:]
        )


@pytest.mark.parametrize("missing", ["skip", "mean"])
def test_parts_of_clean_count(stream, missing):
    screened = clean(stream, n_rows=stream.n_rows, missing=missing, min_count=2)
    found = _contents(screened)
    contents, n_read, n_filled, skipped = [], 0, 0, {}
    for part in screened.split(4):
        opened = part.open()
        contents += _contents(opened)
        n_read += opened.n_read
        n_filled += opened.n_filled
        for reason, n in opened.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + n
    assert contents == found
    assert (n_read, n_filled, skipped) == (
        screened.n_read,
        screened.n_filled,
        dict(screened.skipped),
    )
    with pytest.raises(ValueError, match="Hint: use clean"):
        screened.skip(1).split()


def test_keys_of_parts_are_distinct_and_reproducible(stream):
    parts = stream.split(3)
    second = [name for name, _ in stream][1]
    others = [stream.skip(1), stream.without([second]), clean(stream), clean(stream, min_count=1)]
    assert len({*parts, *(other.split(3)[0] for other in others)}) == len(parts) + len(others)
    assert stream.split(3) == parts
    assert all(str(part) in repr(part) for part in parts)


def test_changed_files_are_refused(tmp_path):
    for source in (_parquet, _npy, _csv, _lines, _gzipped_lines, _ipc):
        (part, *_) = source(tmp_path).split(3)
        path = part.files[0].path
        os.utime(path, ns=(1, 1))
        with pytest.raises(
            ValueError, match=r"unchanged since it was split .*\n?.*Hint: open the file"
        ):
            part.open()
        Path(path).unlink()
        with pytest.raises(FileNotFoundError):
            part.open()


def test_files_changed_after_opening_are_refused(tmp_path):
    stream = _npy(tmp_path)
    np.save(tmp_path / "x.npy", X[:, :5])
    with pytest.raises(ValueError, match="unchanged"):
        stream.split(2)[0].open()


def test_parts_open_after_a_change_of_directory(tmp_path, monkeypatch):
    _npy(tmp_path)
    monkeypatch.chdir(tmp_path)
    parts = iter_npy("x.npy").split(2)
    assert str(parts[0]) == "columns 0 to 11 of x.npy"
    monkeypatch.chdir("/")
    assert [name for part in parts for name, _ in part.open()] == list(range(P))


def test_number_of_parts_depends_on_bytes_only(tmp_path):
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (1000, 40_000)).flush()
    parts = iter_npy(tmp_path / "x.npy").split()
    assert [part.n_columns for part in parts] == [20_000, 20_000]
    assert sum(part.n_bytes for part in parts) == 1000 * 40_000 * 8
    assert max(part.n_bytes for part in parts) < 2 * PART_BYTES
    assert str(parts[1]) == f"columns 20,000 to 39,999 of {tmp_path / 'x.npy'}"


def test_lines_are_cut_by_bytes(tmp_path):
    stream = _lines(tmp_path)
    size = (tmp_path / "x.txt").stat().st_size
    parts = stream.split(4)
    assert len(parts) == 4
    assert max(part.n_bytes for part in parts) < size / 2
    assert str(parts[-1]).endswith(f"to {size - 1:,} of {tmp_path / 'x.txt'}")
    assert len(_gzipped_lines(tmp_path).split(4)) == 1


@pytest.mark.parametrize("bad", ["b,1,2,3\n", "b,1,oops\n"])
def test_errors_name_the_line(tmp_path, bad):
    path = tmp_path / "x.txt"
    path.write_text("a,1,2\n" * 4 + bad)
    parts = iter_csv(path, orientation="variables").split(2)
    assert [len(list(parts[0].open())), str(parts[1])] == [
        3,
        f"bytes 18 to {path.stat().st_size - 1} of {path}",
    ]
    with pytest.raises(ValueError, match="line 2 after byte 18"):
        list(parts[1].open())


def test_callbacks_are_kept_in_parts(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("a,1,2\nb,x,y\nc,3,4\nd,5,6\n")
    stream = iter_csv(path, orientation="variables", on_bad=_heard)
    HEARD.clear()
    assert _read_apart(stream, 3) == _contents(stream)
    assert HEARD[0] == ("b", "text")
    with pytest.raises(ValueError, match="Hint: use on_bad='pass'"):
        stream.skip(1).split()


HEARD = []


def _heard(name, reason, message):
    HEARD.append((name, reason))


def test_unsplittable_sources_are_refused():
    for source in (
        as_stream(X),
        as_stream(FRAME),
        as_stream([("a", X[:, 0])]),
        iter_ngrams(["a b c"]),
        iter_polynomials(X, degree=2),
        prune(X),
        with_probes(X),
        clean(X),
        as_stream(X).skip(1).without([3]),
    ):
        with pytest.raises(
            ValueError, match=r"another process can open[^\n]*\nHint: split a stream"
        ):
            source.split(2)
    for parts in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="Expected parts of split"):
            as_stream(X).split(parts)

"""Text with one observation per line: transposed once, numbers distinguished from text."""

import gc
import gzip
import tempfile

import numpy as np
import pytest

from streamsel.stream import _csv, iter_csv


@pytest.fixture(params=[None, 1, 3], ids=["one tile", "tiles of a row", "tiles of three rows"])
def read(request, tmp_path, monkeypatch):
    """Return a function that reads a text as CSV, in tiles of a few rows of four cells."""
    if request.param is not None:
        monkeypatch.setattr(_csv, "_TILE_BYTES", request.param * 4 * 8)

    def read(text, **options):
        path = tmp_path / "x.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return iter_csv(path, **options)

    return read


def _lists(stream):
    return {name: values.tolist() for name, values in stream}


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n5,6\n7,8\n",
        "\ufeffa\tb\r\n1\t2\r\n\r\n3\t4\r\n5\t6\r\n7\t8",
        '"a";"b"\n"1";2\n3;"4"\n5;6\n7;8\n\n',
        gzip.compress(b"a,b\n1,2\n3,4\n5,6\n7,8\n", mtime=0),
    ],
)
def test_shapes_of_files(read, text):
    stream = read(text)
    assert (stream.n_rows, stream.n_columns, stream.names) == (4, 2, ["a", "b"])
    assert _lists(stream) == {"a": [1, 3, 5, 7], "b": [2, 4, 6, 8]}
    assert _lists(stream.skip(1)) == {"b": [2, 4, 6, 8]}


def test_delimiter_can_be_given(read):
    assert _lists(read("a b\n1 2\n", delimiter=" ")) == {"a": [1], "b": [2]}
    assert _lists(read("a\n1\n2\n")) == {"a": [1, 2]}


def test_missing_values(read):
    stream = read('a,b,c\n1,,3\nNA,5,null\n7,"",\n')
    values = np.column_stack([column for _, column in stream])
    np.testing.assert_array_equal(values, [[1, np.nan, 3], [np.nan, 5, np.nan], [7] + [np.nan] * 2])


def test_texts(read):
    stream = read('n,kind,m\n1,x,2\n3,"y, ""z""",4\n5,,6\n7,x,8\n9,NA,10\n')
    assert _lists(stream) == {
        "n": [1, 3, 5, 7, 9],
        "kind": ["x", 'y, "z"', None, "x", None],
        "m": [2, 4, 6, 8, 10],
    }
    assert [block.values.dtype for block in stream.blocks()] == [float, object, float]
    assert stream.take(["kind"])["kind"].dtype == object


def test_late_text_keeps_earlier_cells_exact(read):
    rows = [f"{i},0{i},{i}.50" for i in range(8)]
    stream = read("\n".join(["a,b,c", *rows, "8,x,y", "9,NA,1", "10,z,2"]))
    assert _lists(stream) == {
        "a": list(range(11)),
        "b": [f"0{i}" for i in range(8)] + ["x", None, "z"],
        "c": [f"{i}.50" for i in range(8)] + ["y", "1", "2"],
    }


def test_line_endings_inside_quotes(read):
    stream = read('a,b\n1,"two\nlines"\n2,one\n')
    assert _lists(stream) == {"a": [1, 2], "b": ["two\nlines", "one"]}
    with pytest.raises(ValueError, match=r"closing quotes. Got: line 3"):
        read('a,b\n1,x\n2,"y\n3,z\n')


@pytest.mark.parametrize(("line", "found"), [("5", 1), ("5,6,7", 3), ('5,"6",7', 3)])
def test_ragged_lines(read, line, found):
    with pytest.raises(ValueError, match=f"Expected 2 cells in line 4 of .*Got: {found}"):
        read(f"a,b\n1,2\n3,4\n{line}\n7,8\n")


def test_files_without_columns_are_refused(read):
    with pytest.raises(ValueError, match="Got: the empty file"):
        read("\n")
    with pytest.raises(ValueError, match="only a header"):
        read("a,b\n")
    with pytest.raises(ValueError, match="Got: 'a' more than once"):
        read("a,b,a\n1,2,3\n")


def test_the_temporary_file_is_deleted_with_the_stream(read, tmp_path, monkeypatch):
    opened = []
    temporary_file = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda: opened.append(temporary_file()) or opened[-1]
    )
    stream = read("a,b\n1,2\n")
    rest = stream.skip(1)
    del stream
    gc.collect()
    assert not opened[0].closed
    assert _lists(rest) == {"b": [2]}
    del rest
    gc.collect()
    assert opened[0].closed


@pytest.mark.parametrize("orientation", ["rows", None, np.zeros(2), [np.nan]])
def test_unknown_orientations_are_refused(tmp_path, orientation):
    with pytest.raises(ValueError, match="Expected orientation to be 'samples' or 'variables'"):
        iter_csv(tmp_path / "x.csv", orientation=orientation)


@pytest.mark.parametrize(
    "options", [{"header": True}, {"on_bad": "pass"}, {"dtype": "float32"}, {"dtype": "no dtype"}]
)
def test_options_of_variables_are_refused_for_samples(tmp_path, options):
    with pytest.raises(ValueError, match=r"^Expected (header, )?dtype"):
        iter_csv(tmp_path / "x.csv", **options)

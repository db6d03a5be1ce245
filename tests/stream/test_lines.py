"""Text with one variable per line: headers, missing values, and invalid lines."""

import gzip

import numpy as np
import pytest

from streamsel.stream import iter_csv


@pytest.fixture
def write(tmp_path):
    """Write a text file and return its path."""

    def write(text, name="x.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def _read(stream):
    return {name: values.tolist() for name, values in stream}


@pytest.mark.parametrize(
    "text",
    [
        "a\t1\t2\nb\t3\t4\n",
        "a,1,2\r\nb,3,4",
        "a;1;2\nb;3;4\n\n\n",
        "\ufeffa,1,2\n  \nb,3,4\n",
        "gene,s1,s2\na,1,2\nb,3,4\n",
        "s1\ts2\na\t1\t2\nb\t3\t4\n",
        '"","s1","s2"\n"a",1,2\n"b","3",4\n',
    ],
)
def test_shapes_of_files(write, text):
    stream = iter_csv(write(text), orientation="variables")
    assert (stream.n_rows, stream.n_columns) == (2, None)
    assert _read(stream) == {"a": [1, 2], "b": [3, 4]}
    assert _read(
        iter_csv(write(gzip.compress(text.encode()), "x.gz"), orientation="variables")
    ) == _read(stream)
    assert _read(stream.skip(1)) == {"b": [3, 4]}


def test_header_and_delimiter_can_be_given(write):
    path = write("g 1 2\na 1 2\n")
    assert _read(iter_csv(path, orientation="variables", delimiter=" ", header=True)) == {
        "a": [1, 2]
    }
    assert _read(iter_csv(path, orientation="variables", delimiter=" ")) == {
        "g": [1, 2],
        "a": [1, 2],
    }
    for delimiter in ("", "::", '"', 7):
        with pytest.raises(ValueError, match="delimiter of one character"):
            iter_csv(path, orientation="variables", delimiter=delimiter)


def test_names_in_quotes(write):
    path = write('"a, ""b""",1,2\n"c",3,4\n')
    assert _read(iter_csv(path, orientation="variables")) == {'a, "b"': [1, 2], "c": [3, 4]}


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "nan", "N/A", "null", " na ", '""', '"NA"'])
def test_missing_values(write, cell):
    path = write(f"a,1,2,3\nb,{cell},{cell},3\nc,1,2,{cell}\nd,{cell},{cell},{cell}\n")
    values = np.array([column for _, column in iter_csv(path, orientation="variables")])
    expected = [[1, 2, 3], [np.nan, np.nan, 3], [1, 2, np.nan], [np.nan] * 3]
    np.testing.assert_array_equal(values, expected)


def test_one_observation(write):
    assert _read(iter_csv(write("a\t1\nb\t2\n"), orientation="variables")) == {"a": [1], "b": [2]}
    (values,) = [values for _, values in iter_csv(write("name\tx\na\t\n"), orientation="variables")]
    np.testing.assert_array_equal(values, [np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_dtypes(write, dtype):
    path = write("a,1,2\nb,0,127\n")
    blocks = list(iter_csv(path, orientation="variables", dtype=dtype).blocks())
    assert [block.values.dtype for block in blocks] == [dtype]
    assert blocks[0].values.T.tolist() == [[1, 2], [0, 127]]


@pytest.mark.parametrize("cell", ["1.5", "256", "-129", "NA"])
def test_numbers_beyond_integer_types(write, cell):
    path = write(f"a,1,2\nb,3,{cell}\n")
    with pytest.raises(
        ValueError, match=rf"number that int8 can hold in line 2, column 3 .*{cell}"
    ):
        list(iter_csv(path, orientation="variables", dtype=np.int8))
    with pytest.raises(ValueError, match="Got: int32"):
        iter_csv(path, orientation="variables", dtype=np.int32)


def test_bad_cells_are_named_after_earlier_columns(write):
    path = write("gene,s1,s2\na,1,2\nb,3,4\nc,5,x1\nd,7,8\n")
    seen = []
    with pytest.raises(ValueError, match=r"line 4, column 3 \('s2'\).*variable 'c'.*Got: 'x1'"):
        seen.extend(name for name, _ in iter_csv(path, orientation="variables"))
    assert seen == ["a", "b"]
    with pytest.raises(ValueError, match=r"line 1, column 2 .*Got: '1_000'"):
        list(iter_csv(write("a,1_000,2\n"), orientation="variables", header=False))


def test_bad_lines_can_be_left_out(write):
    path = write("gene,s1,s2\na,1,2\nb,3,x\nc,5,6\nd,y,\n")
    reported = []
    stream = iter_csv(path, orientation="variables", on_bad=lambda *what: reported.append(what))
    assert _read(stream) == {"a": [1, 2], "c": [5, 6]}
    assert [what[:2] for what in reported] == [("b", "text"), ("d", "text")]
    assert "line 3, column 3 ('s2')" in reported[0][2]
    assert _read(stream.skip(1)) == {"c": [5, 6]}


@pytest.mark.parametrize(("line", "found"), [("c,5", 1), ("c,5,6,7", 3), ("c", 0), ('"c"', 0)])
def test_ragged_lines(write, line, found):
    path = write(f"a,1,2\nb,3,4\n{line}\nd,7,8\n")
    seen = []
    with pytest.raises(ValueError, match=f"Expected 2 values in line 3 of .*Got: {found}"):
        seen.extend(name for name, _ in iter_csv(path, orientation="variables"))
    assert seen == ["a", "b"]


def test_files_without_values(write):
    with pytest.raises(ValueError, match="Got: the empty file"):
        iter_csv(write("\n\n"), orientation="variables")
    with pytest.raises(ValueError, match="only a header"):
        iter_csv(write("gene,s1,s2\n"), orientation="variables")
    with pytest.raises(ValueError, match="Hint: pass the delimiter"):
        iter_csv(write("a|1|2\nb|3|4\n"), orientation="variables")
    with pytest.raises(ValueError, match="Hint: a variable is one line: remove the line breaks"):
        iter_csv(write('"gene\nA",1,2\nb,3,4\n'), orientation="variables")
    with pytest.raises(ValueError, match="Expected 3 values in line 2, as the header"):
        iter_csv(write("gene,s1,s2,s3\na,1,2\n"), orientation="variables")


def test_a_gzip_file_that_is_cut_short(write):
    text = "\n".join(f"v{i},{i},{i * i}" for i in range(20_000)).encode()
    path = write(gzip.compress(text)[:-2000], "x.gz")
    with pytest.raises(ValueError, match="Expected a complete gzip file"):
        list(iter_csv(path, orientation="variables"))


@pytest.mark.slow
def test_taking_reads_no_further_than_needed(write):
    rows = "".join(f"v{i},{i},0\n" for i in range(150_000))
    stream = iter_csv(write(rows + "bad,x,y\n"), orientation="variables", dtype=np.float32)
    assert stream.take(["v7", "v3"])["v3"].tolist() == [3, 0]
    with pytest.raises(ValueError, match="line 150001"):
        stream.take(["v200000"])


def test_bad_lines_are_passed_unchanged(write):
    path = write("a,1,2\nb, x ,NA\nc,3,4\nd,5,300\ne,y,6\nf,7,8\n")
    stream = iter_csv(path, orientation="variables", on_bad="pass", dtype=np.int8)
    blocks = list(stream.blocks())
    assert [list(block.names) for block in blocks] == [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]
    assert [block.values.dtype.char for block in blocks] == list("bObdOb")
    assert _read(stream)["b"] == ["x", None]
    assert _read(stream)["d"] == [5, 300]
    assert _read(stream.skip(2)) == {"c": [3, 4], "d": [5, 300], "e": ["y", "6"], "f": [7, 8]}
    assert stream.take(["b"])["b"].tolist() == ["x", None]
    assert stream.n_columns == 6
    with pytest.raises(ValueError, match="on_bad to be a function"):
        iter_csv(path, orientation="variables", on_bad="skip")

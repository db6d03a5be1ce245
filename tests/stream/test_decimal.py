"""Text files whose numbers have a decimal comma."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel.stream import iter_csv, iter_files
from streamsel.stream._csv_layout import find_numerals, numerals_of
from streamsel.stream._numerals import Numerals, to_number
from streamsel.stream._text_cells import NumberParser, find_delimiter


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def columns(stream):
    return {name: values.tolist() for name, values in stream}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_samples(tmp_path, mark):
    rows = [["a", "b", "kind", "n"], ["1,5", "-0,25", "x,y", "1"], ["", "2", "u.v", "2"]]
    path = write(tmp_path / "x.csv", "\n".join(mark.join(row) for row in rows))
    found = columns(iter_csv(path))
    np.testing.assert_array_equal(found["a"], [1.5, np.nan])
    assert found["b"] == [-0.25, 2]
    assert found["kind"] == ["x,y", "u.v"]
    assert found["n"] == [1, 2]


@pytest.mark.parametrize("header", ["gene;s1;s2\n", ""])
def test_variables(tmp_path, header):
    path = write(tmp_path / "x.csv", f'{header}g,1;1,5;2\ng.2;NA;1,25e-3\n"g3";"3,5";4\n')
    stream = iter_files(path, orientation="variables", delimiter=";")
    expected = {"g,1": [1.5, 2], "g.2": [np.nan, 0.00125], "g3": [3.5, 4]}
    assert list(columns(stream)) == list(expected)
    for name, values in stream:
        np.testing.assert_array_equal(values, expected[name])
    assert stream.take(["g3"])["g3"].tolist() == [3.5, 4]
    parts = [part.open() for part in stream.split(2)]
    assert [name for part in parts for name in columns(part)] == list(expected)


def test_lines_without_header_are_not_split_at_commas():
    assert find_delimiter("v0;1,5;2", None, ",") == ";"
    assert find_delimiter("v0\t1,5\t2", None, ",") == "\t"
    assert find_delimiter("a,b;c,d", None, ",") == ","
    assert find_delimiter("a,b\tc,d", None) == "\t"


def test_numbers_with_the_other_mark_are_text(tmp_path):
    path = write(tmp_path / "x.csv", "a;b\n1,5;1\n2,5;2\n3,5;1.000\n")
    assert columns(iter_csv(path, decimal="."))["a"] == ["1,5", "2,5", "3,5"]
    write(path, "a;b\n1,5;1\n2,5;2\n3,5;1.5\n")
    assert columns(iter_csv(path, decimal=","))["b"] == ["1", "2", "1.5"]


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        (["1,5", "2"], ","),
        (["1,5", "2.5"], "."),
        (["1,5", "label", "x.y"], ","),
        (["1,500", "12,250"], "."),
        (["1,500", "0,25"], ","),
        (["1,5", "1,2,3"], "."),
        (["1,5", "1.250,5"], ","),
        (["1.304,25"], ","),
        (["1.304.250"], ","),
        (["1,304.25"], "."),
        (["1,304,250"], "."),
        (["1.304", "1,304"], "."),
        (["1.304", "1,5"], ","),
        (["a,b", "c"], "."),
        (["1", ""], "."),
        ([], "."),
    ],
)
def test_which_commas_are_decimal(cells, mark):
    assert numerals_of(cells).decimal == mark


def test_late_decimal_commas(tmp_path):
    header = ";".join(f"v{j}" for j in range(60_000))  # longer than the part that is inspected
    row = ";".join(["1,5"] * 60_000)
    path = write(tmp_path / "x.csv", f"{header}\n{row}\n{row}\n")
    assert find_numerals(path, ";").decimal == ","
    stream = iter_csv(path)
    assert stream.take(["v59999"])["v59999"].tolist() == [1.5, 1.5]


def test_invalid_decimal_marks_are_refused(tmp_path):
    path = write(tmp_path / "x.csv", "a,b\n1,2\n")
    assert columns(iter_csv(path)) == {"a": [1], "b": [2]}
    for decimal, delimiter in ((",", ","), (",", None), ("'", ";"), (5, ";")):
        with pytest.raises(ValueError, match="Expected decimal"):
            iter_csv(path, decimal=decimal, delimiter=delimiter)
        with pytest.raises(ValueError, match="Expected decimal"):
            iter_csv(path, orientation="variables", decimal=decimal, delimiter=delimiter)


CELLS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["", "NA", "x", "1_0", "nan", "-inf", '"']),
)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_decimal_commas_equal_decimal_points(rows):
    """A text with decimal commas is read as the same text with points."""
    points = [";".join(cell.replace('"', '""""') for cell in row) for row in rows]
    commas = [line.replace(".", ",") for line in points]
    one, other = (
        NumberParser(";").parse(points, 3),
        NumberParser(";", Numerals(",")).parse(commas, 3),
    )
    assert (one is None) == (other is None)
    if one is not None:
        np.testing.assert_array_equal(one, other)
    for cell in (cell for row in rows for cell in row):
        np.testing.assert_equal(to_number(cell), to_number(cell.replace(".", ","), ","))

"""Numbers in cells of text: Arrow and NumPy parse them like Python, bit by bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel.stream import _text_cells, iter_csv
from streamsel.stream._numerals import to_number
from streamsel.stream._text_cells import NumberParser, count_cells

NUMBERS = [
    "1",
    "-0",
    "+1.5",
    ".5",
    "5.",
    "1e5",
    "1E-5",
    "1e400",
    "-1e400",
    "5e-324",
    "2e-324",
    "inf",
    "-Infinity",
    "nan",
    "-NaN",
    "0.1",
    "9007199254740993",
    "123456789012345678901234567890",
    "1.7976931348623159e308",
]
MISSING = ["", "NA", "N/A", "null", "NULL", " NA "]
NEITHER = ["1_0", "0x10", "nan(1)", "NaN()", "1d5", "1.0f", "1e", ".", "--1", "true", "1 2", "#1"]


@pytest.fixture(autouse=True, params=["arrow", "numpy"])
def engine(request, monkeypatch):
    """Parse with Arrow or with NumPy, for any number of cells."""
    monkeypatch.setattr(_text_cells, "_MIN_ARROW_CELLS", 0)
    if request.param == "numpy":
        monkeypatch.setattr(_text_cells, "_arrow", lambda: None)
    return request.param


def _same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and np.signbit(a) == np.signbit(b))


@pytest.mark.parametrize("cell", [*NUMBERS, *MISSING, *(f" {text} " for text in NUMBERS)])
def test_numbers(cell):
    # Two cells per line and two lines, because numpy.loadtxt skips empty lines.
    parsed = NumberParser(",").parse([f"{cell},1", f"2,{cell}"], 2)
    if parsed is None:
        assert cell == " NA "  # parsed cell by cell
        return
    assert parsed.shape == (2, 2)
    assert _same(parsed[0, 0], to_number(cell))
    assert _same(parsed[1, 1], to_number(cell))
    assert parsed[0, 1] == 1.0


@pytest.mark.parametrize("cell", NEITHER)
def test_non_numeric_cells_are_not_parsed(cell):
    assert to_number(cell) is None
    assert NumberParser(",").parse([f"{cell},1", f"2,{cell}"], 2) is None


@given(cell=st.text("0123456789.eE+-_xnaifNA() ", min_size=1, max_size=6))
def test_numbers_equal_those_of_python(cell):
    parsed = NumberParser(",").parse([f"{cell},1"], 2)
    expected = to_number(cell)
    if parsed is not None:
        assert expected is not None
        assert _same(parsed[0, 0], expected)


def test_selected_cells_of_many_lines(monkeypatch, rng):
    monkeypatch.setattr(_text_cells, "_ARROW_CELLS", 10)
    X = rng.normal(size=(30, 4))
    lines = [";".join([*map(repr, row.tolist()), "text"]) for row in X]
    found = NumberParser(";").parse(lines, 5, usecols=[0, 2, 3])
    np.testing.assert_array_equal(found, X[:, [0, 2, 3]])


@pytest.mark.parametrize("delimiter", ["\t", ";", "¦"])
@pytest.mark.parametrize("n", [1, 2, 4000])
def test_cells_are_counted(delimiter, n):
    assert count_cells(delimiter.join(["½ é", *["1.5"] * (n - 1)]), delimiter) == n


def test_quoted_cells_are_not_split():
    found = NumberParser(",").parse(['"1,5",2', "3,4"], 2)
    assert found is None
    np.testing.assert_array_equal(NumberParser(",").parse(['"1",2'], 2), [[1.0, 2.0]])


def test_an_error_names_line_and_column(tmp_path):
    path = tmp_path / "genes.tsv"
    path.write_text("gene\ta\tb\nx\t1\t2\ny\t3\tfour\n")
    stream = iter_csv(path, orientation="variables")
    with pytest.raises(ValueError, match=r"line 3, column 3 \('b'\).*'four'"):
        list(stream)


def test_columns_of_text_and_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,kind,b\n" + "".join(f"{j},k{j % 2},{j / 4}\n" for j in range(20)))
    columns = dict(iter_csv(path))
    np.testing.assert_array_equal(columns["a"], np.arange(20.0))
    np.testing.assert_array_equal(columns["b"], np.arange(20) / 4)
    assert columns["kind"].tolist() == ["k0", "k1"] * 10

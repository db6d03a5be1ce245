"""Cells that need interpretation: names of missing values, and thousands separators."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel.stream import _csv, _text_cells, clean, iter_csv, iter_files
from streamsel.stream._numerals import Numerals, check_na_values, diagnose_non_numeric, is_number

NAN = np.nan
USUAL = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A", "-"]


@pytest.fixture(params=["samples", "variables"])
def read(request, tmp_path):
    """Return a function that reads columns of cells from a text in either orientation."""

    def read(columns, delimiter=";", **options):
        path = tmp_path / "x.csv"
        names, cells = list(columns), list(columns.values())
        header = ["name", *(f"s{i}" for i in range(len(cells[0])))]
        rows = [header, *([name, *column] for name, column in columns.items())]
        if request.param == "samples":
            rows = [names, *zip(*cells, strict=True)]
        quoted = [[f'"{c}"' if delimiter in c else c for c in row] for row in rows]
        path.write_text("\n".join(delimiter.join(row) for row in quoted) + "\n", encoding="utf-8")
        more = {"on_bad": "pass"} if request.param == "variables" else {}
        stream = iter_files(path, orientation=request.param, delimiter=delimiter, **more, **options)
        return dict(stream)

    return read


@pytest.fixture(params=["arrow", "numpy"])
def engine(request, monkeypatch):
    """Parse with Arrow or with NumPy, for any number of cells."""
    monkeypatch.setattr(_text_cells, "_MIN_ARROW_CELLS", 0)
    if request.param == "numpy":
        monkeypatch.setattr(_text_cells, "_arrow", lambda: None)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("cell", [*USUAL, " NA ", "nA", "none", '"NA"', '"-"'])
def test_the_usual_missing_values(read, cell):
    found = read({"a": ["1.5", cell, "2"], "b": [cell, cell, "3"], "c": ["1", "2", "3"]})
    np.testing.assert_array_equal(found["a"], [1.5, NAN, 2])
    np.testing.assert_array_equal(found["b"], [NAN, NAN, 3])
    assert found["c"].tolist() == [1, 2, 3]


def test_a_dash_among_labels_is_a_label(read):
    found = read({"er": ["+", "-", "-", "NA"], "x": ["1", "-", "2", "3"]})
    assert found["er"].tolist() == ["+", "-", "-", None]
    np.testing.assert_array_equal(found["x"], [1, NAN, 2, 3])
    found = read({"er": ["+", "-", "-", "NA"]}, na_values="-")
    assert found["er"].tolist() == ["+", None, None, None]


@pytest.mark.usefixtures("engine")
def test_custom_missing_values(read):
    columns = {
        "a": ["<0.01", "0.5", "."],
        "b": ["-9", "-9.0", "1"],
        "c": ["x", ".", "y"],
        "d": ["-9", "x", "z"],
        "e": ["1", "2", "3"],
    }
    found = read(columns, na_values=["<0.01", ".", -9])
    np.testing.assert_array_equal(found["a"], [NAN, 0.5, NAN])
    np.testing.assert_array_equal(found["b"], [NAN, NAN, 1])
    assert found["c"].tolist() == ["x", None, "y"]
    assert found["d"].tolist() == [None, "x", "z"]
    assert found["e"].tolist() == [1, 2, 3]


@pytest.mark.usefixtures("engine")
def test_missing_values_with_a_decimal_comma(read):
    found = read({"a": ["<0,01", "0,5", "-9,5"]}, na_values=["<0,01", "-9,5"])
    np.testing.assert_array_equal(found["a"], [NAN, 0.5, NAN])


def test_missing_values_must_be_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    for bad in (True, [None], [[1]], object()):
        with pytest.raises(TypeError, match="Expected na_values to be texts or numbers"):
            iter_csv(path, na_values=bad)
    assert check_na_values(-9) == ("-9",)
    assert check_na_values(". ") == (".",)
    assert check_na_values(["x", np.float64(1.5)]) == ("x", "1.5")


def test_parts_have_the_same_missing_values(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("g,s1,s2\na,.,2\nb,3,-9\n")
    for orientation in ("samples", "variables"):
        stream = iter_files(path, orientation=orientation, na_values=[".", -9])
        found = {
            name: values for part in stream.split(2) for name, values in part.open() if name != "g"
        }
        assert len(found) == 2
        assert sum(np.isnan(values).sum() for values in found.values()) == 2


THOUSANDS = [
    (";", {"a": ["1,304.25", "12", "2,000,000"]}, [1304.25, 12, 2e6]),
    (",", {"a": ["1,304", "12", "-999"]}, [1304, 12, -999]),
    (";", {"a": ["1.304,25", "12", "2.000.000"]}, [1304.25, 12, 2e6]),
    (";", {"a": ["1.304", "12", "999"], "b": ["0,5", "1", "2"]}, [1304, 12, 999]),
    (";", {"a": ["1 304", "12", "2 000 000"]}, [1304, 12, 2e6]),
    (";", {"a": ["1\u00a0304,5", "1200", "+2\u00a0000"]}, [1304.5, 1200, 2000]),
    ("\t", {"a": ["1\u202f304.5", "NA", "-"]}, [1304.5, NAN, NAN]),
    (";", {"a": ["1,304", "1", "2"], "b": ["0.5", "1", "2"]}, [1304, 1, 2]),
    (";", {"a": ["1,304", "0.5", "2"]}, [1304, 0.5, 2]),
]


@pytest.mark.parametrize(("delimiter", "columns", "expected"), THOUSANDS)
def test_separators_of_thousands(read, delimiter, columns, expected):
    np.testing.assert_array_equal(read(columns, delimiter)["a"], expected)


REFUSED = [
    # The decimal mark is ambiguous.
    {"a": ["1,304", "2,150", "12"]},
    {"a": ["1,304", "2,150", "12"], "b": ["1.304", "2.150", "7.999"]},
    {"a": ["1,304", "2,150", "12"], "b": ["0.5", "1", "2"], "c": ["0,5", "1", "2"]},
    # Two notations in one column.
    {"a": ["1,304", "2500", "1.5"]},
    {"a": ["1,304.5", "2 500", "1.5"]},
    {"a": ["1,304.5", "1,5", "2"]},
    {"a": ["1,304.5", "1304,25", "2"]},
    {"a": ["1,30", "12.5", "2"]},
    # Groups of wrong size, and lists.
    {"a": ["13,04.5", "1.5", "2"]},
    {"a": ["1,2,3", "0.5", "2"]},
    {"a": ["0,123", "0.5", "2"]},
    {"a": ["1,,304", "0.5", "2"]},
    {"a": ["1 30", "0.5", "2"]},
]


@pytest.mark.parametrize("columns", REFUSED)
def test_ambiguous_numbers_are_kept_as_text(read, columns):
    found = read(columns)["a"]
    assert found.dtype == object
    assert found.tolist() == columns["a"]


def test_a_given_decimal_mark_resolves_ambiguity(read):
    column = {"a": ["1,304", "2,150", "12"]}
    assert read(column, decimal=".")["a"].tolist() == [1304, 2150, 12]
    assert read(column, decimal=",")["a"].tolist() == [1.304, 2.15, 12]
    column = {"a": ["1.304", "2.150", "12"]}
    assert read(column, decimal=".")["a"].tolist() == [1.304, 2.15, 12]
    assert read(column, decimal=",")["a"].tolist() == [1304, 2150, 12]


def test_a_line_with_thousands_is_not_a_header(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;1.304,5;2\nb;1,5;3 500\n")
    found = {name: values.tolist() for name, values in iter_csv(path, orientation="variables")}
    assert found == {"a": [1304.5, 2], "b": [1.5, 3500]}


def test_late_separators_of_thousands(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_TILE_BYTES", 2 * 8 * 3)
    path = tmp_path / "x.csv"
    rows = [["1.5", "x", str(i)] for i in range(9)] + [["1,304.5", "y", "12 000"]]
    path.write_text("\n".join(";".join(row) for row in [["a", "b", "c"], *rows]))
    stream = iter_csv(path)
    assert stream.take(["a"])["a"].tolist() == [*[1.5] * 9, 1304.5]
    assert stream.take(["c"])["c"].tolist() == [*range(9), 12000]
    assert stream.take(["b"])["b"].tolist() == [*"x" * 9, "y"]
    assert [block.values.dtype for block in stream.blocks()] == [float, object, float]


def _written(value, decimal, separator):
    """Return a number with thousands separators."""
    text = f"{value:,.2f}"
    return text.translate(str.maketrans({",": separator, ".": decimal}))


@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 2)), min_size=1, max_size=12),
    st.sampled_from([(".", ","), (",", "."), (".", " "), (",", " "), (",", "\u202f")]),
    st.booleans(),
)
def test_columns_are_read_exactly_or_refused(values, marks, is_given):
    decimal, separator = marks
    cells = [_written(value, decimal, separator) for value in values]
    numerals = Numerals(decimal) if is_given else Numerals(".", is_sure=False)
    found = numerals.numbers(cells)
    if is_given:
        assert found is not None
    if found is not None:
        np.testing.assert_array_equal(found, values)


CELL = st.from_regex(r"[+-]?[0-9]{1,4}([,. ][0-9]{1,3}){0,2}", fullmatch=True)


@given(st.lists(CELL, min_size=1, max_size=6), st.sampled_from([".", ","]), st.booleans())
def test_only_unambiguous_numbers_are_read(cells, decimal, is_sure):
    """Numbers are read only if exactly one notation fits; the reference tries all of them."""
    found = Numerals(decimal, is_sure=is_sure or decimal == ",").numbers(cells)
    ways = []
    for mark in ".," if not is_sure and decimal == "." else decimal:
        for separator in {".", ",", " ", ""} - {mark}:
            group = rf"[1-9][0-9]{{0,2}}(?:{re.escape(separator)}[0-9]{{3}})+" if separator else "x"
            plain = r"[0-9]+"
            fits = [
                re.fullmatch(rf"[+-]?(?:{group}|{plain})(?:{re.escape(mark)}[0-9]*)?", cell)
                for cell in cells
            ]
            if all(fits):
                bare = [cell.replace(separator, "") if separator else cell for cell in cells]
                ways.append([float(cell.replace(mark, ".")) for cell in bare])
    if found is not None:
        assert found.tolist() in ways
        if not is_sure and any("," in cell for cell in cells):
            assert all(way == found.tolist() for way in ways)


def test_reasons_for_text_columns():
    assert diagnose_non_numeric(["x", "y", None, "1"])[:2] == ("text", 0)
    assert diagnose_non_numeric(["1", None, "<2", "3", "4"])[:2] == ("mixed", 2)
    assert (
        diagnose_non_numeric(["1", None, "<2", "3", "4"]).detail
        == "where 3 of 4 values are numbers"
    )
    assert diagnose_non_numeric(["1", "1,304"]) == ("ambiguous", 1, "which may be 1304 or 1.304")
    assert diagnose_non_numeric(["1.5", "1,5"])[:2] == ("ambiguous", 1)
    assert diagnose_non_numeric(["1.5", "2"])[0] == "text"
    assert diagnose_non_numeric([object(), "2"])[:2] == ("text", 0)
    many = ["1"] * 5000 + ["x"]
    assert diagnose_non_numeric(many)[:2] == ("mixed", 5000)
    assert is_number("1 304")
    assert not is_number("1 30")


def test_clean_reports_reasons(read):
    reported = []
    columns = {
        "kind": ["x", "y", "x", "y"],
        "crp": ["<1", "5", "2", "3"],
        "income": ["1,304", "2,150", "1", "2"],
        "good": ["1", "2", "3", "5"],
    }
    good = clean(read(columns).items(), report=lambda *what: reported.append(what))
    assert [name for name, _ in good] == ["good"]
    assert dict(good.skipped) == {"text": 1, "mixed": 1, "ambiguous": 1}
    assert reported == [
        ("kind", "text", "'x' in row 0"),
        ("crp", "mixed", "'<1' in row 0, where 3 of 4 values are numbers"),
        ("income", "ambiguous", "'1,304' in row 0, which may be 1304 or 1.304"),
    ]


NULLS = {
    "samples": ("a,b\n1,2\n3,4\0\n", r"line 3, column 2 \('b'\)"),
    "variables": ("g,s1,s2\na,1,2\nb,3,4\0\n", r"line 3, column 3 \('s2'\)"),
}


@pytest.mark.parametrize("lie", NULLS)
def test_null_bytes_are_reported(tmp_path, lie):
    path = tmp_path / "x.csv"
    text, where = NULLS[lie]
    path.write_text(text)
    more = {"on_bad": lambda *_: None} if lie == "variables" else {}
    message = (
        rf"Expected text\. Got: a null byte in {where} of .*x\.csv.*\nHint: the file is damaged"
    )
    seen = []
    with pytest.raises(ValueError, match=message):
        seen.extend(name for name, _ in iter_files(path, orientation=lie, **more))
    assert seen == (["a"] if lie == "variables" else [])


def test_utf16_is_reported(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-16")
    with pytest.raises(ValueError, match="Hint: convert it, such as by iconv -f utf-16"):
        iter_csv(path)
    path.write_text("a,b\n1,2\n", encoding="utf-16-le")
    with pytest.raises(ValueError, match=r"a null byte in line .*\n.* utf-16"):
        iter_csv(path)

"""Columns that no learner can use are counted, listed on request, and do not end a run."""

import numpy as np
import pytest

COLUMNS = {
    "y": [1, 2, 3, 5, 8],
    "good": [1, 2, 3, 4, 9],
    "gap": [1, "", 3, 5, 8],
    "colour": ["red", "blue", "green", "grey", "pink"],
    "flat": [7, 7, 7, 7, 7],
    "infinite": [1, "inf", 3, 5, 8],
}


@pytest.fixture
def make(table, tmp_path):
    """Return a function that writes the columns in a format and returns the path."""

    def make(format_):
        if format_ == "samples":
            return table(**COLUMNS)
        if format_ == "variables":
            path = tmp_path / "lines.tsv"
            lines = ["\t".join(map(str, [name, *v])) for name, v in COLUMNS.items()]
            path.write_text("\n".join(lines) + "\n")
            return path
        pa = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        columns = {
            name: [None if x == "" else float(x) if x == "inf" else x for x in values]
            for name, values in COLUMNS.items()
        }
        path = tmp_path / f"data.{format_}"
        if format_ == "parquet":
            parquet.write_table(pa.table(columns), path)
        else:
            feather.write_feather(pa.table(columns), path, compression="uncompressed")
        return path

    return make


FORMATS = ["samples", "variables", "parquet", "feather"]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("command", ["select", "reduce"])
def test_skipped_columns_are_counted_by_reason(call, make, format_, command):
    result = call(
        command, make(format_), "-t", "y", "-k" if command == "select" else "-q", 1, "--json"
    )
    assert result.json()["metadata"]["skipped"] == {"missing": 2, "text": 1, "constant": 1}
    assert result.json()["columns_seen"] == 1
    warning, note = result.stderr.splitlines()
    assert warning.startswith("streamsel: warning: 3 of ")
    assert note == "streamsel: skipped 4 columns: 1 constant, 2 missing, 1 text"


@pytest.mark.parametrize("format_", FORMATS)
def test_skipped_columns_are_listed_on_request(call, make, tmp_path, format_):
    call("select", make(format_), "-t", "y", "--list-skipped", tmp_path / "skipped.tsv")
    lines = [line.split("\t") for line in (tmp_path / "skipped.tsv").read_text().splitlines()]
    reasons = {name: reason for name, reason, _ in lines}
    expected = {"gap": "missing", "infinite": "missing", "colour": "text", "flat": "constant"}
    assert reasons == expected
    (detail,) = (detail for name, _, detail in lines if name == "colour")
    assert "red" in detail


def test_a_cell_that_is_not_a_number_is_named_by_line_and_column(call, make):
    path = make("variables")
    path.write_text(path.read_text().replace("red\tblue\tgreen\tgrey\tpink", "1\t<2\t3\t4\t5"))
    for number in (0, 100):
        line = ["select", path, "-t", "y", "--max-categories", number, "--list-skipped", "-"]
        result = call(*line)
        (line,) = (line for line in result.stderr.splitlines() if line.startswith("colour"))
        assert "line 4" in line
        assert "column 3" in line


@pytest.mark.parametrize("format_", FORMATS)
def test_exact_counts_every_column_once(call, make, tmp_path, format_):
    arguments = ["--max-candidates", 1, "-k", 1, "--exact", "--list-skipped", tmp_path / "s"]
    result = call("select", make(format_), "-t", "y", *arguments, "--json")
    assert sum(result.json()["metadata"]["skipped"].values()) == 4
    assert len((tmp_path / "s").read_text().splitlines()) == 4


@pytest.mark.parametrize("format_", FORMATS)
def test_missing_values_are_replaced_by_the_mean(call, make, format_):
    result = call("select", make(format_), "-t", "y", "--missing", "mean", "--json").json()
    assert result["columns_seen"] == 3
    assert result["metadata"]["skipped"] == {"text": 1, "constant": 1}
    assert result["metadata"]["filled"] == 2


@pytest.mark.parametrize("format_", FORMATS)
def test_missing_error_stops_at_the_first_column(call, make, format_):
    arguments = ["-t", "y", "--drop", "colour", "--missing", "error"]
    result = call("select", make(format_), *arguments, code=1)
    assert result.stderr.startswith("streamsel: error: ")
    assert "'gap'" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("format_", FORMATS)
def test_missing_error_stops_at_text(call, make, format_):
    arguments = ["-t", "y", "--drop", "gap", "--missing", "error"]
    result = call("select", make(format_), *arguments, code=1)
    assert "colour" in result.stderr


def test_run_with_only_bad_columns_fails(call, table):
    result = call("select", table(y=[1, 2, 3], a=[1, 1, 1], b=["x", "y", "z"]), "-t", "y", code=1)
    assert not result.rows()
    assert result.stderr == (
        "streamsel: skipped 2 columns: 1 constant, 1 text\n"
        "streamsel: error: nothing was selected: none of 2 columns read could be used\n"
    )


def test_duplicate_name_is_skipped(call, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("y,1,2,3,5\na,1,2,3,4\na,4,1,1,2\nb,1,2,4,4\n")
    result = call("select", path, "-t", "y", "--list-skipped", "-", "--json")
    assert result.json()["metadata"]["skipped"] == {"refused": 1}
    assert "a\trefused\t" in result.stderr
    assert {row["name"] for row in result.json()["selected"]} == {"a", "b"}


def test_column_with_overflowing_squares_is_skipped(call, tmp_path):
    X = np.array([[1.0, 1e200], [2, -1e200], [4, 1e100]])
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("1\n2\n3.5\n")
    result = call("select", tmp_path / "x.npy", "--target-file", tmp_path / "y.txt", "--json")
    assert result.json()["metadata"]["skipped"] == {"refused": 1}

"""`--drop`: by name, and by patterns of names."""

import numpy as np
import pytest

from streamsel.serialization.archive import read_metadata

FILES = ["data.parquet", "samples.csv", "variables.csv", "variables.tsv.gz"]
GIVEN = ["-t", "y", "-k", 40]


def names_of(result):
    return {row["name"] for row in result.rows()}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("patterns", "gone"),
    [
        (["v1*"], lambda name: name.startswith("v1")),
        (["v?,v3[0-4]*"], lambda name: len(name) == 2 or name in {f"v3{j}" for j in range(5)}),
        (["v2?", "v7"], lambda name: name == "v7" or (len(name) == 3 and name[1] == "2")),
    ],
)
def test_drop_patterns(call, files, data, file, patterns, gone):
    options = [word for pattern in patterns for word in ("--drop", pattern)]
    result = call("select", files / file, *GIVEN, *options, "--drop", "labels")
    assert names_of(result) == {name for name in data.names if not gone(name)}


@pytest.mark.parametrize("file", FILES)
def test_pattern_without_a_match_is_an_error(call, files, file):
    error = call("select", files / file, *GIVEN, "--drop", "w1*,v3", code=1).stderr
    assert "no such column: 'w1*'" in error
    assert "v1" in error
    assert error.count("\n") == 1


def test_patterns_match_numbers_of_unnamed_columns(call, files, data):
    given = ["--target-file", files / "y.npy", "-k", 40]
    result = call("select", files / "data.npy", *given, "--drop", "1*")
    assert names_of(result) == {str(j) for j in range(40) if not str(j).startswith("1")}


def test_exact_name_takes_precedence_over_pattern(call, table):
    rng = np.random.default_rng(0)
    names = ["y", "HLA-A*01", "HLA-A-01", "HLA-B"]
    file = table(**{name: rng.normal(size=12).tolist() for name in names})
    result = call("select", file, "-t", "y", "--drop", "HLA-A*01")
    assert names_of(result) == {"HLA-A-01", "HLA-B"}
    assert names_of(call("select", file, "-t", "y", "--drop", "HLA-A*")) == {"HLA-B"}


def test_dropped_columns_in_resume_and_transform(call, files, data, tmp_path):
    model = tmp_path / "m"
    given = ["-t", "y", "-q", 2, "--drop", "v1*,labels", "-m", model]
    call("reduce", files / "data.parquet", *given)
    assert read_metadata(model)["dropped"] == ["v1*", "labels"]
    call("reduce", files / "data.parquet", *given, "--resume")
    plain = tmp_path / "plain"
    names = ",".join(name for name in data.names if name.startswith("v1"))
    method = ["--method", "RandomProjection", "-q", 3]
    call("reduce", files / "data.parquet", *method, "--drop", f"{names},y,labels", "-m", plain)
    call("reduce", files / "data.parquet", *method, "--drop", "v1*,y,labels", "-m", model)
    found = [call("transform", one, files / "data.parquet").stdout for one in (plain, model)]
    assert found[0] == found[1]

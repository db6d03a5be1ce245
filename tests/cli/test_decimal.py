"""Text files with decimal commas."""

import numpy as np
import pytest

from tests.cli.conftest import write_text


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """Return the dataset by samples and by variables, with decimal points and with commas."""
    folder = tmp_path_factory.mktemp("decimal")
    columns = {"y": data.y, "labels": data.labels}
    columns |= dict(zip(data.names, data.X.T, strict=True))
    samples = [list(columns), *map(list, zip(*(c.tolist() for c in columns.values()), strict=True))]
    lines = [[name, *values.tolist()] for name, values in columns.items()]
    for name, rows in {"samples": samples, "variables": lines}.items():
        write_text(folder / f"{name}.points.csv", rows, ";")
        commas = [[str(cell).replace(".", ",") for cell in row] for row in rows]
        write_text(folder / f"{name}.commas.csv", commas, ";")
    folder.joinpath("y.txt").write_text("\n".join(str(v).replace(".", ",") for v in data.y))
    return folder


GIVEN = ["-t", "y", "-k", 5, "--drop", "labels"]


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_decimal_commas_and_points_give_the_same(call, folder, orientation, tmp_path):
    model = tmp_path / "m"
    expected = call("select", folder / f"{orientation}.points.csv", *GIVEN)
    assert expected.stderr == ""
    path = folder / f"{orientation}.commas.csv"
    found = call("select", path, *GIVEN, "-m", model)
    assert found.stdout == expected.stdout
    assert found.stderr.startswith(f"streamsel: {path}: read with decimal commas")
    result = call("select", path, *GIVEN, "--decimal", ",")
    assert (result.stdout, result.stderr) == (expected.stdout, "")
    points = [
        call("transform", model, folder / f"{orientation}.{m}.csv") for m in ("points", "commas")
    ]
    assert points[0].stdout == points[1].stdout
    assert "--decimal" in call("select", path, *GIVEN, "--decimal", ".", code=1).stderr
    again = ["select", path, "-m", model, "--resume"]
    assert "--decimal none. Got: --decimal ," in call(*again, "--decimal", ",", code=1).stderr


def test_target_list_with_decimal_commas(call, files, folder, data, tmp_path):
    given = ["select", files / "data.parquet", "--drop", "y,labels", "--target-file"]
    expected = call(*given, files / "y.txt").stdout
    assert call(*given, folder / "y.txt").stdout == expected
    tmp_path.joinpath("y.csv").write_text((folder / "y.txt").read_text())
    assert call(*given, tmp_path / "y.csv").stdout == expected


def test_ambiguous_thousands_separators_are_skipped(call, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(1000, 99_000, (30, 4))
    rows = [["y", "a", "b", "c"], *([f"{v:,}" for v in row] for row in X)]
    write_text(tmp_path / "x.tsv", rows, "\t")
    y = tmp_path / "y.txt"
    y.write_text("\n".join(map(str, X[:, 1].tolist())))
    given = ["select", tmp_path / "x.tsv", "--orientation", "samples", "--target-file", y]
    stderr = call(*given, code=1).stderr
    assert "4 numeric columns were skipped because their numbers are ambiguous" in stderr
    assert "Hint: set --decimal . or --decimal ," in stderr
    for mark in (".", ","):
        assert call(*given, "--decimal", mark).rows()[0]["name"] == "a"

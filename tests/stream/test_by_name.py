"""Columns of a file by its name: any format, and text in either orientation."""

import functools
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from streamsel import ProjSe
from streamsel.stream import as_stream, iter_csv

# Text with one variable per line.
BY_VARIABLE = functools.partial(iter_csv, orientation="variables")

rng = np.random.default_rng(0)
X = rng.normal(size=(9, 5)).round(3)
NAMES = [f"v{j}" for j in range(5)]
Y = X[:, 3] - 0.5 * X[:, 1]


def _text(rows, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by_name")
    table = pa.table(dict(zip(NAMES, X.T, strict=True)))
    parquet.write_table(table, folder / "x.parquet")
    feather.write_feather(table, folder / "x.feather")
    (folder / "samples.csv").write_text(_text([NAMES, *X]))
    variables = _text([[name, *column] for name, column in zip(NAMES, X.T, strict=True)], "\t")
    (folder / "variables.tsv.gz").write_bytes(gzip.compress(variables.encode()))
    np.save(folder / "x.npy", X)
    return folder


@pytest.mark.parametrize("kind", [str, Path, lambda path: path.as_uri()])
@pytest.mark.parametrize(
    "name", ["x.parquet", "x.feather", "samples.csv", "variables.tsv.gz", "x.npy"]
)
def test_a_model_learns_the_columns_of_a_file(folder, name, kind):
    found, expected = ProjSe(3), ProjSe(3)
    for model, columns in ((found, kind(folder / name)), (expected, X)):
        model.learn_target(Y)
        model.learn_columns(columns)
    assert [str(one).removeprefix("v") for one in found.selected] == [*map(str, expected.selected)]


LIES = {
    "samples": [
        "a,b\n1,2\n3,4\n",
        "a\n1\n2\n",
        ",a,b\n0,1,2\n1,3,4\n",
        "a;b\n1,5;2\n2,5;\n",
        "a,b\n,2\n3,4\n",
        "id,age,sex\ns1,3,f\ns2,4,m\n",
        "id,age,sex\ns1,NA,f\ns2,4,\ns3,5,m\n",
        "age,sex\n3,f\n4,m\n",
    ],
    "variables": [
        "a,1.5,2\nb,3,4\n",
        "a,0,0,1\nb,3,,4\n",
        "a,0.5\n",
    ],
    None: [
        "gene,s1,s2\na,1,2\nb,3,4\n",  # a matrix of genes, or samples with identifiers
        "gene,2019,2020\na,1,2\nb,3,4\n",
        "gene,1,2,3\na,1,2,3\nb,3,4,5\n",
        "gene,s1,s2\na,1,2\nsex,f,m\n",
        "1,2\n3,4\n",
        "1,a\n3,b\n",
        "a,1\n2,3\n",
        "a,b\n",
        "a,b\nc,d\n",
        "a,1.5,x\nb,2,3\n",
    ],
}


@pytest.mark.parametrize(("lies", "text"), [(lies, t) for lies, ts in LIES.items() for t in ts])
def test_orientation_of_texts(tmp_path, lies, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    if lies is None:
        why = r"'.*x\.csv', which may be either\.\nHint: .*iter_csv"
        with pytest.raises(ValueError, match=why):
            as_stream(path)
        return
    expected = dict({"samples": iter_csv, "variables": BY_VARIABLE}[lies](path))
    found = dict(as_stream(path))
    assert [*found] == [*expected]
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])


def test_unsupported_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        as_stream("x.parquet")
    (tmp_path / "x.doc").write_text("a,b\n")
    with pytest.raises(ValueError, match="unknown format"):
        as_stream(tmp_path / "x.doc")
    with pytest.raises(TypeError, match="whose columns have names"):
        as_stream(tmp_path / "x.npy", names=["a"])
    model = ProjSe(2)
    model.learn_target([1.0, 2.0, 3.0])
    with pytest.raises(FileNotFoundError):
        model.learn_columns("x.parquet")
    assert model.n_columns == 0

"""`streamsel plot`: plots of a saved model are written completely or not at all."""

import json
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import streamsel
from streamsel import plot
from streamsel.evaluate import subsample_stability
from streamsel.plot.style import figure, to_svg
from streamsel.stream import iter_bed


@pytest.fixture(scope="module")
def models(files, data, tmp_path_factory):
    """Return a selector and an extractor that were learnt from a file, saved."""
    folder = tmp_path_factory.mktemp("models")
    for name, cls in (("selector", streamsel.ProjSe), ("extractor", streamsel.SOSPCA)):
        model = cls(3)
        model.learn_target(data.y)
        model.learn_columns(data.X, data.names)
        streamsel.save(model, folder / name)
    return folder


def on_print(draw, *given, **further):
    """Return a plot as the command writes it."""
    drawn, ax = figure()
    draw(*given, ax=ax, **further)
    return to_svg(drawn)


@pytest.mark.parametrize(
    ("model", "kind", "further"),
    [
        ("selector", "selection_path", []),
        ("extractor", "scree", []),
        ("extractor", "loadings", ["--component", "1"]),
        ("selector", "manhattan", []),
        ("selector", "qq", []),
    ],
)
def test_plot_equals_the_python_function(call, models, tmp_path, model, kind, further):
    out = tmp_path / "a.svg"
    written = call("plot", models / model, "--kind", kind, "-o", out, *further)
    assert written.stdout == ""
    assert written.stderr.startswith(f"streamsel: wrote {out}: plot of {kind}, ")
    how = {"component": 1} if further else {}
    drawn = on_print(getattr(plot, kind), streamsel.load(models / model), **how)
    assert out.read_text() == drawn


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".SVG"])
def test_suffix_determines_the_format(call, models, tmp_path, suffix):
    out = tmp_path / f"a{suffix}"
    call("plot", models / "selector", "--kind", "selection_path", "-o", out)
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".SVG": b"<?xml"}[suffix]
    assert out.read_bytes().startswith(begins)


@pytest.mark.parametrize("file", ["data.parquet", "samples.csv", "variables.tsv.gz"])
def test_rows_are_read_from_the_file(call, models, files, data, tmp_path, file):
    out = tmp_path / "a.svg"
    call("plot", models / "selector", "--kind", "heatmap", "--data", files / file, "-o", out)
    model = streamsel.load(models / "selector")
    X = {name: data.X[:, data.names.index(name)] for name in model.selected}
    pd = pytest.importorskip("pandas")
    assert out.read_text() == on_print(plot.heatmap, model, pd.DataFrame(X))


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory):
    """Return a .bed file, and a model of it."""
    folder = tmp_path_factory.mktemp("genotypes")
    rng = np.random.default_rng(0)
    packed = rng.choice([0b00, 0b10, 0b11], size=(40, 5, 4)) << np.array([0, 2, 4, 6])
    codes = packed.sum(axis=2).astype(np.uint8)
    (folder / "x.bed").write_bytes(b"\x6c\x1b\x01" + codes.tobytes())
    lines = [f"{'X' if j > 30 else 1 + j // 16}\trs{j}\t0\t{9 * j}\tA\tG\n" for j in range(40)]
    (folder / "x.bim").write_text("".join(lines))
    (folder / "x.fam").write_text("".join(f"F i{i} 0 0 1 {i % 7}.5\n" for i in range(20)))
    source = iter_bed(folder / "x.bed")
    model = streamsel.SelectKBest(k=2)
    model.learn_target(source.row_metadata["phenotype"])
    model.learn_columns(source)
    streamsel.save(model, folder / "model")
    return folder


@pytest.mark.slow
def test_p_values_along_the_genome_of_the_file(call, genotypes, tmp_path):
    out = tmp_path / "a.svg"
    bed = genotypes / "x.bed"
    call("plot", genotypes / "model", "--kind", "manhattan", "--data", bed, "-o", out)
    model = streamsel.load(genotypes / "model")
    _, ax = figure()
    plot.manhattan(model, ax, metadata=iter_bed(bed))
    assert out.read_text() == to_svg(ax.figure)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "X"]
    call("report", genotypes / "model", "--data", bed, "-o", tmp_path / "a.html")
    assert "Manhattan plot" in (tmp_path / "a.html").read_text()


def test_a_file_without_chromosomes(call, models, files, tmp_path):
    given = ["--kind", "manhattan", "--data", files / "data.parquet", "-o", tmp_path / "a.svg"]
    assert "Expected a SelectKBest" in call("plot", models / "selector", *given, code=1).stderr
    assert not (tmp_path / "a.svg").exists()


def test_rows_are_coloured_by_a_column(call, models, files, data, tmp_path):
    out = tmp_path / "a.svg"
    given = ["--data", files / "data.parquet", "--by", "labels"]
    call("plot", models / "extractor", "--kind", "scatter", *given, "-o", out)
    texts = {"".join(text.itertext()) for text in ET.parse(out).getroot().iter()}  # noqa: S314
    assert {f"{label} ({(data.labels == label).sum()})" for label in set(data.labels)} <= texts


def test_only_required_columns_are_read(call, models, files, tmp_path, monkeypatch):
    from streamsel.stream._stream import ColumnStream

    taken = []
    take = ColumnStream.take

    def note(self, names):
        taken.extend(names)
        return take(self, names)

    monkeypatch.setattr(ColumnStream, "take", note)
    given = ["--data", files / "data.parquet", "-o", tmp_path / "a.svg"]
    call("plot", models / "selector", "--kind", "heatmap", *given)
    assert set(taken) == set(streamsel.load(models / "selector").selected)


def test_scatter_of_the_rows_stored_in_the_model(call, models, tmp_path):
    call("plot", models / "extractor", "--kind", "scatter", "-o", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 0


def test_stability_is_plotted_from_printed_json(call, data, tmp_path):
    found = subsample_stability(streamsel.ProjSe(3), data.X, data.y, n_subsamples=5)
    path, out = tmp_path / "stability.json", tmp_path / "a.svg"
    path.write_text(json.dumps(found.as_dict()))
    call("plot", path, "--kind", "stability", "-o", out)
    assert out.read_text() == on_print(plot.stability, found)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"kind": "other"}', "\x00\xff"])
def test_file_without_stability_is_refused(call, tmp_path, content):
    path = tmp_path / "stability.json"
    path.write_text(content, encoding="latin-1")
    message = call("plot", path, "--kind", "stability", "-o", tmp_path / "a.svg", code=1).stderr
    assert "expected the output of streamsel stability --json" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (
            ["--kind", "selection_path", "--kind", "qq", "-o", "a.svg"],
            2,
            "expected one kind per figure",
        ),
        (
            ["--kind", "selection_path,qq", "-o", "a.svg"],
            2,
            "'selection_path,qq' is not one of 'manhattan'",
        ),
        (["-o", "a.svg"], 2, "Missing option --kind"),
        (["--kind", "selection_path"], 2, "Missing option --out"),
        (["--kind", "selection_path", "-o", "a.gif"], 2, "must end in one of .svg, .png, .pdf"),
        (["--kind", "selection_path", "-o", "MODEL"], 2, "unknown format"),
        (["--kind", "heatmap", "-o", "a.svg"], 2, "heatmap requires --data FILE"),
        (
            ["--kind", "selection_path", "--data", "b", "-o", "a.svg"],
            2,
            "--data is only valid with --kind heatmap or",
        ),
        (
            ["--kind", "selection_path", "--component", "1", "-o", "a.svg"],
            2,
            "is only valid with --kind loadings",
        ),
        (["--kind", "scatter", "--by", "y", "-o", "a.svg"], 2, "--by requires --data FILE"),
        (
            ["--kind", "scree", "-o", "a.svg"],
            1,
            "Expected an extractor. Got: ProjSe. Hint: use selection_path",
        ),
        (["--kind", "scatter", "-o", "a.svg"], 1, "Expected an extractor. Got: ProjSe."),
        (["--kind", "selection_path", "-o", "none/a.svg"], 1, "no such directory"),
    ],
)
def test_invalid_plot_options(call, models, tmp_path, monkeypatch, given, code, text):
    monkeypatch.chdir(tmp_path)
    model = models / "selector"
    given = [str(model) if word == "MODEL" else word for word in given]
    message = call("plot", model, *given, code=code).stderr
    assert text in message.replace("\n", " ")
    assert not [*tmp_path.iterdir()]


def test_missing_columns_are_named(call, models, table, tmp_path):
    given = ["--data", table(other=[1.0, 2.0]), "--orientation", "samples"]
    out = tmp_path / "a.svg"
    message = call("plot", models / "selector", "--kind", "heatmap", *given, "-o", out, code=1)
    assert "no such column: " in message.stderr
    assert not out.exists()


def test_file_that_is_no_model_is_refused(call, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    given = ["--kind", "selection_path", "-o", tmp_path / "a.svg"]
    assert call("plot", tmp_path / "a.npy", *given, code=1).stderr.startswith("streamsel: error: ")


def test_without_matplotlib(call, models, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = ["--kind", "selection_path", "-o", tmp_path / "a.svg"]
    message = call("plot", models / "selector", *given, code=1).stderr
    assert "pip install 'streamsel[plot]'" in message
    assert message.count("\n") == 1

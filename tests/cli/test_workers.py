"""`--workers` and `--scheduler`: output is identical to that of one process."""

import os
import signal

import numpy as np
import pytest

from streamsel import load
from streamsel.cli.checkpoint import Checkpointer
from streamsel.cli.commands import select
from streamsel.serialization.archive import read_metadata
from streamsel.stream import _parts
from tests.conformance.modes import bits

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a scheduler with two workers in this process."""
    from tests.distributed.clusters import cluster_of_threads

    with cluster_of_threads(2) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def small(monkeypatch):
    """Make parts of a few columns, and waves of a few parts."""
    monkeypatch.setattr(_parts, "PART_BYTES", 1000)
    monkeypatch.setattr(select, "_FAN_IN", 2)


@pytest.fixture
def wide(tmp_path):
    """Return 100 columns, two of them incomplete, as Parquet, .npy and lines of text."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 100)).round(6), rng.normal(size=20)
    X[0, 5] = X[0, 55] = np.nan
    columns = {"text": np.full(20, "a")} | {f"v{j}": x for j, x in enumerate(X.T)} | {"y": y}
    parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    lines = [",".join([name, *map(str, x.tolist())]) for name, x in columns.items()]
    tmp_path.joinpath("lines.csv").write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "wide.npy", X)
    np.save(tmp_path / "y.npy", y)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-k", "5", "--method", "ForwardSelection", "--exact"]])
def test_workers_select_the_same_variables(options, call, files, scheduler, small, tmp_path):
    given = ["select", files / "data.parquet", "--target", "y", "--drop", "labels", *options]
    alone = call(*given, "--out", tmp_path / "alone.csv")
    given += ["--scheduler", scheduler, "-m", tmp_path / "m"]
    result = call(*given, "--out", tmp_path / "parts.csv")
    assert result.rows() == alone.rows()
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "alone.csv").read_text()
    metadata = read_metadata(tmp_path / "m")
    assert metadata["parts"] == metadata["of_parts"] > 8
    assert (metadata["columns_read"], metadata["complete"]) == (40, True)


@pytest.mark.slow
def test_workers_count_skipped_columns_the_same(call, wide, scheduler, small, tmp_path):
    for path, more in (("wide.parquet", []), ("lines.csv", ["--missing", "mean"])):
        given = ["select", wide / path, "--target", "y", "--json", *more]
        alone = call(*given, "-m", tmp_path / "alone")
        result = call(*given, "-m", tmp_path / "parts", "--scheduler", scheduler)
        assert result.json()["selected"] == alone.json()["selected"]
        one, other = (read_metadata(tmp_path / name) for name in ("alone", "parts"))
        for key in ("columns_read", "skipped", "filled", "filled_values"):
            assert one[key] == other[key]
        assert (one["filled_values"] > 1) == bool(more)


@pytest.mark.slow
def test_components_and_their_loadings(call, files, scheduler, small, tmp_path):
    given = ["reduce", files / "data.parquet", "--method", "PCA", "--n-components", "2"]
    given += ["--drop", "y", "--drop", "labels", "--set", "max_loadings=4"]
    alone = call(*given, "--out", tmp_path / "alone.npy")
    result = call(*given, "--out", tmp_path / "parts.npy", "--scheduler", scheduler)
    assert [row.keys() for row in result.rows()] == [row.keys() for row in alone.rows()]
    one, other = (np.load(tmp_path / name) for name in ("alone.npy", "parts.npy"))
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.slow
def test_interrupted_run_is_resumed(call, wide, scheduler, small, tmp_path, monkeypatch):
    given = ["select", wide / "wide.parquet", "--target", "y", "-m"]
    call(*given, tmp_path / "whole", "--scheduler", scheduler)
    note = select._ProgressBefore.note
    with monkeypatch.context() as patch:

        def interrupt(self, summary):
            note(self, summary)
            if summary.n_parts >= 8:
                os.kill(os.getpid(), signal.SIGINT)

        patch.setattr(select._ProgressBefore, "note", interrupt)
        result = call(*given, tmp_path / "model", "--scheduler", scheduler, code=130)
    assert "the model was saved to" in result.stderr
    assert read_metadata(tmp_path / "model")["parts"] == 8
    resumed = ["select", wide / "wide.parquet", "--resume", tmp_path / "model"]
    result = call(*resumed, code=1)
    assert "it must be resumed with one of them" in result.stderr
    call(*resumed, "--scheduler", scheduler)
    assert bits(load(tmp_path / "model")) == bits(load(tmp_path / "whole"))
    whole, model = (read_metadata(tmp_path / name) for name in ("whole", "model"))
    for key in ("columns_read", "parts", "of_parts", "skipped", "complete"):
        assert whole[key] == model[key]


def test_checkpoints(call, wide, scheduler, small, tmp_path, monkeypatch):
    saved, save = [], Checkpointer.save

    def noted(self):
        saved.append(self._run.metadata["parts"])
        return save(self)

    monkeypatch.setattr(Checkpointer, "save", noted)
    given = ["select", wide / "wide.parquet", "--target", "y", "-m", tmp_path / "model"]
    call(*given, "--checkpoint", 0, "--scheduler", scheduler)
    assert saved[:2] == [4, 8]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:9"], "Expected a Dask scheduler at tcp://127.0.0.1:9."),
        (["--workers", 2, "--method", "OSFS"], "merged from parts. Got: OSFS"),
    ],
)
def test_failures_give_one_line_errors(options, message, call, files):
    import dask

    given = ["select", files / "data.parquet", "--target", "y", "--drop", "labels", *options]
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        result = call(*given, code=1)
    assert result.stderr.startswith("streamsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", 2, "--scheduler", "there"], "mutually exclusive"),
        (
            ["--workers", 2, "--list-skipped", "-"],
            "--list-skipped cannot be combined with --workers",
        ),
        (["--workers", 0], "--workers"),
    ],
)
def test_mutually_exclusive_options(options, message, call, files):
    result = call("select", files / "data.parquet", "--target", "y", *options, code=2)
    assert message in result.stderr


@pytest.mark.slow
def test_bad_column_is_named_with_its_file_and_index(call, wide, scheduler, small):
    given = ["select", wide / "wide.npy", "--target-file", wide / "y.npy", "--missing", "error"]
    result = call(*given, "--scheduler", scheduler, code=1)
    assert result.stderr.startswith("streamsel: error: columns ")
    assert "wide.npy: Expected finite numbers in column 5" in result.stderr

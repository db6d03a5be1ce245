"""`--resume`: the same command, repeated any number of times, ends with the result of one run."""

import gzip
import shutil

import numpy as np
import pytest

from streamsel import load
from streamsel.cli import run
from streamsel.cli.commands import select
from streamsel.serialization.archive import read_metadata
from tests.seed import covering

N, P = 20, 100
FORMATS = ["x.parquet", "x.arrow", "x.npy", "lines.csv", "lines.tsv.gz", "samples.csv"]


@pytest.fixture(scope="module")
def columns():
    """Return the columns that are learnt, by name, followed by the target."""
    rng = np.random.default_rng(4)
    columns = {f"v{j}": rng.normal(size=N).round(6) for j in range(P)}
    columns["v3"] = np.where(np.arange(N) == 1, np.nan, columns["v3"])
    columns["v71"] = np.full(N, 2.0)
    return columns | {"y": (columns["v7"] + columns["v60"]).round(6)}


@pytest.fixture(scope="module")
def written(columns, tmp_path_factory):
    """Return the columns in a file of each format, with a target file."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("resume")
    for name in FORMATS:
        write(folder / name, columns)
    return folder


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    """Return a copy of these files that tests may change; blocks have ten columns."""
    from streamsel.stream import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_BYTES", N * 8 * 10)
    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, columns):
    """Write columns to a file in the format of its name; for npy, the target to a separate file."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    if path.suffix == ".npy":
        X = {name: values for name, values in columns.items() if name != "y"}
        np.save(path, np.column_stack(list(X.values())))
        np.save(path.with_name("y.npy"), columns["y"])
    elif path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif path.suffix == ".arrow":
        feather.write_feather(pa.table(columns), path, compression="uncompressed")
    else:
        mark = "\t" if ".tsv" in path.name else ","
        rows = [[name, *values.tolist()] for name, values in columns.items()]
        rows = zip(*rows, strict=True) if path.name.startswith("samples") else rows
        data = "".join(mark.join(map(str, row)) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def line_of(name, *further):
    """Return the command line of a job that is run repeatedly."""
    target = ["--target-file", "y.npy"] if name.endswith(".npy") else ["-t", "y"]
    lying = ["--orientation", name.split(".")[0].replace("lines", "variables")]
    lying = lying if name.startswith(("lines", "samples")) else []
    return ["select", name, *target, *lying, "-k", 5, "-m", "m", "--resume", *further]


def interrupted(call, interrupt_after, line, n=5):
    """Run a command line, and end it by a signal at block n."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(n, patch=patch)
        return call(*line, code=130)


# Repeated runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_same_command_resumes_after_each_interruption(call, folder, interrupt_after, name):
    line = line_of(name, "--json", "-o", "out.csv", "--list-skipped", "left")
    whole = call(*line).json()
    out, left = (folder / "out.csv").read_text(), (folder / "left").read_text()
    for path in ("m", "out.csv", "left"):
        (folder / path).unlink()
    assert "starting a new run" in interrupted(call, interrupt_after, line, 2).stderr
    interrupted(call, interrupt_after, line, 1)
    interrupted(call, interrupt_after, line, 4)
    found = call(*line).json()
    assert found["selected"] == whole["selected"]
    for key in ("columns_read", "skipped", "complete", "fingerprint", "missing", "version"):
        assert found["metadata"][key] == whole["metadata"][key]
    assert (folder / "out.csv").read_text() == out
    assert (folder / "left").read_text() == left


@pytest.mark.parametrize("name", FORMATS)
def test_complete_model_only_writes_outputs_again(call, folder, monkeypatch, name):
    line = line_of(name, "--json", "-o", "out.csv", "--list-skipped", "left")
    first = call(*line)
    out, left = (folder / "out.csv").read_text(), (folder / "left").read_text()
    model, when = (folder / "m").read_bytes(), (folder / "m").stat().st_mtime_ns
    (folder / "out.csv").unlink()
    monkeypatch.setattr(select.Learning, "learn", None)  # not called
    again = call(*line)
    assert again.stdout == first.stdout
    assert "is complete" in again.stderr
    assert ((folder / "out.csv").read_text(), (folder / "left").read_text()) == (out, left)
    assert (folder / "m").stat().st_mtime_ns == when
    call("select", name, "--resume", "m", "--model", "copy", "-o", "out.csv")
    assert (folder / "copy").read_bytes() == model


@pytest.mark.parametrize("method", ["RidgeComponents", "SOSPCA", "PCA", "RandomProjection"])
def test_components_of_a_resumed_run(call, folder, interrupt_after, method):
    from streamsel import registry

    target = [] if method in ("PCA", "RandomProjection") else ["-t", "y"]
    line = [
        "reduce",
        "x.parquet",
        *target,
        "--method",
        method,
        "-q",
        2,
        "--drop",
        "y" if not target else "v0",
    ]
    line += ["-m", "m", "--resume", "-o", "out.npy"]
    call(*line)
    whole = np.load(folder / "out.npy")
    (folder / "m").unlink()
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(4, registry.fetch(method), patch=patch)
        call(*line, code=130)
    call(*line)
    assert np.array_equal(np.load(folder / "out.npy"), whole)
    (folder / "out.npy").unlink()
    call(*line)
    assert np.array_equal(np.load(folder / "out.npy"), whole)


def test_model_file_of_resume(call, folder):
    model = folder / "m"
    assert "--resume requires MODEL" in call("select", "x.npy", "--resume", code=2).stderr
    assert "--force requires --resume" in call(*line_of("x.npy")[:-1], "--force", code=2).stderr
    call(*line_of("x.npy")[:-1], "--resume", "other")
    assert model.exists()
    assert not (folder / "other").exists()


def test_new_run_requires_a_target(call, folder):
    stderr = call("select", "x.parquet", "--resume", "none", code=2).stderr
    assert "no such file; starting a new run" in stderr
    assert "Missing option: --target NAME" in stderr


def test_interrupted_exact_run_restarts(call, folder, monkeypatch):
    from streamsel import ForwardSelection

    line = [*line_of("x.parquet", "--json"), "--max-candidates", 8, "--exact"]
    whole = call(*line)
    model = load("m")
    metadata = read_metadata("m") | {"complete": False}
    from streamsel import save

    save(model, "m", metadata)
    again = call(*line)
    assert "starting from the beginning" in again.stderr
    assert again.json()["selected"] == whole.json()["selected"]
    assert isinstance(load("m"), ForwardSelection)
    assert "is complete" in call(*line).stderr


def test_damaged_model_file_is_not_overwritten(call, folder):
    line = line_of("x.parquet")
    call(*line)
    damaged = bytearray((folder / "m").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "m").write_bytes(damaged)
    stderr = call(*line, code=1).stderr
    assert "damaged" in stderr
    assert stderr.count("\n") == 1
    assert (folder / "m").read_bytes() == damaged


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", 6], "-k 5. Got: -k 6"),
        (["--method", "MRMR"], "--method ForwardSelection. Got: --method MRMR"),
        (["--set", "ridge=2"], "--set ridge 1.0. Got: --set ridge 2.0"),
        (["-t", "v0"], "--target y. Got: --target v0"),
        (["--no-target"], "--no-target no. Got: --no-target yes"),
        (["--target-file", "y.npy"], "--target y. Got: --target none"),
        (["-t", "y", "--target-file", "y.npy"], "--target-file none. Got: --target-file y.npy"),
        (["--target-type", "numeric"], "--target-type auto. Got: --target-type numeric"),
        (["--covariate", "v0"], "--covariate none. Got: --covariate v0"),
        (["--drop", "v0,v1"], "--drop v2. Got: --drop v0,v1"),
        (["--orientation", "samples"], "--orientation variables. Got: --orientation samples"),
        (["--delimiter", ";"], "--delimiter none. Got: --delimiter ;"),
        (["--missing", "mean"], "--missing skip. Got: --missing mean"),
        (["--min-count", 3], "--min-count 0. Got: --min-count 3"),
        (["--max-candidates", 10], "--max-candidates none. Got: --max-candidates 10"),
    ],
)
def test_contradicting_options_are_refused(call, folder, options, message):
    begin = ["select", "lines.csv", "-k", 5, "-t", "y", "--drop", "v2", "-m", "m"]
    call(*begin)
    model = (folder / "m").read_bytes()
    for force in ([], ["--force"]):
        result = call("select", "lines.csv", "--resume", "m", *options, *force, code=1)
        assert f"--resume m: the saved run has {message}" in result.stderr
        assert result.stderr.count("\n") == 1
    assert (folder / "m").read_bytes() == model


def test_consistent_options_are_accepted(call, folder):
    begin = ["select", "lines.csv", "-k", 5, "-t", "y", "--drop", "v2,v4", "-m", "m"]
    first = call(*begin).stdout
    (folder / "moved.csv").write_bytes((folder / "lines.csv").read_bytes())
    for options in ([], ["--set", "k=5"], ["--orientation", "variables"], ["--missing", "skip"]):
        assert call("select", "lines.csv", "--resume", "m", *options).stdout == first
    assert call("select", "moved.csv", "--resume", "m", "--n-jobs", 2).stdout == first


def test_missing_error_may_become_skip(call, folder, columns):
    write(folder / "x.parquet", {**columns, "v3": columns["v4"] + 1, "v55": columns["v3"]})
    line = line_of("x.parquet")
    assert "the model was saved to m" in call(*line, "--missing", "error", code=1).stderr
    found = call(*line, "--missing", "skip", "--json").json()
    assert found["metadata"]["skipped"] == {"missing": 1, "constant": 1}
    assert found["metadata"]["missing"] == "skip"


def test_missing_error_may_become_mean(call, folder, columns):
    write(folder / "x.parquet", {**columns, "v3": columns["v4"] + 1, "v55": columns["v3"]})
    line = line_of("x.parquet")
    call(*line, "--missing", "error", code=1)
    assert load("m").missing == "pass"
    call(*line, "--missing", "mean")
    assert load("m").missing == "mean"


# Changed inputs ----------------------------------------------------------------------------------


def permuted(columns):
    order = np.arange(N)[::-1]
    return {name: values[order] for name, values in columns.items()}


def with_names(columns, names):
    return dict(zip(names, columns.values(), strict=True))


def renamed(columns):
    return with_names(columns, ["w20" if name == "v20" else name for name in columns])


def swapped(columns):
    other = {"v20": "v21", "v21": "v20"}
    return with_names(columns, [other.get(name, name) for name in columns])


def inserted(columns):
    return {"first": columns["v9"], **columns}


def removed(columns):
    return {name: values for name, values in columns.items() if name != "v10"}


def changed(columns):
    values = columns["v12"].copy()
    values[4] = 0.125
    return {**columns, "v12": values}


def moved(columns):
    return {name: values if name == "y" else values + 1 for name, values in columns.items()}


def other_target(columns):
    return {**columns, "y": columns["y"][::-1]}


def longer(columns):
    return {**columns, "more": columns["v9"] + 1}


def narrower(columns):
    return {name: values.astype(np.float32) for name, values in columns.items()}


CHANGES = [permuted, renamed, swapped, inserted, removed, changed, moved, other_target, longer]
# An array has no names.
PAIRS = {
    f"{name} {change.__name__}": (name, change)
    for name in FORMATS
    for change in CHANGES
    if name != "x.npy" or change not in (renamed, swapped)
}
# Two rounds, so that every format is tested with several changes.
TRIED = [
    PAIRS[label]
    for label in sorted(
        covering({label: {*pair} for label, pair in PAIRS.items()}, "changed once")
        | covering({label: {*pair} for label, pair in PAIRS.items()}, "changed again")
    )
]


@pytest.mark.parametrize(("name", "change"), TRIED)
def test_changed_input_is_refused(call, folder, interrupt_after, columns, name, change):
    line = line_of(name)
    interrupted(call, interrupt_after, line)
    write(folder / name, change(columns))
    model = (folder / "m").read_bytes()
    stderr = call(*line, code=1).stderr
    assert "the input has changed since the last run: " in stderr
    assert stderr.count("\n") == 1
    assert (folder / "m").read_bytes() == model
    # With --force the run continues on the changed file.
    forced = call(*line, "--force", "--json")
    assert "warning: --force: " in forced.stderr
    assert forced.json()["metadata"]["forced"]
    assert forced.json()["metadata"]["complete"]
    # From now on the model refers to this file.
    call(*line)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.npy"])
def test_another_dtype_is_refused(call, folder, interrupt_after, columns, name):
    rounded = {name: values.round(1).astype(np.float32) for name, values in columns.items()}
    write(folder / name, {name: values.astype(float) for name, values in rounded.items()})
    interrupted(call, interrupt_after, line_of(name))
    keep_target = {"y": rounded["y"].astype(float)}
    write(folder / name, rounded | keep_target)
    assert "the input has changed since the last run" in call(*line_of(name), code=1).stderr


@pytest.mark.parametrize("name", FORMATS)
def test_changed_number_of_rows_is_always_refused(call, folder, interrupt_after, columns, name):
    interrupted(call, interrupt_after, line_of(name))
    write(folder / name, {name: values[:-1] for name, values in columns.items()})
    assert "expected 20 rows in" in call(*line_of(name), "--force", code=1).stderr


def test_changed_covariate_is_refused(call, folder, interrupt_after, columns):
    line = [*line_of("x.parquet"), "--covariate", "v99"]
    interrupted(call, interrupt_after, line)
    write(folder / "x.parquet", {**columns, "v99": columns["v99"] * 2})
    assert "the values of the target or a covariate have changed" in call(*line, code=1).stderr


def test_changed_target_file_is_refused(call, folder, interrupt_after, columns):
    interrupted(call, interrupt_after, line_of("x.npy"))
    np.save("z.npy", columns["y"])
    line = ["select", "x.npy", "--resume", "m", "--target-file"]
    np.save("y.npy", columns["y"] + 1)
    assert (
        "the values of the target or a covariate have changed"
        in call(*line, "y.npy", code=1).stderr
    )
    call(*line, "z.npy")  # the same values under another name


def test_unchanged_content_with_new_timestamp_is_accepted(call, folder, interrupt_after, columns):
    import os

    line = line_of("x.parquet")
    interrupted(call, interrupt_after, line)
    os.utime("x.parquet", (1, 1))
    assert "x.parquet was modified since" in call(*line).stderr


def test_model_file_without_fingerprint_is_resumed(call, folder, interrupt_after):
    from streamsel import save

    line = line_of("x.parquet", "--json")
    whole = call(*line).json()
    (folder / "m").unlink()
    interrupted(call, interrupt_after, line)
    metadata = read_metadata("m")
    for name in ("fingerprint", "listed", "version", "begun", "saved"):
        del metadata[name]
    save(load("m"), "m", metadata)
    assert call(*line).json()["selected"] == whole["selected"]


@pytest.mark.parametrize("name", ["target", "skipped", "columns_read", "missing"])
def test_corrupt_metadata_are_refused(call, folder, name):
    from streamsel import save

    call(*line_of("x.parquet"))
    save(load("m"), "m", read_metadata("m") | {name: None})
    assert f"corrupt metadata ({name})" in call(*line_of("x.parquet"), code=1).stderr


# Lists of skipped columns ------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_skipped_list_is_truncated_to_the_saved_model(call, folder, interrupt_after, name):
    line = line_of(name, "--list-skipped", "left")
    call(*line)
    whole = (folder / "left").read_text()
    assert "3\tmissing\t" in whole
    (folder / "m").unlink()
    interrupted(call, interrupt_after, line)
    with (folder / "left").open("a") as file:  # as left by a killed run
        file.write("v71\tconstant\tevery")
    call(*line)
    assert (folder / "left").read_text() == whole

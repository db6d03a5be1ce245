"""Errors: one line on stderr with a hint, an exit code, and no traceback."""

import gzip
import os

import numpy as np
import pytest


def failure(result):
    """Return the message, after checking that nothing else was printed."""
    assert not result.stdout
    assert result.stderr.startswith("streamsel: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy", "csv", "tsv.gz"])
def test_missing_file(call, tmp_path, suffix):
    path = tmp_path / f"nothing.{suffix}"
    message = failure(call("select", path, "-t", "y", code=1))
    assert message == f"streamsel: error: {path}: No such file or directory\n"


def test_a_directory(call, tmp_path):
    assert "Is a directory" in failure(call("select", tmp_path, "-t", "y", code=1))


def test_special_file_is_refused(call):
    message = failure(call("select", os.devnull, "-t", "y", code=1))
    assert "not a regular file" in message


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy", "csv", "tsv", "txt"])
def test_empty_file(call, tmp_path, suffix):
    path = write(tmp_path / f"empty.{suffix}", "")
    assert "which is empty" in failure(call("select", path, "-t", "y", code=1))


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_empty_gz(call, tmp_path, orientation):
    path = tmp_path / "empty.csv.gz"
    path.write_bytes(gzip.compress(b""))
    failure(call("select", path, "-t", "y", "--orientation", orientation, code=1))


def test_header_without_rows(call, tmp_path):
    path = write(tmp_path / "header.csv", "a,b,y\n")
    failure(call("select", path, "-t", "y", code=1))


@pytest.mark.parametrize("file", ["data.parquet", "data.feather", "samples.csv", "variables.csv"])
@pytest.mark.parametrize("option", [["-t", "lables"], ["-t", "y", "--drop", "lables"]])
def test_missing_column_suggests_similar_names(call, files, file, option):
    message = failure(call("select", files / file, *option, code=1))
    assert str(files / file) in message
    assert "'lables'" in message
    assert "did you mean 'labels'" in message


def test_missing_column_of_an_array(call, files):
    assert "40" in failure(call("select", files / "data.npy", "-t", "40", code=1))


@pytest.mark.parametrize("name", ["data.xlsx", "data"])
def test_unknown_format(call, tmp_path, name):
    message = failure(call("select", write(tmp_path / name, "PK"), "-t", "y", code=1))
    assert "unknown format" in message
    assert ".parquet" in message


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy"])
def test_content_that_contradicts_its_suffix(call, tmp_path, suffix):
    path = write(tmp_path / f"data.{suffix}", "y,a\n1,2\n")
    assert str(path) in failure(call("select", path, "-t", "y", code=1))


def test_a_truncated_parquet_file(call, files, tmp_path):
    whole = (files / "data.parquet").read_bytes()
    path = tmp_path / "half.parquet"
    path.write_bytes(whole[: len(whole) // 2])
    failure(call("select", path, "-t", "y", code=1))


def test_a_truncated_gz_file(call, files, tmp_path):
    whole = (files / "variables.tsv.gz").read_bytes()
    path = tmp_path / "half.tsv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    failure(call("select", path, "-t", "v0", code=1))


@pytest.mark.parametrize(
    "text",
    ["y,a,b\n1,2,3\n2,3\n3,4,5\n", "y,a,b\n1,2,3\n2,3,4,5\n3,4,5\n"],
    ids=["short", "long"],
)
def test_ragged_line_of_samples(call, tmp_path, text):
    path = write(tmp_path / "ragged.csv", text)
    assert "line 3" in failure(call("select", path, "-t", "y", code=1))


def test_ragged_line_of_variables(call, tmp_path):
    path = write(tmp_path / "ragged.csv", "y,1,2,3\na,1,2,4\nb,1,2\n")
    message = failure(call("select", path, "-t", "y", code=1))
    assert "line 3" in message


def test_a_cell_that_is_not_a_number(call, tmp_path):
    path = write(tmp_path / "cell.csv", "y,1,2,3\na,1,2,4\nb,1,x,3\n")
    message = failure(call("select", path, "-t", "y", "--missing", "error", code=1))
    assert "line 3" in message
    assert "'x'" in message


@pytest.mark.parametrize("what", ["1,1,1", "1,,", "1,inf,2"], ids=["constant", "nan", "inf"])
def test_a_bad_target(call, tmp_path, what):
    path = write(tmp_path / "lines.csv", f"y,{what}\na,1,2,4\n")
    assert "target" in failure(call("select", path, "-t", "y", code=1))


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_a_label_that_is_missing(call, tmp_path, orientation):
    lines = [["y", "u", "NA", "v", "u"], ["a", 1, 2, 4, 4]]
    rows = lines if orientation == "variables" else zip(*lines, strict=True)
    path = write(tmp_path / "x.csv", "".join(",".join(map(str, row)) + "\n" for row in rows))
    given = ["-t", "y", "--orientation", orientation, "--missing-target", "error"]
    message = failure(call("select", path, *given, code=1))
    assert "no target in 1 of 4 rows (first: row 1). Hint: --missing-target drop" in message


def test_a_target_of_labels_that_should_be_numbers(call, files):
    arguments = ["-t", "labels", "--target-type", "numeric"]
    failure(call("select", files / "data.parquet", *arguments, code=1))


@pytest.mark.parametrize("text", ["", "1\n\n2\n", "1\n2\n"], ids=["empty", "gap", "short"])
def test_a_bad_target_file(call, files, tmp_path, text):
    path = write(tmp_path / "y.txt", text)
    message = failure(call("select", files / "data.npy", "--target-file", path, code=1))
    assert str(path) in message


def test_a_missing_target_file(call, files, tmp_path):
    path = tmp_path / "y.txt"
    message = failure(call("select", files / "data.npy", "--target-file", path, code=1))
    assert "No such file" in message


def test_ambiguous_orientation(call, tmp_path):
    path = write(tmp_path / "either.csv", "a,1,2,3\nb,4,5,6\n")
    message = failure(call("select", path, "--no-target", code=1))
    assert "--orientation" in message


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["-t", "y", "-k", "0"], "-k"),
        (["-t", "y", "-k", "-1"], "-k"),
        (["-t", "y", "-k", "2.5"], "-k"),
        (["-t", "y", "-k", "many"], "-k"),
        (["-t", "y", "--method", "ProjSe", "--kernel", "cubic"], "--kernel"),
        (["-t", "y", "--method", "ProjSe", "--exact"], "--max-candidates"),
        (["-t", "y", "--n-jobs", "0"], "--n-jobs"),
        (["-t", "y", "--checkpoint", "9"], "--model"),
        (["-t", "y", "--no-target"], "--no-target"),
        (["-t", "y", "--missing", "drop"], "--missing"),
        (["-t", "y", "--nonsense"], "--nonsense"),
        ([], "--target"),
    ],
)
def test_usage(call, files, arguments, hint):
    result = call("select", files / "data.parquet", *arguments, code=2)
    assert hint in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("q", ["0", "-1", "2.5"])
def test_usage_of_reduce(call, files, q):
    assert "-q" in call("reduce", files / "data.parquet", "-t", "y", "-q", q, code=2).stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "ProjSe", "--kernel", "poly", "--degree", "0"],
        ["--method", "ProjSe", "--kernel", "rbf", "--gamma", "-1"],
        ["--method", "ProjSe", "-k", "30", "--max-candidates", "5"],
    ],
)
def test_parameters_refused_by_the_learner(call, files, options):
    result = call("select", files / "data.parquet", "-t", "y", *options, code=2)
    assert f"Error: {options[4]}: expected " in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("option", ["--out", "--model", "--list-skipped"])
def test_unwritable_outputs_are_detected_before_the_run(call, tmp_path, option):
    # The input does not exist either: the output is checked first.
    arguments = ["select", tmp_path / "none.parquet", "-t", "y", option]
    message = failure(call(*arguments, tmp_path / "no" / "file.csv", code=1))
    assert f"no such directory: {tmp_path / 'no'}" in message
    (tmp_path / "folder.csv").mkdir()
    assert "a directory" in failure(call(*arguments, tmp_path / "folder.csv", code=1))


def test_a_directory_without_permission(call, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streamsel.serialization.atomic._create_locked", refuse)
    arguments = ["select", tmp_path / "none.parquet", "-t", "y", "--model", tmp_path / "m"]
    assert "not writable" in failure(call(*arguments, code=1))


def test_unknown_output_format(call, files, tmp_path):
    arguments = ["-t", "y", "-o", tmp_path / "out.xlsx"]
    message = call("select", files / "data.parquet", *arguments, code=2).stderr
    assert "'.xlsx'" in message
    assert ".parquet" in message


@pytest.mark.parametrize("command", [["info"], ["transform", "FILE"]])
def test_not_a_model(call, files, command):
    arguments = [files / "data.npy"] + [files / "data.npy" for _ in command[1:]]
    assert "data.npy" in failure(call(command[0], *arguments, code=1))


def test_missing_model_file(call, tmp_path):
    assert "No such file" in failure(call("info", tmp_path / "model", code=1))


def test_unfitted_model_cannot_transform(call, files, tmp_path):
    from streamsel import SOSPCA, save

    save(SOSPCA(2), tmp_path / "fresh")
    message = failure(call("transform", tmp_path / "fresh", files / "data.npy", code=1))
    assert "has not learnt" in message


def test_columns_learnt_before_an_error_are_saved(call, tmp_path, rng, monkeypatch):
    """The model keeps the first blocks of a truncated gz file."""
    from streamsel import load
    from streamsel.stream import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 800)
    path, model = tmp_path / "half.tsv.gz", tmp_path / "model"
    lines = [f"v{j}\t" + "\t".join(map(str, rng.normal(size=10))) for j in range(2000)]
    whole = gzip.compress("\n".join(lines).encode())
    path.write_bytes(whole[: len(whole) // 2])
    y = write(tmp_path / "y.txt", "\n".join(map(str, rng.normal(size=10))))
    arguments = ["--target-file", y, "--orientation", "variables", "--model", model]
    message = failure(call("select", path, *arguments, code=1))
    assert f"the model was saved to {model}" in message
    assert load(model).n_columns > 100


def test_a_target_of_another_length(call, files, tmp_path):
    y = tmp_path / "y.npy"
    np.save(y, np.arange(59.0))
    arguments = ["--target-file", y, "--orientation", "variables", "--drop", "labels"]
    message = failure(call("select", files / "variables.csv", *arguments, code=1))
    assert "59" in message
    assert "60" in message

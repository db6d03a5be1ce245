"""Options, metadata, and checks of resume and merge follow from the declared settings."""

from dataclasses import fields

import numpy as np
import pytest

from streamsel.cli.app import app
from streamsel.cli.settings import SETTINGS, RunSettings, stored_settings
from streamsel.serialization.archive import read_metadata
from tests.cli.conftest import write_text

# Model files of earlier versions have these keys: keys may be added, but not renamed.
STORED = {
    "target",
    "target_file",
    "id",
    "missing_target",
    "covariates",
    "weights",
    "orientation",
    "delimiter",
    "decimal",
    "na_values",
    "layer",
    "raw",
    "dropped",
    "missing",
    "min_count",
    "max_skipped",
    "strata",
    "relatedness",
    "loco",
    "max_categories",
    "until",
    "groups",
    "by_position",
    "keep_index",
}


def test_keys_of_model_files(call, files, tmp_path):
    assert {key for _, key, _ in stored_settings()} == STORED
    call("select", files / "data.parquet", "-t", "y", "--drop", "labels", "-m", tmp_path / "m")
    assert set(read_metadata(tmp_path / "m")) >= {"command", "file", *STORED}


@pytest.mark.parametrize("command", ["select", "reduce", "evaluate", "stability"])
def test_every_setting_is_an_option_of_its_commands(command):
    options = {option.name: option for option in app.commands[command].params}
    for name, declared in SETTINGS.items():
        if command in declared.commands:
            assert set(options[name].opts) == set(declared.names)
            assert options[name].section == declared.section
    required = {field.name for field in fields(RunSettings)} - set(SETTINGS)
    assert required == {"command", "arguments", "files", "file", "read_options", "learner", "saved"}


def test_changed_settings_are_stored(call, tmp_path, rng):
    X, y = rng.normal(size=(20, 5)), rng.normal(size=20)
    np.save(tmp_path / "x.npy", X)
    for name in ("one.npy", "other.npy"):
        np.save(tmp_path / name, y)
    line = ["select", tmp_path / "x.npy", "-k", 2, "-m", tmp_path / "m", "--resume"]
    call(*line, "--target-file", tmp_path / "one.npy")
    call(*line, "--target-file", tmp_path / "other.npy", "--max-skipped", 0.5)
    metadata = read_metadata(tmp_path / "m")
    # A complete run is not saved again, so the file still names the first target file.
    assert metadata["target_file"] == str(tmp_path / "one.npy")
    found = call(*line, "--target-file", tmp_path / "other.npy", "--json").json()["metadata"]
    assert found["target_file"] == str(tmp_path / "other.npy")


@pytest.mark.parametrize("weights", [["--weights", "w"], []])
def test_merged_models_keep_shared_settings(call, tmp_path, weights):
    rows = [["y", "w", *(f"v{j}" for j in range(4))]]
    rows += [[i % 5, 1 + i % 2, *((i * k) % 7 for k in range(1, 5))] for i in range(12)]
    for name, columns in (("a", (0, 1, 2, 3)), ("b", (0, 1, 4, 5))):
        write_text(tmp_path / f"{name}.csv", [[row[j] for j in columns] for row in rows], ",")
        given = ["-t", "y", "-k", 1, *(weights or ["--drop", "w"]), "-m", tmp_path / f"{name}.m"]
        call("select", tmp_path / f"{name}.csv", *given, "--target-type", "numeric")
    call("merge", tmp_path / "a.m", tmp_path / "b.m", "-o", tmp_path / "m")
    metadata = read_metadata(tmp_path / "m")
    shared = {key for _, key, declared in stored_settings() if declared.shared}
    assert shared <= set(metadata)
    assert metadata["weights"] == (weights[1] if weights else None)
    assert "max_skipped" not in metadata


def test_log_settings_do_not_persist_between_calls(call, files):
    """Nothing of an earlier call remains."""
    line = ["select", files / "data.parquet", "-t", "y", "--drop", "labels", "-k", 2]
    assert call(*line, "--quiet").target == ""
    assert call(*line, "--log-format", "json").stderr.startswith("{")
    again = call(*line)
    assert again.target.startswith("numeric")
    assert again.stderr == ""


def test_help_states_max_memory_once(call):
    for command in ("evaluate", "stability"):
        shown = " ".join(call(command, "--help").stdout.split())
        assert shown.count(" MB ") == 1
        assert "[default: 512" in shown

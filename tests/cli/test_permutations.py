"""`--permutations` and `--strata`: the null distribution of Python, also after a resumed run."""

import numpy as np
import pytest

from streamsel import ForwardSelection, SelectKBest, load

N, P = 60, 30


@pytest.fixture
def cells():
    """Return counts with a rare class, in batches."""
    rng = np.random.default_rng(7)
    columns = {f"g{j}": rng.poisson(0.4, size=N) for j in range(P)}
    kind = np.where(np.arange(N) < 9, "rare", "common")
    columns["g4"] = columns["g4"] + 3 * (kind == "rare")
    return columns | {"kind": kind, "batch": np.array([*"uvw"] * (N // 3))}


def model_of(cells, rows=None, cls=ForwardSelection, **parameters):
    rows = np.ones(N, dtype=bool) if rows is None else rows
    model = cls(3, permutations=99, **parameters)
    model.learn_target(cells["kind"][rows], strata=cells["batch"][rows])
    names = [f"g{j}" for j in range(P)]
    model.learn_columns(np.column_stack([cells[name][rows] for name in names]), names=names)
    return model


@pytest.mark.parametrize("further", [[], ["--workers", 1]], ids=["alone", "workers"])
def test_permutations_equal_the_python_model(call, table, cells, further):
    options = ["-t", "kind", "-k", 3, "--permutations", 99, "--strata", "batch", *further]
    found = call("select", table(**cells), *options, "--json").json()
    expected = model_of(cells).report()
    assert found["n_permutations"] == 99
    assert found["noise_floor"] == expected.noise_floor
    p_values = [row["p_adjusted"] for row in found["selected"]]
    assert p_values == [row["p_adjusted"] for row in expected.results]
    rows = call("select", table(**cells), *options).rows()
    assert (rows[0]["name"], float(rows[0]["p_adjusted"])) == ("g4", 0.01)


def test_strata_of_rows_without_a_target_may_be_missing(call, table, cells, tmp_path):
    gaps = {name: values.astype(object) for name, values in cells.items()}
    for name in ("kind", "batch"):
        gaps[name][[5, 40]] = ""
    options = ["-t", "kind", "-k", 3, "--permutations", 99, "--strata", "batch"]
    line = ["select", table(**gaps), *options]
    found = call(*line, "--json", "-m", tmp_path / "m").json()
    model = model_of(cells, np.delete(np.arange(N), [5, 40]))
    assert found["noise_floor"] == model.noise_floor()
    # A resumed run has the same strata.
    assert load(tmp_path / "m").noise_floor() == model.noise_floor()
    call(*line, "-m", tmp_path / "m", "--resume")
    other = [word if word != "batch" else "g1" for word in line]
    stderr = call(*other, "-m", tmp_path / "m", "--resume", code=1).stderr
    assert "the saved run has --strata batch. Got: --strata g1" in stderr
    gaps["batch"][9] = ""
    stderr = call(*line[:1], table(**gaps), *options, code=1).stderr
    assert "stratum batch: missing in 1 of 58 rows" in stderr


def test_parts_with_permutations_are_merged(call, table, cells, tmp_path):
    first = {name: v for name, v in cells.items() if name not in {f"g{j}" for j in range(15)}}
    second = {name: v for name, v in cells.items() if name not in {f"g{j}" for j in range(15, P)}}
    for name, part in (("a", second), ("b", first)):
        options = ["-t", "kind", "-k", 3, "--permutations", 99, "--strata", "batch"]
        call("select", table(f"{name}.csv", **part), *options, "-m", tmp_path / name)
    call("merge", tmp_path / "a", tmp_path / "b", "--along", "columns", "-o", tmp_path / "m")
    assert load(tmp_path / "m").noise_floor() == model_of(cells).noise_floor()


def test_invalid_permutation_options(call, table, cells):
    path = table(**cells)
    for options, message in (
        (["--strata", "batch"], "--strata requires --permutations, for example 1000"),
        (["--permutations", 99, "--strata", "kind"], "--strata kind: already used as target"),
        (["--permutations", -1], "--permutations: expected an int in the range [0, "),
        (
            ["--permutations", 9, "--method", "ProjSe", "--kernel", "rbf"],
            "Expected kernel='linear' with permutations",
        ),
    ):
        stderr = call("select", path, "-t", "kind", "-k", 3, *options, code=2).stderr
        assert message in stderr
    options = ["-t", "kind", "--permutations", 9, "--strata", "bach"]
    stderr = call("select", path, *options, code=1).stderr
    assert "no such column: 'bach'" in stderr


def test_p_values_are_permutation_p_values(call, table, cells):
    options = ["--method", "SelectKBest", "--set", "fdr=0.2", "--permutations", 99]
    given = ["-t", "kind", "--drop", "batch", *options, "--json"]
    found = call("select", table(**cells), *given).json()
    model = SelectKBest(fdr=0.2, permutations=99)
    model.learn_target(cells["kind"])
    model.learn_columns(np.column_stack([cells[f"g{j}"] for j in range(P)]))
    assert [row["p_value"] for row in found["selected"]] == list(model.p_values.values())

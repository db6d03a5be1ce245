"""Survival times and row weights, from FILE or from the target's file, joined by `--id`."""

import numpy as np
import pytest

from streamsel import ForwardSelection, load
from streamsel.serialization.archive import read_metadata
from tests.cli.conftest import write_text

N, P = 60, 10


@pytest.fixture(scope="module")
def study():
    """Return censored survival times that g4 shortens, weights, and genes."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N, P)).round(4)
    months = (np.exp(-X[:, 4]) * rng.exponential(size=N)).round(4)
    columns = {
        "sample": [f"S{j:02}" for j in range(N)],
        "months": months,
        "died": (rng.random(N) < 0.7).astype(int),
        "w": rng.integers(1, 4, N).astype(float),
    }
    return columns | {f"g{j}": X[:, j] for j in range(P)}


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    """Return the study in one file; the genes alone; and the patients in another order."""
    folder = tmp_path_factory.mktemp("given")
    order = np.random.default_rng(2).permutation(N)
    genes = ["sample", *(f"g{j}" for j in range(P))]
    tables = {
        "all.csv": study,
        "genes.csv": {name: study[name] for name in genes},
        "patients.csv": {
            name: np.asarray(study[name])[order] for name in ("sample", "months", "died", "w")
        },
    }
    for name, columns in tables.items():
        rows = [
            list(columns),
            *zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True),
        ]
        write_text(folder / name, rows, ",")
    lines = [["gene", *study["sample"]], *([name, *study[name].tolist()] for name in genes[1:])]
    write_text(folder / "genes.tsv", lines, "\t")
    return folder


def expected(study, survival, weighted):
    model = ForwardSelection(4, target_type="survival") if survival else ForwardSelection(4)
    y = np.column_stack([study["months"], study["died"]]) if survival else study["months"]
    model.learn_target(y, weights=study["w"] if weighted else None)
    names = [f"g{j}" for j in range(P)]
    model.learn_columns(np.column_stack([study[name] for name in names]), names=names)
    return model.report().results


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("survival", [False, True])
@pytest.mark.parametrize("file", ["all.csv", "genes.csv", "genes.tsv"])
def test_survival_and_weights_equal_the_python_model(call, study, folder, file, survival, weighted):
    given = ["--target", "months", "-k", 4, "--id", "sample"]
    given += ["--event", "died"] if survival else ["--drop", "died"] if file == "all.csv" else []
    given += ["--weights", "w"] if weighted else ["--drop", "w"] if file == "all.csv" else []
    given += [] if file == "all.csv" else ["--target-file", folder / "patients.csv"]
    found = call("select", folder / file, *given, "--json").json()["selected"]
    known = expected(study, survival, weighted)
    assert [row["name"] for row in found] == [row["name"] for row in known]
    np.testing.assert_allclose(
        [row["relevance"] for row in found], [row["relevance"] for row in known], rtol=1e-12
    )


def test_resumed_run_has_the_same_event_and_weights(call, study, folder, tmp_path):
    model = tmp_path / "m"
    given = ["select", folder / "all.csv", "-t", "months", "--event", "died", "--weights", "w"]
    call(*given, "-m", model)
    metadata = read_metadata(model)
    assert (metadata["target"], metadata["weights"]) == (["months", "died"], "w")
    assert load(model).target_type == "survival"
    again = ["select", folder / "all.csv", "-m", model, "--resume"]
    call(*again)
    call(*again, "-t", "months", "--event", "died", "--weights", "w")
    assert "--weights w. Got: --weights g1" in call(*again, "--weights", "g1", code=1).stderr
    assert "--target months,died" in call(*again, "-t", "months", code=1).stderr
    # Other weights give another model.
    other = [
        list(study),
        *map(list, zip(*(np.asarray(v).tolist() for v in study.values()), strict=True)),
    ]
    other[1][3] += 1
    write_text(tmp_path / "other.csv", other, ",")
    call("select", tmp_path / "other.csv", "-m", model, "--resume", code=1)


def test_invalid_event_and_weights_options(call, study, folder):
    given = ["select", folder / "all.csv", "-t", "months"]
    assert (
        "--event requires exactly one --target"
        in call(*given, "-t", "w", "--event", "died", code=2).stderr
    )
    assert "survival" in call(*given, "--event", "died", "--target-type", "class", code=2).stderr
    assert "already used as target" in call(*given, "--weights", "months", code=2).stderr
    assert "no such column: 'v'" in call(*given, "--weights", "v", code=1).stderr
    assert "weights that are 0, or from 1e-100" in call(*given, "--weights", "g1", code=1).stderr
    error = call(*given, "--event", "w", code=1).stderr
    assert error.count("\n") == 1
    assert (
        "takes no target"
        in call("reduce", *given[1:], "--event", "died", "--method", "PCA", code=2).stderr
    )


def test_missing_weight_is_refused(call, table):
    rng = np.random.default_rng(0)
    file = table(y=rng.normal(size=5).tolist(), g=rng.normal(size=5).tolist(), w=[1, 2, "", 1, 1])
    error = call("select", file, "-t", "y", "--weights", "w", code=1).stderr
    assert "weight w: missing in 1 of 5 rows" in error

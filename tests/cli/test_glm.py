"""`--target-type binary` and `count`."""

import numpy as np
import pytest

from streamsel import SelectKBest


@pytest.fixture
def study(rng, table):
    X, age = rng.normal(size=(120, 20)), rng.normal(size=120)
    ill = np.where(rng.random(120) < 1.0 / (1.0 + np.exp(1.0 - age - 2.0 * X[:, 3])), "ill", "well")
    visits = rng.poisson(np.exp(0.3 * age + 0.5 * X[:, 3]))
    columns = {f"v{j}": x for j, x in enumerate(X.T.tolist())}
    path = table(**columns, age=age.tolist(), ill=ill.tolist(), visits=visits.tolist())
    return path, X, age, {"binary": ill, "count": visits}


@pytest.mark.parametrize(
    ("kind", "name", "other"), [("binary", "ill", "visits"), ("count", "visits", "ill")]
)
def test_score_tests_of_a_table(call, study, kind, name, other):
    path, X, age, y = study
    options = ["--target", name, "--target-type", kind, "--covariate", "age", "--drop", other]
    command = ["select", path, *options, "--orientation", "samples", "--method", "SelectKBest"]
    found = call(*command, "-k", 4)
    model = SelectKBest(k=4, target_type=kind)
    model.learn_target(y[kind], covariates=age)
    model.learn_columns(X)
    rows = found.rows()
    assert [row["name"] for row in rows] == [f"v{j}" for j in model.selected]
    p_values = [float(row["p_value"]) for row in rows]
    assert p_values == pytest.approx([*model.p_values.values()], rel=1e-4)
    assert found.target == model.report().target

"""`select --set pairwise=true`: genotypes with missing calls are kept."""

import numpy as np
import pytest
from bed_reader import to_bed

import streamsel
from streamsel import SelectKBest
from streamsel.stream import iter_bed


def test_genotypes_with_missing_calls(call, tmp_path):
    rng, n, p = np.random.default_rng(3), 80, 60
    y = rng.normal(size=n)
    G = rng.binomial(2, 0.3, size=(n, p)).astype(np.int8)
    G[:, 11] = np.clip(np.round(y + 1.0), 0, 2)
    G[rng.random(G.shape) < 0.1] = -127
    path = tmp_path / "x.bed"
    ids = [f"s{i}" for i in range(n)]
    to_bed(path, np.asfortranarray(G), properties={"iid": ids, "pheno": [str(v) for v in y]})
    X = np.where(G < 0, np.nan, G)
    model = SelectKBest(k=5, pairwise=True)
    model.learn_target(y)
    model.learn_columns(iter_bed(path, missing="keep"))
    by_index = SelectKBest(k=5, pairwise=True)
    by_index.learn_target(y)
    by_index.learn_columns(X)
    assert [*model.scores.values()] == pytest.approx([*by_index.scores.values()], rel=1e-12)
    saved = tmp_path / "model"
    for options in ([], ["--missing", "keep"]):
        arguments = ["--target", "phenotype", "--method", "SelectKBest", "-k", 5, *options]
        call("select", path, *arguments, "--set", "pairwise=true", "-m", saved)
        found = streamsel.load(saved)
        assert found.selected == model.selected
        assert [*found.scores.values()] == pytest.approx([*model.scores.values()], rel=1e-6)
    stderr = call("select", path, *arguments, code=2).stderr
    assert "does not accept missing values" in stderr

"""Regression tests of selections in stages: candidate solutions, certificates, merges of pools."""

import contextlib
import copy
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from streamsel import MRMR, ForwardSelection, Lasso, ProjSe, load, save
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream


@pytest.mark.parametrize("learner", [ForwardSelection, MRMR, Lasso])
def test_merged_pools_that_exceed_the_limit(learner):
    X = np.random.default_rng(0).normal(size=(60, 12))
    parts = learner(k=3, max_candidates=6), learner(k=3, max_candidates=6)
    for part, indices in zip(parts, (range(6), range(6, 12)), strict=True):
        part.learn_target(X[:, 0] + 0.1 * X[:, 8])
        part.learn_columns(X[:, list(indices)], indices)
    whole = learner(k=3)
    whole.learn_target(X[:, 0] + 0.1 * X[:, 8])
    whole.learn_columns(X)
    parts[0].merge(parts[1])
    assert parts[0].selected == whole.selected
    assert parts[0].selected[: parts[0].n_certified] == whole.selected[: parts[0].n_certified]


@pytest.mark.parametrize("learner", [ForwardSelection, MRMR])
def test_a_discarded_name_returns_as_another_variable(learner):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(14, 200)), rng.normal(size=14)
        named, numbered = (learner(k=5, max_candidates=6) for _ in range(2))
        named.learn_target(y)
        numbered.learn_target(y)
        for j in range(200):
            try:
                named.learn_column(f"a{j % 25}", X[:, j])
            except ValueError:
                continue  # the name is in use
            numbered.learn_column(j, X[:, j])
        assert named.selected == [f"a{j % 25}" for j in numbered.selected]


@pytest.mark.parametrize(("learner", "seed"), [(ForwardSelection, 4), (MRMR, 42), (Lasso, 97)])
def test_repeated_names_are_refused_in_second_passes(learner, seed):
    """A second pass is refused if two columns have the same name."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 100)), rng.normal(size=8)

    def blocks():
        for start in range(0, 100, 10):
            names = [f"a{j % 80}" for j in range(start, start + 10)]
            yield Block(names, X[:, start : start + 10])

    model = learner(k=3, max_candidates=3, exact=True)
    model.learn_target(y)
    with pytest.raises(ValueError, match="as the name of two columns"):
        model.learn_columns(ColumnStream(blocks, n_rows=8))
    assert model.n_columns == 0


def test_interrupted_passes_give_copies_the_same_certificates():
    """A copy of a model after an interrupted pass has the same, correct certificates."""
    rng, most = np.random.default_rng(1), 0
    for _ in range(40):
        n, p, c, k = (int(rng.integers(*ends)) for ends in ((15, 30), (60, 120), (3, 6), (4, 7)))
        X, Y = rng.normal(size=(n, p)), rng.normal(size=(n, c))
        batch = ProjSe(k)
        batch.learn_target(Y)
        batch.learn_columns(X)
        state = SimpleNamespace(reads=0, stop=int(rng.integers(0, p // 5)))

        def blocks(X=X, p=p, state=state):
            state.reads += 1
            for i, start in enumerate(range(0, p, 5)):
                if state.reads >= 2 and i == state.stop:
                    raise KeyboardInterrupt
                names = range(start, min(p, start + 5))
                yield Block(names, X[:, start : start + 5])

        model = ProjSe(k, max_candidates=k + 2, exact=True)
        model.learn_target(Y)
        with contextlib.suppress(KeyboardInterrupt):
            model.learn_columns(ColumnStream(blocks, n_rows=n))
        twin = copy.deepcopy(model)
        assert twin.n_certified == model.n_certified
        assert twin.selected[: twin.n_certified] == batch.selected[: twin.n_certified]
        most = max(most, twin.n_certified)
    assert most > 0


def test_wrappers():
    X = np.random.default_rng(0).normal(size=(60, 12))
    parts = ForwardSelection(k=1, estimator=Ridge()), ForwardSelection(k=1, estimator=Ridge())
    for part, indices in zip(parts, (range(6), range(6, 12)), strict=True):
        part.learn_target(X[:, 8])
        part.learn_columns(X[:, list(indices)], indices)
    parts[0].merge(parts[1])
    assert parts[0].selected == [8]
    assert parts[0].n_certified == 0
    with pytest.raises(ValueError, match="same parameters"):
        parts[0].merge(ForwardSelection(k=1, estimator=Ridge(alpha=2.0)))
    with pytest.raises(ValueError, match="scikit-learn estimator"):
        ForwardSelection(k=1, estimator=Ridge)
    with pytest.raises(ValueError, match="exact=False"):
        ForwardSelection(k=1, estimator=Ridge(), exact=True)


@pytest.mark.slow
def test_folds_are_those_of_scikit_learn(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 12))
    y = X[:, 8] + 0.5 * X[:, 3] + 0.1 * X[:, 1]
    splits = [*KFold(4).split(X)]
    models = [ForwardSelection(2, estimator=Ridge(), cv=cv) for cv in (4, KFold(4), splits)]
    for model in models:
        model.learn_target(y)
        model.learn_columns(X)
    expected = cross_val_score(Ridge(), X[:, [8]] / X[:, 8].std(), y, cv=4).mean()
    for model in models:
        assert model.selected == [8, 3]
        assert model.scores[8] == pytest.approx(expected, rel=1e-6)
        assert copy.deepcopy(model).scores == model.scores
    assert models[2].clone()._get_params()["cv"] == models[2].cv
    alone = ForwardSelection(2, cv=splits)
    save(alone, tmp_path / "m")
    assert load(tmp_path / "m").cv == alone.cv
    parts = [ForwardSelection(2, estimator=Ridge(), cv=splits) for _ in range(2)]
    for part, indices in zip(parts, (range(6), range(6, 12)), strict=True):
        part.learn_target(y)
        part.learn_columns(X[:, list(indices)], indices)
    parts[0].merge(parts[1])
    assert parts[0].selected == [8, 3]


@pytest.mark.filterwarnings("ignore")
def test_an_estimator_that_always_fails():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = ForwardSelection(k=1, estimator=KNeighborsClassifier(500), target_type="class")
    model.learn_target(np.arange(60) % 2)
    model.learn_columns(X)
    with pytest.raises(ValueError, match="always fails"):
        _ = model.selected

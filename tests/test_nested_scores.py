"""Nested folds in one pass, against loops of models that learn and predict separately."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamsel import OSFS, PCA, PLS, ForwardSelection, ProjSe, RandomProjection, SelectKBest
from streamsel.evaluate import nested_scores
from streamsel.evaluate._baselines import RandomColumns
from streamsel.evaluate._models import fold_interval
from streamsel.stream import iter_columns
from tests.seed import some

N, P = 60, 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P))
Y = X[:, 3] - X[:, 8] + 0.8 * RNG.normal(size=N)
PENALTIES = np.logspace(-2, 5, 15)
LOGISTIC = GridSearchCV(LogisticRegression(max_iter=1000), {"C": 1.0 / PENALTIES[::2]}, cv=3)
LABELS = np.where(Y > 0.7, "high", np.where(Y > -0.7, "middle", "low"))


def learnt(learner, y, rows, **settings):
    model = learner.clone(settings)
    model.learn_target(y[rows])
    model.learn_columns(X[rows])
    return model


@pytest.mark.slow
def test_scores_equal_the_nested_loop():
    sizes, logistic = [1, 3], make_pipeline(StandardScaler(), LOGISTIC)

    def judged(k, train, test):
        names = learnt(ForwardSelection(), LABELS, train, k=k).selected
        fitted = logistic.fit(X[train][:, names], LABELS[train])
        predicted = fitted.predict(X[test][:, names])
        chances = fitted.predict_proba(X[test][:, names])
        auc = roc_auc_score(LABELS[test], chances, multi_class="ovr")
        return names, balanced_accuracy_score(LABELS[test], predicted), auc

    found = nested_scores(ForwardSelection(), X, LABELS, sizes=sizes, n_folds=2, n_repeats=2)
    splits = [
        pair
        for repeat in range(2)
        for pair in StratifiedKFold(2, shuffle=True, random_state=repeat).split(X, LABELS)
    ]
    assert len(found.folds) == len(splits) == 4
    # The loop takes seconds: two of the four folds, others for every seed.
    for i in some(range(4), 2, "folds"):
        train, test = splits[i]
        inner = StratifiedKFold(3, shuffle=True, random_state=i // 2)
        means = {
            k: np.mean(
                [judged(k, train[a], train[b])[1] for a, b in inner.split(train, LABELS[train])]
            )
            for k in sizes
        }
        best = max(sizes, key=means.__getitem__)
        names, balanced, auc = judged(best, train, test)
        fold = found.folds[i]
        assert (fold.size, fold.names) == (best, names)
        assert (fold.n_train, fold.n_test) == (len(train), len(test))
        assert fold.scores["selected"]["balanced_accuracy"] == pytest.approx(balanced, abs=1e-12)
        assert fold.scores["selected"]["auc"] == pytest.approx(auc, abs=1e-12)
    assert found.score().value == np.mean(
        [fold.scores["selected"]["balanced_accuracy"] for fold in found.folds]
    )


def test_a_frame_of_one_column_is_a_single_target():
    settings = {"sizes": [2], "n_folds": 2, "seed": 1}
    codes = np.unique(LABELS, return_inverse=True)[1]
    found = nested_scores(SelectKBest(), X, pd.DataFrame({"y": codes}), **settings)
    assert found.score().value == nested_scores(SelectKBest(), X, codes, **settings).score().value


def test_numeric_targets_and_custom_models():
    knn = KNeighborsRegressor(3)
    found = nested_scores(SelectKBest(k=2), X, Y, model=knn, n_folds=4, seed=2)
    everything = []
    for fold, (train, test) in zip(
        found.folds, KFold(4, shuffle=True, random_state=2).split(X), strict=True
    ):
        names = learnt(SelectKBest(k=2), Y, train).selected
        predicted = knn.fit(X[train][:, names], Y[train]).predict(X[test][:, names])
        assert (fold.size, fold.names) == (None, names)
        assert fold.scores["selected"]["r2"] == pytest.approx(r2_score(Y[test], predicted))
        predicted = knn.fit(X[train], Y[train]).predict(X[test])
        everything.append(r2_score(Y[test], predicted))
        mean = np.full(len(test), Y[train].mean())
        assert fold.scores["nothing"]["r2"] == pytest.approx(r2_score(Y[test], mean))
    assert found.score("all").value == pytest.approx(np.mean(everything))


@pytest.mark.parametrize(
    "learner", [PLS(), RandomProjection(), OSFS()], ids=lambda each: type(each).__name__
)
def test_unstored_columns_give_the_same_scores(learner):
    sizes = None if isinstance(learner, OSFS) else [2]
    settings = {"sizes": sizes, "n_folds": 2, "model": "knn"}
    stored = nested_scores(learner, X, LABELS, **settings)
    stream = iter_columns(lambda: enumerate(X.T))
    sparse = nested_scores(learner, scipy.sparse.csc_array(X), LABELS, **settings)
    read = nested_scores(learner, stream, LABELS, max_bytes=1000, **settings)
    assert stored.all_excluded_reason is None
    assert (
        read.all_excluded_reason == "40 columns of 60 rows take 0 MB, more than the limit of 0 MB"
    )
    assert stored.variable_sets == ["selected", "random", "all", "nothing"]
    assert read.variable_sets == ["selected", "random", "nothing"]
    for one, other, third in zip(stored.folds, read.folds, sparse.folds, strict=True):
        assert one.names == other.names == third.names
        for variables in read.variable_sets:
            assert one.scores[variables] == pytest.approx(other.scores[variables])
            assert one.scores[variables] == pytest.approx(third.scores[variables])


@pytest.mark.slow
def test_components_are_learnt_from_training_rows():
    found = nested_scores(PLS(), X, LABELS, sizes=[2], n_folds=3)
    assert found.parameters["n_components"] == 2
    logistic = make_pipeline(StandardScaler(), LOGISTIC)
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    for fold, (train, test) in zip(found.folds, splitter.split(X, LABELS), strict=True):
        model = learnt(PLS(), LABELS, train, n_components=2)
        model.learn_loadings(X[train])
        logistic.fit(model.transform_many(X[train]), LABELS[train])
        predicted = logistic.predict(model.transform_many(X[test]))
        assert fold.scores["selected"]["accuracy"] == pytest.approx(
            np.mean(predicted == LABELS[test])
        )


@pytest.mark.slow
def test_noise_has_no_predictive_score():
    noise = np.random.default_rng(1).permutation(np.repeat(["a", "b"], N // 2))
    found = nested_scores(SelectKBest(), X, noise, sizes=[5], n_repeats=2)
    assert found.difference("nothing").low < 0
    assert found.score("nothing").value == 0.5


def test_the_interval_is_that_of_nadeau_and_bengio():
    values = [0.8, 0.6, 0.7, 0.9, 0.5]
    mean, low, high = fold_interval(values, 0.25, 0.95, (-math.inf, math.inf))
    # The variance is 0.025 · (1/5 + 1/4); the quantile of t with 4 degrees of freedom is 2.7764451.
    margin = 2.7764451051977987 * math.sqrt(0.45 * 0.025)
    assert (mean, low, high) == pytest.approx((0.7, 0.7 - margin, 0.7 + margin))
    assert fold_interval(values, 0.25, 0.95, (0.5, 0.9)) == pytest.approx((0.7, 0.5, 0.9))


@pytest.mark.slow
def test_intervals_are_within_the_range_of_scores():
    found = nested_scores(SelectKBest(k=2), X, np.where(X[:, 3] > 0, "a", "b"))
    for score in found.scores:
        for variables in found.variable_sets:
            _, low, high = found.score(variables, score)
            assert 0.0 <= low <= high <= 1.0
    assert nested_scores(SelectKBest(k=2), X, X[:, 3]).score().high <= 1.0


@pytest.mark.slow
def test_all_variables_have_a_tuned_penalty():
    """All variables have the penalty of ridge regression, and are not worse than the mean."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 800))
    y = wide[:, 3] + rng.normal(size=60)
    found = nested_scores(SelectKBest(k=2), wide, y, n_folds=3)
    assert found.score("all").value > -0.3
    splits = KFold(3, shuffle=True, random_state=0).split(wide)
    for fold, (train, test) in zip(found.folds, splits, strict=True):
        ridge = make_pipeline(StandardScaler(), RidgeCV(PENALTIES)).fit(wide[train], y[train])
        expected = r2_score(y[test], ridge.predict(wide[test]))
        assert fold.scores["all"]["r2"] == pytest.approx(expected, abs=1e-6)
    labels = np.where(y > 0, "a", "b")
    found = nested_scores(SelectKBest(k=2), wide, labels, n_folds=3)
    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(wide, labels)
    for fold, (train, test) in zip(found.folds, splits, strict=True):
        logistic = make_pipeline(StandardScaler(), LOGISTIC).fit(wide[train], labels[train])
        expected = np.mean(logistic.predict(wide[test]) == labels[test])
        assert fold.scores["all"]["accuracy"] == pytest.approx(expected)


def test_covariates_are_features_of_every_model():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(N, 1))
    y = Y + 5.0 * Z[:, 0]
    found = nested_scores(SelectKBest(k=2), X, y, covariates=Z, n_folds=3)
    splits = KFold(3, shuffle=True, random_state=0).split(X)
    for fold, (train, test) in zip(found.folds, splits, strict=True):
        model = SelectKBest(k=2)
        model.learn_target(y[train], covariates=Z[train])
        model.learn_columns(X[train])
        assert fold.names == model.selected
        for variables, columns in (("nothing", []), ("selected", fold.names)):
            features = np.column_stack([X[:, columns], Z])
            ridge = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
            predicted = ridge.fit(features[train], y[train]).predict(features[test])
            assert fold.scores[variables]["r2"] == pytest.approx(r2_score(y[test], predicted))


@pytest.mark.parametrize("learner", [ForwardSelection(), PLS(max_loadings=10)])
def test_several_passes_find_the_same(learner):
    n_passes = 0

    def columns():
        nonlocal n_passes
        n_passes += 1
        return enumerate(X.T)

    settings = {"sizes": [1, 2], "n_folds": 3, "n_inner": 2, "model": "knn"}
    expected = nested_scores(learner, X, LABELS, **settings)
    stream = iter_columns(columns)
    # Too little memory for a copy.
    found = nested_scores(learner, stream, LABELS, max_bytes=X.nbytes - 1, **settings)
    assert n_passes > 2
    for one, other in zip(expected.folds, found.folds, strict=True):
        assert one.names == other.names
        assert one.scores["selected"] == pytest.approx(other.scores["selected"])


def test_intervals_stay_inside_the_range_of_the_score():
    assert fold_interval([1.0, 0.9, 1.0], 0.5, 0.95, (0.0, 1.0)).high == 1.0
    y = X[:, 3] > 0
    found = nested_scores(SelectKBest(k=1), X, np.where(y, "a", "b"), n_folds=3)
    for score in found.scores:
        for contestant in found.variable_sets:
            value, low, high = found.score(contestant, score)
            assert 0.0 <= low <= value <= high <= 1.0
    assert found.score().high == 1.0
    number = nested_scores(SelectKBest(k=1), X, X[:, 3] + 0.1 * X[:, 4], n_folds=3)
    assert number.score().high <= 1.0
    assert number.score("random").low < 0.0


def test_differences_are_paired():
    found = nested_scores(SelectKBest(k=2), X, Y)
    mine, lots = (
        [f.scores[variables]["r2"] for f in found.folds] for variables in ("selected", "random")
    )
    share = np.mean([f.n_test / f.n_train for f in found.folds])
    limits = (-math.inf, math.inf)
    assert found.difference("random") == fold_interval(np.subtract(mine, lots), share, 0.95, limits)


def test_random_columns_are_uniform_and_ignore_blocks():
    counts = np.zeros(50)
    for seed in range(400):
        whole, pieces = RandomColumns(5, seed), RandomColumns(5, seed)
        whole.record(range(50))
        for start, stop in [(0, 1), (1, 20), (20, 50)]:
            pieces.record(range(start, stop))
        assert whole.sample(9) == pieces.sample(9)
        assert len(set(whole.sample(9))) == 5
        counts[whole.sample(9)] += 1
    # Each is drawn 40 times on average; six standard deviations are 36.
    assert counts.min() > 4
    assert counts.max() < 76


def test_json_has_all_results():
    found = nested_scores(SelectKBest(), X, LABELS, sizes=[2, 1], model="knn")
    assert "k" not in found.parameters  # it is one of the sizes
    decoded = json.loads(json.dumps(found.as_dict()))
    assert decoded["sizes"] == [1, 2]
    assert [row["variables"] for row in decoded["scores"][::3]] == found.variable_sets
    assert decoded["scores"][0]["difference"] is None
    assert decoded["scores"][3]["difference"]["value"] == found.difference("random").value
    assert len(decoded["folds"]) == 5


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="read more than once"):
        nested_scores(ProjSe(), iter_columns(iter([("a", Y)])), Y)
    with pytest.raises(ValueError, match="determines the number by itself"):
        nested_scores(OSFS(), X, Y, sizes=[2])
    with pytest.raises(ValueError, match="Expected the covariates"):
        nested_scores(ProjSe(covariates=("age",)), X, Y)
    with pytest.raises(ValueError, match="Expected classes or numbers"):
        nested_scores(ProjSe(target_type="survival"), X, np.column_stack([Y, Y > 0]))
    with pytest.raises(ValueError, match="Expected one target"):
        nested_scores(ProjSe(), X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match=r"at least 5 rows of every class, .* Got: 4"):
        nested_scores(ProjSe(), X, np.where(np.arange(N) < 4, "a", "b"))
    for n in (N - 1, N + 1):
        with pytest.raises(ValueError, match=rf"Expected {n} values, .* Got: {N}"):
            nested_scores(ProjSe(), X, np.resize(Y, n))
    with pytest.raises(ValueError, match="Expected sizes"):
        nested_scores(ProjSe(), X, Y, sizes=[])
    with pytest.raises(ValueError, match=r"Expected a finite target. Got: nan in row 3"):
        nested_scores(PCA(), X, np.where(np.arange(N) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="Expected model: ridge or knn"):
        nested_scores(ProjSe(), X, Y, model="logistic")
    with pytest.raises(TypeError, match="Expected model: a scikit-learn model"):
        nested_scores(ProjSe(), X, Y, model=3)

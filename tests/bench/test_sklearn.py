"""Compare `streamsel.sklearn` in a grid search with scikit-learn, and `fit` with the learner."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import streamsel
import streamsel.sklearn
from tests.bench.test_columns import fortran

CLASSES = 5
GRID = [5, 10, 20, 50]


def labelled(n, p):
    """Return columns in C order, as folds are, and classes on which 20 of them depend."""
    rng = np.random.default_rng(0)
    X = np.ascontiguousarray(fortran(rng, n, p))
    y = rng.integers(CLASSES, size=n)
    X[:, :: p // 20] += 0.5 * rng.standard_normal((CLASSES, X[:, :: p // 20].shape[1]))[y]
    return X, y


def searching(selector, X, y):
    """Return a search for the best k."""
    pipeline = make_pipeline(selector, LogisticRegression(max_iter=1000))
    name = pipeline.steps[0][0]
    return lambda: GridSearchCV(pipeline, {f"{name}__k": GRID}, cv=3).fit(X, y)


@pytest.mark.parametrize("name", ["SelectKBest", "ProjSe", "MRMR"])
def test_grid_search(against, size, name):
    X, y = labelled(1000, size(5_000))
    against(
        f"GridSearchCV, 4 values of k, cv=3, n=1,000 p=5,000, {name} / scikit-learn's SelectKBest",
        searching(getattr(streamsel.sklearn, name)(), X, y),
        searching(SelectKBest(f_classif), X, y),
        rounds=5,
    )


@pytest.mark.parametrize("name", ["SelectKBest", "ProjSe", "SOSPCA"])
def test_fit_and_the_learner(against, size, name):
    """Compare the estimator with the learner alone; there is no peer."""
    X, y = labelled(1000, size(20_000))
    X = np.asfortranarray(X)
    learner = getattr(streamsel, name)

    def learn():
        model = learner(target_type="class")
        model.learn_target(y)
        model.learn_columns(X)
        return model.relevance

    against(
        f"{name} fit, n=1,000 p=20,000 in Fortran order / learn_columns",
        lambda: getattr(streamsel.sklearn, name)().fit(X, y),
        learn,
        threshold=1.05,
        data=X.nbytes,
    )


def test_fit_of_selectors(against, size):
    X, y = labelled(1000, size(20_000))
    against(
        "SelectKBest fit, n=1,000 p=20,000 in C order / scikit-learn's",
        lambda: streamsel.sklearn.SelectKBest(20).fit(X, y),
        lambda: SelectKBest(f_classif, k=20).fit(X, y),
        data=X.nbytes,
    )


def test_fit_of_components(against, size):
    X, _ = labelled(1000, size(20_000))
    against(
        "PCA fit, 10 components of n=1,000 p=20,000 in C order / scikit-learn's",
        lambda: streamsel.sklearn.PCA(10).fit(X),
        lambda: PCA(10, random_state=0).fit(X),
        rounds=5,
        data=X.nbytes,
    )

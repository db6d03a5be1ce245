"""Stability and nested folds of groups of columns, against separately trained models."""

from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor

from streamsel import PCA, ForwardSelection, Lasso, ProjSe, SelectKBest
from streamsel.data.chunks import Block
from streamsel.evaluate import nested_scores, selection_stability, subsample_stability
from streamsel.evaluate.model_batch import MAX_BYTES
from streamsel.evaluate.stored_columns import StoredColumns
from streamsel.evaluate.subsamples import draw
from streamsel.stream import ColumnStream, grouped
from tests.seed import covering

N, P, M = 60, 36, 5
RNG = np.random.default_rng(0)
X = np.asfortranarray(RNG.normal(size=(N, P)))
X[:, :9] = X[:, :9].round()  # as many columns as are copied at once
Y = X[:, 3] + X[:, 4] - X[:, 8] + 0.5 * RNG.normal(size=N)
ADJACENT = {f"g{j}": list(range(3 * j, 3 * j + 3)) for j in range(10)}
OVERLAPPING = {"far": [0, 11, 20], "near": [3, 4], "both": [4, 0], "late": [8, 9]}
LEARNERS = [
    SelectKBest(3),
    ProjSe(3),
    ForwardSelection(3),
    ForwardSelection(3, max_candidates=4, exact=True),
    Lasso(3, n_alphas=20),
]
each = pytest.mark.parametrize("learner", LEARNERS, ids=repr)
either = pytest.mark.parametrize("groups", [ADJACENT, OVERLAPPING], ids=["adjacent", "overlapping"])
# Limits that lead to many passes over the source, to a copy, and to one pass.
LIMITS = [1, X.nbytes, MAX_BYTES]


def ways(turn):
    """Return pairs of source and limit in which every source and every limit occurs."""
    pairs = {f"{name} {limit}": (name, limit) for name in SOURCES for limit in LIMITS}
    chosen = covering({label: {*pair} for label, pair in pairs.items()}, turn)
    return [(SOURCES[name], limit) for label, (name, limit) in pairs.items() if label in chosen]


def cut(ends, values=X):
    """Return the columns as a stream of blocks that end at these columns."""

    def blocks():
        for start, stop in pairwise(ends):
            yield Block(list(range(start, stop)), values[:, start:stop])

    return ColumnStream(blocks, n_rows=N, names=list(range(P)))


SOURCES = {
    "array": lambda: X,
    "one by one": lambda: cut(range(P + 1)),
    "uneven": lambda: cut([0, 2, 13, 14, P]),
    "sparse": lambda: cut([0, 2, 13, 14, P], sp.csc_array(X)),
}


def learnt(learner, rows, groups):
    model = learner.clone()
    model.learn_target(Y[rows])
    model.learn_columns(grouped(X[rows], groups))
    return model


@each
@either
def test_subsamples_equal_separate_models_of_groups(learner, groups):
    whole, *subsamples = [
        learnt(learner, rows, groups) for rows in [np.arange(N), *draw(N, None, M, 0.5, 3)]
    ]
    n_candidates = len(groups) + P - len({*chain(*groups.values())})
    for source, max_bytes in ways(f"subsamples {learner} {groups}"):
        found = subsample_stability(
            learner, grouped(source(), groups), Y, n_subsamples=M, seed=3, max_bytes=max_bytes
        )
        assert found.selected == whole.selected
        assert found.selections == [model.selected for model in subsamples]
        assert found.n_variables == n_candidates
        assert found.index == selection_stability(found.selections, n_candidates)


@pytest.mark.slow
@each
@either
def test_columns_of_selected_groups_are_features(learner, groups):
    knn = KNeighborsRegressor(3)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))

    def r2(columns, train, test):
        predictor = knn.fit(X[train][:, columns], Y[train])
        return r2_score(Y[test], predictor.predict(X[test][:, columns]))

    random_columns = []
    for source, max_bytes in ways(f"nested {learner} {groups}"):
        stream = grouped(source(), groups)
        found = nested_scores(learner, stream, Y, model=knn, n_folds=3, max_bytes=max_bytes)
        assert found.n_columns == P
        for fold, (train, test) in zip(found.folds, splits, strict=True):
            model = learnt(learner, train, groups)
            members = list(dict.fromkeys(chain.from_iterable(model.members.values())))
            assert fold.names == members
            assert fold.scores["selected"]["r2"] == pytest.approx(r2(members, train, test))
            if "all" in fold.scores:  # a column of two groups counts once
                assert fold.scores["all"]["r2"] == pytest.approx(r2(range(P), train, test))
        random_columns.append([fold.scores["random"]["r2"] for fold in found.folds])
        if max_bytes in (1, MAX_BYTES):
            assert ("all" in found.variable_sets) == (max_bytes == MAX_BYTES)
    # The same random columns are drawn for every source and limit.
    np.testing.assert_allclose(random_columns, [random_columns[0]] * len(random_columns))


def test_columns_of_overlapping_groups_are_used_once():
    """Columns of several groups are drawn once: both groups have all columns here."""
    groups = {"low": list(range(P)), "high": list(range(P))}
    found = nested_scores(SelectKBest(1), grouped(X, groups), Y, n_folds=2, model="ridge")
    for fold in found.folds:
        assert sorted(fold.names) == list(range(P))
        assert fold.scores["random"]["r2"] == pytest.approx(fold.scores["selected"]["r2"])
        assert fold.scores["all"]["r2"] == pytest.approx(fold.scores["selected"]["r2"], abs=0.01)


@pytest.mark.parametrize("ends", [(0, P), (0, 2, 13, 14, P), range(P + 1)])
@either
def test_a_copy_keeps_groups(ends, groups):
    stream = grouped(cut(ends), groups)
    columns = StoredColumns(10**6)
    for block in stream.blocks():
        columns.record(block)
    copies = columns.stream()
    for _ in range(2):
        for (names, values, of_columns), copied in zip(
            stream.blocks(), copies.blocks(), strict=True
        ):
            assert (copied.names, copied.groups) == (list(names), of_columns)
            np.testing.assert_array_equal(copied[1], values)
    np.testing.assert_array_equal(copies.take([4])[4], X[:, 4])
    pieces = np.hstack(list(columns.pieces(5 * N)))
    np.testing.assert_array_equal(np.sort(pieces, axis=1), np.sort(X, axis=1))


def test_categories_of_a_frame_are_variables():
    code = np.random.default_rng(3).integers(0, 3, size=N)
    y = np.array([-3.0, 0.0, 3.0])[code] + Y
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    frame["colour"] = np.array(["red", "green", "blue"])[code]
    found = subsample_stability(SelectKBest(1), frame, y, n_subsamples=4)
    assert found.frequency == {"colour": 1.0}
    assert found.n_variables == P + 1
    scores = nested_scores(SelectKBest(1), frame, y, n_folds=3)
    colours = ["colour_blue", "colour_green", "colour_red"]
    assert [sorted(fold.names) for fold in scores.folds] == [colours] * 3
    assert scores.n_columns == P + 3
    # Extractors do not use groups.
    assert nested_scores(PCA(2), frame, y, n_folds=3).n_columns == P + 3

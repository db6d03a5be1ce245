"""Inconsistent sparse matrices, which SciPy does not detect, are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from streamsel import PCA, LaplacianEigenmaps, RandomProjection, SelectKBest
from streamsel.stream import as_stream, iter_columns


def whole(form="csc"):
    return sp.random(14, 5, 0.5, "csc", random_state=0).asformat(form)


def damaged(how, form):
    X = whole(form)
    if form == "coo":
        X.coords[how == "negative"][0] = {"negative": -1}.get(how, 10**6)
    elif how == "beyond":
        X.indices[0] = 10**6
    elif how == "negative":
        X.indices[0] = -1
    elif how == "ends":
        X.indptr[1] = 10**6
    elif how == "down":
        X.indptr[1] = -1
    elif how == "fewer ends":
        X.indptr = X.indptr[:-1]
    else:
        X.data = X.data[:2]
    return X


DAMAGES = ["beyond", "negative", "ends", "down", "fewer ends", "fewer values"]


def taught(call):
    def use(X):
        model = SelectKBest(k=1)
        model.learn_target(np.arange(14.0))
        call(model, X)

    return use


USES = {
    "stream": lambda X: list(as_stream(X)),
    "columns": taught(lambda model, X: model.learn_columns(X)),
    "transform": lambda X: RandomProjection(2).transform_many(X),
    "target": lambda X: SelectKBest().learn_target(X),
}


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_sparse_matrices_are_refused(how, form):
    for use in USES.values():
        with pytest.raises(ValueError, match="index arrays fit its shape"):
            use(damaged(how, form))


def test_damaged_columns_and_graphs_are_refused():
    column, graph = whole()[:, :1], sp.csr_array(np.ones((3, 3)))
    column.indices[0] = graph.indices[0] = 10**6
    with pytest.raises(ValueError, match="index arrays fit its shape"):
        list(iter_columns([("a", column)]))
    with pytest.raises(ValueError, match="index arrays fit its shape"):
        taught(lambda model, x: model.learn_column("a", x))(column)
    with pytest.raises(ValueError, match="index arrays fit its shape"):
        LaplacianEigenmaps(2).learn_graph(graph)


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "bsr", "lil", "dok", "dia"])
def test_valid_sparse_matrices_are_read(form):
    names = [name for name, _ in as_stream(whole(form))]
    assert names == list(range(5))


def test_sparse_matrices_are_refused_as_names():
    with pytest.raises(TypeError, match="sequence of names"):
        PCA(2).learn_columns(np.zeros((14, 5)), whole())
    with pytest.raises(TypeError, match="iterable of"):
        iter_columns(whole())

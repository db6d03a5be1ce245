"""Compare exact selection in a few passes with peers that have all columns in memory.

Every case is measured on data whose target depends on a few columns, and on noise alone. On
noise all scores are close, and some picks of the first pass are wrong.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from streamsel import MRMR, ForwardSelection, Lasso
from streamsel.stream import iter_npy
from tests.bench.jobs import Data, fastcan, mrmrs, planted, polars_frame
from tests.bench.test_columns import fortran, learnt

N, P, TARGETS = 1000, 50_000, 10
# The path: the number of alphas, and the smallest as a share of the largest, at which the first
# variable enters.
ALPHAS, MIN_RATIO = 50, 0.1
# At these tolerances the peers too meet the KKT conditions to a millionth.
CELER_TOL, DESCENT_TOL = 1e-10, 1e-8


class Case(NamedTuple):
    """X (n, p), one target, ten targets, the kind of data, and a description."""

    X: np.ndarray
    y: np.ndarray
    Y: np.ndarray
    kind: str
    about: str


@pytest.fixture(params=["signal", "noise"])
def case(request, size):
    p, rng = size(P), np.random.default_rng(2)
    about = f"n=1,000 p={p:,}, {request.param}"
    if request.param == "noise":
        Y = rng.standard_normal((N, TARGETS))
        return Case(fortran(rng, N, p), Y[:, 0], Y, request.param, about)
    X, y, _, copies = planted(N, p, classes=False, many=False, seed=1)
    Y = X[:, copies.ravel()] @ rng.standard_normal((copies.size, TARGETS))
    Y += 3.0 * rng.standard_normal(Y.shape)
    return Case(X, y, Y, request.param, about)


def selecting(cls, y, X, **parameters):
    """Return a model that has learnt all columns, and has selected."""
    model = learnt(cls, y, X, exact=True, **parameters)
    _ = model.selected
    return model


@pytest.fixture
def alongside(against, report):
    """Time ours and a peer in turn; both must select the same, and all picks be certified."""

    def run(what, ours, peer, *, threshold):
        models, theirs = [], []
        against(
            what,
            lambda: models.append(ours()),
            lambda: theirs.append(peer()),
            threshold=threshold,
            rounds=3,
        )
        model = models[-1]
        assert model.selected == theirs[-1]
        assert model.n_certified == len(model.selected)
        report(f"{what}: passes", f"{model.n_passes:.2f}")

    return run


@pytest.mark.parametrize(("k", "c", "threshold"), [(25, TARGETS, 0.25), (50, 1, 0.5)])
def test_forward_selection(alongside, case, k, c, threshold):
    pytest.importorskip("fastcan")
    Y = case.Y if c > 1 else case.y
    alongside(
        f"ForwardSelection ridge=0, k={k}, {c} target{'s' * (c > 1)}, {case.about} / FastCan",
        partial(selecting, ForwardSelection, Y, case.X, k=k, ridge=0.0),
        partial(fastcan, case.X, Y, k),
        threshold=threshold,
    )


@pytest.mark.parametrize("k", [25, 50])
def test_mrmr(alongside, case, k):
    pytest.importorskip("mrmrs")
    frame = polars_frame(Data(case.X, case.y, case.y[:, None], None))
    alongside(
        f"MRMR, k={k}, {case.about} / mrmrs",
        partial(selecting, MRMR, case.y, case.X, k=k),
        partial(mrmrs("regression"), *frame, k),
        threshold=0.7,
    )


# Paths of LASSO


def loaded(path, y):
    """Return the data of a peer, in memory and centred."""
    X = np.load(path)
    X -= X.mean(axis=0)
    return X, y - y.mean()


def celer(path, y, alphas):
    from celer import celer_path

    X, y = loaded(path, y)
    return celer_path(X, y, "lasso", alphas=alphas, tol=CELER_TOL, max_iter=200)[1]


def coordinate_descent(path, y, alphas):
    from sklearn.linear_model import lasso_path

    X, y = loaded(path, y)
    return lasso_path(X, y, alphas=alphas, tol=DESCENT_TOL, max_iter=100_000)[1]


def violation(X, y, alphas, coefs):
    """Return the largest violation of the KKT conditions, relative to alpha."""
    X, y = X - X.mean(axis=0), y - y.mean()
    worst = 0.0
    for alpha, w in zip(alphas, coefs.T, strict=True):
        active = np.flatnonzero(w)
        slopes = (y - X[:, active] @ w[active]) @ X / (len(y) * alpha)
        off = np.maximum(np.abs(slopes) - 1.0, 0.0)
        off[active] = np.abs(slopes[active] - np.sign(w[active]))
        worst = max(worst, off.max())
    return worst


@pytest.mark.parametrize(
    ("peer", "peer_name", "threshold"),
    [(celer, "celer_path", 1), (coordinate_descent, "scikit-learn's lasso_path", None)],
    ids=["celer", "scikit-learn"],
)
def test_lasso(against, report, tmp_path, case, peer, peer_name, threshold):
    if peer is celer:
        pytest.importorskip("celer")
    X, y, path = case.X, case.y, tmp_path / "x.npy"
    np.save(path, X)
    first = np.abs((y - y.mean()) @ X).max() / N
    alphas = np.geomspace(first, MIN_RATIO * first, ALPHAS)
    grid = {"n_alphas": ALPHAS, "alpha_min_ratio": MIN_RATIO, "scale": False}
    models, theirs = [], []

    def ours():
        models.append(selecting(Lasso, y, iter_npy(path), k="all", **grid))

    def limit():
        theirs.append(peer(path, y, alphas))

    what = f"Lasso, {ALPHAS} alphas, alpha_min_ratio={MIN_RATIO}, {case.about}, from .npy"
    # On noise, hundreds of variables are active at the end, and a path takes a minute.
    rounds = 3 if peer is celer and case.kind == "signal" else 1
    against(f"{what} / {peer_name}", ours, limit, threshold=threshold, rounds=rounds)
    model, coefs = models[-1], theirs[-1]
    np.testing.assert_allclose(list(model.path), alphas, rtol=1e-9)
    assert not model.path_truncated
    passes = model.n_passes
    report(f"{what}: passes", f"{passes:.2f}", threshold="≤ 4", met=passes <= 4)
    off = violation(X, y, alphas, coefs)
    report(f"{what}: KKT violation / {peer_name}", f"{model.kkt_violation:.1e}", f"{off:.1e}")
    dense = np.zeros_like(coefs)
    for column, found in zip(dense.T, model.path.values(), strict=True):
        column[list(found)] = list(found.values())
    assert np.abs(dense - coefs).max() < 1e-3 * np.abs(coefs).max()

"""Refreshes in a background thread: a snapshot of their row, in use some rows later."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from streamsel import PCA, PLS, Discriminant, ProjSe, RidgeComponents, SupervisedPCA, load, save
from streamsel.base import extractor
from streamsel.base.pending_snapshot import PendingSnapshot
from streamsel.history import History
from tests.copies import COPIES

N_ROWS, P = 130, 6
MODELS = {
    "PCA": PCA(2),
    "PCA by a rule": PCA(0.9),
    "PLS": PLS(2),
    "Discriminant": Discriminant(1),
    "SupervisedPCA": SupervisedPCA(2),
    "RidgeComponents": RidgeComponents(2),
    "RidgeComponents, fading": RidgeComponents(2, fading_factor=0.05),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def let_refreshes_take_four_rows(monkeypatch):
    monkeypatch.setattr(extractor, "_RANK_OFFSET", 0)
    monkeypatch.setattr(extractor, "_OPERATIONS_PER_ROW", P**3 / 4)


@pytest.fixture
def four_rows(monkeypatch):
    let_refreshes_take_four_rows(monkeypatch)


def rows(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P)) @ rng.normal(size=(P, P)) + 1.0
    names = [f"v{j}" for j in range(P)]
    classes = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 1.0, "yes", "no")
    return X, [dict(zip(names, x, strict=True)) for x in X.tolist()], classes.tolist()


def learn_one(model, x, y):
    if model._is_supervised:
        model.learn_one(x, y)
    else:
        model.learn_one(x)


def at_once(model, xs, ys):
    """Return the maps after each row of a model that refreshes at once, and rows of refreshes."""
    found, due = [], []
    for x, y in zip(xs, ys, strict=True):
        before = model._refresh.due_at
        learn_one(model, x, y)
        found.append(model.in_use)
        if model._refresh.due_at != before:
            due.append(model.n_rows)
    return found, due


def expect_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, weights in expected.items():
        assert found[name] == pytest.approx(weights, rel=1e-9, abs=1e-12)


def span(weights):
    """Return the projector on the components, whatever their scale or rotation."""
    Q = np.linalg.qr([[*of_name.values()] for of_name in weights.values()])[0]
    return Q @ Q.T


@every_model
def test_the_snapshot_is_that_of_the_refresh_four_rows_later(model, monkeypatch):
    _, xs, ys = rows()
    expected, due = at_once(model.clone(), xs, ys)
    assert len(due) >= 3
    let_refreshes_take_four_rows(monkeypatch)
    model = model.clone()
    for i, (x, y) in enumerate(zip(xs, ys, strict=True), 1):
        learn_one(model, x, y)
        is_pending = any(row <= i < row + 4 for row in due)
        assert (model._refresh.pending is not None) is is_pending
        last = max((row for row in due if row + 4 <= i), default=0)
        expect_equal(model.in_use, expected[last - 1] if last else {})


@every_model
def test_a_long_refresh_is_in_use_before_the_next_is_due(model, monkeypatch):
    _, xs, ys = rows()
    expected, due = at_once(model.clone(), xs, ys)
    monkeypatch.setattr(extractor, "_OPERATIONS_PER_ROW", 1e-3)
    model, in_use = model.clone(), []
    for x, y in zip(xs, ys, strict=True):
        learn_one(model, x, y)
        in_use.append(model.in_use)
    for row, next_due in pairwise(due):
        expect_equal(in_use[next_due - 2], expected[row - 1])


@every_model
@pytest.mark.parametrize("size", [3, 50])
def test_frames_use_the_snapshot_from_the_same_row(four_rows, model, size):
    import pandas as pd

    X, xs, ys = rows(82)
    one, many = model.clone(), model.clone()
    for x, y in zip(xs, ys, strict=True):
        learn_one(one, x, y)
    for start in range(0, len(X), size):
        frame = pd.DataFrame(xs[start : start + size])
        many.learn_many(frame, *([ys[start : start + size]] if many._is_supervised else []))
    assert many._refresh.due_at == one._refresh.due_at
    assert (many._refresh.pending is None) is (one._refresh.pending is None)
    Z, others = (np.asarray(m.transform_many(pd.DataFrame(xs))) for m in (one, many))
    np.testing.assert_allclose(Z, others, atol=1e-9)


@every_model
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_continue_as_the_model(four_rows, model, copied, tmp_path):
    _, xs, ys = rows(50)
    model = model.clone()
    for x, y in zip(xs[:42], ys[:42], strict=True):
        learn_one(model, x, y)
    assert model._refresh.pending is not None
    other = copied(model, tmp_path)
    for x, y in zip(xs[42:], ys[42:], strict=True):
        learn_one(model, x, y)
        learn_one(other, x, y)
        expect_equal(other.in_use, model.in_use)
        assert (other._refresh.pending is None) is (model._refresh.pending is None)
    assert other._refresh.due_at == model._refresh.due_at


@pytest.mark.parametrize(
    ("key", "value"),
    [("started_at", -1), ("next_due", 2.0), ("snapshot", {"names": ["v0", "v0"]})],
)
def test_a_file_with_another_pending_snapshot_is_refused(four_rows, key, value):
    _, xs, _ = rows(42)
    model = PCA(2)
    for x in xs:
        model.learn_one(x)
    state = model._get_state()
    with pytest.raises(ValueError, match=r"started_at|next_due|distinct"):
        PCA(2)._set_state(state | {"pending": state["pending"] | {key: value}})


def test_manual_refreshes_replace_pending_ones(four_rows):
    _, xs, _ = rows(42)
    model = PCA(2)
    for x in xs:
        model.learn_one(x)
    assert model._refresh.pending is not None
    model.refresh()
    assert model._refresh.pending is None
    assert model._refresh.due_at == 84
    np.testing.assert_allclose(span(model.in_use), span(model.loadings), atol=1e-9)


def test_merges_recompute_the_snapshot_with_all_rows(four_rows):
    _, xs, _ = rows(88)
    one, other = PCA(2), PCA(2)
    for model, part in ((one, xs[:42]), (other, xs[42:84])):
        for x in part:
            model.learn_one(x)
    one.merge(other, along="rows")
    assert one._refresh.pending is not None
    now = span(one.loadings)
    for x in xs[84:]:
        one.learn_one(x)
    assert one._refresh.pending is None
    np.testing.assert_allclose(span(one.in_use), now, atol=1e-9)


def test_refreshes_at_every_row_are_immediate(four_rows):
    _, xs, ys = rows(40)
    model = PLS(2, refresh_factor=1.0, warm_up=0)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
        assert model._refresh.pending is None


def test_small_models_and_selectors_refresh_immediately():
    _, xs, ys = rows(60)
    for model in (PCA(2), ProjSe(2, warm_up=8)):
        for x, y in zip(xs, ys, strict=True):
            learn_one(model, x, y)
            assert model._refresh.pending is None


def test_the_history_notes_the_row_of_first_use(four_rows):
    _, xs, _ = rows(60)
    history = History(PCA(2))
    for x in xs:
        history.learn_one(x)
    assert [event.row for event in history.events] == [24, 44]


def test_errors_are_raised_when_the_snapshot_is_used(four_rows, monkeypatch, tmp_path):
    _, xs, _ = rows(60)
    model = PCA(2)
    for x in xs[:19]:
        model.learn_one(x)

    def failing(*_, **__):
        raise np.linalg.LinAlgError("no convergence")

    with monkeypatch.context() as patch:
        patch.setattr(PCA, "_dual_weights", failing)
        for x in xs[19:23]:
            model.learn_one(x)
        for _ in range(2):
            with pytest.raises(ValueError, match="range and precision"):
                model.learn_one(xs[23])
        assert model.n_rows == 23
        save(model, tmp_path / "model.streamsel")
    other = load(tmp_path / "model.streamsel")
    for x in xs[23:32]:
        other.learn_one(x)
    assert other.in_use


def test_snapshots_are_immediate_without_threads(four_rows, monkeypatch):
    _, xs, ys = rows(60)
    expected, found = RidgeComponents(2), RidgeComponents(2)
    for x, y in zip(xs, ys, strict=True):
        expected.learn_one(x, y)

    def refused(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
    for x, y in zip(xs, ys, strict=True):
        found.learn_one(x, y)
    assert found.in_use == expected.in_use


def test_forks_recompute_the_snapshot(monkeypatch):
    started, done, in_thread = threading.Event(), threading.Event(), threading.get_ident()

    def compute():
        if threading.get_ident() != in_thread:
            started.set()
            assert done.wait(60.0)
        return "snapshot"

    pending = PendingSnapshot(compute, 8, 16)
    assert started.wait(60.0)
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert pending.result() == "snapshot"
    assert not pending.has_failed
    done.set()


def test_rows_wait_for_their_share_of_work_only():
    """Rows wait only for their share of a computation; otherwise this test would not end."""
    done = threading.Event()
    pending = PendingSnapshot(lambda: done.wait(60.0), 8, 16)
    for n in range(8, 12):
        pending.wait(n)
    done.set()
    assert pending.result()

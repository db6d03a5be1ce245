"""Copies and forks while another thread trains the model: each has a consistent state."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from streamsel import MRMR, PCA, SOSPCA, ProjSe, RandomProjection, SelectKBest
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream
from tests.conformance.modes import bits
from tests.conformance.rowwise import learn_one
from tests.copies import COPIES

MODELS = {
    "SelectKBest": lambda: SelectKBest(k=2),
    "ProjSe, few at a time": lambda: ProjSe(k=2, max_features=4, grace_period=20),
    "MRMR": lambda: MRMR(k=2),
    "PCA": lambda: PCA(2),
    "SOSPCA": lambda: SOSPCA(2),
    "RandomProjection": lambda: RandomProjection(2),
    "by windows": lambda: SelectKBest(k=2, score="mutual_info", window_size=20),
}
each = pytest.mark.parametrize("name", MODELS)
SNAPSHOTS = 60
FORKS = 3


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(97, 6))
    y = X[:, 1] + 0.5 * rng.normal(size=97)
    return [(dict(zip("abcdef", x, strict=True)), t) for x, t in zip(X.tolist(), y, strict=True)]


ROWS = rows()


def learn(model, i):
    learn_one(model, *ROWS[i % len(ROWS)])


@contextmanager
def taught(model):
    """Teach a model rows in another thread, with frequent switches between threads."""
    stop, failed = threading.Event(), []

    def run():
        i = model.n_rows
        try:
            while not stop.is_set():
                learn(model, i)
                i += 1
        except BaseException as error:  # noqa: BLE001 (whatever it is)
            failed.append(error)

    before = sys.getswitchinterval()
    thread = threading.Thread(target=run)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
    assert not failed


def wait_for_rows(model, n_rows):
    """Wait, at most 5 ms, until a model has learnt more rows: its thread may not be running."""
    end = time.monotonic() + 0.005
    while model.n_rows == n_rows and time.monotonic() < end:
        time.sleep(0.0)


def expect_whole(make, snapshots):
    """Check that snapshots equal a model after as many rows, and continue as it does."""
    twin = make()
    for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.n_rows):
        while twin.n_rows < snapshot.n_rows:
            learn(twin, twin.n_rows)
        assert bits(snapshot) == bits(twin)
    learn(snapshot, snapshot.n_rows)
    learn(twin, twin.n_rows)
    assert bits(snapshot) == bits(twin)


@each
def test_copies_while_a_thread_learns_rows(name, tmp_path):
    model = MODELS[name]()
    for i in range(30):
        learn(model, i)
    snapshots = []
    with taught(model):
        for i in range(SNAPSHOTS):
            snapshots.append([*COPIES.values()][i % len(COPIES)](model, tmp_path))
            wait_for_rows(model, snapshots[-1].n_rows)
    assert len({snapshot.n_rows for snapshot in snapshots}) > 8
    expect_whole(MODELS[name], snapshots)


@each
def test_reports_while_a_thread_learns_rows(name):
    model = MODELS[name]()
    learn(model, 0)
    with taught(model):
        reports = [model.report() for _ in range(30)]
    for report in reports:
        twin = MODELS[name]()
        for i in range(report.rows if report.rows < 400 else 0):
            learn(twin, i)
        if twin.n_rows:
            assert twin.report().results == report.results


def test_copies_between_the_blocks_of_a_long_stream(tmp_path):
    """A copy waits for the current block only; other threads cannot learn meanwhile."""
    X = np.random.default_rng(0).normal(size=(30, 4000))
    reached, go_on = threading.Event(), threading.Event()
    size = 40

    def blocks():
        for start in range(0, X.shape[1], size):
            if start == 2000:
                reached.set()
                assert go_on.wait(60)
            yield Block(range(start, start + size), np.asfortranarray(X[:, start : start + size]))

    model = SelectKBest(k=5)
    model.learn_target(X[:, 0])
    source = ColumnStream(blocks, n_rows=30)
    thread = threading.Thread(target=model.learn_columns, args=(source,))
    thread.start()
    assert reached.wait(60)
    snapshots = [made(model, tmp_path) for made in COPIES.values()]
    assert [snapshot.n_columns for snapshot in snapshots] == [2000] * len(COPIES)
    assert model.report().columns_seen == 2000
    with pytest.raises(RuntimeError, match="one thread at a time"):
        model.learn_column("another", X[:, 1])
    go_on.set()
    while thread.is_alive():
        snapshots.append(copy.deepcopy(model))
    thread.join()
    twin = SelectKBest(k=5)
    twin.learn_target(X[:, 0])
    for snapshot in snapshots:
        assert snapshot.n_columns % size == 0
        seen = twin.n_columns
        twin.learn_columns(X[:, seen : snapshot.n_columns], range(seen, snapshot.n_columns))
        assert snapshot.selected == twin.selected
    assert model.n_columns == 4000


def test_calls_during_a_row():
    """Within a row, a copy is of the model before the row, and learning is refused."""
    found = []

    class Row(dict):
        def values(self):
            found.append(pickle.loads(pickle.dumps(model)))  # noqa: S301
            with pytest.raises(RuntimeError, match=r"model that is not learning[\s\S]*Hint"):
                model.learn_one({"a": 2.0}, 1.0)
            return super().values()

    model = SelectKBest(k=1)
    model.learn_one({"a": 1.0}, 1.0)
    before = bits(model)
    model.learn_one(Row(a=3.0), 2.0)
    assert found
    assert all(bits(one) == before for one in found)
    assert model.n_rows == 2


# ------------------------------------------------------------------------------------ forks


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def in_a_child(check):
    """Fork; return whether a check is true in the child, which must end within a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@forking
@each
def test_forked_processes_continue_a_consistent_model(name):
    def check():
        snapshot, n = pickle.dumps(model), model.n_rows
        learn(model, n)
        expect_whole(MODELS[name], [pickle.loads(snapshot), model])  # noqa: S301
        return True

    for _ in range(FORKS):
        model = MODELS[name]()
        learn(model, 0)
        with taught(model):
            while model.n_rows < 40:  # while rows are learnt
                time.sleep(0.0)
            assert in_a_child(check)
        n = model.n_rows
        learn(model, n)
        assert model.n_rows == n + 1


@forking
def test_forked_processes_learn_alongside_the_parent():
    X = np.random.default_rng(0).normal(size=(20, 30))
    model = SelectKBest(k=2)
    model.learn_target(X[:, 0])
    reached, go_on = threading.Event(), threading.Event()

    def columns():
        yield Block(range(10), np.asfortranarray(X[:, :10]))
        reached.set()
        assert go_on.wait(60)
        yield Block(range(10, 20), np.asfortranarray(X[:, 10:20]))

    source = ColumnStream(columns, n_rows=20)
    thread = threading.Thread(target=model.learn_columns, args=(source,))
    thread.start()
    assert reached.wait(60)

    def check():
        model.learn_columns(X[:, 20:], range(20, 30))
        return model.n_columns == 20

    assert in_a_child(check)
    go_on.set()
    thread.join()
    assert model.n_columns == 20


@forking
def test_models_registered_for_forks_are_garbage_collected():
    from streamsel.base import guard

    gc.collect()
    before = len(guard._guards)
    models = [SelectKBest(k=1) for _ in range(50)]
    assert len(guard._guards) == before + 50
    del models
    assert len(guard._guards) == before


STUCK = """
import faulthandler, gc, os, threading
from streamsel.base.guard import SingleThreadGuard

class Node:
    pass

faulthandler.dump_traceback_later(30, exit=True)
for _ in range(30):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
guard = SingleThreadGuard()
guard.lock.acquire()
gc.set_threshold(3, 1, 1)
for _ in range(1000):
    node = Node()
    node.itself, node.local = node, threading.local()
    node.local.x = 1
    del node
    guard._is_learnt_by_another()
os._exit(0)
"""


def test_garbage_collection_does_not_block_thread_inspection():
    """Garbage collection does not block the inspection of threads (Python 3.11 could deadlock)."""
    subprocess.run([sys.executable, "-c", STUCK], check=True, timeout=60)

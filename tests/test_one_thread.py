"""One thread per model: concurrent learning raises an error, and the model remains usable."""

import threading

import numpy as np
import pytest

import streamsel
from streamsel import SelectKBest


class Gate:
    """Parameter whose use by a thread blocks until the test resumes it."""

    def __init__(self):
        self.reached, self.resume = threading.Event(), threading.Event()

    def wait(self):
        self.reached.set()
        assert self.resume.wait(60)


def in_a_thread(call):
    found = []

    def run():
        try:
            call()
        except BaseException as error:  # noqa: BLE001 (whatever it is)
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def columns(gate, X):
    yield "a", X[:, 0]
    gate.wait()
    yield "b", X[:, 1]


class Row(dict):
    """Row whose values block until the test resumes."""

    def __init__(self, gate, **features):
        super().__init__(features)
        self.gate = gate

    def values(self):
        self.gate.wait()
        return super().values()


@pytest.fixture(name="X")
def numbers():
    return np.random.default_rng(0).normal(size=(20, 4))


@pytest.mark.parametrize("second", ["learn_one", "learn_many"])
def test_concurrent_row_learning_is_refused(second, X):
    gate, model = Gate(), SelectKBest(k=1)
    model.learn_one({"a": 1.0}, 1.0)
    thread, failed = in_a_thread(lambda: model.learn_one(Row(gate, b=2.0), 2.0))
    assert gate.reached.wait(60)
    with pytest.raises(RuntimeError, match="one thread at a time"):
        getattr(model, second)(*(({"a": 3.0}, 3.0) if second == "learn_one" else (X, X[:, 0])))
    gate.resume.set()
    thread.join()
    assert not failed
    model.learn_one({"a": 4.0}, 4.0)
    assert model.n_rows == 3


def test_concurrent_column_learning_is_refused(X):
    gate, model = Gate(), SelectKBest(k=1)
    model.learn_target(X[:, 0])
    thread, failed = in_a_thread(
        lambda: model.learn_columns(streamsel.stream.iter_columns(lambda: columns(gate, X)))
    )
    assert gate.reached.wait(60)
    with pytest.raises(RuntimeError, match="one thread at a time"):
        model.learn_column("c", X[:, 2])
    gate.resume.set()
    thread.join()
    assert not failed
    model.learn_column("c", X[:, 2])
    assert model.n_columns == 3


def test_threads_with_separate_models(X):
    models = [SelectKBest(k=1) for _ in range(4)]
    threads = [in_a_thread(lambda m=m: m.learn_many(X, X[:, 0])) for m in models]
    for thread, failed in threads:
        thread.join()
        assert not failed
    for model in models[1:]:
        models[0].merge(model, along="rows")
    assert models[0].n_rows == 80

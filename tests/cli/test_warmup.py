"""`streamsel warmup`: compiles all kernels in advance."""

import pytest

from streamsel import registry
from streamsel.base.learner import Learner


@pytest.fixture(name="compiled")
def watched(monkeypatch):
    """Return the list of compiled models, without compiling any."""
    found = []
    monkeypatch.setattr(Learner, "precompile", lambda self: found.append(self))  # noqa: PLW0108
    return found


def test_named_methods_are_compiled(call, compiled):
    result = call("warmup", "--method", "PCA", "--method", "SelectKBest", "--method", "PCA")
    assert [type(model).__name__ for model in compiled] == ["PCA", "SelectKBest"]
    assert result.stdout == ""
    assert "compiled 2 methods in " in result.stderr


def test_all_methods_are_compiled_by_default(call, compiled):
    call("warmup")
    assert [type(model).__name__ for model in compiled] == registry.names()
    # Each learns rows without further parameters.
    assert all(getattr(model, "n_components", 1) is not None for model in compiled)


def test_warmup_compiles_a_method(call):
    assert "compiled SAOLA in " in call("warmup", "--method", "SAOLA").stderr


def test_unknown_method(call):
    assert "'SelectBest'" in call("warmup", "--method", "SelectBest", code=2).stderr

"""A hook that uses state which its learner does not have fails when its class is defined."""

import ast
from pathlib import Path

import pytest

import streamsel
from streamsel import registry
from streamsel.base.embedder import Embedder
from streamsel.base.extractor import Extractor
from streamsel.base.river import Supervised, Unsupervised
from streamsel.base.selector import Selector
from streamsel.base.windows import Window
from streamsel.state.base import VariableState
from streamsel.state.moments.moments import Moments
from streamsel.state.pool.pool import Picks, Pool
from tests.conformance.modes import CLASSES, REGISTERED


def requires_products(self, state, k):
    state.products([0])
    return Picks([], [], [])


def no_picks(self, view, k):
    return Picks([], [], [])


def test_base_classes_have_defaults_and_are_abstract():
    """A selector keeps moments, also from rows; without its hook the class is abstract."""
    assert Selector._column_state_type is Pool
    assert Selector._row_state_type is Moments
    with pytest.raises(TypeError, match="abstract"):
        type("Mine", (Selector, Supervised), {})()
    with pytest.raises(TypeError, match="abstract"):
        type("Mine", (Extractor, Unsupervised), {})()


@pytest.mark.parametrize(
    ("bases", "further", "lacking"),
    [
        ((Selector,), {}, "Supervised"),
        ((Selector, Supervised), {"_row_state_type": Window}, "window_size"),
    ],
)
def test_missing_hook_is_named_at_construction(bases, further, lacking):
    cls = type("Mine", bases, {"_select": no_picks, "k": None} | further)
    with pytest.raises(TypeError, match=lacking):
        cls()


@pytest.mark.parametrize("name", CLASSES)
def test_learner_attributes_agree_with_its_bases(name):
    cls = CLASSES[name]
    assert issubclass(cls, Supervised if cls._is_supervised else Unsupervised)
    assert issubclass(cls._column_state_type, VariableState)
    assert issubclass(cls, Selector) == (name in registry.names("selector"))
    assert issubclass(cls, Extractor) == (name in registry.names("extractor"))


@pytest.mark.parametrize("name", registry.names("extractor"))
def test_an_extractor_inherits_from_one_family_at_most(name):
    """Its bases are one family, `Extractor`, and three classes that every learner has."""
    own = [cls for cls in CLASSES[name].__mro__ if cls.__module__.startswith("streamsel.")]
    assert len(own) <= 6


def test_only_linear_components_have_loadings():
    for name in registry.names("extractor"):
        cls = CLASSES[name]
        assert hasattr(cls, "loadings") is not issubclass(cls, Embedder)


# ------------------------------------------------------------------------------------ the catalogue


def test_package_exports_the_registered_learners():
    learners = {entry.name for entry in REGISTERED}
    rest = set(streamsel.__all__) - learners
    assert learners < set(streamsel.__all__)
    assert set(streamsel.OTHERS) < rest < {*streamsel.OTHERS, *streamsel.SUBPACKAGES}
    assert len(streamsel.__all__) == len(set(streamsel.__all__))


def test_type_checking_imports_list_all_learners():
    tree = ast.parse(Path(streamsel.__file__).read_text(encoding="utf-8"))
    imported = {
        (alias.name, node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {(entry.name, entry.module) for entry in REGISTERED} <= imported
    assert {name for name, _ in imported} == set(streamsel.__all__)


def test_registry_entries_are_consistent():
    for entry in registry.LEARNERS:
        cls = registry.fetch(entry.name)
        assert (cls.__name__, cls.__module__) == (entry.name, entry.module)
        assert entry.title
        assert not entry.title.endswith(".")
    assert registry.names() == [entry.name for entry in registry.LEARNERS]
    with pytest.raises(KeyError):
        registry.fetch("Nonesuch")


def test_every_learner_is_registered():
    """Every concrete subclass of the base classes in the package is registered."""

    def below(cls):
        return [cls, *(sub for child in cls.__subclasses__() for sub in below(child))]

    found = {
        cls.__name__
        for base in (Selector, Extractor)
        for cls in below(base)
        if cls.__module__.startswith("streamsel.") and not cls.__abstractmethods__
    }
    assert found == {entry.name for entry in REGISTERED}

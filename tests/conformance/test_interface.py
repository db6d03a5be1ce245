"""Every learner shows its parameters, and its public names are documented."""

import ast
import inspect
import re

import numpy as np
import pytest
from river import compose
from sklearn.linear_model import Ridge

from streamsel import MRMR, ForwardSelection, History, Lasso, ProjSe, registry

CLASSES = {name: registry.fetch(name) for name in registry.names()}


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_repr_has_the_parameters_that_differ_from_the_default(cls):
    assert repr(cls()) == f"{cls.__name__}()"
    for setting in cls._unit_test_params():
        model = cls(**setting)
        defaults = cls()._get_params()
        changed = {name: v for name, v in model._get_params().items() if v != defaults[name]}
        call = ast.parse(repr(model), mode="eval").body
        assert call.func.id == cls.__name__
        assert {keyword.arg for keyword in call.keywords} == changed.keys()
        # The representation is an expression that creates the model.
        if "estimator" not in changed:
            again = eval(repr(model), {cls.__name__: cls})  # noqa: S307 (our own text)
            assert again._get_params() == model._get_params()


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (MRMR(5, score="correlation"), "MRMR(k=5, score='correlation')"),
        (MRMR(20), "MRMR()"),
        (ProjSe(covariates=["age", 3]), "ProjSe(covariates=('age', 3))"),
        (Lasso(alphas=np.array([0.5, 0.25])), "Lasso(alphas=(0.5, 0.25))"),
        (ForwardSelection(estimator=Ridge(), cv=3), "ForwardSelection(estimator=Ridge(), cv=3)"),
        (History(ProjSe(3)), "History(learner=ProjSe(k=3))"),
        (History(ProjSe(), 5), "History(learner=ProjSe(), max_changes=5)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repr_and_str(model, shown):
    assert repr(model) == shown
    assert str(model) == type(model).__name__


def test_repr_of_a_value_with_a_failing_repr():
    class Odd(Ridge):
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

        def __repr__(self):
            raise RuntimeError

    assert repr(ForwardSelection(estimator=Odd())) == "ForwardSelection(estimator=<Odd>)"


def test_steps_of_a_pipeline_are_named_by_their_classes():
    pipeline = compose.Pipeline(ProjSe(3), History(MRMR(2)))
    assert list(pipeline.steps) == ["ProjSe", "History"]
    assert "ProjSe(k=3)" in repr(pipeline)
    assert "History(learner=MRMR(k=2))" in repr(pipeline)


@pytest.mark.parametrize("cls", [*CLASSES.values(), History], ids=lambda cls: cls.__name__)
def test_names_that_tab_completion_shows_are_documented(cls):
    model = cls(ProjSe()) if cls is History else cls()
    pages = "\n".join(inspect.getdoc(base) or "" for base in type(model).__mro__)
    parameters = inspect.signature(cls).parameters
    for name in dir(model):
        if name.startswith("_") or name in parameters:
            continue
        member = inspect.getattr_static(cls, name, None)
        is_method = isinstance(member, property) or callable(getattr(cls, name, None))
        in_docstring = re.search(rf"^(\w+, )*{name}\b", pages, re.MULTILINE)
        assert (is_method and inspect.getdoc(member)) or in_docstring, name

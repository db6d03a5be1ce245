"""Generate the estimator class of a learner: parameters, docstring and `fit`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Collection
from typing import Any

from streamsel import registry
from streamsel.base.embedder import Embedder
from streamsel.sklearn._base import RENAMED_PARAMETERS, ROW_PARAMETERS, StreamEstimator
from streamsel.sklearn._extractors import ExtractorEstimator, LinearExtractorEstimator
from streamsel.sklearn._lasso import LassoEstimator
from streamsel.sklearn._reconstruction import PCAEstimator, PLSEstimator
from streamsel.sklearn._selectors import SelectorEstimator, UnivariateEstimator

# Base classes of estimators with additional attributes or methods.
_PARENTS: dict[str, type[StreamEstimator]] = {
    "Lasso": LassoEstimator,
    "PCA": PCAEstimator,
    "PLS": PLSEstimator,
    "RandomFourier": ExtractorEstimator,
    "SelectKBest": UnivariateEstimator,
}
_ALPHA = """\
alpha
    A single alpha, as in scikit-learn's Lasso: the same as `alphas=alpha`."""


_GROUPS = """\
groups
    Groups of features that are selected as one, or not at all: (p,) the group of each feature, None
    if it has none; or a mapping of feature names to groups. The features of an array are named
    from 0. A feature is in one group at most."""


def make_estimator(name: str) -> type[StreamEstimator]:
    """Return the estimator class of a learner, with its name, parameters and summary."""
    learner = registry.fetch(name)
    parent = _parent(name, learner)
    parameters = [
        (RENAMED_PARAMETERS.get(p.name, p.name), p.annotation, _field(p))
        for p in inspect.signature(learner).parameters.values()
        if p.name not in ROW_PARAMETERS
    ]
    if parent is LassoEstimator:
        alpha = dataclasses.field(default=None, kw_only=True)
        parameters.insert(1, ("alpha", float | None, alpha))
    if learner._supports_groups():
        parameters.append(("groups", Any, dataclasses.field(default=None, kw_only=True)))
    namespace = {
        "__doc__": _doc(learner, parent),
        "_learner": learner,
        "fit": _fit_of(learner),
    }
    cls: type[StreamEstimator] = dataclasses.make_dataclass(
        name,
        parameters,
        bases=(parent,),
        namespace=namespace,
        repr=False,
        eq=False,
        match_args=False,
    )
    # Pickles find the class by it. `make_dataclass` of Python 3.12 overwrites that of a namespace.
    cls.__module__ = "streamsel.sklearn"
    return cls


def _parent(name: str, learner: type) -> type[StreamEstimator]:
    if name in _PARENTS:
        return _PARENTS[name]
    if name in registry.names("selector"):
        return SelectorEstimator
    return ExtractorEstimator if issubclass(learner, Embedder) else LinearExtractorEstimator


def _field(parameter: inspect.Parameter) -> Any:
    kw_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return dataclasses.field(default=parameter.default, kw_only=kw_only)


# `fit` has only arguments that the learner supports, as scikit-learn inspects its signature.


def _fit_of(learner: Any) -> Callable[..., Any]:
    has_weights = learner()._takes_weights and learner._weights_replicate_rows
    fit: Callable[..., Any]
    if learner._is_supervised and has_weights:
        return StreamEstimator.fit
    if learner._is_supervised:

        def fit(self: Any, X: Any, y: Any = None, *, covariates: Any = None) -> Any:
            return self._fit(X, y, None, covariates)

    elif has_weights:

        def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
            return self._fit(X, y, sample_weight)

    else:

        def fit(self: Any, X: Any, y: Any = None) -> Any:
            return self._fit(X, y)

    arguments = inspect.signature(fit).parameters
    unknown = {"sample_weight", "covariates"} - arguments.keys()
    fit.__doc__ = _without(inspect.getdoc(StreamEstimator.fit) or "", unknown)
    fit.__qualname__ = f"{learner.__name__}.fit"
    return fit


def _doc(learner: Any, parent: type) -> str:
    """Return the docstring: summary and parameters of the learner, and the fitted attributes."""
    about = re.split(r"\n\n(?:Attributes|Raises)\n--", inspect.getdoc(learner) or "")[0]
    for name, other in RENAMED_PARAMETERS.items():
        about = re.sub(rf"^{name}$", other, about, flags=re.MULTILINE)
    about = _without(about, ROW_PARAMETERS)
    if learner._supports_groups():
        about += f"\n{_GROUPS}"
    if parent is LassoEstimator:
        about = about.replace("\nalphas\n", f"\n{_ALPHA}\nalphas\n", 1)
    fitted = (inspect.getdoc(parent) or "").partition("\n\n")[2]
    also = "The learner: its method, costs, memory and references."
    return f"{about}\n\n{fitted}\n\nSee Also\n--------\nstreamsel.{learner.__name__} : {also}\n"


def _without(doc: str, names: Collection[str]) -> str:
    """Return a docstring without the entries of these parameters."""
    head, rule, rest = doc.partition("Parameters\n----------\n")
    entries, blank, after = rest.partition("\n\n")
    kept, is_kept = [], True
    for line in entries.split("\n"):
        if line[:1].strip():
            is_kept = line.strip() not in names
        if is_kept:
            kept.append(line)
    return head + rule + "\n".join(kept) + blank + after

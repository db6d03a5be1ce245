"""Shared helpers for methods on the Gram matrix: cases, data, models, and comparisons."""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import streamsel
from tests.reference import target as space
from tests.reference.ridge_components_rows import as_rows
from tests.ridge import matrix, near, signs_of

METHODS = {
    "PCA": "pca",
    "RankedPCA": "ranked_pca",
    "PLS": "pls",
    "Discriminant": "discriminant",
    "PrivateFeatures": "private_features",
    "SupervisedPCA": "supervised_pca",
    "KernelPCA": "kernel_pca",
    "LaplacianEigenmaps": "laplacian_eigenmaps",
}
KINDS = {"PCA": ["none"], "KernelPCA": ["none"], "LaplacianEigenmaps": ["none"]}
KINDS |= {"Discriminant": ["labels"]}


class Case(NamedTuple):
    """A method, its parameters, and the type of its target."""

    name: str
    params: dict[str, Any]
    kind: str

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{k}={v}" for k, v in self.params.items()), self.kind])

    @property
    def has_target(self) -> bool:
        return self.kind != "none"

    def build(self, **params: Any) -> Any:
        return getattr(streamsel, self.name)(**self.params | params)

    def fresh(self, y: Any, covariates: Any = None, **params: Any) -> Any:
        """Return a model that has learnt its target, if it has one."""
        model = self.build(**params)
        if self.has_target:
            model.learn_target(y, covariates=covariates)
        return model

    def learnt(self, X: Any, y: Any, names: Any = None, **params: Any) -> Any:
        """Return a model that has learnt columns."""
        covariates = params.pop("covariates", None)
        model = self.fresh(y, covariates, **params)
        model.learn_columns(X, names)
        return model

    def answer(self, X: Any, y: Any, **params: Any) -> dict[str, Any]:
        """Return the results of a model by definition."""
        module = import_module(f"tests.reference.{METHODS[self.name]}")
        return module.answer(X, y, **self.params | params)

    def data(self, n: int = 40, p: int = 24, seed: int = 0) -> tuple[Any, Any]:
        """Return columns with common factors, on separate scales, and a target of a few of them."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + 1.5 * rng.normal(size=(n, p))
        X = X * rng.uniform(0.5, 2.0, p) + 3.0
        Y = X[:, :3] + X[:, p // 2 : p // 2 + 3] + rng.normal(size=(n, 3))
        if self.kind == "labels":
            return X, np.array(["ant", "bee", "cat", "dog"])[Y[:, 0].argsort().argsort() * 4 // n]
        return X, {"none": None, "number": Y[:, 0], "numbers": Y}[self.kind]

    def rows(self, X: Any, y: Any, names: Any = None) -> Any:
        """Return the arguments of `learn_one` for each row."""
        names = range(X.shape[1]) if names is None else names
        if not self.has_target:
            return [(dict(zip(names, x.tolist(), strict=True)),) for x in X]
        return as_rows(X, y, names)


def cases(rules: dict[str, list[dict[str, Any]]]) -> list[Case]:
    """Return every method with each of its rules and types of target."""
    kinds = ["number", "numbers", "labels"]
    return [
        Case(name, {"n_components": 3} | rule, kind)
        for name, of in rules.items()
        for rule in of
        for kind in KINDS.get(name, kinds)
    ]


def agree(model: Any, answer: dict[str, Any], names: Any, tolerance: float = 1e-9) -> None:
    """Compare all results of a model with the expected ones, every component up to its sign."""
    components = list(answer["relevance"])
    assert list(model.relevance) == components
    np.testing.assert_allclose(
        [*model.relevance.values()], [*answer["relevance"].values()], rtol=0, atol=tolerance
    )
    signs = 1.0
    if "loadings" in answer:
        assert set(model.loadings) == set(answer["loadings"])
        B = matrix(model.loadings, names, model.components)[:, : len(components)]
        expected = matrix(answer["loadings"], names, components)
        signs = signs_of(B, expected)
        near(B * signs, expected, tolerance)
    if "embedding" in answer:
        Z = answer["embedding"]
        if "loadings" not in answer:
            signs = signs_of(model.embedding, Z)
        near(model.embedding * signs, Z, tolerance)


def without_embedding(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the results of learning from rows, which are not kept."""
    return {key: value for key, value in answer.items() if key != "embedding"}


def numbers(y: Any) -> Any:
    """Return a target as a numeric matrix."""
    return space.numbers(y).reshape(len(y), -1)

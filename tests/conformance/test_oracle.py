"""Every learner against its definition: `answer` of its module in `tests.reference`."""

from importlib import import_module

import numpy as np
import pytest

from tests.conformance.modes import (
    COLUMN_MODES,
    REGISTERED,
    build,
    learnt,
    over,
    rotated,
    takes,
    target_of,
)

MODULES = {entry.name: entry.module.rpartition(".")[2] for entry in REGISTERED}
MODES = {name: mode for name, mode in COLUMN_MODES.items() if mode.learner in MODULES}
# Tolerances for two scores that are computed differently.
CLOSE = {"rtol": 1e-8, "atol": 1e-8}


def columns(kind, n, p=24, seed=0):
    """Return columns with copies, opposites and constants among them; integers make ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) if kind == "normal" else rng.integers(-3, 4, (n, p)) * 1.0
    X[:, 5], X[:, 6], X[:, 9] = X[:, 2], 3.0 - 2.0 * X[:, 1], 1.5
    return X


def expected(mode, X, y):
    module = import_module(f"tests.reference.{MODULES[mode.learner]}")
    return module.answer(X, y, **mode.params)


def labels(mode, X, seed):
    """Return three classes, as text, where the mode supports them."""
    y = target_of(mode, X, 1, seed)
    if y is None or not takes(mode, 3, is_class=True):
        return y
    return np.array(["ant", "bee", "cat"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]


KINDS, SIZES, TARGETS = ("normal", "ties"), (5, 9, 30), ("a number", "numbers", "labels")
# Any six consecutive cases, starting at a multiple of six, have each kind with each target, and
# each n twice.
CASES = [
    (kind, SIZES[(i + j + turn) % 3], target)
    for turn in range(3)
    for i, kind in enumerate(KINDS)
    for j, target in enumerate(TARGETS)
]


@rotated(MODES, "kind,n,target", CASES, each=6)
def test_result_equals_the_reference_implementation(mode, kind, n, target):
    if mode.params.get("score") == "rank":
        n = min(n, 10)  # the test enumerates all permutations, too slow for more rows
    for seed in range(2):
        X = columns(kind, n, seed=seed)
        if target == "labels":
            y = labels(mode, X, seed)
        else:
            y = target_of(mode, X, 3 if target == "numbers" else 1, seed)
        model, answer = learnt(mode, X, y), expected(mode, X, y)
        if hasattr(model, "selected"):
            check_selector(model, answer)
        else:
            check_extractor(model, answer)


def check_selector(model, answer):
    """Compare the certified picks with the first ones of the answer."""
    n = len(answer["selected"]) if model.max_candidates is None else model.n_certified
    assert model.selected[:n] == answer["selected"][:n]
    if model.max_candidates is None:
        assert len(model.selected) == n
    else:
        assert len(model.selected) == len(answer["selected"]) or n < len(model.selected)
    for shown in ("scores", "p_values", "rounds", "relevance"):
        if shown in answer and hasattr(model, shown):
            found = getattr(model, shown)
            assert list(found) == model.selected
            values = [answer[shown].get(name, np.nan) for name in model.selected[:n]]
            np.testing.assert_allclose(list(found.values())[:n], values, **CLOSE, err_msg=shown)


def check_extractor(model, answer):
    """Compare components, each up to its sign."""
    relevance, loadings = answer["relevance"], answer.get("loadings", {})
    assert list(model.relevance) == list(relevance)
    np.testing.assert_allclose(list(model.relevance.values()), list(relevance.values()), **CLOSE)
    mine = getattr(model, "loadings", {})
    assert list(mine) == list(loadings)
    for k, name in enumerate(relevance):
        B = [row.get(name, 0.0) for row in loadings.values()]
        found = [row.get(name, 0.0) for row in mine.values()]
        sign = np.sign(np.dot(B, found)) if B else 1.0
        # Loadings have units: the tolerance is relative to the largest.
        size = np.abs(B).max(initial=0.0)
        np.testing.assert_allclose(sign * np.array(found), B, 1e-8, 1e-8 * size)
        if "embedding" in answer:
            found, Z = model.embedding[:, k], answer["embedding"][:, k]
            np.testing.assert_allclose(sign * found, Z, **CLOSE)


@over(MODES)
def test_every_prefix_equals_the_reference_implementation(mode):
    """Where columns may be learnt one by one, each prefix of the stream has its answer."""
    if not mode.in_pieces or mode.params.get("max_candidates"):
        return
    X = columns("normal", 9)
    y = target_of(mode, X, 1)
    model = learnt(mode, X[:, :1], y)
    for p in range(2, X.shape[1] + 1):
        model.learn_column(p - 1, X[:, p - 1])
        answer = expected(mode, X[:, :p], y)
        (check_selector if hasattr(model, "selected") else check_extractor)(model, answer)


@pytest.mark.parametrize("name", MODULES)
def test_every_learner_has_a_reference_implementation(name):
    assert callable(import_module(f"tests.reference.{MODULES[name]}").answer)


def takes_covariates(mode):
    """Return whether a mode supports covariates with a numeric target."""
    return mode.has_target and not mode.of_classes and not build(mode)._by_window


@rotated({name: mode for name, mode in MODES.items() if takes_covariates(mode)}, "c", [1, 3])
def test_covariates_are_equivalent_to_residuals(mode, c):
    X = np.random.default_rng(5).normal(size=(30, 24))
    y = target_of(mode, X, c)
    Z = np.c_[X[:, 0] + X[:, 20], np.random.default_rng(6).normal(size=30)]
    model = build(mode)
    model.learn_target(y, covariates=Z)
    model.learn_columns(X)
    basis = np.linalg.qr(np.c_[np.ones(30), Z])[0]
    left = (part - basis @ (basis.T @ part) for part in (X, y))
    answer = expected(mode.also(covariates=Z), *left)
    for shown in ("scores", "embedding"):  # they depend on degrees of freedom and raw columns
        answer.pop(shown, None)
    answer.pop("p_values", None)
    (check_selector if hasattr(model, "selected") else check_extractor)(model, answer)

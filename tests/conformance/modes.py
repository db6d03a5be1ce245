"""Every learner in every mode: the cases of the conformance suite.

A mode is a learner of the registry with one of its `_unit_test_params`. Learners that do not
require a target have each mode twice, with and without one. On columns some modes coincide, and
learners with an optional bounded pool have further modes with it.
"""

import random
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from streamsel import registry
from streamsel.base.hashed_extractor import HashedExtractor
from streamsel.base.selector import Selector
from streamsel.params import rules_of
from streamsel.stream import grouped, iter_array
from tests.conformance import imagined
from tests.seed import EVERYTHING, SEED, cover

# Registered learners, and those that are registered while the suite runs.
REGISTERED = registry.LEARNERS
ENTRIES = (*REGISTERED, *imagined.ENTRIES)
CLASSES = {entry.name: getattr(import_module(entry.module), entry.name) for entry in ENTRIES}

# Parameters that do not affect learning from columns.
OF_ROWS = {
    *("fading_factor", "max_features", "grace_period", "window_size"),
    *("refresh_factor", "warm_up", "hysteresis", "missing"),
}
# Public attributes with the results of a model.
SHOWN = (
    *("relevance", "scores", "p_values", "loadings", "selected", "rounds", "components"),
    "landmarks",
    *("n_certified", "n_passes", "n_rows", "n_columns", "n_constant"),
)
_traits: dict[str, set[Any]] = {}


class Mode(NamedTuple):
    """A learner, its parameters, and whether it has a target."""

    learner: str
    params: dict[str, Any]
    has_target: bool

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        apart = CLASSES[self.learner]._is_supervised and not self.has_target
        return f"{self.learner}({given}){' without target' if apart else ''}"

    @property
    def cls(self) -> Any:
        return CLASSES[self.learner]

    @property
    def in_pieces(self) -> bool:
        """Whether columns may be learnt in several calls."""
        return not self.params.get("exact", False)

    @property
    def by_name(self) -> bool:
        """Whether transforms depend on names only, and nothing is stored about variables."""
        return issubclass(self.cls, HashedExtractor)

    @property
    def of_classes(self) -> bool:
        """Whether all values of the target are classes."""
        return getattr(build(self), "target_type", None) == "class"

    def traits(self) -> set[Any]:
        """Return the traits by which shared code distinguishes modes."""
        label = str(self)
        if label not in _traits:
            _traits[label] = self._find_traits()
        return _traits[label]

    def _find_traits(self) -> set[Any]:
        keeps = (
            self.cls._column_state_type,
            getattr(self.cls, "_needs_samples", None),
            self.cls._row_state_type,
            issubclass(self.cls, Selector),
        )
        options = "max_candidates", "exact", "fading_factor", "max_features"
        model = build(self)
        return {keeps, ("target", self.has_target), ("window", model._by_window)} | {
            name for name in options if self.params.get(name)
        }

    def has(self, parameter: str) -> bool:
        return parameter in rules_of(self.cls)

    def also(self, **params: Any) -> "Mode":
        return self._replace(params=self.params | params)


def by_name(modes: Any) -> dict[str, Mode]:
    return {str(mode): mode for mode in modes}


def _declared():
    for name, cls in CLASSES.items():
        for has_target in [cls._is_supervised, False][: 1 + cls._takes_no_target]:
            for params in cls._unit_test_params():
                yield Mode(name, params, has_target)


def _column_modes():
    seen = []
    for mode in MODES.values():
        there = mode._replace(params={k: v for k, v in mode.params.items() if k not in OF_ROWS})
        if there in seen:
            continue
        seen.append(there)
        yield mode
        may_be_bounded = mode.has("max_candidates") and not mode.params.get("per_class")
        if may_be_bounded and "max_candidates" not in mode.params:
            size = {} if mode.params.get("k") is None else {"k": 5}
            yield there.also(**size, max_candidates=8)


MODES = by_name(_declared())
COLUMN_MODES = by_name(_column_modes())
IN_PIECES = {name: mode for name, mode in COLUMN_MODES.items() if mode.in_pieces}


# -------------------------------------------------------------------- which test runs which modes


class Meets(NamedTuple):
    """Declaration of the modes that a test runs, for the audit.

    It contains the rule, and all pairs of a mode and a case in a run of everything.
    """

    rule: str
    modes: dict[str, Mode]
    cases: Callable[[Mode], list[Any]]
    pairs: dict[str, tuple[Any, ...]]


def over(modes: dict[str, Mode]) -> Any:
    """Run a test in every mode, for tests of the method itself."""
    return _meets("over", modes, "mode", {name: (mode,) for name, mode in modes.items()})


def rotated(modes: dict[str, Mode], name: str, cases: Any, each: int = 1) -> Any:
    """Run a test in every mode, with `each` of its cases.

    A mode takes the cases that its learner has had least, and of these the least used by others.
    Thus cases have several learners, and learners several cases. Cases may depend on the mode.
    """
    of = cases if callable(cases) else lambda _, cases=list(cases): cases
    met: Counter[Any] = Counter()
    pairs = {}
    for label, mode in modes.items():
        least = sorted(of(mode), key=lambda case: (met[mode.learner, case], met[case]))
        for case in least[:each]:
            met.update([case, (mode.learner, case)])
            values = case if "," in name else (case,)
            pairs["-".join(map(str, (label, *values)))] = (mode, *values)
    split = (lambda case: case) if "," in name else (lambda case: (case,))
    return _meets("rotated", modes, f"mode,{name}", pairs, lambda m: [split(c) for c in of(m)])


def sampled(modes: dict[str, Mode]) -> Any:
    """Run a test of shared code in a sample of the modes, which differs between tests.

    The sample covers every learner, and every trait by which shared code distinguishes modes. A run
    covers all of these traits, and at least a quarter of the learners.
    """

    def decorate(test: Any) -> Any:
        pairs = {name: (mode,) for name, mode in sample_modes(modes, test.__name__).items()}
        return _meets("sampled", modes, "mode", pairs)(test)

    return decorate


def sample(
    pairs: dict[str, tuple[Any, ...]], seed: str, *, shared: bool = False
) -> dict[str, tuple[Any, ...]]:
    """Return few pairs that together cover all features of the pairs; `seed` breaks ties.

    The features of a pair are its learner, the traits of its mode, and each value of its case. In
    tests of shared code, three in four learners, set by `seed`, count by their traits only.
    """
    learners = sorted({mode.learner for mode, *_ in pairs.values()})
    if shared:
        random.Random(seed).shuffle(learners)  # noqa: S311
        learners = learners[: -(-len(learners) // 4)]
    brings = {
        label: {mode.learner} & {*learners} | {*mode.traits(), *enumerate(case)}
        for label, (mode, *case) in pairs.items()
    }
    chosen = cover(brings, seed)
    return {label: pair for label, pair in pairs.items() if label in chosen}


def sample_modes(modes: dict[str, Mode], seed: str) -> dict[str, Mode]:
    """Return the sample of modes without cases."""
    chosen = sample({label: (mode,) for label, mode in modes.items()}, seed)
    return {label: modes[label] for label in chosen}


def _meets(
    rule: str,
    modes: dict[str, Mode],
    names: str,
    pairs: dict[str, tuple[Any, ...]],
    cases: Any = lambda _: [()],
) -> Any:
    def decorate(test: Any) -> Any:
        test.meets = Meets(rule, modes, cases, pairs)
        run = pairs
        if SEED != EVERYTHING:
            run = sample(pairs, f"{SEED} {test.__name__}", shared=rule == "sampled")
        values = [pair if "," in names else pair[0] for pair in run.values()]
        return pytest.mark.parametrize(names, values, ids=list(run))(test)

    return decorate


# ------------------------------------------------------------------------------- data and models


def target_of(mode: Mode, X: Any, c: int = 1, seed: int = 1) -> Any:
    """Return a target that suits a mode, and that a few of the variables explain.

    It has c numeric columns, or one where the mode supports no more; or three classes; or is None.
    """
    if not mode.has_target:
        return None
    p, rng = X.shape[1], np.random.default_rng(seed)
    Y = X[:, np.arange(c) * 2 % p] - X[:, (np.arange(c) + 2 * p // 3) % p]
    Y = Y + 0.5 * rng.normal(size=Y.shape)
    if mode.of_classes:
        return np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))
    return Y if c > 1 and takes(mode, c) else Y[:, 0]


def takes(mode: Mode, c: int, *, is_class: bool = False) -> bool:
    """Return whether a mode supports a target of c numeric columns, or of classes."""
    try:
        build(mode)._check_target(c, is_class=is_class)
    except ValueError:
        return False
    return True


def data(mode: Mode, n: int = 40, p: int = 160, c: int = 1, seed: int = 0) -> tuple[Any, Any]:
    """Return columns, (n, p), and a target that suits a mode."""
    X = np.asfortranarray(np.random.default_rng(seed).normal(size=(n, p)) + 2.0)
    return X, target_of(mode, X, c, seed + 1)


def build(mode: Mode, **further: Any) -> Any:
    """Return a model that has learnt nothing."""
    return mode.cls(**mode.params | further)


def fresh(mode: Mode, y: Any, **further: Any) -> Any:
    """Return a model that has learnt its target, if it has one."""
    model = build(mode, **further)
    if mode.cls._is_supervised:
        model.learn_target(y)
    return model


def _learns_groups(mode: Mode) -> bool:
    """Return whether a model of a mode selects groups of columns."""
    return bool(fresh(mode, data(mode, n=12, p=6)[1])._takes_groups)


GROUP_MODES = {name: mode for name, mode in COLUMN_MODES.items() if _learns_groups(mode)}


def in_groups(X: Any, names: Any = None, size: int = 3) -> Any:
    """Return columns in groups of adjacent ones, named by the first; the last are single."""
    names = list(range(X.shape[1]) if names is None else names)
    last = (len(names) - 1) // size * size
    stream = iter_array(X, names)
    first_of = [f"g{names[j // size * size]}" for j in range(last)]
    return grouped(stream, dict(zip(names[:last], first_of, strict=True)))


def learnt(mode: Mode, X: Any, y: Any, names: Any = None, **further: Any) -> Any:
    """Return a model that has learnt columns."""
    model = fresh(mode, y, **further)
    model.learn_columns(X, names)
    return model


# ------------------------------------------------------------------------------------ comparison


def flat(state: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Return all items of a nested state by their paths."""
    parts = {}
    for key, value in state.items():
        if isinstance(value, dict):
            parts |= flat(value, f"{path}{key}/")
        else:
            parts[f"{path}{key}"] = value
    return parts


def bits(model: Any) -> dict[str, Any]:
    """Return the complete state of a model, to the last bit."""
    return {
        key: (value.shape, value.dtype.str, value.tobytes())
        if isinstance(value, np.ndarray)
        else repr(value)
        for key, value in flat(model._get_state()).items()
    }


def shown(model: Any) -> dict[str, Any]:
    """Return the public results of a model."""
    return {name: getattr(model, name) for name in SHOWN if hasattr(model, name)}


def same(one: Any, other: Any, rtol: float = 1e-10, *, in_parts: bool = False) -> None:
    """Check that two models have the same results, and the same state up to rounding.

    Models of parts of the columns, merged, have a sample of each part.
    """
    mine, theirs = shown(one), shown(other)
    for name, value in mine.items():
        close(theirs[name], value, rtol)
    mine, theirs = flat(one._get_state()), flat(other._get_state())
    assert mine.keys() == theirs.keys()
    for key, value in mine.items():
        if in_parts and key.startswith("summary/sample/"):
            continue
        if key == "summary/histogram/counts":
            # Arrival bins of two models need not be nested.
            np.testing.assert_array_equal(theirs[key].sum(axis=0), value.sum(axis=0))
        elif isinstance(value, np.ndarray):
            assert value.shape == theirs[key].shape, key
            # The rounding error of a mean is measured relative to the mean.
            whole = mine[key.removesuffix("_error")] if key.endswith("mean_error") else value
            size = np.abs(whole).max(initial=0.0)
            np.testing.assert_allclose(theirs[key], value, rtol, rtol * size, err_msg=key)


def close(got: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Check that two results are the same, numbers up to rounding."""
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for key, value in expected.items():
            close(got[key], value, rtol)
    elif isinstance(expected, float):
        np.testing.assert_allclose(got, expected, rtol, rtol)
    else:
        assert got == expected

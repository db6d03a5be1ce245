"""Samples of the suite cover every learner, every mode of a case, and every case.

`over`, `rotated` and `sampled` of `modes` define which test runs which mode; here the tests that
pytest collected are compared with this.
"""

import inspect
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from tests.conformance.modes import COLUMN_MODES, sample
from tests.conformance.rowwise import ROW_MODES

HERE = Path(__file__)


def over_modes():
    """Return the tests of this folder that take a mode, by name."""
    found = {}
    for path in sorted(HERE.parent.glob("test_*.py")):
        module = vars(import_module(f"tests.conformance.{path.stem}")) if path != HERE else {}
        for name, test in module.items():
            asked = inspect.signature(test).parameters if name.startswith("test_") else ()
            if {"mode", "make"} & {*asked}:
                found[f"{path.stem}.{name}"] = test
    return found


TESTS = over_modes()


def rule(name):
    return getattr(TESTS[name], "meets", (None,))[0]


every_test = pytest.mark.parametrize("name", TESTS)


def pairs(test):
    """Return all pairs of a mode and a case in a run of everything."""
    return [(mode, tuple(case)) for mode, *case in test.meets.pairs.values()]


def learners(modes):
    return {mode.learner for mode in modes}


def traits(modes):
    return set().union(*(mode.traits() for mode in modes))


@every_test
def test_tests_cover_every_learner_and_mode(name):
    """Every test declares its rule for modes; tests with other pairs are detected."""
    meets = getattr(TESTS[name], "meets", None)
    assert meets, "Say which modes it meets by over, rotated or sampled."
    met, modes = [mode for mode, _ in pairs(TESTS[name])], [*meets.modes.values()]
    assert all(mode in modes for mode in met)
    if meets.rule == "sampled":
        assert learners(met) == learners(modes)
        assert traits(met) == traits(modes)
    else:
        assert [mode for mode in modes if meets.cases(mode) and mode not in met] == []


@pytest.mark.parametrize("name", [name for name in TESTS if rule(name) == "rotated"])
def test_every_case_has_two_learners_and_vice_versa(name):
    """Exceptions are cases and learners with only one possible counterpart."""
    meets = TESTS[name].meets
    met, could, modes = defaultdict(set), defaultdict(set), Counter()
    for mode, case in pairs(TESTS[name]):
        met[case].add(mode.learner)
        met[mode.learner].add(case)
    for mode in meets.modes.values():
        modes[mode.learner] += bool(meets.cases(mode))
        for case in meets.cases(mode):
            could[case].add(mode.learner)
            could[mode.learner].add(case)
    for one, others in could.items():
        assert len(met[one]) >= min(2, len(others), modes.get(one, 2)), one


@every_test
def test_run_covers_every_learner_and_every_case_value(name):
    """A run has a sample of all pairs, which depends on the seed only.

    A test of shared code need not cover every learner, but every trait.
    """
    everything, shared = TESTS[name].meets.pairs, rule(name) == "sampled"
    for seed in ("0", "1"):
        run = sample(everything, f"{seed} {name}", shared=shared)
        assert run.items() <= everything.items()
        assert run == sample(dict(reversed(everything.items())), f"{seed} {name}", shared=shared)
        if shared:
            met, modes = ([mode for mode, *_ in found.values()] for found in (run, everything))
            assert traits(met) == traits(modes)
            assert 4 * len(learners(met)) >= len(learners(modes))
            continue
        for at in range(len(next(iter(everything.values()), ()))):
            of = (lambda pair: pair[0].learner) if at == 0 else (lambda pair, at=at: pair[at])
            assert {*map(of, run.values())} == {*map(of, everything.values())}


def test_run_covers_every_learner_in_five_shared_tests():
    """At least five tests run every learner, whatever the seed."""
    for seed in map(str, range(10)):
        met, could = Counter(), Counter()
        for name in (name for name in TESTS if rule(name) == "sampled"):
            everything = TESTS[name].meets.pairs
            could.update(learners(mode for mode, *_ in everything.values()))
            run = sample(everything, f"{seed} {name.partition('.')[2]}", shared=True)
            met.update(learners(mode for mode, *_ in run.values()))
        assert {one: met[one] for one in could if met[one] < min(5, could[one])} == {}


def test_every_mode_is_covered_by_twenty_tests():
    """At least twenty tests run every mode, so that a lost mode is detected."""
    met = Counter()
    for test in TESTS.values():
        met.update({str(mode) for mode, _ in pairs(test)})
    assert {name: met[name] for name in ROW_MODES | COLUMN_MODES if met[name] < 20} == {}

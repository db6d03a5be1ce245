"""The seed chooses the same cases in every process, with every value; `all` chooses all cases."""

import itertools

import pytest

from tests import seed

CASES = {
    f"{a}-{b}-{c}": {("a", a), ("b", b), ("c", c)}
    for a, b, c in itertools.product(range(3), "wxyz", [True, False])
}
VALUES = set().union(*CASES.values())


@pytest.fixture(params=["0", "1", "2026-11-24"])
def seeded(request, monkeypatch):
    monkeypatch.setattr(seed, "SEED", request.param)


def test_covering_cases_have_every_value(seeded):
    chosen = seed.covering(CASES, "test")
    assert chosen < set(CASES)
    assert len(chosen) <= len(VALUES)
    assert set().union(*(CASES[name] for name in chosen)) == VALUES
    assert seed.covering(CASES, "test") == chosen
    assert seed.covering({name: CASES[name] for name in list(CASES)[:1]}, "test") == {"0-w-True"}


def test_some_cases_are_in_order(seeded):
    chosen = seed.some(range(100), 10, "test")
    assert len(chosen) == 10
    assert chosen == sorted(set(chosen))
    assert seed.some(iter(range(100)), 10, "test") == chosen
    assert seed.some(range(5), 10, "test") == list(range(5))


def test_four_seeds_in_a_row_choose_every_case_once(monkeypatch):
    for cases in ["a", "abcd", range(10)]:
        chosen = []
        for number in ["20261127", "20261128", "20261129", "20261130"]:
            monkeypatch.setattr(seed, "SEED", number)
            chosen += seed.one_in_four(cases, "test")
        assert sorted(chosen) == sorted(cases)
    monkeypatch.setattr(seed, "SEED", "any text")
    assert len(seed.one_in_four(range(40), "test")) == 10


def test_every_seed_chooses_other_cases(monkeypatch):
    found = []
    for number in range(60):
        monkeypatch.setattr(seed, "SEED", str(number))
        found.append((seed.covering(CASES, "test"), seed.some(range(100), 10, "test")))
    assert set().union(*(names for names, _ in found)) == set(CASES)
    assert len({tuple(numbers) for _, numbers in found}) == 60


def test_the_choice_of_a_seed_is_fixed(monkeypatch):
    """A seed's choice is the same in every worker of pytest-xdist, whatever the hash seed."""
    monkeypatch.setattr(seed, "SEED", "0")
    assert seed.some(range(100), 3, "test") == [23, 35, 98]


def test_all_cases_are_run_on_request(monkeypatch):
    monkeypatch.setattr(seed, "SEED", seed.EVERYTHING)
    assert seed.covering(CASES, "test") == set(CASES)
    assert seed.some(range(100), 10, "test") == list(range(100))
    assert seed.one_in_four(range(100), "test") == list(range(100))

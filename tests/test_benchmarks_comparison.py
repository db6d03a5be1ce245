"""A ratio is called worse when it is so by more than its noise, and times are not looked at."""

import pytest

from tests.bench import comparison, page


def run(*, quick=False, **ratios):
    """Return numbers of a run: name -> extra_info, or a ratio of little noise."""
    noted = {
        name: told if isinstance(told, dict) else {"ratio": told, "noise": 0.01}
        for name, told in ratios.items()
    }
    return {
        "machine": {"cpu": "a processor", "cores": 2, "python": "3.13"},
        "versions": {"streamsel": "1.0"},
        "quick": quick,
        "benchmarks": [
            {"name": name, "group": "Selection", "extra_info": told, "median": 1.0}
            for name, told in noted.items()
        ],
    }


def changes(before, now):
    return comparison.compare(before, now)["changes"]


def contest(ours, limit, peer):
    contestants = {
        name: {"seconds": seconds, "iqr": seconds / 100, "rounds": 9, "ratio": seconds / ours}
        for name, seconds in (("ours", ours), ("x @ y", limit), ("peer", peer))
    }
    for name, told in contestants.items():
        told["limit"] = name == "x @ y"
    contestants["absent"] = {"limit": False, "why": "more than 30 s"}
    return {"n": 1000, "p": 20, "contestants": contestants}


def test_what_got_worse_comes_first_and_is_bold():
    before, now = run(a=1.0, b=2.0, c=0.5, d=1.0), run(a=0.5, b=4.0, c=0.6, d=1.0)
    told = comparison.compare(before, now)
    assert [change[0] for change in told["changes"]] == ["b", "c", "a"]
    assert [comparison.is_worse(change) for change in told["changes"]] == [True, True, False]
    assert told["compared"] == 4
    assert page.changed(told["changes"])[0] == ("b", "2", "4", "**+100%**", "1%")
    assert page.changed(told["changes"])[2] == ("a", "1", "0.5", "-50%", "1%")


@pytest.mark.parametrize(
    ("noise", "value", "is_told"),
    [(0.0, 1.04, False), (0.0, 1.06, True), (0.1, 1.4, False), (0.1, 1.45, True)],
)
def test_noise_of_both_runs_is_allowed_for(noise, value, is_told):
    before = run(a={"ratio": 1.0, "noise": noise})
    now = run(a={"ratio": value, "noise": noise})
    assert bool(changes(before, now)) == is_told
    assert bool(changes(now, before)) == is_told


@pytest.mark.parametrize("told", [{}, {"noise": None}])
def test_unknown_noise_is_a_tenth(told):
    before = run(a={"ratio": 1.0} | told)
    assert not changes(before, run(a=1.28))
    assert changes(before, run(a=1.35))


def test_lines_of_one_run_alone_are_not_compared():
    told = comparison.compare(run(a=1.0, b=1.0), run(b=1.0, c=9.0))
    assert (told["compared"], told["changes"]) == (1, [])


def test_a_line_is_told_in_the_words_of_now():
    before = run(a={"ratio": 1.0, "noise": 0.0, "what": "old words"})
    now = run(a={"ratio": 2.0, "noise": 0.0, "what": "new words"})
    assert changes(before, now) == [["new words", 1.0, 2.0, 0.0]]


def test_of_a_contest_the_limit_is_compared_alone():
    before, now = run(a=contest(2.0, 1.0, 9.0)), run(a=contest(3.0, 1.0, 5.0))
    [(what, was, value, noise)] = changes(before, now)
    assert what == "Selection, 1,000 × 20 / x @ y"
    assert (was, value) == (2.0, 3.0)
    assert noise == pytest.approx(0.02 / 1.349)
    # All slower alike: a busy machine.
    assert not changes(before, run(a=contest(6.0, 3.0, 27.0)))


def test_quick_runs_are_not_compared():
    assert comparison.compare(run(a=1.0), run(a=9.0, quick=True)) is None
    assert comparison.compare(run(a=1.0, quick=True), run(a=9.0)) is None


def test_ratio_and_noise_are_those_of_the_rounds():
    # A machine that halves its speed for a while slows both.
    ratio, noise = comparison.ratio_of([2.0, 4.0, 2.0, 2.2, 1.8], [1.0, 2.0, 1.0, 1.0, 1.0])
    assert ratio == 2.0
    assert noise == 0.0
    ratio, noise = comparison.ratio_of([1.0, 1.1, 0.9, 1.2, 0.8], [1.0] * 5)
    assert (ratio, noise) == (1.0, pytest.approx(0.14826))
    assert comparison.ratio_of([3.0], [2.0]) == (1.5, None)


def test_numbers_of_no_commit_are_those_that_lie_there(tmp_path):
    path = tmp_path / comparison.COMMITTED
    path.parent.mkdir(parents=True)
    path.write_text('{"quick": false}')
    assert comparison.committed(tmp_path) == {"quick": False}


def test_the_page_ends_with_what_changed():
    results = run() | {"tables": {}}
    assert "Since" not in page.page(results | {"since": None})
    results["since"] = comparison.compare(run(a=1.0), run(a=1.0))
    assert page.page(results).endswith("None did.\n")
    results["since"] = comparison.compare(run(a=1.0), run(a=2.0))
    text = page.page(results)
    assert "Of 1 ratios that were measured then too (streamsel 1.0, 2 cores of a processor)" in text
    last = text.splitlines()[-1].strip("|").split("|")
    assert [cell.strip() for cell in last] == ["a", "1", "2", "**+100%**", "1%"]


@pytest.mark.parametrize(
    ("machine", "cpu"),
    [
        ({"cpu": {"brand_raw": "a brand"}, "processor": "x", "machine": "y"}, "a brand"),
        ({"cpu": {}, "processor": "aarch64", "machine": "y"}, "aarch64"),
        ({"processor": "", "machine": "riscv64"}, "riscv64"),
    ],
)
def test_a_processor_that_does_not_tell_its_brand_is_named(machine, cpu):
    raw = run() | {"tables": {}, "machine_info": machine | {"python_version": "3.13"}}
    kept = page.trimmed(raw)["machine"]
    assert kept["cpu"] == cpu
    assert kept["cores"] >= 1

"""A ratio counts as worse if the change exceeds its noise; times are not compared."""

import pytest

from tests.bench import comparison, page


def run(*, quick=False, **ratios):
    """Return the results of a run: name -> extra_info, or a ratio with little noise."""
    noted = {
        name: one if isinstance(one, dict) else {"ratio": one, "noise": 0.01}
        for name, one in ratios.items()
    }
    return {
        "machine": {"cpu": "a processor", "cores": 2, "python": "3.13"},
        "versions": {"streamsel": "1.0"},
        "quick": quick,
        "benchmarks": [
            {"name": name, "group": "Selection", "extra_info": info, "median": 1.0}
            for name, info in noted.items()
        ],
    }


def changes(before, now):
    return comparison.compare(before, now)["changes"]


def contest(ours, limit, peer):
    contestants = {
        name: {"seconds": seconds, "iqr": seconds / 100, "rounds": 9, "ratio": seconds / ours}
        for name, seconds in (("ours", ours), ("x @ y", limit), ("peer", peer))
    }
    for name, one in contestants.items():
        one["limit"] = name == "x @ y"
    contestants["absent"] = {"limit": False, "why": "more than 30 s"}
    return {"n": 1000, "p": 20, "contestants": contestants}


def test_worse_ratios_come_first_and_are_bold():
    before, now = run(a=1.0, b=2.0, c=0.5, d=1.0), run(a=0.5, b=4.0, c=0.6, d=1.0)
    compared = comparison.compare(before, now)
    assert [change[0] for change in compared["changes"]] == ["b", "c", "a"]
    assert [comparison.is_worse(change) for change in compared["changes"]] == [True, True, False]
    assert compared["compared"] == 4
    assert page.changed(compared["changes"])[0] == ("b", "2", "4", "**+100%**", "1%")
    assert page.changed(compared["changes"])[2] == ("a", "1", "0.5", "-50%", "1%")


@pytest.mark.parametrize(
    ("noise", "value", "is_reported"),
    [(0.0, 1.04, False), (0.0, 1.06, True), (0.1, 1.4, False), (0.1, 1.45, True)],
)
def test_noise_of_both_runs_is_considered(noise, value, is_reported):
    before = run(a={"ratio": 1.0, "noise": noise})
    now = run(a={"ratio": value, "noise": noise})
    assert bool(changes(before, now)) == is_reported
    assert bool(changes(now, before)) == is_reported


@pytest.mark.parametrize("noise", [{}, {"noise": None}])
def test_unknown_noise_is_ten_percent(noise):
    before = run(a={"ratio": 1.0} | noise)
    assert not changes(before, run(a=1.28))
    assert changes(before, run(a=1.35))


def test_lines_of_one_run_alone_are_not_compared():
    compared = comparison.compare(run(a=1.0, b=1.0), run(b=1.0, c=9.0))
    assert (compared["compared"], compared["changes"]) == (1, [])


def test_a_change_has_the_label_of_the_new_run():
    before = run(a={"ratio": 1.0, "noise": 0.0, "what": "old words"})
    now = run(a={"ratio": 2.0, "noise": 0.0, "what": "new words"})
    assert changes(before, now) == [["new words", 1.0, 2.0, 0.0]]


def test_only_the_limit_of_a_comparison_is_compared():
    before, now = run(a=contest(2.0, 1.0, 9.0)), run(a=contest(3.0, 1.0, 5.0))
    [(what, was, value, noise)] = changes(before, now)
    assert what == "Selection, 1,000 × 20 / x @ y"
    assert (was, value) == (2.0, 3.0)
    assert noise == pytest.approx(0.02 / 1.349)
    # All are slower by the same factor, as on a busy machine.
    assert not changes(before, run(a=contest(6.0, 3.0, 27.0)))


def test_quick_runs_are_not_compared():
    assert comparison.compare(run(a=1.0), run(a=9.0, quick=True)) is None
    assert comparison.compare(run(a=1.0, quick=True), run(a=9.0)) is None


def test_ratio_and_noise_are_those_of_the_rounds():
    # A temporary slowdown of the machine affects both.
    ratio, noise = comparison.ratio_of([2.0, 4.0, 2.0, 2.2, 1.8], [1.0, 2.0, 1.0, 1.0, 1.0])
    assert ratio == 2.0
    assert noise == 0.0
    ratio, noise = comparison.ratio_of([1.0, 1.1, 0.9, 1.2, 0.8], [1.0] * 5)
    assert (ratio, noise) == (1.0, pytest.approx(0.14826))
    assert comparison.ratio_of([3.0], [2.0]) == (1.5, None)


def test_without_a_commit_the_numbers_in_the_directory_are_used(tmp_path):
    path = tmp_path / comparison.COMMITTED
    path.parent.mkdir(parents=True)
    path.write_text('{"quick": false}')
    assert comparison.committed(tmp_path) == {"quick": False}


def test_the_page_ends_with_the_changes():
    results = run() | {"tables": {}}
    assert "Since" not in page.page(results | {"since": None})
    results["since"] = comparison.compare(run(a=1.0), run(a=1.0))
    assert page.page(results).endswith("None did.\n")
    results["since"] = comparison.compare(run(a=1.0), run(a=2.0))
    text = page.page(results)
    assert "1 ratios were measured in the run before too (streamsel 1.0, 2 cores of a " in text
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
def test_a_processor_without_a_brand_is_named(machine, cpu):
    raw = run() | {"tables": {}, "machine_info": machine | {"python_version": "3.13"}}
    kept = page.trimmed(raw)["machine"]
    assert kept["cpu"] == cpu
    assert kept["cores"] >= 1

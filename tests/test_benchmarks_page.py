"""The benchmark page shows all results, including slower ones, with the reasons."""

import json
import re

import pytest

from tests.bench import page


def contestant(seconds, ours, *, r2, limit=False, **more):
    return {"seconds": seconds, "ratio": seconds / ours, "limit": limit, "r2": r2, **more}


@pytest.fixture
def results():
    contestants = {
        "ProjSe": contestant(2e-3, 2e-3, r2=0.5, found=3, memory=2_000_000),
        "`y @ X`": contestant(1e-3, 2e-3, r2=0.0, limit=True),
        "faster": contestant(5e-4, 2e-3, r2=0.504, found=3, memory=3_000_000),
        "slower": contestant(0.25, 2e-3, r2=0.75, found=4, memory=500_000),
        "absent": {"limit": False, "why": "more than 30 s"},
    }
    record = {"n": 1000, "p": 5000, "about": "What was done.", "sources": 5, "data_bytes": 4e7}
    extra = record | {"contestants": contestants}
    stats = {"median": 2e-3, "iqr": 1e-4, "rounds": 5}
    lines = [["what", "ratio", "threshold"], ["one", "2", "**≤ 1**"], ["other", "1", "≤ 1.5"]]
    return {
        "machine": {"cpu": "a processor", "cores": 2, "python": "3.13"},
        "versions": {"streamsel": "1.0"},
        "quick": False,
        "tables": {"against the limit": lines},
        "benchmarks": [
            {"name": "a", "group": "Selection", "params": None, "extra_info": extra, **stats},
            {"name": "b", "group": None, "params": None, "extra_info": {"ratio": 2.0}, **stats},
        ],
    }


def rows(markdown):
    """Return the cells of every line of every table."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_losses_are_bold_and_gaps_have_reasons(results):
    found = rows(page.page(results))
    assert ["n × p", "ProjSe", "`y @ X`, the limit", "faster", "slower", "absent"] in found
    why = "more than 30 s"
    assert ["1,000 × 5,000", "2 ms", "0.5", "**0.25**", "125", why] in found
    assert ["1,000 × 5,000", "40 MB", "2 MB", "3 MB", "**500 kB**", why] in found
    # A lead that disappears by rounding is not bold.
    worth = ["0.50, 3 of 5", "0.50, 3 of 5", "**0.75, 4 of 5**", why]
    assert ["1,000 × 5,000", *worth] in found
    assert ["one", "2", "**≤ 1**"] in found


def test_empty_tables_are_left_out(results):
    for one in results["benchmarks"][0]["extra_info"]["contestants"].values():
        one.pop("memory", None)
    text = page.page(results)
    assert "### Peak memory" not in text
    assert "memory.svg" not in text


def test_only_a_quick_run_is_marked(results):
    assert "not to be quoted" not in page.page(results)
    assert "not to be quoted" in page.page(results | {"quick": True})


@pytest.mark.slow
@pytest.mark.parametrize("memory", [True, False])
def test_plots_of_the_page_are_drawn(results, tmp_path, memory):
    if not memory:
        for one in results["benchmarks"][0]["extra_info"]["contestants"].values():
            one.pop("memory", None)
    pytest.importorskip("matplotlib")
    from tests.bench import plots

    plots.draw(results, tmp_path)
    drawn = {f"(benchmarks/{path.name})" for path in tmp_path.iterdir()}
    assert drawn == set(re.findall(r"\(benchmarks/[^)]*svg\)", page.page(results)))
    assert len(drawn) == 1 + memory


def test_results_contain_neither_user_nor_host(results):
    machine = {"cpu": {"brand_raw": "a processor", "count": 2}, "python_version": "3.13"}
    stats = {"median": 1.0, "iqr": 0.1, "rounds": 3, "data": [1.0]}
    one = {"name": "a", "group": None, "params": None, "extra_info": {}, "fullname": "secret"}
    raw = results | {
        "machine_info": machine | {"node": "secret"},
        "commit_info": {"author": "secret"},
        "benchmarks": [one | {"stats": stats}],
    }
    kept = page.trimmed(raw)
    assert kept["machine"] == {"cpu": "a processor", "cores": 2, "python": "3.13"}
    assert kept["benchmarks"][0]["median"] == 1.0
    assert "secret" not in json.dumps(kept)


def test_numbers_keep_five_digits():
    assert page.rounded({"a": [1.23456789, 7, "x"], "b": None}) == {
        "a": [1.2346, 7, "x"],
        "b": None,
    }


def test_the_published_page_shows_the_published_numbers():
    pages = page.ROOT / "docs" / "pages"
    results = json.loads((pages / "benchmarks" / "benchmarks.json").read_text(encoding="utf-8"))
    assert (pages / "benchmarks.md").read_text(encoding="utf-8") == page.page(results)


def test_a_stopped_run_is_resumed(results, monkeypatch, tmp_path):
    files = sorted(path.stem for path in (page.ROOT / "tests" / "bench").glob("test_*.py"))
    missing = files[3]
    for stem in files[:3] + files[4:]:
        (tmp_path / f"{stem}.json").write_text(json.dumps(results), encoding="utf-8")
    ran = []

    def pytest_run(command, **kwargs):
        ran.append(page.Path(command[3]).stem)
        return page.subprocess.CompletedProcess(command, returncode=int(len(ran) == 1))

    monkeypatch.setattr(page.subprocess, "run", pytest_run)
    with pytest.raises(SystemExit, match=rf"did not all run.*{missing}\.py"):
        page.measure(tmp_path)
    # It runs now, but all its benchmarks are skipped.
    merged = page.measure(tmp_path)
    assert ran == [missing, missing]
    assert len(merged["benchmarks"]) == (len(files) - 1) * len(results["benchmarks"])
    [head, *lines] = merged["tables"]["against the limit"]
    assert head == ["what", "ratio", "threshold"]
    assert len(lines) == 2 * (len(files) - 1)

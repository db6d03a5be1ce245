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


def test_losses_are_bold_and_missing_values_explained(results):
    found = rows(page.page(results))
    assert ["n × p", "ProjSe", "`y @ X`, the limit", "faster", "slower", "absent"] in found
    why = "more than 30 s"
    assert ["1,000 × 5,000", "2 ms", "0.5", "**0.25**", "125", why] in found
    assert ["1,000 × 5,000", "40 MB", "2 MB", "3 MB", "**500 kB**", why] in found
    # Equal after rounding: not bold.
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


# The beginning of a line in the table of a page -> beginnings of the benchmarks that it quotes.
QUOTED = {
    "limits.md": {
        "| SOSPCA, dense, n = 1,000 |": ["SOSPCA dense, n=1,000 p=100,000 r=1 /"],
        "| SOSPCA, dense, n = 200 |": ["SOSPCA dense, n=200 p=100,000"],
        "| SOSPCA, CSC, 1 %": [
            "SOSPCA CSC 1 %, n=1,000 p=100,000 /",
            "SOSPCA CSC 1 %, n=1,000 p=1,000",
        ],
        "| ProjSe, 20 classes |": ["ProjSe 20 classes, n=2,000 p=20,000 k=20 /"],
        "| the same, `max_candidates=80` |": [
            "ProjSe 20 classes, n=2,000 p=20,000 k=20 max_candidates=80"
        ],
        "| ProjSe, 100 numeric targets |": ["ProjSe 100 numeric targets"],
        "| a single column, rejected |": [
            "SOSPCA learn_column",
            "ProjSe max_candidates=80 learn_column",
        ],
        "| the Gram matrix of RidgeComponents": ["Gram matrix, dense, n=1,000"],
        "| the same, CSC, 1 %, 1,000": [
            "Gram matrix, CSC 1 %, n=1,000",
            "Gram matrix, CSC 1 %, n=2,000",
        ],
        "| RidgeComponents, 1,000 × 50,000": ["RidgeComponents, result included"],
        "| RidgeComponents with `max_support=500`": ["RidgeComponents max_support=500, n=1,000"],
        "| the same, a single column": ["RidgeComponents max_support=500, learn_column"],
        "| PCA of 1,000": ["PCA, 10 components of 1,000 x 20,000 / scikit-learn's PCA, randomized"],
        "| RandomProjection, signs": ["RandomProjection sign, n=1,000"],
        "| `learn_many`": ["ProjSe learn_many, 5,000 × 100, C /"],
        "| `learn_one`, 1,000 features": ["ProjSe learn_one, 1,000 features, 20 rows / River"],
        "| transform and learn, 10": ["ProjSe transform, then learn, 10"],
        "| RidgeComponents, transform and learn": ["RidgeComponents transform, then learn, 1,000"],
        "| RandomProjection, the same": [
            "RandomProjection transform and learn, 1,000 features, 100",
            "RandomProjection transform and learn, 1,000 features, 10 ",
        ],
    },
    "speed.md": {
        "| SOSPCA, 100,000 dense": ["SOSPCA dense, n=1,000 p=100,000 r=1 /"],
        "| the same in float32, int8": ["SOSPCA float32", "SOSPCA int8"],
        "| the same, sparse": ["SOSPCA CSC 1 %, n=1,000 p=100,000 /"],
        "| ProjSe, 20 classes, 20,000": ["ProjSe 20 classes, n=2,000 p=20,000 k=20 /"],
        "| PCA, 10 exact scores": [
            "PCA, 10 components of 1,000 x 20,000 / scikit-learn's PCA, randomized",
            "PCA, 10 components of 1,000 x 20,000 / scikit-learn's PCA, arpack",
        ],
        "| a Parquet file of 20,000": ["Parquet, 1000×20,000, ProjSe, one target"],
        "| 5,000 rows of 100": ["ProjSe learn_many, 5,000 × 100, C /"],
        "| one row of 1,000": ["ProjSe learn_one, 1,000 features, 20 rows / River"],
    },
    "sources.md": {
        "| Parquet | `pyarrow": ["Parquet, 1000×20,000, ProjSe, one target"],
        "| Arrow IPC | `read_all`": ["Arrow IPC, uncompressed"],
        "| the same, lz4 |": ["Arrow IPC, lz4"],
        "| `.npy` in Fortran order |": [".npy in F order"],
        "| `.npy` in C order |": [".npy in C order"],
        "| text, one variable per line |": ["text, one variable per line, 4,000×1000, ProjSe"],
        "| the same, 5 % of the cells": ["text, one variable per line, 4,000×1000, 5%"],
        "| text, one observation per line |": ["text, one observation per line"],
        "| `.bed` | `bed_reader": [".bed, none missing"],
        "| the same, 0.1 % missing": [".bed, 0.1 % missing"],
        "| `.vcf.gz`, GT alone": [".vcf.gz, GT, "],
        "| `.vcf.gz`, GT:AD": [".vcf.gz, GT:AD"],
        "| `.h5ad`, CSC": [".h5ad, csc"],
        "| the same, CSR": [".h5ad, csr"],
        "| the same, dense": [".h5ad, dense"],
        "| Zarr, chunks of 100": ["Zarr, chunks of some columns"],
        "| the same, chunks of 10 rows": ["Zarr, chunks of some rows"],
    },
}


@pytest.mark.parametrize("name", QUOTED)
def test_other_pages_quote_the_published_ratios(name):
    pages = page.ROOT / "docs" / "pages"
    results = json.loads((pages / "benchmarks" / "benchmarks.json").read_text(encoding="utf-8"))
    lines = (pages / name).read_text(encoding="utf-8").splitlines()
    table = results["tables"]["against the limit"]
    for start, benchmarks in QUOTED[name].items():
        (line,) = (line for line in lines if line.startswith(start))
        written = line.split("|")[4 if name == "speed.md" else 3].split(", ")
        for number, benchmark in zip(written, benchmarks, strict=True):
            (row,) = (row for row in table if row[0].startswith(benchmark))
            unit = 10.0 ** -len(number.partition(".")[2].strip())
            assert float(number) == pytest.approx(float(row[3]), abs=0.51 * unit), (start, row)


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

"""The HTML report in a browser: narrow and wide screens, light and dark colour schemes."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamsel
from streamsel._utils.text import printable
from streamsel.base.report import Density, Direction
from streamsel.evaluate import subsample_stability
from tests.page.reading import HOSTILE

pytestmark = pytest.mark.browser

MEASURES = (Path(__file__).parent / "measures.js").read_text(encoding="utf-8")
MOST_BYTES = 500_000
WARNINGS = {"warnings": [{"code": "skipped", "text": "15 % of the columns were skipped"}]}
METADATA = WARNINGS | {
    "command": "select",
    "file": "expression.parquet",
    "target": ["survival"],
    "skipped": {"with missing values": 300},
    "fingerprint": {"rows": 120, "columns": 700},
}


LONG = "a name that is as long as those of some databases, and has its number at the end: "


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 400))
    X[:, :20] += rng.normal(size=(120, 1))
    return X, X[:, 3] + X[:, 50] + rng.normal(size=120)


def learnt(model, y):
    X, _ = data()
    if model._is_supervised:
        model.learn_target(y)
    model.learn_columns(X, [*HOSTILE, *(f"gene {j}" for j in range(len(HOSTILE), 400))])
    return model


def with_pool():
    _, y = data()
    return learnt(streamsel.ProjSe(k=15, max_candidates=60), y), METADATA


def with_classes():
    _, y = data()
    labels = np.array(["ill", "well", "between"])[np.digitize(y, [-1.0, 1.0])]
    return learnt(streamsel.SelectKBest(k=30), labels), WARNINGS


def with_path():
    return learnt(streamsel.Lasso(k=8), data()[1]), {}


def on_gram():
    return learnt(streamsel.PLS(n_components=4), data()[1]), {}


def on_rows():
    X, y = data()
    model = streamsel.SOSPCA(n_components=3)
    for x, value in zip(X[:, :10].tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip("abcdefghij", x, strict=True)), value)
    return model, {}


def empty():
    return streamsel.ProjSe(), {}


def ten_million():
    """Return the report of 10,000,000 columns with 10,000 selected."""
    model, _ = with_pool()
    report = model.report()
    edges = np.append(0.0, np.geomspace(0.005, 1.0, 140))
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 100_000, size=(64, 140)) * (edges[1:] < 0.5)
    density = Density(counts, 2**18, edges, np.clip(1.0 - 2.0 * edges, 0.0, 1.0))
    row = report.results[0] | {"round": 0, "certified": True}
    found = [
        row | {"name": f"{LONG}{10_000_000 - j}", "relevance": 0.9 - j / 20_000, "arrival": 997 * j}
        for j in range(10_000)
    ]
    others = {row["name"]: [(f"{LONG}1", 0.97), (f"{LONG}2", 0.91)] for row in found}
    report = replace(report, results=found, columns_seen=10_000_000, density=density)
    direction = Direction(1, "between", is_class=True)
    report = replace(
        report,
        directions={row["name"]: direction for row in found},
        redundancy={row["name"]: (f"{LONG}1", -0.97) for row in found},
    )
    return replace(report, alternatives=others, n_requested=10_000), METADATA


def with_rows():
    """Return a model of many classes, with rows and stability; names contain markup."""
    X, y = data()
    names = [*HOSTILE, *(f"gene {j}" for j in range(len(HOSTILE), 400))]
    labels = np.array([*"abcdefghijklm"])[np.digitize(y, np.quantile(y, np.arange(1, 13) / 13))]
    model = learnt(streamsel.MRMR(k=60), labels)
    found = subsample_stability(
        streamsel.MRMR(k=60), pd.DataFrame(X, columns=names), labels, n_subsamples=5
    )
    given = {"data": pd.DataFrame(X, columns=names), "y": labels, "stability": found}
    return model, {"metadata": WARNINGS, **given}


PAGES = [with_pool, with_classes, with_path, on_gram, on_rows, empty, ten_million, with_rows]


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.__name__)
def path(request, tmp_path_factory):
    model, metadata = request.param()
    given = metadata if "metadata" in metadata else {"metadata": metadata}
    path = tmp_path_factory.mktemp("pages") / f"{request.param.__name__}.html"
    path.write_text(streamsel.report(model, **given), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_report_is_legible(look, path, width, scheme):
    assert path.stat().st_size <= MOST_BYTES
    with look(path, width, scheme) as (page, troubles):
        assert page.evaluate(MEASURES) == []
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate(MEASURES) == []
        assert troubles == []


def test_printed_report_fits_page_width(look, path):
    with look(path) as (page, troubles):
        page.emulate_media(media="print")
        assert page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
        assert troubles == []


def test_the_results_are_saved_as_csv(look, tmp_path):
    """The file is saved without a script, under the content security policy."""
    model, _ = with_path()
    path = tmp_path / "page.html"
    path.write_text(streamsel.report(model), encoding="utf-8")
    with look(path) as (page, troubles):
        with page.expect_download() as saved:
            page.get_by_text("Download as CSV").click()
        assert saved.value.suggested_filename == "lasso.csv"
        text = Path(saved.value.path()).read_text(encoding="utf-8")
        rows = list(csv.DictReader(text.splitlines()))
        assert [row["name"] for row in rows] == [printable(name) for name in model.selected]
        relevance = [float(row["relevance"]) for row in rows]
        assert relevance == pytest.approx([*model.relevance.values()], rel=1e-5)
        assert troubles == []


def test_notebook_representation_is_rendered(look, tmp_path):
    model, _ = with_pool()
    path = tmp_path / "cell.html"
    path.write_text(
        f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>x</title>{model._repr_html_()}",
        encoding="utf-8",
    )
    with look(path, 700) as (page, troubles):
        assert "15 of 400 variables" in page.inner_text("body")
        assert page.locator("tbody tr").count() == 10
        assert page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
        assert troubles == []


def test_measurements_detect_every_defect(look, tmp_path):
    """The measurements detect every kind of defect on a bad page."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><body style='margin:0'><img src='http://example.org/a.png'>"
        "<section class=card style='height:50px'><h2>one</h2><p style='width:3000px'>wide</p>"
        "<p style='font-size:8px;color:#bbb'>small</p></section>"
        "<section class=card style='margin-top:-40px'><h2>two</h2><table><tr><th>a</table>"
        "</section>"
        "<svg width=10 height=10><text x=50>far</text></svg><script>console.log(1)</script>",
        encoding="utf-8",
    )
    with look(path, 390) as (page, troubles):
        defects = " ".join(page.evaluate(MEASURES))
        for word in ("wider than", "overlaps", "clipped", "sticks out", "cut off", "8.0 px"):
            assert word in defects
        for word in ("contrast of 1.9", "no language", "says nothing", "without scope"):
            assert word in defects
        assert any("asks for http://example.org" in trouble for trouble in troubles)
        assert any(trouble.startswith("log:") for trouble in troubles)

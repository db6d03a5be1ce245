"""Every learner has an HTML report in every format, and a representation in notebooks."""

import json

import numpy as np

from streamsel import report
from streamsel.reporting.html import render_html
from streamsel.reporting.sections import build_document
from streamsel.reporting.summary import summarize
from tests.conformance.modes import COLUMN_MODES, build, data, learnt, sampled
from tests.conformance.rowwise import ROW_MODES, taught
from tests.page.reading import read


def check(model):
    """Check the page of a model without its plots, which take long to draw."""
    found = model.report()
    summary = summarize(found)
    assert summary.endswith(".")
    assert "  " not in summary
    assert ".." not in summary
    page = read(render_html(build_document(found, {})))
    assert summary in page.text
    assert summary in read(model._repr_html_()).text
    assert f"{type(model).__name__}" in report(model, format="md")
    found_json = json.loads(report(model, format="json"))
    assert found_json["summary"] == summary
    for row in found.results[:10]:
        assert str(row["name"]) in page.text
    return page


@sampled(COLUMN_MODES)
def test_report_of_columns(mode):
    X, y = data(mode, p=60)
    page = check(learnt(mode, X, y, [f"<{j}>" for j in range(60)]))
    assert "columns seen 60 rows 40" in page.text


@sampled(ROW_MODES)
def test_report_of_rows(mode):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, 2] > 0 if mode.of_classes else X[:, 2] - X[:, 5]
    rows = ((dict(zip("abcdefgh", x, strict=True)), v) for x, v in zip(X.tolist(), y, strict=True))
    check(taught(build(mode), rows))

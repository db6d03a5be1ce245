"""The demonstration: what it reads, what it holds out, and that what it reports is true."""

import dataclasses
import io
import json
import re

import numpy as np
import pytest
import rich.console
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from streamsel import demo
from streamsel.demo import _docstrings, _judge
from tests.reference import text as reference


@pytest.fixture(scope="module")
def documents():
    return _docstrings.read_docstrings(every=8)


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def report(told):
    return demo.run(quick=True, progress=lambda *step: told.append(step))


def test_documents_are_distinct_and_name_no_library(documents):
    texts = [document.text for document in documents]
    assert len(set(texts)) == len(texts) > 300
    assert {document.library for document in documents} == {"numpy", "scipy"}
    assert not any(re.search("numpy|scipy", text, re.IGNORECASE) for text in texts)
    for file in {document.file for document in documents}:
        assert len({d.library for d in documents if d.file == file}) == 1


def test_docstrings_are_those_that_python_sees(tmp_path, monkeypatch):
    folders = {"numpy": tmp_path / "numpy", "scipy": tmp_path / "scipy"}
    for folder in folders.values():
        (folder / "tests").mkdir(parents=True)
    (folders["numpy"] / "a.py").write_text(
        '"""Module of NumPy."""\n'
        "class A:\n"
        "    '''Class.'''\n"
        "    async def f(self):\n"
        '        """Function.\n\n        Indented."""\n'
        "        def g(): 'Inner.'\n"
        "def twice(): 'Class.'\n"
        "def both(): 'In both.'\n"
        "x = 'not a docstring'\n"
        "y = '\\d'\n",
        encoding="utf-8",
    )
    (folders["numpy"] / "broken.py").write_text("'A template.'\nx = {{ y }\n", encoding="utf-8")
    (folders["scipy"] / "b.py").write_text("def f(): 'In both.'\ndef g(): 'g.'\n", encoding="utf-8")
    (folders["scipy"] / "tests" / "c.py").write_text("'A test.'\n", encoding="utf-8")
    monkeypatch.setattr(_docstrings, "_folder", folders.__getitem__)
    found = {(document.text, document.library) for document in _docstrings.read_docstrings()}
    assert found == {
        ("Module of somelibrary.", "numpy"),
        ("Class.", "numpy"),
        ("Function.\n\nIndented.", "numpy"),
        ("Inner.", "numpy"),
        ("g.", "scipy"),
    }


def test_missing_source_files_are_an_os_error(tmp_path, monkeypatch):
    monkeypatch.setattr(_docstrings, "_folder", lambda _: tmp_path)
    with pytest.raises(OSError, match="Expected the source files of numpy and scipy"):
        demo.run()
    monkeypatch.undo()
    monkeypatch.setattr(_docstrings, "find_spec", lambda _: None)
    with pytest.raises(OSError, match="Expected numpy to be installed"):
        demo.run()


def test_files_are_held_out_whole(documents):
    train, test = _docstrings.split(documents)
    assert not {d.file for d in train} & {d.file for d in test}
    assert sorted(train + test) == sorted(documents)
    assert 0.1 < len(test) / len(documents) < 0.5
    assert _docstrings.split(documents) == (train, test)


@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_classifier_is_logistic_regression(rng, monkeypatch, penalty):
    X = rng.poisson(2.0, (200, 6))
    X[:, 1] = 0
    y = X[:, 0] + rng.normal(size=200) > 2
    scaled = StandardScaler(with_mean=False).fit_transform(X.astype(float))
    peer = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10_000).fit(scaled, y)
    w = _judge._logistic(scaled, y, penalty)
    np.testing.assert_allclose(w[1:], peer.coef_[0], atol=0.03)
    np.testing.assert_allclose(w[0], peer.intercept_[0], atol=0.03)

    monkeypatch.setattr(_judge, "_PENALTIES", (penalty,))
    tried = np.arange(200) % 4 == 0
    for given in (X.astype(float), csr_array(X, dtype=float)):
        predicted = _judge._classify(given, y, given, tried)
        assert (predicted == peer.predict(scaled)).mean() > 0.98


def test_report_is_true(report, documents):
    train, test = _docstrings.split(documents)
    assert (report.n_train, report.n_test) == (len(train), len(test))
    columns = reference.ngrams([document.text for document in train], (1, 2))
    assert report.n_columns == len(columns)
    assert report.dense_bytes == 8 * len(train) * len(columns)

    y = np.array([document.library == "scipy" for document in train])
    X = np.array([columns[chosen.name] for chosen in report.selected], dtype=bool)
    for chosen, x in zip(report.selected, X, strict=True):
        correlation = np.corrcoef(x, y)[0, 1]
        assert chosen.relevance == pytest.approx(abs(correlation), rel=1e-9)
        assert chosen.above_noise == (chosen.relevance > report.noise_floor)
        assert chosen.library == ("scipy" if correlation > 0 else "numpy")
        assert chosen.documents == {"numpy": int((x & ~y).sum()), "scipy": int((x & y).sum())}
    for built in report.components:
        x = sum(w * (np.array(columns[name]) > 0) for name, w in built.loadings.items())
        assert built.relevance == pytest.approx(abs(np.corrcoef(x, y)[0, 1]), rel=1e-7)
        assert list(map(abs, built.loadings.values())) == sorted(
            map(abs, built.loadings.values()), reverse=True
        )
    # Nothing that was left out is more relevant than what was selected.
    every = np.array([np.array(column) > 0 for column in columns.values()], dtype=float)
    every -= every.mean(axis=1, keepdims=True)
    norms = np.sqrt((every**2).sum(axis=1) * y.var() * y.size)
    relevance = np.abs(every @ (y - y.mean())) / np.where(norms > 0, norms, np.inf)
    best = np.sort(relevance)[::-1][: len(report.selected)]
    np.testing.assert_allclose([chosen.relevance for chosen in report.selected], best, rtol=1e-9)


def test_scores_are_of_the_documents_held_out(report, documents):
    _, test = _docstrings.split(documents)
    share = np.mean([document.library == "scipy" for document in test])
    majority, words, selected, built = report.scores
    assert majority == demo.Score("none: always scipy", 0, pytest.approx(share))
    assert words.n_variables > 1000
    assert selected.n_variables == len(report.selected)
    assert built.n_variables == len(report.components)
    assert all(score.accuracy > majority.accuracy for score in (words, selected, built))


def test_a_second_run_is_the_same_but_for_time_and_memory(report):
    varying = dict.fromkeys(("seconds", "columns_per_second", "peak_bytes", "growth_bytes"))
    again = demo.run(quick=True)
    assert dataclasses.replace(again, **varying) == dataclasses.replace(report, **varying)


def test_progress_goes_from_stage_to_stage(report, told):
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["reading source files", "streaming n-grams", "judging on documents held out"]
    assert all(0 <= done <= total for _, done, total in told)
    streamed = [step for step in told if step[0] == "streaming n-grams"]
    assert streamed[-1][1:] == (report.n_columns, report.n_columns)


def test_memory_is_measured(report):
    if report.peak_bytes is None:
        assert report.growth_bytes is None
    else:
        assert 0 <= report.growth_bytes < report.peak_bytes


def test_report_is_json(report):
    read = json.loads(json.dumps(dataclasses.asdict(report)))
    assert read["selected"][0]["name"] == report.selected[0].name
    assert sum(value for stage, value in report.seconds.items() if stage != "all together") == (
        pytest.approx(report.seconds["all together"])
    )


@pytest.mark.parametrize("measured", [True, False])
def test_render_prints_what_was_found(report, measured):
    if not measured:
        report = dataclasses.replace(report, peak_bytes=None, growth_bytes=None)
    out = io.StringIO()
    demo.render(report, rich.console.Console(file=out, width=100))
    printed = out.getvalue()
    assert f"{report.n_columns:,} variables" in printed
    assert f"{report.noise_floor:.3f}" in printed
    assert report.selected[0].name in printed
    assert f"{report.scores[-1].accuracy:.1%}" in printed
    assert "all together" in printed
    assert ("not told by this system" in printed) != measured

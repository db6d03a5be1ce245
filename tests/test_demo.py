"""The demonstration: what it reads, its held-out data, and correct reported figures."""

import dataclasses
import io
import json
import re

import numpy as np
import pytest
import rich.console
from scipy.sparse import csc_array, csr_array, diags_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from streamsel import demo
from streamsel.demo import classify, data, questions, text_report
from streamsel.demo.data import iter_phrases

# The classes of both questions.
CLASSES = [(questions.FIRST_PACKAGE, "another"), data.PACKAGES]


@pytest.fixture(scope="module")
def documents():
    return data.read_docstrings(every=2)


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def quick():
    return demo.run(quick=True)


@pytest.fixture(scope="module")
def report(steps):
    """Return the report on both questions, from a quick run with fewer documents and n-grams."""
    with pytest.MonkeyPatch.context() as patched:
        read = data.read_docstrings
        patched.setattr(
            demo, "read_docstrings", lambda every, progress: read(every=2, progress=progress)
        )
        patched.setattr(demo, "LONGEST", 2)
        return demo.run(progress=lambda *step: steps.append(step))


@pytest.mark.slow
def test_documents_are_distinct_and_name_no_package(documents):
    texts = [document.text for document in documents]
    assert len(set(texts)) == len(texts) > 300
    assert {document.package for document in documents} == set(data.PACKAGES)
    names = rf"\b({'|'.join(('scipy', *data.PACKAGES))})\b"
    assert not any(re.search(names, text, re.IGNORECASE) for text in texts)
    assert all(len(text.split()) >= data.MIN_WORDS for text in texts)
    for file in {document.file for document in documents}:
        assert len({d.package for d in documents if d.file == file}) == 1


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        ("See scipy.stats.norm, and stats.", "See ___, and ___."),
        ("A Sparse matrix, sparsely.", "A ___ matrix, sparsely."),
        (">>> from scipy.spatial import distance\n>>> distance(1)", "\n>>> distance(1)"),
        ("  >>> import numpy as np\nfrom here on", "\nfrom here on"),
    ],
)
def test_names_and_imports_are_blanked(docstring, text):
    assert data.mask_cues(docstring) == text


def test_docstrings_equal_those_of_python(tmp_path, monkeypatch):
    long = " word" * data.MIN_WORDS
    modules = {name: f"Module {k}.{long}" for k, name in enumerate(data.PACKAGES)}
    for package, text in modules.items():
        (tmp_path / package / "tests").mkdir(parents=True)
        (tmp_path / package / "a.py").write_text(
            f"'{text}'\ndef everywhere(): 'In all.{long}'\n", encoding="utf-8"
        )
    (tmp_path / "stats" / "b.py").write_text(
        f"class A:\n    async def f(self):\n        '''Inner.\n\n        Indented.{long}'''\n"
        f"def twice(): '{modules['stats']}'\ndef short(): 'Short.'\nx = 'None.{long}'\ny = '\\d'\n",
        encoding="utf-8",
    )
    (tmp_path / "stats" / "broken.py").write_text("'A template.'\nx = {{ y }\n", encoding="utf-8")
    (tmp_path / "stats" / "tests" / "c.py").write_text(f"'Test.{long}'\n", encoding="utf-8")
    monkeypatch.setattr(data, "_folder", lambda _: tmp_path)
    found = {(document.text, document.package) for document in data.read_docstrings()}
    expected = {(text, package) for package, text in modules.items()}
    assert found == expected | {(f"Inner.\n\nIndented.{long}", "stats")}


def test_missing_source_files_are_an_os_error(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "_folder", lambda _: tmp_path)
    with pytest.raises(OSError, match="Expected the source files of scipy"):
        demo.run()
    monkeypatch.undo()
    monkeypatch.setattr(data, "find_spec", lambda _: None)
    with pytest.raises(OSError, match="Expected scipy to be installed"):
        demo.run()


def test_whole_files_of_every_package_are_test_data(documents):
    train, test = data.split(documents)
    assert not {d.file for d in train} & {d.file for d in test}
    assert sorted(train + test) == sorted(documents)
    for part in (train, test):
        assert {document.package for document in part} == set(data.PACKAGES)
    assert 0.1 < len(test) / len(documents) < 0.5
    assert data.split(documents) == (train, test)


def test_documents_have_unit_length():
    stream = iter_phrases(["One two two.", "one two three four", ""], 2)
    columns = {name: values.toarray().ravel() for name, values in stream}
    np.testing.assert_allclose(columns["two"], [2**-0.5, 0.5, 0.0])
    assert columns["one two"].tolist() == columns["two"].tolist()
    (again,) = iter_phrases(["One two two.", "one two three four", ""], 1, ["one two"])
    assert again[1].toarray().ravel().tolist() == columns["two"].tolist()


@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_classifier_is_softmax_regression(rng, penalty):
    X = rng.normal(size=(200, 6))
    y = np.argmax(X[:, :3] + rng.normal(size=(200, 3)), axis=1)
    peer = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10_000).fit(X, y)
    for given in (X, csr_array(X)):
        W = classify.softmax_regression(given, y, penalty)
        np.testing.assert_allclose(W[1:], peer.coef_.T, atol=0.03)
        # Intercepts are determined up to a common constant.
        centred = peer.intercept_ - peer.intercept_.mean()
        np.testing.assert_allclose(W[0] - W[0].mean(), centred, atol=0.03)


def test_classifier_ignores_scale_and_length(rng):
    X = rng.normal(size=(200, 3)) + 0.01
    y = np.argmax(X, axis=1)
    tried = np.arange(200) % 4 == 0
    length = rng.uniform(1.0, 9.0, size=(200, 1))
    predicted = classify.classify(
        X / np.linalg.norm(X, axis=1, keepdims=True), y, length * X, tried
    )
    assert (predicted == y).mean() > 0.95


def test_report_has_correct_figures(report, documents):
    train, test = data.split(documents)
    assert (report.n_train, report.n_test) == (len(train), len(test))
    peer = CountVectorizer(ngram_range=(1, 2), binary=True)
    X = csc_array(peer.fit_transform([document.text for document in train]), dtype=float)
    names = peer.get_feature_names_out()
    assert report.n_columns == len(names)
    assert report.dense_bytes == 8 * len(train) * len(names)
    for task, classes in zip(report.tasks, CLASSES, strict=True):
        Y = indicators(train, classes)
        assert task.classes == dict(zip(classes, Y.sum(axis=0).tolist(), strict=True))
        for phrase in task.selected:
            counts = X[:, [peer.vocabulary_[phrase.name]]].T @ Y
            assert list(phrase.documents.values()) == counts.ravel().tolist()
            shares = dict(zip(classes, (counts / Y.sum(axis=0)).ravel(), strict=True))
            assert shares[phrase.label] == max(shares.values())
    # Relevance is the correlation with the span of the target; that of the first phrase is largest.
    single = [j for j, name in enumerate(names) if " " not in name]
    X = csc_array(diags_array(X[:, single].sum(axis=1) ** -0.5) @ X)
    squares = (X * X).sum(axis=0) - len(train) * X.mean(axis=0) ** 2
    for task, classes in zip(report.tasks, CLASSES, strict=True):
        Y = indicators(train, classes)
        U = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[0][:, : len(classes) - 1]
        relevance = np.linalg.norm(X.T @ U, axis=1) / np.sqrt(squares)
        assert names[relevance.argmax()] == task.selected[0].name
    near = 1 / 4096  # the resolution of relevances of discarded columns
    bounds = [(relevance > report.noise_floor + sign * near).sum() for sign in (1, -1)]
    assert bounds[0] <= report.n_above_noise <= bounds[1]


def indicators(documents, classes):
    """Return indicators of the documents' classes; documents of other packages are in the last."""
    packages = np.array([document.package for document in documents])
    Y = packages[:, None] == np.array(classes)
    Y[~Y.any(axis=1), -1] = True
    return Y


def test_scores_are_of_the_test_documents(report, documents):
    _, test = data.split(documents)
    for task, classes in zip(report.tasks, CLASSES, strict=True):
        sizes = indicators(test, classes).sum(axis=0)
        most = max(task.classes, key=task.classes.get)
        majority, words, selected, *built = task.scores
        share = sizes[classes.index(most)] / len(test)
        assert majority.variables == f'none: always "{most}"'
        assert majority.accuracy == pytest.approx(share)
        assert (words.variables, words.gained, words.lost) == ("all single words", 0, 0)
        assert words.n_variables > 1000
        assert selected.n_variables == len(task.selected)
        assert len(built) == (task is report.tasks[1])
        for score in (selected, words, *built):
            assert score.accuracy > majority.accuracy
            gain = (score.accuracy - words.accuracy) * len(test)
            assert gain == pytest.approx(score.gained - score.lost)
        last = task.scores[-1].accuracy
        assert list(task.recall) == list(classes)
        assert np.dot(sizes, list(task.recall.values())) / len(test) == pytest.approx(last)
    assert [len(task.selected) for task in report.tasks] == [questions.K_FIRST, questions.K_SECOND]
    assert report.tasks[1].scores[-1].n_variables == questions.N_COMPONENTS


def test_few_phrases_are_as_accurate_as_all_words(report):
    """On the first question, few phrases are not less accurate than all words."""
    _, words, selected = report.tasks[0].scores
    assert "less accurate" not in text_report._compared(selected, words)
    assert selected.n_variables * 100 < words.n_variables


@pytest.mark.slow
def test_a_quick_run_answers_the_first_question(quick, report):
    assert quick.tasks == report.tasks[:1]
    assert (quick.n_models, quick.n_above_noise, quick.n_loadings) == (1, None, None)
    assert (report.n_models, quick.n_columns) == (3, report.n_columns)
    out = io.StringIO()
    demo.render(quick, rich.console.Console(file=out, width=100))
    assert "through one model" in out.getvalue()
    assert "20 phrases are " in " ".join(out.getvalue().split())
    assert "reduce" not in out.getvalue()


@pytest.mark.parametrize(
    ("gained", "lost", "beginning"),
    [
        (30, 10, "7 phrases are more accurate than all single words. 60.0% against 50.0%; 30 test"),
        (10, 30, "7 phrases are less accurate than all single words: so few lose accuracy here."),
        (12, 10, "7 phrases are as accurate as all single words, within chance."),
        (0, 0, "7 phrases are as accurate as all single words, within chance."),
    ],
)
def test_losses_are_reported(gained, lost, beginning):
    score = demo.Score("phrases, ForwardSelection", 7, 0.6, gained, lost)
    text = text_report._compared(score, demo.Score("all single words", 1234, 0.5, 0, 0))
    assert text.startswith(beginning)
    assert f"only with the phrases, {lost} only with the 1,234 words." in text


def test_progress_reports_all_stages(report, steps):
    stages = list(dict.fromkeys(stage for stage, _, _ in steps))
    assert stages == [
        "reading source files",
        "streaming n-grams",
        "evaluating on held-out documents",
    ]
    assert all(0 <= done <= total for _, done, total in steps)
    streamed = [step for step in steps if step[0] == "streaming n-grams"]
    assert streamed[-1][1:] == (report.n_columns, report.n_columns)


def test_memory_is_measured(report):
    if report.peak_bytes is None:
        assert report.growth_bytes is None
    else:
        assert 0 <= report.growth_bytes < report.peak_bytes


def test_report_is_json(report):
    read = json.loads(json.dumps(dataclasses.asdict(report)))
    assert read["tasks"][1]["selected"][0]["name"] == report.tasks[1].selected[0].name
    assert sum(value for stage, value in report.seconds.items() if stage != "all together") == (
        pytest.approx(report.seconds["all together"])
    )


def test_words_of_a_package_are_shown_once():
    phrases = [demo.Phrase(name, "stats", {}) for name in ("the mean", "the", "mean of", "a b")]
    assert [phrase.name for phrase in text_report._first(phrases)] == ["the mean", "a b"]


@pytest.mark.parametrize("measured", [True, False])
def test_render_prints_the_results(report, measured):
    if not measured:
        report = dataclasses.replace(report, peak_bytes=None, growth_bytes=None)
    out = io.StringIO()
    demo.render(report, rich.console.Console(file=out, width=100))
    printed = " ".join(out.getvalue().split())
    assert f"{report.n_columns:,} columns × {report.n_train:,} rows" in printed
    for task in report.tasks:
        assert task.question in printed
        assert task.selected[0].name in printed
        for score in task.scores:
            assert f"{score.accuracy:.1%}" in printed
        for score in task.scores[2:]:
            assert text_report._compared(score, task.scores[1]) in printed
    assert "all together" in printed
    assert ("not reported by this system" in printed) != measured

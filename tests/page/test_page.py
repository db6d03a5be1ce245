"""The HTML report: correct in every format, and well-formed for any names."""

import json
from dataclasses import replace

import numpy as np
import pytest

import streamsel
from streamsel.base.leakage import outcome_warning
from streamsel.base.report import Report, ResultWarning
from streamsel.reporting.html import render_html
from streamsel.reporting.json import as_json
from streamsel.reporting.sections import build_document
from streamsel.reporting.summary import summarize
from streamsel.stream import iter_array
from tests.page.reading import HOSTILE, read

N, P = 80, 60


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    return X, 2.0 * X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=N)


@pytest.fixture(scope="module")
def model(data):
    X, y = data
    model = streamsel.ProjSe(k=len(HOSTILE))
    model.learn_target(y)
    model.learn_columns(X[:, : len(HOSTILE)], HOSTILE)
    return model


def learnt(learner, X, y, names=None):
    if learner._is_supervised:
        learner.learn_target(y)
    learner.learn_columns(X, names)
    return learner


def page_of(report, metadata=None):
    return render_html(build_document(report, metadata or {}))


@pytest.mark.slow
def test_hostile_names_are_escaped(model):
    page = streamsel.report(model, metadata={"file": HOSTILE[0], "command": HOSTILE[1]})
    seen = read(page)
    assert len(page) < 300_000
    assert "<script>alert(1)</script>" in seen.text
    assert "right\\u202eto left\\u200f" in seen.text
    assert "two\\nlines\\x00" in seen.text
    assert "&lt;already&gt;" in seen.text
    assert "(10,000 characters)" in seen.text
    assert not any(c in page for c in "\x00\x1b\u202e\u200f")
    read(model._repr_html_())


def test_markdown_escapes_hostile_names(model):
    page = streamsel.report(model, format="md")
    table = [line for line in page.splitlines() if line.startswith("| ")][: len(HOSTILE) + 1]
    n_cells = {len([c for c in line.replace("\\|", "").split("|") if c]) for line in table}
    assert len(n_cells) == 1
    assert "<script" not in page.replace("\\<", "")
    assert "\x1b" not in page


@pytest.mark.slow
def test_markdown_does_not_explain_bars(model):
    assert "mark on a bar" in streamsel.report(model)
    page = streamsel.report(model, format="md")
    assert "mark on a bar" not in page
    assert "exceeds the noise floor in 5 % of cases" in page


def test_json_has_unescaped_results(model):
    report = json.loads(streamsel.report(model, format="json", metadata={"a": [1, float("nan")]}))
    assert {row["name"] for row in report["selected"]} == set(HOSTILE)
    assert report["metadata"] == {"a": [1, None]}
    assert report["summary"] == summarize(model.report())
    assert "@software{streamsel" in report["cite"]


@pytest.mark.slow
def test_all_formats_have_the_same_summary(model):
    summary = summarize(model.report())
    assert summary in read(streamsel.report(model)).text
    assert streamsel.report(model, format="md").startswith(f"# {summary}".replace("(", "("))
    assert summary in read(model._repr_html_()).text


@pytest.mark.slow
def test_report_is_deterministic(model):
    assert streamsel.report(model) == streamsel.report(model)


@pytest.mark.slow
def test_report_size_is_bounded(model):
    report = model.report()
    row = report.results[0] | {"score": 0.1, "relevance": 0.2}
    many = replace(
        report, results=[row | {"name": f"gene {j}"} for j in range(10_000)], n_requested=10_000
    )
    page = page_of(many)
    assert len(page) < 150_000
    assert "9,800 more" in page
    assert "The first 500 of 10,000 are shown." in read(streamsel.report(many)).text
    assert page.count("<tr") < 300
    assert len(json.loads(streamsel.report(many, format="json"))["selected"]) == 10_000
    components = [
        {"variable": f"v{j}", "loading": 1.0 / (j + 1), "weight": 0.1} for j in range(100_000)
    ]
    built = learnt(streamsel.PCA(1), np.eye(4), None).report()
    wide = replace(built, results=[built.results[0] | {"loadings": components}])
    assert len(page_of(wide)) < 100_000
    assert "99,950 smaller loadings" in page_of(wide)


def test_warnings_are_shown(data):
    X, y = data
    metadata = {
        "warnings": [{"code": "skipped", "text": "half of <b> was skipped"}, {"none": 1}, "x"]
    }
    seen = read(page_of(learnt(streamsel.ProjSe(2), X, y).report(), metadata))
    assert "Half of <b> was skipped." in seen.text
    noise = learnt(streamsel.RidgeComponents(1), X, np.random.default_rng(5).normal(size=N))
    for shown in (page_of(noise.report()), noise._repr_html_()):
        assert "No variable is above the noise floor: this may all be chance." in read(shown).text


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"file": 3, "target": "y", "skipped": {"a": "b", "c": True}, "seconds": "1", "complete": 1},
        {
            "fingerprint": [1],
            "merged": {},
            "peak_memory": None,
            "warnings": {},
            "columns_read": True,
        },
        {"file": ["a"] * 1000, "target": [None, {}], "fingerprint": {"x": {"y": [1] * 1000}}},
        {"command": ["select"], "covariates": 1.5, "version": 2, "saved": {}, "delimiter": 7},
    ],
)
def test_metadata_may_be_arbitrary(model, metadata):
    read(page_of(model.report(), metadata))
    streamsel.report(model, metadata=metadata, format="md")
    streamsel.report(model, metadata=metadata, format="json")


@pytest.mark.parametrize("exact", [False, True])
def test_shown_command_has_all_options_of_the_run(exact):
    model = streamsel.MRMR(2, max_candidates=9, exact=exact, permutations=50)
    model.learn_target(np.arange(9.0) % 5)
    model.learn_columns(np.random.default_rng(0).normal(size=(9, 20)))
    metadata = {"command": "select", "file": "x.parquet", "target": ["y"], "strata": "batch"}
    shown = streamsel.report(model, metadata=metadata | {"missing_target": "error"}, format="md")
    for words in ("--strata batch", "--missing-target error", "--set permutations=50"):
        assert words in shown
    assert ("--no-exact" in shown) is not exact
    assert ("--set exact=yes" in shown) is exact


def test_shown_command_reproduces_the_model(data, tmp_path):
    """The "Command that reproduces the model" can be run as shown."""
    import shlex

    from click.testing import CliRunner

    from streamsel.cli.app import app

    X, y = data
    table, saved, again = tmp_path / "a b.csv", tmp_path / "m", tmp_path / "m2"
    header = ",".join([*(f"v{j}" for j in range(P)), "the target", "id"])
    rows = np.column_stack([X, y, np.arange(N)])
    np.savetxt(table, rows, delimiter=",", header=header, comments="")
    words = [str(table), "--target", "the target", "--drop", "id", "--method", "Lasso", "-k", "3"]
    words += ["--set", "standardize=no"] if hasattr(streamsel.Lasso, "standardize") else []
    run = CliRunner().invoke(app, ["select", *words, "-m", str(saved)])
    assert run.exit_code == 0, run.output
    texts = read(
        streamsel.report(
            streamsel.load(saved), metadata=streamsel.serialization.archive.read_metadata(saved)
        )
    ).texts
    line = next(text for text in texts if text.startswith("streamsel select"))
    run = CliRunner().invoke(app, [*shlex.split(line.replace("\\\n", " "))[1:], "-m", str(again)])
    assert run.exit_code == 0, run.output
    assert streamsel.load(again).scores == streamsel.load(saved).scores


@pytest.mark.parametrize(
    "words",
    [
        ["--keep-index"],
        ["--max-categories", "0"],
        ["--max-categories", "2"],
        ["--groups", "groups.csv", "--method", "SelectKBest"],
        ["--method", "Lasso", "--set", "alphas=0.5,0.2"],
        ["--drop", '"a, ""b"""', "--covariate", '"c,d"'],
        [
            "--target-file",
            "target.csv",
            "--by-position",
            "--strata",
            "w",
            "--permutations",
            "9",
        ],
        ["--weights", "w", "--until", "2"],
    ],
)
def test_the_command_of_a_page_has_every_option(words, tmp_path, monkeypatch):
    import shlex

    import pandas as pd
    from click.testing import CliRunner

    from streamsel.cli.app import app

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=["v", 'a, "b"', "c,d", "e", "y, z"])
    frame["y, z"] += frame["v"] + frame['a, "b"']
    frame.insert(0, "Unnamed: 0", np.arange(60))
    frame["three"] = rng.choice(["f", "g", "h"], 60)
    frame["w"] = rng.choice([1.0, 2.0], 60)
    frame["id"] = [f"u{i}" for i in range(60)]
    frame.to_csv("table.csv", index=False)
    frame[["id", "y, z"]][::-1].to_csv("target.csv", index=False)
    (tmp_path / "groups.csv").write_text("name,group\nv,one\ne,one\nw,two\n")
    size = [] if "Lasso" in words else ["-k", "2"]
    line, printed = ["table.csv", "--target", '"y, z"', *words, *size], []
    for saved in ("first", "again"):
        run = CliRunner().invoke(app, ["select", *line, "-m", saved])
        assert run.exit_code == 0, run.output
        printed.append(run.stdout)
        if saved == "first":
            report = CliRunner().invoke(app, ["report", saved, "--format", "md"]).stdout
            command = report.split("```sh\n")[1].split("```")[0].replace("\\\n", " ")
            line = shlex.split(command)[2:]
    assert printed[0] == printed[1]


def test_a_page_names_covariates_and_weights(data):
    X, y = data
    expected = ["- **covariates**: age, site", "- **weights**: of observations"]
    for learner in (streamsel.ForwardSelection(2), streamsel.PLS(2)):
        plain, adjusted = learner, learner.clone()
        plain.learn_target(y)
        adjusted.learn_target(
            y, {"age": np.arange(N), "site": ["a", "b"] * (N // 2)}, weights=1 + np.arange(N)
        )
        lines = []
        for model in (plain, adjusted):
            model.learn_columns(X)
            lines.append(streamsel.report(model, format="md").splitlines())
            json.loads(streamsel.report(model, format="json"))
        assert [line for line in lines[1] if line in expected] == expected
        assert not [line for line in lines[0] if line.startswith(("- **covar", "- **weights"))]


def test_other_objects_are_refused(data):
    from river import compose, preprocessing

    with pytest.raises(ValueError, match=r"Expected format='html', 'json' or 'md'. Got: 'pdf'"):
        streamsel.report(streamsel.ProjSe(), format="pdf")
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), streamsel.ProjSe())
    with pytest.raises(TypeError, match="Hint: for a pipeline"):
        streamsel.report(pipeline)
    with pytest.raises(TypeError, match="Expected a learner"):
        streamsel.report(streamsel.ProjSe)


def test_pipelines_have_the_representation_of_river(data):
    from river import compose, preprocessing

    X, y = data
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), learnt(streamsel.ProjSe(2), X, y))
    shown = pipeline._repr_html_()
    assert "river-pipeline" in shown
    assert "ProjSe" in shown
    union = pipeline["StandardScaler"] + streamsel.SOSPCA(2)
    assert "river-union" in union._repr_html_()


@pytest.mark.parametrize("form", ["html", "md"])
def test_names_in_warnings_keep_their_case(form):
    """Sentences are capitalised, but "Brca1" would be a different gene."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 0] + 0.01 * rng.normal(size=60)
    model = learnt(streamsel.SelectKBest(k=2), X, y, ["brca1", *"bcde"])
    page = streamsel.report(model, format=form)
    assert "The variable brca1 has a relevance near 1" in page
    assert "Brca1" not in page + model._repr_html_()


def test_warning_for_several_outcomes_is_plural():
    rows = [{"name": name, "relevance": 0.999, "above_noise": True} for name in "ab"]
    warning = outcome_warning(rows)
    assert warning.text.startswith("the variables a, b have a relevance near 1")


def test_unfitted_model_is_reported():
    for model in (streamsel.ProjSe(), streamsel.PCA(2), streamsel.RandomProjection(3)):
        assert "Nothing has been learnt yet." in read(streamsel.report(model)).text
        assert "Nothing has been learnt yet." in read(model._repr_html_()).text


def test_report_without_matplotlib_has_no_plots(model, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = "the noise floor ("
    assert text in read(model._repr_html_()).text
    assert text in streamsel.report(model, format="md")
    assert text in streamsel.report(model, format="json")
    with pytest.raises(ImportError, match=r"streamsel\[plot\]"):
        streamsel.report(model)


def test_stability_is_shown_in_every_format(data):
    from streamsel.evaluate import subsample_stability

    X, y = data
    model = learnt(streamsel.SelectKBest(3), X, y)
    found = subsample_stability(streamsel.SelectKBest(3), X, y, n_subsamples=10)
    expected = f"stability index of the selections is {found.index.value:.2f}"
    seen = read(streamsel.report(model, stability=found)).text
    assert expected in seen
    assert "10 samples of 40 of 80 rows." in seen
    shown = streamsel.report(model, stability=found, format="md")
    assert expected in shown
    assert "| 3 | 100 % |" in shown
    shown = json.loads(streamsel.report(model, stability=found, format="json"))
    assert shown["stability"]["rating"] == found.rating


def test_stability_of_another_selection_is_refused(data):
    from streamsel.evaluate import subsample_stability

    X, y = data
    names = [f"v{j}" for j in range(P)]

    def stability(learner, X, y):
        return subsample_stability(learner, iter_array(X, names), y, n_subsamples=3)

    def refused(learner, X, y):
        with pytest.raises(ValueError, match="Expected the stability of the selection") as caught:
            streamsel.report(model, stability=stability(learner, X, y), format="md")
        return str(caught.value).splitlines()[0].partition(" model, with ")[2]

    model = learnt(streamsel.SelectKBest(3), X, y, names)
    assert refused(streamsel.ProjSe(3), X, y) == "the class SelectKBest. Got: ProjSe."
    assert refused(streamsel.SelectKBest(4), X, y) == "k 3. Got: 4."
    assert refused(streamsel.SelectKBest(3), X[1:], y[1:]) == "the number of rows 80. Got: 79."
    other = "the selection v3, v7, v19. Got: v56, v52, v40."
    assert refused(streamsel.SelectKBest(3), X[:, ::-1], y) == other
    names = [f"w{j}" for j in range(P)]
    assert refused(streamsel.SelectKBest(3), X, y).endswith("Got: w3, w7, w19.")
    # A bounded pool is accepted as the same experiment.
    names = [f"v{j}" for j in range(P)]
    found = stability(streamsel.SelectKBest(3, max_candidates=10), X, y)
    assert "stability index" in streamsel.report(model, stability=found, format="md")


def test_names_read_from_json_match_the_model(data):
    from streamsel.evaluate import SubsampleStability, subsample_stability

    X, y = data
    names = [("gene", j) for j in range(P)]
    model = learnt(streamsel.SelectKBest(3), X, y, names)
    found = subsample_stability(streamsel.SelectKBest(3), iter_array(X, names), y, n_subsamples=3)
    sent = SubsampleStability.from_dict(json.loads(as_json(found.as_dict())))
    assert "stability index" in streamsel.report(model, stability=sent, format="md")


def test_counts_of_excluded_columns_add_up(data):
    X, y = data
    X = np.column_stack([X, np.ones((N, 5))])
    report = learnt(streamsel.ForwardSelection(2), X, y).report()
    shown = streamsel.report(report, format="md", metadata={"skipped": {"text": 7, "none": 0}})
    table = shown[shown.index("| outcome") :].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    counted = {why.strip(): int(n.replace(",", "")) for why, n in rows}
    assert counted["skipped: text"] == 7
    assert counted["do not vary"] == 5
    assert counted["selected"] == 2
    assert counted.pop("all") == sum(counted.values()) == P + 5 + 7
    assert f"{P + 12} columns were read: 7 skipped (7 text) and {P + 5} learnt." in shown


@pytest.mark.parametrize("learner", [streamsel.SelectKBest, streamsel.MRMR])
def test_mutual_information_is_not_compared_with_noise(data, learner):
    X, _ = data
    model = learnt(learner(k=1, score="mutual_info"), X, X[:, 3] ** 2)
    assert model.selected == [3]
    assert model.report().results[0]["above_noise"] is False
    summary = summarize(model.report())
    assert "It was ranked by mutual information, which has no noise floor." in summary
    page = streamsel.report(model, format="md")
    assert "individually no more relevant than noise" not in page
    assert "the score, mutual information, also measures" in page


def test_online_decisions_are_not_called_certified(data):
    report = learnt(streamsel.SAOLA(), *data).report()
    document = build_document(report, {})
    assert "certified" not in dict(document.key_figures)
    (table,) = [each.blocks[0] for each in document.sections if each.title == "Selected variables"]
    assert "certified" not in table.head
    assert summarize(report).endswith(". Each column was accepted or rejected on arrival.")


def test_report_shows_whether_the_target_is_sensitive(data):
    report = learnt(streamsel.PrivateFeatures(2), *data).report()
    stated = "their relevance to the sensitive attribute is at most"
    assert stated in summarize(replace(report, learner="OfAnotherPackage"))
    assert stated not in summarize(replace(report, details={}))


HEADLINES = {
    "all": ({}, "4 of 60 variables selected. All exceed the noise floor (0.13)."),
    "none": ({"above": 0}, "None exceeds the noise floor (0.13): the largest relevance is 0.50."),
    "some": ({"above": 3}, "3 exceed the noise floor (0.13), 1 does not."),
    "copies": (
        {"n_near_duplicates": 2},
        "All exceed the noise floor (0.13); 2 are near-duplicates of others.",
    ),
    "tails": (
        {"warnings": (ResultWarning("tails", "…"),)},
        (
            "All exceed the noise floor (0.13), which is too low for this target and these columns "
            "(see the warning)."
        ),
    ),
    "inflation": (
        {"warnings": (ResultWarning("inflation", "…"),)},
        "All exceed the noise floor (0.13), but statistics are inflated (see the warning).",
    ),
    "overdispersion": (
        {"warnings": (ResultWarning("overdispersion", "…"),)},
        (
            "All exceed the noise floor (0.13), but the counts vary more than the test assumes "
            "(see the warning)."
        ),
    ),
    "few rows": (
        {"noise_floor": 1.0},
        "There are too few rows to distinguish a variable from noise.",
    ),
    "bounded": (
        {"details": {"n_certified": 3, "pool_complete": False}},
        (
            "All exceed the noise floor (0.13). The first 3 are certified to equal a selection "
            "over all columns at once."
        ),
    ),
    "not exact": (
        {"parameters": {"exact": False}, "details": {"n_certified": 1, "pool_complete": False}},
        "at once; --exact, in Python exact=True, certifies all of them by further passes.",
    ),
    "unbounded": ({"details": {"n_certified": 4, "pool_complete": True}}, "floor (0.13)."),
}


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_and_its_warnings_agree(name):
    changes, expected = HEADLINES[name]
    changes = dict(changes)
    above = changes.pop("above", 4)
    found = [
        {"name": j, "relevance": 0.5 - 0.1 * j, "above_noise": j < above, "certified": False}
        for j in range(4)
    ]
    report = Report("MRMR", {}, 50, 60, 0, 0.13, "selected", found, 4)
    assert summarize(replace(report, **changes)).endswith(expected)


def test_summary_of_one_component_is_singular(data):
    X, y = data
    assert "1 component, which has" in summarize(learnt(streamsel.PCA(2), X[:, :1], y).report())
    assert "1 component of 1 column," in summarize(learnt(streamsel.PLS(2), X[:, 3:4], y).report())


def test_estimator_is_refused_with_a_hint(data):
    from streamsel.sklearn import ProjSe

    with pytest.raises(TypeError, match="Hint: a fitted estimator has its learner in"):
        streamsel.report(ProjSe(k=2).fit(*data))


def test_inferred_target_type_is_shown(data):
    """The description is in every format, with class names escaped."""
    X, y = data
    labels = np.where(y > 0, "\u202eup", "<b>down</b>")
    model = learnt(streamsel.ProjSe(k=2), X, labels)
    n_up = int((y > 0).sum())
    expected = f"2 classes: <b>down</b> ({N - n_up} rows), \\u202eup ({n_up} rows)"
    assert expected in read(streamsel.report(model)).text
    assert expected in read(model._repr_html_()).text
    markdown = streamsel.report(model, format="md")
    assert f"\\\\u202eup ({n_up} rows)" in markdown
    assert "<b>" not in markdown
    assert json.loads(streamsel.report(model, format="json"))["target"] == model.report().target

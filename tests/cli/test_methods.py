"""`--method` and `--set`: all methods of the registry, with all their parameters."""

import pytest

from streamsel import Lasso, ProjSe, SelectKBest, load, registry
from streamsel.params import rules_of

COMMANDS = {"selector": "select", "extractor": "reduce"}


@pytest.mark.slow
def test_methods_are_those_of_the_catalogue(call, files, data, tmp_path):
    for entry in registry.LEARNERS:
        path, cls = tmp_path / entry.name, registry.fetch(entry.name)
        model = cls()
        asked, other = ("labels", "y") if model.target_type == "class" else ("y", "labels")
        arguments = ["--drop", other, "-m", path, "--method", entry.name]
        arguments += ["-t", asked] if cls._is_supervised else ["--drop", asked]
        found = call(COMMANDS[entry.kind], files / "data.parquet", *arguments, "--json").json()
        if cls._is_supervised:
            model.learn_target(getattr(data, asked))
        model.learn_columns(data.X, names=data.names)
        report = model.report().as_dict()
        assert list(found) == ["streamsel", *report, "metadata"]
        assert found["class"] == entry.name
        kind = model.report().kind
        assert [row["name"] for row in found[kind]] == [row["name"] for row in report[kind]]
        # Every model can be applied.
        result = call("transform", path, files / "data.feather").stdout.splitlines()
        assert len(result) == 61
        assert entry.name in call("info", path).stdout


@pytest.mark.parametrize("command", ["select", "reduce"])
def test_help_lists_the_methods(call, command):
    shown = call(command, "--help").stdout
    for entry in registry.LEARNERS:
        assert (f"{entry.name}  " in shown) is (COMMANDS[entry.kind] == command)


@pytest.mark.parametrize("entry", registry.LEARNERS, ids=lambda entry: entry.name)
def test_help_on_a_method(call, entry):
    command = COMMANDS[entry.kind]
    shown = call(command, "--method", entry.name.lower(), "--help").stdout
    options = {o.parameter: o for o in command_of(command).params if hasattr(o, "parameter")}
    rules = rules_of(registry.fetch(entry.name))
    lines = [line for line in shown.splitlines() if line.startswith("  -")]
    listed = {word for line in lines for word in line.replace(",", " ").split()[:2]}
    for name, option in options.items():
        # The help lists exactly the options that the method has.
        assert (not listed.isdisjoint(option.opts)) is (name is None or name in rules)
    for name in rules:
        assert (f"--set {name}=VALUE" in shown) is (name not in options)


def command_of(name):
    from streamsel.cli.app import app

    return app.commands[name]


def test_defaults_are_those_of_the_method(call, files):
    for method, k in (("ProjSe", 20), ("SelectKBest", 10)):
        arguments = ["-t", "y", "--drop", "labels", "--method", method]
        assert len(call("select", files / "data.parquet", *arguments).rows()) == k
        shown = call("select", "--method", method, "--help").stdout
        assert f"[default: {k}]" in shown


@pytest.mark.parametrize("y", ["y", "labels"])
def test_set_option(call, files, data, y):
    arguments = ["-t", y, "--drop", "y,labels", "-k", 3, "--method", "SelectKBest"]
    settings = ["--set", "score=mutual_info", "--set", "n_bins=4", "--set", "binning=width"]
    found = call("select", files / "data.parquet", *arguments, *settings, "--json").json()
    model = SelectKBest(3, score="mutual_info", n_bins=4, binning="width")
    model.learn_target(getattr(data, y))
    model.learn_columns(data.X, names=data.names)
    assert [row["name"] for row in found["selected"]] == model.selected
    assert [row["score"] for row in found["selected"]] == list(model.scores.values())
    assert found["parameters"]["n_bins"] == 4


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("scale=no", False),
        ("exact=true", True),
        ("kernel=poly", "poly"),
        ("gamma=0.5", 0.5),
        ("gamma=None", None),
        ("max_features=50", 50),
        ("target_type=numeric", "numeric"),
    ],
)
def test_setting_values_are_parsed_by_their_rule(call, files, tmp_path, setting, value):
    path = tmp_path / "m"
    arguments = ["-t", "y", "--drop", "labels", "-k", 2, "--max-candidates", 9, "-m", path]
    arguments += ["--method", "ProjSe"]
    call("select", files / "data.parquet", *arguments, "--set", setting)
    assert load(path)._get_params()[setting.partition("=")[0]] == value


@pytest.mark.parametrize("further", [[], ["--set", "k=None"], ["-k", "None"]])
def test_fdr_instead_of_k(call, files, data, further):
    arguments = ["-t", "y", "--drop", "labels", "--method", "SelectKBest", "--set", "fdr=0.05"]
    result = call("select", files / "data.parquet", *arguments, *further)
    model = SelectKBest(fdr=0.05)
    model.learn_target(data.y)
    model.learn_columns(data.X, names=data.names)
    assert [row["name"] for row in result.rows()] == model.selected
    assert result.rows()[0]["p_value"]
    assert "asked for" not in result.stderr


def test_k_of_all_selects_all_variables(call, files, data):
    arguments = ["-t", "y", "--drop", "labels", "--method", "SelectKBest", "-k", "all"]
    result = call("select", files / "data.parquet", *arguments)
    model = SelectKBest("all")
    model.learn_target(data.y)
    model.learn_columns(data.X, names=data.names)
    assert [row["name"] for row in result.rows()] == model.selected
    assert len(model.selected) == len(data.names)
    stderr = call("select", files / "data.parquet", *arguments[:-1], "most", code=2).stderr
    assert "-k: expected 'all' or an int in the range [1, inf) or None" in " ".join(stderr.split())
    stderr = call("select", files / "data.parquet", "-t", "y", "-k", "all", code=2).stderr
    assert "-k: expected an int in the range [1, inf)" in " ".join(stderr.split())


def test_alphas_instead_of_k(call, files, data):
    arguments = ["-t", "y", "--drop", "labels", "--method", "Lasso", "--set", "alphas=0.3,0.1"]
    result = call("select", files / "data.parquet", *arguments)
    model = Lasso(alphas=[0.3, 0.1])
    model.learn_target(data.y)
    model.learn_columns(data.X, names=data.names)
    assert [row["name"] for row in result.rows()] == model.selected
    assert "asked for" not in result.stderr


def test_fdr_that_no_column_passes(call, files):
    arguments = ["-t", "y", "--drop", "labels", "--method", "SelectKBest", "--set", "fdr=1e-300"]
    result = call("select", files / "data.parquet", *arguments, code=1)
    assert (
        "nothing was selected: none of 40 columns passes the selection criterion\n" in result.stderr
    )


K_BEST, PROJSE = ["--method", "SelectKBest"], ["--method", "ProjSe"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "Nonesuch"], "Got: 'Nonesuch'. Hint: valid names are ForwardSelection, "),
        ([*K_BEST, "--kernel", "rbf"], "--kernel: SelectKBest has no such parameter"),
        ([*K_BEST, "--exact"], "--exact: SelectKBest has no such parameter"),
        ([*K_BEST, "--no-target"], "--no-target: SelectKBest requires a target"),
        ([*K_BEST, "--set", "scoer=f"], "Hint: did you mean score? It has k, score, "),
        ([*K_BEST, "--set", "zzz=1"], "--set zzz: SelectKBest has no such parameter. Hint: it has"),
        ([*K_BEST, "--set", "score=g"], "--set score: expected one of 'correlation', 'f'"),
        ([*K_BEST, "--set", "n_bins=some"], "--set n_bins: expected an int in the range [2, inf)"),
        ([*K_BEST, "--set", "n_bins=1"], "--set n_bins: expected an int in the range [2, inf)"),
        ([*K_BEST, "--set", "score"], "--set score: expected PARAM=VALUE"),
        ([*K_BEST, "--set", "fdr=0.1", "-k", 3], "Expected k or fdr, not both"),
        ([*K_BEST, "--set", "fdr=0.1", "--set", "score=margin"], "a score with p-values"),
        (["--kernel", "rbf"], "ForwardSelection has no such parameter. Hint: --method ProjSe\n"),
        (["-k", 3, "--set", "k=4"], "--set k: k is given more than once"),
        (
            [*PROJSE, "--set", "degree=3", "--set", "degree=4"],
            "--set degree: degree is given more than once",
        ),
        (
            ["--target-type", "class", "--set", "target_type=auto"],
            "target_type is given more than once",
        ),
        (["--target-type", "labels"], "--target-type: expected one of 'auto', 'class', 'numeric'"),
        ([*PROJSE, "--set", "exact=yes"], "--exact requires --max-candidates"),
        (
            [*PROJSE, "--set", "scale=perhaps"],
            "--set scale: expected True or False. Got: 'perhaps'",
        ),
        (["-k", 30, "--set", "max_features=20"], "expected None or above -k = 30"),
    ],
)
def test_usage(call, files, arguments, message):
    target = [] if "--no-target" in arguments else ["-t", "y"]
    result = call("select", files / "data.parquet", *target, *arguments, code=2)
    assert message in result.stderr
    assert not result.stdout


def test_reduce_refuses_selectors(call, files):
    result = call("reduce", files / "data.parquet", "-t", "y", "--method", "ProjSe", code=2)
    assert f"valid names are {', '.join(registry.names('extractor'))}" in result.stderr


def test_resumed_run_has_the_same_method(call, files, tmp_path):
    line = ["select", files / "data.parquet", "-t", "y", "--method", "MRMR", "-m", tmp_path / "m"]
    first = call(*line, "--set", "k=3").stdout
    assert call("select", files / "data.parquet", "--resume", tmp_path / "m").stdout == first
    for option in (["--method", "SelectKBest"], ["--set", "k=4"], ["--covariate", "v0"]):
        result = call("select", files / "data.parquet", "--resume", tmp_path / "m", *option, code=1)
        assert f"the saved run has {option[0]} " in result.stderr
    # A parameter that the method lacks is refused as usual.
    kernel = ["--resume", tmp_path / "m", "--kernel", "rbf"]
    assert "no such parameter" in call("select", files / "data.parquet", *kernel, code=2).stderr


def test_unsupervised_selector_takes_no_target(call, files, data, monkeypatch):
    """An unsupervised selector takes no target; ProjSe serves as one."""
    monkeypatch.setattr(ProjSe, "_is_supervised", False)
    line = ["select", files / "data.parquet", *PROJSE]
    assert call(*line, "--drop", "y", "-k", 3).rows()[0]["name"] == "v0"
    result = call(*line, "-t", "y", code=2)
    assert "ProjSe is unsupervised" in result.stderr


def test_fewer_components_than_requested_are_written(call, table, tmp_path):
    path, out = table(y=[1, 2, 3, 5], a=[1, 2, 4, 4], b=[2, 1, 1, 1]), tmp_path / "out.csv"
    call("reduce", path, "-t", "y", "-q", 3, "-m", tmp_path / "m", "-o", out)
    assert out.read_text() == call("transform", tmp_path / "m", path).stdout
    assert out.read_text().splitlines()[0] == ",".join(f"ridgecomponents{i}" for i in range(3))

"""Options from environment variables and configuration files."""

import json

import pytest


@pytest.fixture
def run(call, files, tmp_path, monkeypatch):
    """Return a function that runs with a configuration in the data folder, and returns the JSON."""
    monkeypatch.chdir(files)

    def run(config, *arguments, code=0, command="select"):
        path = tmp_path / "run.toml"
        path.write_text(config)
        result = call(command, "--config", path, *arguments, code=code)
        return result if code else result.json()

    return run


WHOLE = """
[select]
file = "data.parquet"
target = ["y"]
drop = "labels"
k = 5
method = "selectkbest"
json = true
min-count = 2

[select.set]
score = "f"
n_bins = 7

[reduce]
n-components = 3
"""


def test_whole_run_from_a_file(run):
    found = run(WHOLE)
    assert len(found["selected"]) == 5
    assert found["class"] == "SelectKBest"
    assert found["parameters"]["score"] == "f"
    assert found["parameters"]["n_bins"] == 7
    assert found["metadata"]["min_count"] == 2
    assert found["metadata"]["dropped"] == ["labels"]
    assert found["streamsel"]


def test_each_command_has_its_own_table(run):
    found = run(WHOLE, "data.parquet", "-t", "y", "--json", command="reduce")
    assert found["parameters"]["n_components"] == 3


def test_command_line_overrides_environment_overrides_file(run, monkeypatch):
    monkeypatch.setenv("STREAMSEL_SELECT_K", "4")
    assert len(run(WHOLE)["selected"]) == 4
    assert len(run(WHOLE, "-k", 3)["selected"]) == 3
    assert run(WHOLE, "--set", "score=correlation")["parameters"]["n_bins"] == 10


def test_environment_variables_without_a_file(call, files, monkeypatch, tmp_path):
    variables = {
        "TARGET": "y,labels",
        "TARGET_TYPE": "class",
        "LIST_SKIPPED": str(tmp_path / "listed"),
        "JSON": "yes",
        "METHOD": "SelectKBest",
        "SET": "score=f n_bins=7",
        "MODEL": "",
        "CONFIG": str(tmp_path / "run.toml"),
    }
    (tmp_path / "run.toml").write_text("[select]\nk = 3\n")
    for name, value in variables.items():
        monkeypatch.setenv(f"STREAMSEL_SELECT_{name}", value)
    found = call("select", files / "data.parquet").json()
    assert found["metadata"]["target"] == ["y", "labels"]
    assert found["parameters"]["target_type"] == "class"
    assert found["parameters"]["n_bins"] == 7
    assert len(found["selected"]) == 3
    assert (tmp_path / "listed").exists()


def test_list_entry_with_a_comma_is_one_name(call, table, tmp_path):
    path = table(**{"y": [1, 2, 4.5], 'a, "b': [3, 2, 2], "c": [1, 3, 1]})
    (tmp_path / "run.toml").write_text("[select]\ntarget = 'y'\ndrop = ['a, \"b']\njson = true\n")
    found = call("select", path, "--config", tmp_path / "run.toml").json()
    assert found["metadata"]["dropped"] == ['a, "b']


def test_transform(call, files, tmp_path):
    call("select", files / "data.parquet", "-t", "y", "-k", 2, "-m", tmp_path / "m")
    (tmp_path / "run.toml").write_text(
        f"[transform]\nmodel = '{tmp_path}/m'\nfile = ['{files}/data.parquet']\n"
        f"out = '{tmp_path}/out.csv'\nquiet = true\n"
    )
    call("transform", "--config", tmp_path / "run.toml")
    # One selected variable, and the text column as three indicators.
    assert (tmp_path / "out.csv").read_text().count(",") == 61 * 3


def test_merge(call, table, tmp_path):
    y = [1, 2, 4.5, 3]
    for name, column in {"a": [1, 2, 3, 3], "b": [4, 1, 1, 2]}.items():
        call("select", table(y=y, **{name: column}), "-t", "y", "-k", 1, "-m", tmp_path / name)
    (tmp_path / "run.toml").write_text(
        f"[merge]\nmodel = ['{tmp_path}/a', '{tmp_path}/b']\nout = '{tmp_path}/all'\n"
        "log-format = 'json'\n"
    )
    result = call("merge", "--config", tmp_path / "run.toml")
    events = [json.loads(line)["event"] for line in result.stderr.splitlines()]
    assert events == ["begin", "end"]
    assert call("info", tmp_path / "all", "--json").json()["columns_seen"] == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kk = 3", "[select] kk: no such option. Hint: did you mean k?"),
        ("min_count = 3", "did you mean min-count"),
        ("config = 'other.toml'", "[select] config: no such option"),
        ("k = 'x'", "[select] k: expected an int in the range"),
        ("k = 0", "[select] k: expected an int in the range"),
        ("checkpoint = 'soon'", "[select] checkpoint: 'soon' is not a valid float"),
        ("orientation = 'up'", "[select] orientation: 'up' is not one of"),
        ("json = 1", "[select] json: expected true or false. Got: 1"),
        ("exact = 'yes'", "[select] exact: expected true or false. Got: 'yes'"),
        ("drop = {a = 1}", "[select] drop: expected text, a number or a list"),
        ("drop = [['a', {}]]", "[select] drop: expected text, a number or a list"),
        ("k = 1979-05-27", "[select] k: expected text, a number or a list"),
        ("set = 'score=f'", "[select] set: expected a table of parameters. Got: 'score=f'"),
        ("set = {scor = 'f'}", "[select] set scor: ForwardSelection has no such parameter"),
        ("k = [1", "Unclosed array"),
        ("log-format = 'xml'", "[select] log-format: 'xml' is not one of"),
        ("\n[slect]\n", "[slect]: no such command. Hint: did you mean select?"),
        ("\n[reduce]\nn_components = 3\n", None),
    ],
)
def test_invalid_settings(run, line, message):
    config = f"[select]\nfile = 'data.parquet'\ntarget = 'y'\n{line}\n"
    if message is None:  # a table of another command
        run(config, "--json")
        return
    result = run(config, code=2)
    assert message in result.stderr
    assert "run.toml: " in result.stderr
    assert not result.stdout


def test_a_key_before_all_tables(run):
    assert "expected a table, [select]" in run("select = 3", code=2).stderr
    assert "[k]: no such command" in run("k = 3", code=2).stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("K", "many"), ("CHECKPOINT", "soon"), ("JSON", "perhaps"), ("MISSING", "ignore")],
)
def test_invalid_environment_variable_is_named(call, files, monkeypatch, variable, value):
    monkeypatch.setenv(f"STREAMSEL_SELECT_{variable}", value)
    result = call("select", files / "data.parquet", "-t", "y", code=2)
    assert f"STREAMSEL_SELECT_{variable}" in result.stderr
    assert repr(value) in result.stderr


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"k = " + 9999 * b"["])
def test_unreadable_config_file(call, tmp_path, content):
    path = tmp_path / "run.toml"
    if content:
        path.write_bytes(content)
    assert f"--config {path}: " in call("select", "--config", path, code=2).stderr

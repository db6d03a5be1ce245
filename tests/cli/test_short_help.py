"""`-h` fits on one screen; `--help` has everything; misspelt names are corrected."""

import click
import pytest

from streamsel import registry
from streamsel.cli.app import app
from streamsel.params import rules_of

COMMANDS = {"selector": "select", "extractor": "reduce"}


def fits(page):
    lines = page.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    return lines


def with_short_page():
    return [name for name, command in app.commands.items() if command._has_short_page]


def test_the_list_of_commands_fits_on_one_screen(call):
    page = call("-h").stdout
    assert page == call("--help").stdout
    fits(page)


@pytest.mark.parametrize("command", app.commands)
def test_short_help_fits_on_one_screen(call, command):
    page, whole = call(command, "-h").stdout, call(command, "--help").stdout
    lines = fits(page)
    assert lines[0].startswith(f"Usage: streamsel {command} ")
    if command not in with_short_page():
        assert page == whole
        return
    assert len(whole.splitlines()) > 25
    assert lines[2].strip() == app.commands[command].short_help
    assert lines[4].startswith(f"  streamsel {command} ")
    assert lines[4].strip() in map(str.strip, whole.splitlines())
    assert lines[-1] == f"All options: streamsel {command} --help"
    start = lines.index("Common options:") + 1
    for line in lines[start : lines.index("", start)]:
        assert line.startswith(("  -", " " * 30))
        if line.startswith("  -"):
            assert line.split("  ")[1].split()[0].rstrip(",") in whole


@pytest.mark.parametrize("command", with_short_page())
def test_every_common_option_has_a_line(call, command):
    lines = call(command, "-h").stdout.splitlines()
    for option in app.commands[command].params:
        common = getattr(option, "common", None)
        if common is not None:
            assert sum(line.endswith(f"  {common}") for line in lines) >= 1, option.name


@pytest.mark.parametrize("entry", registry.LEARNERS, ids=lambda entry: entry.name)
def test_short_help_on_a_method(call, entry):
    command = COMMANDS[entry.kind]
    page = call(command, "--method", entry.name.lower(), "-h").stdout
    lines = fits(page)
    assert lines[2] == f"  {entry.name}: {entry.title}."
    assert lines[-1] == f"All options: streamsel {command} --method {entry.name} --help"
    rules = rules_of(registry.fetch(entry.name))
    for option in app.commands[command].params:
        if getattr(option, "common", None) and option.parameter is not None:
            assert (f"  {option.common}" in page) is (option.parameter in rules)


def test_short_help_is_not_an_environment_variable_or_key(call, files, tmp_path, monkeypatch):
    """The variables and files that set options do not request help."""
    monkeypatch.setenv("STREAMSEL_SELECT_H", "1")
    config = tmp_path / "streamsel.toml"
    config.write_text("[select]\ntarget = 'y'\ndrop = 'labels'\nk = 2\n")
    assert len(call("select", files / "data.parquet", "--config", config).rows()) == 2
    config.write_text("[select]\nh = true\n")
    assert "h: no such option" in call("select", "--config", config, "x.csv", code=2).stderr
    config.write_text("[select]\nmethod = 'PCA'\n")
    assert "Common options" in call("select", "-h", "--config", config).stdout


@pytest.mark.parametrize("width", [40, 60, 200])
def test_terminals_of_other_widths(monkeypatch, width):
    """A narrow terminal has more lines, a wide one the same."""
    context = click.Context(app.commands["select"], info_name="streamsel select")
    page = context.command.short_page(context)
    monkeypatch.setenv("COLUMNS", str(width))
    other = context.command.short_page(context)
    assert other.split() == page.split()
    assert (other == page) is (width > 80)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["selct"], "No such command: selct. Hint: did you mean select?"),
        (["nothing"], "No such command: nothing. Hint: valid names are demo, evaluate, info"),
        (["select", "--targte", "y", "x.csv"], "No such option: --targte. Hint: did you mean --t"),
        (["transform", "--outptu", "x"], "No such option: --outptu. Hint: did you mean --out?"),
        (["select", "--zzzzzz"], "No such option: --zzzzzz.\n"),
        (["select", "--method", "MRRM"], "Got: 'MRRM'. Hint: did you mean MRMR?"),
        (["reduce", "--method", "pcaa"], "Got: 'pcaa'. Hint: did you mean PCA"),
        (["warmup", "--method", "laso"], "Got: 'laso'. Hint: did you mean Lasso"),
        (["select", "--method", "MRMR", "--set", "scroe=f"], "Hint: did you mean score"),
        (["select", "--set", "scroe=f"], "did you mean score, with --method MRMR or SelectKBest?"),
    ],
)
def test_errors_suggest_close_spellings(call, arguments, message):
    if arguments[0] == "select" and "--set" in arguments:
        arguments = [*arguments, "-t", "y", "x.csv"]
    result = call(*arguments, code=2)
    assert message in " ".join(result.stderr.split()) + "\n"
    assert not result.stdout

"""All Python examples of README.md, CONTRIBUTING.md and the documentation run as doctests."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamsel.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "pages").rglob("*.md")),
]
BLOCK = re.compile(r"^```python.*?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples(markdown):
    """Blank out all but the fenced Python, so that line numbers remain those of the page."""
    lines = [""] * (markdown.count("\n") + 1)
    for block in BLOCK.finditer(markdown):
        first = markdown.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("command", sorted(app.commands))
def test_every_option_of_the_command_is_documented(command):
    page = (ROOT / "docs" / "pages" / "command.md").read_text(encoding="utf-8")
    assert f"streamsel {command}" in page
    for parameter in app.commands[command].params:
        for option in parameter.opts if parameter.param_type_name == "option" else []:
            assert re.search(rf"`{option}[` ]", page), f"{option} of {command} is not documented"


def test_examples_keep_their_line_numbers():
    page = "# A\n\n```python\n>>> 1 + 1\n2\n```\n\n```sh\nls\n```\n```python\n>>> 3\n3\n```\n"
    lines = enumerate(examples(page).splitlines(), 1)
    kept = {number: line for number, line in lines if line}
    assert kept == {4: ">>> 1 + 1", 5: "2", 12: ">>> 3", 13: "3"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks_are_doctests(page):
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        assert block[1].startswith(">>> "), f"not a doctest, so never run:\n{block[1]}"


def test_examples_run(tmp_path):
    written = 0
    for page in PAGES:
        text = examples(page.read_text(encoding="utf-8"))
        if text.strip():
            name = page.relative_to(ROOT).with_suffix(".txt").as_posix().replace("/", "-")
            (tmp_path / name).write_text(text, encoding="utf-8")
            written += 1
    command = [
        *(sys.executable, "-m", "pytest", "-q", str(tmp_path)),
        *("--config-file", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        *("-p", "no:cacheprovider", "--doctest-glob=*.txt"),
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{written} passed" in run.stdout


def test_badges_agree_with_the_project():
    path = ROOT / "docs" / "badges.py"
    spec = importlib.util.spec_from_file_location("badges", path)
    badges = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(badges)
    for name, svg in badges.badges().items():
        assert (badges.IMAGES / f"badge-{name}.svg").read_text(encoding="utf-8") == svg, (
            "python docs/badges.py"
        )


def test_the_citation_names_the_newest_release():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(
        r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert f"version: {released[1]}\ndate-released: {released[2]}\n" in citation

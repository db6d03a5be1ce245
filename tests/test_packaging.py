"""Files for publication agree with `pyproject.toml` and the documentation."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "docs" / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))


def requirements(lines):
    """Return name -> condition, for any number of blanks between them."""
    found = dict(re.fullmatch(r"([\w.-]+)(?:\[.*\])?\s*(.*)", line).groups() for line in lines)
    assert len(found) == len(lines)
    return found


def test_requirements_are_split_at_the_condition():
    assert requirements(["a-b>=1.0", "c >=2", "d"]) == {"a-b": ">=1.0", "c": ">=2", "d": ""}


def test_the_recipe_has_the_dependencies_of_the_project():
    run = requirements(RECIPE["requirements"]["run"])
    assert run.pop("python") == ">=${{ python_min }}"
    assert f">={RECIPE['context']['python_min']}" == PROJECT["project"]["requires-python"]
    assert run == requirements(PROJECT["project"]["dependencies"])


@pytest.mark.parametrize(
    ("in_recipe", "in_project"),
    [
        ("run_constraints", PROJECT["project"]["optional-dependencies"]["cli"]),
        ("host", PROJECT["build-system"]["requires"]),
    ],
)
def test_the_recipe_has_the_build_and_run_requirements(in_recipe, in_project):
    listed = requirements(RECIPE["requirements"][in_recipe])
    if in_recipe == "host":
        assert listed.pop("python") == "${{ python_min }}.*"
        assert listed.pop("pip") == ""
    assert listed == requirements(in_project)


def test_the_recipe_has_the_version_of_the_newest_release():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(r"^## \[(.+)\] - ", changelog, re.MULTILINE)[1]
    assert RECIPE["context"]["version"] == released
    assert "${{ version }}" in RECIPE["source"]["url"]


def test_the_recipe_describes_the_project():
    about, project = RECIPE["about"], PROJECT["project"]
    assert RECIPE["package"]["name"] == project["name"]
    assert about["summary"] == project["description"]
    assert (about["license"], [about["license_file"]]) == (
        project["license"],
        project["license-files"],
    )
    urls = project["urls"]
    assert about["homepage"] == urls["Homepage"]
    assert about["documentation"] == urls["Documentation"]
    assert about["repository"] == urls["Source"]
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts


PAPER = (ROOT / "docs" / "paper" / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "docs" / "paper" / "paper.bib").read_text(encoding="utf-8")


def test_the_paper_cites_its_bibliography():
    cited = set(re.findall(r"(?<=[\[ ;])@(\w+)", PAPER))
    entries = re.findall(r"^@\w+\{(\w+),$", BIBLIOGRAPHY, re.MULTILINE)
    assert sorted(cited) == sorted(entries)
    for entry in BIBLIOGRAPHY.split("\n\n"):
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = ", entry, re.MULTILINE))


def test_the_paper_has_the_length_and_the_sections_of_the_journal():
    body = PAPER.split("---\n", 2)[2]
    prose = re.sub(r"^\|.*$", "", body, flags=re.MULTILINE)
    assert 800 <= len(prose.split()) <= 1_100
    sections = re.findall(r"^# (.+)$", body, re.MULTILINE)
    assert [sections[0], sections[1], sections[-1]] == [
        "Summary",
        "Statement of need",
        "References",
    ]


def test_the_paper_has_the_figures_of_the_documentation():
    table = re.search(r"^\| task .+?\n\n", PAPER, re.MULTILINE | re.DOTALL).group()
    rows = re.findall(r"^(\| .+ \|)$", table, re.MULTILINE)
    speed = (ROOT / "docs" / "pages" / "speed.md").read_text(encoding="utf-8")
    assert len(rows) == 8
    for row in rows[1:]:
        assert f"\n{row} " in speed, row


@pytest.mark.parametrize(
    ("page", "fragment", "figures"),
    [
        ("selectors", "| ForwardSelection, λ = 1 |", ["21.1"]),
        ("selectors", "| ProjSe |", ["20.9"]),
        ("selectors", "| FastCan |", ["21.9"]),
        ("selectors", "| MRMR |", ["23.4"]),
        ("selectors", "| Lasso |", ["23.4"]),
        ("selectors", "| SelectKBest |", ["25.8"]),
        ("significance", "| counts, a class of 13 of 700 |", ["92.5", "3.5"]),
        ("significance", "(`groups=`, `--loco`)", ["4.5 %"]),
        ("significance", "- **Without relatedness**", ["22 %"]),
        ("selectors", "- tsfresh (Efficient) takes", ["134 to 790"]),
    ],
)
def test_the_paper_has_the_figures_of_the_evidence(page, fragment, figures):
    text = (ROOT / "docs" / "pages" / "evidence" / f"{page}.md").read_text(encoding="utf-8")
    # The statement: the rest of the fragment's line, and the next line, joined.
    start = text.index(fragment)
    lines = " ".join(text[start:].split("\n")[:2])
    for figure in figures:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", lines), figure
        assert figure in PAPER

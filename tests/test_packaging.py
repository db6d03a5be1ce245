"""Files that publish the package repeat facts of the project: they do not drift from them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "docs" / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))


def requirements(lines):
    """Return name -> condition, however many blanks are between them."""
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
def test_the_recipe_builds_and_runs_with_what_the_project_does(in_recipe, in_project):
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

"""Every learner has a reference, a benchmark, a page, an example and documented parameters."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from streamsel.params import rules_of
from tests.conformance.modes import CLASSES, REGISTERED

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "pages"
# References for functions that are not learners, and for learners on rows.
OTHER_ORACLES = {
    "alignment",
    "evaluate",
    "frames",
    "noise",
    "refresh",
    "rows",
    "sospca_rows",
    "target",
    "text",
}
OTHER_ORACLES |= {"ridge_components_rows", "gram"}
# References for a source, and for code that methods share.
OTHER_ORACLES |= {"prune", "independence", "linear", "subspace", "factorisation", "survival"}
OTHER_ORACLES |= {
    "density",
    "encode",
    "knockoffs",
    "permutations",
    "relatedness",
    "relations",
    "vcf",
}
OTHER_ORACLES |= {"generated", "glm", "groups", "pairwise", "series", "statistics"}
# Classes in the reference pages that are not learners.
OTHER_CLASSES = {"History", "Relatedness"}

every_learner = pytest.mark.parametrize(
    ("name", "module"), [(entry.name, entry.module.rpartition(".")[2]) for entry in REGISTERED]
)


def nav(entries):
    """Yield (title, page) for every entry of a navigation."""
    for entry in entries:
        for title, page in entry.items():
            if isinstance(page, str):
                yield title, page
            else:
                yield from nav(page)


def navigation():
    text = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    return dict(nav(tomllib.loads(text)["project"]["nav"]))


@every_learner
def test_reference_implementation_exists(name, module):
    oracle = importlib.import_module(f"tests.reference.{module}")
    first, second, *_ = inspect.signature(oracle.answer).parameters
    assert (first, second) == ("X", "y")


@every_learner
def test_learner_is_benchmarked(name, module):
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/bench").glob("*.py")]
    assert any(re.search(rf"\b{name}\b", text) for text in texts)


@every_learner
def test_learner_has_one_reference_page(name, module):
    pages = [path for path in (PAGES / "reference").glob("*.md") if name in documented(path)]
    assert len(pages) == 1
    assert f"reference/{pages[0].name}" in navigation().values()
    overview = (PAGES / "reference/index.md").read_text(encoding="utf-8")
    assert f"[`{name}`]({pages[0].name}#streamsel.{name})" in overview


def documented(path):
    """Return the names of the package's classes on a page of the reference."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^::: streamsel\.([A-Z]\w*)$", text, re.MULTILINE)


@every_learner
def test_docstring_documents_parameters_and_examples(name, module):
    doc = inspect.getdoc(CLASSES[name])
    assert "\n>>> " in doc.partition("\nExamples\n--------\n")[2]
    section = doc.partition("\nParameters\n----------\n")[2].partition("\n\n")[0]
    listed = [
        parameter.strip()
        for line in section.split("\n")
        if line[:1].strip()
        for parameter in line.split(",")
    ]
    assert sorted(listed) == sorted(rules_of(CLASSES[name]))


def test_no_reference_implementation_of_a_removed_learner():
    oracles = {path.stem for path in (ROOT / "tests/reference").glob("*.py")} - {"__init__"}
    learners = {entry.module.rpartition(".")[2] for entry in REGISTERED}
    assert oracles == learners | OTHER_ORACLES


def test_no_page_of_a_removed_class():
    pages = (PAGES / "reference").glob("*.md")
    assert {name for path in pages for name in documented(path)} <= set(CLASSES) | OTHER_CLASSES


def test_every_page_is_in_the_navigation():
    pages = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}
    assert set(navigation().values()) <= pages
    in_reference = {page for page in pages if page.startswith("reference/")}
    assert in_reference <= set(navigation().values())

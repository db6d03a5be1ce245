"""The scripts of `demos/gallery` run, and print the output on the page of examples."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "demos" / "gallery").glob("*.py"))}
PAGE = (ROOT / "docs" / "pages" / "gallery.md").read_text(encoding="utf-8")
SHOWN = dict(
    re.findall(
        r'```{ .py }\n--8<-- "demos/gallery/(\w+)\.py"\n```\n\n```text\n(.*?)```', PAGE, re.DOTALL
    )
)
IMAGES = set(re.findall(r"\]\(images/gallery/(.+?)\.svg\)", PAGE))
DRAWS = {name for name, path in SCRIPTS.items() if "sys.argv" in path.read_text("utf-8")}


def test_the_page_shows_every_script():
    assert list(SHOWN) == re.findall(r'"demos/gallery/(\w+)\.py"', PAGE)
    assert set(SHOWN) == set(SCRIPTS)
    assert {image.replace("-", "_") for image in IMAGES} == DRAWS


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_output_equals_the_page(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "agg")
    picture = tmp_path / "picture.svg"
    files = [str(picture)] if name in DRAWS else []
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[name]), *files])
    runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    assert capsys.readouterr().out == SHOWN[name]
    assert picture.is_file() == (name in DRAWS)
    if name in DRAWS:
        assert picture.read_text("utf-8").count("<g id=") > 10

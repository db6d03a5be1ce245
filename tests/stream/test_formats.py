"""One record per format: detected by suffix or first bytes, listed in help and documentation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import streamsel.stream
from streamsel.cli.app import app
from streamsel.stream import as_stream
from streamsel.stream._numerals import ReadOptions
from streamsel.stream.files import file_format
from streamsel.stream.formats import (
    FORMATS,
    format_of_bytes,
    format_of_suffix,
    formats_text,
    suffixes_text,
)
from tests.seed import some

ROOT = Path(__file__).parents[2]
by_name = pytest.mark.parametrize("name", FORMATS)


@by_name
def test_formats_are_found_by_suffix_and_first_bytes(name, tmp_path):
    one = FORMATS[name]
    assert one.name == name
    for suffix in one.suffixes:
        assert format_of_suffix(suffix) == name
        for path in (tmp_path / f"X{suffix.upper()}", tmp_path / f"x{suffix}.gz"):
            path.write_bytes(b"anything")
            assert file_format(str(path)) == name
    if one.magic:
        assert format_of_bytes(one.magic + b" and more") == name
        (tmp_path / "x").write_bytes(one.magic + b" and more")
        assert file_format(str(tmp_path / "x")) == name
        (tmp_path / "x.txt").write_bytes(one.magic + b" and more")
        assert file_format(str(tmp_path / "x.txt")) == name
    for number, file in enumerate(one.folder):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        (folder / file).touch()
        assert file_format(str(folder)) == name


def test_suffixes_and_first_bytes_are_unique():
    suffixes = [suffix for one in FORMATS.values() for suffix in one.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    magics = [one.magic for one in FORMATS.values() if one.magic]
    assert not any(a.startswith(b) for a in magics for b in magics if a is not b)


@by_name
def test_options_are_those_of_the_readers(name):
    assert {*FORMATS[name].options} <= {*ReadOptions._fields, "options", "orientation", "on_bad"}


@pytest.mark.slow
@pytest.mark.parametrize("name", some(FORMATS, 3, "imported when opened"))
def test_readers_are_imported_on_opening(name, tmp_path):
    path = tmp_path / f"x{FORMATS[name].suffixes[0]}"
    path.write_bytes(b"anything")
    code = (
        "import sys\n"
        "from streamsel.stream.formats import FORMATS\n"
        "def loaded():\n"
        "    return {m for m in sys.modules if m.startswith('streamsel.stream.')}\n"
        "before = loaded()\n"
        "assert before == {'streamsel.stream.formats'}, before\n"
        "try:\n"
        f"    FORMATS[{name!r}].open({str(path)!r})\n"
        "except (ValueError, OSError, TypeError):\n"
        "    pass\n"
        "assert len(loaded()) > 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_formats_are_listed_in_errors_help_and_docs():
    """All formats are listed in the errors, the help and the documentation."""
    with pytest.raises(ValueError, match=re.escape(suffixes_text())):
        as_stream(__file__)
    for command in ("select", "reduce"):
        page = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())
        assert formats_text() in page
        assert suffixes_text(genotypes=True) in page
    table = (ROOT / "docs/pages/sources.md").read_text("utf-8")
    for one in FORMATS.values():
        assert one.title.partition(" (")[0] in table
    names = {name for name in streamsel.stream.__all__ if name.startswith("iter_")}
    reference = (ROOT / "docs/pages/reference/stream.md").read_text("utf-8")
    for name in names:
        assert f"::: streamsel.stream.{name}\n" in reference
        assert f"[`{name}`]" in table


def test_an_unknown_file_is_refused(tmp_path):
    path = tmp_path / "x.doc"
    path.write_bytes(b"anything")
    with pytest.raises(
        ValueError, match=r"unknown format.\nHint: supported suffixes are \.parquet"
    ):
        as_stream(path)

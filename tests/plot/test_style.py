"""Plots are byte-identical in every run, and do not depend on the Matplotlib style of the user."""

import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from streamsel import plot
from streamsel.plot.style import ROLES, SERIES, figure, to_svg

ROOT = Path(__file__).parents[2]
# The program of another process, which draws without pyplot.
PROGRAM = """
import pickle, sys
from streamsel import plot
from streamsel.plot.style import figure, to_svg
with open(sys.argv[1] + "/report", "rb") as file:
    ax = plot.manhattan(pickle.load(file), figure()[1])
ax.figure.savefig(sys.argv[1] + "/theirs.svg")
with open(sys.argv[1] + "/theirs.txt", "w") as file:
    file.write(to_svg(ax.figure, page=True))
print("matplotlib.pyplot" in sys.modules)
"""


def on_page(report, draw=plot.manhattan):
    """Return a figure as on a page."""
    return draw(report, figure()[1]).figure


@pytest.fixture(scope="package")
def report(report):
    """Return a report of more columns than are drawn as single points."""
    return replace(report, density=replace(report.density, points=None))


@pytest.fixture(scope="module")
def drawn(report):
    return on_page(report)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(report, drawn, tmp_path):
    (tmp_path / "report").write_bytes(pickle.dumps(report))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    drawn.savefig(tmp_path / "ours.svg")
    assert (tmp_path / "theirs.svg").read_bytes() == (tmp_path / "ours.svg").read_bytes()
    assert (tmp_path / "theirs.txt").read_text() == to_svg(drawn, page=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize("format_", ["svg", "pdf", "png"])
def test_saved_files_are_reproducible(drawn, tmp_path, format_):
    paths = [tmp_path / f"{name}.{format_}" for name in "ab"]
    for path in paths:
        drawn.savefig(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert b"Date" not in paths[0].read_bytes()


def test_global_style_is_neither_changed_nor_used(report):
    before = dict(mpl.rcParams)
    plain = to_svg(on_page(report), page=True)
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"font.size": 20.0, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert to_svg(on_page(report), page=True) == plain


class TestAxesOfPyplot:
    """Plots without an `ax` argument."""

    def test_a_plot_is_on_the_current_axes(self, report):
        _, panels = plt.subplots(1, 2)
        for panel in panels:
            plt.sca(panel)
            assert plot.manhattan(report) is panel

    def test_figure_is_created_if_there_is_none(self, report):
        ax = plot.selection_path(report)
        assert ax is plt.gca()
        assert type(ax.figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
        height = ax.figure.get_size_inches()[1]
        plt.close("all")
        many = replace(report, results=report.results * 10)
        assert plot.selection_path(many).figure.get_size_inches()[1] > height

    def test_style_of_the_user_is_used(self, report):
        with plt.rc_context({"font.size": 20.0, "text.color": "white", "axes.facecolor": "black"}):
            ax = plot.manhattan(report)
        names = [text for text in ax.texts if text.get_text() in map(str, range(300))]
        assert {text.get_fontsize() for text in names} == {17.0}
        assert {text.get_color() for text in names} == {"white"}
        assert ax.spines["top"].get_visible()


@pytest.mark.parametrize(
    ("draw", "given", "artist", "found"),
    [
        ("manhattan", {"c": "red", "ms": 9.0}, "chosen", ("red", 9.0)),
        ("qq", {"c": "red", "ms": 9.0}, "observed", ("red", 9.0)),
        ("selection_path", {"c": "red", "ms": 9.0}, "relevance", ("red", 9.0)),
    ],
)
def test_further_arguments_are_passed_to_matplotlib(report, draw, given, artist, found):
    ax = getattr(plot, draw)(report, **given)
    (line,) = [line for line in ax.lines if line.get_gid() == artist]
    assert (line.get_color(), line.get_markersize()) == found


@pytest.mark.parametrize(("width", "mm"), [("column", 85.0), ("page", 175.0)])
def test_figure_widths_match_journal_columns(width, mm):
    made, _ = figure(width)
    assert made.get_size_inches()[0] * 25.4 == pytest.approx(mm)


def test_given_axes_are_used(report):
    made = mpl.figure.Figure()
    panels = made.subplots(1, 2)
    assert plot.manhattan(report, panels[1]) is panels[1]
    assert not panels[0].get_xlabel()


@pytest.fixture(scope="module")
def svg(drawn):
    return to_svg(drawn, page=True)


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 (of our own making)


@pytest.fixture(scope="module")
def root(svg):
    return parsed(svg)


class TestForAPage:
    """`to_svg(figure, page=True)`."""

    def test_svg_has_no_fixed_size(self, svg, root):
        assert svg.startswith("<svg")
        assert "viewBox" in root.attrib
        assert not {"width", "height"} & root.attrib.keys()

    def test_svg_has_a_text_alternative(self, root):
        assert root.get("role") == "img"
        title = root.find("title")
        assert root[0] is title
        assert root.get("aria-label") == title.text
        assert title.text.startswith("Relevance of 300 columns")

    def test_svg_text_is_not_converted_to_paths(self, root):
        texts = {"".join(text.itertext()) for text in root.iter("text")}
        assert {"relevance", "column, in order of arrival", "20"} <= texts

    def test_colours_are_those_of_the_report(self, root):
        styles = " ".join(element.get("style", "") for element in root.iter())
        assert set(re.findall(r"#[0-9a-f]{6}", styles)) <= {*ROLES.values(), "#ffffff"}
        for role, colour in ROLES.items():
            assert styles.count(colour) == styles.count(f"var(--{role}, {colour})")
        assert "var(--chosen" in styles

    def test_shading_is_a_masked_colour(self, root):
        (mask,) = root.iter("mask")
        (image,) = mask
        assert image.get("href").startswith("data:image/png;base64,")
        (seen,) = (rect for rect in root.iter("rect") if rect.get("mask"))
        assert seen.get("mask") == f"url(#{mask.get('id')})"
        assert "var(--noise" in seen.get("style")

    def test_svg_references_only_its_own_ids(self, svg, root):
        own = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(own) == len(set(own))
        pointed_at = set(re.findall(r"url\(#([^)]+)\)", svg)) | {
            target[1:]
            for element in root.iter()
            if (target := element.get("href", "")).startswith("#")
        }
        assert pointed_at == set(own)

    def test_two_plots_share_no_id(self, root, report):
        other = parsed(to_svg(on_page(report, plot.qq), page=True))
        ids = [{element.get("id") for element in svg.iter()} - {None} for svg in (root, other)]
        assert ids[0]
        assert ids[1]
        assert not ids[0] & ids[1]

    def test_each_point_has_a_tooltip(self, root, report):
        titles = [use.findtext("title") for use in root.iter("use")]
        wanted = [f"{row['name']}: {row['relevance']:.3f}" for row in report.results]
        assert [title for title in titles if title] == wanted

    def test_svg_has_no_style_element_and_no_external_address(self, svg, root):
        assert not [element for element in root.iter() if "style" in element.tag]
        assert "<script" not in svg
        # The namespace is the only address.
        assert set(re.findall(r"https?://[^\"' ]+", svg)) <= {"http://www.w3.org/2000/svg"}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_series_colours_are_of_okabe_and_ito():
    okabe_ito = {"#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}
    assert {*SERIES} < okabe_ito
    assert len(SERIES) == len({*SERIES}) == 6


def test_roles_have_distinct_colours():
    assert len({*ROLES.values()}) == len(ROLES)
    # Text on white needs a contrast of 4.5 to 1 (WCAG).
    for role in ("ink", "noise"):
        assert 1.05 / (luminance(ROLES[role]) + 0.05) >= 4.5

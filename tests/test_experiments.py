"""The harness of the experiments; outputs in the documentation are those of the scripts."""

import html
import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from tests.seed import some

PAPERS = Path(__file__).parents[1] / "demos" / "papers"
SCRIPTS = sorted(path.stem for path in PAPERS.glob("[!_]*.py"))
TASKS = [(a, b) for a in range(3) for b in ("x", "y")]


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Start an experiment called toy that writes into a temporary folder."""
    monkeypatch.syspath_prepend(str(PAPERS))
    from _experiment import Experiment

    def begin(*options):
        monkeypatch.setattr(sys, "argv", ["toy.py", "--out", str(tmp_path), *options])
        return Experiment("toy", "A toy.")

    yield begin
    sys.modules.pop("_experiment", None)


class Work:
    """Record the tasks that are requested; interrupt at a given call."""

    def __init__(self, interrupt_at=99):
        self.requested = []
        self.interrupt_at = interrupt_at

    def __call__(self, a, b):
        if len(self.requested) == self.interrupt_at:
            raise KeyboardInterrupt
        self.requested.append((a, b))
        return [{"a": a, "b": b, "value": np.float64(a + 0.5)}]


def test_rows_are_in_the_order_of_the_tasks(start, tmp_path):
    frame = start().each(Work(), TASKS)
    assert frame.value.tolist() == [a + 0.5 for a, _ in TASKS]
    assert [*zip(frame.a, frame.b, strict=True)] == TASKS
    assert (tmp_path / "toy.csv").read_text().splitlines()[:2] == ["a,b,value", "0,x,0.5"]
    assert not (tmp_path / "toy.part").exists()


def test_an_interrupted_run_is_resumed(start, tmp_path):
    with pytest.raises(SystemExit, match="130"):
        start().each(Work(interrupt_at=4), TASKS)
    part = tmp_path / "toy.part"
    assert len(part.read_text().splitlines()) == 4
    assert not (tmp_path / "toy.csv").exists()
    with part.open("a") as notes:  # as after a crash in the middle of a line
        notes.write(json.dumps({"task": TASKS[4], "rows": []})[:-3])
    again = Work()
    frame = start().each(again, TASKS)
    assert again.requested == TASKS[4:]
    assert [*zip(frame.a, frame.b, strict=True)] == TASKS


def test_redrawing_uses_stored_results(start):
    frame = start().each(Work(), TASKS)
    assert start("--redraw").each(Work(interrupt_at=0), TASKS).equals(frame)


def test_absent_datasets_are_named(start, capsys):
    found = start("--data", "nowhere").datasets(["wine", "madelon"])
    assert [(data.name, data.X.shape) for data in found] == [("wine", (178, 13))]
    message = "".join(capsys.readouterr().err.split())
    assert "madelonleftout,fileabsent:nowhere/madelon.npz" in message


def test_the_docs_require_all_datasets(start, capsys):
    experiment = start("--data", "nowhere")
    experiment._in_docs = True  # but nothing is written there
    with pytest.raises(SystemExit, match="1"):
        list(experiment.datasets(["wine", "madelon"]))
    assert "madelon.npz is not in nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "why"), [([], "nothing to do"), (["--redraw"], "not there")])
def test_failed_starts_write_nothing(start, tmp_path, capsys, options, why):
    with pytest.raises(SystemExit, match="1"):
        start(*options).each(Work(), [])
    assert why in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_quick_results_stay_out_of_the_docs(start, tmp_path):
    start("--quick").publish("![figure](toy.svg)")
    text = (tmp_path / "toy.md").read_text()
    assert text == ("**A quick run, on little data: not to be quoted.**\n\n![figure](toy.svg)\n")


def test_every_experiment_has_its_page(start):
    start()
    import _experiment

    for script in SCRIPTS:
        name = re.search(r'Experiment\("([a-z-]+)"', (PAPERS / f"{script}.py").read_text())[1]
        assert name == script.replace("_", "-")
        page = _experiment.page_of(f"<!-- {name}: made by its script -->").read_text()
        assert f"<!-- end of {name} -->" in page


def test_a_page_may_have_several_experiments(start, tmp_path, monkeypatch):
    experiment = start()
    experiment._in_docs = True
    import _experiment

    monkeypatch.setattr(_experiment, "PAGES", tmp_path)
    begin, end = "<!-- {}: made by its script -->", "<!-- end of {} -->"
    sections = [f"{begin.format(name)}\n\nold\n\n{end.format(name)}" for name in ("other", "toy")]
    page = tmp_path / "page.md"
    page.write_text("\n\nBetween.\n\n".join(sections) + "\n")
    experiment.publish("new")
    assert page.read_text() == (
        f"{sections[0]}\n\nBetween.\n\n{sections[1].replace('old', 'new')}\n"
    )
    (tmp_path / "copy.md").write_text(page.read_text())
    with pytest.raises(ValueError, match="Expected one page"):
        experiment.publish("new")


def test_redrawn_pages_name_the_original_machine(start, tmp_path, monkeypatch):
    experiment = start("--redraw")
    experiment._in_docs = True
    import _experiment

    monkeypatch.setattr(_experiment, "PAGES", tmp_path)
    page = tmp_path / "page.md"
    measured = "streamsel 0.1.0, 64 cores of Some CPU @ 2 GHz, one thread"
    begin, end = "<!-- toy: made by its script -->", "<!-- end of toy -->"
    page.write_text(f"{begin}\n\nMade with {measured}.\n\n{end}\n")
    experiment.publish(f"New, made with\n{_experiment.machine()}.")
    assert f"New, made with {measured}." in page.read_text()


def test_only_paragraphs_are_wrapped(start):
    start()
    from _experiment import wrapped

    table = f"| {'cell ' * 40}|\n| --- |\n| 1 |"
    image = f"![{'word ' * 40}\nword](toy.svg)"
    items = f"- {'word ' * 40}\n- word"
    text = f"{'word ' * 23}> 5 word\nword{' (n × p)' * 20}"
    blocks = wrapped(f"\n{text}\n\n\n{table}\n\n{image}\n\n{items}\n").split("\n\n")
    assert blocks[1:] == [table, image, f"{items}\n"]
    assert blocks[0].split() == text.split()
    assert all(len(line) <= 120 and line[0] != ">" for line in blocks[0].split("\n"))
    assert wrapped("\n\n".join(blocks)) == "\n\n".join(blocks)


@pytest.fixture
def redraw(monkeypatch, tmp_path):
    """Return a function that redraws an experiment: its section and the words of its figures."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PAPERS))
    import _experiment

    figures = {}

    def draw(experiment, figure, suffix=""):
        labels = (text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_visible())
        name = f"{experiment.name}{suffix}.svg"
        figures[name] = {word for label in labels if "$" not in label for word in label.split()}
        plt.close(figure)
        return name

    monkeypatch.setattr(_experiment.Experiment, "draw", draw)

    def run(script):
        name = script.replace("_", "-")
        begin, end = f"<!-- {name}: made by its script -->", f"<!-- end of {name} -->"
        page = _experiment.page_of(begin).read_text()
        section = page.partition(begin)[2].partition(end)[0].strip() + "\n"
        shutil.copy(_experiment.PAGES / f"{name}.csv", tmp_path)
        path = tmp_path / f"{name}.md"
        path.write_text(section)
        options = ["--redraw", "--data", "nowhere", "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *options])
        importlib.import_module(script).main()
        return section, path.read_text(), figures

    yield run
    for name in set(sys.modules) - before:
        if str(PAPERS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("script", some(SCRIPTS, 4, "sections of the docs"))
def test_the_docs_have_the_output_of_the_script(redraw, script):
    """Sections of the docs are the output of their scripts; `--redraw` writes them."""
    section, redrawn, figures = redraw(script)
    assert section == redrawn
    for name, words in figures.items():
        assert f"({name})" in section
        drawing = (PAPERS.parents[1] / "docs" / "pages" / "evidence" / name).read_text()
        shown = re.findall(r"<text[^>]*>(.*?)</text>", drawing, re.DOTALL)
        text = html.unescape(re.sub(r"<[^>]+>", " ", " ".join(shown)))
        assert words <= set(text.split()), f"{name} is not that of the script"

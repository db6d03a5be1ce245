"""The harness of the experiments: what was interrupted goes on, what is torn is done again."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

PAPERS = Path(__file__).parents[1] / "demos" / "papers"
TASKS = [(a, b) for a in range(3) for b in ("x", "y")]


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Start an experiment called toy that writes into a directory of its own."""
    monkeypatch.syspath_prepend(str(PAPERS))
    from _experiment import Experiment

    def begin(*options):
        monkeypatch.setattr(sys, "argv", ["toy.py", "--out", str(tmp_path), *options])
        return Experiment("toy", "A toy.")

    yield begin
    sys.modules.pop("_experiment", None)


class Work:
    """Note what was asked for; give up at the call that is said."""

    def __init__(self, give_up_at=99):
        self.asked = []
        self.give_up_at = give_up_at

    def __call__(self, a, b):
        if len(self.asked) == self.give_up_at:
            raise KeyboardInterrupt
        self.asked.append((a, b))
        return [{"a": a, "b": b, "value": np.float64(a + 0.5)}]


def test_rows_stand_in_the_order_of_the_tasks(start, tmp_path):
    frame = start().each(Work(), TASKS)
    assert frame.value.tolist() == [a + 0.5 for a, _ in TASKS]
    assert [*zip(frame.a, frame.b, strict=True)] == TASKS
    assert (tmp_path / "toy.csv").read_text().splitlines()[:2] == ["a,b,value", "0,x,0.5"]
    assert not (tmp_path / "toy.part").exists()


def test_goes_on_where_it_was_interrupted(start, tmp_path):
    with pytest.raises(SystemExit, match="130"):
        start().each(Work(give_up_at=4), TASKS)
    part = tmp_path / "toy.part"
    assert len(part.read_text().splitlines()) == 4
    assert not (tmp_path / "toy.csv").exists()
    with part.open("a") as notes:  # the machine went down in the middle of a line
        notes.write(json.dumps({"task": TASKS[4], "rows": []})[:-3])
    again = Work()
    frame = start().each(again, TASKS)
    assert again.asked == TASKS[4:]
    assert [*zip(frame.a, frame.b, strict=True)] == TASKS


def test_redraws_without_work(start):
    frame = start().each(Work(), TASKS)
    assert start("--redraw").each(Work(give_up_at=0), TASKS).equals(frame)


def test_absent_datasets_are_named(start, capsys):
    found = start("--data", "nowhere").datasets(["wine", "madelon"])
    assert [(data.name, data.X.shape) for data in found] == [("wine", (178, 13))]
    told = "".join(capsys.readouterr().err.split())
    assert "madelonleftout,fileabsent:nowhere/madelon.npz" in told


def test_the_docs_take_all_datasets_or_nothing(start, capsys):
    experiment = start("--data", "nowhere")
    experiment._in_docs = True  # without writing there
    with pytest.raises(SystemExit, match="1"):
        list(experiment.datasets(["wine", "madelon"]))
    assert "madelon.npz is not in nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "why"), [([], "nothing to do"), (["--redraw"], "not there")])
def test_without_work_nothing_is_written(start, tmp_path, capsys, options, why):
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

    for script in sorted(PAPERS.glob("[!_]*.py")):
        name = re.search(r'Experiment\("([a-z-]+)"', script.read_text())[1]
        assert name == script.stem.replace("_", "-")
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


def test_a_redrawn_page_has_the_machine_that_it_was_measured_on(start, tmp_path, monkeypatch):
    experiment = start("--redraw")
    experiment._in_docs = True
    import _experiment

    monkeypatch.setattr(_experiment, "PAGES", tmp_path)
    page = tmp_path / "page.md"
    measured = "streamsel 0.1.0, 64 cores of Some CPU @ 2 GHz, one thread"
    begin, end = "<!-- toy: made by its script -->", "<!-- end of toy -->"
    page.write_text(f"{begin}\n\nMade with {measured}.\n\n{end}\n")
    experiment.publish(f"New, made with\n{_experiment.machine()}.")
    assert f"New, made with\n{measured}." in page.read_text()

"""The demonstration: from which sub-package of SciPy is a docstring, by its words and phrases.

Everything it needs is installed already. The documents are the docstrings in the source files of
eight sub-packages of SciPy; the variables are all 1- to 3-grams of the training documents, hundreds
of thousands. The first question has two answers, one sub-package or another, and
`ForwardSelection` selects 20 phrases for it. The second has eight, for 100 phrases and for seven
components of `RidgeComponents`. One and the same classifier is then trained on these, and on all
single words, and applied to test documents. The report says where fewer variables are better, and
where they are worse.

What would make the task too easy is taken out: the names of the sub-packages are blanks, lines that
import are left out, a docstring that occurs twice counts once (one that two sub-packages have, not
at all), and whole source files are held out, since the docstrings of one file resemble each other.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.demo._docstrings import LIBRARY, Document, read_docstrings, split
from streamsel.demo._judge import judge
from streamsel.demo._plan import Plan, plans
from streamsel.demo._report import DemoReport, Phrase, Score, Task
from streamsel.demo._variables import variables_of
from streamsel.memory import peak_bytes, resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from streamsel.stream import ColumnStream

    Progress = Callable[[str, int, int], None]

# Words of the longest n-grams; one fewer in a quick run.
LONGEST = 3

__all__ = ["DemoReport", "Phrase", "Score", "Task", "render", "run"]


def run(*, quick: bool = False, progress: Progress | None = None) -> DemoReport:
    """Run the demonstration.

    Parameters
    ----------
    quick
        Ask the first question only, of every second source file, and stop at 2-grams: a few
        seconds.
    progress
        Called now and then with the stage, how much of it is done, and how much it is.

    Returns
    -------
    DemoReport
        The results; `render` prints them.

    Raises
    ------
    OSError
        If the source files of SciPy are not installed.

    Notes
    -----
    Deterministic but for the times and the memory. Under a minute on one core. Memory: the
    documents, what `streamsel.stream.iter_ngrams` holds, and what the models do.

    Examples
    --------
    >>> from streamsel import demo
    >>> report = demo.run(quick=True)
    >>> [(score.n_variables, score.variables) for score in report.tasks[0].scores[2:]]
    [(20, 'phrases, ForwardSelection')]
    """
    tell = progress or (lambda *_: None)
    watch = _Watch()
    documents = read_docstrings(every=2 if quick else 1, progress=tell)
    train, test = split(documents)
    watch.lap("reading the source files")

    longest = LONGEST - quick
    stream = variables_of([document.text for document in train], longest)
    n_columns = stream.n_columns or 0
    watch.lap("counting words and sorting n-grams")

    asked = plans(quick=quick)
    models = [model for plan in asked for model in plan.models]
    _compile(*(model.clone() for model in models))
    watch.lap("loading or compiling kernels")

    before = most = resident_bytes() or 0
    for plan in asked:
        for model in plan.models:
            model.learn_target(plan.labels(train))
    for n_read, block in _counted(stream):
        for model in models:
            model.learn_columns(block.values, names=block.names)
        most = max(most, resident_bytes() or 0)
        tell("streaming n-grams", n_read, n_columns)
    selected = [_selected(plan, stream, train) for plan in asked]
    watch.lap("streaming n-grams through the models")
    extractor = asked[-1].extractor
    n_loadings = None if extractor is None else len(extractor.loadings)
    most = max(most, resident_bytes() or 0)
    if extractor is not None:
        watch.lap("solving for the components")

    tell("judging on documents held out", 0, 1)
    tasks = []
    for plan, phrases in zip(asked, selected, strict=True):
        scores, recall = judge(train, test, stream, plan)
        tasks.append(Task(plan.question, _sizes(plan, train), phrases, scores, recall))
    watch.lap("training and testing the classifiers")
    peak = peak_bytes()
    return DemoReport(
        version=version(LIBRARY),
        n_train=len(train),
        n_test=len(test),
        n_columns=n_columns,
        longest=longest,
        tasks=tasks,
        n_models=len(models),
        noise_floor=models[-1].noise_floor(),
        n_above_noise=None if extractor is None else extractor.n_above_noise,
        n_loadings=n_loadings,
        seconds=watch.laps | {"all together": sum(watch.laps.values())},
        columns_per_second=n_columns / watch.laps["streaming n-grams through the models"],
        peak_bytes=peak or None,
        growth_bytes=most - before if peak else None,
        dense_bytes=8 * len(train) * n_columns,
    )


def render(report: DemoReport, console: Console) -> None:
    """Print the results of the demonstration.

    Parameters
    ----------
    report
        What `run` returned.
    console
        Where to: a console of rich (`pip install "streamsel[cli]"`).
    """
    from streamsel.demo._render import render_report  # rich is an extra

    render_report(report, console)


def _compile(*models: Any) -> None:
    """Have throw-away models learn a little, so that loading and compiling are not timed later."""
    stream = variables_of(["one two three four", "two three", "three one", "four four four"], 2)
    for model in models:
        model.learn_target(["a", "b", "a", "b"])
        for block in stream.blocks():
            model.learn_columns(block.values, names=block.names)
        model.transform_many(stream)


def _counted(stream: ColumnStream) -> Any:
    """Yield the blocks of a stream, each with the number of columns up to its end."""
    n_read = 0
    for block in stream.blocks():
        n_read += len(block.names)
        yield n_read, block


def _sizes(plan: Plan, documents: list[Document]) -> dict[str, int]:
    """Return how many documents are of each class."""
    labels = plan.labels(documents)
    return {name: labels.count(name) for name in plan.classes}


def _selected(plan: Plan, stream: ColumnStream, train: list[Document]) -> list[Phrase]:
    """Describe the phrases that `ForwardSelection` selected."""
    classes = plan.classes
    codes = np.array([*map(classes.index, plan.labels(train))])
    sizes = np.bincount(codes, minlength=len(classes))
    selected = plan.selector.selected
    columns = stream.take(selected)
    phrases = []
    for name in selected:
        counts = np.bincount(codes[columns[name].indices], minlength=len(classes))
        label = classes[int(np.argmax(counts / sizes))]
        phrases.append(Phrase(str(name), label, dict(zip(classes, counts.tolist(), strict=True))))
    return phrases


class _Watch:
    """Keeps the time of each stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage], self._last = now - self._last, now

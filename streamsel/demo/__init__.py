"""The demonstration: predict the SciPy sub-package of a docstring from its words and phrases.

It needs no download. The documents are the docstrings in the source files of eight sub-packages of
SciPy; the variables are all 1- to 3-grams of the training documents, hundreds of thousands. The
first question has two answers, one sub-package or another, for which `ForwardSelection` selects 20
phrases. The second has eight, with 100 phrases and with seven components of `RidgeComponents`. The
same classifier is then trained on these, and on all single words, and applied to test documents.
The report shows where fewer variables are better, and where they are worse.

Trivial cues are removed: names of the sub-packages are blanked, import lines are dropped, and
repeated docstrings count once (not at all if two sub-packages share one). Whole source files are
held out, since docstrings of one file resemble each other.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.system import peak_bytes, resident_bytes
from streamsel.demo.classify import evaluate_selections
from streamsel.demo.data import LIBRARY, Document, iter_phrases, read_docstrings, split
from streamsel.demo.questions import Question, make_questions
from streamsel.demo.results import DemoReport, Phrase, Score, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from streamsel.stream import ColumnStream

    Progress = Callable[[str, int, int], None]

# Length of the longest n-grams in words; one less in a quick run.
LONGEST = 3

__all__ = ["DemoReport", "Phrase", "Score", "Task", "render", "run"]


def run(*, quick: bool = False, progress: Progress | None = None) -> DemoReport:
    """Run the demonstration.

    Parameters
    ----------
    quick
        Only the first question, every second source file, and at most 2-grams: a few seconds.
    progress
        Called from time to time with the stage, the amount done, and the total.

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
    Results are deterministic, except for times and memory. The demonstration takes less than a
    minute on one core. Memory is that of the documents, the buffers of
    `streamsel.stream.iter_ngrams`, and the models.

    Examples
    --------
    >>> from streamsel import demo
    >>> report = demo.run(quick=True)
    >>> [(score.n_variables, score.variables) for score in report.tasks[0].scores[2:]]
    [(20, 'phrases, ForwardSelection')]
    """
    report_progress = progress or (lambda *_: None)
    watch = _Watch()
    documents = read_docstrings(every=2 if quick else 1, progress=report_progress)
    train, test = split(documents)
    watch.lap("reading the source files")

    longest = LONGEST - quick
    stream = iter_phrases([document.text for document in train], longest)
    n_columns = stream.n_columns or 0
    watch.lap("counting words and sorting n-grams")

    all_questions = make_questions(quick=quick)
    models = [model for question in all_questions for model in question.models]
    _compile(*(model.clone() for model in models))
    watch.lap("loading or compiling kernels")

    start_bytes = max_bytes = resident_bytes() or 0
    for question in all_questions:
        for model in question.models:
            model.learn_target(question.labels(train))
    for n_read, block in _counted(stream):
        for model in models:
            model.learn_columns(block.values, names=block.names)
        max_bytes = max(max_bytes, resident_bytes() or 0)
        report_progress("streaming n-grams", n_read, n_columns)
    selected = [_selected(question, stream, train) for question in all_questions]
    watch.lap("streaming n-grams through the models")
    extractor = all_questions[-1].extractor
    n_loadings = None if extractor is None else len(extractor.loadings)
    max_bytes = max(max_bytes, resident_bytes() or 0)
    if extractor is not None:
        watch.lap("solving for the components")

    report_progress("evaluating on held-out documents", 0, 1)
    tasks = []
    for question, phrases in zip(all_questions, selected, strict=True):
        scores, recall = evaluate_selections(train, test, stream, question)
        tasks.append(Task(question.question, _sizes(question, train), phrases, scores, recall))
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
        growth_bytes=max_bytes - start_bytes if peak else None,
        dense_bytes=8 * len(train) * n_columns,
    )


def render(report: DemoReport, console: Console) -> None:
    """Print the results of the demonstration.

    Parameters
    ----------
    report
        The result of `run`.
    console
        A console of rich (`pip install "streamsel[cli]"`).
    """
    from streamsel.demo.text_report import print_report  # rich is an extra

    print_report(report, console)


def _compile(*models: Any) -> None:
    """Fit throw-away models to a little data, so that compiling kernels is not timed later."""
    stream = iter_phrases(["one two three four", "two three", "three one", "four four four"], 2)
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


def _sizes(question: Question, documents: list[Document]) -> dict[str, int]:
    """Return the number of documents of each class."""
    labels = question.labels(documents)
    return {name: labels.count(name) for name in question.classes}


def _selected(question: Question, stream: ColumnStream, train: list[Document]) -> list[Phrase]:
    """Return the phrases that `ForwardSelection` selected, with their counts by class."""
    classes = question.classes
    codes = np.array([*map(classes.index, question.labels(train))])
    sizes = np.bincount(codes, minlength=len(classes))
    selected = question.selector.selected
    columns = stream.take(selected)
    phrases = []
    for name in selected:
        counts = np.bincount(codes[columns[name].indices], minlength=len(classes))
        label = classes[int(np.argmax(counts / sizes))]
        phrases.append(Phrase(str(name), label, dict(zip(classes, counts.tolist(), strict=True))))
    return phrases


class _Watch:
    """A stopwatch with the time of each stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage], self._last = now - self._last, now

"""The demonstration: which of eight sub-packages of SciPy is a docstring from.

Everything it needs is installed already. The documents are the docstrings in the source files of
SciPy; the target is which of eight sub-packages a docstring comes from; the variables say which of
all 1- to 3-grams of the training documents, hundreds of thousands, occur in which documents.
`ForwardSelection` looks for the few phrases that tell most beside each other; `RidgeComponents`
makes seven new variables of all. Then one and the same classifier is trained on what each of the
two was left with and on all single words, and judged on documents held out.

What would make the task too easy is taken out: the names of the sub-packages are blanks, lines that
import are left out, a docstring that occurs twice counts once (one that two sub-packages have, not
at all), and whole source files are held out, since the docstrings of one file resemble each other.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.demo._docstrings import LIBRARY, PACKAGES, Document, read_docstrings, split
from streamsel.demo._judge import judge
from streamsel.demo._report import DemoReport, Phrase, Score
from streamsel.demo._variables import variables_of
from streamsel.extraction.ridge_components import RidgeComponents
from streamsel.memory import peak_bytes, resident_bytes
from streamsel.selection.forward_selection import ForwardSelection

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from streamsel.stream import ColumnStream

    Progress = Callable[[str, int, int], None]

__all__ = ["DemoReport", "Phrase", "Score", "render", "run"]

# Compared on one or two splits of the training files.
K = 100
N_COMPONENTS = 7  # what tells eight classes apart has seven dimensions
RELEVANCE_POWER = 1.0
MAX_SUPPORT = 500


def run(*, quick: bool = False, progress: Progress | None = None) -> DemoReport:
    """Run the demonstration.

    Parameters
    ----------
    quick
        Read every second source file only, and stop at 2-grams: some seconds.
    progress
        Called now and then with what is being done, how much of it is done, and how much it is.

    Returns
    -------
    DemoReport
        What was found; `render` prints it.

    Raises
    ------
    OSError
        If the source files of SciPy are not installed.

    Notes
    -----
    Deterministic but for the times and the memory. Under a minute on one core. Memory: the
    documents, what `streamsel.stream.iter_ngrams` holds, and what the two models do.

    Examples
    --------
    >>> from streamsel import demo
    >>> report = demo.run(quick=True)
    >>> [(score.n_variables, score.variables) for score in report.scores[1::2]]
    [(100, 'phrases, ForwardSelection'), (7, 'components, RidgeComponents')]
    """
    tell = progress or (lambda *_: None)
    watch = _Watch()
    documents = read_docstrings(every=2 if quick else 1, progress=tell)
    train, test = split(documents)
    watch.lap("reading the source files")

    longest = 2 if quick else 3
    stream = variables_of([document.text for document in train], longest)
    n_columns = stream.n_columns or 0
    watch.lap("counting words and sorting n-grams")

    selector = ForwardSelection(K)
    extractor = RidgeComponents(
        N_COMPONENTS, relevance_power=RELEVANCE_POWER, max_support=MAX_SUPPORT
    )
    _compile(selector.clone(), extractor.clone())
    watch.lap("loading or compiling kernels")

    packages = [document.package for document in train]
    before = most = resident_bytes() or 0
    selector.learn_target(packages)
    extractor.learn_target(packages)
    for block in stream.blocks():
        selector.learn_columns(block.values, names=block.names)
        extractor.learn_columns(block.values, names=block.names)
        most = max(most, resident_bytes() or 0)
        tell("streaming n-grams", extractor.n_columns, n_columns)
    selected = _chosen(selector, stream, train)
    watch.lap("streaming n-grams through both models")
    n_loadings = len(extractor.loadings)
    most = max(most, resident_bytes() or 0)
    watch.lap("solving for the components")

    tell("judging on documents held out", 0, 1)
    verdict = judge(train, test, stream, selector, extractor)
    watch.lap("training and judging the classifiers")
    peak = peak_bytes()
    return DemoReport(
        version=version(LIBRARY),
        documents={name: packages.count(name) for name in PACKAGES},
        n_train=len(train),
        n_test=len(test),
        n_columns=n_columns,
        longest=longest,
        noise_floor=extractor.noise_floor(),
        n_above_noise=extractor.n_above_noise,
        selected=selected,
        n_loadings=n_loadings,
        **verdict._asdict(),
        seconds=watch.laps | {"all together": sum(watch.laps.values())},
        columns_per_second=n_columns / watch.laps["streaming n-grams through both models"],
        peak_bytes=peak or None,
        growth_bytes=most - before if peak else None,
        dense_bytes=8 * len(train) * n_columns,
    )


def render(report: DemoReport, console: Console) -> None:
    """Print what the demonstration found.

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


def _chosen(
    selector: ForwardSelection, stream: ColumnStream, train: list[Document]
) -> list[Phrase]:
    """Describe what `ForwardSelection` selected."""
    packages = np.array([PACKAGES.index(document.package) for document in train])
    sizes = np.bincount(packages, minlength=len(PACKAGES))
    columns = stream.take(selector.selected)
    chosen = []
    for name in selector.selected:
        counts = np.bincount(packages[columns[name].indices], minlength=len(PACKAGES))
        package = PACKAGES[int(np.argmax(counts / sizes))]
        chosen.append(Phrase(str(name), package, dict(zip(PACKAGES, counts.tolist(), strict=True))))
    return chosen


class _Watch:
    """Keeps the time of each stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage], self._last = now - self._last, now

"""The demonstration: which n-grams tell the docstrings of numpy from those of scipy.

Everything it needs is installed already. The documents are the docstrings in the source files of
numpy and scipy; the target is which of the two a docstring comes from; the variables say which of
all 1- to 4-grams of the training documents, about a million, occur in which documents. They pass
once, block by block, through `ProjSe` and `SOSPCA` together. Then one and the same classifier is
trained three times, on what each of the two was left with and on all single words, and judged on
documents held out.

What would make the task too easy is taken out: the names of the two libraries are one word to the
models, a docstring that occurs twice counts once (one that both have, not at all), and whole source
files are held out, since the docstrings of one file resemble each other.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.demo._docstrings import LIBRARIES, Document, read_docstrings, split
from streamsel.demo._judge import judge
from streamsel.demo._report import Component, DemoReport, NGram, Score
from streamsel.extraction.sospca import SOSPCA
from streamsel.memory import peak_bytes, resident_bytes
from streamsel.selection.projse import ProjSe
from streamsel.stream import ColumnStream, iter_ngrams

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    Progress = Callable[[str, int, int], None]

__all__ = ["Component", "DemoReport", "NGram", "Score", "render", "run"]

K = 50
N_COMPONENTS = 10


def run(*, quick: bool = False, progress: Progress | None = None) -> DemoReport:
    """Run the demonstration.

    Parameters
    ----------
    quick
        Read every eighth source file only, and stop at 2-grams: seconds instead of half a minute.
    progress
        Called now and then with what is being done, how much of it is done, and how much it is.

    Returns
    -------
    DemoReport
        What was found; `render` prints it.

    Raises
    ------
    OSError
        If the source files of numpy and scipy are not installed.

    Notes
    -----
    Deterministic but for the times and the memory. Under a minute on two cores, most of it reading
    the source files. Memory: the documents, and what `streamsel.stream.iter_ngrams` holds.

    Examples
    --------
    >>> from streamsel import demo
    >>> report = demo.run(quick=True)
    >>> report.selected[0].above_noise
    True
    """
    tell = progress or (lambda *_: None)
    watch = _Watch()
    documents = read_docstrings(every=8 if quick else 1, progress=tell)
    train, test = split(documents)
    watch.lap("reading the source files")

    longest = 2 if quick else 4
    stream = iter_ngrams((document.text for document in train), n=(1, longest), binary=True)
    n_columns = stream.n_columns or 0
    watch.lap("counting words and sorting n-grams")

    libraries = [document.library for document in train]
    projse, sospca = ProjSe(k=K, max_candidates=10 * K), SOSPCA(n_components=N_COMPONENTS)
    _compile(projse.clone(), sospca.clone())
    watch.lap("loading or compiling kernels")

    before = most = resident_bytes() or 0
    projse.learn_target(libraries)
    sospca.learn_target(libraries)
    for block in stream.blocks():
        projse.learn_columns(block.values, names=block.names)
        sospca.learn_columns(block.values, names=block.names)
        most = max(most, resident_bytes() or 0)
        tell("streaming n-grams", projse.n_columns, n_columns)
    selected, components = _chosen(projse, stream, train), _built(sospca)
    watch.lap("streaming n-grams through both models")

    tell("judging on documents held out", 0, 1)
    scores = judge(train, test, stream, projse, sospca)
    watch.lap("training and judging the classifiers")
    peak = peak_bytes()
    return DemoReport(
        versions={name: version(name) for name in LIBRARIES},
        documents={name: sum(d.library == name for d in documents) for name in LIBRARIES},
        n_train=len(train),
        n_test=len(test),
        n_columns=n_columns,
        longest=longest,
        noise_floor=projse.noise_floor(),
        selected=selected,
        components=components,
        scores=scores,
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
    for model in models:
        stream = iter_ngrams(["one two three four", "two three", "three one", "four four four"])
        model.learn_target(["a", "b", "a", "b"])
        for block in stream.blocks():
            model.learn_columns(block.values, names=block.names)


def _chosen(projse: ProjSe, stream: ColumnStream, train: list[Document]) -> list[NGram]:
    """Describe what `ProjSe` selected."""
    floor = projse.noise_floor()
    libraries = np.array([document.library for document in train])
    columns = stream.take(projse.selected)
    chosen = []
    for name, relevance in projse.relevance.items():
        where = libraries[columns[name].indices]
        documents = {library: int((where == library).sum()) for library in LIBRARIES}
        shares = {
            library: documents[library] / (libraries == library).sum() for library in LIBRARIES
        }
        library = max(shares, key=shares.__getitem__)
        chosen.append(NGram(str(name), relevance, relevance > floor, library, documents))
    return chosen


def _built(sospca: SOSPCA) -> list[Component]:
    """Describe what `SOSPCA` built, the most relevant first."""
    built = []
    for component, relevance in sorted(sospca.relevance.items(), key=lambda item: -item[1]):
        loadings = [
            (str(variable), weights[component])
            for variable, weights in sospca.loadings.items()
            if component in weights
        ]
        loadings.sort(key=lambda item: -abs(item[1]))
        built.append(Component(str(component), relevance, dict(loadings)))
    return built


class _Watch:
    """Keeps the time of each stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage], self._last = now - self._last, now

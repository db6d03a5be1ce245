"""The harness of the experiments: datasets, resumable runs, CSV files, figures, sections of pages.

An experiment is a list of tasks, each a tuple that names it, and a function that returns the rows
of a task. Finished tasks are logged in `<name>.part`, so that an interrupted run can be resumed
(delete the file if the script has changed since). When all tasks are done, `<name>.csv` has their
rows in the order of the tasks. Figures and text of the documentation are made from these rows
alone: `--redraw` makes them again, and needs no data files.
"""

import argparse
import datetime as dt
import json
import os
import platform
import re
import string
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import joblib
import matplotlib as mpl
import numpy as np
import pandas as pd
import scipy.sparse
import sklearn.datasets
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

import streamsel
from streamsel.plot.style import ACCENT, INK, ROLES, SELECTED

mpl.use("svg")
from matplotlib import pyplot as plt  # the backend comes first

PROJECT = Path(__file__).parents[2]
PAGES = PROJECT / "docs" / "pages" / "evidence"
BUNDLED = {
    "breast_cancer": sklearn.datasets.load_breast_cancer,
    "digits": sklearn.datasets.load_digits,
    "wine": sklearn.datasets.load_wine,
}
# Letters of a panel's title per inch.
LETTERS = 14.5
# Longer tables are folded.
MAX_OPEN_ROWS = 12
# Width of the paragraphs of the documentation.
WIDTH = 120
# One colour per method, the same in every figure: Okabe and Ito's, as in the package, and grey.
COLOURS = (ACCENT, SELECTED, ROLES["sixth"], ROLES["fourth"], ROLES["third"], "#8a93a0", INK)
plt.rcParams |= {
    "svg.fonttype": "none",
    "svg.hashsalt": "streamsel",
    "font.size": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
    "figure.facecolor": "white",
    "legend.frameon": False,
}

# What `machine` returns, perhaps on two lines; texts of old measurements have no date.
MACHINE = re.compile(
    r"streamsel\s+\S+,\s+\d+\s+cores\s+of\s+[^,]+,\s+one\s+thread(?:,\s+\d{4}-\d\d-\d\d)?"
)
# Blocks of Markdown that are not wrapped: tables, headings, HTML, images, lists, code.
UNWRAPPED = re.compile(r"\||#|<|!\[|[-*+] |\d+\. |```|    ")

Task = tuple[Any, ...]
Row = dict[str, Any]


class Dataset(NamedTuple):
    """X (n, p) dense or CSR, y (n,) integer codes of classes, and all arrays of the file."""

    name: str
    X: np.ndarray | scipy.sparse.csr_array
    y: np.ndarray
    classes: np.ndarray
    archive: dict[str, np.ndarray]


class Experiment:
    """The command line of one experiment, and where its results go.

    `name` names the files and the section of the docs; `description` is the script's docstring.
    """

    def __init__(self, name: str, description: str) -> None:
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument(
            "--quick", action="store_true", help="a small slice, in a minute; not to be quoted"
        )
        parser.add_argument(
            "--data",
            type=Path,
            default=os.environ.get("STREAMSEL_DATA", PROJECT.parent / "shared" / "data"),
            help="folder of the .npz files (default: $STREAMSEL_DATA, else ../shared/data)",
        )
        parser.add_argument(
            "--out", type=Path, help="folder of the results (default: docs/pages/evidence)"
        )
        parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
        parser.add_argument(
            "--redraw", action="store_true", help="figures and text from an existing CSV file"
        )
        options = parser.parse_args()
        self.name = name
        self.quick: bool = options.quick
        self.data = Path(options.data)
        self.jobs: int = options.jobs
        self.redraws: bool = options.redraw
        self._in_docs = options.out is None and not self.quick
        if options.out is None:
            options.out = tempfile.mkdtemp() if self.quick else PAGES
        self.out = Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.console = Console(stderr=True)

    def small(self, full: Any, quick: Any) -> Any:
        """Return `full`, or `quick` in a quick run."""
        return quick if self.quick else full

    def available(self, names: Iterable[str]) -> list[str]:
        """Return the datasets whose files exist; print a line for each missing file.

        The documentation needs all of them: a part of the evidence must not replace the whole. A
        redraw needs none.
        """
        if self.redraws:
            return list(names)
        there = []
        for name in names:
            path = self.data / f"{name}.npz"
            if name in BUNDLED or path.is_file():
                there.append(name)
            elif self._in_docs:
                self.give_up(
                    f"{path.name} is not in {self.data}. Hint: --data, --quick or --out DIR"
                )
            else:
                self.console.print(f"{self.name}: {name} left out, file absent: {path}")
        return there

    def datasets(self, names: Iterable[str]) -> Iterator[Dataset]:
        """Yield the datasets that are `available`, without content if this is a redraw."""
        for name in self.available(names):
            if self.redraws:
                yield Dataset(name, np.zeros((0, 0)), np.zeros(0, int), np.zeros(0, str), {})
            elif name in BUNDLED:
                bunch = BUNDLED[name]()
                yield Dataset(name, bunch.data, bunch.target, bunch.target_names.astype(str), {})
            else:
                yield read(self.data / f"{name}.npz")

    def give_up(self, why: str) -> NoReturn:
        """Print the reason and exit; nothing is written."""
        self.console.print(f"{self.name}: {why}")
        sys.exit(1)

    def each(self, work: Callable[..., list[Row]], tasks: Sequence[Task]) -> pd.DataFrame:
        """Return the rows of every task: those logged earlier, and `work(*task)` of the others.

        A row has all columns of the CSV file, including the parameters of its task.
        """
        path = self.out / f"{self.name}.csv"
        if self.redraws:
            if not path.is_file():
                self.give_up(f"{path} is not there to redraw")
            return pd.read_csv(path)
        if not tasks:
            self.give_up("without any of its datasets there is nothing to do")
        part = path.with_suffix(".part")
        done = logged(part)
        waiting = [task for task in tasks if key(task) not in done]
        calls = (joblib.delayed(one_task)(work, task) for task in waiting)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        try:
            with part.open("a") as log, Progress(*columns, console=self.console) as bar:
                shown = bar.add_task(
                    self.name, total=len(tasks), completed=len(tasks) - len(waiting)
                )
                run = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")
                for task, rows in run(calls):
                    done[key(task)] = rows
                    log.write(json.dumps({"task": task, "rows": rows}, default=plain) + "\n")
                    log.flush()
                    bar.advance(shown)
        except KeyboardInterrupt:
            self.console.print(
                f"{self.name}: interrupted, nothing is lost: the same command goes on from there"
            )
            sys.exit(130)
        table = pd.DataFrame([row for task in tasks for row in done[key(task)]])
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
        part.unlink()
        return pd.read_csv(path)

    def draw(self, figure: plt.Figure, suffix: str = "") -> str:
        """Save a figure as SVG; return the name of the file."""
        path = self.out / f"{self.name}{suffix}.svg"
        panels = [axes for axes in figure.axes if axes.get_title("left")]
        for letter, axes in zip(
            string.ascii_lowercase, panels if len(panels) > 1 else (), strict=False
        ):
            # As wide as the panel, so that it does not overlap the next title.
            width = int(LETTERS * axes.get_position().width * figure.get_figwidth())
            title = textwrap.fill(
                f"{letter}\N{EM SPACE}{axes.get_title('left')}", width, break_long_words=False
            )
            axes.set_title(title, loc="left")
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)
        return path.name

    def publish(self, text: str) -> None:
        """Write Markdown into this experiment's page of the docs, or next to the CSV file.

        Paragraphs are wrapped. A redraw keeps the machine of the earlier text, because nothing is
        measured again.
        """
        if self.quick:
            text = f"**A quick run, on little data: not to be quoted.**\n\n{text}"
        path = self.out / f"{self.name}.md"
        if self._in_docs:
            begin, end = f"<!-- {self.name}: made by its script -->", f"<!-- end of {self.name} -->"
            page = page_of(begin)
            before, _, rest = page.read_text().partition(begin)
            old, marker, after = rest.partition(end)
            if not marker:
                raise ValueError(f"{page.name}: expected the lines {begin} and {end}.")
            text = wrapped(self._measured(text, old))
            page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
        else:
            text = wrapped(self._measured(text, path.read_text() if path.is_file() else ""))
            path.write_text(text)
        print(text)
        print(f"written to {'the docs' if self._in_docs else self.out}")

    def _measured(self, text: str, old: str) -> str:
        """Return text with the machine of the earlier one, if this is a redraw."""
        measured_on = MACHINE.search(old) if self.redraws else None
        return MACHINE.sub(" ".join(measured_on[0].split()), text) if measured_on else text


def wrapped(text: str) -> str:
    """Return Markdown with wrapped paragraphs; tables, images, lists and HTML are unchanged."""
    blocks = []
    for block in re.split(r"\n{2,}", text.strip()):
        if UNWRAPPED.match(block):
            blocks.append(block.rstrip())
            continue
        # No line begins with a character that would make it a quotation, a heading or a list.
        words = re.sub(r"\s+(?=[>#+*-]+\s)", "\0", " ".join(block.split()))
        lines = textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)
        blocks.append(lines.replace("\0", " "))
    return "\n\n".join(blocks) + "\n"


def page_of(begin: str) -> Path:
    """Return the page of the docs that has this line; a page may have several experiments."""
    pages = [page for page in sorted(PAGES.glob("*.md")) if begin in page.read_text()]
    if len(pages) != 1:
        raise ValueError(f"Expected one page with the line {begin}. Got: {len(pages)}.")
    return pages[0]


def read(path: Path) -> Dataset:
    """Read a .npz file: `X` or the parts of a CSR matrix, `y`, and optionally `classes`."""
    with np.load(path, allow_pickle=False) as file:
        archive = dict(file)
    if "X" in archive:
        X = archive["X"]
    else:
        parts = (archive["data"], archive["indices"], archive["indptr"])
        X = scipy.sparse.csr_array(parts, shape=tuple(archive["shape"]))
    classes = archive.get("classes", np.unique(archive["y"]).astype(str))
    return Dataset(path.stem, X, archive["y"].astype(int), classes, archive)


def one_task(work: Callable[..., list[Row]], task: Task) -> tuple[Task, list[Row]]:
    """Run one task with BLAS on one thread, the default of streamsel."""
    with threadpool_limits(1):
        return task, work(*task)


def logged(part: Path) -> dict[str, list[Row]]:
    """Return the rows of the tasks that an earlier run finished; drop an incomplete last line."""
    done = {}
    lines = part.read_text().splitlines() if part.is_file() else []
    for line in lines:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        done[key(entry["task"])] = entry["rows"]
    part.write_text("".join(line + "\n" for line in lines if line.endswith("}")))
    return done


def key(task: Iterable[Any]) -> str:
    return json.dumps(list(task), default=plain)


def plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected a number, a string or None, got: {value!r}")


def table(frame: pd.DataFrame) -> str:
    """Return a frame of strings as a Markdown table; columns of numbers are right-aligned.

    A long table is folded.
    """
    head = [str(name) for name in frame.columns]
    body = [[str(cell) for cell in row] for row in frame.to_numpy().tolist()]
    rule = [
        "---:" if any(cell.lstrip("*-+< ")[:1].isdigit() for cell in cells) else "---"
        for cells in zip(*body, strict=True)
    ]
    text = "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *body))
    if len(body) <= MAX_OPEN_ROWS:
        return text
    summary = f"<summary>The table, {len(body)} rows</summary>"
    return f'<details markdown="1">\n{summary}\n\n{text}\n\n</details>'


def machine() -> str:
    """Return version, machine and date of a measurement."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    today = dt.datetime.now(dt.UTC).date()
    return (
        f"streamsel {streamsel.__version__}, {os.cpu_count()} cores of {model}, one thread, {today}"
    )

"""Demo data: docstrings of eight sub-packages of SciPy, and their n-grams as variables."""

from __future__ import annotations

import ast
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import diags_array

from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream, iter_ngrams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[str, int, int], None]

LIBRARY = "scipy"
PACKAGES = (
    "integrate",
    "interpolate",
    "linalg",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "stats",
)
MIN_WORDS = 20  # "Return the shape." could be from any sub-package
HELD_OUT = 0.3  # fraction of the source files of each sub-package

_IMPORTS = re.compile(r"^\W*(?:from\s+[\w.]+\s+import|import\s+\w).*$", re.MULTILINE)
_NAMES = re.compile(rf"\b(?:{'|'.join((LIBRARY, *PACKAGES))})\b(?:\.\w+)*", re.IGNORECASE)
_BLANK = "___"  # replaces a name


class Document(NamedTuple):
    """A docstring: its text, its sub-package, and the number of its source file."""

    text: str
    package: str
    file: int


def read_docstrings(*, every: int = 1, progress: Progress | None = None) -> list[Document]:
    """Read docstrings of modules, classes and functions from source files, without imports.

    Parameters
    ----------
    every
        Read only every `every`-th file of each sub-package.
    progress
        Called periodically with the stage, the amount done, and the total.

    Returns
    -------
    list of Document
        The distinct docstrings, without those of tests, very short ones, and those that occur in
        two sub-packages. Import lines are removed, and names of SciPy and its sub-packages masked.

    Raises
    ------
    OSError
        If the source files of SciPy are not installed.
    """
    root = _folder(LIBRARY)
    files = [
        (path, package)
        for package in PACKAGES
        for path in [
            path
            for path in sorted((root / package).rglob("*.py"))
            if not {"tests", "__pycache__"} & set(path.relative_to(root).parts)
        ][::every]
    ]
    found: dict[str, Document | None] = {}
    for number, (path, package) in enumerate(files):
        if progress is not None and number % 16 == 0:
            progress("reading source files", number, len(files))
        for docstring in _docstrings(_parse(path)):
            text = mask_cues(docstring)
            if len(text.split()) < MIN_WORDS:
                continue
            first = found.setdefault(text, Document(text, package, number))
            if first is not None and first.package != package:
                found[text] = None
    documents = [document for document in found.values() if document is not None]
    if {document.package for document in documents} != set(PACKAGES):
        raise OSError(
            f"Expected the source files of {LIBRARY}.{', '.join(PACKAGES)}. Got: no docstrings"
        )
    return documents


def mask_cues(docstring: str) -> str:
    """Remove trivial cues: import lines, and names of sub-packages with everything after a dot."""
    return _NAMES.sub(_BLANK, _IMPORTS.sub("", docstring))


def _folder(library: str) -> Path:
    """Return the directory of an installed library, without importing it."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise OSError(f"Expected {library} to be installed. Got: no such package")
    return Path(spec.origin).parent


def _parse(path: Path) -> ast.AST:
    """Parse a source file without warnings; one that this Python cannot parse counts as empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes
        try:
            return ast.parse(path.read_bytes())
        except SyntaxError:
            return ast.Module([], [])


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Yield the docstrings of a module and of all classes and functions in it.

    Only their bodies are visited, not every expression, which is four times as fast.
    """
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
        for child in node.body:
            yield from _docstrings(child)


def split(documents: list[Document], seed: int = 0) -> tuple[list[Document], list[Document]]:
    """Hold out the documents of some files of each sub-package, the same in every run."""
    rng = np.random.default_rng(seed)
    held_out: set[int] = set()
    for package in PACKAGES:
        files = np.unique([document.file for document in documents if document.package == package])
        held_out |= set(rng.permutation(files)[: round(HELD_OUT * files.size)].tolist())
    train = [document for document in documents if document.file not in held_out]
    return train, [document for document in documents if document.file in held_out]


_words = re.compile(r"\w\w+").findall


def iter_phrases(
    texts: Sequence[str], longest: int, vocabulary: Sequence[str] | None = None
) -> ColumnStream:
    """Stream n-grams of texts: 0 if absent, else 1 / √length of the text.

    The length of a text is its number of distinct words. Without this weight, long texts would have
    larger values than short ones.

    Parameters
    ----------
    texts
        One text per row.
    longest
        The length of the longest n-gram in words.
    vocabulary
        Stream only these n-grams.
    """
    words = np.array([len(set(_words(text.lower()))) for text in texts])
    weight = diags_array(1.0 / np.sqrt(np.maximum(words, 1)))
    counted = iter_ngrams(texts, n=(1, longest), binary=True, vocabulary=vocabulary)

    def blocks() -> Iterator[Block]:
        for block in counted.blocks():
            yield Block(block.names, (weight @ block.values).tocsc())

    return ColumnStream(blocks, n_rows=counted.n_rows, n_columns=counted.n_columns)

"""The documents: docstrings from the source files of eight sub-packages of SciPy."""

from __future__ import annotations

import ast
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
LEAST_WORDS = 20  # "Return the shape." could be from any sub-package
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
        Called from time to time with the stage, the amount done, and the total.

    Returns
    -------
    list of Document
        Without tests and very short docstrings; import lines are dropped, and the names of library
        and sub-packages are blanked; each text once, and none that two sub-packages share.

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
            text = masked(docstring)
            if len(text.split()) < LEAST_WORDS:
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


def masked(docstring: str) -> str:
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

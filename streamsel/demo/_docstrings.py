"""The documents: docstrings from the source files of numpy and scipy."""

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

LIBRARIES = ("numpy", "scipy")
HELD_OUT = 0.3  # of the source files

_NAMES = re.compile("|".join(LIBRARIES), re.IGNORECASE)
_UNNAMED = "somelibrary"  # what the documents say instead


class Document(NamedTuple):
    """A docstring: its text, the library it is from, the number of its source file."""

    text: str
    library: str
    file: int


def read_docstrings(*, every: int = 1, progress: Progress | None = None) -> list[Document]:
    """Read the docstrings of modules, classes and functions from the source files, importing none.

    Parameters
    ----------
    every
        Read every so many-th file only.
    progress
        Called now and then with what is being done, how much of it is done, and how much it is.

    Returns
    -------
    list of Document
        Without tests; the names of the libraries are replaced by one word; each text once, and none
        that both libraries have. Docstrings that are written in C, as `numpy.sin`'s, are not there.

    Raises
    ------
    OSError
        If the source files of numpy and scipy are not installed.
    """
    files = [
        (path, library)
        for library in LIBRARIES
        for path in sorted(_folder(library).rglob("*.py"))
        if not {"tests", "__pycache__"} & set(path.parts)
    ][::every]
    found: dict[str, Document | None] = {}
    for number, (path, library) in enumerate(files):
        if progress is not None and number % 16 == 0:
            progress("reading source files", number, len(files))
        for docstring in _docstrings(_parse(path)):
            text = _NAMES.sub(_UNNAMED, docstring)
            first = found.setdefault(text, Document(text, library, number))
            if first is not None and first.library != library:
                found[text] = None
    documents = [document for document in found.values() if document is not None]
    if {document.library for document in documents} != set(LIBRARIES):
        raise OSError(f"Expected the source files of {' and '.join(LIBRARIES)}. Got: no docstrings")
    return documents


def _folder(library: str) -> Path:
    """Return where a library is installed, without importing it."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise OSError(f"Expected {library} to be installed. Got: no such package")
    return Path(spec.origin).parent


def _parse(path: Path) -> ast.AST:
    """Parse a source file, in silence; one that this Python cannot read is as good as empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are their authors' business
        try:
            return ast.parse(path.read_bytes())
        except SyntaxError:
            return ast.Module([], [])


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Yield the docstrings of a module and of all classes and functions in it.

    Only the bodies of those are walked, not every expression, which is four times as fast.
    """
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
        for child in node.body:
            yield from _docstrings(child)


def split(documents: list[Document], seed: int = 0) -> tuple[list[Document], list[Document]]:
    """Hold out the documents of some files, the same in every run."""
    files = np.unique([document.file for document in documents])
    shuffled = np.random.default_rng(seed).permutation(files)
    held_out = set(shuffled[: round(HELD_OUT * files.size)].tolist())
    train = [document for document in documents if document.file not in held_out]
    return train, [document for document in documents if document.file in held_out]

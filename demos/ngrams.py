"""Which words, at which positions, distinguish five packages of Python's standard library?

The documents are the docstrings of these packages, read from their source files. One selector
learns three sources of variables, one after the other, in one pass each: all 1- to 3-grams, words
at exact positions, and pairs of words with one word between them.
"""

import ast
import sysconfig
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamsel import ProjSe
from streamsel.stream import iter_ngrams, iter_positions, iter_skipgrams

PACKAGES = ("asyncio", "email", "logging", "unittest", "xml")


def docstrings(package: str) -> list[str]:
    """Collect the docstrings of a package without importing it."""
    folder = Path(sysconfig.get_path("stdlib")) / package
    found = set()
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(ast.get_docstring(node) or "")
    return sorted(found - {""})


def matrix(documents: list[str], names: list) -> np.ndarray:
    """Return the values of the named variables in documents, from the source of each kind."""
    positions = [name for name in names if isinstance(name, tuple)]
    skipgrams = [name for name in names if isinstance(name, str) and " * " in name]
    ngrams = [name for name in names if isinstance(name, str) and " * " not in name]
    streams = (
        iter_ngrams(documents, vocabulary=ngrams),
        iter_positions(documents, vocabulary=positions),
        iter_skipgrams(documents, offsets=[2], vocabulary=skipgrams),
    )
    return np.hstack([block.values.toarray() for s in streams for block in s.blocks()])


def main() -> None:
    texts, labels = [], []
    for package in PACKAGES:
        found = docstrings(package)
        texts += found
        labels += [package] * len(found)
    order = np.random.default_rng(0).permutation(len(texts))
    cut = round(0.7 * len(texts))
    train, test = ([texts[i] for i in part] for part in (order[:cut], order[cut:]))
    y, y_test = ([labels[i] for i in part] for part in (order[:cut], order[cut:]))

    selector = ProjSe(k=40, max_candidates=400)
    selector.learn_target(y)
    selector.learn_columns(iter_ngrams(train, n=(1, 3)))
    selector.learn_columns(iter_positions(train, max_position=9))
    selector.learn_columns(iter_skipgrams(train, offsets=[2]))

    print(f"{selector.n_columns:,} variables of {len(train):,} docstrings, in one pass")
    print(f"the first selected, with their relevance (noise floor {selector.noise_floor():.2f}):")
    for name, relevance in list(selector.relevance.items())[:12]:
        print(f"  {relevance:.2f}  {name!r}")

    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    classifier.fit(matrix(train, selector.selected), y)
    accuracy = classifier.score(matrix(test, selector.selected), y_test)
    baseline = max(y_test.count(package) for package in PACKAGES) / len(y_test)
    n_selected, n_test = len(selector.selected), len(test)
    print(f"accuracy of {n_selected} variables on {n_test} other docstrings: {accuracy:.0%}")
    print(f"accuracy of always predicting the most frequent package: {baseline:.0%}")


if __name__ == "__main__":
    main()

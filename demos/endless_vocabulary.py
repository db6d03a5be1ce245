"""A stream of text whose vocabulary has no end, in memory that does.

The documents are the docstrings of five packages of Python's own library, each with twenty tokens
that never come back, as log lines have: addresses, dates, request numbers. Which package is a
docstring from? Three pipelines answer, then learn, row by row: one is given all words, one the
words hashed into 1,000 numbers, one the 100 words that ProjSe selects among at most 2,000 that it
watches. Their size is that of their pickle.
"""

import ast
import pickle
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from river import compose, feature_extraction, linear_model, optim, preprocessing

from streamsel import ProjSe

PACKAGES = ("asyncio", "email", "logging", "unittest", "xml")
N_MADE_UP, EVERY = 20, 200


def docstrings(package: str) -> list[str]:
    """Collect the docstrings of a package without importing it."""
    found = set()
    for path in sorted((Path(sysconfig.get_path("stdlib")) / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(ast.get_docstring(node) or "")
    return sorted(text for text in found if len(text.split()) > 5)


def stream() -> Iterator[tuple[str, str]]:
    documents = [(text, package) for package in PACKAGES for text in docstrings(package)]
    rng = np.random.default_rng(0)
    for i in rng.permutation(len(documents)).tolist():
        text, package = documents[i]
        made_up = rng.integers(1 << 40, size=N_MADE_UP).tolist()
        yield " ".join([text, *(f"id{number:x}" for number in made_up)]), package


def pipeline(*between: object) -> compose.Pipeline:
    words = feature_extraction.BagOfWords()
    return compose.Pipeline(words, *between, linear_model.SoftmaxRegression(optim.AdaGrad(0.3)))


def main() -> None:
    selector = ProjSe(k=100, max_features=2_000, grace_period=20)
    pipelines = {
        "all words": pipeline(),
        "1,000 hashed": pipeline(preprocessing.FeatureHasher(1_000, seed=1)),
        "100 selected": pipeline(selector),
    }
    print("share of the last 200 answers that were right, and size\n")
    print("   rows  names so far" + "".join(f"{name:>22}" for name in pipelines))
    seen: set[str] = set()
    right = dict.fromkeys(pipelines, 0)
    words = feature_extraction.BagOfWords()
    for row, (text, package) in enumerate(stream(), 1):
        seen.update(words.transform_one(text))
        for name, model in pipelines.items():
            right[name] += model.predict_one(text) == package
            model.learn_one(text, package)
        if row % EVERY == 0:
            cells = (
                f"{right[name] / EVERY:>12.0%} {len(pickle.dumps(model)) / 1e6:>6.2f} MB"
                for name, model in pipelines.items()
            )
            print(f"  {row:>5,}  {len(seen):>12,}" + "".join(cells))
            right = dict.fromkeys(pipelines, 0)
    print(
        f"\n{selector.max_features:,} names at most are watched, each for {selector.grace_period} "
        "rows at least. Selected first:\n  " + ", ".join(map(str, selector.selected[:12]))
    )
    print(
        "\nAll words do best, and grow with every row. Of two that do not grow, the one that\n"
        "chooses its words is right far more often than the one that mixes them all."
    )


if __name__ == "__main__":
    main()

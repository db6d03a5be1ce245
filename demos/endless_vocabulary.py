"""A stream of text whose vocabulary grows without bound, in bounded memory.

The documents are the docstrings of five packages of Python's standard library. Twenty random tokens
are appended to each document and never occur again, like the addresses and request numbers of log
lines. The target is the package that a docstring is from.

Three pipelines predict each document first and learn it then. The first has all words as features.
The second hashes the words into 1,000 numbers. The third selects 100 words by ProjSe, which tracks
at most 2,000. The size of a pipeline is that of its pickle.
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
N_RANDOM_TOKENS, REPORT_EVERY = 20, 200


def docstrings(package: str) -> list[str]:
    """Collect the docstrings of a package without importing it."""
    found = set()
    for path in sorted((Path(sysconfig.get_path("stdlib")) / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(ast.get_docstring(node) or "")
    return sorted(text for text in found if len(text.split()) > 5)


def stream() -> Iterator[tuple[str, str]]:
    """Yield the documents in random order, with random tokens, and their packages."""
    documents = [(text, package) for package in PACKAGES for text in docstrings(package)]
    rng = np.random.default_rng(0)
    for i in rng.permutation(len(documents)).tolist():
        text, package = documents[i]
        numbers = rng.integers(1 << 40, size=N_RANDOM_TOKENS).tolist()
        yield " ".join([text, *(f"id{number:x}" for number in numbers)]), package


def classifier(*transformers: object) -> compose.Pipeline:
    words = feature_extraction.BagOfWords()
    softmax = linear_model.SoftmaxRegression(optim.AdaGrad(0.3))
    return compose.Pipeline(words, *transformers, softmax)


def main() -> None:
    selector = ProjSe(k=100, max_features=2_000, grace_period=20)
    pipelines = {
        "all words": classifier(),
        "1,000 hashed": classifier(preprocessing.FeatureHasher(1_000, seed=1)),
        "100 selected": classifier(selector),
    }
    print(f"accuracy of the last {REPORT_EVERY} predictions, and size of the pipeline\n")
    print("   rows    words seen" + "".join(f"{name:>22}" for name in pipelines))
    seen: set[str] = set()
    n_correct = dict.fromkeys(pipelines, 0)
    words = feature_extraction.BagOfWords()
    for row, (text, package) in enumerate(stream(), 1):
        seen.update(words.transform_one(text))
        for name, model in pipelines.items():
            n_correct[name] += model.predict_one(text) == package
            model.learn_one(text, package)
        if row % REPORT_EVERY == 0:
            cells = (
                f"{n_correct[name] / REPORT_EVERY:>12.0%} {len(pickle.dumps(model)) / 1e6:>6.2f} MB"
                for name, model in pipelines.items()
            )
            print(f"  {row:>5,}  {len(seen):>12,}" + "".join(cells))
            n_correct = dict.fromkeys(pipelines, 0)
    print(
        f"\nAt most {selector.max_features:,} words are tracked, each for at least "
        f"{selector.grace_period} rows. Selected first:\n  "
        + ", ".join(map(str, selector.selected[:12]))
    )
    print(
        "\nThe pipeline of all words is the most accurate, and grows with every row. Of the two\n"
        "of bounded size, the one that selects words is far more accurate than the hashed one."
    )


if __name__ == "__main__":
    main()

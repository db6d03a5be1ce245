"""Refuse words that this project replaces by the field's own, in code, documents and messages.

Run from the root: `python .ci/vocabulary.py [FILE...]`. CONTRIBUTING.md has the words to use.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

# (pattern, what to write instead). Patterns match words of prose, in any case.
PROSE = [
    (r"(?<!file )(?<!dead)\breadings\b", "passes"),
    (r"\b(?:a|the|first|second|next|last|another|further|each|every|one) reading\b(?! of)", "pass"),
    (r"\bread(?:s|ing)? (?:\w+ )?again\b", "second pass, multi-pass"),
    (r"\bheld\b(?![- ]out)", "state; tracked, kept"),
    (r"\bl(?:et|ets|etting) go\b", "discard, evict"),
    (r"(?<!decimal )\bplaces\b", "indices"),
    (r"\bslots?\b", "index"),
    (r"\bst(?:ands?|anding|ood)\b(?!-alone)", "is in use, is"),
    (r"\bcalm(?:er|ly|ness)?\b", "refresh"),
    (r"\brenew(?:s|ed|al|als|ing)?\b", "refresh"),
    (r"\bslack\b", "hysteresis; error bound"),
    (r"(?<!progress )(?<!error )(?<!horizontal )(?<!colour )\bbars?\b(?! chart)", "threshold"),
    (r"(?<!noise )(?<!noise-)\bfloors?\b", "threshold"),
    (r"(?<!copyright )\bholders?\b", "incumbent"),
    (r"\bceilings?\b", "upper bound"),
    (r"\bdoors?\b", "input validation, reader"),
    (r"\brewind(?:s|ing)?\b|\brewound\b", "rollback"),
    (r"\bbesides?\b", "alongside, compared with, metadata"),
    (r"(?<!grace )\bperiods?\b", "aligned window"),
    (r"(?<!probability )(?<!body )\bmass(?:es|ed)?\b(?! spec)", "weight"),
    (r"\binflow\b", "buffer"),
    (r"\bdummies\b|\bdummy\b(?! variables?)", "random probes"),
    (r"\bby lot\b", "at random"),
    (r"\balarms?\b", "warning"),
    (r"\b(?:told|tells|tell)\b(?! apart)", "reports, shows, is informative about"),
    (r"\b(?:says|said)\b", "states, shows"),
    (r"\basks\b", "requires"),
    (r"\bknows\b", "has, is aware of"),
    (r"\bwho(?:ever|m|mever)\b|\b(?:no|some|any)body\b", "the column that, no column; the caller"),
    (
        r"(?<!users )(?<!user )(?<!people )(?<!those )(?<!readers )(?<!reader )(?<!anyone )\bwho\b",
        "that",
    ),
    (r"\bthe chosen\b(?= (?:ones|are|were|and|,))|\bthe chosen[.,;:]", "selected variables"),
    (r"\banew\b", "again"),
    (r"\balike\b", "similar"),
    (r"\bwhence\b", "from where"),
    (r"\bof which\b", "whose"),
    (r"\bat (?:its|their) worth\b", "weighted by"),
]
# Words in the names of functions, classes, attributes and parameters.
NAMES = [
    (r"(?:^|_)(?:beside|besides)(?:_|$)", "auxiliary, row_metadata, by sense"),
    (r"(?:^|_)(?:dummies|dummy)(?:_|$)", "probes"),
    (r"(?:^|_)(?:slots?|places?)(?:_|$)", "indices, index_of"),
    (r"(?:^|_)(?:standing|stands|stand|stood)(?:_|$)", "in_use"),
    (r"(?:^|_)(?:calm|calmly|renewal|renew|renewed)(?:_|$)", "refresh"),
    (r"(?:^|_)(?:holders?|ceiling|door|rewind|inflow|alarms?)(?:_|$)", "see CONTRIBUTING.md"),
    (r"(?:^|_)(?:told|tells|says|said|knows|asks)(?:_|$)", "reported, requested, known"),
    (r"(?:^|_)(?:lets?_go|let_go|by_lot|anew|alike|whoever|nobody)(?:_|$)", "discard, similar"),
]

# Legitimate uses: (end of a path, text of the line).
ALLOWED = [
    ("base/learner.py", "that can be read again"),
    ("benchmarks.md", "bars are as long as"),
    ("demo/text_report.py", "of which {added} added"),
    ("evaluate/_models.py", '"dummy"'),
    ("evidence/extractors.md", "calm, happy"),
    ("papers/private_features.py", "calm"),
    ("papers/series_features.py", "dummy"),
    ("evaluate/stability.py", r"\bar k"),
    ("extraction/_gram.py", '"held": "Gram matrix"'),
    ("plot/_loadings.py", "Bar plot"),
    ("plot/_manhattan.py", "floor"),
    ("plot/_scree.py", "floor of single columns"),
    ("plot/_stability.py", "Bar plot"),
    ("reporting/document.py", "drawn as a bar"),
    ("reporting/html.py", "bar"),
    ("reporting/page.py", '"floor."'),
    ("reporting/summary.py", "floor"),
    ("reporting/tables.py", "on a bar is the noise floor"),
    ("stream/_numerals.py", "__slots__"),
    ("targets/encoding.py", "slots"),
]

Found = tuple[int, str, str]


def prose_of_python(text: str) -> list[tuple[int, str]]:
    """Return the comments and strings of a module, with their lines."""
    kinds = (tokenize.STRING, tokenize.COMMENT)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        (token.start[0] + i, line)
        for token in tokens
        if token.type in kinds
        for i, line in enumerate(token.string.split("\n"))
        if not line.lstrip().startswith((">>>", "..."))
    ]


def docstrings_and_comments(text: str) -> list[tuple[int, str]]:
    """Return the docstrings and comments of a module, with their lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.walk(ast.parse(text))
    first = [node.body[0] for node in tree if isinstance(node, documented) and node.body]
    lines = {
        line
        for statement in first
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        for line in range(statement.lineno, (statement.end_lineno or 0) + 1)
    }
    return [
        (number, line)
        for number, line in prose_of_python(text)
        if number in lines or line.startswith("#")
    ]


def names_of_python(text: str) -> list[tuple[int, str]]:
    """Return the names in a module, with their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.NAME]


def prose_of_markdown(text: str) -> list[tuple[int, str]]:
    """Return the lines of a document outside of blocks of code."""
    lines, in_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        elif not in_code:
            lines.append((number, line))
    return lines


def search(lines: list[tuple[int, str]], rules: list[tuple[str, str]], path: str) -> list[Found]:
    """Return the lines that have a word of the rules, the word, and what to write."""
    compiled = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rules]
    found = []
    before = ""
    for number, line in lines:
        # Names in backticks are those of the code.
        plain = re.sub(r"\\bar\b|`[^`]*`|\$[^$]*\$|\]\([^)]*\)|https?://\S+", "", line)
        # The last word of the line before is context, as in "noise" and "floor".
        context, before = before, f"{plain.split()[-1]} " if plain.split() else ""
        if any(path.endswith(end) and text in line for end, text in ALLOWED):
            continue
        plain = context + plain.lstrip()
        for pattern, instead in compiled:
            match = pattern.search(plain, len(context))
            if match:
                found.append((number, match.group(), instead))
    return found


def check(path: Path) -> list[Found]:
    """Return what is to be replaced in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return search(prose_of_markdown(text), PROSE, path.as_posix())
    if "tests" in path.parts:
        # The data of tests are not prose.
        return search(docstrings_and_comments(text), PROSE, path.as_posix())
    return search(prose_of_python(text), PROSE, path.as_posix()) + search(
        names_of_python(text), NAMES, path.as_posix()
    )


def main(given: list[str]) -> int:
    """Print what is to be replaced in the files given, or in all; return how much that is."""
    root = Path(__file__).resolve().parent.parent
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    modules = [
        path for part in ("streamsel", "demos", "tests") for path in (root / part).rglob("*.py")
    ]
    paths = [Path(name) for name in given] or sorted([*modules, *documents])
    n_found = 0
    for path in paths:
        for number, word, instead in sorted(check(path)):
            print(f"{path}:{number}: {word!r}: write {instead}")
            n_found += 1
    return n_found


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))

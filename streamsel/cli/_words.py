"""Explanations of the terms in results, one sentence each; the docs' glossary has more."""

from __future__ import annotations

OF_COLUMNS = {
    "relevance": "how much of the target a variable explains by itself, from 0 to 1",
    "score": "the value of the selection criterion, which depends on the method",
    "round": "how often the target had been explained in full and the selection restarted, from 0",
    "certified": "proven to equal the selection over all columns at once",
}
OF_RESULTS = {
    "noise floor": "the relevance that the best of as many columns of pure noise exceeds in 5 % of "
    "cases; relevance below it may be due to chance",
}
OF_COMPONENTS = {
    "relevance": "how much of the target a component explains by itself, from 0 to 1",
    "loading": "the weight of a variable in a component, times the standard deviation of the "
    "variable",
}
WORDS = {"selector": {**OF_COLUMNS, **OF_RESULTS}, "extractor": {**OF_COMPONENTS, **OF_RESULTS}}


def meaning(columns: list[str], known: dict[str, str]) -> str:
    """Return a line that explains some columns of a table."""
    explained = [f"{name}: {known[name]}" for name in columns if name in known]
    return "; ".join(explained) + "." if explained else ""

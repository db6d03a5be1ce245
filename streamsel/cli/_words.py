"""The words that results are told in, each in a sentence; the glossary of the docs has more."""

from __future__ import annotations

OF_COLUMNS = {
    "relevance": "how much of the target a variable explains by itself, from 0 to 1",
    "score": "what decided the pick, as the method defines it",
    "round": "0, and one more each time the target was explained in full and the selection began "
    "again",
    "certified": "proven to be the pick of a search over all columns at once",
}
OF_RESULTS = {
    "noise floor": "the relevance that the best of as many columns of pure noise exceeds in 5 % of "
    "cases; what lies below may be chance",
}
OF_COMPONENTS = {
    "relevance": "how much of the target a component explains by itself, from 0 to 1",
    "loading": "the weight of a variable in a component, times the standard deviation of the "
    "variable",
}
WORDS = {"selector": {**OF_COLUMNS, **OF_RESULTS}, "extractor": {**OF_COMPONENTS, **OF_RESULTS}}


def meaning(columns: list[str], known: dict[str, str]) -> str:
    """Say in a line what some columns of a table mean."""
    told = [f"{name}: {known[name]}" for name in columns if name in known]
    return "; ".join(told) + "." if told else ""

"""Explanations of the terms in results, one sentence each; the docs' glossary has more."""

from __future__ import annotations

SELECTION_TERMS = {
    "relevance": "how much of the target a variable explains by itself, from 0 to 1",
    "score": "the value of the selection criterion, which depends on the method",
    "round": "number of earlier restarts: a selection restarts if the target is explained in full; "
    "for Lasso, the index of the solution on the path in which the variable enters",
    "direction": "the sign of the correlation with the target, given the covariates; for classes "
    "the class in which the variable is higher or lower",
    "redundancy": "the largest correlation with another selected variable, by absolute value",
    "certified": "proven to equal the selection over all columns at once",
    "members": "the number of columns of a group, such as the indicators of a column of text",
    "effect": "the slope of the target on a variable, given the covariates; with two classes, "
    "the first in sorted order is 0 and the second 1",
}
RESULT_TERMS = {
    "noise floor": "the relevance that the best column exceeds in 5 % of cases if all are noise; "
    "a relevance below it may be due to chance",
}
COMPONENT_TERMS = {
    "relevance": "how much of the target a component explains by itself, from 0 to 1",
    "loading": "the weight of a variable in a component, times the standard deviation of the "
    "variable",
}
TERMS = {
    "selector": {**SELECTION_TERMS, **RESULT_TERMS},
    "extractor": {**COMPONENT_TERMS, **RESULT_TERMS},
}


def explain_columns(columns: list[str], known: dict[str, str]) -> str:
    """Return a line that explains some columns of a table."""
    explained = [f"{name}: {known[name]}" for name in columns if name in known]
    return "; ".join(explained) + "." if explained else ""


_OF_PAGES = {
    "loading": COMPONENT_TERMS["loading"],
    "arrival": "the index of a column in the stream, from 0",
    "similar variables": "other tracked variables whose correlation with a selected one is 0.8 or "
    "more: one of these might be selected on another sample of rows",
}
# Term -> its definition, a sentence without full stop.
GLOSSARY = SELECTION_TERMS | RESULT_TERMS | _OF_PAGES

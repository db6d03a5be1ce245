"""All features of series, and their names: `name__parameter_value`, as tsfresh writes them.

A feature is an entry of one of the tables, a formula in `tests/reference/series.py`, and a line in
`docs/pages/time_series.md`: the tests fail without the last two. A feature with a name of tsfresh
has the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from streamsel._utils.text import close_spellings
from streamsel.params import ChoiceRule, FloatRule
from streamsel.stream._series_batch import Parameters, Rule
from streamsel.stream._series_dynamics import DYNAMIC_FEATURES
from streamsel.stream._series_spectrum import SPECTRAL_FEATURES
from streamsel.stream._series_values import VALUE_FEATURES

FEATURES = VALUE_FEATURES | DYNAMIC_FEATURES | SPECTRAL_FEATURES


class FeatureRequest(NamedTuple):
    """A feature of the series of one value column.

    Parameters
    ----------
    column
        Index of the value column.
    feature
        Name in `FEATURES`.
    parameters
        Its parameters.
    """

    column: int
    feature: str
    parameters: Parameters


def feature_name(column: str, feature: str, parameters: Parameters) -> str:
    """Return the name of a feature of a value column."""
    quoted = {
        name: f'"{value}"' if isinstance(value, str) else value
        for name, value in parameters.items()
    }
    return "__".join([column, feature, *(f"{name}_{value}" for name, value in quoted.items())])


def default_requests(columns: Sequence[str]) -> Iterator[tuple[str, FeatureRequest]]:
    """Yield the names and the features that are streamed by default."""
    for j, column in enumerate(columns):
        for name, feature in FEATURES.items():
            for parameters in feature.defaults:
                yield feature_name(column, name, parameters), FeatureRequest(j, name, parameters)


def parse_request(name: str, columns: Sequence[str]) -> FeatureRequest:
    """Return the feature of this name; its parameters may be others than the defaults.

    Raises
    ------
    ValueError
        If no feature of a value column has this name.
    """
    for j, column in enumerate(columns):
        if name.startswith(f"{column}__"):
            feature, *texts = name[len(column) + 2 :].split("__")
            if feature in FEATURES:
                rules = FEATURES[feature].rules
                with suppress(ValueError):
                    pairs = zip(texts, rules.items(), strict=True)
                    found = {key: _read(text, key, rule) for text, (key, rule) in pairs}
                    return FeatureRequest(j, feature, found)
    raise ValueError(
        f"Expected features to be names of features of the series. Got: {name!r}.\n"
        f"Hint: {_hint(name, columns)}"
    )


def _read(text: str, key: str, rule: Rule) -> Any:
    """Return the value of a parameter, whose text is that of `feature_name`."""
    title, value = f"{key}_", text[len(key) + 1 :]
    if not text.startswith(title):
        raise ValueError(text)
    if isinstance(rule, ChoiceRule):
        found: Any = value[1:-1]
        value = value.strip('"')
    elif isinstance(rule, FloatRule) and value.lstrip("-").isdigit():
        found = int(value)
    else:
        found = rule.read(value)
    if not rule.admits(found) or str(found) != value:
        raise ValueError(text)
    return found


def _hint(name: str, columns: Sequence[str]) -> str:
    known = [title for title, _ in default_requests(columns[:20])]
    if close := close_spellings(name, known):
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    shown = ", ".join(map(repr, columns[:5])) + (", ..." if len(columns) > 5 else "")
    return (
        f"a name is column__feature__parameter_value, such as {known[0]!r}; the value columns are "
        f"{shown}."
    )

"""The glossary of a report: the terms of the command's results, and of the report alone."""

from __future__ import annotations

from streamsel.cli._words import OF_COLUMNS, OF_COMPONENTS, OF_RESULTS

_OF_PAGES = {
    "loading": OF_COMPONENTS["loading"],
    "arrival": "the index of a column in the stream, from 0",
    "similar variables": "other tracked variables whose correlation with a selected one is 0.8 or "
    "more: on another sample of rows one of these might be selected",
}
# Term -> its definition, a sentence without full stop.
GLOSSARY = OF_COLUMNS | OF_RESULTS | _OF_PAGES

"""The words of a page: those of the command's results, and what only a page tells."""

from __future__ import annotations

from streamsel.cli._words import OF_COLUMNS, OF_COMPONENTS, OF_RESULTS

_OF_PAGES = {
    "loading": OF_COMPONENTS["loading"],
    "arrival": "the place of a column in the stream, counted from 0",
    "could as well have been": "other variables held that say nearly the same as a chosen one, "
    "with their correlation, where that is 0.8 or more: another sample of rows might choose these",
}
# Word -> what it means, in a sentence without a full stop.
GLOSSARY = OF_COLUMNS | OF_RESULTS | _OF_PAGES

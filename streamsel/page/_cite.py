"""BibTeX of a method and of streamsel, from the references in the method's docstring."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Iterator

from streamsel import __version__, catalogue

_REFERENCE = re.compile(r"(?P<authors>.+?) \((?P<year>\d{4})\)\. (?P<title>.+?[.?]) (?P<venue>.+)")
_AUTHOR = re.compile(r"[^,]+, [A-Z]\.(?:[ -]*[A-Z]\.)*")
_JOURNAL = re.compile(
    r"(?P<journal>\D+?) (?P<volume>\d+)(?:\((?P<number>\d+)\))?(?:, (?P<pages>[\d-]+))?"
)


def bibtex(learner: str) -> str:
    """Return the BibTeX entries of a method's first reference, and of streamsel.

    Parameters
    ----------
    learner
        Its name in the catalogue; for other names there is only the entry of streamsel.
    """
    known = learner in catalogue.names()
    entries = [entry(text) for text in list(references(learner))[:1]] if known else []
    title = "streamsel: select and build features from a stream of columns"
    fields = {"author": "{The streamsel developers}", "title": f"{{{title}}}"}
    return "\n\n".join(
        [*entries, _written("software", "streamsel", fields | {"version": __version__})]
    )


def references(learner: str) -> Iterator[str]:
    """Yield the references of a learner, each as one line."""
    doc = inspect.getdoc(catalogue.fetch(learner)) or ""  # Python -OO has none
    found = re.search(r"^References\n-+\n(.*?)(?=^\w+\n---|\Z)", doc, re.DOTALL | re.MULTILINE)
    for text in re.split(r"^\[\^\d+\]:", found[1] if found else "", flags=re.MULTILINE)[1:]:
        yield " ".join(text.split())


def entry(reference: str) -> str:
    """Return the BibTeX of a reference such as `Name, I. (1999). Title. Journal 9, 1-2.`."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        return _written("misc", "method", {"note": reference})
    authors = _AUTHOR.findall(found["authors"].replace(" and ", ", "))
    names = [name.removeprefix(",").strip() for name in authors]
    if found["authors"].endswith("et al."):
        names.append("others")
    title, venue = found["title"].removesuffix("."), found["venue"].removesuffix(".")
    key, fields = _key(names[0], found["year"]), {"author": " and ".join(names)}
    # A title may have several sentences, the name of a journal has one.
    subtitle, _, last = venue.rpartition(". ")
    journal = _JOURNAL.fullmatch(last)
    if journal is None:
        further_fields = {"title": f"{{{title}}}", "year": found["year"], "howpublished": venue}
        return _written("misc", key, fields | further_fields)
    fields |= {
        "title": f"{{{f'{title}. {subtitle}' if subtitle else title}}}",
        "year": found["year"],
    }
    further_fields = {name: value for name, value in journal.groupdict().items() if value}
    if "pages" in further_fields:
        further_fields["pages"] = further_fields["pages"].replace("-", "--")
    return _written("article", key, fields | further_fields)


def _key(author: str, year: str) -> str:
    """Return the key of an entry: the author in unaccented letters, and the year."""
    last = unicodedata.normalize("NFKD", author.partition(",")[0])
    return "".join(c for c in last if c.isascii() and c.isalpha()).lower() + year


def _written(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [
        f"  {name} = {{{value.replace('&', chr(92) + '&')}}}," for name, value in fields.items()
    ]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])

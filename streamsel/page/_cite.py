"""How to cite a method and streamsel: BibTeX, made of the references of the method's docstring."""

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
    """Return the entries of what a learner is from, and of streamsel.

    Parameters
    ----------
    learner
        Its name in the catalogue; of others streamsel alone is told.
    """
    known = learner in catalogue.names()
    entries = [entry(told) for told in list(references(learner))[:1]] if known else []
    title = "streamsel: select and build features from a stream of columns"
    fields = {"author": "{The streamsel developers}", "title": f"{{{title}}}"}
    return "\n\n".join(
        [*entries, _written("software", "streamsel", fields | {"version": __version__})]
    )


def references(learner: str) -> Iterator[str]:
    """Yield the references of a learner, each as a line of text."""
    doc = inspect.getdoc(catalogue.fetch(learner)) or ""  # Python -OO has none
    found = re.search(r"^References\n-+\n(.*?)(?=^\w+\n---|\Z)", doc, re.DOTALL | re.MULTILINE)
    for told in re.split(r"^\[\^\d+\]:", found[1] if found else "", flags=re.MULTILINE)[1:]:
        yield " ".join(told.split())


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
    # A title may be of two sentences, a journal is not.
    further, _, last = venue.rpartition(". ")
    journal = _JOURNAL.fullmatch(last)
    if journal is None:
        told = {"title": f"{{{title}}}", "year": found["year"], "howpublished": venue}
        return _written("misc", key, fields | told)
    fields |= {"title": f"{{{f'{title}. {further}' if further else title}}}", "year": found["year"]}
    told = {name: value for name, value in journal.groupdict().items() if value}
    if "pages" in told:
        told["pages"] = told["pages"].replace("-", "--")
    return _written("article", key, fields | told)


def _key(author: str, year: str) -> str:
    """Return what an entry is called: letters without accents, and the year."""
    last = unicodedata.normalize("NFKD", author.partition(",")[0])
    return "".join(c for c in last if c.isascii() and c.isalpha()).lower() + year


def _written(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [
        f"  {name} = {{{value.replace('&', chr(92) + '&')}}}," for name, value in fields.items()
    ]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])

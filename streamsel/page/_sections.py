"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamsel import catalogue
from streamsel.escape import shown
from streamsel.learner.report import Report
from streamsel.page._blocks import Content, Fold, Name, Section, Text
from streamsel.page._blocks import Facts as Pairs
from streamsel.page._chosen import chosen, loadings
from streamsel.page._glossary import GLOSSARY
from streamsel.page._left_out import left_out
from streamsel.page._made import cited, files_of, made, of_kind
from streamsel.page._verdict import is_certificate_needed, short, verdict


def is_complete(notes: Mapping[str, Any]) -> bool:
    """Whether a model has learnt all its columns, unless the metadata deny it."""
    return notes.get("complete") is not False


def alarms(report: Report, notes: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of run and method, each with `code` and `text`."""
    found = [
        {"code": str(one.get("code", "")), "text": str(one["text"])}
        for one in of_kind(notes, "alarms", list, tuple) or ()
        if isinstance(one, Mapping) and "text" in one
    ]
    known = {one["code"] for one in found}
    found += [each._asdict() for each in report.warnings if each.code not in known]
    if caution := report.facts.get("caution"):
        found.append({"code": "caution", "text": str(caution)})
    return found


def sentence(text: str) -> str:
    """Return text as a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def content(report: Report, notes: Mapping[str, Any], pictures: Sequence[Section] = ()) -> Content:
    """Return the content of a report.

    Parameters
    ----------
    report
        The results.
    notes
        Metadata of the model file.
    pictures
        Plots, each a section.
    """
    summary = verdict(report, complete=is_complete(notes))
    sections = []
    if found := alarms(report, notes):
        texts = tuple(Text((sentence(shown(one["text"])),)) for one in found)
        sections.append(Section("Warnings", texts, is_wide=True, is_alarm=True))
    title = "Selected variables" if report.kind == "selected" else "Components"
    where = "see streamsel info MODEL --json"
    sections.append(Section(title, (*chosen(report, where), *loadings(report)), is_wide=True))
    sections += pictures
    definitions = Pairs([(term, sentence(text)) for term, text in GLOSSARY.items()])
    if blocks := left_out(report, notes):
        sections.append(Section("Excluded columns", blocks))
    sections += [
        Section("Provenance", made(report, notes)),
        Section("How to cite", cited(report)),
        Section("Glossary", (Fold("Definitions", (definitions,)),), is_wide=True),
    ]
    return Content(
        f"{report.learner}: {_in_short(report)}",
        _kicker(report, notes),
        summary,
        _keys(report),
        tuple(sections),
    )


def _in_short(report: Report) -> str:
    what = "variables" if report.kind == "selected" else "components"
    return f"{len(report.found):,} {what} of {report.columns_seen:,}"


def _kicker(report: Report, notes: Mapping[str, Any]) -> str:
    """Return the method and its data, in one line."""
    titles = {known.name: known.title for known in catalogue.LEARNERS}
    text = report.learner
    if report.learner in titles:
        text += f", {titles[report.learner]}"
    files, targets = files_of(notes), of_kind(notes, "target", list) or []
    if files:
        text += f" · {Name(files[0]).text}" + (f" and {len(files) - 1:,} more" * (len(files) > 1))
    if targets:
        text += f" → {', '.join(Name(target).text for target in targets[:3])}"
        text += ", …" * (len(targets) > 3)
    return text


def _keys(report: Report) -> list[tuple[str, str]]:
    """Return the key figures."""
    what = "selected" if report.kind == "selected" else "components"
    keys = [("columns seen", f"{report.columns_seen:,}"), ("rows", f"{report.rows:,}")]
    keys.append((what, f"{len(report.found):,}"))
    if report.noise_floor is not None:
        keys.append(("noise floor", short(report.noise_floor)))
    if is_certificate_needed(report) and report.found:
        keys.append(("certified", f"{report.facts['n_certified']:,}"))
    if (variance := report.facts.get("share_of_variance")) is not None:
        keys.append(("variance explained", f"{variance:.0%}"))
    return keys

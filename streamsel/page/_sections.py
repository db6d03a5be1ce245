"""What the page says, section by section."""

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
    """Whether a model has learnt all its columns, as far as anybody has noted otherwise."""
    return notes.get("complete") is not False


def alarms(report: Report, notes: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what should make one doubt, each with `code` and `text`: of the run, of the method."""
    told = [
        {"code": str(one.get("code", "")), "text": str(one["text"])}
        for one in of_kind(notes, "alarms", list, tuple) or ()
        if isinstance(one, Mapping) and "text" in one
    ]
    known = {one["code"] for one in told}
    told += [each._asdict() for each in report.warnings if each.code not in known]
    if caution := report.facts.get("caution"):
        told.append({"code": "caution", "text": str(caution)})
    return told


def sentence(text: str) -> str:
    """Return a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def content(report: Report, notes: Mapping[str, Any], pictures: Sequence[Section] = ()) -> Content:
    """Return all that a page says.

    Parameters
    ----------
    report
        What was found.
    notes
        What was noted beside the model.
    pictures
        Drawn already, each a section.
    """
    said = verdict(report, complete=is_complete(notes))
    sections = []
    if told := alarms(report, notes):
        texts = tuple(Text((sentence(shown(one["text"])),)) for one in told)
        sections.append(Section("To be looked into", texts, is_wide=True, is_alarm=True))
    what = "The chosen" if report.kind == "selected" else "The components"
    where = "streamsel info MODEL --json tells all"
    sections.append(Section(what, (*chosen(report, where), *loadings(report)), is_wide=True))
    sections += pictures
    words = Pairs([(word, sentence(means)) for word, means in GLOSSARY.items()])
    if blocks := left_out(report, notes):
        sections.append(Section("What was left out, and why", blocks))
    sections += [
        Section("How it was made", made(report, notes)),
        Section("How to cite", cited(report)),
        Section("Words", (Fold("What the words mean", (words,)),), is_wide=True),
    ]
    return Content(
        f"{report.learner}: {_in_short(report)}",
        _kicker(report, notes),
        said,
        _keys(report),
        tuple(sections),
    )


def _in_short(report: Report) -> str:
    what = "variables" if report.kind == "selected" else "components"
    return f"{len(report.found):,} {what} of {report.columns_seen:,}"


def _kicker(report: Report, notes: Mapping[str, Any]) -> str:
    """Say in a line which method this is, and of which data."""
    titles = {known.name: known.title for known in catalogue.LEARNERS}
    said = report.learner
    if report.learner in titles:
        said += f", {titles[report.learner]}"
    files, targets = files_of(notes), of_kind(notes, "target", list) or []
    if files:
        said += f" · {Name(files[0]).text}" + (f" and {len(files) - 1:,} more" * (len(files) > 1))
    if targets:
        said += f" → {', '.join(Name(target).text for target in targets[:3])}"
        said += ", …" * (len(targets) > 3)
    return said


def _keys(report: Report) -> list[tuple[str, str]]:
    """Return the numbers that matter."""
    what = "chosen" if report.kind == "selected" else "components"
    keys = [("columns seen", f"{report.columns_seen:,}"), ("rows", f"{report.rows:,}")]
    keys.append((what, f"{len(report.found):,}"))
    if report.noise_floor is not None:
        keys.append(("noise floor", short(report.noise_floor)))
    if is_certificate_needed(report) and report.found:
        keys.append(("certified", f"{report.facts['n_certified']:,}"))
    if (variance := report.facts.get("share_of_variance")) is not None:
        keys.append(("of the variance", f"{variance:.0%}"))
    return keys

"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamsel import registry
from streamsel._utils.text import printable
from streamsel.base.report import Report
from streamsel.reporting.document import DefinitionList as Pairs
from streamsel.reporting.document import (
    Details,
    DocumentSection,
    NameText,
    Paragraph,
    ReportDocument,
)
from streamsel.reporting.glossary import GLOSSARY
from streamsel.reporting.provenance import (
    citation_section,
    metadata_value,
    provenance_section,
    source_files,
)
from streamsel.reporting.summary import is_certificate_needed, relevance_text, summarize
from streamsel.reporting.tables import (
    exclusion_table,
    loadings_section,
    markers_section,
    results_table,
)


def is_complete(metadata: Mapping[str, Any]) -> bool:
    """Whether a model has learnt all its columns, unless the metadata deny it."""
    return metadata.get("complete") is not False


def all_warnings(report: Report, metadata: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of run and method, each with `code` and `text`."""
    found = [
        {"code": str(one.get("code", "")), "text": str(one["text"])}
        for one in metadata_value(metadata, "warnings", list, tuple) or ()
        if isinstance(one, Mapping) and "text" in one
    ]
    known = {one["code"] for one in found}
    found += [each._asdict() for each in report.warnings if each.code not in known]
    if caution := report.details.get("caution"):
        found.append({"code": "caution", "text": str(caution)})
    return found


def as_sentence(text: str) -> str:
    """Return text as a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def build_document(
    report: Report, metadata: Mapping[str, Any], pictures: Sequence[DocumentSection] = ()
) -> ReportDocument:
    """Return the content of a report.

    Parameters
    ----------
    report
        The results.
    metadata
        Metadata of the model file.
    pictures
        Plots, each a section.
    """
    summary = summarize(report, complete=is_complete(metadata))
    sections = []
    if found := all_warnings(report, metadata):
        texts = tuple(Paragraph((as_sentence(printable(one["text"])),)) for one in found)
        sections.append(DocumentSection("Warnings", texts, is_wide=True, is_warning=True))
    title = "Selected variables" if report.kind == "selected" else "Components"
    where = "see streamsel info MODEL --json"
    tables = (
        *results_table(report, where),
        *loadings_section(report),
        *markers_section(report),
    )
    sections.append(DocumentSection(title, tables, is_wide=True))
    sections += pictures
    definitions = Pairs([(term, as_sentence(text)) for term, text in GLOSSARY.items()])
    if blocks := exclusion_table(report, metadata):
        sections.append(DocumentSection("Excluded columns", blocks))
    sections += [
        DocumentSection("Provenance", provenance_section(report, metadata)),
        DocumentSection("How to cite", citation_section(report)),
        DocumentSection("Glossary", (Details("Definitions", (definitions,)),), is_wide=True),
    ]
    return ReportDocument(
        f"{report.learner}: {_in_short(report)}",
        _kicker(report, metadata),
        summary,
        _keys(report),
        tuple(sections),
    )


def _in_short(report: Report) -> str:
    what = f"{report.candidate}s" if report.kind == "selected" else "components"
    return f"{len(report.results):,} {what} of {report.columns_seen:,}"


def _kicker(report: Report, metadata: Mapping[str, Any]) -> str:
    """Return the method and its data, in one line."""
    titles = {known.name: known.title for known in registry.LEARNERS}
    text = report.learner
    if report.learner in titles:
        text += f", {titles[report.learner]}"
    files, targets = source_files(metadata), metadata_value(metadata, "target", list) or []
    if files:
        text += f" · {NameText(files[0]).text}" + (
            f" and {len(files) - 1:,} more" * (len(files) > 1)
        )
    if targets:
        text += f" → {', '.join(NameText(target).text for target in targets[:3])}"
        text += ", …" * (len(targets) > 3)
    return text


def _keys(report: Report) -> list[tuple[str, str]]:
    """Return the key figures."""
    what = "selected" if report.kind == "selected" else "components"
    n_columns = report.details.get("n_columns", report.columns_seen)
    keys = [("columns seen", f"{n_columns:,}"), ("rows", f"{report.rows:,}")]
    if report.candidate == "group":
        keys.insert(1, ("groups", f"{report.columns_seen:,}"))
    keys.append((what, f"{len(report.results):,}"))
    if report.noise_floor is not None:
        keys.append(("noise floor", relevance_text(report.noise_floor)))
    if is_certificate_needed(report) and report.results:
        keys.append(("certified", f"{report.details['n_certified']:,}"))
    if (variance := report.details.get("share_of_variance")) is not None:
        keys.append(("variance explained", f"{variance:.0%}"))
    return keys

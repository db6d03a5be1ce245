"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamsel import registry
from streamsel._utils.text import count_text, printable
from streamsel.base.leakage import warnings_of
from streamsel.base.report import Report
from streamsel.evaluate import SubsampleStability
from streamsel.reporting.counts import ColumnCounts
from streamsel.reporting.csv_export import results_csv
from streamsel.reporting.document import (
    Block,
    Details,
    DocumentSection,
    Download,
    NameText,
    Paragraph,
    ReportDocument,
)
from streamsel.reporting.document import DefinitionList as Pairs
from streamsel.reporting.glossary import GLOSSARY
from streamsel.reporting.histograms import SelectedValues, histograms_of
from streamsel.reporting.provenance import (
    citation_section,
    metadata_value,
    provenance_section,
    source_files,
)
from streamsel.reporting.summary import is_certificate_needed, relevance_text, summarize
from streamsel.reporting.tables import (
    MAX_CLASSES,
    class_table,
    exclusion_table,
    histogram_legend,
    loadings_section,
    markers_section,
    results_table,
)
from streamsel.state.similar import correlation_matrix, most_correlated

# Maximum size of the CSV in a page, in bytes.
_MAX_CSV = 60_000


def is_complete(metadata: Mapping[str, Any]) -> bool:
    """Return False if the metadata record that a model has not learnt all its columns."""
    return metadata.get("complete") is not False


def all_warnings(report: Report, metadata: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of run and method, each with `code` and `text`."""
    found = [
        {"code": str(one.get("code", "")), "text": str(one["text"])}
        for one in metadata_value(metadata, "warnings", list, tuple) or ()
        if isinstance(one, Mapping) and "text" in one
    ]
    known = {one["code"] for one in found}
    targets = [str(name) for name in metadata_value(metadata, "target", list, tuple) or ()]
    found += [each._asdict() for each in warnings_of(report, targets) if each.code not in known]
    if caution := report.details.get("caution"):
        found.append({"code": "caution", "text": str(caution)})
    return found


def as_sentence(text: str) -> str:
    """Return text, which must not begin with a name, as a sentence with a capital and full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def build_document(
    report: Report,
    metadata: Mapping[str, Any],
    pictures: Sequence[DocumentSection] = (),
    stability: SubsampleStability | None = None,
    values: SelectedValues | None = None,
    *,
    has_bars: bool = True,
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
    stability
        Selections over subsamples; None if these are not known.
    values
        Values of selected variables, for histograms and correlations; None for none.
    has_bars
        Whether the format draws relevance.
    """
    summary = summarize(report, complete=is_complete(metadata), stability=stability)
    if values is not None:
        report = _with_redundancy(report, values)
    sections = []
    if found := all_warnings(report, metadata):
        texts = tuple(Paragraph((as_sentence(printable(one["text"])),)) for one in found)
        sections.append(DocumentSection("Warnings", texts, is_wide=True, is_warning=True))
    title = "Selected variables" if report.kind == "selected" else "Components"
    histograms = None if values is None else histograms_of(values, report)
    where = "see streamsel info MODEL --json"
    tables = [
        *results_table(report, where, histograms=histograms, has_bars=has_bars),
        *([histogram_legend(values.groups.legend)] if values is not None and histograms else []),
        *_download(report),
        *class_table(report),
        *loadings_section(report),
        *markers_section(report),
    ]
    sections.append(DocumentSection(title, tuple(tables), is_wide=True))
    sections += pictures
    definitions = Pairs([(term, as_sentence(text)) for term, text in GLOSSARY.items()])
    if blocks := exclusion_table(report, ColumnCounts.of(report, metadata)):
        sections.append(DocumentSection("Excluded columns", blocks))
    sections += [
        DocumentSection(
            "Reproduce", (*provenance_section(report, metadata), *citation_section(report))
        ),
        DocumentSection("Glossary", (Details("Definitions", (definitions,)),), is_wide=True),
    ]
    return ReportDocument(
        f"{report.learner}: {_in_short(report)}",
        _kicker(report, metadata),
        summary,
        target_text(report),
        _keys(report, stability),
        tuple(sections),
    )


def _with_redundancy(report: Report, values: SelectedValues) -> Report:
    """Return a report with the correlations of all selected variables, if it has none."""
    if report.redundancy or len(values.names) < len(report.results):
        return report
    R, names = correlation_matrix(values.X), values.names
    closest = {
        names[i]: (names[j], r)
        for i, (j, r) in enumerate(most_correlated(R))
        if not np.isnan(R[i, j])
    }
    return replace(report, redundancy=closest)


def _download(report: Report) -> tuple[Block, ...]:
    """Return a link to the results as CSV; none without results."""
    text, n = results_csv(report, _MAX_CSV)
    if not n:
        return ()
    n_all = len(report.results)
    if report.kind != "selected":
        n_all = sum(len(row["loadings"]) for row in report.results)
    what = count_text(n, "variable" if report.kind == "selected" else "loading")
    of = f", the first {n:,} of {n_all:,}" if n < n_all else f", {what}"
    return (Download(f"Download as CSV{of}", f"{report.learner.lower()}.csv", text),)


def target_text(report: Report) -> str:
    """Return the target in one line, with all classes if they are few; "" without one."""
    if report.target is None:
        return ""
    sizes = report.class_sizes or {}
    text = report.target
    if 3 < len(sizes) <= MAX_CLASSES:
        listed = (f"{NameText(name).text} ({count_text(n, 'row')})" for name, n in sizes.items())
        text = f"{len(sizes)} classes: {', '.join(listed)}"
    return f"Target: {printable(text)}."


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


def _keys(report: Report, stability: SubsampleStability | None) -> list[tuple[str, str]]:
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
    if stability is not None and stability.index is not None:
        keys.append(("stability", f"{stability.index.value:.2f}"))
    if (variance := report.details.get("share_of_variance")) is not None:
        keys.append(("variance explained", f"{variance:.0%}"))
    return keys

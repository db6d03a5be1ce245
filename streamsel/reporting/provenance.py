"""Provenance of a model (data, command, parameters, versions), and citations."""

from __future__ import annotations

import inspect
import platform
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from streamsel import registry
from streamsel._utils.text import (
    bytes_text,
    count_text,
    filled_text,
    option_name,
    rows_excluded_text,
    seconds_text,
)
from streamsel._version import __version__
from streamsel.base.report import Report
from streamsel.reporting.counts import ColumnCounts
from streamsel.reporting.document import (
    Block,
    CodeBlock,
    Details,
    DocumentTable,
    NameText,
    Paragraph,
    TableRow,
    comma_separated,
)
from streamsel.reporting.document import DefinitionList as Pairs
from streamsel.stream.formats import MAX_CATEGORIES

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
    known = learner in registry.names()
    entries = [entry(text) for text in list(references(learner))[:1]] if known else []
    title = "streamsel: select and build features from a stream of columns"
    fields = {"author": "{The streamsel developers}", "title": f"{{{title}}}"}
    return "\n\n".join(
        [*entries, _written("software", "streamsel", fields | {"version": __version__})]
    )


def references(learner: str) -> Iterator[str]:
    """Yield the references of a learner, each as one line."""
    doc = inspect.getdoc(registry.fetch(learner)) or ""  # Python -OO has none
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


# Parameters with options of their own; the others are set by --set.
_OPTIONS = {"k": "-k", "n_components": "-q", "target_type": "--target-type"}
# Parameters that are set by other means, or do not change the result.
_ELSEWHERE = {"covariates", "n_jobs"}
# Metadata with one value, by the name of the option.
_SINGLE_VALUED = (
    *("target_file", "id", "weights", "strata", "relatedness", "loco", "groups"),
    *("missing_target", "orientation", "delimiter", "decimal", "layer", "missing", "until"),
)
# Metadata of flags.
_FLAGS = ("by_position", "raw", "keep_index")
# Metadata with a number, and its default.
_NUMBERS = {"min_count": 0, "max_categories": MAX_CATEGORIES}


def metadata_value(metadata: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return the metadata under a name; None if it has another type, as it may in any file."""
    value = metadata.get(name)
    is_number = isinstance(value, bool) and bool not in kinds
    return value if isinstance(value, kinds) and not is_number else None


def source_files(metadata: Mapping[str, Any]) -> list[str]:
    """Return the files that a model was learnt from, as far as they are recorded."""
    files = metadata.get("file")
    return [files] if isinstance(files, str) else _texts(metadata, "file")


def _texts(metadata: Mapping[str, Any], name: str) -> list[str]:
    return [str(one) for one in metadata_value(metadata, name, list, tuple) or ()]


def provenance_section(report: Report, metadata: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the provenance of a model.

    Parameters
    ----------
    report
        The results.
    metadata
        Metadata of the model file.
    """
    blocks: list[Block] = [Pairs(list(_facts(report, metadata)))]
    if line := command_of(report, metadata):
        blocks += [Paragraph(("Command that reproduces the model:",)), CodeBlock(line, "sh")]
    rows = [TableRow((name, _value(value))) for name, value in report.parameters.items()]
    table = DocumentTable("Parameters", ("parameter", "value"), rows, n_visible=len(rows))
    blocks.append(Details(f"Parameters of {report.learner} ({len(rows)})", (table,)))
    if fingerprint := metadata_value(metadata, "fingerprint", dict):
        rows = [TableRow((str(name), _value(value))) for name, value in fingerprint.items()][:20]
        table = DocumentTable(
            "Fingerprint of the input", ("property", "value"), rows, n_visible=len(rows)
        )
        blocks.append(Details("Fingerprint of the input", (table,)))
    return tuple(blocks)


def _facts(report: Report, metadata: Mapping[str, Any]) -> Any:
    """Yield the recorded facts of the run, in pairs."""
    if files := source_files(metadata):
        yield "input", _names(files)
    if target := _texts(metadata, "target"):
        yield "target", _names(target)
    if file := metadata_value(metadata, "target_file", str):
        yield "target file", (NameText(file),)
    if report.target is not None:
        yield "target type", (NameText(report.target),)
    covariates = report.details.get("covariates") or report.parameters.get("covariates")
    if covariates:
        yield "covariates", _names(list(covariates))
    if weights := metadata_value(metadata, "weights", str):
        yield "weights", (NameText(weights),)
    elif report.details.get("weights"):
        yield "weights", "of observations"
    if strata := metadata_value(metadata, "strata", str):
        yield "strata", (NameText(strata),)
    if components := report.details.get("variance_components"):
        n_groups = sum(one["left_out"] is not None for one in components)
        text = f"explains {components[0]['heritability']:.0%} of the variance"
        if n_groups:
            text += f"; {count_text(n_groups, 'group')} of columns, each left out of its own tests"
        yield "relatedness", text
    if merged := metadata_value(metadata, "merged", list):
        yield "merged from", count_text(len(merged), "model")
    yield "rows", (f"{report.rows:,}", NameText(rows_excluded_text(report.rows_excluded)))
    yield "columns", ColumnCounts.of(report, metadata).text
    if filled := filled_text(metadata):
        yield "missing values", filled
    if n_passes := report.details.get("n_passes"):
        yield "passes", f"{n_passes:.3g}"
    if seconds := metadata_value(metadata, "seconds", int, float):
        yield "time", seconds_text(seconds)
    if n_bytes := metadata_value(metadata, "peak_memory", int):
        yield "peak memory", bytes_text(n_bytes)
    if saved := metadata_value(metadata, "saved", str):
        yield "learnt", saved
    learnt_by = metadata_value(metadata, "version", str)
    yield (
        "streamsel",
        __version__ + (f" (learnt by {learnt_by})" if learnt_by not in (None, __version__) else ""),
    )
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "river"))
    yield "versions", f"Python {platform.python_version()}, {others}"


def _names(names: list[Any]) -> tuple[Any, ...]:
    """Return names separated by commas; only the first of many."""
    parts = comma_separated((NameText(name),) for name in names[:10])
    return (*parts, f" and {len(names) - 10:,} more") if len(names) > 10 else parts


def _value(value: Any) -> str:
    return NameText("none" if value is None else value).text


def command_of(report: Report, metadata: Mapping[str, Any]) -> str | None:
    """Return the command that reproduces a model; None if no single command does."""
    files, command = source_files(metadata), metadata.get("command")
    if command not in ("select", "reduce") or not files:
        return None
    lines = [["streamsel", command, *files]]
    for option in ("target", "covariates", "dropped"):
        spelt = {"covariates": "--covariate", "dropped": "--drop"}.get(option, f"--{option}")
        lines += [[spelt, option_name(name)] for name in _texts(metadata, option)]
    if command == "select" and not (_texts(metadata, "target") or metadata.get("target_file")):
        lines.append(["--no-target"])
    lines += [["--na-values", option_name(cell)] for cell in _texts(metadata, "na_values")]
    for option in _SINGLE_VALUED:
        if value := metadata_value(metadata, option, str):
            lines.append([_spelt(option), value])
    lines += [[_spelt(flag)] for flag in _FLAGS if metadata_value(metadata, flag, bool)]
    for option, default in _NUMBERS.items():
        number = metadata_value(metadata, option, int)
        if number not in (None, default):
            lines.append([_spelt(option), str(number)])
    lines.append(["--method", report.learner])
    for name, value in changed_parameters_of(report).items():
        if name in _ELSEWHERE:
            continue
        own = _OPTIONS.get(name)
        lines.append([own, str(value)] if own else ["--set", f"{name}={_option_value(value)}"])
    # The command's default for a bounded pool is exact.
    if report.parameters.get("max_candidates") and report.parameters.get("exact") is False:
        lines.append(["--no-exact"])
    return " \\\n  ".join(map(shlex.join, lines))


def _spelt(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def changed_parameters_of(report: Report) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    if report.learner not in registry.names():
        return dict(report.parameters)
    defaults = inspect.signature(registry.fetch(report.learner)).parameters
    return {
        name: value
        for name, value in report.parameters.items()
        if name not in defaults or defaults[name].default != value
    }


def _option_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_option_value, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def citation_section(report: Report) -> tuple[Block, ...]:
    """Return the citations of the method and of streamsel."""
    return (Details("How to cite (BibTeX)", (CodeBlock(bibtex(report.learner), "bibtex"),)),)

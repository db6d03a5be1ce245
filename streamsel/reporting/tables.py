"""The tables of a report: results, loadings, excluded columns, and selection frequencies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from streamsel._utils.text import count_text
from streamsel.base.report import Report
from streamsel.evaluate import SubsampleStability
from streamsel.reporting.counts import ColumnCounts
from streamsel.reporting.document import (
    BarCell,
    Block,
    Cell,
    Details,
    DocumentSection,
    DocumentTable,
    HistogramCell,
    Inline,
    NameText,
    Paragraph,
    Swatch,
    TableRow,
    comma_separated,
)
from streamsel.reporting.histograms import Histogram
from streamsel.reporting.summary import (
    direction_text,
    is_certificate_needed,
    percent_text,
    score_name,
)

# Maximum number of rows of a table in a report, and of classes that are listed in a sentence.
MAX_ROWS, MAX_CLASSES = 200, 12
_TOP_LOADINGS, _MAX_LOADINGS = 5, 50
# Fields with columns of their own; further fields of a method follow these.
_OWN = ("name", "relevance", "score", "round", "certified", "above_noise", "arrival")
NOT_ABOVE = "Not above the noise floor"
_NOT_ABOVE_BY_CORRELATION = "Correlation not above the noise floor"
_MARK = (
    "The mark on a bar is the noise floor. The best column exceeds it in 5 % of cases if all are "
    "noise."
)
_FLOOR = "The best column exceeds the noise floor in 5 % of cases if all are noise."
_EXPLANATION = (
    " Variables not above it are individually no more relevant than noise; they may still be "
    "relevant jointly with others."
)
_EXPLANATION_OTHER_SCORE = (
    " Noise floor and relevance refer to correlation: the score, {}, also measures other "
    "dependence, and has no noise floor."
)
_EXPLANATION_COMPONENTS = " Components of many columns of noise exceed it more easily."


def results_table(
    report: Report,
    source: str,
    max_rows: int = MAX_ROWS,
    histograms: Mapping[Hashable, Histogram] | None = None,
    *,
    has_bars: bool = True,
) -> tuple[Block, ...]:
    """Return the table of results, and a legend.

    Parameters
    ----------
    report
        The results.
    source
        Where all results are available.
    max_rows
        Maximum number of rows.
    histograms
        Histograms of some of the variables; None for a table without.
    has_bars
        Whether the format draws relevance.
    """
    if not report.results:
        return (Paragraph(("There are no results.",)),)
    rows = report.results[:max_rows]
    if report.kind == "selected":
        table = _variables(report, rows, histograms or {})
    else:
        table = _components(report, rows)
    n_left = len(report.results) - len(rows)
    rest = f"{n_left:,} more: {source}" if n_left else ""
    blocks: list[Block] = [DocumentTable(*table, n_visible=10, omitted_note=rest, is_stacked=True)]
    if report.noise_floor is not None:
        blocks.append(Paragraph(((_MARK if has_bars else _FLOOR) + _meaning(report),)))
    return tuple(blocks)


def _meaning(report: Report) -> str:
    """Return an explanation of the noise floor for these results."""
    if report.kind != "selected":
        return _EXPLANATION_COMPONENTS
    if (score := score_name(report)) is not None:
        return _EXPLANATION_OTHER_SCORE.format(score)
    return _EXPLANATION if any(row["above_noise"] is False for row in report.results) else ""


class _Column(NamedTuple):
    """A column of the table of selected variables: its title, and its cell of a rank and a row."""

    title: str
    cell: Callable[[int, Mapping[str, Any]], Cell]
    is_numeric: bool = True


def _variables(
    report: Report, found: Sequence[Mapping[str, Any]], histograms: Mapping[Hashable, Histogram]
) -> tuple[str, tuple[str, ...], list[TableRow], frozenset[int]]:
    """Return title, head, rows and numeric columns of the table of selected variables."""
    columns = list(_columns(report, found, histograms))
    mark = NOT_ABOVE if score_name(report) is None else _NOT_ABOVE_BY_CORRELATION
    rows = [
        _row(
            [column.cell(rank, row) for column in columns],
            row,
            _alternatives(report, row["name"]),
            mark,
        )
        for rank, row in enumerate(found, start=1)
    ]
    numeric = frozenset(i for i, column in enumerate(columns) if column.is_numeric)
    return "Selected variables", tuple(column.title for column in columns), rows, numeric


def _columns(
    report: Report, found: Sequence[Mapping[str, Any]], histograms: Mapping[Hashable, Histogram]
) -> Iterator[_Column]:
    """Yield the columns of the table of selected variables."""
    yield _Column("", lambda rank, _: f"{rank:,}")
    yield _Column("variable", lambda _, row: NameText(row["name"]), is_numeric=False)
    yield _Column("relevance", lambda _, row: _bar(row["relevance"], report), is_numeric=False)
    yield _Column("score", lambda _, row: _text(row["score"]))
    if report.directions:
        yield _Column("direction", lambda _, row: direction_text(report, row), is_numeric=False)
    if histograms:
        yield _Column(
            "distribution", lambda _, row: _histogram(histograms, row["name"]), is_numeric=False
        )
    if report.redundancy:
        yield _Column("redundancy", lambda _, row: _redundancy(report, row), is_numeric=False)
    if is_certificate_needed(report):
        yield _Column(
            "certified", lambda _, row: "yes" if row["certified"] else "no", is_numeric=False
        )
    if any(row["round"] != found[0]["round"] for row in found):
        yield _Column("round", lambda _, row: f"{row['round']:,}")
    for name in (name for name in found[0] if name not in _OWN):
        yield _Column(name.replace("_", " "), lambda _, row, name=name: _text(row[name]))  # type: ignore[misc]
    if any(row.get("arrival") is not None for row in found):
        yield _Column("arrival", lambda _, row: _text(row.get("arrival")))


def _redundancy(report: Report, row: Mapping[str, Any]) -> Cell:
    """Return the largest correlation with another selected variable, and which."""
    closest = (report.redundancy or {}).get(row["name"])
    return "" if closest is None else (f"{closest[1]:.2f} (", NameText(closest[0]), ")")


def _histogram(histograms: Mapping[Hashable, Histogram], name: Hashable) -> Cell:
    found = histograms.get(name)
    if found is None:
        return ""
    pairs = zip(found.groups, found.medians, strict=True)
    titles = [f"{group or 'all rows'}: median {median:.3g}" for group, median in pairs]
    return HistogramCell(found.shares.tolist(), titles, found.text)


def histogram_legend(lines: Sequence[str]) -> Paragraph:
    """Return a legend of the histograms, with the name of each line."""
    if lines == [""]:
        return Paragraph(("Distribution: the share of the rows by value.",))
    parts = [part for i, name in enumerate(lines) for part in (Swatch(i), name)]
    return Paragraph(("Distribution: the share of the rows of each group by value.", *parts))


def class_table(report: Report) -> tuple[Block, ...]:
    """Return a collapsed table of the classes and their numbers of rows, if there are many."""
    sizes = report.class_sizes or {}
    if len(sizes) <= MAX_CLASSES:
        return ()
    rows = [
        TableRow((NameText(name), f"{n:,}"))
        for name, n in sorted(sizes.items(), key=lambda item: -item[1])[:MAX_ROWS]
    ]
    n_left = len(sizes) - len(rows)
    rest = f"{n_left:,} smaller classes" if n_left else ""
    title = "Classes of the target"
    table = DocumentTable(title, ("class", "rows"), rows, frozenset({1}), len(rows), rest)
    return (Details(f"{title} ({len(sizes):,})", (table,)),)


def _alternatives(report: Report, name: Hashable) -> tuple[Inline, ...]:
    """Return the variables similar to a selected one, as text."""
    found = (report.alternatives or {}).get(name, ())
    parts = comma_separated((NameText(other), f" ({value:.2f})") for other, value in found)
    return ("Similar variables: ", *parts) if parts else ()


def _components(
    report: Report, found: Sequence[Mapping[str, Any]]
) -> tuple[str, tuple[str, ...], list[TableRow], frozenset[int]]:
    """Return title, head, rows and numeric columns of the table of components."""
    has_target = report.noise_floor is not None
    further = [name for name in found[0] if name not in (*_OWN, "loadings")]
    has_loadings = any(row["loadings"] for row in found)
    head = ["component", *["relevance"] * has_target, *(name.replace("_", " ") for name in further)]
    head += ["variables", "largest loadings"] if has_loadings else []
    rows = []
    for row in found:
        cells: list[Cell] = [NameText(row["name"]), *[_bar(row["relevance"], report)] * has_target]
        cells += [_text(row[name]) for name in further]
        if has_loadings:
            cells += [f"{len(row['loadings']):,}", _largest(row["loadings"])]
        rows.append(_row(cells, row))
    first = 1 + has_target
    n_numeric = len(further) + has_loadings
    return "Components", tuple(head), rows, frozenset(range(first, first + n_numeric))


def _largest(loadings: Sequence[Mapping[str, Any]]) -> tuple[Inline, ...]:
    parts = comma_separated(
        (f"{_signed(loading['loading'], '.2f')}\xa0", NameText(loading["variable"]))
        for loading in loadings[:_TOP_LOADINGS]
    )
    return (*parts, ", …") if len(loadings) > _TOP_LOADINGS else parts


def _row(
    cells: list[Cell], row: Mapping[str, Any], below: tuple[Inline, ...] = (), mark: str = NOT_ABOVE
) -> TableRow:
    if row["above_noise"] is not False:
        return TableRow(tuple(cells), below)
    return TableRow(tuple(cells), (mark, *[". "] * bool(below), *below), is_insignificant=True)


def _bar(value: float | None, report: Report) -> Cell:
    return "" if value is None else BarCell(value, report.noise_floor)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def _signed(value: float | None, form: str = ".4g") -> str:
    return "?" if value is None else f"{value:+{form}}"


def loadings_section(report: Report) -> tuple[Block, ...]:
    """Return collapsed tables of the largest loadings of each component."""
    folds = []
    for row in report.results[:10]:
        largest = row.get("loadings", ())[:_MAX_LOADINGS]
        if not largest:
            continue
        rows = [
            TableRow(
                (
                    NameText(loading["variable"]),
                    _signed(loading["loading"]),
                    _signed(loading["weight"]),
                )
            )
            for loading in largest
        ]
        n_left = len(row["loadings"]) - len(largest)
        rest = f"{count_text(n_left, 'smaller loading')} not shown" if n_left else ""
        title = f"Loadings of {NameText(row['name']).text}"
        head = ("variable", "weight × standard deviation", "weight")
        table = DocumentTable(title, head, rows, frozenset({1, 2}), _MAX_LOADINGS, rest)
        folds.append(Details(f"{title} ({len(row['loadings']):,})", (table,)))
    return tuple(folds)


CONSTANT = "do not vary"


def markers_section(report: Report) -> tuple[Block, ...]:
    """Return collapsed tables of the markers of each class."""
    by_class: dict[Hashable, list[Mapping[str, Any]]] = {}
    for marker in report.details.get("markers", ()):
        by_class.setdefault(marker["class"], []).append(marker)
    folds = []
    for label, markers in by_class.items():
        rows = [
            TableRow(
                (
                    NameText(marker["name"]),
                    marker["direction"],
                    *(_text(marker[key]) for key in ("auc", "z", "p_value", "p_adjusted")),
                )
            )
            for marker in markers
        ]
        title = f"Markers of {NameText(label).text}"
        head = ("variable", "in this class", "AUC", "z", "p-value", "adjusted p-value")
        table = DocumentTable(title, head, rows, frozenset(range(2, 6)), len(rows), "")
        folds.append(Details(f"{title} ({len(rows):,})", (table,)))
    return tuple(folds)


def exclusion_table(report: Report, counts: ColumnCounts) -> tuple[Block, ...]:
    """Return how columns were counted, and a table by outcome; nothing if it is unknown.

    Parameters
    ----------
    report
        The results.
    counts
        The numbers of its columns. Skipped ones are in the table unless it counts groups.
    """
    is_group = report.candidate == "group"
    skipped = {} if is_group else counts.skipped
    counted = [(f"skipped: {reason}", n) for reason, n in sorted(skipped.items())]
    why = dict(report.excluded)
    if report.columns_constant and CONSTANT not in why:
        why = {CONSTANT: report.columns_constant} | why
    counted += [(reason, n) for reason, n in why.items() if n]
    if report.kind == "selected":
        n_rest = report.columns_seen - len(report.results) - sum(why.values())
        counted += [("not selected", n_rest)] if n_rest > 0 else []
        counted.append(("selected", len(report.results)))
    if not counted or not report.columns_seen:
        return ()
    n_all = report.columns_seen if is_group else counts.n_all
    if report.kind == "selected":
        counted.append(("all", n_all))
    rows = [TableRow((reason, f"{n:,}", percent_text(n / n_all))) for reason, n in counted]
    what = "groups" if is_group else "columns"
    table = DocumentTable(
        f"{what.capitalize()} by outcome",
        ("outcome", what, "share"),
        rows,
        frozenset({1, 2}),
        n_visible=30,
    )
    text = f"{counts.text}."
    if counts.skipped:
        text += " --list-skipped FILE lists each skipped column with its reason."
    return (table,) if counts.is_plain else (Paragraph((text,)), table)


TITLE = "Selection stability"
_MAX_ROWS = 50


def stability_section(found: SubsampleStability, picture: Block | None = None) -> DocumentSection:
    """Return a section on the stability of a selection over subsamples, with text and table.

    Parameters
    ----------
    found
        The result of `streamsel.evaluate.subsample_stability`.
    picture
        Its plot.
    """
    index = found.index
    text = "The stability index of Nogueira et al. is not defined."
    if index is not None:
        text = (
            f"The stability index of the selections is {index.value:.2f} ({index.low:.2f} to "
            f"{index.high:.2f}; 1 for identical selections, 0 for random ones): {found.rating}."
        )
    n_samples = count_text(found.n_subsamples, "sample")
    sampling = f"{n_samples} of {found.rows_drawn:,} of {found.rows:,} rows."
    frequency = list(found.frequency.items())
    rows = [TableRow((NameText(name), percent_text(part))) for name, part in frequency[:_MAX_ROWS]]
    rest = f"{len(frequency) - _MAX_ROWS:,} less frequent" if len(frequency) > _MAX_ROWS else ""
    n_open = 0 if picture else 10
    title = "Selection frequency over subsamples"
    table = DocumentTable(title, ("variable", "samples"), rows, frozenset({1}), n_open, rest)
    blocks = (Paragraph((f"{text} {sampling}",)), table)
    return DocumentSection(TITLE, blocks if picture is None else (picture, *blocks))

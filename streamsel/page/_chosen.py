"""The tables of selected variables, components and loadings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from streamsel.learner.report import Report
from streamsel.page._blocks import Bar, Block, Cell, Fold, Inline, Name, Row, Table, Text
from streamsel.page._verdict import is_certificate_needed, other_score
from streamsel.words import count

# Maximum number of rows of a table in a report.
MAX_ROWS = 200
_TOP_LOADINGS = 5
# Fields with columns of their own; further fields of a method follow these.
_OWN = ("name", "relevance", "score", "round", "certified", "above_noise", "arrival")
NOT_ABOVE = "Not above the noise floor"
_NOT_ABOVE_BY_CORRELATION = "Correlation not above the noise floor"
_MARK = "The mark on a bar is the noise floor, which the best of as many columns of noise reaches."
_EXPLANATION = (
    " Variables not above it are individually no more relevant than noise; they may still be "
    "relevant jointly with others."
)
_EXPLANATION_OTHER_SCORE = (
    " Noise floor and relevance refer to correlation: the score, {}, also measures other "
    "dependence, and has no noise floor."
)
_EXPLANATION_COMPONENTS = " Components of many columns of noise exceed it more easily."


def chosen(report: Report, source: str, most: int = MAX_ROWS) -> tuple[Block, ...]:
    """Return the table of results, and a legend.

    Parameters
    ----------
    report
        The results.
    source
        Where all results are available.
    most
        Maximum number of rows.
    """
    if not report.found:
        return (Text(("There are no results.",)),)
    rows = report.found[:most]
    table = _variables(report, rows) if report.kind == "selected" else _components(report, rows)
    n_left = len(report.found) - len(rows)
    rest = f"{n_left:,} more: {source}" if n_left else ""
    blocks: list[Block] = [Table(*table, n_open=10, rest=rest, is_stacked=True)]
    if report.noise_floor is not None:
        blocks.append(Text((_MARK + _meaning(report),)))
    return tuple(blocks)


def _meaning(report: Report) -> str:
    """Return an explanation of the noise floor for these results."""
    if report.kind != "selected":
        return _EXPLANATION_COMPONENTS
    if (score := other_score(report)) is not None:
        return _EXPLANATION_OTHER_SCORE.format(score)
    return _EXPLANATION if any(row["above_noise"] is False for row in report.found) else ""


def _variables(
    report: Report, found: Sequence[Mapping[str, Any]]
) -> tuple[str, tuple[str, ...], list[Row], frozenset[int]]:
    """Return title, head, rows and numeric columns of the table of selected variables."""
    has_rounds = any(row["round"] != found[0]["round"] for row in found)
    has_arrivals = any(row.get("arrival") is not None for row in found)
    further = [name for name in found[0] if name not in _OWN]
    is_bounded = is_certificate_needed(report)
    head = ["", "variable", "relevance", "score", *["certified"] * is_bounded]
    head += [*["round"] * has_rounds, *(name.replace("_", " ") for name in further)]
    head += ["arrival"] * has_arrivals
    mark = NOT_ABOVE if other_score(report) is None else _NOT_ABOVE_BY_CORRELATION
    rows = []
    for rank, row in enumerate(found, start=1):
        cells: list[Cell] = [f"{rank:,}", Name(row["name"]), _bar(row["relevance"], report)]
        cells += [_text(row["score"]), *["yes" if row["certified"] else "no"] * is_bounded]
        cells += [*[f"{row['round']:,}"] * has_rounds, *(_text(row[name]) for name in further)]
        if has_arrivals:
            cells.append(_text(row.get("arrival")))
        below = _alternatives(report, row["name"])
        rows.append(_row(cells, row, below, mark))
    numeric = frozenset({0, 3, *range(4 + is_bounded, len(head))})
    return "Selected variables", tuple(head), rows, numeric


def _alternatives(report: Report, name: Hashable) -> tuple[Inline, ...]:
    """Return the variables similar to a selected one, as text."""
    parts: list[Inline] = []
    for other, correlation in (report.alternatives or {}).get(name, ()):
        parts += [
            ", " if parts else "Similar variables: ",
            Name(other),
            f" ({correlation:.2f})",
        ]
    return tuple(parts)


def _components(
    report: Report, found: Sequence[Mapping[str, Any]]
) -> tuple[str, tuple[str, ...], list[Row], frozenset[int]]:
    """Return title, head, rows and numeric columns of the table of components."""
    has_target = report.noise_floor is not None
    further = [name for name in found[0] if name not in (*_OWN, "loadings")]
    has_loadings = any(row["loadings"] for row in found)
    head = ["component", *["relevance"] * has_target, *(name.replace("_", " ") for name in further)]
    head += ["variables", "largest loadings"] if has_loadings else []
    rows = []
    for row in found:
        cells: list[Cell] = [Name(row["name"]), *[_bar(row["relevance"], report)] * has_target]
        cells += [_text(row[name]) for name in further]
        if has_loadings:
            cells += [f"{len(row['loadings']):,}", _largest(row["loadings"])]
        rows.append(_row(cells, row))
    first = 1 + has_target
    n_numeric = len(further) + has_loadings
    return "Components", tuple(head), rows, frozenset(range(first, first + n_numeric))


def _largest(loadings: Sequence[Mapping[str, Any]]) -> tuple[Inline, ...]:
    parts: list[Inline] = []
    for loading in loadings[:_TOP_LOADINGS]:
        value = "?" if loading["loading"] is None else f"{loading['loading']:+.2f}"
        parts += [f"{', ' if parts else ''}{value}\xa0", Name(loading["variable"])]
    return (*parts, ", …") if len(loadings) > _TOP_LOADINGS else tuple(parts)


def _row(
    cells: list[Cell], row: Mapping[str, Any], below: tuple[Inline, ...] = (), mark: str = NOT_ABOVE
) -> Row:
    if row["above_noise"] is not False:
        return Row(tuple(cells), below)
    return Row(tuple(cells), (mark, *[". "] * bool(below), *below), is_faint=True)


def _bar(value: float | None, report: Report) -> Cell:
    return "" if value is None else Bar(value, report.noise_floor)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.4g}"


def loadings(report: Report, most: int = 50) -> tuple[Block, ...]:
    """Return collapsed tables of the largest loadings of each component."""
    folds = []
    for row in report.found[:10]:
        largest = row.get("loadings", ())[:most]
        if not largest:
            continue
        rows = [
            Row(
                (Name(loading["variable"]), _signed(loading["loading"]), _signed(loading["weight"]))
            )
            for loading in largest
        ]
        n_left = len(row["loadings"]) - len(largest)
        rest = f"{count(n_left, 'smaller loading')} not shown" if n_left else ""
        title = f"Loadings of {Name(row['name']).text}"
        head = ("variable", "weight × standard deviation", "weight")
        table = Table(title, head, rows, frozenset({1, 2}), most, rest)
        folds.append(Fold(f"{title} ({len(row['loadings']):,})", (table,)))
    return tuple(folds)

"""The tables of what was chosen, or built."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from streamsel.learner.report import Report
from streamsel.page._blocks import Bar, Block, Cell, Fold, Inline, Name, Row, Table, Text
from streamsel.page._verdict import is_certificate_needed, other_score
from streamsel.words import count

# Rows of a table that are in a page; the rest is counted.
MOST = 200
_TOP_LOADINGS = 5
# What stands in columns of its own; what a method knows beside it follows.
_OWN = ("name", "relevance", "score", "round", "certified", "above_noise", "arrival")
BELOW = "Not above noise"
_BELOW_BY_CORRELATION = "By correlation not above noise"
_MARK = "The mark on a bar is the noise floor, what the best of as many columns of noise reaches."
_BELOW_MEANS = (
    " Those not above it are by themselves no more relevant than noise; that they explain "
    "something together with others is not ruled out."
)
_BY_OTHER_SCORE = (
    " It is a correlation, and so is the relevance: the score, {}, sees more, and has no such mark."
)
_MADE_OF_MANY = " Components, made of many columns, reach it more easily."


def chosen(report: Report, source: str, most: int = MOST) -> tuple[Block, ...]:
    """Return the table of what was found, and what must be known to read it.

    Parameters
    ----------
    report
        What was found.
    source
        Where all of it is told.
    most
        How many rows there may be.
    """
    if not report.found:
        return (Text(("There is nothing to show.",)),)
    rows = report.found[:most]
    table = _variables(report, rows) if report.kind == "selected" else _components(report, rows)
    n_left = len(report.found) - len(rows)
    rest = f"{n_left:,} more: {source}" if n_left else ""
    blocks: list[Block] = [Table(*table, n_open=10, rest=rest, is_stacked=True)]
    if report.noise_floor is not None:
        blocks.append(Text((_MARK + _meaning(report),)))
    return tuple(blocks)


def _meaning(report: Report) -> str:
    """Say what it means to be below the mark, or above it."""
    if report.kind != "selected":
        return _MADE_OF_MANY
    if (score := other_score(report)) is not None:
        return _BY_OTHER_SCORE.format(score)
    return _BELOW_MEANS if any(row["above_noise"] is False for row in report.found) else ""


def _variables(
    report: Report, found: Sequence[Mapping[str, Any]]
) -> tuple[str, tuple[str, ...], list[Row], frozenset[int]]:
    """Return title, head, rows and columns of numbers of the table of what was selected."""
    rounds = any(row["round"] != found[0]["round"] for row in found)
    arrivals = any(row.get("arrival") is not None for row in found)
    further = [name for name in found[0] if name not in _OWN]
    proven = is_certificate_needed(report)
    head = ["", "variable", "relevance", "score", *["certified"] * proven]
    head += [*["round"] * rounds, *(name.replace("_", " ") for name in further)]
    head += ["arrival"] * arrivals
    mark = BELOW if other_score(report) is None else _BELOW_BY_CORRELATION
    rows = []
    for rank, row in enumerate(found, start=1):
        cells: list[Cell] = [f"{rank:,}", Name(row["name"]), _bar(row["relevance"], report)]
        cells += [_text(row["score"]), *["yes" if row["certified"] else "no"] * proven]
        cells += [*[f"{row['round']:,}"] * rounds, *(_text(row[name]) for name in further)]
        if arrivals:
            cells.append(_text(row.get("arrival")))
        below = _alternatives(report, row["name"])
        rows.append(_row(cells, row, below, mark))
    numeric = frozenset({0, 3, *range(4 + proven, len(head))})
    return "The chosen variables", tuple(head), rows, numeric


def _alternatives(report: Report, name: Hashable) -> tuple[Inline, ...]:
    """Say which others a variable could as well have been."""
    parts: list[Inline] = []
    for other, correlation in (report.alternatives or {}).get(name, ()):
        parts += [
            ", " if parts else "Could as well have been ",
            Name(other),
            f" ({correlation:.2f})",
        ]
    return tuple(parts)


def _components(
    report: Report, found: Sequence[Mapping[str, Any]]
) -> tuple[str, tuple[str, ...], list[Row], frozenset[int]]:
    """Return title, head, rows and columns of numbers of the table of components."""
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
    return "The components", tuple(head), rows, frozenset(range(first, first + n_numeric))


def _largest(loadings: Sequence[Mapping[str, Any]]) -> tuple[Inline, ...]:
    parts: list[Inline] = []
    for loading in loadings[:_TOP_LOADINGS]:
        value = "?" if loading["loading"] is None else f"{loading['loading']:+.2f}"
        parts += [f"{', ' if parts else ''}{value}\xa0", Name(loading["variable"])]
    return (*parts, ", …") if len(loadings) > _TOP_LOADINGS else tuple(parts)


def _row(
    cells: list[Cell], row: Mapping[str, Any], below: tuple[Inline, ...] = (), mark: str = BELOW
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
    """Return the loadings of the components, folded away: the largest of each."""
    folds = []
    for row in report.found[:10]:
        told = row.get("loadings", ())[:most]
        if not told:
            continue
        rows = [
            Row((Name(one["variable"]), _signed(one["loading"]), _signed(one["weight"])))
            for one in told
        ]
        n_left = len(row["loadings"]) - len(told)
        rest = f"{count(n_left, 'smaller one')} not shown" if n_left else ""
        title = f"Loadings of {Name(row['name']).text}"
        head = ("variable", "weight × standard deviation", "weight")
        table = Table(title, head, rows, frozenset({1, 2}), most, rest)
        folds.append(Fold(f"{title} ({len(row['loadings']):,})", (table,)))
    return tuple(folds)

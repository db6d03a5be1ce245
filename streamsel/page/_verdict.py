"""What is to be thought of what was found, in one sentence, and no better than it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsel import catalogue
from streamsel.learner.report import Report
from streamsel.words import count

# Its target is what components are not to tell.
_HIDES = "PrivateFeatures"
# These scores see more than a correlation does, and what noise reaches by them is not known.
_BEYOND_CORRELATION = {
    "mutual_info": "mutual information",
    "misclassification": "misclassification",
    "margin": "margin",
}


def verdict(report: Report, *, complete: bool = True) -> str:
    """Return a sentence on what was found.

    Parameters
    ----------
    report
        What was found.
    complete
        Whether all columns were learnt.
    """
    if not report.columns_seen:
        return "Nothing has been learnt yet."
    said = _of_selected(report) if report.kind == "selected" else _of_components(report)
    if complete:
        return f"{said}."
    return f"The run was cut short, and what follows is of the columns before that. {said}."


def short(value: float) -> str:
    """Write a relevance so that it can be read at a glance."""
    if 0.0 < value < 0.001:
        return "less than 0.001"
    return f"{value:.2f}" if value >= 0.095 or not value else f"{value:.2g}"


def share(value: float) -> str:
    """Write a share in per cent."""
    return "over 99.9 %" if 0.9995 <= value < 1.0 else f"{100.0 * value:.3g} %"


def above_floor(report: Report) -> str | None:
    """Say how many columns lie above the noise floor; None where nobody can say."""
    known: int | None = report.facts.get("n_above_noise")
    if known is not None:
        return f"{known:,}"
    floor, density = report.noise_floor, report.density
    if floor is None or density is None:
        return None
    # Nothing is said of where in its bin a column lies.
    surely = int(density.counts[:, density.edges[:-1] >= floor].sum())
    perhaps = int(density.counts[:, density.edges[1:] > floor].sum())
    if surely == perhaps:
        return f"{surely:,}"
    return f"at least {surely:,}" if surely else None


def other_score(report: Report) -> str | None:
    """Say by what variables were selected, where that sees more than the relevance does."""
    score: Any = report.parameters.get("score")
    return _BEYOND_CORRELATION.get(score) if report.kind == "selected" else None


def variables_of(report: Report) -> set[Any]:
    """Return the variables that components are made of."""
    return {loading["variable"] for row in report.found for loading in row["loadings"]}


def _of_selected(report: Report) -> str:
    n, seen = len(report.found), count(report.columns_seen, "variable")
    if not n:
        return f"Nothing was selected: none of {seen} passes"
    floor = report.noise_floor
    n_above = sum(row["above_noise"] is True for row in report.found)
    score = other_score(report)
    if score is None and floor is not None and floor < 1.0 and not n_above:
        best = max(row["relevance"] or 0.0 for row in report.found)
        those = "the one" if n == 1 else f"the most relevant of the {n:,}"
        return (
            f"Nothing rises above noise: {those} selected out of {seen} has {best:.3f}, and the "
            f"best of as many columns of pure noise reaches {floor:.3f}"
        )
    said = f"{n:,} of {seen}"
    if report.asked is not None and n < report.asked:
        said += f" ({report.asked:,} were asked for)"
    if score is None:
        return said + _beside_noise(n, n_above, floor) + _proven(report)
    said += f", by {score}, with no noise floor to hold {'it' if n == 1 else 'them'} against"
    if floor is not None and floor < 1.0:
        said += f"; by correlation {n_above:,} of {n:,} above what noise reaches ({short(floor)})"
    return said + _proven(report)


def _beside_noise(n: int, n_above: int, floor: float | None) -> str:
    if floor is None:
        return ", with no noise floor to hold them against"
    if floor >= 1.0:
        return ", of so few rows that nothing can be told from noise"
    reached = f"above what noise reaches ({short(floor)})"
    if n_above == n:
        return f", {_all_of(n)}{reached}"
    return f", {n_above:,} of them {reached}, {n - n_above:,} not"


def _all_of(n: int) -> str:
    return {1: "", 2: "both "}.get(n, "all ")


def _proven(report: Report) -> str:
    if not is_proven_or_not(report):
        return "; each decided on as it came" if _decides_on_arrival(report) else ""
    n, n_certified = len(report.found), report.facts["n_certified"]
    those = f"proven to be {'that' if n == 1 else 'those'} of a selection over all columns at once"
    if n_certified == n:
        return f"; {_all_of(n)}{those}"
    return f"; {n_certified:,} {those}" if n_certified else f"; none {those}"


def is_proven_or_not(report: Report) -> bool:
    """Whether there is a selection over all columns at once that one could be proven to be."""
    return "n_certified" in report.facts and not _decides_on_arrival(report)


def _decides_on_arrival(report: Report) -> bool:
    from streamsel.learner.on_arrival import OnArrival

    learner = report.learner
    return learner in catalogue.names() and issubclass(catalogue.fetch(learner), OnArrival)


def _of_components(report: Report) -> str:
    n, facts = len(report.found), report.facts
    columns = count(report.columns_seen, "column")
    if not n:
        return f"Nothing was built of {columns}"
    said, have = count(n, "component"), "has" if n == 1 else "have"
    if facts.get("any_variable"):
        return f"{said} of whatever variables a row has: what they are made of was not learnt"
    if "n_landmarks" in facts:
        return (
            f"{said} by the likeness of {count(facts['n_landmarks'], 'observation')} over {columns}"
        )
    if report.noise_floor is None:
        return _without_target(said, have, columns, facts)
    n_used = len(variables_of(report))
    of = _of_columns(n_used, report.columns_seen)
    return f"{said} of {of}{_of_target(report, n_used, report.noise_floor)}"


def _of_columns(n_used: int, n: int) -> str:
    columns = count(n, "column")
    if n_used != n:
        return f"{count(n_used, 'variable')} out of {columns}"
    return columns if n == 1 else f"all {columns}"


def _without_target(said: str, have: str, columns: str, facts: Mapping[str, Any]) -> str:
    variance = facts.get("share_of_variance")
    if variance is None:
        return f"{said} of {columns}, learnt without a target"
    return f"{said}, which {have} {share(variance)} of the variance of {columns}"


def _of_target(report: Report, n_used: int, floor: float) -> str:
    """Say what components have to do with the target, and whether that can be noise."""
    most = max(row["relevance"] or 0.0 for row in report.found)
    if report.learner == _HIDES:
        return f"; of what is to be hidden they tell {short(most)} at most"
    above = above_floor(report)
    if above == "0":
        return (
            "; nothing rises above noise: no column lies above what the best of as many columns of "
            f"noise reaches ({short(floor)})"
        )
    told = f", the most relevant with {short(most)}"
    # A sum of so many columns can be anything, and a target among it.
    if most > floor and n_used >= report.rows - 1:
        told += " (of as many columns as there are rows, components can fit any target)"
    elif above is None:
        told += f" (a column of noise reaches {short(floor)}, and components do so more easily)"
    return (
        told
        if above is None
        else f"{told}; columns above what noise reaches ({short(floor)}): {above}"
    )

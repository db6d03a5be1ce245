"""What is to be thought of what was found, in one sentence, and no better than it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    said = f"{n:,} of {seen} selected"
    if report.asked is not None and n < report.asked:
        said += f" ({report.asked:,} were asked for)"
    said += f". {_compared_with_noise(report)}"
    if report.n_near_duplicates:
        others = "others" if report.n_near_duplicates > 1 else "another"
        are = "are near-duplicates" if report.n_near_duplicates > 1 else "is a near-duplicate"
        said += f"; {report.n_near_duplicates:,} {are} of {others}"
    if report.facts.get("decided_on_arrival"):
        return f"{said}. Each was decided on when it arrived"
    return said + _certified(report)


def _compared_with_noise(report: Report) -> str:
    """Return a sentence, without its full stop, on how many variables exceed the noise floor."""
    n, floor, score = len(report.found), report.noise_floor, other_score(report)
    n_above = sum(row["above_noise"] is True for row in report.found)
    if floor is None:
        return "There is no noise floor to compare them with"
    if floor >= 1.0:
        return "There are too few rows to tell a variable from noise"
    which = {n: "All exceed" if n > 1 else "It exceeds", 0: "None exceeds", 1: "1 exceeds"}
    said = which.get(n_above, f"{n_above:,} exceed")
    if not n_above and n == 1:
        said = "It does not exceed"
    said += f" the noise floor ({short(floor)})"
    if n > n_above > 0:
        said += f", {n - n_above:,} do{'es' if n - n_above == 1 else ''} not"
    if not n_above:
        best = max(row["relevance"] or 0.0 for row in report.found)
        said += f": the largest relevance is {short(best)}"
    if score is not None:
        they = "It was" if n == 1 else "They were"
        return f"{they} ranked by {score}, which has no noise floor. By correlation: {said}"
    return said + _doubts(report)


def _doubts(report: Report) -> str:
    """Return what a warning says of the noise floor itself: a headline is not to contradict it."""
    codes = {warning.code for warning in report.warnings}
    if "tails" in codes:
        return ", which is too low for this target and these columns (see the warning)"
    if "inflation" in codes:
        return ", but statistics are inflated (see the warning)"
    return ""


def _certified(report: Report) -> str:
    if not is_certificate_needed(report):
        return ""
    n, n_certified = len(report.found), report.facts["n_certified"]
    equal = "certified to equal a selection over all columns at once"
    if n_certified == n:
        return f". {'It is' if n == 1 else 'All are'} {equal}"
    first = f"The first {n_certified:,} are" if n_certified > 1 else "The first is"
    return f". {first if n_certified else 'None is'} {equal}"


def is_certificate_needed(report: Report) -> bool:
    """Whether columns were discarded, so that a selection may differ from one over all of them."""
    facts = report.facts
    is_of_pool = "n_certified" in facts and not facts.get("decided_on_arrival")
    return is_of_pool and not facts.get("pool_complete", False)


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

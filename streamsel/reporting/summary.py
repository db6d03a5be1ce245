"""A summary of the results in one sentence, including their significance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamsel._utils.text import count_text, printable
from streamsel.base.report import Report

if TYPE_CHECKING:
    from streamsel.evaluate import SubsampleStability

# Scores that are sensitive to more than correlation, and have no noise floor.
_BEYOND_CORRELATION = {
    "mutual_info": "mutual information",
    "misclassification": "misclassification",
    "margin": "margin",
    "rank": "ranks",
    "xi": "Chatterjee's correlation",
}


def summarize(
    report: Report, *, complete: bool = True, stability: SubsampleStability | None = None
) -> str:
    """Return a summary of the results in one sentence.

    Parameters
    ----------
    report
        The results.
    complete
        Whether all columns were learnt.
    stability
        Selections over subsamples; None if these are not known.
    """
    if not report.columns_seen:
        return "Nothing has been learnt yet."
    text = _of_selected(report) if report.kind == "selected" else _of_components(report)
    text += _stability(stability)
    if complete:
        return f"{text}."
    return f"The run was interrupted; the result is for the columns before that. {text}."


def _stability(found: SubsampleStability | None) -> str:
    """Return a sentence, without full stop, on the stability of the selection."""
    if found is None or found.index is None:
        return ""
    rows = f"{found.rows_drawn:,} of {found.rows:,} rows"
    return f". Selections on {rows} have a stability of {found.index.value:.2f} ({found.rating})"


def relevance_text(value: float) -> str:
    """Format a relevance for display."""
    if 0.0 < value < 0.001:
        return "less than 0.001"
    return f"{value:.2f}" if value >= 0.095 or not value else f"{value:.2g}"


def percent_text(value: float) -> str:
    """Format a share in per cent."""
    return "over 99.9 %" if 0.9995 <= value < 1.0 else f"{100.0 * value:.3g} %"


def count_above_noise(report: Report) -> str | None:
    """Return the number of columns above the noise floor as text; None if it is unknown."""
    n_above: int | None = report.details.get("n_above_noise")
    if n_above is not None:
        return f"{n_above:,}"
    floor, density = report.noise_floor, report.density
    if floor is None or density is None:
        return None
    # A column in the bin that contains the noise floor may be on either side.
    min_count = int(density.counts[:, density.edges[:-1] >= floor].sum())
    max_count = int(density.counts[:, density.edges[1:] > floor].sum())
    if min_count == max_count:
        return f"{min_count:,}"
    return f"at least {min_count:,}" if min_count else None


def score_name(report: Report) -> str | None:
    """Return the score by which variables were selected, if it is not a function of correlation."""
    score: Any = report.parameters.get("score")
    return _BEYOND_CORRELATION.get(score) if report.kind == "selected" else None


def direction_text(report: Report, row: Mapping[str, Any]) -> str:
    """Return the direction of a selected variable in words.

    It is "" if there is none, or if the score measures more than correlation and the correlation is
    not above the noise floor.
    """
    direction = (report.directions or {}).get(row["name"])
    is_other = score_name(report) is not None and row["above_noise"] is False
    return "" if direction is None or is_other else printable(direction.text)


def used_variables(report: Report) -> set[Any]:
    """Return the variables that components are made of."""
    return {loading["variable"] for row in report.results for loading in row["loadings"]}


def _of_selected(report: Report) -> str:
    n, seen = len(report.results), count_text(report.columns_seen, report.candidate)
    if not n:
        return f"Nothing was selected: none of {seen} passes"
    text = f"{n:,} of {seen} selected"
    if report.n_requested is not None and n < report.n_requested:
        text += f" ({report.n_requested:,} requested)"
    text += f". {_compared_with_noise(report)}"
    if report.n_near_duplicates:
        others = "others" if report.n_near_duplicates > 1 else "another"
        are = "are near-duplicates" if report.n_near_duplicates > 1 else "is a near-duplicate"
        text += f"; {report.n_near_duplicates:,} {are} of {others}"
    if report.details.get("decided_on_arrival"):
        return f"{text}. Each column was accepted or rejected on arrival"
    certified = certification_text(report)
    return f"{text}. {certified}" if certified else text


def _compared_with_noise(report: Report) -> str:
    """Return a sentence, without full stop, on the number of variables above the noise floor."""
    n, floor, score = len(report.results), report.noise_floor, score_name(report)
    n_above = sum(row["above_noise"] is True for row in report.results)
    if floor is None:
        return "There is no noise floor to compare them with"
    if floor >= 1.0:
        return "There are too few rows to distinguish a variable from noise"
    verbs = {n: "All exceed" if n > 1 else "It exceeds", 0: "None exceeds", 1: "1 exceeds"}
    text = verbs.get(n_above, f"{n_above:,} exceed")
    if not n_above and n == 1:
        text = "It does not exceed"
    text += f" the noise floor ({relevance_text(floor)})"
    if n > n_above > 0:
        text += f", {n - n_above:,} do{'es' if n - n_above == 1 else ''} not"
    if not n_above:
        best = max(row["relevance"] or 0.0 for row in report.results)
        text += f": the largest relevance is {relevance_text(best)}"
    if score is not None:
        they = "It was" if n == 1 else "They were"
        return f"{they} ranked by {score}, which has no noise floor. By correlation: {text}"
    return text + _doubts(report)


def _doubts(report: Report) -> str:
    """Return a warning about the noise floor itself, which the headline must not contradict."""
    codes = {warning.code for warning in report.warnings}
    if "tails" in codes:
        return ", which is too low for this target and these columns (see the warning)"
    if "inflation" in codes:
        return ", but statistics are inflated (see the warning)"
    if "overdispersion" in codes:
        return ", but the counts vary more than the test assumes (see the warning)"
    return ""


def certification_text(report: Report) -> str:
    """Return a sentence, without full stop, on certified picks; and what certifies the others.

    "" if no certificate is needed.
    """
    if not is_certificate_needed(report):
        return ""
    n, n_certified = len(report.results), report.details["n_certified"]
    equal = "certified to equal a selection over all columns at once"
    if n_certified == n:
        return f"{'It is' if n == 1 else 'All are'} {equal}"
    first = f"The first {n_certified:,} are" if n_certified > 1 else "The first is"
    text = f"{first if n_certified else 'None is'} {equal}"
    if report.parameters.get("exact") is False:
        text += "; --exact, in Python exact=True, certifies all of them by further passes"
    return text


def is_certificate_needed(report: Report) -> bool:
    """Whether columns were discarded, so that a full pass might have selected others."""
    facts = report.details
    has_pool = "n_certified" in facts and not facts.get("decided_on_arrival")
    return has_pool and not facts.get("pool_complete", False)


def _of_components(report: Report) -> str:
    n, facts = len(report.results), report.details
    columns = count_text(report.columns_seen, "column")
    if not n:
        return f"No components were built from {columns}"
    text, have = count_text(n, "component"), "has" if n == 1 else "have"
    if facts.get("any_variable"):
        return f"{text} of hashed names: every variable has weights, without learning"
    if "n_landmarks" in facts:
        n_landmarks = count_text(facts["n_landmarks"], "observation")
        return f"{text} of the similarities of {n_landmarks} over {columns}"
    if report.noise_floor is None:
        return _without_target(text, have, columns, facts)
    n_used = len(used_variables(report))
    of = _of_columns(n_used, report.columns_seen)
    return f"{text} of {of}{_of_target(report, n_used, report.noise_floor)}"


def _of_columns(n_used: int, n: int) -> str:
    columns = count_text(n, "column")
    if n_used != n:
        return f"{count_text(n_used, 'variable')} out of {columns}"
    return columns if n == 1 else f"all {columns}"


def _without_target(text: str, have: str, columns: str, facts: Mapping[str, Any]) -> str:
    variance = facts.get("share_of_variance")
    if variance is None:
        return f"{text} of {columns}, learnt without a target"
    return f"{text}, which {have} {percent_text(variance)} of the variance of {columns}"


def _of_target(report: Report, n_used: int, floor: float) -> str:
    """Return the relevance of components to the target, compared with the noise floor."""
    largest = max(row["relevance"] or 0.0 for row in report.results)
    if report.details.get("target_is_sensitive"):
        # Components should be unrelated to it.
        return f"; their relevance to the sensitive attribute is at most {relevance_text(largest)}"
    above = count_above_noise(report)
    if above == "0":
        return f"; no column exceeds the noise floor ({relevance_text(floor)})"
    text = f", the most relevant with {relevance_text(largest)}"
    # Components of as many columns as rows can fit any target exactly.
    if largest > floor and n_used >= report.rows - 1:
        text += " (components of as many columns as there are rows can fit any target)"
    elif above is None:
        text += (
            f" (a column of noise reaches {relevance_text(floor)}, a component of noise even more)"
        )
    if above is None:
        return text
    return f"{text}; columns above the noise floor ({relevance_text(floor)}): {above}"

"""Count the columns that were not selected, by reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsel.held.part import Held
from streamsel.learner.report import Density, Report

CONSTANT = "do not vary"
GIVEN = "explained by the covariates"
NOISE = "below the noise floor"
ALIKE = "nearly the same as one chosen"
BEYOND_K = "relevant, but not among the k"
NOT_CHOSEN = "above the noise floor, but not chosen"
OTHERS = "not chosen"


def left_out(
    report: Report,
    chosen: Sequence[float],
    alike: Sequence[float],
    held: Held | None,
) -> dict[str, int]:
    """Return the numbers of columns not selected, by reason; they sum to all not selected.

    Parameters
    ----------
    report
        Report of the model.
    chosen, alike
        Relevances of the selected variables, and of other tracked variables similar to them.
    held
        State of the variables.
    """
    floor, n_others = report.noise_floor, max(0, report.columns_seen - len(chosen))
    constant = min(report.columns_constant, n_others)
    n_others -= constant
    reasons = {CONSTANT: constant}
    counts = None if floor is None else _count_varying(held, report.density, floor)
    if counts is None or floor is None:
        reasons |= {ALIKE: len(alike), OTHERS: n_others - len(alike)}
    else:
        varying, below = counts
        explained = min(max(0, n_others + len(chosen) - varying), n_others)
        similar = min(sum(relevance > floor for relevance in alike), n_others - explained)
        below -= sum(relevance <= floor for relevance in chosen)
        below = min(max(0, below), n_others - explained - similar)
        other_reason = BEYOND_K if report.asked == len(chosen) else NOT_CHOSEN
        reasons |= {
            GIVEN: explained,
            NOISE: below,
            ALIKE: similar,
            other_reason: n_others - explained - similar - below,
        }
    return {reason: n for reason, n in reasons.items() if n > 0}


def _count_varying(
    state: Held | None, density: Density | None, floor: float
) -> tuple[int, int] | None:
    """Return the number of non-constant columns, and how many are not above the noise floor.

    Within the bin of relevance that contains the floor, the count is interpolated, unless all
    columns are tracked. None if untracked columns were not counted.
    """
    if state is not None and state.complete:
        relevance = state.relevance()
        varies = relevance >= 0.0
        return int(varies.sum()), int((varies & (relevance <= floor)).sum())
    if density is None:
        return None
    cumulative = np.append(0, np.cumsum(density.counts.sum(axis=0)))
    return int(cumulative[-1]), round(float(np.interp(floor, density.edges, cumulative)))

"""Why columns were not chosen, in words, and how many for which reason."""

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
    """Return how many columns were left out for which reason; together all that were not chosen.

    Parameters
    ----------
    report
        What was found.
    chosen, alike
        Relevances of the variables chosen, and of others held that say nearly the same.
    held
        What is held of the variables.
    """
    floor, rest = report.noise_floor, max(0, report.columns_seen - len(chosen))
    constant = min(report.columns_constant, rest)
    rest -= constant
    found = {CONSTANT: constant}
    known = None if floor is None else _known(held, report.density, floor)
    if known is None or floor is None:
        found |= {ALIKE: len(alike), OTHERS: rest - len(alike)}
    else:
        varying, below = known
        given = min(max(0, rest + len(chosen) - varying), rest)
        above = min(sum(relevance > floor for relevance in alike), rest - given)
        below -= sum(relevance <= floor for relevance in chosen)
        below = min(max(0, below), rest - given - above)
        of_others = BEYOND_K if report.asked == len(chosen) else NOT_CHOSEN
        found |= {GIVEN: given, NOISE: below, ALIKE: above, of_others: rest - given - above - below}
    return {reason: n for reason, n in found.items() if n > 0}


def _known(held: Held | None, density: Density | None, floor: float) -> tuple[int, int] | None:
    """Return how many columns vary, and how many of these are not above the noise floor.

    Of a bin of relevance in which the floor lies the part below it is estimated, unless all columns
    are held. None where nothing is known of those that are not.
    """
    if held is not None and held.complete:
        relevance = held.relevance()
        varies = relevance >= 0.0
        return int(varies.sum()), int((varies & (relevance <= floor)).sum())
    if density is None:
        return None
    sums = np.append(0, np.cumsum(density.counts.sum(axis=0)))
    return int(sums[-1]), round(float(np.interp(floor, density.edges, sums)))

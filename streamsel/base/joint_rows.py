"""Declare the parameter of learners that use joint moments (covariances) on rows."""

from __future__ import annotations

from typing import Any

from streamsel import params
from streamsel.params import param


def max_joint_features() -> Any:
    """Declare the parameter `max_features` of a learner that uses joint moments on rows."""
    return param(
        params.IntRule(1, optional=True),
        default=1000,
        doc="""
        Maximum number of variables tracked on rows, m; None for all. They take $2 m^2$ numbers, and
        twice as many in each direction if there are missing values. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period; from then
        on a new variable is selected only once all rows that `n_aligned_rows` counts are later than
        its first occurrence.
        """,
    )

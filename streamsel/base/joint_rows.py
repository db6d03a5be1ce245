"""Define learners that use joint moments (covariances) of the variables on rows."""

from __future__ import annotations

from typing import Any, ClassVar

from streamsel import params
from streamsel.base.learner import Learner
from streamsel.base.windows import Window
from streamsel.params import param
from streamsel.state.base import VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.row_extension import RowExtension


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


class CrossMomentsOnRows(Learner):
    """Base class of learners that keep samples of columns, and joint moments of rows.

    Its hooks receive a state of either axis, which provides the same members: on rows, that of the
    variables tracked over one aligned window. Windows of rows are supported as for any other
    learner.
    """

    _row_state_type: ClassVar[type[VariableState | RowExtension | Window]] = CrossMoments

    max_features: int | None = max_joint_features()

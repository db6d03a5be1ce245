"""What selectors have in common: they keep original variables."""

from __future__ import annotations

import abc
from collections.abc import Hashable
from typing import Any

from streamsel.base import Learner
from streamsel.rows import as_frame, gather, positions


class Selector(Learner):
    """A learner that keeps original variables."""

    @property
    @abc.abstractmethod
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order of selection."""

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Keep the selected features of a row; all of them before anything is learnt.

        Parameters
        ----------
        x
            A row. Selected features that it lacks stay absent, new ones are dropped.
        """
        if not self.n_columns:
            return dict(x)
        return {name: x[name] for name in self.selected if name in x}

    def transform_many(self, X: Any) -> Any:
        """Keep the selected variables of many rows.

        Parameters
        ----------
        X
            A frame, an array or sparse matrix (whose columns are named from 0), or a
            `ColumnStream`.

        Returns
        -------
        A frame of the same library with the selected columns that X has, in order of
        selection; for anything else an array of shape (n, number selected). X itself before
        anything is learnt.
        """
        if not self.n_columns:
            return X
        frame = as_frame(X)
        if frame is None:
            return gather(X, self.selected)
        _, places = positions(frame, self.selected)
        return frame[:, places].to_native()

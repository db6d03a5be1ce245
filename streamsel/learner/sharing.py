"""Several methods on one Gram matrix, that is filled once and held once."""

from __future__ import annotations

import numpy as np

from streamsel.held.gram_columns import GramColumns
from streamsel.learner.base import Learner
from streamsel.target.kept import same_rows
from streamsel.target.target import NoTarget, Target
from streamsel.target.weights import same_weights


class Sharing(Learner):
    """A learner that keeps the Gram matrix of all columns, and may take over that of another."""

    def learn_from(self, other: Sharing) -> None:
        """Learn the columns that another method has learnt, without reading them again.

        The Gram matrix is held once, until either of the two learns more.

        Parameters
        ----------
        other
            A learner of this family, such as PCA or KernelPCA, with the same `scale` (which the
            latter lacks: as False), and without covariates, that has learnt columns; left as it is.
            Its target may be any: what is held does not depend on it, but for which columns are in
            its pool.

        Raises
        ------
        TypeError
            For a learner of another family.
        ValueError
            Where `scale` or the number of rows differ, either has learnt rows, this one columns, or
            the other has covariates. The model is as it was.

        Notes
        -----
        Of more rows than a Gram matrix is kept of the leading axes are shared, and what columns
        make of another target is known along these alone: five components of PLS came out 3 to 12 %
        off, on 400 rows, where columns learnt for the target give them exactly.
        """
        if not isinstance(other, Sharing):
            raise TypeError(
                "Expected a learner that keeps the Gram matrix of all columns, such as PCA. Got: "
                f"{type(other).__name__}."
            )
        self._refuse_after_rows()
        other._refuse_after_rows()
        held, target = other._columns, other._target
        if self.n_columns or held is None or target is None:
            got = "no columns to learn from" if held is None else f"one that has {self.n_columns}"
            raise ValueError(
                f"Expected a model without columns, and one that has learnt some. Got: {got}.\n"
                "Hint: model.clone() is a fresh model; learn_target(y) comes before learn_from."
            )
        mine = self._expected_target(target.n)
        if mine.n != target.n:
            raise ValueError(f"Expected columns of {mine.n} rows. Got: {target.n}.")
        if not same_weights(mine.weights, target.weights):
            raise ValueError(
                "Expected columns of observations with the same weights. Got: others.\n"
                "Hint: learn_target(y, weights=w) on both, with the same w."
            )
        if not same_rows(mine.kept, target.kept):
            raise ValueError(
                "Expected columns of the same rows. Got: others, of which some were left out.\n"
                "Hint: learn_target(y, missing='drop') leaves out the rows without this target."
            )
        columns = self._new_columns(mine.n)
        assert isinstance(held, GramColumns)  # noqa: S101
        assert isinstance(columns, GramColumns)  # noqa: S101
        if columns.scaled != held.scaled or held.given is not None:
            got = "covariates" if held.given is not None else f"scale={held.scaled}"
            raise ValueError(
                f"Expected a model of scale={columns.scaled} without covariates. Got: {got}.\n"
                "Hint: one Gram matrix serves methods that weigh columns alike."
            )
        if columns.scaled and columns.given is not None:
            raise ValueError(
                "Expected no covariates beside scale=True. Got: some, and what they leave of the "
                "columns has another scale than the columns learnt.\nHint: learn_columns(X)."
            )
        self._check_shared(held)
        self._whole(self._share, other, mine, columns, held)

    def _share(
        self, other: Sharing, mine: Target | NoTarget, columns: GramColumns, held: GramColumns
    ) -> None:
        target = other._target
        columns.share(held, mine.Y[: mine.c] if isinstance(mine, Target) else np.zeros((0, mine.n)))
        self._target, self._columns = mine, columns
        self.n_columns, self._n_constant = other.n_columns, other._n_constant
        self.n_passes = other.n_passes
        # How relevant the columns are to another target is not known.
        same = target is not None and mine.same_as(target)
        summary = other._summary if same else None
        self._summary = None if summary is None else summary.copy()
        self._outdate()

    def _check_shared(self, held: GramColumns) -> None:
        """Refuse what another model holds where that is not enough."""
        if held.rank is not None:
            raise ValueError(
                f"Expected a model that keeps a Gram matrix. Got: one of {held.n} rows, too many "
                "for it, that keeps their leading axes.\nHint: a larger max_rows_gram there."
            )

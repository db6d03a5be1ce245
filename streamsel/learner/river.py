"""How River sees a learner: supervised or not, in every place of a pipeline."""

from __future__ import annotations

import abc
import numbers
from collections.abc import Hashable
from typing import Any, ClassVar

from river import base

from streamsel import params
from streamsel.learner.limits import Turn, learning
from streamsel.params import kind_of, param
from streamsel.target.observed import no_target


class _LearnsAlone:
    """A learner that one thread at a time may teach."""

    _at_work: Turn


class Supervised(
    _LearnsAlone,
    base.MiniBatchSupervisedTransformer,
    base.MiniBatchTransformer,
    base.SupervisedTransformer,
    params.Declared,
):
    """A learner that learns about a target.

    These three bases together are what River's Pipeline and TransformerUnion treat rightly in every
    place: a plain `SupervisedTransformer` is not applied while a pipeline learns (River 0.26).
    """

    supervised: ClassVar[bool] = True

    permutations: int = param(
        params.Whole(0, below=params.MANY),
        default=0,
        doc="""
        How many permuted copies of the target $B$ are compared with every column, in the same pass:
        they give a noise floor and adjusted p-values that assume nothing about how columns and
        target are distributed. 1,000 are usual; 0 assumes normal distributions. They take $2 n B$
        operations a column for each dimension of the target, and $O(B)$ memory. Rows that come
        after columns end them.
        """,
    )
    permutation_seed: int = param(
        params.Whole(0),
        default=0,
        doc="Seed of the permutations; models that are to be merged have the same.",
    )

    @abc.abstractmethod
    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None: ...

    @abc.abstractmethod
    def _learn_rows(self, X: Any, y: Any, w: Any) -> None: ...

    def learn_one(self, x: dict[Hashable, Any], y: Any = None, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            Feature -> real number. A feature that is absent counts as 0, in the rows before it
            first came too; NaN or None as not observed: as if it had its mean there.
        y
            A number, a label, or a dict of several targets: name -> number or label. What the first
            row brings the others must bring too. A class or a target that appears later had been 0.
        w
            How much the row counts, beside 1 for any other; one of weight 0 is not learnt. As in
            River's own estimators: a Pipeline hands it on to the steps that take it.

        Raises
        ------
        ValueError
            For an infinite value, a target that is missing, a model that selects without one, or a
            weight that is negative or not finite, or that a window of rows would have to know of.
        TypeError
            For values that are not numbers, or a target of another form than before. In either case
            the model is as it was.

        Notes
        -----
        Costs O(c) for each feature that the row has, c the number of target columns. A feature
        takes 3c + 6 numbers.
        """
        learning(self._at_work, self._learn_row, x, y, w)

    def learn_many(self, X: Any, y: Any = None, w: Any = 1.0) -> None:
        """Learn many rows, by matrix products: the same as one after another.

        Parameters
        ----------
        X
            A frame of any library that narwhals knows, or an (n, p) array, whose columns are named
            from 0. A null counts as not observed, a variable that has no column as 0.
        y
            An array, list or Series of n numbers or labels, or a frame or an (n, c) array of
            several targets.
        w
            How much the rows count: a number, or one a row.

        Raises
        ------
        ValueError, TypeError
            As `learn_one`, and where X and y are not of the same length. The model is as it was.
        """
        if y is None:
            raise no_target(y)
        learning(self._at_work, self._learn_rows, X, y, w)


class Unsupervised(_LearnsAlone, base.MiniBatchTransformer):
    """A learner that has no target, and is asked for none."""

    supervised: ClassVar[bool] = False

    @abc.abstractmethod
    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None: ...

    @abc.abstractmethod
    def _learn_rows(self, X: Any, y: Any, w: Any) -> None: ...

    def learn_one(self, x: dict[Hashable, Any], *further: Any, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            Feature -> real number. A feature that is absent counts as 0, in the rows before it
            first came too; NaN or None as not observed: as if it had its mean there.
        *further
            Nothing: there is no target, and a weight has to be given by name. What comes here is
            refused.
        w
            How much the row counts, beside 1 for any other; one of weight 0 is not learnt. As in
            River's own estimators: a Pipeline hands it on to the steps that take it.

        Raises
        ------
        ValueError, TypeError
            For a value or a weight that is infinite, or no number, and for a target; the model is
            as it was.
        """
        if further:
            raise _no_target_asked(self, "learn_one(x)", further[0])
        learning(self._at_work, self._learn_row, x, None, w)

    def learn_many(self, X: Any, *further: Any, w: Any = 1.0) -> None:
        """Learn many rows: the same as one after another.

        Parameters
        ----------
        X
            A frame of any library that narwhals knows, or an (n, p) array, whose columns are named
            from 0. A null counts as not observed, a variable that has no column as 0.
        *further
            Nothing, as in `learn_one`.
        w
            How much the rows count: a number, or one a row.

        Raises
        ------
        ValueError, TypeError
            As `learn_one`.
        """
        if further:
            raise _no_target_asked(self, "learn_many(X)", further[0])
        learning(self._at_work, self._learn_rows, X, None, w)


def _no_target_asked(model: Any, call: str, y: Any) -> ValueError:
    got = repr(y) if isinstance(y, numbers.Real | str) else f"a {kind_of(y)}"
    return ValueError(
        f"Expected no target: {type(model).__name__} learns without one. Got: {got} as the second "
        f"argument.\nHint: {call} is all that it takes; a weight has to be given by name, w=2.0."
    )

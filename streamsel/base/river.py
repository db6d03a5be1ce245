"""Define River's interface of learners: supervised and unsupervised transformers."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Protocol

from river import base

from streamsel import params
from streamsel.base.guard import SingleThreadGuard, learn_exclusively
from streamsel.params import type_name
from streamsel.targets.observation import missing_target_error


class _RowLearner(Protocol):
    """A learner of rows that one thread at a time can train."""

    _guard: SingleThreadGuard

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None: ...

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None: ...


class Supervised(
    base.MiniBatchSupervisedTransformer,
    base.MiniBatchTransformer,
    base.SupervisedTransformer,
    params.Declared,
):
    """Base class of learners that have a target.

    River's Pipeline and TransformerUnion handle a supervised transformer correctly at every
    position only if it has all three of these bases: a plain `SupervisedTransformer` is not applied
    while a pipeline learns (River 0.26).
    """

    _is_supervised: ClassVar[bool] = True

    def learn_one(self: _RowLearner, x: dict[Hashable, Any], y: Any = None, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            Feature -> real number. An absent feature counts as 0, also in the rows before its first
            occurrence; NaN or None counts as not observed, and is replaced by the mean.
        y
            A number, a label, or a dict of several targets: name -> number or label. Every row must
            have the targets of the first row. A class or target that appears later counts as 0 in
            earlier rows.
        w
            Weight of the row; a row of weight 0 is not learnt. As in River's own estimators, a
            Pipeline passes it to the steps that accept it.

        Raises
        ------
        ValueError
            For an infinite value, a missing target, a model that selects without a target, a weight
            that is negative or not finite, and a weight other than 1 for a learner that uses
            windows of rows.
        TypeError
            For values that are not numbers, or a target of another form than before. After either
            error the model is unchanged.

        Notes
        -----
        Costs O(c) for each feature of the row, c the number of target columns. Each feature takes
        memory for 3c + 6 numbers.

        Examples
        --------
        A feature that first appears later counts as 0 in earlier rows:

        >>> from streamsel import SelectKBest
        >>> model = SelectKBest(1)
        >>> for i in range(40):
        ...     x = {"a": float(i % 2), "b": None if i % 5 else 1.0}
        ...     model.learn_one(x | ({"late": float(i)} if i >= 30 else {}), i % 2 > 0)
        >>> model.selected, model.n_columns, model.n_rows
        (['a'], 3, 40)
        """
        learn_exclusively(self._guard, self._learn_row, x, y, w)

    def learn_many(self: _RowLearner, X: Any, y: Any = None, w: Any = 1.0) -> None:
        """Learn many rows by matrix products, with the same result as one after another.

        Parameters
        ----------
        X
            A frame of any library supported by narwhals, or an (n, p) array, whose columns are
            named from 0. A null counts as not observed, a variable without a column as 0.
        y
            An array, list or Series of n numbers or labels, or a frame or (n, c) array of several
            targets.
        w
            Weights of the rows: a number, or one number per row.

        Raises
        ------
        ValueError, TypeError
            As `learn_one`, and if the lengths of X and y differ. The model is then unchanged.

        Notes
        -----
        The number of operations is that of `learn_one` for each row, without the cost of Python
        for each feature.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
        >>> model = SelectKBest(1)
        >>> model.learn_many(X[:30], X["b"][:30])
        >>> model.learn_many(X[30:], X["b"][30:])
        >>> model.selected, model.n_rows
        (['b'], 60)
        """
        if y is None:
            raise missing_target_error(y)
        learn_exclusively(self._guard, self._learn_rows, X, y, w)


class Unsupervised(base.MiniBatchTransformer):
    """Base class of learners without a target."""

    _is_supervised: ClassVar[bool] = False

    _fixed_parameters: ClassVar[Mapping[str, Any]] = {
        "covariates": None,
        "target_type": "auto",
        "permutations": 0,
        "permutation_seed": 0,
    }

    def learn_one(self: _RowLearner, x: dict[Hashable, Any], *extra: Any, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            Feature -> real number. An absent feature counts as 0, also in the rows before its first
            occurrence; NaN or None counts as not observed, and is replaced by the mean.
        *extra
            Not accepted: there is no target, and a weight must be passed by name. Raises an error.
        w
            Weight of the row; a row of weight 0 is not learnt. As in River's own estimators, a
            Pipeline passes it to the steps that accept it.

        Raises
        ------
        ValueError, TypeError
            For a value or a weight that is infinite, or not a number, and for a target. The model
            is then unchanged.

        Examples
        --------
        >>> from streamsel import PCA
        >>> model = PCA(1, warm_up=5)
        >>> for i in range(20):
        ...     model.learn_one({"a": float(i), "b": 2.0 * i, "c": float(i % 2)})
        >>> model.n_rows, model.components, sorted(model.loadings)
        (20, ['pca0'], ['a', 'b', 'c'])
        """
        if extra:
            raise _unexpected_target_error(self, "learn_one(x)", extra[0])
        learn_exclusively(self._guard, self._learn_row, x, None, w)

    def learn_many(self: _RowLearner, X: Any, *extra: Any, w: Any = 1.0) -> None:
        """Learn many rows, with the same result as one after another.

        Parameters
        ----------
        X
            A frame of any library supported by narwhals, or an (n, p) array, whose columns are
            named from 0. A null counts as not observed, a variable without a column as 0.
        *extra
            Not accepted, as in `learn_one`.
        w
            Weights of the rows: a number, or one number per row.

        Raises
        ------
        ValueError, TypeError
            As `learn_one`. The model is then unchanged.

        Notes
        -----
        The number of operations is that of `learn_one` for each row, without the cost of Python
        for each feature.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import PCA
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> model = PCA(1)
        >>> model.learn_many(X[:30])
        >>> model.learn_many(X[30:])
        >>> model.n_rows, model.n_columns
        (60, 3)
        """
        if extra:
            raise _unexpected_target_error(self, "learn_many(X)", extra[0])
        learn_exclusively(self._guard, self._learn_rows, X, None, w)


def _unexpected_target_error(model: Any, call: str, y: Any) -> ValueError:
    got = repr(y) if isinstance(y, numbers.Real | str) else f"a {type_name(y)}"
    return ValueError(
        f"Expected no target: {type(model).__name__} learns without one. Got: {got} as the second "
        f"argument.\nHint: call {call}; pass a weight by name, w=2.0."
    )

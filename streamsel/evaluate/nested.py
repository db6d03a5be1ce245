"""Nested cross-validation of selections: learnt in outer folds, with a size from inner folds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import asdict
from itertools import chain, compress
from typing import Any

import numpy as np

from streamsel._utils.sparse import dense_column
from streamsel.base.report import Report
from streamsel.data.chunks import Block
from streamsel.evaluate._baselines import RandomColumns
from streamsel.evaluate._models import (
    SCORE_NAMES,
    make_predictor,
    score_on_principal_axes,
    score_predictor,
)
from streamsel.evaluate.folds import FoldTask, NestedFolds
from streamsel.evaluate.model_batch import (
    MAX_BYTES,
    ModelBatch,
    Rows,
    check_learner,
    prepared_learner,
    row_subset,
    takes_groups,
)
from streamsel.evaluate.nested_result import ALL, NONE, RANDOM, SELECTED, NestedFold, NestedScores
from streamsel.evaluate.similarity import Floats, as_numbers
from streamsel.evaluate.stored_columns import first_in_groups
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import numeric_stream
from streamsel.targets.encoding import encode_covariates, encode_target, only_column
from streamsel.targets.glm import FAMILIES


class SelectedFeatures:
    """Selected columns as features.

    Parameters
    ----------
    stream
        All columns.
    names
        The columns to read, once.
    """

    def __init__(self, stream: ColumnStream, names: list[Hashable]) -> None:
        self._stream = stream
        self._columns = stream.take(names) if names else {}

    def columns(self, names: list[Hashable]) -> Floats:
        """Return columns that were read, as a matrix."""
        if not names:
            return np.empty((self._stream.n_rows or 0, 0))
        columns = [dense_column(self._columns[name]) for name in names]
        return np.column_stack(columns).astype(np.float64, copy=False)


def output_names(model: Any) -> list[Hashable]:
    """Return the names of the variables (of groups, their members) or components of a model."""
    if not hasattr(model, "selected"):
        return list(model.components)
    return list(dict.fromkeys(chain.from_iterable(model.members.values())))


def extract_features(
    model: Any, stream: ColumnStream, train: Rows, test: Rows
) -> tuple[Floats, Floats]:
    """Return the components of the training rows and of the test rows."""
    train_stream = row_subset(stream, train)
    if model._wants_second_pass:
        model.learn_loadings(train_stream)
    test_stream = row_subset(stream, test)
    return _numbers(model.transform_many(train_stream)), _numbers(model.transform_many(test_stream))


def _numbers(values: Any) -> Floats:
    return as_numbers(values, "features")


# Numbers of all columns that are prepared at once.
_PIECE_SIZE = 2**19
# Maximum number of random variables per fold; otherwise as many as were selected.
_MAX_RANDOM = 1000


def nested_scores(
    learner: Any,
    X: Any,
    y: Any,
    *,
    covariates: Any = None,
    sizes: Iterable[int] | None = None,
    model: Any = None,
    target_type: str | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    n_inner: int = 3,
    seed: int = 0,
    level: float = 0.95,
    max_bytes: int = MAX_BYTES,
) -> NestedScores:
    """Return the scores of selected or extracted variables on held-out rows.

    In each fold, the learner learns the training rows, and a model of scikit-learn is fitted to the
    selected or extracted variables and scored on the held-out rows. Inner folds of the training
    rows select the best of several sizes. The scores are compared with those of as many variables
    drawn at random, of all variables, and of none. Selected groups are represented by all their
    columns, and as many single columns are drawn.

    Parameters
    ----------
    learner
        A selector or an extractor; it is not changed.
    X
        The columns, as in `learn_columns`, from a source that can be read more than once; in
        groups too (`stream.grouped`).
    y
        (n,) classes or numbers.
    covariates
        Covariates of the learner, as in `learn_target`. The predictive model has them as features
        too, in addition to the selected variables, those drawn at random, all, or none.
    sizes
        Values of `k`, or of `n_components`, to compare; None for the learner's own.
    model
        "logistic" (the default for classes), "ridge" (for numbers) or "knn", after a
        StandardScaler; or a model of scikit-learn, which is used as it is. The penalty of the first
        two is selected by cross-validation of the training rows.
    target_type
        Whether y holds classes, as the learner's parameter of this name; None for the learner's.
    n_folds, n_repeats
        Number of outer folds, and of random partitions into them.
    n_inner
        Number of inner folds, if there are several sizes.
    seed
        Random seed of the folds and of the random variables.
    level
        Confidence level of the intervals.
    max_bytes
        Memory limit in bytes, for the models of a pass together, and for a copy of all columns if
        all are to be evaluated. The copy counts as float64 for a `model` of scikit-learn, and if
        there are more rows than columns.

    Raises
    ------
    ValueError, TypeError
        If the learner raises it, for survival and several targets, and for fewer rows, or rows of a
        class, than folds.
    ImportError
        If scikit-learn is not installed: ``pip install "streamsel[evaluate]"``.

    See Also
    --------
    cross_validated_accuracy : any classifier and one size, for columns in memory.

    Notes
    -----
    All ``n_repeats * n_folds * len(sizes) * (1 + n_inner)`` models of all folds and sizes learn in
    as few passes over the columns as `max_bytes` allows; then the selected columns are read. If a
    copy of all columns, as in `subsample_stability`, fits into `max_bytes`, they are read only
    once. Otherwise an extractor that needs a second pass for its loadings makes one per model, and
    ``exact=True`` as many as required.

    With more columns than training rows, a named model of all of them is fitted to the principal
    coordinates of the rows, which follow from their inner products and predict the same.

    Scores for classes are balanced accuracy, accuracy, and the one-versus-rest area under the ROC
    curve, averaged over classes; for numbers R² on the held-out rows.

    Folds share training rows, so their scores are not independent. Intervals are Student's t with
    the corrected variance of Nadeau and Bengio[^1], clipped to the range of the score; those of
    differences are paired, fold by fold.

    References
    ----------
    [^1]: Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. Machine Learning
    52, 239–281.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import SelectKBest
    >>> from streamsel.evaluate import nested_scores
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> found = nested_scores(SelectKBest(), X, X[:, 3] - X[:, 7], sizes=[1, 2])
    >>> [fold.size for fold in found.folds]
    [2, 2, 2, 2, 2]
    >>> found.score().value > 0.99, found.difference("random").low > 0.0
    (True, True)
    """
    y = only_column(y)
    stream = numeric_stream(X, groups=takes_groups(learner, y, covariates))
    if not stream.reiterable:
        raise ValueError(
            "Expected X: a source that can be read more than once, because selected columns are "
            "read at the end. Got: a source that can be read only once."
        )
    nested = NestedCrossValidation(
        learner,
        stream,
        y,
        covariates=covariates,
        sizes=sizes,
        model=model,
        target_type=target_type,
        folds=NestedFolds(n_folds, n_repeats, n_inner, seed, level),
        max_bytes=max_bytes,
    )
    nested.model_batch.learn(stream, nested.record)
    return nested.result()


class NestedCrossValidation:
    """Folds, and the models that learn them, before and during the passes over the columns.

    Parameters
    ----------
    learner, y, covariates, sizes, model, target_type
        As in `nested_scores`.
    stream
        All columns, to be read after the passes in which they are learnt.
    folds
        The numbers of folds.
    max_bytes
        As in `nested_scores`.

    Attributes
    ----------
    model_batch
        The models, which learn columns together.
    first_report
        The report of the first model, once it has learnt all columns.
    """

    first_report: Report

    def __init__(
        self,
        learner: Any,
        stream: ColumnStream,
        y: Any,
        *,
        covariates: Any,
        sizes: Iterable[int] | None,
        model: Any,
        target_type: str | None,
        folds: NestedFolds,
        max_bytes: int,
    ) -> None:
        check_learner(learner)
        self._learner, self._stream, self._folds = learner, stream, folds
        self.sizes = None if sizes is None else sorted(set(sizes))
        if self.sizes == []:
            raise ValueError("Expected sizes: at least one size, or None. Got: no size.")
        self.is_class, self._y = _one_target(y, target_type or learner.target_type)
        self._model = make_predictor(model, is_class=self.is_class)
        self._rotate = model is None or isinstance(model, str)
        self._covariates: Floats = np.empty((len(self._y), 0))
        if covariates is not None:
            self._covariates = encode_covariates(covariates, learner.covariates).columns
        self._tasks = list(folds.tasks(self._y, self.sizes, is_class=self.is_class))
        if learner._is_supervised:
            # All rows decide whether numbers are classes, instead of each fold by itself.
            own = learner.clone({"target_type": target_type or learner.target_type})
            learner, _ = prepared_learner(own, y, covariates, None)
        models = [(learner.clone(self._sized(task.size)), task.train) for task in self._tasks]
        # Names of each model's variables, and for extractors training and test features.
        self._outputs: dict[int, tuple[list[Hashable], tuple[Floats, Floats] | None]] = {}
        self.model_batch = ModelBatch(
            models,
            y if learner._is_supervised else None,
            covariates,
            n=len(self._y),
            finish=self._finish,
            max_bytes=max_bytes,
            keep_columns=True,
        )
        self._max_bytes, self._n_columns = max_bytes, 0
        self._in_groups: set[Hashable] = set()
        self._random_names = [
            RandomColumns(_MAX_RANDOM, (folds.seed, outer)) for outer in range(folds.n_outer)
        ]

    def _sized(self, size: int | None) -> dict[str, int]:
        if size is None:
            return {}
        parameters = self._learner._get_params()
        for name in ("k", "n_components"):
            if name in parameters:
                return {name: size}
        raise ValueError(
            f"Expected sizes=None: {type(self._learner).__name__} determines the number by itself. "
            f"Got: {size}."
        )

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the learner; without its size if that is one of several."""
        parameters = dict(self._learner._get_params())
        if self.sizes is None:
            return parameters
        sized = self._sized(self.sizes[0])
        if len(self.sizes) == 1:
            return parameters | sized
        return {name: value for name, value in parameters.items() if name not in sized}

    def record(self, block: Block) -> None:
        """Record a block that was learnt."""
        is_new = first_in_groups(block, self._in_groups)
        names = block.names if is_new is None else list(compress(block.names, is_new))
        self._n_columns += len(names)
        for sample in self._random_names:
            sample.record(names)

    def _finish(self, number: int, model: Any) -> None:
        """Store the output of a model that has learnt all columns."""
        task, features = self._tasks[number], None
        if not hasattr(model, "selected"):
            features = extract_features(model, self._source(), task.train, task.test)
        self._outputs[number] = (output_names(model), features)
        if number == 0:
            self.first_report = model.report()

    def _source(self) -> ColumnStream:
        """Return all columns: the stored ones, or the stream."""
        return self.model_batch.columns.stream() or self._stream

    def result(self) -> NestedScores:
        """Return the scores, after the last column; selected columns are read."""
        features = SelectedFeatures(self._source(), self._names_needed())
        by_task = {}
        for number, task in enumerate(self._tasks):
            names, features_of = self._outputs[number]
            if features_of is None:
                values = features.columns(names)
                features_of = values[task.train], values[task.test]
            key = task.outer, task.size, task.inner
            by_task[key] = (self._predicted(features_of, task), names)
        outers = {task.outer: task for task in self._tasks if task.inner is None}
        folds = []
        for outer, task in outers.items():
            size = self._best(outer, by_task)
            mine, names = by_task[outer, size, None]
            scores = {SELECTED: mine}
            random_columns = features.columns(self._random_names[outer].sample(len(names)))
            scores[RANDOM] = self._predicted(
                (random_columns[task.train], random_columns[task.test]), task
            )
            if self._tries_all:
                scores[ALL] = self._predicted_from_all(task)
            none = np.empty((len(self._y), 0))
            scores[NONE] = self._predicted((none[task.train], none[task.test]), task)
            folds.append(NestedFold(size, names, len(task.train), len(task.test), scores))
        return NestedScores(
            learner=type(self._learner).__name__,
            parameters=self._parameters(),
            rows=len(self._y),
            n_columns=self._n_columns,
            is_class=self.is_class,
            sizes=self.sizes,
            folds=folds,
            all_excluded_reason=None if self._tries_all else self._all_excluded_reason(),
            **asdict(self._folds),
        )

    def _names_needed(self) -> list[Hashable]:
        """Return the columns that models of selectors need, and the random ones."""
        needed: dict[Hashable, None] = {}
        for number, task in enumerate(self._tasks):
            names, made = self._outputs[number]
            if made is None:
                needed.update(dict.fromkeys(names))
            if task.inner is None:
                needed.update(dict.fromkeys(self._random_names[task.outer].sample(len(names))))
        return list(needed)

    def _predicted(self, pair: tuple[Floats, Floats], task: FoldTask) -> dict[str, float]:
        rows = task.train, task.test
        if self._covariates.shape[1]:
            train, test = (
                np.hstack([x, self._covariates[of]]) for x, of in zip(pair, rows, strict=True)
            )
            pair = train, test
        return self._scores(pair, task)

    def _scores(self, pair: tuple[Floats, Floats], task: FoldTask) -> dict[str, float]:
        train, test = pair
        return score_predictor(
            self._model,
            train,
            test,
            self._y,
            (task.train, task.test),
            is_class=self.is_class,
            rotate=self._rotate,
        )

    @property
    def _tries_all(self) -> bool:
        """Whether all columns are evaluated: they are stored, and as features within the limit."""
        columns = self.model_batch.columns
        return columns.n_stored > 0 and (
            self._by_inner_products or self._matrix_bytes <= self._max_bytes
        )

    @property
    def _by_inner_products(self) -> bool:
        """Whether inner products of the rows replace all columns, in every fold."""
        p = self._n_columns + self._covariates.shape[1]
        return self._rotate and p > max(len(task.train) for task in self._tasks)

    @property
    def _matrix_bytes(self) -> int:
        return 8 * len(self._y) * self._n_columns

    def _predicted_from_all(self, task: FoldTask) -> dict[str, float]:
        """Return the scores of all columns, and the covariates."""
        pieces = chain(self.model_batch.columns.pieces(_PIECE_SIZE), [self._covariates])
        pairs = ((X[task.train], X[task.test]) for X in pieces if X.shape[1])
        if self._by_inner_products:
            rows = task.train, task.test
            return score_on_principal_axes(
                self._model, pairs, self._y, rows, is_class=self.is_class
            )
        train, test = (np.hstack(parts) for parts in zip(*pairs, strict=True))
        return self._scores((train, test), task)

    def _best(self, outer: int, by_task: dict[Any, Any]) -> int | None:
        """Return the size with the best inner score, the smallest of equal ones."""
        if self.sizes is None or len(self.sizes) == 1:
            return None if self.sizes is None else self.sizes[0]
        score, inner = SCORE_NAMES[self.is_class][0], range(self._folds.n_inner)
        means = [
            float(np.mean([by_task[outer, size, i][0][score] for i in inner]))
            for size in self.sizes
        ]
        return self.sizes[int(np.argmax(means))]

    def _all_excluded_reason(self) -> str:
        p, limit = self._n_columns, self._max_bytes
        n_bytes = (
            self.model_batch.columns.n_bytes if self._by_inner_products else self._matrix_bytes
        )
        return (
            f"{p:,} columns of {len(self._y):,} rows take {n_bytes / 1e6:,.0f} MB, more than the "
            f"limit of {limit / 1e6:,.0f} MB"
        )


def _one_target(y: Any, kind: str) -> tuple[bool, Any]:
    """Return whether y holds classes, and their codes or the numbers, (n,)."""
    if kind == "survival":
        raise ValueError(
            "Expected classes or numbers, as targets of scikit-learn models. Got: "
            "target_type='survival'.\nHint: subsample_stability (streamsel stability) takes it."
        )
    encoded = encode_target(y, FAMILIES.get(kind, kind), by_values=True)
    if encoded.is_class:
        return True, encoded.columns.argmax(axis=1)
    if encoded.columns.shape[1] != 1 or encoded.kinds:
        raise ValueError(
            f"Expected one target, classes or numbers. Got: {encoded.columns.shape[1]} columns."
        )
    bad = np.flatnonzero(~np.isfinite(encoded.columns[:, 0]))
    if bad.size:
        raise ValueError(
            f"Expected a finite target. Got: {encoded.columns[bad[0], 0]} in row {bad[0]}.\n"
            "Hint: leave out the rows whose target is missing, in the columns too."
        )
    return False, encoded.columns[:, 0]

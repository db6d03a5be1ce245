"""Define the base class of all learners: selectors and extractors, on columns and on rows."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from river import base as river

from streamsel import params
from streamsel._utils.sparse import is_sparse
from streamsel.base.block_callback import OnBlock
from streamsel.base.caching import cached_until_update
from streamsel.base.columns import ColumnPhase
from streamsel.base.direction import class_sizes_of
from streamsel.base.groups import group_block
from streamsel.base.guard import SingleThreadGuard, learn_exclusively, reads_consistently
from streamsel.base.learn_columns import learn_columns
from streamsel.base.learn_target import learn_target, refuse_weights
from streamsel.base.merging import (
    Pass,
    check_mergeable,
    merge_columns,
    merge_columns_of_rows,
    merge_rows,
)
from streamsel.base.pending_snapshot import PendingSnapshot
from streamsel.base.phase import Phase
from streamsel.base.precompile import compile_by_rehearsal
from streamsel.base.refresh import RefreshSchedule
from streamsel.base.relatedness import Relatedness
from streamsel.base.report import NOISE_LEVEL, Density, Report, number
from streamsel.base.restore import expect_possible, expect_reachable, restore_phase
from streamsel.base.significance import OwnTests, Significance, check_noise_floor
from streamsel.base.stop_condition import Until
from streamsel.base.undo import learn_atomically, learn_in_session
from streamsel.base.windows import Window, WindowPhase
from streamsel.data.chunks import Block, Chunk, Stats
from streamsel.data.columns import observed_moments
from streamsel.params import param
from streamsel.serialization.json_values import deep_copied
from streamsel.serialization.schema import (
    NamesKind,
    expect,
    expect_finite,
)
from streamsel.state.base import ColumnState, Floats, VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension
from streamsel.state.sketch import Stateless
from streamsel.stream import ColumnStream, as_stream, grouped
from streamsel.stream.inputs import numeric_stream, restricted
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.observation import Observation
from streamsel.targets.reml import VarianceComponents
from streamsel.targets.rows import RowTarget
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import KINDS, NoTarget, Target
from streamsel.targets.weights import ObservationWeights
from streamsel.targets.whitening import Whitening


class Learner(river.MiniBatchTransformer, params.Declared):
    """Base class of selectors and extractors: one state, filled by columns and by rows.

    A subclass implements the abstract members; CONTRIBUTING.md, *Add a method*, has the steps.

    A model may be used by one thread at a time: a second thread that tries to learn raises
    RuntimeError. The threads that `n_jobs` starts are managed by the model itself.
    """

    # All that is learnt belongs to `_phase` (`ColumnPhase`, `RowPhase`, `WindowPhase` or
    # `CountPhase`); `_refresh` owns the snapshot that transforms use, and `_guard` admits one
    # thread at a time.

    # The state that columns fill.
    _column_state_type: ClassVar[type[ColumnState]]
    # The state on rows: `Moments`; a state that extends them; a tumbling `Window`, which requires a
    # parameter `window_size`; or `Stateless`, no state at all.
    _row_state_type: ClassVar[type[VariableState | RowExtension | Window | Stateless]] = Moments
    # Whether there is a target, set by the base class `Supervised` or `Unsupervised`.
    _is_supervised: ClassVar[bool]
    # Whether `learn_target(None)` is allowed, for unsupervised selection.
    _takes_no_target: ClassVar[bool] = False
    # Whether columns may always have missing values, NaN; see `_allows_missing`.
    _takes_missing: ClassVar[bool] = False
    # Whether text, categories and dates of tables are encoded.
    _encodes_tables: ClassVar[bool] = True
    # Whether a row of weight 2 counts as two rows, as scikit-learn requires of sample weights. It
    # does not where the number of rows enters a p-value, a likelihood, a variance or a batch.
    _weights_replicate_rows: ClassVar[bool] = True
    # Whether every column is tested by itself, so that inner products of two are not needed.
    _is_univariate: ClassVar[bool] = False

    fading_factor: float = param(
        params.FloatRule(0.0, below=1.0),
        default=0.0,
        doc="""
        In [0, 1): the fraction of its weight that a row loses with every later row; 0 forgets
        nothing. As in River, the closer to 1, the faster old rows are forgotten.
        """,
    )
    max_features: int | None = param(
        params.IntRule(1, optional=True),
        default=None,
        doc="""
        Maximum number of variables tracked on rows; None for all. When a new variable needs room,
        the least relevant ones are evicted, except those in use or in their grace period.
        """,
    )
    grace_period: int = param(
        params.IntRule(1),
        default=100,
        doc="Number of rows during which a new variable cannot be evicted.",
    )
    covariates: tuple[Hashable, ...] | None = param(
        params.NamesRule(),
        default=None,
        doc="""
        Features of a row to adjust for, such as age or batch: they are projected out of the target
        and the variables, and are not variables themselves. On columns they are passed with the
        target, `learn_target(y, covariates=Z)`, and this parameter gives their names.
        """,
    )
    target_type: str = param(
        params.ChoiceRule(KINDS),
        default="auto",
        doc="""
        `"auto"` treats labels as classes and numbers as quantities, except on columns, where a
        single target of whole numbers with 2 to 20 distinct values, at most one per two rows, is
        treated as classes; `"class"` treats any numbers as classes; `"numeric"` treats numbers as
        quantities and rejects labels. On columns only: `"survival"` takes times and events, and
        explains the martingale residuals of the null model; `"binary"` takes two classes, and
        `"count"` whole numbers of at least 0: relevance is that of the score test of a logistic
        or Poisson regression, given the covariates. The second class in sorted order is modelled.
        """,
    )
    permutations: int = param(
        params.IntRule(0, below=params.MAX_COUNT),
        default=0,
        doc="""
        Number $B$ of permuted copies of the target that every column is compared with, in the same
        pass: they give a noise floor and adjusted p-values without assumptions on the distributions
        of columns and target, exact without covariates and relatedness and approximate otherwise.
        1,000 is usual; 0 assumes normal distributions. The cost is $2 n B$ operations per column
        for each dimension of the target, and $O(B)$ memory. Permutation results are dropped when
        rows are learnt after columns.
        """,
    )
    permutation_seed: int = param(
        params.IntRule(0),
        default=0,
        doc="Seed of the permutations; it must be equal in models that are to be merged.",
    )
    n_jobs: int = param(
        params.JobsRule(),
        default=1,
        doc="""
        Number of threads that process columns; -1 for all cores. The result does not depend on it.
        Several threads are faster with several targets or classes; with a single target, only for
        blocks of at least ten million values.
        """,
    )
    refresh_factor: float = param(
        params.FloatRule(1.0),
        default=2.0,
        doc="""
        On rows a transform uses the snapshot that `in_use` shows. The snapshot is refreshed once
        the number of new rows is `refresh_factor` - 1 times the number of rows it is based on (in
        rows of equal weight, if rows fade): at 2 whenever the number of rows has doubled, at 1 at
        every row. Other results always reflect the current state. Extractors with joint moments
        of more than about 210 variables compute a refresh in another thread: it comes into use a
        fixed number of rows later, such as 76 for 1,000 variables and rows, and before the next
        refresh is due. Until then a row waits for it about 3 ms at most, and it takes the memory
        of a copy of the model.
        """,
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "report" in vars(cls):
            setattr(cls, "report", reads_consistently(vars(cls)["report"]))  # noqa: B010 (a method)

    def __post_init__(self) -> None:
        super().__post_init__()
        cls = type(self)
        # Not when the class is defined: `abc` takes one that is refused there for its base class.
        if not hasattr(cls, "_is_supervised"):
            raise TypeError(
                f"{cls.__name__} does not declare whether it has a target.\n"
                "Hint: make Supervised or Unsupervised its last base class."
            )
        if issubclass(cls._row_state_type, Window) and not hasattr(self, "window_size"):
            raise TypeError(
                f"{cls.__name__} learns rows by windows, but has no parameter window_size.\n"
                "Hint: window_size: int = param(params.IntRule(2), default=200)."
            )
        if self._by_window:
            got = f"fading_factor={self.fading_factor!r}"
            self._refuse_with_windows(self.fading_factor != 0.0, "fading_factor=0.0", got)
            got = f"covariates={self.covariates!r}"
            self._refuse_with_windows(self.covariates is not None, "covariates=None", got)
        self._check_parameters()
        # Guards against concurrent use: a state changes in several steps.
        self._guard = SingleThreadGuard()
        # All that is learnt.
        self._phase: Phase = ColumnPhase(without_target=not self._is_supervised)
        self._refresh = RefreshSchedule(
            self.refresh_factor,
            self._warm_up,
            self.fading_factor,
            is_always=self._refreshes_always,
        )
        # Results computed from the state, kept until the next update.
        self._cache: dict[str, Any] = {}

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that contradict each other."""

    def _refuse_with_windows(self, is_refused: bool, expected: str, got: str) -> None:
        if is_refused:
            raise ValueError(
                f"Expected {expected}: {type(self).__name__} with these parameters needs samples, "
                f"not only moments, and learns rows by windows. Got: {got}.\n"
                "Hint: a window drops all rows before it; only moments support covariates."
            )

    def _check_exceeds(self, size: str, limit: int | None, *names: str) -> None:
        """Raise ValueError for bounds not above `limit`, the value of the parameter `size`."""
        for name in names:
            bound = getattr(self, name)
            if bound is not None and limit is not None and bound <= limit:
                expected = f"None or above {size} = {limit}"
                raise params.parameter_error(type(self).__name__, name, expected, bound)

    @property
    def _wants_second_pass(self) -> bool:
        """Whether a second pass over the columns, by `learn_loadings`, would add results."""
        return False

    @property
    def _stop_reason(self) -> str:
        """Why there are fewer results than requested, given enough columns and rows."""
        return "no other column adds explained variance"

    @property
    def _by_window(self) -> bool:
        return issubclass(self._row_state_type, Window)

    @property
    def _window_size(self) -> int:
        size: int = getattr(self, "window_size")  # noqa: B009 (declared where it is needed)
        return size

    # Hooks: methods may override these

    def _check_target(self, c: int, *, is_class: bool) -> None:
        """Raise ValueError if the parameters do not support a target of c columns."""

    def _refuses_target(self, c: int, *, is_class: bool) -> bool:
        """Whether the parameters do not support a target of c columns."""
        try:
            self._check_target(c, is_class=is_class)
        except ValueError:
            return True
        return False

    @property
    def _needs_classes(self) -> bool:
        """Whether the method requires classes of several rows each."""
        return self._refuses_target(1, is_class=False)

    @property
    def _row_target_type(self) -> str:
        """Target type on rows; by default the parameter `target_type`."""
        return self.target_type

    def _variable_kernel(self) -> VariableKernel:
        """Return the kernel between variables."""
        return VariableKernel()

    @property
    def _is_signed(self) -> bool:
        """Whether correlations are compared with their sign, so that negative ones are small."""
        return False

    @property
    def _takes_covariates(self) -> bool:
        """Whether columns may have covariates; windows of rows do not support them."""
        return not self._by_window

    @property
    def _takes_weights(self) -> bool:
        """Whether observations may have weights: true if means and inner products suffice."""
        return self._takes_covariates and not self._allows_missing

    @property
    def _allows_missing(self) -> bool:
        """Whether columns may have missing values, NaN, with these parameters."""
        return self._takes_missing

    @property
    def _takes_generated(self) -> bool:
        """Whether columns need not be made: if only the moments of most of them are used."""
        return not self._allows_missing

    def _observed_moments(self, chunk: Chunk, stats: Stats) -> Stats:
        """Return the moments of columns from their observed values."""
        return observed_moments(chunk, stats)

    @property
    def _needs_single_source(self) -> bool:
        """Whether a single source is learnt, in several passes until the answer is certified."""
        return False

    @property
    def _refreshes_always(self) -> bool:
        """Whether transforms use the current results, so that no snapshot is stored."""
        return False

    @abc.abstractmethod
    def _new_columns(self, n: int) -> ColumnState:
        """Return an empty state for columns of n observations."""

    def _new_groups(self, n: int) -> ColumnState:
        """Return an empty state for groups of columns of n observations, if the method has one."""
        raise NotImplementedError

    @classmethod
    def _supports_groups(cls) -> bool:
        """Whether groups of columns can be selected as one."""
        return cls._new_groups is not Learner._new_groups

    @property
    def _takes_groups(self) -> bool:
        """Whether the columns of numbers of a category are learnt as a group."""
        phase, target = self._phase, self._target
        # Rows of a model with groups do not fade.
        may_have = self._supports_groups() and not self.fading_factor
        if target is None or not isinstance(phase, ColumnPhase) or not may_have:
            return False
        try:
            phase.no_groups(self, target)
        except ValueError:
            return False
        return True

    def _add_columns(self, state: ColumnState, chunk: Chunk, stats: Stats) -> None:
        """Learn the leading columns of a chunk, in order, as many as `stats` has; all are valid."""
        state.admit(chunk, stats, self.n_columns)

    def _new_row_extension(self) -> RowExtension | None:
        """Return the extension of the moments on rows, if any, which continues from the columns."""
        kind = self._row_state_type
        return kind(self.fading_factor) if issubclass(kind, CrossMoments) else None

    @abc.abstractmethod
    def _protected(self, moments: Moments, extension: RowExtension | None) -> Collection[Hashable]:
        """Return the names of variables that must not be evicted."""

    def _relevances_of_stats(self, moments: Moments, stats: Stats) -> Floats:
        """Return the relevances by which variables are evicted."""
        space = moments.space
        if space is None:
            return stats.m2
        return space.relevance(stats.m2, stats.cxy, signed=self._is_signed)

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        """Raise ValueError for a target that does not fit the parameters, after so many rows."""
        target.check_classes(seen, rows)
        columns = target.index_of.keys() | seen.first.keys()
        c = len(columns) if not target.covariates else target.count_targets(columns)
        # A label among several targets takes several columns, even if only one class was seen.
        is_several = seen.form == "several" and any(seen.kinds.values())
        self._check_target(max(c, 2) if is_several else c, is_class=seen.form == "class")

    def _normal_scores(self) -> NormalScores | None:
        """Return normal scores to compare with noise; None to use the target itself."""
        return None

    @abc.abstractmethod
    def _current(self) -> Any:
        """Return the current results as a snapshot; None if nothing is learnt."""

    @property
    def _has_results(self) -> bool:
        """Whether anything is learnt that a snapshot can show."""
        return self._current() is not None

    @abc.abstractmethod
    def _refreshed(self, *, keep_stable: bool) -> Any:
        """Return the new snapshot; as similar to the old one as possible if `keep_stable`."""

    def _next_due(self, rows: int, weight: float) -> int:
        """Return the row of the next refresh."""
        return self._refresh.next_due(rows, weight)

    def _snapshot_to_state(self, snapshot: Any) -> Any:
        """Return a snapshot for a file."""
        return snapshot

    def _snapshot_from_state(self, state: Any) -> Any:
        """Return the snapshot that `_snapshot_to_state` wrote."""
        return state

    @property
    def _warm_up(self) -> int:
        n_rows: int = getattr(self, "warm_up")  # noqa: B009 (its default depends on the method)
        return n_rows

    # What is learnt

    @property
    def n_columns(self) -> int:
        """Number of variables learnt, as columns or as new features of rows."""
        return self._phase.n_columns

    @property
    def n_passes(self) -> float:
        """Number of passes over the columns; a fraction if the last one ended early."""
        return self._phase.n_passes

    @property
    def n_rows(self) -> int:
        """Number of rows learnt: the observations of the columns, plus rows learnt since."""
        return self._phase.n_rows

    @property
    def n_aligned_rows(self) -> int:
        """Number of rows from which the covariances of the variables in use are estimated.

        All rows, as long as no variable was evicted. Afterwards, the rows of an aligned window in
        which all variables in use were tracked, with at least about half of the total weight.
        """
        moments, extension = self._moments, self._row_extension
        if moments is None or extension is None:
            return self.n_rows
        return extension.n_aligned_rows(moments)

    @property
    def variance_components(self) -> dict[Hashable, VarianceComponents]:
        """Variance components of relatedness, by group; empty without relatedness, and after rows.

        The key None has those of the target, and of all columns unless groups are left out of the
        relatedness. Those of a group are estimated without its columns.
        """
        row_transform = None if self._target is None else self._target.row_transform
        return dict(row_transform.components) if isinstance(row_transform, Whitening) else {}

    @property
    def n_constant(self) -> int:
        """Number of constant variables among those seen."""
        return self._phase.n_constant

    @property
    def _column_phase(self) -> ColumnPhase:
        """The phase on columns; ValueError once rows were learnt."""
        phase = self._phase
        if isinstance(phase, ColumnPhase):
            return phase
        raise ValueError(
            "Expected rows, as the model has learnt rows and does not store their "
            "observations. Got: a target or a column.\n"
            "Hint: learn columns first, then rows; or merge two models that learnt other rows."
        )

    def _refuse_after_rows(self) -> None:
        """Raise ValueError once rows were learnt."""
        _ = self._column_phase

    @property
    def _target(self) -> Target | NoTarget | None:
        """Target of the columns; None before it is known, and once rows were learnt."""
        return self._phase.target

    @property
    def _space(self) -> TargetSpace | None:
        """Space of the columns' target; None without one."""
        return self._phase.space

    @property
    def _columns(self) -> ColumnState | None:
        """State of the columns; None before the first, and once rows were learnt."""
        return self._phase.columns

    @property
    def _moments(self) -> Moments | None:
        """Moments of rows; None before the first row."""
        return self._phase.moments

    @property
    def _row_extension(self) -> RowExtension | None:
        """Extension of the moments of rows, if any."""
        return self._phase.extension

    @property
    @cached_until_update
    def _state(self) -> VariableState | None:
        """The state that results are computed from; None before the first variable."""
        return self._phase.state

    def _invalidate(self) -> None:
        """Clear cached results: the state is about to change, or has changed."""
        self._cache = {}

    def _clear_row_cache(self) -> None:
        """Clear the cached names of the previous row: their indices may have changed."""
        self._phase.clear_row_cache()

    # Columns

    def learn_target(
        self,
        y: Any,
        covariates: Any = None,
        weights: Any = None,
        *,
        strata: Any = None,
        missing: str = "error",
        relatedness: Any = None,
    ) -> None:
        """Learn the target; once, before the columns.

        Parameters
        ----------
        y
            Numbers of shape (n,) or (n, c), labels of shape (n,), or a Series or DataFrame of
            either; with `target_type="survival"`, times and events (n, 2). None, where the learner
            allows it, for unsupervised selection, in which the variables explain each other. A
            single column of whole numbers, integer or float, with 2 to 20 distinct values, and at
            most n / 2, is treated as classes unless `target_type="numeric"`; `report().target`
            shows how the target was interpreted. Two values are treated as a quantity if the
            learner, with its parameters, does not support classes. Columns of a DataFrame, also a
            single one, are named targets as in a dict of `learn_one`: their whole numbers are
            quantities; pass a Series for the rule.
        covariates
            Variables to adjust for, such as age or batch: numbers of shape (n,) or (n, d), labels,
            a Series or DataFrame of either, or a dict: name -> either. They are projected out of
            the target and the variables: relevance is that of the residuals.
        weights
            Weight of each observation relative to the others, (n,) numbers, 0 or above; 2 for an
            observation that represents two. All statistics are then weighted, and the noise floor
            and p-values are based on (Σw)² / Σw² observations. With fewer than about 100 such
            observations, and with inverse-variance weights, p-values are too large. With
            `permutations` above 0, weights must not depend on the target. None for equal weights.
        strata
            Groups of observations, such as batches or families, within which the target is permuted
            if `permutations` is above 0: (n,) labels or whole numbers. None for a single group.
        missing
            `"drop"` excludes rows whose target is missing (NaN, None, NA), as if they did not
            exist: columns, covariates, weights and strata still have a value for every row, which
            may be missing in excluded rows. `"error"` rejects a missing target, except in a row of
            weight 0.
        relatedness
            Relatedness of the observations, such as people of a few families, whose covariance is
            then accounted for: a `Relatedness`; an (n, n) matrix; a model such as PCA that has
            learnt the columns of the same rows, whose Gram matrix is used; or `"auto"`. With
            `"auto"`, `learn_columns` first makes a pass over its source to compute it: the first
            source must have all columns, since later ones do not change it. Target and columns are
            whitened: `model.variance_components` shows the estimates. Not possible with weights.

        Raises
        ------
        ValueError
            For a target that is constant, not finite, or of fewer than two rows; for a target
            passed after columns were learnt; for covariates that explain all of it, or separate two
            classes with `target_type="binary"`; for weights or relatedness if the method is not a
            function of moments, or uses a null model, whose variances are the weights. For
            relatedness that is not symmetric, finite, positive semi-definite or of these rows, or
            of more than 15,000 rows.
        TypeError
            For values that are neither numbers nor labels, and weights that are not numbers.

        Notes
        -----
        Costs O(n (c + d)²) once, and O(n (c + d)) memory. With weights each column is copied and
        transformed, O(n), and sparse columns become dense. With excluded rows each column is copied
        without them. The model file stores which rows are included; `embedding` is NaN in the
        others. Relatedness costs $O(n^3)$ once, $2n^2$ per column and $8n^2$ bytes; rows learnt
        later are independent.

        Examples
        --------
        A target that is missing in five rows, adjusted for age:

        >>> import numpy as np
        >>> from streamsel import ForwardSelection
        >>> rng = np.random.default_rng(0)
        >>> X, age = rng.normal(size=(100, 50)), rng.uniform(20, 80, size=100)
        >>> y = X[:, 3] + 0.1 * age
        >>> y[:5] = np.nan
        >>> model = ForwardSelection(1)
        >>> model.learn_target(y, {"age": age}, missing="drop")
        >>> model.learn_columns(X)
        >>> report = model.report()
        >>> model.selected, report.rows, report.details["covariates"]
        ([3], 95, ['age'])

        Whole numbers of few values are classes, unless the type is given:

        >>> for target_type in ("auto", "numeric"):
        ...     model = ForwardSelection(1, target_type=target_type)
        ...     model.learn_target(np.arange(100) % 2)
        ...     print(model.report().target)
        2 classes: 0 (50 rows), 1 (50 rows)
        numeric, 0 to 1
        """
        self._refuse_after_rows()
        learn_target(self, y, covariates, weights, strata, missing, relatedness)

    def _take_target(self, target: Target) -> None:
        """Adopt the target, or raise ValueError if the method does not support it."""
        given = bool(target.covariate_kinds)
        is_refused = given and not self._takes_covariates
        self._refuse_with_windows(is_refused, "no covariates", "covariates")
        self._column_phase.take_target(self, target)

    def _take_no_target(self, target: NoTarget | None) -> None:
        """Select without a target; with weights if they are given."""
        refuse_weights(self, target)
        self._column_phase.learn_without_target(target)

    def learn_column(self, name: Hashable, values: Any) -> None:
        """Learn one variable.

        Parameters
        ----------
        name
            Any hashable name that is not tracked by the model.
        values
            The n observations: an array or sequence of shape (n,), or a sparse column. float64,
            float32, int8 and uint8 are read without a copy.

        Raises
        ------
        ValueError
            For missing or infinite values, a wrong length, or a name that the model tracks already
            (names of discarded columns may be used again).
        TypeError
            For values that are not real numbers, or a name that cannot be hashed.

            After any of these errors the model is unchanged.

        Notes
        -----
        The statistics of a column cost O(n c), c the number of target columns; the docstring of the
        class states the cost of the method. Missing values are refused: `stream.clean` imputes or
        skips such columns, and `SelectKBest(pairwise=True)` accepts them. `learn_columns` is
        faster for many columns, since it passes over blocks of them.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import ProjSe
        >>> model = ProjSe(1)
        >>> model.learn_target([1.0, 2.0, 3.0, 5.0])
        >>> model.learn_column("height", [1.0, 2.0, 2.5, 4.0])
        >>> model.learn_column("noise", [2.0, 1.0, 1.5, 2.0])
        >>> model.selected, model.n_columns
        (['height'], 2)
        """
        learn_exclusively(self._guard, self._learn_column, name, values)

    def _learn_column(self, name: Hashable, values: Any) -> None:
        phase = self._column_phase
        phase.refuse_awaiting("a single column")
        if self._needs_single_source:
            self._check_source(None)
        phase.learn_column(self, name, values)

    def learn_group(self, name: Hashable, X: Any, names: Sequence[Hashable] | None = None) -> None:
        """Learn a group of columns, which is selected as one, or not at all.

        A single column is a group of one, named as itself; columns and groups may be mixed.
        `learn_columns` learns many groups, from a source with groups, such as `stream.grouped`.

        Parameters
        ----------
        name
            Name of the group: any hashable that is not tracked by the model.
        X
            The columns, in any form that `learn_columns` accepts; all are in memory at once.
        names
            Names of the columns of an array or matrix, distinct within the group; numbered from
            `n_columns` on if None. A column may be in several groups.

        Raises
        ------
        ValueError, TypeError
            As `learn_columns`; the model is then left as it was. Also for a learner that does not
            select groups, for a group after a bounded pool has discarded single columns, and with
            permutations, a score test (`target_type="binary"` or `"count"`), or relatedness that
            leaves out groups of columns.

        Notes
        -----
        Columns that are constant, or linear combinations of others of their group, add no degree of
        freedom. A group of m columns costs $O(n m^2)$, or that of its stored values if sparse.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> colour = rng.integers(0, 3, size=200)
        >>> model = SelectKBest(1)
        >>> model.learn_target(np.array([0.0, 1.0, 0.5])[colour] + rng.normal(size=200))
        >>> one_hot = (colour[:, None] == np.arange(3)).astype(float)
        >>> model.learn_group("colour", one_hot, names=["red", "green", "blue"])
        >>> model.learn_column("noise", rng.normal(size=200))
        >>> model.selected, model.members
        (['colour'], {'colour': ['red', 'green', 'blue']})
        >>> model.transform_one({"red": 1.0, "green": 0.0, "blue": 0.0, "noise": 0.3})
        {'red': 1.0, 'green': 0.0, 'blue': 0.0}
        """
        stream = self._in_used_rows(self._stream_of(X, names))
        self._refuse_after_rows()
        if self._needs_single_source:
            self._check_source(None)
        self._column_phase.refuse_awaiting("a single group")
        self._learn_block(group_block(name, stream))

    def _stream_of(self, X: Any, names: Sequence[Hashable] | None) -> ColumnStream:
        """Return columns of numbers; those of a matrix without names are numbered."""
        is_matrix = isinstance(X, np.ndarray) or is_sparse(X)
        if names is None and is_matrix and X.ndim == 2:
            names = range(self.n_columns, self.n_columns + X.shape[1])
        return self._numeric_stream(X, names)

    def learn_columns(
        self,
        X: Any,
        names: Sequence[Hashable] | None = None,
        *,
        on_block: OnBlock | None = None,
        until: Until | None = None,
    ) -> None:
        """Learn many variables: a block, or a stream of blocks.

        Parameters
        ----------
        X
            An (n, p) array or sparse matrix, a frame of any library supported by narwhals, an
            AnnData, a `ColumnStream`, any iterable of (name, values), or the path or URL of a file
            of any format, as `stream.as_stream` accepts them. Text, categories, dates, times and
            durations in a frame or a file are encoded as columns of numbers, as by `stream.encode`,
            without groups where these are not supported.
        names
            Names of the columns of an array or matrix; numbered from `n_columns` on if None.
        on_block
            Called with the model after each block that was learnt completely, in every pass: to
            report progress, or to save the model. An exception that it raises ends the learning,
            without rolling back any block.
        until
            A condition that ends the learning before the end of X, which may be endless; None for
            no condition. `"certified"`: k variables are selected, all certified to be those of a
            selection over all columns so far, and all above the noise floor. `"budget"`: the level
            of the next test is below a millionth of the error budget of AlphaInvesting
            (`initial_wealth`) or OnlineFDR (`fdr`), or no further column can be selected. A number
            n: the last n columns have not changed which variables are selected. A function of the
            model: it returns True. A number n is checked after every n columns, other conditions
            after every 1,000 columns of the model, or after the end of a group. The model has then
            learnt the columns up to there, and `report().details["stopped"]` states their number.
            An exception of the function ends the learning, as one of `on_block` does.

        Raises
        ------
        ValueError, TypeError
            As `learn_column`, and for a name that occurs twice in one block. If X is re-iterable,
            the model is then rolled back to its state before the call. If not (a generator), the
            columns before the bad one stay learnt, as they would be lost otherwise. For a condition
            `until` that does not apply to the learner. For an empty X that is not re-iterable, such
            as an exhausted generator, if no column was learnt before.

        Warns
        -----
        UserWarning
            For columns of a frame or a file that cannot be encoded, such as identifiers: they are
            not learnt. `report().details` has their number, and that of encoded columns.

        Notes
        -----
        The result depends neither on how the columns are divided into blocks, nor on `n_jobs`.
        After an interrupt (Ctrl-C) every complete block is learnt and the model is usable.

        The statistics cost O(n c) per column, c the number of target columns, and memory is that of
        one block in addition to the state; the docstring of the class states the cost of the
        method. Columns with missing values are refused, as by `learn_column`.

        Examples
        --------
        Columns of an array, with names, and a stream that ends when the selection is stable:

        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 3000))
        >>> y = X[:, 7] - X[:, 42] + 0.1 * rng.normal(size=100)
        >>> model = SelectKBest(2)
        >>> model.learn_target(y)
        >>> model.learn_columns(X, [f"v{j}" for j in range(3000)])
        >>> sorted(model.selected)
        ['v42', 'v7']
        >>> early = model.clone()
        >>> early.learn_target(y)
        >>> early.learn_columns(((f"v{j}", X[:, j]) for j in range(3000)), until=500)
        >>> early.selected == model.selected, early.n_columns
        (True, 1000)
        """
        learn_columns(self, X, names, on_block, until)

    def _check_source(self, stream: ColumnStream | None) -> None:
        """Raise ValueError for a source (None: a single column) that rules out several passes."""
        if not self._needs_single_source:
            return
        if stream is None:
            got = "a single column"
        elif not stream.reiterable:
            got = "a source that can be read only once"
        elif self.n_columns:
            got = "another source"
        else:
            return
        raise ValueError(
            "Expected one source that can be read again, as exact=True requires. Got: "
            f"{got}.\nHint: exact=False certifies as many picks as one pass can (n_certified); "
            "a pool that keeps all columns is exact in one pass."
        )

    @property
    def _n_passes_expected(self) -> float:
        """Expected total number of passes over the columns, if the answer does not change."""
        return self.n_passes

    def _numeric_stream(self, X: Any, names: Sequence[Hashable] | None = None) -> ColumnStream:
        """Return columns of numbers of any input: those of a table are encoded, if necessary."""
        if not self._encodes_tables:
            return as_stream(X, names)
        return numeric_stream(X, names, groups=self._takes_groups)

    def _in_used_rows(self, stream: ColumnStream) -> ColumnStream:
        """Return a stream whose imputed values depend only on rows that have a target."""
        return restricted(stream, None if self._target is None else self._target.kept)

    def _used_variables(self) -> Collection[Hashable] | None:
        """Return the variables of the results; None if every column changes results."""
        return None

    @property
    def _uncertifiable_reason(self) -> str | None:
        """Why results cannot be certified and compared with noise; None if they can."""
        return "which does not select variables"

    def _is_all_certified(self) -> bool:
        """Whether all results that are requested are certified, and above the noise floor."""
        return False

    def _level_left(self) -> float | None:
        """Return the level of the next test, relative to the error budget; None without one."""
        return None

    def _learn_related(self, stream: ColumnStream) -> None:
        """Learn a stream, after a pass that computes relatedness if the target awaits it."""
        phase = self._column_phase
        target = phase.target
        if not isinstance(target, Target) or target.untransformed is None:
            self._learn_stream(stream)
            return
        if not stream.reiterable:
            phase.refuse_awaiting("a source that can be read only once")
        relatedness = Relatedness.from_stream(stream, None, target.kept, self.n_jobs)
        whitened = target.with_relatedness(relatedness.whiten)
        learn_atomically(self, self._take_target, whitened)
        self._learn_stream(stream)
        self._phase.n_passes += 1

    def _learn_stream(self, stream: ColumnStream) -> None:
        """Learn a stream, in as many passes as the method needs."""
        self._learn_once(stream)

    def _learn_once(self, stream: ColumnStream) -> None:
        for block in stream.blocks(generated=self._takes_generated):
            self._learn_block(block)

    def _learn_block(self, block: Block) -> None:
        error = learn_atomically(self, self._learn_chunks, block)
        if error is not None:
            raise error

    def _learn_chunks(self, block: Block) -> Exception | None:
        return self._column_phase.learn_block(self, block)

    def _scanned(self, source: ColumnStream) -> Iterator[tuple[Chunk, Stats]]:
        """Yield the columns of a further pass with their moments; raise at the first bad one."""
        return self._column_phase.scanned(self, source)

    # Parts of the columns, and further passes

    def _reason_not_partitioned(self) -> str | None:
        """Return why columns cannot be learnt in parts; None if they can."""
        return self._column_state_type.unmergeable_reason or None

    def _learn_part(self, stream: ColumnStream) -> None:
        """Learn the columns of a part as `learn_columns` does, without further passes."""
        self._column_phase.refuse_awaiting("a part of the columns")
        stream = self._in_used_rows(stream)
        learn_in_session(self, Exception if stream.reiterable else (), self._learn_once, stream)

    def _empty_clone(self, new_params: dict[str, Any] | None = None) -> Self:
        """Return a clone with the same target, which has learnt no columns."""
        twin, mine = self.clone(new_params), self._column_phase
        if isinstance(mine.target, Target):
            twin._take_target(mine.target)
        elif mine.without_target:
            twin._column_phase.learn_without_target(mine.target)
        return twin

    def _next_pass(self) -> Pass | None:
        """Return the next pass over the columns; None if no further pass is required.

        An exact selector requires passes until its answer is certified; an extractor for which
        `learn_loadings` adds results requires one pass.
        """
        return None

    def _apply_pass(self, request: Any, result: Any) -> None:
        """Update the model with the result of the next pass over all columns."""
        raise NotImplementedError

    # Rows

    def _learn_row(self, x: dict[Hashable, Any], y: Any, w: float) -> None:
        self._phase.learn_row(self, x, y, w)

    def _learn_rows(self, X: Any, y: Any, w: Any) -> None:
        self._phase.learn_rows(self, X, y, w)

    def _learn_window(self, names: list[Hashable], X: Floats, target: Target | None) -> None:
        """Learn the rows of a full window as columns."""
        twin = self.clone()
        if target is not None:
            try:
                twin._take_target(target)
            except ValueError:
                # The method does not support it: the result of the last window stays in use.
                return
        results = twin._column_phase
        results.columns = twin._new_columns(len(X))
        phase = self._phase
        if names:
            stream = as_stream(X, names)
            twin.learn_columns(stream if phase.groups is None else grouped(stream, phase.groups))
        if isinstance(phase, WindowPhase):
            phase.adopt(results)
        self._invalidate()

    def refresh(self) -> None:
        """Refresh the snapshot that transforms use at once, for example when a drift is detected.

        On columns, transforms always use the current results, and this has no effect. Selectors
        then keep only the best k, regardless of `hysteresis`.

        Notes
        -----
        Costs one computation of the results from the current state, and no pass over rows. The next
        refresh is scheduled from here on, by `refresh_factor`. Before a result exists, nothing
        changes.

        Examples
        --------
        >>> from streamsel import SelectKBest
        >>> model = SelectKBest(1, warm_up=50)
        >>> for i in range(20):
        ...     model.learn_one({"a": float(i % 3), "b": float(i % 5)}, float(i % 3))
        >>> model.transform_one({"a": 1.0, "b": 2.0})
        {'a': 1.0, 'b': 2.0}
        >>> model.refresh()
        >>> model.transform_one({"a": 1.0, "b": 2.0})
        {'a': 1.0}
        """
        learn_atomically(self, self._refresh_now)

    def _refresh_now(self) -> None:
        self._take_snapshot(keep_stable=False)

    def _take_snapshot(self, *, keep_stable: bool) -> None:
        phase, schedule = self._phase, self._refresh
        if not phase.on_rows or not self._has_results:
            return
        rows, weight = phase.n_rows, phase.weight
        phase.recheck_due()
        if schedule.is_always:
            schedule.due_at = rows
            return
        schedule.replace(self._refreshed(keep_stable=keep_stable), self._next_due(rows, weight))

    def _refresh_if_due(self, rows: int) -> None:
        """Refresh the snapshot in use if it is due after this number of rows."""
        schedule = self._refresh
        if not schedule.is_due(rows):
            return
        if schedule.pending is not None:
            schedule.replace(schedule.pending.result(), schedule.pending.next_due)
            return
        next_due = self._next_due(rows, self._phase.weight)
        # It is in use before the next one is due.
        n_rows = min(self._rows_of_refresh(rows), next_due - rows - 1)
        if n_rows > 0:
            schedule.expect(PendingSnapshot(self._refresh_of_copy(), rows, next_due), n_rows)
        else:
            self._take_snapshot(keep_stable=True)

    def _refresh_of_copy(self) -> Callable[[], Any]:
        """Return a function that computes the next snapshot from the rows learnt so far."""
        # Only the copy delays a row: the state is restored where the snapshot is computed.
        return functools.partial(_refresh_of, self.clone(), deep_copied(self._get_state()))

    def _rows_of_refresh(self, rows: int) -> int:  # noqa: ARG002
        """Return the number of rows during which a refresh is computed; 0 if it is at once."""
        return 0

    def _in_use(self) -> Any:
        """Return the snapshot that a transform uses; None if there is none."""
        phase, schedule = self._phase, self._refresh
        if not phase.on_rows:
            return self._current()
        if schedule.is_always:
            return self._current() if phase.n_rows >= schedule.due_at else None
        return schedule.stored

    # Merging

    def merge(self, other: Self, along: str = "columns") -> None:
        """Merge the learnt state of another model into this one.

        Parameters
        ----------
        other
            A model of the same class and parameters; it is not changed.
        along
            `"columns"` if the other model has learnt other variables of the same rows; `"rows"` if
            it has learnt other rows.

        Raises
        ------
        ValueError
            If class, parameters or targets differ, if both models are the same object, or, along
            columns, if both track the same variable. For a method that decides on arrival, if this
            model has learnt columns; along rows, for a method that uses windows of rows. The model
            is then unchanged.

        Notes
        -----
        The cost depends on the sizes of both states, as the docstring of the class gives them, and
        not on the number of rows. Counts, noise floor and reports are those of all data. Along
        rows, a variable or a class that one model has not seen counts as 0 in its rows. Along
        columns, the variables of the other model arrive after those of this one, which decides
        ties.

        Along rows with a `fading_factor`, the rows of both models keep their weights, as if both
        streams had ended at the same time, not as if one had followed the other.

        Examples
        --------
        Two halves of the columns, which may have been learnt on two machines:

        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 60))
        >>> y = X[:, 7] - X[:, 42] + 0.1 * rng.normal(size=100)
        >>> left, right = SelectKBest(2), SelectKBest(2)
        >>> for model, part in ((left, range(30)), (right, range(30, 60))):
        ...     model.learn_target(y)
        ...     model.learn_columns(X[:, list(part)], part)
        >>> left.merge(right)
        >>> sorted(left.selected), left.n_columns
        ([7, 42], 60)

        Two batches of rows of the same variables:

        >>> first, second = SelectKBest(2), SelectKBest(2)
        >>> first.learn_many(X[:40], y[:40])
        >>> second.learn_many(X[40:], y[40:])
        >>> first.merge(second, along="rows")
        >>> sorted(first.selected), first.n_rows
        ([7, 42], 100)
        """
        check_mergeable(self, other, along)
        learn_atomically(self, self._merge, other, along)

    def _merge(self, other: Self, along: str) -> None:
        self._phase.prepare_merge()
        self._refresh.drop_pending()
        if along == "rows":
            self._merge_along_rows(other)
        elif other._phase.on_rows or self._phase.on_rows:
            self._merge_along_columns_of_rows(other)
        else:
            self._merge_along_columns(other)

    def _merge_along_columns(self, other: Self) -> None:
        merge_columns(self, other)

    def _merge_along_columns_of_rows(self, other: Self) -> None:
        merge_columns_of_rows(self, other)

    def _merge_along_rows(self, other: Self) -> None:
        merge_rows(self, other)

    # Comparison with noise

    def noise_floor(self, level: float = 0.05, *, method: str = "auto") -> float:
        """Return the relevance that the best of as many noise columns exceeds only by chance.

        Parameters
        ----------
        level
            Probability, over all columns seen, that noise exceeds the noise floor.
        method
            `"gaussian"`: from the distribution for Gaussian observations. `"permutation"`: from
            permuted targets, if the parameter `permutations` is above 0. `"auto"`: from
            permutations if there are any.

        Returns
        -------
        A relevance in [0, 1]; NaN if there is none: for instance without a target, or before a
        window of rows is full.

        Raises
        ------
        ValueError
            For a level outside (0, 1), before the target is known, and for a noise floor by
            permutation if no column was compared with permuted targets.

        Notes
        -----
        **Gaussian.** For n Gaussian observations without association, relevance² ~ Beta(r/2,
        (n - 1 - r)/2), r the rank of the target. Among p columns the largest is below the
        1 - level/p quantile with probability at least 1 - level (Bonferroni). If n - 1 <= r, every
        column is explained in full, and the noise floor is 1. Covariates of rank d leave n - d
        observations. Fading rows and weighted rows count as (Σw)² / Σw² rows of equal weight.

        The distribution is valid if either the columns or the target have no heavy tails. It is not
        valid for counts and rare variants in combination with a small class, few cases or a
        heavy-tailed target: then noise exceeds the noise floor far more often than `level` states.
        Reports contain a warning if a sample of the columns indicates this; with
        `permutations=1000` the level is valid in these cases, too.

        **Permutation.** A permuted target has no association with any column. The noise floor
        is the 1 - level quantile, over the permutations, of the largest relevance of all columns
        (Westfall and Young 1993). Its level is exact without covariates and relatedness, whatever
        the distributions and the correlations of the columns, if weights do not depend on the
        target. With covariates or relatedness, residuals are permuted, and the level is
        approximate: with log-normal columns and target (σ = 2), 40 rows and three covariates, noise
        exceeds the noise floor in 20 % of runs instead of 5 %. The noise floor is 1 if there are
        too few permutations for the level, fewer than 1 / level - 1.

        The noise floor is valid for single columns: a component of SOSPCA, selected and rotated
        among them, exceeds it more often. With a nonlinear kernel, 4,096 directions are drawn once,
        along which a variable is as relevant as the linear noise floor. The noise floor is the
        largest relevance of these in feature space; NaN if the kernel depends on the scale of a
        variable (scale=False).

        **Cost.** Independent of the number of columns: microseconds by the Gaussian distribution,
        and a sort of the permutations.

        Examples
        --------
        One of the two most relevant of 1,000 columns is above the noise floor, by either method:

        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(1)
        >>> X = rng.normal(size=(100, 1000))
        >>> model = SelectKBest(2, permutations=199)
        >>> model.learn_target(X[:, 7] + rng.normal(size=100))
        >>> model.learn_columns(X)
        >>> {name: round(relevance, 2) for name, relevance in model.relevance.items()}
        {7: 0.69, 751: 0.35}
        >>> round(model.noise_floor(), 2), round(model.noise_floor(method="gaussian"), 2)
        (0.4, 0.39)
        """
        check_noise_floor(level, method)
        if method == "permutation" and self._significance.null is None:
            raise ValueError(
                "Expected columns that were compared with permuted targets. Got: none.\n"
                f"Hint: {type(self).__name__}(permutations=1000) before learning columns; "
                "permutation results are dropped when rows are learnt."
            )
        phase = self._phase
        in_first_window = isinstance(phase, WindowPhase) and phase.space is None
        if phase.without_target or in_first_window:
            return float("nan")
        return self._significance.noise_floor(float(level), method, phase.n_varying)

    @property
    @cached_until_update
    def _significance(self) -> Significance:
        """Comparison of relevances with noise."""
        phase = self._phase
        null = None if phase.summary is None else phase.summary.null
        null = null if null is not None and null.n_tests else None
        n, space = phase.rows_and_space(self._state)
        return Significance(n, space, null)

    @cached_until_update
    def _density(self) -> Density | None:
        """Return the histogram of columns, or of the variables of rows if none was evicted."""
        density = self._significance.density(self._phase)
        if density is None or self._own_tests() is None:
            return density
        return replace(density, null=None, p_values=None)

    def _own_tests(self) -> OwnTests | None:
        """Return the tests of a score whose p-values do not follow from the relevance."""
        return None

    # Results

    @property
    @abc.abstractmethod
    def relevance(self) -> dict[Hashable, float]:
        """Relevance of each output of the model, in [0, 1]: name -> ‖Uᵀx̃‖ / ‖x̃‖."""

    @property
    @abc.abstractmethod
    def in_use(self) -> Any:
        """Snapshot that a transform uses."""

    @abc.abstractmethod
    def report(self) -> Report:
        """Return the results as a `Report`, which the command and the HTML report show."""

    def _report_noise_floor(self) -> float | None:
        """Return the noise floor for a report."""
        return number(self.noise_floor(NOISE_LEVEL)) if self.n_rows else None

    def _report(
        self,
        floor: float | None,
        kind: str,
        results: list[dict[str, Any]],
        n_requested: int | None,
        details: dict[str, Any] | None = None,
    ) -> Report:
        counts = self.n_rows, self.n_columns, self.n_constant
        name, params = type(self).__name__, dict(self._get_params())
        counted: dict[str, Any] = {"target": self._target_description()}
        counted |= {"rows_excluded": self._rows_excluded()}
        counted |= {"class_sizes": class_sizes_of(self._phase)}
        fields = counted | self._significance.report_fields(
            self._phase, self._density(), self._normal_scores(), self._own_tests()
        )
        components = [
            {"left_out": group, **found._asdict()}
            for group, found in self.variance_components.items()
        ]
        details = (details or {}) | ({"variance_components": components} if components else {})
        details |= self._adjustments() | self._phase.source.details()
        return Report(name, params, *counts, floor, kind, results, n_requested, details, **fields)

    def _target_description(self) -> str | None:
        """Return how the target was interpreted; on rows without class sizes."""
        if not self._is_supervised:
            return None
        return self._phase.target_description

    def _adjustments(self) -> dict[str, Any]:
        """Return the names of covariates, and whether observations are weighted, for a report."""
        found: dict[str, Any] = {}
        if (target := self._target) is None:
            return found
        if isinstance(target, Target) and target.covariate_kinds:
            found["covariates"] = list(target.covariate_kinds)
        if isinstance(target.row_transform, ObservationWeights):
            found["weights"] = True
        return found

    def _rows_excluded(self) -> dict[str, int]:
        """Return how many rows of the columns were excluded: reason -> count."""
        kept = None if self._target is None else self._target.kept
        return {} if kept is None else dict(kept.excluded)

    def __repr__(self) -> str:
        return params.changed_parameters(self)

    def _repr_html_(self) -> str:
        from streamsel.reporting.notebook import render_notebook

        return render_notebook(self)

    def precompile(self) -> None:
        """Compile the code that this model needs for float64 columns and for rows, ahead of time.

        A model that supports groups compiles also the code for groups of float64 columns and for
        the indicators of categories. Without this call the first column and the first row wait for
        the compilation: a few seconds once per machine, and a few tenths of a second per process
        where the compiled code is loaded from disk.

        Notes
        -----
        Clones of the model learn a few columns and rows of synthetic numbers, in less than a second
        if the code is compiled already; the model itself is not changed.

        Examples
        --------
        Compile before a service accepts rows:

        >>> from streamsel import ProjSe
        >>> model = ProjSe(k=5)
        >>> model.precompile()
        >>> model.n_rows
        0
        """
        compile_by_rehearsal(self)

    # Copies and files

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return an unfitted model with the same parameters.

        Parameters
        ----------
        new_params
            Parameters to replace, by name.
        include_attributes
            Whether to copy the learnt state too. If another thread is training this model, the copy
            is made between two rows or two blocks of columns.

        Notes
        -----
        The cost of a clone with learnt state is proportional to the size of that state. Other
        clones take less than a millisecond.

        Examples
        --------
        A model with another k, and a copy of what was learnt:

        >>> import numpy as np
        >>> from streamsel import SelectKBest
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 60))
        >>> model = SelectKBest(2)
        >>> model.learn_target(X[:, 7] - X[:, 42])
        >>> model.learn_columns(X)
        >>> larger = model.clone({"k": 5})
        >>> larger.k, larger.n_columns
        (5, 0)
        >>> model.clone(include_attributes=True).selected == model.selected
        True
        """
        clone = functools.partial(super().clone, new_params, include_attributes)
        return self._guard.call_when_idle(clone, is_copy=True) if include_attributes else clone()

    def __getstate__(self) -> dict[str, Any]:
        # The lock is released before the pickle or copy is made from the state.
        state = self._guard.call_when_idle(lambda: deep_copied(self._get_state()), is_copy=True)
        return {"params": self._get_params(), "state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._set_state(state["state"])

    def _get_state(self) -> dict[str, Any]:
        """Return the learnt state as arrays and JSON-compatible values (names as lists)."""
        state = self._phase.to_state()
        if self._phase.on_rows:
            schedule = self._refresh
            snapshot = self._snapshot_to_state(schedule.stored)
            state |= {"refresh_at": schedule.due_at, "snapshot": snapshot}
            if schedule.pending is not None and not schedule.pending.has_failed:
                state["pending"] = schedule.pending.to_state(self._snapshot_to_state)
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `_get_state`."""
        expect_finite(state)
        restore_phase(self, state)
        self._invalidate()
        expect_possible(self)
        if self._phase.on_rows:
            self._restore_in_use(state)

    def _restore_in_use(self, state: dict[str, Any]) -> None:
        """Restore the snapshot from a file, and the one that was pending."""
        due, read = state["refresh_at"], self._snapshot_from_state
        if type(due) is not int or due < 0:
            raise ValueError(f"Expected the row number of the next refresh. Got: {due!r}.")
        self._refresh.replace(read(state["snapshot"]), due)
        if "pending" in state:
            self._refresh.pending = PendingSnapshot.from_state(state["pending"], read)

    def _check_tracked(self, names: Any) -> None:
        """Raise ValueError unless names from a file are distinct and tracked by the moments."""
        moments = self._moments
        expect({"snapshot": names}, snapshot=NamesKind(moments.index_of if moments else None))

    def _check_reachable_state(self) -> None:
        """Raise ValueError for values in a file that no learning leads to, after `_set_state`."""
        expect_reachable(self)


def _refresh_of(unfitted: Learner, state: dict[str, Any]) -> Any:
    """Return the next snapshot of a learner with this state."""
    learner = unfitted.clone()
    learner._set_state(state)
    return learner._refreshed(keep_stable=True)

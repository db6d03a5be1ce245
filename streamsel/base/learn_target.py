"""Read the target of columns, and check that a learner supports it."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from streamsel.base.phase import LearnerHooks
from streamsel.base.relatedness import AUTO, Relatedness, as_relatedness
from streamsel.base.undo import learn_atomically
from streamsel.params import parameter_repr
from streamsel.state.stream_summary import StreamSummary
from streamsel.targets.glm import FAMILIES
from streamsel.targets.kept_rows import MISSING_POLICIES, KeptRows, kept_rows
from streamsel.targets.permutations import PermutedTarget
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import NoTarget, Target
from streamsel.targets.whitening import Whitening

# With fewer rows, an identifier cannot be distinguished from classes.
_MIN_ROWS_IDENTIFIER = 8


def learn_target(
    model: LearnerHooks,
    y: Any,
    covariates: Any,
    weights: Any,
    strata: Any,
    missing: str,
    relatedness: Any = None,
) -> None:
    """Learn the target, as `Learner.learn_target` describes."""
    name, n_columns = type(model).__name__, model._phase.n_columns
    if missing not in MISSING_POLICIES:
        raise ValueError(f"Expected missing='error' or 'drop'. Got: {parameter_repr(missing)}.")
    if n_columns:
        raise ValueError(
            f"Expected the target before the columns. Got: a target after {n_columns} "
            "columns.\nHint: model.clone() is an unfitted model for a new target."
        )
    if not model._is_supervised and y is not None:
        raise ValueError(
            f"Expected no target: {name} learns without one. Got: a target.\n"
            "Hint: call learn_columns(X) alone."
        )
    if relatedness is not None:
        relatedness = _checked_relatedness(model, y, weights, relatedness)
    if y is None:
        learn_atomically(model, _learn_no_target, model, covariates, weights, relatedness)
        return
    if model.covariates and covariates is None:
        raise ValueError(
            f"Expected the covariates {list(model.covariates)}, which the parameter covariates "
            "names. Got: none.\nHint: learn_target(y, covariates=Z)."
        )
    if strata is not None and not model.permutations:
        raise ValueError(
            "Expected permutations above 0 with strata, within which to permute. Got: 0.\n"
            f"Hint: {name}(permutations=1000), or omit strata; "
            "covariates=strata adjusts for them."
        )
    kept = kept_rows(y, weights, missing)
    arguments = {"covariates": covariates, "weights": weights, "strata": strata}
    if kept is not None:
        arguments = {
            name: None if v is None else kept.restrict(v, name) for name, v in arguments.items()
        }
        y = kept.restrict(y, "a target")
    if isinstance(relatedness, Relatedness):
        relatedness = relatedness.restricted(kept)
    learn = partial(learn_used_rows, model, y, **arguments, kept=kept, relatedness=relatedness)
    learn_atomically(model, learn)
    target = model._phase.target
    if isinstance(target, Target) and target.is_class:
        n_classes = np.count_nonzero(~target.is_covariate)
        if n_classes == target.n >= _MIN_ROWS_IDENTIFIER:
            warnings.warn(_one_class_per_row(target.n), UserWarning, stacklevel=3)


def learn_used_rows(
    model: LearnerHooks,
    y: Any,
    covariates: Any = None,
    weights: Any = None,
    strata: Any = None,
    kept: KeptRows | None = None,
    relatedness: Relatedness | str | None = None,
) -> None:
    """Learn the target and its covariates, weights and strata, of all rows or of those kept.

    Parameters
    ----------
    model
        The learner.
    y, covariates, weights, strata
        As in `Learner.learn_target`, of the rows that are used.
    kept
        Which of the source's rows these are; None for all.
    relatedness
        Relatedness of the rows that are used; "auto" if it follows from the columns.
    """
    whiten = relatedness.whiten if isinstance(relatedness, Relatedness) else None
    options = covariates, model.covariates, weights, strata, kept, whiten
    awaits = relatedness == AUTO
    with nullcontext() if kept is None else kept.renumber_errors():
        target = Target(y, model.target_type, *options, awaits_relatedness=awaits)
        try:
            model._take_target(target)
        except ValueError:
            # Two numeric values have the same correlations as two classes.
            by_rule = target.is_class and target.decided_by_values
            if not by_rule or np.count_nonzero(~target.is_covariate) > 2:
                raise
            model._take_target(Target(y, "numeric", *options, awaits_relatedness=awaits))


def _learn_no_target(
    model: LearnerHooks, covariates: Any, weights: Any, relatedness: Relatedness | None
) -> None:
    if model._is_supervised and not model._takes_no_target:
        raise ValueError(
            f"Expected a target: {type(model).__name__} is supervised. Got: None.\n"
            "Hint: ProjSe also selects without a target."
        )
    if covariates is not None:
        raise ValueError(
            "Expected a target with covariates. Got: None.\n"
            "Hint: to adjust for covariates without a target, regress the columns on them."
        )
    target = None if weights is None else NoTarget.of_weights(weights)
    if relatedness is not None:
        n = relatedness.n_rows
        target = NoTarget(n, relatedness.whiten(np.zeros((n, 0)), np.zeros((n, 0))))
    model._take_no_target(target)


def _checked_relatedness(
    model: LearnerHooks, y: Any, weights: Any, relatedness: Any
) -> Relatedness | str:
    """Return relatedness, or "auto"; ValueError for what cannot be combined with it."""
    name = type(model).__name__
    if weights is not None:
        raise ValueError(
            "Expected weights or relatedness. Got: both.\n"
            "Hint: omit weights; relatedness requires residuals of equal variance."
        )
    if model.target_type in FAMILIES:
        raise ValueError(
            "Expected a target whose residuals have one variance, as relatedness requires. Got: "
            f"target_type={model.target_type!r}.\n"
            "Hint: target_type='numeric', or principal components as covariates."
        )
    if not model._takes_weights:
        raise _relatedness_error(name, "relatedness")
    if isinstance(relatedness, str) and relatedness == AUTO:
        if y is None:
            raise _no_ratio_error(relatedness)
        return AUTO
    found = as_relatedness(relatedness)
    if found.groups is not None and not model._is_univariate:
        raise ValueError(
            f"Expected relatedness without groups: {name} compares columns with each other, and "
            "columns of different groups are whitened differently. Got: groups.\n"
            "Hint: SelectKBest and OnlineFDR test each column by itself."
        )
    if found.groups is not None and model.permutations:
        raise ValueError(
            "Expected permutations=0 with groups of relatedness, whose residuals differ. Got: "
            f"{model.permutations}.\nHint: relatedness without groups."
        )
    if y is None and found.ratio is None:
        raise _no_ratio_error(found)
    return found


def _no_ratio_error(got: Any) -> ValueError:
    return ValueError(
        "Expected a fixed variance ratio of relatedness without a target, from which it would be "
        f"estimated. Got: {got!r}.\nHint: relatedness=Relatedness(K, ratio=1.0)."
    )


def _relatedness_error(name: str, got: str) -> ValueError:
    return ValueError(
        f"Expected no relatedness: {name} with these parameters uses single observations, not "
        f"inner products of whitened columns. Got: {got}.\n"
        "Hint: pass the leading principal components as covariates."
    )


def space_of(model: LearnerHooks, target: Target) -> TargetSpace:
    """Return the space of a target; ValueError if the learner does not support the target."""
    c = int(np.count_nonzero(~target.is_covariate))
    model._check_target(c, is_class=target.is_class)
    if target.is_class and c == target.n > 2 and model._needs_classes:
        raise ValueError(_one_class_per_row(c))
    refuse_weights(model, target)
    space = TargetSpace(
        target.cyy,
        target.n,
        model._variable_kernel(),
        target.is_covariate,
        target.effective_rows,
        is_pair=target.is_pair,
        chi_square_scale=None if target.null_model is None else target.null_model.pearson,
    )
    if not space.linear_rank:
        n_covariates, n = int(np.count_nonzero(target.is_covariate)), target.n
        hint = "check that the target is not among the covariates."
        if n_covariates >= n - 1:
            hint = (
                f"the covariates have {n_covariates:,} columns for {n:,} rows; a text counts "
                "one column per label. Leave out identifiers and notes."
            )
        raise ValueError(
            "Expected a target that the covariates do not determine. Got: a target that they "
            f"explain in full.\nHint: {hint}"
        )
    return space


def refuse_weights(model: LearnerHooks, target: Target | NoTarget | None) -> None:
    """Raise ValueError for a target with weights that the learner does not support."""
    if target is None or target.row_transform is None or model._takes_weights:
        return
    if isinstance(target.row_transform, Whitening):
        raise _relatedness_error(type(model).__name__, "relatedness")
    raise ValueError(
        f"Expected no weights: {type(model).__name__} with these parameters uses single "
        "observations, not weighted moments. Got: weights.\n"
        "Hint: repeat each row in proportion to its weight, or omit weights."
    )


def new_summary(
    model: LearnerHooks, target: Target | NoTarget | None, space: TargetSpace | None
) -> StreamSummary:
    """Return an empty summary of columns with this target."""
    if not isinstance(target, Target) or space is None or not model.permutations:
        return StreamSummary()
    seed = model.permutation_seed
    return StreamSummary(PermutedTarget(target, space, model.permutations, seed))


def _one_class_per_row(n: int) -> str:
    """Return the message for a target in which each of n rows has a class of its own."""
    return (
        f"Expected classes of several rows each. Got: {n} classes in {n} rows.\n"
        "Hint: is the target an identifier? target_type='numeric' treats numbers as a quantity."
    )

"""Evaluation of selections and extractions: stability, alignment and prediction.

The measures take the output of a learner, `selected`, `relevance` or transformed columns, and
nothing else, so that they apply to the output of any other library, too. Functions that fit models
take the learner itself: `cross_validated_accuracy`, `nested_scores` and `subsample_stability`.
`knockoff_filter` selects with a bound on the false discovery rate.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from streamsel._utils.lazy import lazy_names

if TYPE_CHECKING:
    from streamsel.evaluate._baselines import selected_before_probes
    from streamsel.evaluate.knockoffs import (
        KnockoffSelection,
        knockoff_filter,
        knockoff_statistics,
    )
    from streamsel.evaluate.nested import nested_scores
    from streamsel.evaluate.nested_result import NestedScores
    from streamsel.evaluate.predictive import clustering_nmi, cross_validated_accuracy
    from streamsel.evaluate.similarity import (
        canonical_correlations,
        kernel_alignment,
        linear_alignment,
    )
    from streamsel.evaluate.stability import Stability, importance_stability, selection_stability
    from streamsel.evaluate.subsamples import SubsampleStability, subsample_stability

__all__ = [
    "KnockoffSelection",
    "NestedScores",
    "Stability",
    "SubsampleStability",
    "canonical_correlations",
    "clustering_nmi",
    "cross_validated_accuracy",
    "importance_stability",
    "kernel_alignment",
    "knockoff_filter",
    "knockoff_statistics",
    "linear_alignment",
    "nested_scores",
    "selected_before_probes",
    "selection_stability",
    "subsample_stability",
]

_MODULE_OF = {
    "KnockoffSelection": "knockoffs",
    "knockoff_filter": "knockoffs",
    "knockoff_statistics": "knockoffs",
    "NestedScores": "nested_result",
    "Stability": "stability",
    "SubsampleStability": "subsamples",
    "selected_before_probes": "_baselines",
    "canonical_correlations": "similarity",
    "clustering_nmi": "predictive",
    "cross_validated_accuracy": "predictive",
    "importance_stability": "stability",
    "kernel_alignment": "similarity",
    "linear_alignment": "similarity",
    "nested_scores": "nested",
    "selection_stability": "stability",
    "subsample_stability": "subsamples",
}

__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    lambda name: getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name),
)

"""What a selection or extraction is worth: how stable, how close to the target, how predictive.

The measures take what a learner puts out, `selected`, `relevance` or transformed columns, and know
nothing else of it, so that the same measure judges the work of any other library. Only
`cross_validated_accuracy`, which has to learn anew in every fold, takes the learner itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsel.evaluate.alignment import kernel_alignment, linear_alignment
    from streamsel.evaluate.canonical import canonical_correlations
    from streamsel.evaluate.chance import before_dummies
    from streamsel.evaluate.predictive import clustering_nmi, cross_validated_accuracy
    from streamsel.evaluate.stability import Stability, importance_stability, selection_stability

__all__ = [
    "Stability",
    "before_dummies",
    "canonical_correlations",
    "clustering_nmi",
    "cross_validated_accuracy",
    "importance_stability",
    "kernel_alignment",
    "linear_alignment",
    "selection_stability",
]

# Names are fetched when first asked for (PEP 562): the import itself costs milliseconds.
_HOMES = {
    "Stability": "stability",
    "before_dummies": "chance",
    "canonical_correlations": "canonical",
    "clustering_nmi": "predictive",
    "cross_validated_accuracy": "predictive",
    "importance_stability": "stability",
    "kernel_alignment": "alignment",
    "linear_alignment": "alignment",
    "selection_stability": "stability",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

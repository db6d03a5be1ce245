"""The questions of the demonstration, and the models for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamsel.demo.data import PACKAGES, Document
from streamsel.extraction.ridge_components import RidgeComponents
from streamsel.selection.forward_selection import ForwardSelection

if TYPE_CHECKING:
    from collections.abc import Sequence

# The sub-package of the first question, and the number of phrases for it.
FIRST_PACKAGE, K_FIRST = "signal", 20
# The numbers of phrases and components for the second: eight classes span seven dimensions.
K_SECOND, N_COMPONENTS = 100, 7
# Chosen on one or two splits of the training files.
RELEVANCE_POWER, MAX_SUPPORT = 1.0, 500


class Question(NamedTuple):
    """A question about documents.

    Parameters
    ----------
    question
        The question, in a sentence.
    classes
        The answers; the last one is for documents of all other packages.
    selector, extractor
        The models that learn n-grams for it.
    """

    question: str
    classes: tuple[str, ...]
    selector: ForwardSelection
    extractor: RidgeComponents | None

    @property
    def models(self) -> list[ForwardSelection | RidgeComponents]:
        """The models that learn."""
        return [self.selector] if self.extractor is None else [self.selector, self.extractor]

    def labels(self, documents: Sequence[Document]) -> list[str]:
        """Return the class of each document."""
        last = self.classes[-1]
        return [d.package if d.package in self.classes else last for d in documents]


def make_questions(*, quick: bool) -> list[Question]:
    """Return the questions; only the first if `quick`."""
    one = Question(
        f"Is a docstring from {FIRST_PACKAGE}, or from one of seven other sub-packages?",
        (FIRST_PACKAGE, "another"),
        ForwardSelection(K_FIRST),
        None,
    )
    if quick:
        return [one]
    components = RidgeComponents(
        N_COMPONENTS, relevance_power=RELEVANCE_POWER, max_support=MAX_SUPPORT
    )
    which = "Which of the eight sub-packages is a docstring from?"
    return [one, Question(which, PACKAGES, ForwardSelection(K_SECOND), components)]

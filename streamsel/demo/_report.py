"""The results of the demonstration: plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrase:
    """A phrase that `ForwardSelection` selected.

    Parameters
    ----------
    name
        Its words.
    label
        The class whose training documents contain it most often, as a share.
    documents
        In how many training documents of each class it occurs.
    """

    name: str
    label: str
    documents: dict[str, int]


@dataclass(frozen=True)
class Score:
    """The accuracy of the classifier on test documents, with one set of variables.

    Parameters
    ----------
    variables
        The set.
    n_variables
        Its size.
    accuracy
        The share of test documents that are classified correctly.
    gained, lost
        How many test documents are classified correctly with these variables and not with all
        single words, and the reverse.
    """

    variables: str
    n_variables: int
    accuracy: float
    gained: int
    lost: int


@dataclass(frozen=True)
class Task:
    """One question about the documents, and how well it is answered.

    Parameters
    ----------
    question
        In a sentence.
    classes
        Training documents of each class.
    selected
        The phrases that `ForwardSelection` selected, in that order.
    scores
        Of the most frequent class, all single words, the selected phrases, and the components where
        there are some.
    recall
        The share of the test documents of each class that are classified correctly, with the last
        of these sets.
    """

    question: str
    classes: dict[str, int]
    selected: list[Phrase]
    scores: list[Score]
    recall: dict[str, float]


@dataclass(frozen=True)
class DemoReport:
    """The results of the demonstration; plain values, `dataclasses.asdict` makes it JSON.

    Parameters
    ----------
    version
        Of SciPy.
    n_train, n_test
        Training documents, and test documents.
    n_columns
        N-grams that were read.
    longest
        Words of the longest of them.
    tasks
        The questions, and their results.
    n_models
        How many models learnt the n-grams at once.
    noise_floor
        The relevance to the last question that the best of as many columns of pure noise exceeds
        once in twenty times.
    n_above_noise, n_loadings
        How many n-grams are more relevant than that, and of how many the components of
        `RidgeComponents` are made; None without components.
    seconds
        Of each stage, and all together.
    columns_per_second
        N-grams a second, through all models.
    peak_bytes
        The peak memory of the process; None where the system does not report it.
    growth_bytes
        How much of it was added while the n-grams were read.
    dense_bytes
        The size of a dense matrix of the variables.
    """

    version: str
    n_train: int
    n_test: int
    n_columns: int
    longest: int
    tasks: list[Task]
    n_models: int
    noise_floor: float
    n_above_noise: int | None
    n_loadings: int | None
    seconds: dict[str, float]
    columns_per_second: float
    peak_bytes: int | None
    growth_bytes: int | None
    dense_bytes: int

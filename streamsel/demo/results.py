"""The results of the demonstration as plain values."""

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
        The class with the largest share of training documents that contain it.
    documents
        The number of training documents of each class that contain it.
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
        The name of the set.
    n_variables
        Its size.
    accuracy
        The fraction of test documents that are classified correctly.
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
    """One question about the documents, with its results.

    Parameters
    ----------
    question
        The question, in a sentence.
    classes
        The number of training documents of each class.
    selected
        The phrases that `ForwardSelection` selected, in order.
    scores
        The scores of the most frequent class, all single words, the selected phrases, and the
        components if there are any.
    recall
        The recall of each class on the test documents, with the last of these sets.
    """

    question: str
    classes: dict[str, int]
    selected: list[Phrase]
    scores: list[Score]
    recall: dict[str, float]


@dataclass(frozen=True)
class DemoReport:
    """The results of the demonstration; plain values, which `dataclasses.asdict` prepares for JSON.

    Parameters
    ----------
    version
        The version of SciPy.
    n_train, n_test
        The numbers of training and test documents.
    n_columns
        The number of n-grams read.
    longest
        The length of the longest n-grams in words.
    tasks
        The questions, and their results.
    n_models
        How many models learnt the n-grams at once.
    noise_floor
        The relevance to the last question that the maximum over as many columns of pure noise
        exceeds with probability 0.05.
    n_above_noise, n_loadings
        How many n-grams are more relevant than that, and how many have loadings in the components
        of `RidgeComponents`; None without components.
    seconds
        The time of each stage, and in total.
    columns_per_second
        N-grams per second, through all models.
    peak_bytes
        The peak memory of the process; None if the system does not report it.
    growth_bytes
        The increase of memory while the n-grams were read.
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

"""What the demonstration found: plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrase:
    """A phrase that `ForwardSelection` selected.

    Parameters
    ----------
    name
        Its words.
    package
        Of which sub-package the share of training documents that have it is the largest.
    documents
        In how many training documents of each sub-package it occurs.
    """

    name: str
    package: str
    documents: dict[str, int]


@dataclass(frozen=True)
class Score:
    """How a classifier did on the documents held out.

    Parameters
    ----------
    variables
        What it was given.
    n_variables
        How many those are.
    accuracy
        The share of the documents held out that it got right.
    """

    variables: str
    n_variables: int
    accuracy: float


@dataclass(frozen=True)
class DemoReport:
    """All that the demonstration found; plain values, `dataclasses.asdict` makes it JSON.

    Parameters
    ----------
    version
        Of SciPy.
    documents
        Training documents of each sub-package.
    n_train, n_test
        Documents learnt from, and held out.
    n_columns
        N-grams that passed.
    longest
        Words of the longest of them.
    noise_floor
        The relevance that the best of so many columns of pure noise exceeds once in twenty times.
    n_above_noise
        How many n-grams are more relevant than that.
    selected
        What `ForwardSelection` selected, in that order.
    n_loadings
        Of how many n-grams the components of `RidgeComponents` are made.
    scores
        How the classifiers did.
    recall
        Of the documents of each sub-package held out the share that the components got right.
    gained, lost
        How many of those held out the components get right and all single words do not, and the
        reverse.
    seconds
        What each stage took, and all together.
    columns_per_second
        N-grams a second, through both models.
    peak_bytes
        The most memory the process has had; None where the system does not say.
    growth_bytes
        How much of it came with the stream of columns.
    dense_bytes
        What a dense matrix of the variables would take.
    """

    version: str
    documents: dict[str, int]
    n_train: int
    n_test: int
    n_columns: int
    longest: int
    noise_floor: float
    n_above_noise: int
    selected: list[Phrase]
    n_loadings: int
    scores: list[Score]
    recall: dict[str, float]
    gained: int
    lost: int
    seconds: dict[str, float]
    columns_per_second: float
    peak_bytes: int | None
    growth_bytes: int | None
    dense_bytes: int

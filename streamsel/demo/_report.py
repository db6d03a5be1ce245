"""What the demonstration found: plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NGram:
    """An n-gram that `ProjSe` selected.

    Parameters
    ----------
    name
        Its words.
    relevance
        How relevant it is to the target.
    above_noise
        Whether that is more than noise would reach.
    library
        In which library's training documents it is the more frequent.
    documents
        In how many training documents of each library it occurs.
    """

    name: str
    relevance: float
    above_noise: bool
    library: str
    documents: dict[str, int]


@dataclass(frozen=True)
class Component:
    """A component that `SOSPCA` built.

    Parameters
    ----------
    name
        Its name.
    relevance
        How relevant it is to the target.
    loadings
        The weight of each n-gram in it, the heaviest first.
    """

    name: str
    relevance: float
    loadings: dict[str, float]


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
    versions
        Of the two libraries.
    documents
        Documents of each library.
    n_train, n_test
        Documents learnt from, and held out.
    n_columns
        N-grams that passed.
    longest
        Words of the longest of them.
    noise_floor
        The relevance that the best of so many columns of pure noise exceeds once in twenty times.
    selected
        What `ProjSe` selected, in that order.
    components
        What `SOSPCA` built.
    scores
        How the classifiers did.
    seconds
        What each stage took, and all together.
    columns_per_second
        N-grams a second, through both models.
    peak_bytes
        The most memory the process has had; None where the system does not say.
    growth_bytes
        How much of it came with the stream of columns.
    dense_bytes
        What a dense matrix of the counts would take.
    """

    versions: dict[str, str]
    documents: dict[str, int]
    n_train: int
    n_test: int
    n_columns: int
    longest: int
    noise_floor: float
    selected: list[NGram]
    components: list[Component]
    scores: list[Score]
    seconds: dict[str, float]
    columns_per_second: float
    peak_bytes: int | None
    growth_bytes: int | None
    dense_bytes: int

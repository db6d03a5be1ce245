"""What is selected again from other samples of the rows, where that was tried."""

from __future__ import annotations

from streamsel.evaluate import SubsampleStability
from streamsel.page._blocks import Block, Name, Row, Section, Table, Text
from streamsel.page._verdict import share
from streamsel.words import count

AGAIN = "Chosen again from other samples"
_MOST = 50


def again(found: SubsampleStability, picture: Block | None = None) -> Section:
    """Return what is selected of subsamples: how stable that is, in words and as a table.

    Parameters
    ----------
    found
        What `streamsel.evaluate.subsample_stability` returns.
    picture
        The same, drawn.
    """
    index = found.index
    told = "The index of Nogueira and others, 1 where all agree, is not defined."
    if index is not None:
        told = (
            f"The selections agree with an index of {index.value:.2f} ({index.low:.2f} to "
            f"{index.high:.2f}; 1 where all agree, 0 by chance): {found.verdict}."
        )
    how = f"{count(found.n_subsamples, 'sample')} of {found.rows_drawn:,} of {found.rows:,} rows."
    frequency = list(found.frequency.items())
    rows = [Row((Name(name), share(part))) for name, part in frequency[:_MOST]]
    rest = f"{len(frequency) - _MOST:,} more, less often" if len(frequency) > _MOST else ""
    n_open = 0 if picture else 10
    table = Table(AGAIN, ("variable", "samples"), rows, frozenset({1}), n_open, rest)
    blocks = (Text((f"{told} {how}",)), table)
    return Section(AGAIN, blocks if picture is None else (picture, *blocks))

"""The section on the stability of a selection over subsamples."""

from __future__ import annotations

from streamsel.evaluate import SubsampleStability
from streamsel.page._blocks import Block, Name, Row, Section, Table, Text
from streamsel.page._verdict import share
from streamsel.words import count

TITLE = "Selection frequency over subsamples"
_MAX_ROWS = 50


def again(found: SubsampleStability, picture: Block | None = None) -> Section:
    """Return a section on the stability of a selection over subsamples, with text and table.

    Parameters
    ----------
    found
        The result of `streamsel.evaluate.subsample_stability`.
    picture
        Its plot.
    """
    index = found.index
    text = "The stability index of Nogueira et al. is not defined."
    if index is not None:
        text = (
            f"The selections agree with a stability index of {index.value:.2f} ({index.low:.2f} to "
            f"{index.high:.2f}; 1 for identical selections, 0 for random ones): {found.verdict}."
        )
    sampling = (
        f"{count(found.n_subsamples, 'sample')} of {found.rows_drawn:,} of {found.rows:,} rows."
    )
    frequency = list(found.frequency.items())
    rows = [Row((Name(name), share(part))) for name, part in frequency[:_MAX_ROWS]]
    rest = f"{len(frequency) - _MAX_ROWS:,} less frequent" if len(frequency) > _MAX_ROWS else ""
    n_open = 0 if picture else 10
    table = Table(TITLE, ("variable", "samples"), rows, frozenset({1}), n_open, rest)
    blocks = (Text((f"{text} {sampling}",)), table)
    return Section(TITLE, blocks if picture is None else (picture, *blocks))

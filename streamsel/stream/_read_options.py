"""How files are to be read, where their names and first bytes do not show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Decimal = Literal[".", ","]
NaValues = str | float | Iterable[str | float] | None


class ReadOptions(NamedTuple):
    """How a file is to be read.

    Parameters
    ----------
    delimiter, decimal
        Of text: between cells, and in numbers; None to find out.
    na_values
        Of text: cells that stand for a missing value besides the usual ones.
    layer, raw
        Of AnnData: which of its matrices, as in `iter_anndata`.
    genotypes
        Of .bed: what stands for a missing one, as in `iter_bed`.
    """

    delimiter: str | None = None
    decimal: Decimal | None = None
    na_values: tuple[str, ...] = ()
    layer: str | None = None
    raw: bool = False
    genotypes: Literal["mean", "keep"] = "mean"


AS_FOUND = ReadOptions()

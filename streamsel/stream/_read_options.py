"""Options for reading files that cannot be inferred from their names and first bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Decimal = Literal[".", ","]
NaValues = str | float | Iterable[str | float] | None


class ReadOptions(NamedTuple):
    """Options for reading a file.

    Parameters
    ----------
    delimiter, decimal
        Delimiter and decimal mark of text; None to infer them.
    na_values
        Cells of text that denote a missing value, in addition to the usual ones.
    layer, raw
        Matrix of an AnnData file, as in `iter_anndata`.
    genotypes
        Treatment of missing genotypes of a .bed file, as in `iter_bed`.
    """

    delimiter: str | None = None
    decimal: Decimal | None = None
    na_values: tuple[str, ...] = ()
    layer: str | None = None
    raw: bool = False
    genotypes: Literal["mean", "keep"] = "mean"


AS_FOUND = ReadOptions()

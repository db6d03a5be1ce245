"""Streams of genotypes: the .bed, .bim and .fam files of PLINK 1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from streamsel._kernels.allele_counts import unpack_bytes
from streamsel.stream._genotypes import GenotypeFile, distinct_names, open_genotypes
from streamsel.stream._parts import Stamp
from streamsel.stream._remote import open_binary
from streamsel.stream._text_cells import LINE_BYTES, open_text, text_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    import numpy.typing as npt

    from streamsel.stream._stream import ColumnStream

_BY_VARIANT = b"\x6c\x1b\x01"
_BY_SAMPLE = b"\x6c\x1b\x00"
# Number of copies of the first allele encoded by two bits; 01 is missing.
_COPIES = (2, -1, 1, 0)


def iter_bed(
    path: str | os.PathLike[str], *, missing: Literal["mean", "keep"] = "mean"
) -> ColumnStream:
    r"""Stream the variants of a PLINK 1 genotype file that may exceed memory.

    Parameters
    ----------
    path
        The .bed file, or its URL, variant-major as PLINK writes it; the .bim and .fam files must be
        in the same folder, with the same stem.
    missing
        Treatment of missing genotypes: "mean" imputes the mean of the variant, "keep" yields NaN.
        A learner that excludes rows without a target imputes the mean of the other rows.

    Returns
    -------
    ColumnStream
        One column per variant: the number of copies (0, 1 or 2) of the first allele of the .bim
        file (A1, usually the minor one) in each sample. Its `row_metadata` has the sample
        metadata of the .fam file: "IID", "FID", "sex" and "phenotype". Its `column_metadata` has
        the variants of the .bim file: "name", "chromosome", "position" (0 if it is unknown: 0 or
        negative in the file), "effect_allele" (A1, which is counted) and "other_allele".

    Raises
    ------
    FileNotFoundError
        If one of the three files is missing.
    ValueError
        If the file is not a variant-major .bed file of PLINK 1, or its size does not match the
        numbers of variants and samples in the .bim and .fam files; if a line of these has too few
        cells; if `missing` is neither "mean" nor "keep".

    Notes
    -----
    Columns are named by the identifiers of the variants. Identifiers that are "." or occur more
    than once are replaced by chromosome:position:A1:A2, with :2, :3 and so on appended if that name
    is already used.

    The .bim and .fam files are read once, when the function is called; the .bim file again when
    `column_metadata` is used. About 1 MiB of genotypes is
    unpacked at a time, to int8. If a genotype is missing, its group of neighbouring variants (64,
    or as many as make a block if that is less) is float32. Few variants of a cohort are complete,
    and association tests usually impute means; `clean(iter_bed(path, missing="keep"),
    missing="mean")` also counts the imputed variants. A variant without any genotype stays NaN.

    Missing phenotypes (-9, non-numeric values, and 0 if the others are 1 and 2: control and case)
    are NaN; so is a sex other than 1 (male) and 2 (female).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.bed")
    ...     _ = path.write_bytes(bytes([0x6C, 0x1B, 1, 0b00_10_11, 0b01_00_10]))
    ...     _ = path.with_suffix(".bim").write_text("1 rs7 0 100 A G\n1 . 0 200 T C\n")
    ...     _ = path.with_suffix(".fam").write_text("F a 0 0 1 2\nF b 0 0 2 1\nF c 0 0 2 1\n")
    ...     stream = iter_bed(path)
    ...     for name, values in stream:
    ...         print(name, values)
    ...     for name, values in iter_bed(path, missing="keep").skip(1):
    ...         print(name, values)
    rs7 [0. 1. 2.]
    1:200:T:C [1.  2.  1.5]
    1:200:T:C [ 1.  2. nan]
    >>> stream.row_metadata["phenotype"]
    array([2, 1, 1])
    """
    files = tuple(Stamp.of(name) for name in _file_paths(path))
    return open_genotypes(_BedFile, path, missing, files)


class _BedFile(GenotypeFile):
    """A .bed file with its .bim and .fam files.

    Parameters
    ----------
    path, missing
        As in `iter_bed`.

    Attributes
    ----------
    variant_bytes
        Bytes of a variant in the file.
    """

    def __init__(self, path: str | os.PathLike[str], missing: str) -> None:
        self._path, self._bim, fam = _file_paths(path)
        super().__init__(_variants(self._bim), _samples(fam), missing)
        self.variant_bytes = -(-self.n_rows // 4)
        size = max(1, self.variant_bytes)
        self.bytes_before = range(0, (len(self.names) + 1) * size, size)
        self._check()

    def open(self) -> BinaryIO:
        """Open the .bed file."""
        return open_binary(self._path, anywhere=True)

    def loci(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield chromosome, position, counted allele and other allele of every variant."""
        for chromosome, _, _, position, counted, other, *_ in _cells(self._bim, 6, "variant"):
            yield chromosome, position, counted, other

    def _check(self) -> None:
        with self.open() as file:
            start = file.read(3)
            size = file.seek(0, os.SEEK_END)
        if start == _BY_SAMPLE:
            raise ValueError(
                f"Expected a variant-major .bed file. Got: {self._path!r}, which is sample-major.\n"
                "Hint: convert it with plink --bfile NAME --make-bed."
            )
        if start != _BY_VARIANT:
            raise ValueError(
                f"Expected a .bed file of PLINK 1. Got: {self._path!r}, whose first bytes differ."
            )
        expected = 3 + len(self.names) * self.variant_bytes
        if size != expected:
            raise ValueError(
                f"Expected {expected:,} bytes for {len(self.names):,} variants of the .bim and "
                f"{self.n_rows:,} samples of the .fam file. Got: {size:,} bytes in {self._path!r}."
            )

    def allele_counts(
        self, file: BinaryIO, a: int, b: int
    ) -> tuple[npt.NDArray[np.int8], ValueError | None]:
        """Unpack variants byte by byte, four samples each."""
        file.seek(3 + a * self.variant_bytes)
        data = file.read((b - a) * self.variant_bytes)
        if len(data) != (b - a) * self.variant_bytes:
            raise ValueError(
                f"Expected {self._path!r} to be unchanged. Got: fewer bytes than before."
            )
        packed = np.frombuffer(data, np.uint8).reshape(b - a, self.variant_bytes)
        counts = np.empty(packed.shape, np.uint32)
        unpack_bytes(packed, _COUNTS, counts)
        return np.ascontiguousarray(counts.view(np.int8)[:, : self.n_rows]), None


# For every byte, its four counts viewed as a single number.
_FOUR = (np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3
_COUNTS = np.array(_COPIES, np.int8)[_FOUR].view(np.uint32)[:, 0]


def _file_paths(path: str | os.PathLike[str]) -> tuple[str, str, str]:
    bed = os.fsdecode(path)
    stem = bed[:-4] if bed.lower().endswith(".bed") else bed
    return bed, f"{stem}.bim", f"{stem}.fam"


def _cells(path: str, n: int, record: str) -> Iterator[list[str]]:
    """Yield the cells of every line; raise ValueError if one has fewer than n."""
    with open_text(path, LINE_BYTES) as file, text_errors(path):
        for number, line in enumerate(file, start=1):
            cells = line.split()
            if len(cells) < n:
                if not line.strip(" \n"):  # a blank line
                    continue
                raise ValueError(
                    f"Expected {n} cells for a {record} in line {number} of {path!r}. "
                    f"Got: {len(cells)}."
                )
            yield cells


def _variants(path: str) -> list[Hashable]:
    """Return the names of the variants, each distinct."""

    def loci(indices: list[int]) -> Iterator[str]:
        remaining = iter(indices)
        i = next(remaining)
        for j, cells in enumerate(_cells(path, 6, "variant")):
            if i == j:
                yield ":".join((cells[0], *cells[3:6]))
                i = next(remaining, -1)

    return distinct_names([cells[1] for cells in _cells(path, 6, "variant")], loci)


def _samples(path: str) -> dict[str, npt.NDArray[Any]]:
    lines = list(_cells(path, 6, "sample"))
    columns: Sequence[Sequence[str]] = list(zip(*lines, strict=False)) or [()] * 6
    family, individual, _, _, sex, phenotype = columns[:6]
    numbers = _numbers(phenotype, lambda number: number == -9)
    if set(numbers[~np.isnan(numbers)]) <= {0.0, 1.0, 2.0}:
        numbers[numbers == 0] = np.nan
    return {
        "IID": np.array(individual, dtype=object),
        "FID": np.array(family, dtype=object),
        "sex": _as_integers(_numbers(sex, lambda number: number not in (1, 2))),
        "phenotype": _as_integers(numbers),
    }


def _numbers(cells: Sequence[str], is_missing: Callable[[float], bool]) -> npt.NDArray[np.float64]:
    """Convert cells to numbers, with NaN for text and for codes of missing values."""

    def number(cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            return np.nan
        return np.nan if is_missing(value) else value

    return np.array([number(cell) for cell in cells], dtype=np.float64)


def _as_integers(numbers: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Convert codes to integers if none is missing, so that they can serve as classes."""
    is_integer = np.isfinite(numbers) & (np.abs(numbers) < 2**53) & (numbers == np.floor(numbers))
    if is_integer.all():
        return numbers.astype(np.int64)
    return numbers

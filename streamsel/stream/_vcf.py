"""Streams of genotypes: VCF files, plain or compressed by bgzip."""

from __future__ import annotations

import os
import re
from array import array
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np

from streamsel._kernels.genotypes import count_alternate_alleles
from streamsel.stream._blocks import BLOCK_BYTES
from streamsel.stream._genotypes import GenotypeFile, distinct_names, open_genotypes
from streamsel.stream._parts import Stamp
from streamsel.stream._text_cells import (
    FIRST_BYTES,
    LineBound,
    is_zipped,
    open_unzipped,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from streamsel.stream._stream import ColumnStream

# Cells of a line before those of the samples.
_FIXED = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
_N_FIXED = len(_FIXED)
# Maximum number of bytes of a sample's cell, on average over a long line.
_SAMPLE_BYTES = 1024
_GENOTYPE = re.compile(rb"[/|]?(\.|[0-9]+)([/|](\.|[0-9]+)){0,126}")


def iter_vcf(
    path: str | os.PathLike[str], *, missing: Literal["mean", "keep"] = "mean"
) -> ColumnStream:
    r"""Stream the variants of a VCF file that may exceed memory.

    Parameters
    ----------
    path
        The file, plain or gzipped (`.vcf.gz` as by bgzip), or its URL.
    missing
        Treatment of missing genotypes: "mean" imputes the mean of the variant, "keep" yields NaN.
        A learner that excludes rows without a target imputes the mean of the other rows.

    Returns
    -------
    ColumnStream
        One column per line: the number of alternate alleles in the genotype (GT) of each sample, 0,
        1 or 2 if it is diploid, 0 or 1 if it is haploid. Its `row_metadata` has the names of the
        samples, "IID". Its `column_metadata` has the variants: "name", "chromosome", "position" (0
        if it is unknown), "effect_allele" (ALT, which is counted) and "other_allele" (REF).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a VCF file, has no samples, or is truncated; if a line has too few or
        too many cells, or a cell whose GT is not a genotype; if `missing` is neither "mean" nor
        "keep". The error names the line.

    Notes
    -----
    All alternate alleles of a multiallelic site are counted together, so that the column is the
    ploidy minus the number of reference alleles. ``bcftools norm -m-`` writes one line, and thus
    column, per allele. A genotype is missing if one of its alleles is, or if FORMAT or the sample
    has no GT. Phase is ignored.

    Columns are named by the identifiers of the variants. Identifiers that are "." or occur more
    than once are replaced by chromosome:position:REF:ALT, with :2, :3 and so on appended if that
    name is already used.

    The file is scanned once for the names, when the function is called, once more if
    `column_metadata` is used, and read in every pass. Memory is that of the names, 8 bytes per
    variant, and a few megabytes; dtypes are those of `iter_bed`. A plain file is read from any
    variant, and can be split into parts; each process that reads a part scans the file, too. A
    gzipped file is read from its beginning, and is one part.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> lines = [
    ...     "##fileformat=VCFv4.2",
    ...     "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT a b c",
    ...     "1 100 rs7 A G . PASS . GT 0|0 0|1 1|1",
    ...     "1 200 . T C,G . PASS . GT:DP 1/2:9 ./.:0 0/1:7",
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.vcf")
    ...     _ = path.write_text("\n".join(lines).replace(" ", "\t"))
    ...     stream = iter_vcf(path, missing="keep")
    ...     for name, values in stream:
    ...         print(name, values)
    rs7 [0. 1. 2.]
    1:200:T:C,G [ 2. nan  1.]
    >>> stream.row_metadata["IID"]
    array(['a', 'b', 'c'], dtype=object)
    """
    return open_genotypes(_VcfFile, path, missing, (Stamp.of(path),))


class _VcfFile(GenotypeFile):
    """A VCF file.

    Parameters
    ----------
    path, missing
        As in `iter_vcf`.

    Attributes
    ----------
    starts
        Offset of every variant's line in the uncompressed file, and of the end of the last.
    """

    def __init__(self, path: str | os.PathLike[str], missing: str) -> None:
        self._path = os.fspath(path)
        self.is_sequential = is_zipped(path)
        with self.open() as file, text_errors(path):
            start, samples = self._header(file)
            ids, loci, lengths = self._scan(file, start, len(samples))
        self.starts = np.cumsum([start, *lengths])
        with text_errors(path):
            names = distinct_names(ids, partial(self._loci, loci))
        super().__init__(names, {"IID": np.array(samples, dtype=object)}, missing)
        share = Stamp.of(path).size / max(1, self.starts[-1]) if self.is_sequential else 1.0
        self.bytes_before = array("q", (share * self.starts).astype(np.int64).tobytes())

    def open(self) -> BinaryIO:
        """Open the uncompressed bytes."""
        return open_unzipped(self._path, anywhere=True)

    def _header(self, file: BinaryIO) -> tuple[int, list[str]]:
        """Return the offset of the first variant, and the names of the samples."""
        start = 0
        self._n_header = 1
        for line in _lines(self._path, file, FIRST_BYTES, 0):
            start += len(line)
            if not line.startswith(b"##"):
                break
            self._n_header += 1
        else:
            line = b""
        cells = line.rstrip(b"\r\n").split(b"\t")
        if cells[0] != b"#CHROM":
            raise ValueError(
                f"Expected a VCF file: lines with ##, then the header, which begins with #CHROM. "
                f"Got: {line[:40].decode(errors='replace')!r} in line {self._n_header} of "
                f"{self._path!r}."
            )
        if len(cells) <= _N_FIXED:
            raise ValueError(
                f"Expected samples after FORMAT in line {self._n_header} of {self._path!r}. Got: "
                f"{len(cells)} cells.\nHint: a VCF file of sites has no genotypes."
            )
        return start, [cell.decode() for cell in cells[_N_FIXED:]]

    def _scan(
        self, file: BinaryIO, start: int, n_samples: int
    ) -> tuple[list[str], dict[int, str], list[int]]:
        """Return the identifiers, the loci of those that are ".", and the lengths of lines."""
        ids: list[str] = []
        loci: dict[int, str] = {}
        lengths: list[int] = []
        blank = b""
        longest = max(FIRST_BYTES, n_samples * _SAMPLE_BYTES)
        for line in _lines(self._path, file, longest, start):
            if line in (b"\n", b"\r\n"):  # valid only at the end
                blank = line
                continue
            cells = line.split(b"\t", 5)
            if blank or len(cells) <= 5:
                raise self._error_of(blank or line, len(ids), n_samples)
            if cells[2] == b".":
                loci[len(ids)] = _locus(cells)
            ids.append(cells[2].decode())
            lengths.append(len(line))
        return ids, loci, lengths

    def _loci(self, known: dict[int, str], indices: list[int]) -> Iterator[str]:
        """Yield the loci of variants; read the unknown ones."""
        with self.open() as file:
            for i in indices:
                if i not in known:
                    file.seek(self.starts[i])
                    yield _locus(self._read(file, i, i + 1).split(b"\t", 5))
                else:
                    yield known[i]

    def loci(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield chromosome, position, counted allele and other allele of every variant."""
        longest = max(FIRST_BYTES, self.n_rows * _SAMPLE_BYTES)
        with self.open() as file, text_errors(self._path):
            file.seek(self.starts[0])
            for line in _lines(self._path, file, longest, int(self.starts[0])):
                cells = line.split(b"\t", 5)
                if len(cells) > 5:  # not a blank line at the end
                    chromosome, position, _, reference, alternate = (
                        cell.decode() for cell in cells[:5]
                    )
                    yield chromosome, position, alternate, reference

    def _read(self, file: BinaryIO, a: int, b: int) -> bytes:
        """Read the lines a, ..., b - 1."""
        size = int(self.starts[b] - self.starts[a])
        with text_errors(self._path):
            data = file.read(size)
        if len(data) != size:
            raise ValueError(
                f"Expected {self._path!r} to be unchanged. Got: fewer bytes than before."
            )
        return data

    def allele_counts(
        self, file: BinaryIO, a: int, b: int
    ) -> tuple[npt.NDArray[np.int8], ValueError | None]:
        """Return the counts of alternate alleles, about 4 MiB of text at a time."""
        counts = np.empty((b - a, self.n_rows), np.int8)
        with text_errors(self._path):
            file.seek(self.starts[a])
        first = a
        while first < b:
            limit = self.starts[first] + BLOCK_BYTES
            last = int(np.searchsorted(self.starts[: b + 1], limit, "right")) - 1
            last = max(first + 1, last)
            data = self._read(file, first, last)
            starts = self.starts[first : last + 1] - self.starts[first]
            text = np.frombuffer(data, np.uint8)
            n_valid = count_alternate_alleles(text, starts, counts[first - a : last - a])
            first += n_valid
            if first < last:
                line = data[starts[n_valid] : starts[n_valid + 1]]
                return counts[: first - a], self._error_of(line, first, self.n_rows)
        return counts, None

    def _error_of(self, line: bytes, i: int, n_samples: int) -> ValueError:
        """Return the error of a damaged line, the i-th after the header."""
        where = f"line {self._n_header + 1 + i} of {self._path!r}"
        cells = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        if len(cells) != _N_FIXED + n_samples:
            return ValueError(
                f"Expected {_N_FIXED + n_samples:,} cells in {where}, as the header has. Got: "
                f"{len(cells):,}.\nHint: check that the file is complete, and separated by tabs."
            )
        field = cells[_N_FIXED - 1].split(b":").index(b"GT")
        genotypes = [cell.split(b":")[field : field + 1] for cell in cells[_N_FIXED:]]
        bad = next(
            j for j, found in enumerate(genotypes) if found and not _GENOTYPE.fullmatch(found[0])
        )
        return ValueError(
            f"Expected a genotype such as 0/1 in column {_N_FIXED + 1 + bad:,} of {where}. Got: "
            f"{genotypes[bad][0][:40].decode(errors='replace')!r}."
        )


def _lines(path: str, file: BinaryIO, longest: int, start: int) -> Iterator[bytes]:
    """Yield the lines; raise ValueError if one is longer than `longest` bytes."""
    while line := file.readline(longest + 1):
        if len(line) > longest:
            LineBound(path, longest, longest, start).check(line)
        start += len(line)
        yield line


def _locus(cells: list[bytes]) -> str:
    """Return chromosome:position:REF:ALT, of the first cells of a line."""
    return b":".join((*cells[:2], *cells[3:5])).decode()

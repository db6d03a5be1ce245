"""Genotypes in the text of VCF files: counts of alternate alleles."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

_TAB, _LINE_FEED, _RETURN = 9, 10, 13
_DOT, _SLASH, _ZERO, _NINE, _COLON, _BAR = 46, 47, 48, 57, 58, 124
_G, _T = 71, 84
# Cells of a line before the samples: chromosome, position, ..., and the format of the samples.
_N_FIXED = 9
_MAX_COUNT = 127


@kernel()
def _end_of(text: np.ndarray, start: int, end: int) -> int:
    """Return the index of the first tab from `start` on, `end` if there is none."""
    while start < end and text[start] != _TAB:
        start += 1
    return start


@kernel()
def _genotype_field(text: np.ndarray, start: int, end: int) -> int:
    """Return the index of GT among the fields of a format, -1 without it."""
    field = 0
    for i in range(start, end):
        if text[i] == _COLON:
            field += 1
        elif (
            text[i] == _G
            and (i == start or text[i - 1] == _COLON)
            and i + 1 < end
            and text[i + 1] == _T
            and (i + 2 == end or text[i + 2] == _COLON)
        ):
            return field
    return -1


@kernel()
def _count_alleles(text: np.ndarray, start: int, end: int) -> tuple[int, int]:
    """Return the alternate alleles of a genotype of any ploidy, and the index of its end.

    The count is -1 if an allele is missing, -2 for anything but a genotype.
    """
    count, i = 0, start
    is_missing = False
    if i < end and (text[i] == _SLASH or text[i] == _BAR):  # the phase of the first allele
        i += 1
    while True:
        first = i
        is_alternate = False
        if i < end and text[i] == _DOT:
            is_missing = True
            i += 1
        else:
            while i < end and _ZERO <= text[i] <= _NINE:
                is_alternate |= text[i] != _ZERO
                i += 1
        count += is_alternate
        if i == first or count > _MAX_COUNT:
            return -2, i
        if i == end or text[i] == _TAB or text[i] == _COLON:
            return (-1 if is_missing else count), i
        if text[i] != _SLASH and text[i] != _BAR:
            return -2, i
        i += 1


@kernel()
def count_alternate_alleles(text: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> int:
    """Count the alternate alleles of each sample in lines of a VCF file.

    Parameters
    ----------
    text
        The bytes of complete lines.
    starts
        (m + 1,) the index of the first byte of every line, and of the end of the last.
    counts
        (m, n) int8, is overwritten: the alleles of each sample that are not the reference, -1 if
        one is missing.

    Returns
    -------
    Number of valid lines before the first that has another number of cells, or an invalid
    genotype; m if there is no such line.
    """
    m, n = counts.shape
    for line in range(m):
        i, end = starts[line], starts[line + 1]
        if end > i and text[end - 1] == _LINE_FEED:
            end -= 1
        if end > i and text[end - 1] == _RETURN:
            end -= 1
        for _ in range(_N_FIXED - 1):
            i = min(_end_of(text, i, end) + 1, end)
        after = _end_of(text, i, end)
        field = _genotype_field(text, i, after)
        i = after
        for sample in range(n):
            if i == end:
                return line
            i += 1  # after the tab
            if (
                field == 0
                and i + 3 < end
                and _ZERO <= text[i] <= _NINE
                and _ZERO <= text[i + 2] <= _NINE
                and (text[i + 1] == _BAR or text[i + 1] == _SLASH)
                and (text[i + 3] == _TAB or text[i + 3] == _COLON)
            ):
                # Nearly all genotypes are two alleles of one digit.
                count = (text[i] != _ZERO) + (text[i + 2] != _ZERO)
                i += 3
            else:
                count = -1
                for _ in range(field):
                    while i < end and text[i] != _TAB and text[i] != _COLON:
                        i += 1
                    if i == end or text[i] == _TAB:
                        break
                    i += 1
                else:
                    if field >= 0:
                        count, i = _count_alleles(text, i, end)
                        if count == -2:
                            return line
            counts[line, sample] = count
            i = _end_of(text, i, end)
        if i != end:
            return line
    return m

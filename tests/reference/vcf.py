"""A VCF reader by definition: line by line, cell by cell."""

import re

import numpy as np


def columns(text):
    """Return name -> number of alternate alleles per sample, NaN if missing; and the samples."""
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("##")]
    header, *variants = lines
    ids = [cells[2] for cells in variants]
    found = {}
    names_of_their_own = {name for name in ids if name != "." and ids.count(name) == 1}
    for cells in variants:
        chromosome, position, name, ref, alt = cells[:5]
        if name not in names_of_their_own:
            name = locus = f"{chromosome}:{position}:{ref}:{alt}"
            number = 2
            while name in found or name in names_of_their_own:
                name, number = f"{locus}:{number}", number + 1
        found[name] = np.array([_count(cells[8], cell) for cell in cells[9:]], dtype=float)
    return found, header[9:]


def _count(form, cell):
    fields = dict(zip(form.split(":"), cell.split(":"), strict=False))
    alleles = re.split(r"[/|]", fields.get("GT", ".").lstrip("/|"))
    if "." in alleles:
        return np.nan
    return sum(int(allele) > 0 for allele in alleles)

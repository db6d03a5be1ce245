"""Data where they are, learning included, beside the bare reader of their own library."""

import numpy as np
import pytest

from streamsel import ProjSe
from streamsel.stream import iter_bed, screen

N = 2000


def _learn(stream, y):
    model = ProjSe(10, max_candidates=100)
    model.learn_target(y)
    model.learn_columns(stream)


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(1).normal(size=N)


@pytest.mark.parametrize("missing", [0.0, 0.001])
def test_bed(against, size, tmp_path, y, missing):
    from bed_reader import open_bed, to_bed

    path, p = tmp_path / "x.bed", size(50_000)
    rng = np.random.default_rng(0)
    genotypes = rng.integers(0, 3, size=(p, N), dtype=np.int8).T
    genotypes[missing > rng.random((p, N), dtype=np.float32).T] = -127
    to_bed(path, genotypes)
    how = f"{100 * missing:g} % missing" if missing else "whole"
    against(
        f".bed, {how}, {N}×{p:,}, ProjSe / bed_reader's read as int8, one thread",
        lambda: _learn(screen(iter_bed(path), missing="mean"), y),
        lambda: open_bed(path, num_threads=1).read(dtype="int8", order="F"),
        bar=1.2,
    )

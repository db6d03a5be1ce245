"""Columns whose moments are computed without their values give the same answers as the columns."""

import numpy as np

from streamsel.stream import ColumnStream, iter_polynomials
from tests.conformance.modes import COLUMN_MODES, learnt, over, same, target_of


def base():
    """Return a few columns, one constant and one with a large mean, for 186 products."""
    X = np.random.default_rng(0).normal(size=(40, 18)) + 0.5
    X[:, 3], X[:, 5] = 1.0, X[:, 5] + 1000.0
    return X


def made(source):
    return ColumnStream(source.blocks, n_rows=source.n_rows)


@over(COLUMN_MODES)
def test_generated_columns_equal_materialised_columns(mode, monkeypatch):
    monkeypatch.setattr("streamsel.data.columns._MAX_GENERATED_COLUMNS", 16)
    source = iter_polynomials(base())
    X = np.column_stack([x for _, x in source])
    y = target_of(mode, X)
    same(learnt(mode, made(source), y), learnt(mode, source, y))

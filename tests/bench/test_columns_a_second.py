"""Columns per second of methods that decide on arrival: few relevant columns, or noise alone."""

import numpy as np
import pytest

from streamsel import OSFS, SAOLA, AlphaInvesting, OnlineFDR
from tests.bench.jobs import planted
from tests.bench.test_columns import fortran, learnt

N = 500


@pytest.mark.parametrize("of", ["signal", "noise"])
@pytest.mark.parametrize("cls", [AlphaInvesting, OnlineFDR, OSFS, SAOLA])
def test_columns_a_second(benchmark, report, size, repeats, cls, of):
    p, rng = size(50_000), np.random.default_rng(0)
    if of == "signal":
        X, y = planted(N, p, classes=False, many=False, seed=1)[:2]
    else:
        X, y = fortran(rng, N, p), rng.standard_normal(N)
    rounds = {"rounds": repeats(5), "warmup_rounds": 1}
    model = benchmark.pedantic(learnt, (cls, y, X), **rounds)
    rate = p / benchmark.stats.stats.median
    what = f"{cls.__name__}, n={N} p={p:,}, {of}, {len(model.selected)} selected"
    report(f"{what}: columns per second", f"{rate:,.0f}")

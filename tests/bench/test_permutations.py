"""Compare a pass with permuted targets with one product of all targets and the columns."""

import numpy as np
import pytest

from streamsel import SelectKBest
from tests.bench.test_columns import fortran, learner

SHAPES = {"n=79 p=12,625": (79, 12_625), "n=1,000 p=20,000": (1000, 20_000)}


@pytest.mark.parametrize("permutations", [0, 100, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_pass_with_permutations(against, size, shape, permutations):
    n, p = SHAPES[shape]
    rng = np.random.default_rng(0)
    X, y = fortran(rng, n, size(p)), rng.normal(size=n)
    Y = np.array([rng.permutation(y) for _ in range(permutations + 1)])
    against(
        f"SelectKBest permutations={permutations}, {shape} / Y @ X, Y of {permutations + 1} rows",
        learner(SelectKBest, y, X, k=10, permutations=permutations),
        lambda: Y @ X,
        data=X.nbytes,
    )

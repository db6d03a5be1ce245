"""Columns learnt in parts, with further passes: exact results equal those of one process."""

import numpy as np
import pytest

from tests import in_parts
from tests.conformance.modes import COLUMN_MODES, data, fresh, learnt, over, same
from tests.conformance.test_merging import WHOLE


@over(COLUMN_MODES)
def test_first_and_second_pass_in_parts(mode):
    X, y = data(mode, c=3)
    rng, model = np.random.default_rng(0), fresh(mode, y)
    parts = in_parts.streams(X, [0, 50, 50, 51, 160])
    why = model._reason_not_partitioned()
    if why is not None:
        with pytest.raises(ValueError, match=why):
            in_parts.learn_once(model, parts, rng)
        return
    model, whole = in_parts.learn_once(model, parts, rng), learnt(mode, X, y)
    if str(mode) in WHOLE:
        same(whole, model, in_parts=True)
    one = in_parts.sent(model)
    in_parts.read_again(model, parts, rng)
    assert model._next_pass() is None
    if mode.params.get("exact"):
        assert model.selected == whole.selected
        assert model.n_certified == whole.n_certified == len(model.selected)
        np.testing.assert_allclose([*model.scores.values()], [*whole.scores.values()], rtol=1e-9)
    elif one._wants_second_pass:
        one.learn_loadings(X)
        same(one, model)

"""Words of messages: what the script counts, on a stream that is made up."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

PAPERS = Path(__file__).parents[1] / "demos" / "papers"


@pytest.fixture
def text(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    import text_stream

    yield text_stream
    for name in ("text_stream", "_experiment"):
        sys.modules.pop(name, None)


def test_f1_and_how_far_apart(text):
    rng = np.random.default_rng(0)
    said, other, truth = rng.random(80), rng.random(80), rng.random(80) < 0.3
    assert text.f1(said, truth) == pytest.approx(100 * f1_score(truth, said > 0.5))
    assert text.apart(said, said, truth) == {"apart": 0.0, "low": 0.0, "high": 0.0}
    found = text.apart(said, other, truth)
    assert found["apart"] == text.f1(said, truth) - text.f1(other, truth)
    assert found["low"] < found["apart"] < found["high"]


def test_rows_are_answered_before_they_are_learnt(text):
    rows = text.planted(60)
    said, _ = text.answers(text.logistic(0.3), rows)
    model = text.logistic(0.3)
    for chance, (x, y) in zip(said, rows, strict=True):
        assert model.predict_proba_one(x)[True] == chance
        model.learn_one(x, y)


def test_the_rate_is_that_of_the_first_half(text):
    runs = pd.DataFrame(
        {"front": ["a"] * 3, "order": [-1] * 3, "first": [1.0, 3.0, 2.0], "second": [9.0, 4.0, 8.0]}
    )
    assert text.chosen(runs)["second"].tolist() == [4.0]


@pytest.mark.parametrize("part", [("front", "ProjSe(50)", 0.3), ("stored", "ProjSe(200)", 0.3)])
def test_all_words_are_what_others_stand_beside(text, part):
    row = text.work(Path(), text.QUICK, *part, -1)[0]
    everything = text.work(Path(), text.QUICK, "front", text.ALL, 0.3, -1)[0]
    assert everything["low"] == everything["high"] == everything["apart"] == 0.0
    assert row["second"] - everything["second"] == pytest.approx(row["apart"])
    assert row["n"] == 800

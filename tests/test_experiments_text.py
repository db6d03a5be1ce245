"""The experiment with words of messages: its counts on a synthetic stream."""

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


def test_f1_and_its_difference(text):
    rng = np.random.default_rng(0)
    spam, other, truth = rng.random(80), rng.random(80), rng.random(80) < 0.3
    assert text.f1(spam, truth) == pytest.approx(100 * f1_score(truth, spam > 0.5))
    none = text.difference(spam, spam, truth)
    assert none == {"difference": 0.0, "low": 0.0, "high": 0.0}
    found = text.difference(spam, other, truth)
    assert found["difference"] == text.f1(spam, truth) - text.f1(other, truth)
    assert found["low"] < found["difference"] < found["high"]


def test_rows_are_predicted_before_they_are_learnt(text):
    rows = text.planted(60)
    spam, _ = text.predictions(text.logistic(0.3), rows)
    model = text.logistic(0.3)
    for chance, (x, y) in zip(spam, rows, strict=True):
        assert model.predict_proba_one(x)[True] == chance
        model.learn_one(x, y)


def test_the_learning_rate_is_tuned_on_the_first_half(text):
    runs = pd.DataFrame(
        {
            "transformer": ["a"] * 3,
            "order": [-1] * 3,
            "first": [1.0, 3.0, 2.0],
            "second": [9.0, 4.0, 8.0],
        }
    )
    assert text.chosen(runs)["second"].tolist() == [4.0]


@pytest.mark.parametrize(
    "part", [("transformers", "ProjSe(50)", 0.3), ("stored", "ProjSe(200)", 0.3)]
)
def test_differences_are_relative_to_all_words(text, part):
    row = text.work(Path(), text.QUICK, *part, -1)[0]
    everything = text.work(Path(), text.QUICK, "transformers", text.ALL, 0.3, -1)[0]
    assert everything["low"] == everything["high"] == everything["difference"] == 0.0
    assert row["second"] - everything["second"] == pytest.approx(row["difference"])
    assert row["n"] == 800

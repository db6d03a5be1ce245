"""Indicator columns of categories."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river.preprocessing import OneHotEncoder

from streamsel import SelectKBest, stream


def columns_of(source):
    return {name: values.toarray().ravel().tolist() for name, values in source}


def test_indicators_are_those_of_river():
    labels = {"a": ["x", "y", "x"], "b": [2, 1, 2], "c": [True, False, True]}
    rows = [dict(zip(labels, row, strict=True)) for row in zip(*labels.values(), strict=True)]
    encoder = OneHotEncoder()
    for row in rows:
        encoder.learn_one(row)
    expected = [encoder.transform_one(row) for row in rows]
    found = columns_of(stream.iter_one_hot(labels))
    assert [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)] == [
        {name: row[name] for name in found} for row in expected
    ]
    assert found.keys() == expected[0].keys()


def test_a_model_of_indicators_continues_on_encoded_rows():
    colours = ["red", "blue", "green", "red"] * 10
    y = [colour == "red" for colour in colours]
    model = SelectKBest(1)
    model.learn_target(y)
    model.learn_columns(stream.iter_one_hot({"colour": colours}))
    encoder = OneHotEncoder()
    for colour, target in zip(colours, y, strict=True):
        encoder.learn_one({"colour": colour})
        model.learn_one(encoder.transform_one({"colour": colour}), target)
    assert model.selected == ["colour_red"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Categorical(["u", None, "v"]), "b": [1.5, np.nan, 1.5]}),
        pl.DataFrame({"a": ["u", None, "v"], "b": [1.5, None, 1.5]}),
        {"a": np.array(["u", None, "v"], dtype=object), "b": (1.5, float("nan"), 1.5)},
    ],
)
def test_a_missing_label_is_0_in_all_columns(frame):
    assert columns_of(stream.iter_one_hot(frame)) == {
        "a_u": [1, 0, 0],
        "a_v": [0, 0, 1],
        "b_1.5": [1, 0, 1],
    }


def test_many_variables_are_yielded_in_few_blocks():
    labels = {j: [j % 3, 1, 2] for j in range(500)}
    source = stream.iter_one_hot(labels)
    assert len(list(source.blocks())) == 1
    assert len(columns_of(source)) == source.n_columns


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["u", "v"], TypeError, r'Hint: pass a single variable as \{"name": labels\}'),
        (pl.LazyFrame({"a": ["u"]}), TypeError, "Hint: call .collect"),
        ({"a": ["u"], "b": ["v", "w"]}, ValueError, "Expected 1 labels.*'b'. Got: 2"),
        ({"a": [["u"], ["v"]]}, TypeError, "can be hashed in 'a'"),
        ({"a": [1, "1"]}, ValueError, "several named 'a_1'"),
        ({"a": np.zeros((2, 2))}, ValueError, r"shape \(n,\) for 'a'"),
    ],
)
def test_invalid_labels_are_refused(labels, error, message):
    with pytest.raises(error, match=message):
        list(stream.iter_one_hot(labels))

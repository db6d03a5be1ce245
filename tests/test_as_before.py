"""Answers equal those of 0.3.0, and its model files load and continue with the same answers.

Strings and counts are compared exactly, and floats to 1e-12, because machines differ in their
vector units. On the machine where `answers-0.3.0.json` was made all are bit-identical, as
`python -m tests.answers --compare tests/files/answers-0.3.0.json` shows.

There are three exceptions: `n_rows` of an unfitted model was None, and is 0. Answers of
SOSPCA(signed=True) are those of 0.4.0; before, the order of a pair was that of indices. A row
without components is transformed to `{}`; before, its components were 0.0.
"""

import copy
import json
from pathlib import Path

import pytest

from tests import answers

FILES = Path(__file__).parent / "files"
FORMAT_1 = FILES / "format-1"


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


BEFORE, OF_MODELS = read_json(FILES / "answers-0.3.0.json"), read_json(FORMAT_1 / "answers.json")


@pytest.mark.parametrize("name", BEFORE)
def test_answers_equal_the_stored_ones(name):
    assert answers.differences(BEFORE[name], answers.SCENARIOS[name]()) == []


@pytest.mark.parametrize("file", OF_MODELS)
def test_model_files_of_format_1(file):
    """Files of format 1 give the same answers, also after more columns or rows."""
    assert answers.differences(OF_MODELS[file], answers.read(FORMAT_1, file)) == []


def test_all_scenarios_and_models_are_compared():
    assert list(BEFORE) == list(answers.SCENARIOS)
    assert list(OF_MODELS) == list(answers.MODELS)
    assert {path.stem for path in FORMAT_1.glob("*.streamsel")} == set(OF_MODELS)


ANSWER = {
    "counts": "n_rows 3",
    "scores": ["0x1.0000000000000p-1", "nan", "inf"],
    "embedding": {"bits": "sha256 ab", "some": ["-0x1.8000000000000p+30"]},
    "drawn noise_floor": "0x1.0000000000000p-1",
}


@pytest.mark.parametrize(
    ("path", "value", "seen"),
    [
        (("counts",), "n_rows 4", True),
        (("scores", 0), "0x1.0000000001000p-1", False),
        (("scores", 0), "0x1.0000000010000p-1", True),
        (("scores", 0), "nan", True),
        (("scores", 1), "0x1.0000000000000p-1", True),
        (("scores", 2), "-inf", True),
        (("scores", 2), None, True),
        (("scores",), ANSWER["scores"][:2], True),
        (("scores",), [], True),
        (("embedding", "bits"), "sha256 cd", False),
        (("embedding", "bits"), "cd", True),
        (("embedding", "some", 0), "0x1.8000000000000p+30", True),
        (("embedding", "more"), "0x1.8000000000000p+30", True),
        (("drawn noise_floor",), "0x1.0100000000000p-1", False),
        (("drawn noise_floor",), "0x1.1000000000000p-1", True),
    ],
)
def test_differences_are_detected(path, value, seen):
    """The comparison used above detects differences."""
    now = copy.deepcopy(ANSWER)
    assert answers.differences(ANSWER, now, to_the_bit=True) == []
    *parents, last = path
    inner = now
    for key in parents:
        inner = inner[key]
    inner[last] = value
    assert bool(answers.differences(ANSWER, now)) is seen
    assert answers.differences(ANSWER, now, to_the_bit=True)


def test_order_is_part_of_an_answer():
    assert answers.differences({"a": "1", "b": "2"}, {"b": "2", "a": "1"})

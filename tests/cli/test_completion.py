"""Shell completion."""

import pytest
from click.shell_completion import ShellComplete

from streamsel import registry
from streamsel.cli.app import app
from streamsel.targets.target import KINDS


def offered(*words):
    shell = ShellComplete(app, {}, "streamsel", "_STREAMSEL_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_methods():
    assert offered("select", "--method", "") == list(registry.names("selector"))
    assert offered("reduce", "--method", "pc") == ["PCA"]


@pytest.mark.parametrize(
    ("method", "typed", "expected"),
    [
        (["--method", "MRMR"], "scheme", ["scheme=quotient", "scheme=difference"]),
        ([], "max_cand", ["max_candidates="]),
        ([], "nothing", []),
    ],
)
def test_parameters_of_the_method(method, typed, expected):
    assert offered("select", "x.csv", *method, "--set", typed) == expected


def test_options_and_their_choices():
    assert "--config" in offered("select", "--c")
    assert offered("select", "x.csv", "--missing", "k") == ["keep"]
    assert offered("transf") == ["transform"]
    assert offered("select", "x.csv", "--target-type", "") == list(KINDS)
    assert offered("select", "x.csv", "--target-type", "b") == ["binary"]

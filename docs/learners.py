"""Complete the reference pages of learners with their generated parts.

The constructor, and the docs of shared parameters, are generated with the class
(`streamsel.params`). griffe reads only the source, so this extension adds both.
"""
# ruff: noqa: INP001

import inspect
import re
from typing import Any

import griffe

from streamsel import registry

KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}
# Parameters that share one description; a type and a default would be shown for the first only.
TOGETHER = re.compile(r"^(\w+), (\w[\w, ]*)\n((?: .*\n)+)", re.MULTILINE)


class Learners(griffe.Extension):
    """Completes the learners once the package is read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Complete every learner of the registry."""
        del kwargs
        if pkg.name == "streamsel":
            for entry in registry.LEARNERS:
                path = f"{entry.module}.{entry.name}".removeprefix("streamsel.")
                _complete(pkg[path], entry.name)


def _complete(described: griffe.Class, name: str) -> None:
    learner = registry.fetch(name)
    head, rule, rest = inspect.getdoc(learner).partition("Parameters\n----------\n")
    own, blank, after = rest.partition("\n\n")
    described.docstring.value = head + rule + _apart(own + "\n") + blank + after
    declared = described.all_members
    parameters = [
        griffe.Parameter(
            parameter.name,
            annotation=declared[parameter.name].annotation,
            kind=KINDS[parameter.kind],
            default=repr(parameter.default),
        )
        for parameter in inspect.signature(learner).parameters.values()
    ]
    self = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    init = griffe.Function("__init__", parameters=griffe.Parameters(self, *parameters))
    described.set_member("__init__", init)


def _apart(parameters: str) -> str:
    """Give every parameter a description of its own."""
    while True:
        parted = TOGETHER.sub(r"\1\n\3\2\n\3", parameters)
        if parted == parameters:
            return parted
        parameters = parted

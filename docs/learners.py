"""Complete the reference pages with generated parts.

The constructor, and the docs of shared parameters, are generated with the class
(`streamsel.params`). griffe reads only the source, so this extension adds both. A description in
a section "Returns" becomes that of the annotated type. Members of the shared interface are on the
page of the interface; the part of a learner has all others.
"""
# ruff: noqa: INP001

import inspect
import re
import textwrap
from typing import Any

import griffe

from streamsel import registry

KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}
# The classes whose members `reference/learner.md` documents.
INTERFACE = (
    "streamsel.base.learner.Learner",
    "streamsel.base.river.Supervised",
    "streamsel.base.river.Unsupervised",
    "streamsel.base.selector.Selector",
    "streamsel.base.extractor.Extractor",
)
# Parameters that share one description; a type and a default would be shown for the first only.
TOGETHER = re.compile(r"^(\w+), (\w[\w, ]*)\n((?: .*\n)+)", re.MULTILINE)


# The sections "Returns" and "Yields", up to the next section or the end.
RESULT = re.compile(r"^(Returns|Yields)\n-+\n(.+?)(?=^\w[\w ]*\n-{3}|\Z)", re.MULTILINE | re.DOTALL)


class Learners(griffe.Extension):
    """Completes the learners once the package is read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Complete every learner of the registry."""
        del kwargs
        if pkg.name == "streamsel":
            for entry in registry.LEARNERS:
                path = f"{entry.module}.{entry.name}".removeprefix("streamsel.")
                _complete(pkg[path], entry.name)
            for path in INTERFACE:
                # It describes what a subclass implements; the page describes what a user calls.
                pkg[path.removeprefix("streamsel.")].docstring = None
            _describe_results(pkg)


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
    package = described.package
    shared: set[str] = set()
    for path in INTERFACE:
        shared |= set(package[path.removeprefix("streamsel.")].members)
    for key, member in described.inherited_members.items():
        if key not in shared:
            described.set_member(key, griffe.Alias(key, member.final_target, parent=described))
    for key in shared & set(described.members):
        if not described.members[key].has_docstring:
            described.del_member(key)
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


def _describe_results(described: griffe.Object) -> None:
    """Make prose under "Returns" the description of the returned type, in every function."""
    for member in described.members.values():
        if isinstance(member, griffe.Function) and member.docstring and member.returns:
            returned = str(member.returns)
            member.docstring.value = RESULT.sub(
                lambda found, returned=returned: _described(found, returned),
                inspect.cleandoc(member.docstring.value),
            )
        elif isinstance(member, griffe.Module | griffe.Class):
            _describe_results(member)


def _described(found: re.Match[str], returned: str) -> str:
    kind, text = found[1], found[2]
    if re.search(r"^ ", text, re.MULTILINE):
        return found[0]
    lines = textwrap.indent(text.rstrip(), "    ")
    return f"{kind}\n{'-' * len(kind)}\n{returned}\n{lines}\n\n"

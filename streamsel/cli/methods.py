"""The method that the options choose and its parameters, validated by the learner's own rules.

`--help` imports no learner: one is imported when it is created, or when its help is asked for by
name.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel import registry
from streamsel._utils.text import close_spellings
from streamsel.cli.click_ext import SectionCommand, SectionOption
from streamsel.cli.options import LEARNER
from streamsel.params import default_texts, rules_of
from streamsel.reporting.glossary import TERMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streamsel.cli.click_ext import Record
    from streamsel.params import Rule

# A parameter in an error message of a learner; replaced by its option.
PARAMETER_OF = re.compile(r"Expected (\w+) of \w+ to be ")


class MethodCommand(SectionCommand):
    """A command of a kind of methods: `--help` lists them, `--method NAME --help` describes one.

    Parameters
    ----------
    kind
        The kind in the catalogue; None for methods of all kinds.
    """

    def __init__(self, *args: Any, kind: str | None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.kind = kind

    def records(self, ctx: click.Context) -> Iterator[tuple[str, Record]]:
        """Yield the entries of the help page: section title, and left and right column."""
        method = ctx.params.get("method")  # set if --method precedes --help
        records = list(super().records(ctx))
        last = max(i for i, (title, _) in enumerate(records) if title == LEARNER) + 1
        if method is None:
            yield from records[:last]
            for entry in registry.LEARNERS:
                if self.kind in (None, entry.kind):
                    yield "Methods", (entry.name, entry.title)
        else:
            yield from self._records_with(method, ctx, records[:last])
        yield from records[last:]
        # Commands for both kinds print no results of a learner, so need no glossary.
        for term, meaning in TERMS.get(self.kind or "", {}).items():
            yield "Glossary", (term, meaning)

    def summary(self, ctx: click.Context) -> Sequence[str]:
        """Return the paragraphs that the short page begins with."""
        method = ctx.params.get("method")
        if method is None:
            return super().summary(ctx)
        title = next(entry.title for entry in registry.LEARNERS if entry.name == method)
        return [f"{method}: {title}."]

    def common_records(self, ctx: click.Context) -> Iterator[Record]:
        """Yield the common options; with --method those that apply to it, with its defaults."""
        method = ctx.params.get("method")
        if method is None:
            yield from super().common_records(ctx)
            return
        defaults = default_texts(registry.fetch(method))
        for option in _options(self):
            is_of_method = option.parameter in (None, *defaults) and option.name != "method"
            if option.common is None or not is_of_method:
                continue
            spelt, text = option.common_record(ctx)
            default = defaults.get(str(option.parameter), "None")
            yield spelt, text if default in ("None", "0") else f"{text}  [default: {default}]"

    def closing(self, ctx: click.Context) -> Iterator[str]:
        """Yield the last paragraphs of the short page: methods, or parameters of one method."""
        method = ctx.params.get("method")
        if method is None:
            yield f"Methods: {', '.join(registry.names(self.kind))}"
            yield from super().closing(ctx)
            return
        cls = registry.fetch(method)
        by_option = {option.parameter for option in _options(self)}
        own = [
            f"{name}={default}"
            for name, default in default_texts(cls).items()
            if name in inspect.get_annotations(cls) and name not in by_option
        ]
        if own:
            yield f"Parameters for --set: {', '.join(own)}"
        yield f"All options: {ctx.command_path} --method {method} --help"

    def _records_with(
        self, method: str, ctx: click.Context, records: Iterable[tuple[str, Record]]
    ) -> Iterator[tuple[str, Record]]:
        """Yield the options that apply to a method, with its defaults, and its other parameters."""
        cls = registry.fetch(method)
        rules, descriptions = rules_of(cls), _described(cls)
        defaults = default_texts(cls)
        parameter_of = {option.get_help_record(ctx): option.parameter for option in _options(self)}
        for title, record in records:
            parameter, (spelt, text) = parameter_of.get(record), record
            default = defaults.get(str(parameter), "None")
            if default not in ("None", "False") and "[default: " not in text:
                text = f"{text}  [default: {default}]"
            if parameter is None or parameter in rules:
                yield title, (spelt, text)
        for name, rule in rules.items():
            if name not in parameter_of.values():
                text = f"{descriptions.get(name, '')}{rule}  [default: {defaults[name]}]"
                yield LEARNER, (f"--set {name}=VALUE", text)


def learner_of(ctx: click.Context) -> Any:
    """Create the learner that the options describe.

    Raises
    ------
    click.UsageError
        For a parameter that the method does not have, that is given twice, or that is invalid.
    """
    method = _method(ctx)
    cls = registry.fetch(method)
    rules = rules_of(cls)
    given_values = {name: value for name, (_, value) in explicit_parameters(ctx, method).items()}
    if ctx.params["event"] is not None and "target_type" in rules:
        given_values["target_type"] = "survival"
    bounded = "max_pool_bytes" in rules or given_values.get("max_candidates") is not None
    if given_values.get("exact") and not bounded:
        raise click.UsageError(
            "--exact requires --max-candidates; without it the selection is always exact", ctx
        )
    if _may_reread(ctx) and "max_candidates" in given_values and "exact" in rules:
        given_values.setdefault("exact", True)
    try:
        return cls(**given_values)
    except ValueError as error:
        raise click.UsageError(_with_option_names(str(error), ctx), ctx) from error


def _method(ctx: click.Context) -> str:
    """Return the chosen method; with --no-target and no --method, the first without a target."""
    method: str = ctx.params["method"]
    is_default = ctx.get_parameter_source("method") is ParameterSource.DEFAULT
    if not (is_default and ctx.params.get("no_target")):
        return method
    names = registry.names(getattr(ctx.command, "kind", None))
    return next(name for name in names if registry.fetch(name)._takes_no_target)


def _may_reread(ctx: click.Context) -> bool:
    """Return whether a run may read its files again; runs that must be resumable read them once."""
    given = ctx.params
    return (
        "exact" in given
        and given["checkpoint"] is None
        and given["resume"] is None
        and "-" not in given["files"]
    )


def explicit_parameters(ctx: click.Context, method: str) -> dict[str, tuple[str, Any]]:
    """Return the parameters of a method that the user set: the option used, and the value.

    Raises
    ------
    click.UsageError
        For a parameter that the method does not have, that is given twice, or that is invalid.
    """
    rules = rules_of(registry.fetch(method))
    given_values: dict[str, tuple[str, Any]] = {}
    for name, spelt, value in _given_parameters(ctx):
        if name not in rules:
            raise click.UsageError(_no_such(name, spelt, method, rules), ctx)
        if name in given_values:
            raise click.UsageError(f"{spelt}: {name} is given more than once", ctx)
        given_values[name] = spelt, _read(rules[name], spelt, value, ctx)
    return given_values


def _options(command: click.Command) -> list[SectionOption]:
    return [option for option in command.params if isinstance(option, SectionOption)]


def _given_parameters(ctx: click.Context) -> Iterator[tuple[str, str, Any]]:
    """Yield the parameters that were set: name, the option used, and value."""
    spelt = {option.name: option.given_as(ctx) for option in _options(ctx.command)}
    for option in _options(ctx.command):
        given = ctx.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
        if option.parameter is not None and given:
            value = ctx.params[str(option.name)]
            several = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
            yield option.parameter, spelt[option.name], several
    for text in ctx.params["set"]:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"{spelt['set']} {text}: expected PARAM=VALUE", ctx)
        yield name.strip(), f"{spelt['set']} {name.strip()}", value.strip()


def _read(rule: Rule, spelt: str, value: Any, ctx: click.Context) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return rule.read(value)
    except ValueError:
        raise click.UsageError(f"{spelt}: expected {rule}. Got: {value!r}.", ctx) from None


def _no_such(name: str, spelt: str, method: str, rules: Mapping[str, Rule]) -> str:
    kind = next(entry.kind for entry in registry.LEARNERS if entry.name == method)
    methods_with: dict[str, list[str]] = {}
    for other in registry.names(kind):
        for parameter in rules_of(registry.fetch(other)):
            methods_with.setdefault(parameter, []).append(other)
    if name in methods_with:
        hint = f"--method {' or '.join(methods_with[name])}"
    elif close := close_spellings(name, rules):
        hint = f"did you mean {' or '.join(close)}? It has {', '.join(rules)}"
    elif close := close_spellings(name, methods_with):
        hint = f"did you mean {close[0]}, with --method {' or '.join(methods_with[close[0]])}?"
    else:
        hint = f"it has {', '.join(rules)}"
    return f"{spelt}: {method} has no such parameter. Hint: {hint}"


def _with_option_names(text: str, ctx: click.Context) -> str:
    """Return a learner's error message with its parameters replaced by options."""
    spelt = {o.parameter: o.given_as(ctx) for o in _options(ctx.command) if o.parameter is not None}
    text = " ".join(text.split())
    text = PARAMETER_OF.sub(
        lambda found: f"{spelt.get(found[1], f'--set {found[1]}')}: expected ", text
    )
    for name, option in spelt.items():
        text = text.replace(f" {name} = ", f" {option} = ")
    return text


def _described(cls: type) -> dict[str, str]:
    """Return the first sentence of each parameter's description in the docstring."""
    _, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("Parameters\n----------\n")
    descriptions: dict[str, str] = {}
    names: list[str] = []
    for line in rest.partition("\n\n")[0].split("\n"):
        if line[:1].strip():
            names = [name.strip() for name in line.split(",")]
        for name in names:
            descriptions[name] = (
                f"{descriptions.get(name, '')} {line.strip()}" if line[:1] == " " else ""
            )
    marks = str.maketrans("", "", "`$\\")
    return {
        name: text.translate(marks).strip().split(". ")[0].rstrip(".") + "; "
        for name, text in descriptions.items()
    }

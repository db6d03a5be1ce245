"""Which method is asked for, and with which parameters: by the learner's own rules.

`--help` has no use for a learner: it is fetched when it is made, or when the help on it is asked
for by name.
"""

from __future__ import annotations

import difflib
import inspect
import re
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel import catalogue
from streamsel.cli._options import LEARNER
from streamsel.cli._sections import Command, Option
from streamsel.cli._words import WORDS
from streamsel.params import default_texts, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streamsel.cli._sections import Record
    from streamsel.params import Rule

# A learner's words on a parameter, for the user of an option.
PARAMETER_OF = re.compile(r"The '(\S+)' parameter of \w+ ")


class MethodCommand(Command):
    """A command of a kind of methods: `--help` lists them, `--method NAME --help` describes one.

    Parameters
    ----------
    kind
        As the catalogue has it; None for methods of all kinds.
    """

    def __init__(self, *args: Any, kind: str | None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.kind = kind

    def records(self, ctx: click.Context) -> Iterator[tuple[str, Record]]:
        """Yield what the help page lists."""
        method = ctx.params.get("method")  # if it stands before --help
        records = list(super().records(ctx))
        last = max(i for i, (title, _) in enumerate(records) if title == LEARNER) + 1
        if method is None:
            yield from records[:last]
            for entry in catalogue.LEARNERS:
                if self.kind in (None, entry.kind):
                    yield "Methods", (entry.name, entry.title)
        else:
            yield from self._records_with(method, ctx, records[:last])
        yield from records[last:]
        # Where either kind is asked what it is worth, no results of a learner are shown.
        for word, said in WORDS.get(self.kind or "", {}).items():
            yield "Words of the results", (word, said)

    def _records_with(
        self, method: str, ctx: click.Context, records: Iterable[tuple[str, Record]]
    ) -> Iterator[tuple[str, Record]]:
        """Yield the records that apply to a method, with its defaults, and its other parameters."""
        cls = catalogue.fetch(method)
        rules, told = rules_of(cls), _told(cls)
        defaults = default_texts(cls)
        says = {option.get_help_record(ctx): option.parameter for option in _options(self)}
        for title, record in records:
            parameter, (spelt, text) = says.get(record), record
            default = defaults.get(str(parameter), "None")
            if default not in ("None", "False") and "[default: " not in text:
                text = f"{text}  [default: {default}]"
            if parameter is None or parameter in rules:
                yield title, (spelt, text)
        for name, rule in rules.items():
            if name not in says.values():
                text = f"{told.get(name, '')}{rule}  [default: {defaults[name]}]"
                yield LEARNER, (f"--set {name}=VALUE", text)


def learner_of(ctx: click.Context) -> Any:
    """Make the learner that the options ask for.

    Raises
    ------
    click.UsageError
        For a parameter that the method does not have, that is said twice, or that it refuses.
    """
    method = _method(ctx)
    cls = catalogue.fetch(method)
    rules = rules_of(cls)
    said = {name: value for name, (_, value) in parameters_said(ctx, method).items()}
    if ctx.params["event"] is not None and "target" in rules:
        said["target"] = "survival"
    bounded = "max_pool_bytes" in rules or said.get("max_candidates") is not None
    if said.get("exact") and not bounded:
        raise click.UsageError("--exact goes with --max-candidates: without, all is exact", ctx)
    if _reads_again(ctx) and "max_candidates" in said and "exact" in rules:
        said.setdefault("exact", True)
    try:
        return cls(**said)
    except ValueError as error:
        raise click.UsageError(_in_terms_of_options(str(error), ctx), ctx) from error


def _method(ctx: click.Context) -> str:
    """Return the method that is asked for; by default, without a target, the first without one."""
    method: str = ctx.params["method"]
    is_default = ctx.get_parameter_source("method") is ParameterSource.DEFAULT
    if not (is_default and ctx.params.get("no_target")):
        return method
    names = catalogue.names(getattr(ctx.command, "kind", None))
    return next(name for name in names if catalogue.fetch(name).takes_no_target)


def _reads_again(ctx: click.Context) -> bool:
    """Whether a run may read its files again; one that is to go on after a kill reads them once."""
    given = ctx.params
    return (
        "exact" in given
        and given["checkpoint"] is None
        and given["resume"] is None
        and "-" not in given["files"]
    )


def parameters_said(ctx: click.Context, method: str) -> dict[str, tuple[str, Any]]:
    """Return the parameters of a method that were said: how each was spelt, and its value.

    Raises
    ------
    click.UsageError
        For one that the method does not have, that is said twice, or that its rule refuses.
    """
    rules = rules_of(catalogue.fetch(method))
    said: dict[str, tuple[str, Any]] = {}
    for name, spelt, value in _said(ctx):
        if name not in rules:
            raise click.UsageError(_no_such(name, spelt, method, rules), ctx)
        if name in said:
            raise click.UsageError(f"{spelt}: {name} was said before", ctx)
        said[name] = spelt, _read(rules[name], spelt, value, ctx)
    return said


def _options(command: click.Command) -> list[Option]:
    return [option for option in command.params if isinstance(option, Option)]


def _said(ctx: click.Context) -> Iterator[tuple[str, str, Any]]:
    """Yield the parameters that were given: name, how that was spelt, and what."""
    spelt = {option.name: option.spelt(ctx) for option in _options(ctx.command)}
    for option in _options(ctx.command):
        given = ctx.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
        if option.parameter is not None and given:
            value = ctx.params[str(option.name)]
            several = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
            yield option.parameter, spelt[option.name], several
    for text in ctx.params["set"]:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"{spelt['set']} {text}: say PARAM=VALUE", ctx)
        yield name.strip(), f"{spelt['set']} {name.strip()}", value.strip()


def _read(rule: Rule, spelt: str, value: Any, ctx: click.Context) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return rule.read(value)
    except ValueError:
        raise click.UsageError(f"{spelt} must be {rule}. Got {value!r} instead.", ctx) from None


def _no_such(name: str, spelt: str, method: str, rules: Mapping[str, Rule]) -> str:
    kind = next(entry.kind for entry in catalogue.LEARNERS if entry.name == method)
    others = [m for m in catalogue.names(kind) if name in rules_of(catalogue.fetch(m))]
    close = difflib.get_close_matches(name, rules)
    hint = f"did you mean {' or '.join(close)}? It" if close else "it"
    hint = f"--method {' or '.join(others)}" if others else f"{hint} has {', '.join(rules)}"
    return f"{spelt}: {method} has no such parameter. Hint: {hint}"


def _in_terms_of_options(text: str, ctx: click.Context) -> str:
    """Put what a learner says of its parameters in terms of what the user can say."""
    spelt = {o.parameter: o.spelt(ctx) for o in _options(ctx.command) if o.parameter is not None}
    text = " ".join(text.split())
    text = PARAMETER_OF.sub(lambda found: f"{spelt.get(found[1], f'--set {found[1]}')} ", text)
    for name, option in spelt.items():
        text = text.replace(f" {name} = ", f" {option} = ")
    return text


def _told(cls: type) -> dict[str, str]:
    """Return what the docstring says of each parameter, in a sentence."""
    _, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("Parameters\n----------\n")
    told: dict[str, str] = {}
    names: list[str] = []
    for line in rest.partition("\n\n")[0].split("\n"):
        if line[:1].strip():
            names = [name.strip() for name in line.split(",")]
        for name in names:
            told[name] = f"{told.get(name, '')} {line.strip()}" if line[:1] == " " else ""
    marks = str.maketrans("", "", "`$\\")
    return {
        name: text.translate(marks).strip().split(". ")[0].rstrip(".") + "; "
        for name, text in told.items()
    }

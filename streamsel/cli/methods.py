"""Commands that learn with a method: their options, and help on the methods.

`--help` imports no learner: one is imported when its help is asked for by name.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from streamsel import registry
from streamsel.cli.click_ext import MethodType, SectionCommand, SettingType, section_options
from streamsel.cli.options import (
    INPUT,
    LEARNER,
    LONG_RUNS,
    OUTPUT,
    Decorator,
    all_of,
    config_option,
    files_argument,
    log_options,
    option,
)
from streamsel.cli.settings import SETTINGS
from streamsel.params import default_texts, rules_of
from streamsel.reporting.glossary import TERMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamsel.cli.click_ext import Record


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
        for each in section_options(self):
            is_of_method = each.parameter in (None, *defaults) and each.name != "method"
            if each.common is None or not is_of_method:
                continue
            spelt, text = each.common_record(ctx)
            default = defaults.get(str(each.parameter), "None")
            yield spelt, text if default in ("None", "0") else f"{text}  [default: {default}]"

    def closing(self, ctx: click.Context) -> Iterator[str]:
        """Yield the last paragraphs of the short page: methods, or parameters of one method."""
        method = ctx.params.get("method")
        if method is None:
            yield f"Methods: {', '.join(registry.names(self.kind))}"
            yield from super().closing(ctx)
            return
        cls = registry.fetch(method)
        by_option = {option.parameter for option in section_options(self)}
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
        parameter_of = {
            option.get_help_record(ctx): option.parameter for option in section_options(self)
        }
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


def run_options(command: str, *sections: str) -> Decorator:
    """Return the options of a command that are settings of a run, of some sections."""
    return all_of(
        *(
            option(*each.names, name, section=each.section, **each.click_settings)
            for name, each in SETTINGS.items()
            if command in each.commands and each.section in sections
        )
    )


def input_options(command: str, kind: str | None) -> Decorator:
    """Return the arguments and options of a command that learns with methods of a kind."""
    return all_of(config_option, files_argument, run_options(command, INPUT), method_options(kind))


def output_options(command: str) -> Decorator:
    """Return the options on outputs, long runs and the log."""
    return all_of(run_options(command, OUTPUT, LONG_RUNS), log_options)


def batch_options(
    command: str, *, section: str, seed_of: str, out: str, out_help: str
) -> Decorator:
    """Return the options of a command that learns many models together.

    Parameters
    ----------
    command, section
        The command, and the section of its own options.
    seed_of
        The objects that are drawn at random.
    out, out_help
        Short and long help of the option for its table.
    """
    return all_of(
        option(
            "--seed",
            type=click.IntRange(min=0),
            default=1,
            show_default=True,
            metavar="N",
            section=section,
            help=f"Random seed of {seed_of}.",
        ),
        option(
            "--out",
            "-o",
            metavar="FILE",
            type=click.Path(),
            section=OUTPUT,
            common=out,
            help=out_help,
        ),
        option(
            "--max-memory",
            type=click.IntRange(min=1),
            default=512,
            show_default=True,
            metavar="MB",
            section=LONG_RUNS,
            help="Memory limit for the models of one pass, or a copy of the columns; FILE is read "
            "in as many passes as needed.",
        ),
        output_options(command),
    )


def _default_advice(kind: str | None) -> str:
    if kind != "selector":
        return ""
    return (
        " BackwardElimination is an alternative for 10 or more variables if all columns fit in "
        "memory."
    )


def method_options(kind: str | None) -> Decorator:
    """Return the options that set a method of a kind (None for any kind) and its parameters."""
    methods = registry.names(kind)
    return all_of(
        option(
            "--method",
            type=MethodType(methods),
            default=methods[0],
            show_default=True,
            metavar="NAME",
            # Eager, so that a later --help describes this method.
            is_eager=True,
            section=LEARNER,
            common="Method, one of those below.",
            help="Method, one of those below; --method NAME --help shows its parameters and their "
            "defaults." + _default_advice(kind),
        ),
        option(
            "--set",
            type=SettingType(),
            metavar="PARAM=VALUE",
            multiple=True,
            section=LEARNER,
            common="Set any parameter of the method.",
            help="Set any parameter of the method; others keep their defaults. May be repeated.",
        ),
    )


permutations_option = option(
    "--permutations",
    metavar="B",
    section=LEARNER,
    parameter="permutations",
    common="Permutations for p-values; 1000 is usual.",
    help="Compare with B permutations of the target, in the same pass: noise floor and "
    "p-values are then also valid for counts, rare variants and small classes; 1000 is "
    "usual.  [default: 0]",
)
n_jobs_option = option(
    "--n-jobs",
    metavar="N",
    section=LEARNER,
    parameter="n_jobs",
    help="Number of threads; -1 for one per core. The result does not depend on it.  [default: 1]",
)
# For commands that learn many models together.
candidates_each_option = option(
    "--max-candidates",
    metavar="M",
    section=LEARNER,
    parameter="max_candidates",
    help="Keep at most M candidates per model, in constant memory; an error for methods without "
    "this parameter.",
)

"""Click classes for help pages with sections, and options with environment variables.

An option can also be set by the variable STREAMSEL_<COMMAND>_<OPTION>, and by a file (`--config`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from streamsel import registry
from streamsel._utils.text import spelling_hint
from streamsel.cli.config import config_key
from streamsel.stream.formats import formats_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Record = tuple[str, str]


class SectionOption(click.Option):
    """An option that belongs to a section of the help page.

    Parameters
    ----------
    section
        Title of the section.
    parameter
        The learner's parameter that it sets, if any: the learner's rule parses the value.
    common
        Its help on the short page, `-h`, of one line; None if it is not shown there.
    """

    def __init__(
        self,
        *args: Any,
        section: str,
        parameter: str | None = None,
        common: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
        self.parameter = parameter
        self.common = common

    def common_record(self, ctx: click.Context) -> Record:
        """Return the left and the right column of its line on the short page."""
        spelt, _ = self.get_help_record(ctx) or ("", "")
        return spelt, self.common or ""

    def given_as(self, ctx: click.Context) -> str:
        """Return the option, variable or key by which the user set it."""
        source = ctx.get_parameter_source(str(self.name))
        if source is ParameterSource.ENVIRONMENT:
            return next(name for name in self._variables(ctx) if os.environ.get(name))
        if source is ParameterSource.DEFAULT_MAP:
            return f"{ctx.params['config']}: [{ctx.info_name}] {config_key(self)}"
        return " / ".join(sorted(self.opts, key=len, reverse=True))

    def _variables(self, ctx: click.Context) -> list[str]:
        """Return the environment variables that can set it."""
        own = f"{ctx.auto_envvar_prefix}_{config_key(self)}".upper().replace("-", "_")
        return [own, *([self.envvar] if isinstance(self.envvar, str) else [])]

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the environment variable named after the long option."""
        if ctx.auto_envvar_prefix is None:
            return None
        found = map(os.environ.get, self._variables(ctx))
        return next((value for value in found if value), None)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Parse its value; an error names the option, variable or key that set it."""
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.BadParameter as error:
            error.param_hint = self.given_as(ctx)
            raise


def _print_short_page(ctx: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing and isinstance(ctx.command, SectionCommand):
        click.echo(ctx.command.short_page(ctx), color=ctx.color)
        ctx.exit()


SHORT_HELP = "-h"
_SHORT_HELP = click.Option(
    [SHORT_HELP],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    allow_from_autoenv=False,
    callback=_print_short_page,
    help="Show the common options and exit.",
)
# The short page fits on a terminal of 25 lines.
_SCREEN_WIDTH = 80


class FilesArgument(click.Argument):
    """An argument with any number of values, which may come from a file (`--config`)."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value and its source."""
        # Before click 8.3 an absent argument is an empty tuple that overrides other sources.
        given = {name: value for name, value in opts.items() if name != self.name or value != ()}
        return super().consume_value(ctx, given)


class SectionCommand(click.Command):
    """A command that shows its options by section, those without a section last.

    If some options are common, `-h` prints a short page with these, and `--help` prints all. In its
    help, {formats} becomes the formats of files.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = self.help and self.help.replace("{formats}", formats_text())

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the options that print the whole help page."""
        names = super().get_help_option_names(ctx)
        return [name for name in names if name != SHORT_HELP or not self._has_short_page]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters, those that print help last."""
        parameters = super().get_params(ctx)
        if not self._has_short_page:
            return parameters
        # Not one of `params`, which can also be set by variables and files.
        return [*parameters[: len(self.params)], _SHORT_HELP, *parameters[len(self.params) :]]

    @property
    def _has_short_page(self) -> bool:
        return any(isinstance(p, SectionOption) and p.common is not None for p in self.params)

    def short_page(self, ctx: click.Context) -> str:
        """Return the short help page: a summary, and the common options."""
        formatter = click.HelpFormatter(max_width=_SCREEN_WIDTH)
        self.format_usage(ctx, formatter)
        for text in self.summary(ctx):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
        with formatter.section("Common options"):
            formatter.write_dl(list(self.common_records(ctx)), col_max=34)
        for text in self.closing(ctx):
            formatter.write_paragraph()
            formatter.write_text(text)
        return formatter.getvalue().rstrip("\n")

    def summary(self, ctx: click.Context) -> Sequence[str]:  # noqa: ARG002 (methods depend on it)
        """Return the paragraphs that the short page begins with: what it does, and an example."""
        lines = map(str.strip, (self.help or "").splitlines())
        examples = [line for line in lines if line.startswith("streamsel ")]
        return [self.short_help or "", *examples[:1]]

    def common_records(self, ctx: click.Context) -> Iterator[Record]:
        """Yield the common options: left and right column."""
        for parameter in self.params:
            if isinstance(parameter, SectionOption) and parameter.common is not None:
                yield parameter.common_record(ctx)

    def closing(self, ctx: click.Context) -> Iterator[str]:
        """Yield the last paragraphs of the short page."""
        yield f"All options: {ctx.command_path} --help"

    def records(self, ctx: click.Context) -> Iterator[tuple[str, Record]]:
        """Yield the entries of the help page: section title, and left and right column."""
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                yield getattr(parameter, "section", "Other"), record

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order of their declaration."""
        sections: dict[str, list[Record]] = {}
        for title, record in self.records(ctx):
            sections.setdefault(title, []).append(record)
        other = sections.pop("Other", [])
        for title, records in [*sections.items(), *([("Other", other)] if other else [])]:
            with formatter.section(title):
                formatter.write_dl(records, col_max=34)


class DelimiterType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
    """One character; the word "tab", or a backslash and t, for a tab."""

    name = "character"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the character."""
        character = "\t" if value in {"tab", "\\t"} else value
        if len(character) != 1 or character in '"\r\n':
            self.fail(
                f"{value!r} is not a delimiter: expected one character other than a quote or line "
                "break",
                param,
                ctx,
            )
        return character


class NameType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
    """A name, or several separated by commas."""

    name = "name"

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value of a variable unsplit: names may contain spaces."""
        return [rv]


class MethodType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
    """A method's name, case-insensitive.

    Parameters
    ----------
    names
        The valid names.
    """

    name = "method"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name.lower(): name for name in names}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as in the catalogue."""
        name = self._names.get(value.lower())
        if name is None:
            hint = spelling_hint(value, self._names.values())
            self.fail(f"expected a method. Got: {value!r}. Hint: {hint}", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with the incomplete text."""
        del ctx, param
        start = incomplete.lower()
        return [CompletionItem(name) for low, name in self._names.items() if low.startswith(start)]


class SettingType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.1 has none
    """A parameter of a method and its value, PARAM=VALUE."""

    name = "setting"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the parameters of the chosen method."""
        from streamsel.params import ChoiceRule, rules_of

        del param
        rules = rules_of(registry.fetch(ctx.params["method"]))
        items = []
        for name, rule in rules.items():
            values = rule.options if isinstance(rule, ChoiceRule) else ("",)
            items += [f"{name}={value}" for value in values]
        return [CompletionItem(item) for item in items if item.startswith(incomplete)]

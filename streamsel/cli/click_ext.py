"""Click classes for help pages with sections, and options from environment and files.

An option can also be set by the environment variable STREAMSEL_<COMMAND>_<OPTION>, or by a TOML
file (`--config`) with one table per command.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from streamsel import registry
from streamsel._utils.text import spelling_hint
from streamsel.cli.log import Log
from streamsel.stream.formats import formats_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        Its one-line help on the short page, `-h`; None if it is not shown there.
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


def section_options(command: click.Command) -> list[SectionOption]:
    """Return the options of a command that belong to a section."""
    return [option for option in command.params if isinstance(option, SectionOption)]


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


# Stop conditions; those of `base.stop_condition`, which help does not load.
UNTIL_NAMES = ("certified", "budget")


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


class UntilType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
    """The name of a stop condition, or a number of columns."""

    name = "condition"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the condition."""
        text = value.strip().lower()
        if text not in UNTIL_NAMES and not (text.isdecimal() and int(text) > 0):
            expected = f"{', '.join(UNTIL_NAMES)} or a number of columns"
            self.fail(f"expected {expected}. Got: {value!r}", param, ctx)
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with the incomplete text."""
        del ctx, param
        return [CompletionItem(name) for name in UNTIL_NAMES if name.startswith(incomplete)]


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


# Bounds what is read of an endless file or pipe.
_MAX_CONFIG_BYTES = 4 * 2**20


def load_config(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Use the file's options as defaults below the command line and the environment.

    Raises
    ------
    click.UsageError
        For a table that names no command, a key that names no option, and an invalid value.
    """
    if path is None:
        return None
    tables = _read_config(path, ctx)
    group = ctx.parent.command if ctx.parent is not None else None
    commands = group.commands if isinstance(group, click.Group) else {}
    for name, table in tables.items():
        if name not in commands:
            raise click.UsageError(
                f"{path}: [{name}]: no such command. Hint: {spelling_hint(name, commands)}"
            )
        if not isinstance(table, Mapping):
            raise click.UsageError(f"{path}: {name}: expected a table, [{name}]")
    command = str(ctx.info_name)
    where = f"{path}: [{command}]"
    ctx.default_map = _config_defaults(tables.get(command, {}), ctx.command.params, where)
    return path


def _read_config(path: str, ctx: click.Context) -> dict[str, Any]:
    import tomllib

    try:
        with ctx.ensure_object(Log).waiting_for_writer(path):
            file = Path(path).open("rb")  # noqa: SIM115
        with file:
            text = file.read(_MAX_CONFIG_BYTES + 1)
        if len(text) > _MAX_CONFIG_BYTES:
            raise click.UsageError(
                f"--config {path}: expected at most {_MAX_CONFIG_BYTES >> 20} MiB of TOML. Got: a "
                "larger file. Hint: check that FILE is the configuration file.",
                ctx,
            )
        return tomllib.loads(text.decode())
    except OSError as error:
        raise click.UsageError(f"--config {path}: {error.strerror or error}", ctx) from error
    except (ValueError, RecursionError) as error:  # not TOML, or not UTF-8
        raise click.UsageError(f"--config {path}: {error}", ctx) from error


def _config_defaults(
    table: Mapping[str, Any], parameters: Iterable[click.Parameter], where: str
) -> dict[str, Any]:
    """Return the values of a table by the names that click has for the parameters."""
    known = {config_key(parameter): parameter for parameter in parameters}
    del known["config"]
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise click.UsageError(
                f"{where} {key}: no such option. Hint: {spelling_hint(key, known)}"
            )
        found[str(known[key].name)] = _config_value(known[key], value, f"{where} {key}")
    return found


def config_key(parameter: click.Parameter) -> str:
    """Return the key of a parameter in the file: its longest option, or the argument's metavar."""
    if isinstance(parameter, click.Argument):
        # FILE... denotes several values of one argument.
        return (parameter.metavar or str(parameter.name)).rstrip(".").lower()
    return max(parameter.opts, key=len).lstrip("-")


def _config_value(parameter: click.Parameter, value: Any, where: str) -> Any:
    """Convert a TOML value to what click accepts."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{where}: expected true or false. Got: {value!r}")
        return value
    if config_key(parameter) == "set":
        if not isinstance(value, Mapping):
            raise click.UsageError(f"{where}: expected a table of parameters. Got: {value!r}")
        return [f"{name}={_config_text(item, f'{where}.{name}')}" for name, item in value.items()]
    if not parameter.multiple and parameter.nargs == 1:
        return _config_text(value, where)
    if not isinstance(value, list):
        return [_config_text(value, where)]
    items = [_config_text(item, where) for item in value]
    if isinstance(parameter, click.Argument):
        return items
    # Quoted, as each item is one name: on the command line commas separate names.
    return ['"' + item.replace('"', '""') + '"' for item in items]


def _config_text(value: Any, where: str) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, list):
        return ",".join(_config_text(item, where) for item in value)
    if not isinstance(value, str | int | float):
        raise click.UsageError(f"{where}: expected text, a number or a list. Got: {value!r}")
    return str(value)


def set_log_format(ctx: click.Context, _: click.Parameter, value: str) -> None:
    """Set the format of the log."""
    ctx.ensure_object(Log).as_json = value == "json"


def set_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Set whether only errors are logged."""
    ctx.ensure_object(Log).quiet = value


def split_at_commas(_: click.Context, __: click.Parameter, values: Sequence[str]) -> list[str]:
    """Split names at commas outside double quotes."""
    try:
        rows = [row for value in values for row in csv.reader([value], skipinitialspace=True)]
    except csv.Error as error:
        raise click.BadParameter(f"{error}. Hint: write the name in double quotes") from error
    return [name.strip() for row in rows for name in row]

"""Click classes for help pages with sections, and options with environment variables.

An option can also be set by the variable STREAMSEL_<COMMAND>_<OPTION>, and by a file (`--config`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamsel.cli._config import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Record = tuple[str, str]


class Option(click.Option):
    """An option that belongs to a section of the help page.

    Parameters
    ----------
    section
        Title of the section.
    parameter
        The learner's parameter that it sets, if any: the learner's rule parses the value.
    """

    def __init__(
        self, *args: Any, section: str, parameter: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
        self.parameter = parameter

    def spelt(self, ctx: click.Context) -> str:
        """Return the option, variable or key by which the user set it."""
        source = ctx.get_parameter_source(str(self.name))
        if source is ParameterSource.ENVIRONMENT:
            return next(name for name in self._variables(ctx) if os.environ.get(name))
        if source is ParameterSource.DEFAULT_MAP:
            return f"{ctx.params['config']}: [{ctx.info_name}] {key_of(self)}"
        return " / ".join(sorted(self.opts, key=len, reverse=True))

    def _variables(self, ctx: click.Context) -> list[str]:
        """Return the environment variables that can set it."""
        own = f"{ctx.auto_envvar_prefix}_{key_of(self)}".upper().replace("-", "_")
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
            error.param_hint = self.spelt(ctx)
            raise


class Several(click.Argument):
    """An argument with any number of values, which may come from a file (`--config`)."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value and its source."""
        # Before click 8.3 an absent argument is an empty tuple that overrides other sources.
        given = {name: value for name, value in opts.items() if name != self.name or value != ()}
        return super().consume_value(ctx, given)


class Command(click.Command):
    """A command that shows its options by section, those without a section last."""

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

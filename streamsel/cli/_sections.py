"""A click command whose `--help` lists its options in sections, and whose options have variables.

An option is also said by STREAMSEL_<COMMAND>_<OPTION>, in the environment, and by a file
(`--config`).
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
    """An option that stands in a section of the help page.

    Parameters
    ----------
    section
        Title of the section.
    parameter
        The learner's parameter that it says, if it says one: it is read by the learner's rule.
    """

    def __init__(
        self, *args: Any, section: str, parameter: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
        self.parameter = parameter

    def spelt(self, ctx: click.Context) -> str:
        """Return what the user said it by."""
        source = ctx.get_parameter_source(str(self.name))
        if source is ParameterSource.ENVIRONMENT:
            return next(name for name in self._variables(ctx) if os.environ.get(name))
        if source is ParameterSource.DEFAULT_MAP:
            return f"{ctx.params['config']}: [{ctx.info_name}] {key_of(self)}"
        return " / ".join(sorted(self.opts, key=len, reverse=True))

    def _variables(self, ctx: click.Context) -> list[str]:
        """Return the variables that may say it."""
        own = f"{ctx.auto_envvar_prefix}_{key_of(self)}".upper().replace("-", "_")
        return [own, *([self.envvar] if isinstance(self.envvar, str) else [])]

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return what the environment says: a variable is called as the long option is."""
        if ctx.auto_envvar_prefix is None:
            return None
        found = map(os.environ.get, self._variables(ctx))
        return next((value for value in found if value), None)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take its value; say by what it was said, if it is wrong."""
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.BadParameter as error:
            error.param_hint = self.spelt(ctx)
            raise


class Several(click.Argument):
    """Arguments, as many as there are; a file (`--config`) may say them."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return what was said, and where."""
        # Before click 8.3 none of them on the command line is an empty tuple, and wins.
        said = {name: value for name, value in opts.items() if name != self.name or value != ()}
        return super().consume_value(ctx, said)


class Command(click.Command):
    """A command that shows its options section by section, those without one last."""

    def records(self, ctx: click.Context) -> Iterator[tuple[str, Record]]:
        """Yield what the help page lists: a section, and what stands on the left and right."""
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                yield getattr(parameter, "section", "Other"), record

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order in which they were declared."""
        sections: dict[str, list[Record]] = {}
        for title, record in self.records(ctx):
            sections.setdefault(title, []).append(record)
        other = sections.pop("Other", [])
        for title, records in [*sections.items(), *([("Other", other)] if other else [])]:
            with formatter.section(title):
                formatter.write_dl(records, col_max=34)

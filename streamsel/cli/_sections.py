"""A click command whose `--help` lists its options in sections."""

from __future__ import annotations

from typing import Any

import click


class Option(click.Option):
    """An option that stands in a section of the help page.

    Parameters
    ----------
    section
        Title of the section.
    """

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Command(click.Command):
    """A command that shows its options section by section, those without one last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order in which they were declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                title = getattr(parameter, "section", "Other")
                sections.setdefault(title, []).append(record)
        other = sections.pop("Other", [])
        for title, records in [*sections.items(), ("Other", other)]:
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=34)

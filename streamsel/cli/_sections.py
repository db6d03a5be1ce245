"""A click command whose `--help` lists its options in sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    @property
    def spelt(self) -> str:
        """What the user knows it by."""
        return " / ".join(sorted(self.opts, key=len, reverse=True))


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

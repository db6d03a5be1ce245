"""Types of option values: delimiters, names, methods, settings."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from streamsel import catalogue


class Delimiter(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
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


class Name(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
    """A name, or several separated by commas."""

    name = "name"

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value of a variable unsplit: names may contain spaces."""
        return [rv]


class Method(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.2 has none
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
            self.fail(f"{value!r} is not one of {', '.join(self._names.values())}", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with the incomplete text."""
        del ctx, param
        start = incomplete.lower()
        return [CompletionItem(name) for low, name in self._names.items() if low.startswith(start)]


class Setting(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # click 8.1 has none
    """A parameter of a method and its value, PARAM=VALUE."""

    name = "setting"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the parameters of the chosen method."""
        from streamsel.params import Choice, rules_of

        del param
        rules = rules_of(catalogue.fetch(ctx.params["method"]))
        items = []
        for name, rule in rules.items():
            values = rule.options if isinstance(rule, Choice) else ("",)
            items += [f"{name}={value}" for value in values]
        return [CompletionItem(item) for item in items if item.startswith(incomplete)]

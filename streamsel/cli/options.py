"""Options shared by several commands.

An option that sets a parameter of a learner is passed as text: the learner's rule parses it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from streamsel.cli.click_ext import (
    FilesArgument,
    NameType,
    SectionOption,
    load_config,
    set_log_format,
    set_quiet,
    split_at_commas,
)
from streamsel.cli.log import FORMATS, VARIABLES

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

INPUT, LEARNER, OUTPUT, LONG_RUNS = "Input", "Method", "Output", "Long runs"
# Commands that learn columns.
RUNS = ("select", "reduce", "evaluate", "stability")

Options = Mapping[str, Any]
Stored = tuple[tuple[type, ...], Any]
"""Types of a value in a model file, and the value that files without its key imply."""


def option(*names: str, section: str, **settings: Any) -> Decorator:
    """Return a click option that belongs to a section of the help page."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


def names_settings(metavar: str = "NAME") -> dict[str, Any]:
    """Return the settings of an option that takes names, repeated or separated by commas."""
    return {
        "type": NameType(),
        "metavar": metavar,
        "multiple": True,
        "callback": split_at_commas,
    }


def all_of(*decorators: Decorator) -> Decorator:
    """Combine several decorators into one, the first on top."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


@dataclass(frozen=True)
class Setting:
    """The declaration of a setting.

    Parameters
    ----------
    names, section, click_settings
        The option: its names, the section of the help page, and arguments of `click.option`.
    commands, default
        The commands with this option, and the value in others.
    stored, key
        Types of its value in a model file, None if it is not stored; and the key, by default its
        name.
    agrees
        Whether a resumed run must have the stored value; or a function that returns the value that
        it must have, given all options and the metadata.
    may_change
        Whether a resumed run may have another value: the stored one is the default.
    shared
        Whether a merged model stores the value if all its runs have the same.
    """

    names: tuple[str, ...]
    section: str
    click_settings: Options
    commands: tuple[str, ...]
    default: Any
    stored: Stored | None
    key: str | None
    agrees: bool | Callable[[Options, Options], Any]
    may_change: bool
    shared: bool

    @property
    def spelt(self) -> str:
        """The option as in messages."""
        return max(self.names, key=len)


def setting(
    *names: str,
    commands: tuple[str, ...] = RUNS,
    section: str = INPUT,
    stored: Stored | None = None,
    key: str | None = None,
    agrees: bool | Callable[[Options, Options], Any] = False,
    may_change: bool = False,
    shared: bool = False,
    **click_settings: Any,
) -> Any:
    """Return a field of `RunSettings` with an option; without it the value is the default."""
    default = click_settings.get("default", False if click_settings.get("is_flag") else None)
    default = () if click_settings.get("multiple") else default
    declared = Setting(
        names, section, click_settings, commands, default, stored, key, agrees, may_change, shared
    )
    return dataclasses.field(default=default, metadata={"setting": declared})


# Eager: the file may set the other options.
config_option = option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    is_eager=True,
    callback=load_config,
    section=INPUT,
    help="Read options that are not given elsewhere from this TOML file: one table per command, "
    "with long option names as keys.",
)

log_options = all_of(
    option(
        "--log-format",
        type=click.Choice(FORMATS),
        default=FORMATS[0],
        show_default=True,
        is_eager=True,
        callback=set_log_format,
        expose_value=False,
        envvar=VARIABLES["log_format"],
        section=LONG_RUNS,
        help="Log format when stderr is not a terminal: periodic text lines, or JSON events.",
    ),
    option(
        "--quiet",
        is_flag=True,
        is_eager=True,
        callback=set_quiet,
        expose_value=False,
        envvar=VARIABLES["quiet"],
        section=LONG_RUNS,
        help="Print errors only.",
    ),
)

files_argument = click.argument(
    "files", cls=FilesArgument, type=click.Path(), nargs=-1, required=True, metavar="FILE..."
)


# For commands that apply a saved model.
orientation_option = option(
    "--orientation",
    type=click.Choice(["auto", "samples", "variables"]),
    default="auto",
    show_default=True,
    section=INPUT,
    help="Content of a line of a text file; auto infers it from where the model's variables are.",
)

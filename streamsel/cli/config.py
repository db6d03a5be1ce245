"""Options from a TOML file (`--config`), with one table per command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamsel._utils.text import spelling_hint

if TYPE_CHECKING:
    from collections.abc import Iterable

SET = "set"
# Bounds what is read of an endless file or pipe.
_MAX_BYTES = 4 * 2**20


def load_config(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Use the file's options as defaults below the command line and the environment.

    Raises
    ------
    click.UsageError
        For a table that names no command, a key that names no option, and an invalid value.
    """
    if path is None:
        return None
    tables = _read(path, ctx)
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
    ctx.default_map = _defaults(tables.get(command, {}), ctx.command.params, where)
    return path


def _read(path: str, ctx: click.Context) -> dict[str, Any]:
    import tomllib

    from streamsel.cli.spool import waiting_for_writer

    try:
        with waiting_for_writer(path):
            file = Path(path).open("rb")  # noqa: SIM115
        with file:
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise click.UsageError(
                f"--config {path}: expected at most {_MAX_BYTES >> 20} MiB of TOML. Got: a "
                "larger file. Hint: check that FILE is the configuration file.",
                ctx,
            )
        return tomllib.loads(text.decode())
    except OSError as error:
        raise click.UsageError(f"--config {path}: {error.strerror or error}", ctx) from error
    except (ValueError, RecursionError) as error:  # not TOML, or not UTF-8
        raise click.UsageError(f"--config {path}: {error}", ctx) from error


def _defaults(
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
        found[str(known[key].name)] = _value(known[key], value, f"{where} {key}")
    return found


def config_key(parameter: click.Parameter) -> str:
    """Return the key of a parameter in the file: its longest option, or the argument's metavar."""
    if isinstance(parameter, click.Argument):
        # FILE... denotes several values of one argument.
        return (parameter.metavar or str(parameter.name)).rstrip(".").lower()
    return max(parameter.opts, key=len).lstrip("-")


def _value(parameter: click.Parameter, value: Any, where: str) -> Any:
    """Convert a TOML value to what click accepts."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{where}: expected true or false. Got: {value!r}")
        return value
    if config_key(parameter) == SET:
        if not isinstance(value, Mapping):
            raise click.UsageError(f"{where}: expected a table of parameters. Got: {value!r}")
        return [f"{name}={_text(item, f'{where}.{name}')}" for name, item in value.items()]
    if not parameter.multiple and parameter.nargs == 1:
        return _text(value, where)
    if not isinstance(value, list):
        return [_text(value, where)]
    items = [_text(item, where) for item in value]
    if isinstance(parameter, click.Argument):
        return items
    # Quoted, as each item is one name: on the command line commas separate names.
    return ['"' + item.replace('"', '""') + '"' for item in items]


def _text(value: Any, where: str) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, list):
        return ",".join(_text(item, where) for item in value)
    if not isinstance(value, str | int | float):
        raise click.UsageError(f"{where}: expected text, a number or a list. Got: {value!r}")
    return str(value)

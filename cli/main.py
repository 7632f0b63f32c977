"""``stream-wh``: the group of commands, loaded one by one, and the process's exit code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from warehouse.cli.errors import failure_of, wants_json, write_failure
from warehouse.cli.logs import FORMATS, configure
from warehouse.cli.options import write_examples
from warehouse.cli.output import ClosedPipeError

__all__ = ["COMMANDS", "main", "run", "stream_wh"]

COMMANDS = {
    "init": "warehouse.cli.commands.init",
    "demo": "warehouse.cli.commands.demo",
    "doctor": "warehouse.cli.commands.doctor",
    "validate": "warehouse.cli.commands.validate",
    "plan": "warehouse.cli.commands.update",
    "update": "warehouse.cli.commands.update",
    "run": "warehouse.cli.commands.run",
    "status": "warehouse.cli.commands.inspect",
    "health": "warehouse.cli.commands.inspect",
    "tables": "warehouse.cli.commands.inspect",
    "describe": "warehouse.cli.commands.inspect",
    "files": "warehouse.cli.commands.inspect",
    "connect": "warehouse.cli.commands.connect",
    "probe": "warehouse.cli.commands.probe",
    "scan": "warehouse.cli.commands.scan",
    "sql": "warehouse.cli.commands.sql",
    "changes": "warehouse.cli.commands.changes",
    "explain": "warehouse.cli.commands.explain",
    "advise": "warehouse.cli.commands.advise",
    "history": "warehouse.cli.commands.inspect",
    "rejected": "warehouse.cli.commands.inspect",
    "restored": "warehouse.cli.commands.inspect",
    "reload": "warehouse.cli.commands.maintain",
    "drop": "warehouse.cli.commands.maintain",
    "restate": "warehouse.cli.commands.maintain",
    "rebuild": "warehouse.cli.commands.maintain",
    "complete": "warehouse.cli.commands.maintain",
    "rollback": "warehouse.cli.commands.maintain",
    "migrate": "warehouse.cli.commands.migrate",
    "vacuum": "warehouse.cli.commands.maintain",
    "backup": "warehouse.cli.commands.backup",
    "restore": "warehouse.cli.commands.backup",
    "check": "warehouse.cli.commands.check",
    "repair": "warehouse.cli.commands.repair",
    "metrics": "warehouse.cli.commands.metrics",
    "report": "warehouse.cli.commands.report",
    "erase": "warehouse.cli.commands.erase",
}
"""The module of each command, in the order of ``--help``; a module is imported when its command is used."""

_EXAMPLES = (
    "stream-wh demo",
    "stream-wh init w --example flights && cd w",
    "stream-wh update --at 2013-01-01T12:00:00Z",
    "stream-wh probe flights N14228",
)

_EPILOG = """\b
Exit codes: 0 done; 1 failed; 2 usage, configuration or query; 3 worth
retrying; 4 a check failed; 130 interrupted.

\b
Completion: eval "$(_STREAM_WH_COMPLETE=bash_source stream-wh)", likewise
zsh_source; for fish: _STREAM_WH_COMPLETE=fish_source stream-wh | source.

NO_COLOR=1 turns colours off."""


class Commands(click.Group):
    """The commands of :data:`COMMANDS`; help opens with examples."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        loaded: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        return loaded

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of that name; the error for a misspelt name suggests the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - only a misspelt command needs it

            near = nearest(args[0], COMMANDS) if args else None
            if near is None:
                raise
            raise click.UsageError(f"No such command '{args[0]}'. (Did you mean '{near}'?)", ctx) from None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then click's own help."""
        write_examples(formatter, _EXAMPLES)
        super().format_help(ctx, formatter)


@click.group(cls=Commands, epilog=_EPILOG)
@click.option(
    "-C",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="STREAM_WH_PROJECT",
    metavar="DIR",
    help="The project directory, which holds warehouse.toml [$STREAM_WH_PROJECT, else the current directory].",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    help="What standard error shows: text, or JSON objects, one a line, with what each step does [$STREAM_WH_LOG_FORMAT].",
)
@click.version_option(package_name="stream-wh", prog_name="stream-wh")
def stream_wh(directory: Path | None, log_format: str | None) -> None:
    """Keep streams whose rows expire, and read the live ones."""
    del directory, log_format  # commands get the directory from the context; the log format is set already


def run(arguments: list[str]) -> int:
    """Run one command line in this process and return its exit code."""
    configure(arguments)
    try:
        code: Any = stream_wh.main(arguments, prog_name="stream-wh", standalone_mode=False)
    except ClosedPipeError:
        return 0
    except SystemExit as ended:
        # click's own answer to a closed pipe while it prints help
        closed = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        return 0 if closed else _number(ended.code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), file=sys.stderr)
        return error.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the outermost layer; failure_of tells them apart
        failure = failure_of(error, arguments)
        write_failure(failure, as_json=wants_json(arguments))
        return failure.exit_code
    return _number(code)


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def _number(code: object) -> int:
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()

"""``stream-wh``: the group of commands, loaded one by one, and the process's exit code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from cli.errors import failure_of, show, wants_json
from cli.logs import FORMATS, configure
from cli.options import write_examples
from cli.output import ClosedPipeError

__all__ = ["COMMANDS", "main", "run", "stream_wh"]

COMMANDS = {
    "init": "cli.commands.init",
    "demo": "cli.commands.demo",
    "doctor": "cli.commands.doctor",
    "validate": "cli.commands.validate",
    "plan": "cli.commands.update",
    "update": "cli.commands.update",
    "status": "cli.commands.inspect",
    "tables": "cli.commands.inspect",
    "describe": "cli.commands.inspect",
    "files": "cli.commands.inspect",
    "connect": "cli.commands.connect",
    "probe": "cli.commands.probe",
    "scan": "cli.commands.scan",
    "sql": "cli.commands.sql",
    "changes": "cli.commands.changes",
    "explain": "cli.commands.explain",
    "advise": "cli.commands.advise",
    "history": "cli.commands.inspect",
    "rejected": "cli.commands.inspect",
    "restored": "cli.commands.inspect",
    "reload": "cli.commands.maintain",
    "drop": "cli.commands.maintain",
    "restate": "cli.commands.maintain",
    "rebuild": "cli.commands.maintain",
    "rollback": "cli.commands.maintain",
    "migrate": "cli.commands.migrate",
    "vacuum": "cli.commands.maintain",
    "backup": "cli.commands.backup",
    "restore": "cli.commands.backup",
    "check": "cli.commands.check",
    "repair": "cli.commands.repair",
    "metrics": "cli.commands.metrics",
    "report": "cli.commands.report",
    "erase": "cli.commands.erase",
}
"""Where each command lives, in the order of ``--help``; a module is imported when its command is used."""

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
        """Return the names in the order of a first day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        return found

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then what click writes."""
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
    del directory, log_format  # commands ask the context for the one, the other is in force already


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
        show(failure, as_json=wants_json(arguments))
        return failure.exit_code
    return _number(code)


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def _number(code: object) -> int:
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()

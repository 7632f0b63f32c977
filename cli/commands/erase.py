"""``erase``: rows of keys, or expired rows, removed physically now."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import writing
from warehouse.cli.options import command, complete_tables, project, report_command
from warehouse.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.cli.outcome import Report
    from warehouse.serving.keys import KeyColumn

__all__ = ["erase"]


@command(
    "erase",
    "Remove rows physically, now.",
    "stream-wh erase flights --key N14228 --dry-run",
    "stream-wh erase flights --key N14228 --key N24211 --yes",
    "stream-wh erase dns --keys-from keys.txt --yes -o json",
    "stream-wh erase --expired --yes",
)
@click.argument("table", required=False, shell_complete=complete_tables)
@click.option("--key", "keys", multiple=True, metavar="KEY", help="A search key; of several parts: a JSON array. Repeat it.")
@click.option(
    "--keys-from",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE|-",
    help="Keys from a file or standard input: a key or a JSON array of its parts a line.",
)
@click.option("--expired", is_flag=True, help="Rows that have expired, of TABLE or of all tables, instead of keys.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@report_command
@project
def erase(directory: Path, table: str | None, *, dry_run: bool, yes: bool, **options: Any) -> Report:  # noqa: ANN401
    """Remove the rows of each KEY of TABLE from every file under the root, and prove it by a search of all files.

    Rows are removed from the table, its deferred and rejected rows, Delta's logs and checkpoints and all older epochs, which can
    no longer be read afterwards; views that read the table are rebuilt without them. Landing files are not changed: files that
    still have a key are listed, and the exit code is 4 while there are any. The receipt, under root/erasures, has hashes instead
    of keys. The next update completes an erasure that was interrupted; you can also run it again.
    """
    keys = _keys(table, options)
    if not dry_run and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("erasing cannot be undone; give --yes, or look first with --dry-run")
        planned = writing.plan_erasure(directory, table, keys)
        for line in planned.lines:
            click.echo(line, err=True)
        click.confirm("Erase? It cannot be undone, and older epochs go", abort=True, err=True)
    if dry_run:
        return writing.plan_erasure(directory, table, keys)
    with progress() as step:
        return writing.erase(directory, table, keys, step)


def _keys(table: str | None, options: dict[str, Any]) -> Callable[[Sequence[KeyColumn]], list[tuple[Any, ...]]] | None:
    """Return the function that reads the keys, given the key columns; None for expired rows."""
    has_keys = bool(options["keys"]) or options["keys_from"] is not None
    if has_keys == options["expired"]:
        raise click.UsageError("give --key or --keys-from, or --expired" + (", not both" if has_keys else ""))
    if options["expired"]:
        return None
    if table is None:
        raise click.UsageError("keys are those of a TABLE; name it")

    def read_keys(columns: Sequence[KeyColumn]) -> list[tuple[Any, ...]]:
        from warehouse.cli.keys import keys_of_lines, positional_key  # noqa: PLC0415 - it imports the engine

        for text in options["keys"]:
            _require_no_column(text, columns)
        keys = [positional_key(text, columns) for text in options["keys"]]
        source = options["keys_from"]
        if source is not None:
            keys.extend(keys_of_lines(None if source == "-" else Path(source), columns))
        return keys

    return read_keys


def _require_no_column(text: str, columns: Sequence[KeyColumn]) -> None:
    """Refuse ``column=key``, which `probe --key` takes: no row would be found, and nothing erased."""
    name, sign, key = text.partition("=")
    if sign and name.lower() in {column.name.lower() for column in columns}:
        given = f"--key {shlex.quote(key)}" if len(columns) == 1 else "a JSON array of its parts"
        raise click.UsageError(
            f"--key takes the key without the name of its column; give {given}, or a file with a key that begins with "
            f'"{name}=" for --keys-from'
        )

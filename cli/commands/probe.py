"""``probe``: the live rows of keys or of a key range."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import reading
from warehouse.cli.accuracy import AccuracyOptions, coalesced_options
from warehouse.cli.options import (
    columns_option,
    command,
    limit_option,
    project,
    rows_command,
    system_columns_option,
    table_argument,
    time_options,
    within_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.cli.outcome import Rows
    from warehouse.serving.keys import KeyColumn

__all__ = ["probe"]


@command(
    "probe",
    "Live rows of keys or a key range.",
    "stream-wh probe flights N14228",
    "stream-wh probe flights --from N1 --to N2 --columns tailnum,dest",
    "stream-wh probe flights --keys-from keys.txt -o csv",
    "stream-wh probe dns --key name=example.org --key type=A",
)
@table_argument
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--key", "named", multiple=True, metavar="COLUMN=VALUE", help="One part of a composite key; repeat it.")
@click.option(
    "--keys-from",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE|-",
    help="Keys from a file or standard input: a key or a JSON array of its parts a line.",
)
@click.option("--from", "from_", metavar="KEY", help="Keys at or after this.")
@click.option("--to", metavar="KEY", help="Keys before this.")
@click.option("--null", is_flag=True, help="Rows whose key is null.")
@columns_option
@limit_option
@within_option
@time_options
@coalesced_options
@system_columns_option
@click.option("--explain", is_flag=True, help="Also show what was considered, pruned and read, on stderr.")
@rows_command
@project
def probe(directory: Path, table: str, as_of: int | None, *, explain: bool, **options: Any) -> Rows:  # noqa: ANN401
    """Print the live rows of each KEY, of a half-open range of keys, or of the null key.

    A KEY is read as the key column's type: 007 stays text in a string column. A composite key is --key a=1 --key b=x
    or one JSON array, '["a", 1]'; fewer parts are a prefix. After -- a KEY may begin with a dash. Rows come by key,
    expiration and arrival.
    """
    return reading.probe(
        directory,
        table,
        lambda reader: selection(reader.key_columns(table), options),
        {name: options[name] for name in ("columns", "limit", "now", "system_columns", "open_until", "within")},
        as_of=as_of,
        explain=explain,
        accuracy=AccuracyOptions(options["at_least"], options["minimum_accuracy"]),
    )


def selection(columns: Sequence[KeyColumn], options: dict[str, Any]) -> dict[str, Any]:
    """Return the selection of rows: keys, a range of keys, or the null key."""
    from warehouse.cli.keys import keys_of_lines, named_key, positional_key  # noqa: PLC0415 - it imports the engine

    keys = [positional_key(text, columns) for text in options["keys"]]
    if (named := named_key(options["named"], columns)) is not None:
        keys.append(named)
    source = options["keys_from"]
    if source is not None:
        keys.extend(keys_of_lines(None if source == "-" else Path(source), columns))
    has_keys = bool(options["keys"] or options["named"] or source is not None)
    has_range = options["from_"] is not None or options["to"] is not None
    if has_keys + has_range + options["null"] != 1:
        raise click.UsageError("give keys, or --from/--to, or --null" + (", not several" if has_keys else ""))
    if has_keys:
        return {"keys": keys}
    if options["null"]:
        return {"null": True}
    bounds = {"from_": options["from_"], "to": options["to"]}
    return {name: positional_key(text, columns) for name, text in bounds.items() if text is not None}

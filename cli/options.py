"""The options that commands share, as decorators, and the types of their values."""

from __future__ import annotations

import functools
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from warehouse.cli.outcome import Report, Rows, render_report, render_rows
from warehouse.cli.output import DATA_FORMATS, Destination, NothingWrittenError
from warehouse.time import parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem

__all__ = [
    "DURATION",
    "INSTANT",
    "ColumnNames",
    "ExampleCommand",
    "InstantOrFirst",
    "columns_option",
    "command",
    "complete_sources",
    "complete_tables",
    "complete_views",
    "isolation_option",
    "limit_option",
    "project",
    "report_command",
    "rows_command",
    "system_columns_option",
    "table_argument",
    "time_options",
    "update_options",
    "within_option",
]

_Function = TypeVar("_Function", bound="Callable[..., Any]")


class Instant(click.ParamType[int]):
    """An ISO 8601 instant, or ``now``; microseconds since 1970. Without an offset it is UTC."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the microseconds of the text."""
        if isinstance(value, int):
            return value
        if value == "now":
            return time.time_ns() // 1000
        try:
            return parse_instant(value)
        except (ValueError, OverflowError) as error:
            self.fail(f'{error}, or "now"', param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:  # noqa: ARG002 - click's
        """Return the name of an instant in help."""
        return "INSTANT"


class ColumnNames(click.ParamType["tuple[str, ...]"]):
    """Column names separated by commas."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:  # noqa: ANN401
        """Return the names."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(","))
        if not all(names):
            self.fail(f'"{value}" is not a list of names such as tailnum,origin', param, ctx)
        return names


INSTANT = Instant()


class Duration(click.ParamType[int]):
    """A duration such as ``10s`` or ``5m``; microseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the microseconds of the text."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Duration()


class ExampleCommand(click.Command):
    """A command whose help opens with an example."""

    examples: tuple[str, ...] = ()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then click's own help."""
        write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write examples as the first section of a help text."""
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}$ {example}\n")
    formatter.write_paragraph()


def command(name: str, summary: str, *examples: str) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Return a decorator that makes a function a command, with a summary and with examples at the top of its help."""

    def decorate(function: Callable[..., Any]) -> ExampleCommand:
        decorated = click.command(name, cls=ExampleCommand, short_help=summary)(function)
        decorated.examples = examples
        return decorated

    return decorate


def project(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the project directory (``-C``) as the first argument."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        directory: Path = click.get_current_context().find_root().params.get("directory") or Path()
        return function(directory, *args, **kwargs)

    return wrapper


def rows_command(function: Callable[..., Rows]) -> Callable[..., int]:
    """Give a command the output options of reading commands, and render the rows that it returns."""

    @click.option("-o", "--output", "output", type=click.Choice(DATA_FORMATS), help="Format [table; csv in a pipe].")
    @click.option(
        "--output-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write there; its ending chooses the format unless -o does.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, output: str | None, output_file: Path | None, **kwargs: Any) -> int:  # noqa: ANN401
        destination = Destination(output, output_file)
        destination.chosen()  # so that an error comes before the work and not after it
        try:
            return render_rows(function(*args, **kwargs), destination)
        except NothingWrittenError:
            return render_rows(function(*args, **kwargs), destination)  # it reads the newest epoch now

    return wrapper


def report_command(function: Callable[..., Report]) -> Callable[..., int]:
    """Give a command ``-o`` and render the report that it returns: text on stderr, or its record as JSON on stdout."""

    @click.option(
        "-o",
        "--output",
        "output",
        type=click.Choice(["text", "json"]),
        default="text",
        help="text: lines for people; json: the record of it, on stdout.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, output: str, **kwargs: Any) -> int:  # noqa: ANN401
        return render_report(function(*args, **kwargs), as_json=output == "json")

    return wrapper


def time_options(function: _Function) -> _Function:
    """Add ``--as-of`` and ``--now``."""
    as_of = click.option("--as-of", type=INSTANT, help="Read the newest epoch whose window time is at or before this.")
    now = click.option("--now", type=INSTANT, help="Leave out rows that have expired by this instant.")
    return as_of(now(function))


def isolation_option(function: _Function) -> _Function:
    """Add ``--isolation``."""
    text = "pinned: of the epoch that was newest at the start; latest: again, if an update ends meanwhile [pinned]."
    return click.option("--isolation", type=click.Choice(["pinned", "latest"]), default="pinned", help=text)(function)


def within_option(function: _Function) -> _Function:
    """Add ``--within``."""
    text = "What is known after this time, such as 200ms: estimates with certain bounds, or the rows found so far."
    return click.option("--within", type=DURATION, help=text)(function)


def columns_option(function: _Function) -> _Function:
    """Add ``--columns``."""
    return click.option("--columns", type=ColumnNames(), metavar="A,B,...", help="Only these columns.")(function)


def limit_option(function: _Function) -> _Function:
    """Add ``--limit``."""
    return click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many rows.")(function)


def system_columns_option(function: _Function) -> _Function:
    """Add ``--system-columns``."""
    text = "Also _ts, _exp, _load_slot, _exp_slot, sub_index and exp_block."
    return click.option("--system-columns", is_flag=True, help=text)(function)


def table_argument(function: _Function) -> _Function:
    """Add the TABLE argument, completed from the declarations."""
    return click.argument("table", shell_complete=complete_tables)(function)


def update_options(function: _Function) -> _Function:
    """Add the options that ``update`` and ``plan`` share."""
    decorators = (
        click.option("--at", type=INSTANT, help="Move to the last grid point at or before this [now]."),
        click.option("--each", is_flag=True, help="One epoch for each slot instead of one for all that were missed."),
        click.option(
            "--from",
            "start",
            type=InstantOrFirst(),
            help='With --each on a first run: where the replay starts; "first" is the earliest waiting row.',
        ),
        click.option("--allow-dead", is_flag=True, help="Accept a first run that finds every row expired."),
        click.option("--future", is_flag=True, help="Allow --at further ahead of the clock than one update interval."),
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


class InstantOrFirst(Instant):
    """An instant, or ``first``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the microseconds of the text, or ``first``."""
        return value if value == "first" else super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:  # noqa: ARG002 - click's
        """Show both in help."""
        return "INSTANT|first"


def complete_tables(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Return the declared tables whose names begin with the incomplete word."""
    return _complete(ctx, incomplete, "streams", "relations", "views", "aggregates", "coalesced")


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Return the declared streams and relations whose names begin with the incomplete word."""
    return _complete(ctx, incomplete, "streams", "relations")


def complete_views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Return the declared views, aggregates and coalesced tables whose names begin with the incomplete word."""
    return _complete(ctx, incomplete, "views", "aggregates", "coalesced")


def _complete(ctx: click.Context, incomplete: str, *sections: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem as Item  # noqa: PLC0415 - only the shell asks

    directory = cast("Path", ctx.find_root().params.get("directory") or Path())
    try:
        with (directory / "warehouse.toml").open("rb") as file:
            content = tomllib.load(file)
    except (OSError, ValueError):
        return []
    declared = [name for section in sections for name in content.get(section, {})]
    return [Item(name) for name in sorted(declared) if name.startswith(incomplete)]

"""``migrate``: another layout, other columns, another grid of times, without loading anything again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import writing
from warehouse.cli.options import command, complete_sources, project, report_command
from warehouse.cli.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["migrate"]

_GRID = re.compile(r"(\d+)\s*[xX\u00d7]\s*(\d+)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


class GridParam(click.ParamType["tuple[int, int]"]):
    """Rows and columns of a grid, as ``6x4``."""

    name = "GxE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:  # noqa: ANN401
        """Return the two numbers."""
        if isinstance(value, tuple):
            return value
        match = _GRID.fullmatch(value.strip())
        if match is None:
            self.fail(f'"{value}" is no grid of insertion rows and expiration columns such as 6x4', param, ctx)
        return int(match[1]), int(match[2])


class Share(click.ParamType[float]):
    """A share, as ``10%`` or ``0.1``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return the share as a number from 0 to 1."""
        if isinstance(value, float):
            return value
        match = _SHARE.fullmatch(value.strip())
        number = float(match[1]) / (100 if match[2] else 1) if match else -1.0
        if not 0 < number <= 1:
            self.fail(f'"{value}" is no share above 0 % and up to 100 % such as 10% or 0.1', param, ctx)
        return number


class Rename(click.ParamType["tuple[str, str]"]):
    """A former and a new name, as ``old=new``."""

    name = "OLD=NEW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:  # noqa: ANN401
        """Return both names."""
        if isinstance(value, tuple):
            return value
        old, equals, new = value.partition("=")
        if not (equals and old.strip() and new.strip()):
            self.fail(f'"{value}" is no pair of names such as tail=tailnum', param, ctx)
        return old.strip(), new.strip()


@command(
    "migrate",
    "Give a table another layout or columns.",
    "stream-wh migrate flights --grid 6x6",
    "stream-wh migrate flights --technique rebuild --side-by-side --move-below 10%",
    "stream-wh migrate --rebuild",
)
@click.argument("table", required=False, shell_complete=complete_sources)
@click.option("--rebuild", "way", flag_value="rebuild", help="Write the live rows again, in one epoch [the default].")
@click.option("--side-by-side", "way", flag_value="side-by-side", help="New rows go to the new layout; the old one only expires.")
@click.option(
    "--move-below", type=Share(), help="Side by side: move what is left once it is less than this share of what there was."
)
@click.option("--technique", type=click.Choice(["norebuild", "rebuild"]), help="How sub-indices are kept.")
@click.option("--grid", type=GridParam(), help="Insertion rows x expiration columns.")
@click.option("--insertion", type=click.Choice(["round-robin", "chronological", "permuted", "staggered"]), help="Slots to rows.")
@click.option("--expiration", type=click.Choice(["round-robin", "chronological", "permuted", "blocks"]), help="Slots to columns.")
@click.option("--expiry-block", type=click.IntRange(min=1), metavar="W", help="Slots per expiry block.")
@click.option("--seal/--no-seal", default=None, help="Whether runs are merged when their row closes.")
@click.option("--seed", type=int, help="Of the permuted assignments.")
@click.option("--rename", "renamed", type=Rename(), multiple=True, help="A column that warehouse.toml calls NEW now.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@report_command
@project
def migrate(directory: Path, table: str | None, *, way: str | None, dry_run: bool, **options: Any) -> Report:  # noqa: ANN401 - listed above
    """Let TABLE follow warehouse.toml, or without TABLE every table that does not fit it.

    What changed there, search key, wider types, layout, max_lifetime (and so p), is taken over; options name keys of
    the layout that the file leaves out. By --rebuild the live rows are written again and readers switch at one epoch of
    the same window time. With --side-by-side only the layout may change: nothing is written now, new rows go to the new
    layout from the next update on, and the old one vanishes once its rows have expired; `status` shows how much is left.
    A change of anchor or update_interval takes all tables: give no TABLE.
    """
    if options["move_below"] is not None and way != "side-by-side":
        raise click.UsageError("--move-below goes with --side-by-side; give that too, or leave it out")
    if way == "side-by-side" and options["renamed"]:
        raise click.UsageError("--rename writes every row again; leave out --side-by-side")
    request = {**options, "side_by_side": way == "side-by-side"}
    if dry_run:
        return writing.migrate(directory, table, request, None, dry_run=True)
    with progress() as step:
        return writing.migrate(directory, table, request, step)

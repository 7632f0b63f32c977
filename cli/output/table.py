"""Tables for people: a grid if it fits the terminal, else a block of lines for each row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from warehouse.cli.output.records import Records
from warehouse.cli.output.text import plain_rows, unique_names
from warehouse.cli.output.values import text
from warehouse.cli.output.visible import terminal_width, visible

if TYPE_CHECKING:
    from rich.console import Console

    from warehouse.cli.output.records import Result
    from warehouse.cli.output.sink import Sink

__all__ = ["write_table"]

PAGE = 500
"""Rows of a page. The rows of the first page decide the column widths; later pages are printed as they arrive."""

_UNLIMITED = 1_000_000
_GAP = 3
_MIN_LAST_WIDTH = 16
"""The least width to which the last column of a table about the warehouse shrinks; its words are then wrapped."""
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "UBIGINT")


def write_table(result: Result, sink: Sink) -> int:
    """Write a table and return the number of rows."""
    from rich.cells import cell_len  # noqa: PLC0415 - rich is imported only when a table is rendered

    console = _console(sink)
    names = [visible(name) for name in unique_names(result)]
    numeric = [kind.startswith(_NUMBERS) and not kind.endswith("]") for _, kind in result.columns]
    count, widths, gap = 0, [], _GAP
    for rows in plain_rows(result, PAGE):
        cells = [[None if value is None else visible(text(value)) for value in row] for row in rows]
        if count == 0:
            widths = [
                max(cell_len(name), *(cell_len(row[index] or "null") for row in cells))
                for index, name in enumerate(names)
            ]
            if sink.terminal:
                folds = isinstance(result, Records) and not numeric[-1]
                gap = _fitting_gap(widths, console.width, least=max(_MIN_LAST_WIDTH, cell_len(names[-1])) if folds else None)
        if gap:
            _grid(console, names, numeric, widths, cells, gap, header=count == 0)
        else:
            _blocks(console, names, cells, count)
        count += len(rows)
        sink.flush()
    if count == 0:
        _grid(console, names, numeric, [cell_len(name) for name in names], [], _GAP, header=True)
    return count


def _fitting_gap(widths: list[int], width: int, *, least: int | None) -> int:
    """Return the gap with which columns fit a width, or 0 if none does; the last column may shrink to ``least`` cells."""
    gaps = len(widths) - 1
    for gap in range(_GAP, 0, -1):
        if sum(widths) + gap * gaps <= width:
            return gap
    remaining = width - sum(widths[:-1]) - gaps
    if least is None or remaining < least:
        return 0
    widths[-1] = remaining
    return 1


def _console(sink: Sink) -> Console:
    from io import TextIOBase  # noqa: PLC0415 - see write_table
    from typing import cast  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    class Text(TextIOBase):
        """The text side of the sink."""

        encoding = "utf-8"

        def write(self, string: str) -> int:
            sink.write(string.encode(errors="backslashreplace"))
            return len(string)

        def isatty(self) -> bool:
            return sink.terminal

    # the width is given: for a stream that is no terminal rich would ask the operating system
    width = terminal_width() if sink.terminal else _UNLIMITED
    return Console(
        file=cast("TextIOBase", Text()),  # type: ignore[arg-type]
        width=width,
        force_terminal=sink.terminal,
        color_system="standard" if sink.terminal and not os.environ.get("NO_COLOR") else None,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
    )


def _grid(
    console: Console,
    names: list[str],
    numeric: list[bool],
    widths: list[int],
    cells: list[list[str | None]],
    gap: int,
    *,
    header: bool,
) -> None:
    from rich import box  # noqa: PLC0415 - see write_table
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        box=box.SIMPLE_HEAD,
        show_header=header,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap // 2, 0, (gap - 1) // 2),  # the line between two columns is the rest of the gap
        header_style="bold",
    )
    for name, right, width in zip(names, numeric, widths, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", width=width, overflow="fold")
    for row in cells:
        table.add_row(*[Text("null", style="dim") if cell is None else Text(cell) for cell in row])
    console.print(table)


def _blocks(console: Console, names: list[str], cells: list[list[str | None]], first: int) -> None:
    from rich.text import Text  # noqa: PLC0415 - see write_table

    label = max(map(len, names), default=0)
    for number, row in enumerate(cells, first + 1):
        console.print(Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            value = ("null", "dim") if cell is None else cell
            console.print(Text.assemble((f"  {name:<{label}}  ", "dim"), value), soft_wrap=True)

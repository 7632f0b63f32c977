"""Pieces of the report's page: a section, a figure with its heading and caption, a table of texts that are HTML already."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["anchor", "figure", "rows_table", "section"]

_PAIR = 2
"""Columns that fit a phone side by side."""


def anchor(table: str) -> str:
    """Return the anchor of a table's section in the page."""
    return escape(f"table-{table}")


def section(title: str, *parts: str, place: str = "") -> str:
    """Return parts below a heading."""
    named = f' id="{place}"' if place else ""
    return f"<section{named}><h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def figure(title: str, picture: str, caption: str) -> str:
    """Return a picture below its heading; it scrolls by itself where the page is too narrow."""
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<figure>{heading}<div class="wide">{picture}</div><figcaption>{escape(caption)}</figcaption></figure>'


def rows_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """Return a table whose first columns are texts and the others numbers; cells are HTML.

    On a phone each row of a table of more than two columns becomes a block of lines, each with the heading of its column.
    """
    titles = [escape(each) for each in head]
    classes = [' class="text"' if place < texts else "" for place in range(len(head))]

    def cells(row: Sequence[str]) -> str:
        parts = zip(row, classes, titles, strict=True)
        return "".join(f'<td{own} data-head="{title}">{cell}</td>' for cell, own, title in parts)

    first = "".join(f"<th{own}>{title}</th>" for own, title in zip(classes, titles, strict=True))
    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    kind = "" if len(head) <= _PAIR else ' class="stacked short"' if len(head) <= 2 * _PAIR else ' class="stacked"'
    return f'<div class="wide"><table{kind}><tr>{first}</tr>{body}</table></div>'

"""HTML parts of the report's page: a section, a figure with its heading and caption, a table whose cells are HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["anchor", "figure", "rows_table", "section"]

_MAX_PHONE_COLUMNS = 2
"""How many columns fit the screen of a phone."""


def anchor(table: str) -> str:
    """Return the anchor of a table's section in the page."""
    return escape(f"table-{table}")


def section(title: str, *parts: str, identifier: str = "") -> str:
    """Return a section with a heading above its parts; ``identifier`` is the target of links to it."""
    attribute = f' id="{identifier}"' if identifier else ""
    return f"<section{attribute}><h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def figure(title: str, picture: str, caption: str) -> str:
    """Return a picture below its heading; it scrolls by itself where the page is too narrow."""
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<figure>{heading}<div class="wide">{picture}</div><figcaption>{escape(caption)}</figcaption></figure>'


def rows_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """Return a table whose first columns are texts and the others numbers; cells are HTML.

    On a phone each row of a table of more than two columns becomes a block of lines, each with the heading of its column.
    """
    titles = [escape(heading) for heading in head]
    classes = [' class="text"' if position < texts else "" for position in range(len(head))]

    def cells(row: Sequence[str]) -> str:
        parts = zip(row, classes, titles, strict=True)
        return "".join(f'<td{attribute} data-head="{title}">{cell}</td>' for cell, attribute, title in parts)

    heading = "".join(f"<th{attribute}>{title}</th>" for attribute, title in zip(classes, titles, strict=True))
    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    short = " short" if len(head) <= 2 * _MAX_PHONE_COLUMNS else ""
    kind = f' class="stacked{short}"' if len(head) > _MAX_PHONE_COLUMNS else ""
    return f'<div class="wide"><table{kind}><tr>{heading}</tr>{body}</table></div>'

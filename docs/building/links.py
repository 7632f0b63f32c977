"""Links from a page to files of the project that are no pages: a checkout has them, the site has their names."""

from __future__ import annotations

import re

__all__ = ["within_the_site"]

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)(?:#[^)]*)?\)")


def within_the_site(text: str) -> str:
    """Return a page in which links that lead out of docs/ have become the names of the files they lead to.

    >>> within_the_site("see [figures](../benchmarks/README.md#growth) and [words](glossary.md)")
    'see figures (`benchmarks/README.md`) and [words](glossary.md)'
    """
    return _OUTSIDE.sub(r"\1 (`\2`)", text)

"""JSON that is neither an object a line nor one array of objects: what makes lines of it, for messages of ``init --from``."""

from __future__ import annotations

import json
import shlex
import zlib
from typing import TYPE_CHECKING, Any

from warehouse.catalog.codecs import decompressed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["line_maker"]

_LOOKED_AT = 64 << 20


def line_maker(source: Path) -> str | None:
    """Return the command that makes a line of each record; None if the file begins with no JSON object."""
    try:
        with source.open("rb") as raw:
            text = decompressed(raw, source.name).read(_LOOKED_AT).decode("utf-8-sig").lstrip()
        first, _ = json.JSONDecoder().raw_decode(text)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    inner = next((f".{json.dumps(name)}[]" for name, value in first.items() if _is_rows(value)), ".")
    return f"jq -c {shlex.quote(inner)} {shlex.quote(str(source))} > rows.jsonl"


def _is_rows(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)

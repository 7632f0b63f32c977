"""The one way in which tests write ``warehouse.toml``: from plain values, one header for each stream, relation and view."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["toml", "write_declarations"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OF_NAMES = ("streams", "relations", "views", "aggregates")


def toml(value: object) -> str:
    """Return a value as TOML writes it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def write_declarations(directory: Path, content: Mapping[str, object]) -> Path:
    """Write the file of a project into its directory, which is made if need be, and return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "warehouse.toml").write_text("\n".join(_lines(content)) + "\n")
    return directory


def _lines(content: Mapping[str, object]) -> Iterator[str]:
    plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
    yield from (f"{_key(key)} = {toml(value)}" for key, value in plain.items())
    for section, value in content.items():
        if not isinstance(value, dict):
            continue
        tables = {_key(section): value}
        if value and section in _OF_NAMES and all(isinstance(keys, dict) for keys in value.values()):
            tables = {f"{section}.{_key(name)}": keys for name, keys in value.items()}
        for header, keys in tables.items():
            yield f"[{header}]"
            yield from (f"{_key(key)} = {toml(item)}" for key, item in keys.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)

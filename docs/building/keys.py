"""The tables of configuration keys, joined with the models that read them: what a key allows is told by the model.

A comment ``<!-- keys: StreamSection -->`` above a table of docs/configuration.md names the model. In the site the table has
a column more; a table that names a key too many or too few, or another default, does not build.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog import config
from warehouse.time import format_duration

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = ["KeysError", "joined"]

_TABLE = re.compile(r"<!-- keys: (\w+?)(?:, as in (\w+))? -->\n((?:\|.*\n)+)")


class KeysError(ValueError):
    """A table of keys does not say what the model says."""


def joined(text: str) -> str:
    """Return a page whose tables of keys have the column of what is allowed.

    Raises
    ------
    KeysError
        When a table names other keys than the model has, or another default.
    """

    def whole(match: re.Match[str]) -> str:
        model: type[BaseModel] = getattr(config, match[1])
        elsewhere: type[BaseModel] | None = getattr(config, match[2]) if match[2] else None
        fields, lines = config.keys_of(model), match[3].splitlines()
        keys = [_cells(line)[0].strip().strip("`") for line in lines[2:]]
        shared = {name for name in fields if elsewhere is not None and name in config.keys_of(elsewhere)}
        missing = [name for name in fields if name not in keys and name not in shared]
        unknown = [name for name in keys if name not in fields]
        if missing or unknown:
            raise KeysError(f"[{match[1]}] the table of keys misses {missing} and has {unknown}, which the model does not know")
        made = [_with(lines[0], "allowed"), _with(lines[1], "---")]
        for name, line in zip(keys, lines[2:], strict=True):
            field = fields[name]
            _check_default(name, field, _cells(line)[1].strip())
            made.append(_with(line, _allowed(field)))
        return "\n".join(made) + "\n"

    return _TABLE.sub(whole, text)


def _cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line.strip().strip("|"))


def _with(line: str, cell: str) -> str:
    """Return a row of a table with a cell more, before the last."""
    *first, last = _cells(line)
    return "|" + "|".join([*first, f" {cell} " if cell != "---" else cell, last]) + "|"


def _allowed(field: FieldInfo) -> str:
    return re.sub(r'("[^"]+")', r"`\1`", (field.description or "").replace("|", "or"))


def _check_default(name: str, field: FieldInfo, told: str) -> None:
    """Compare a default with what the page says, where both are plain values; the page may go on after it."""
    default = field.default
    if default is None or isinstance(default, (dict, tuple)) or not isinstance(default, (str, bool, int)):
        return
    spellings = {str(default), str(default).lower(), _size(default), format_duration(default) if type(default) is int else ""}
    found = re.match(r"`?([^`,; ]+)", told)
    if found is None or (found[1] not in spellings and found[1] != "required"):
        raise KeysError(f"{name}: the page says that the default is {told}, the model has {default!r}")


def _size(value: object) -> str:
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6)):
        if isinstance(value, int) and value and value % bytes_ == 0:
            return f"{value // bytes_}{unit}"
    return ""

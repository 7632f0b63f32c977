"""Reads every table of an epoch; a table that cannot be read does not hide the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from warehouse.errors import EpochVacuumedError, MissingPartError
from warehouse.serving.missing_parts import missing_part_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader

__all__ = ["each_table"]

_Result = TypeVar("_Result")


def each_table(
    reader: Reader, tables: Callable[[Epoch], Iterable[TableState]], read: Callable[[Pin, TableState], _Result]
) -> tuple[dict[str, _Result], dict[str, str]]:
    """Return the result of reading each table of an epoch, by table, and the error of each table that cannot be read."""
    try:
        return reader.retrying(lambda pin: {state.name: read(pin, state) for state in tables(pin.epoch)}), {}
    except (EpochVacuumedError, MissingPartError):
        results, errors = dict[str, _Result](), dict[str, str]()
    pin = reader.pin
    for state in tables(pin.epoch):
        try:
            results[state.name] = read(pin, state)
        except (EpochVacuumedError, MissingPartError) as error:
            errors[state.name] = str(missing_part_error(pin.root, pin.epoch, error))
    return results, errors

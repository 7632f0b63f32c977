"""The states that the driver calculates of few rows for a synopsis."""

from __future__ import annotations

import duckdb
import pytest

from warehouse.steps.local_states import slot_of
from warehouse.time import HOUR, SECOND, parse_instant


@pytest.mark.parametrize("interval", [SECOND, HOUR])
@pytest.mark.parametrize("anchor", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2024-01-01T00:00:00Z"])
@pytest.mark.parametrize("instant", ["1950-03-01T00:00:00Z", "2024-01-01T00:00:00Z", "2600-05-06T07:00:00Z"])
def test_the_slot_of_an_instant_is_exact(instant: str, anchor: str, interval: int) -> None:
    """One microsecond around the end of a slot, also where a double cannot represent single microseconds."""
    start = parse_instant(anchor)
    for micros in (parse_instant(instant) + off for off in (-1, 0, 1)):
        ((slot,),) = duckdb.connect().execute(f"SELECT {slot_of(f'{micros}::BIGINT', start, interval)}").fetchall()
        assert slot == -((start - micros) // interval)

"""The driver's index join of what arrived: with the results from before it is the join of all rows, each result once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from warehouse.views.algebra import Equality, Join, Scan
from warehouse.views.costs.chosen_order import InputStatistics
from warehouse.views.maintenance import joins
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.joins import ArrivedSide, EarlierSide, JoinInputs, joined, local_results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

TIMES = pa.timestamp("us", "UTC")
SINCE = 1_000
"""The instant of the last epoch: what arrived begins then or later."""
KEYS = ["x", "y", "z", None]


class Before(EarlierSide):
    """Rows from before, as a table of few would give them."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__(Scan("t"), bare=True, tables={}, before=SINCE)
        object.__setattr__(self, "held", rows)

    def looked_up(self, columns: Sequence[str], keys: pa.Table, wanted: AbstractSet[str] | None) -> pa.Table | None:
        """Return all rows: a lookup may also return rows of other keys."""
        del columns, keys, wanted
        return self.held  # type: ignore[attr-defined]


def _rows(side: str, count: int, begin: int, rng: np.random.Generator) -> pa.Table:
    """Return rows with a key, a struct and times; some begin together, some never end."""
    begins = begin + rng.integers(0, 20, count) * 10
    ends = begins + rng.integers(1, 200, count) * 10
    leaves = np.where(rng.random(count) < 0.3, ends + 10**6, ends)
    times = {"_ts": begins, "_exp": ends, "_out": leaves}
    return pa.table(
        {
            f"{side}_key": pa.array([KEYS[number] for number in rng.integers(0, len(KEYS), count)]),
            f"{side}_what": pa.array([{"n": number} for number in range(begin, begin + count)]),
            **{name: pa.array(values.tolist(), pa.int64()).cast(TIMES) for name, values in times.items()},
        }
    )


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(str(row) for row in rows.to_pylist())


def _join(inputs: int, *, null_safe: bool) -> Join:
    names = "abc"[:inputs]
    equal = (Equality(0, f"{names[0]}_key", number, f"{names[number]}_key") for number in range(1, inputs))
    return Join(tuple(Scan(name) for name in names), tuple(equal), null_safe=null_safe)


def _inputs(before: Sequence[pa.Table], arrived: Sequence[pa.Table]) -> JoinInputs:
    def not_opened() -> NoReturn:
        raise AssertionError("no session is opened")

    sides = (ArrivedSide(not_opened, SINCE, InputStatistics(len(rows), {}, 9), known=rows, picked=rows) for rows in arrived)
    return JoinInputs(tuple(sides), tuple(map(Before, before)), tuple(range(len(arrived))))


@pytest.mark.parametrize("inputs", [2, 3])
@pytest.mark.parametrize("null_safe", [False, True])
def test_new_results_complete_the_join(inputs: int, *, null_safe: bool) -> None:
    """The earlier and the new results together are the results of all rows, with the number of equal results."""
    join, rng = _join(inputs, null_safe=null_safe), np.random.default_rng(11)
    before = [_rows(name, 30, 0, rng) for name in "abc"[:inputs]]
    before = [rows.filter(pa.compute.greater(rows["_exp"].cast(pa.int64()), SINCE)) for rows in before]
    arrived = [_rows(name, 9, SINCE, rng) for name in "abc"[:inputs]]
    new_results = local_results(join, _inputs(before, arrived), join)
    all_rows = [pa.concat_tables(parts) for parts in zip(before, arrived, strict=True)]
    whole, former = (joined(join, [DriverRows.of(rows) for rows in parts]).toArrow() for parts in (all_rows, before))
    assert new_results is not None
    assert _bag(new_results.select(whole.column_names)) == _bag(whole) - _bag(former)
    assert former.num_rows
    assert new_results.num_rows > former.num_rows / 4
    assert (None in new_results["a_key"].to_pylist()) == null_safe


@pytest.mark.parametrize(("bound", "most"), [("_CANDIDATES", 5), ("MATCHES", 5), ("WIDE", 100)])
def test_what_is_too_much_is_left_to_spark(monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    """Pairs to look at, pairs that meet, and their bytes are bounded."""
    rng = np.random.default_rng(5)
    before, arrived = ([_rows(name, 12, begin, rng) for name in "ab"] for begin in (0, SINCE))
    assert local_results(_join(2, null_safe=False), _inputs(before, arrived), Scan("t")) is not None
    monkeypatch.setattr(joins, bound, most)
    assert local_results(_join(2, null_safe=False), _inputs(before, arrived), Scan("t")) is None


def test_engines_that_may_compare_in_other_ways_are_not_mixed() -> None:
    """Spark joins floating point keys and keys of two types."""
    rng = np.random.default_rng(3)
    before, arrived = ([_rows(name, 6, begin, rng) for name in "ab"] for begin in (0, SINCE))

    def with_keys(kinds: Sequence[pa.DataType]) -> JoinInputs:
        def typed(rows: pa.Table, kind: pa.DataType) -> pa.Table:
            return rows.set_column(0, rows.column_names[0], pa.array(range(rows.num_rows), pa.int64()).cast(kind))

        return _inputs(*([typed(rows, kind) for rows, kind in zip(tables, kinds, strict=True)] for tables in (before, arrived)))

    join = _join(2, null_safe=False)
    assert local_results(join, with_keys([pa.int32(), pa.int32()]), join) is not None
    assert local_results(join, with_keys([pa.float64(), pa.float64()]), join) is None
    assert local_results(join, with_keys([pa.int32(), pa.int64()]), join) is None

"""The join order of a large step follows the rows of each key, where key summaries say how many there are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.catalog.declaration import ColumnRecord
from warehouse.limits import limited
from warehouse.storage.key_summaries import summary_path, write_summary
from warehouse.storage.snapshot import Bounds, DataFile
from warehouse.views.algebra import Equality, Filter, Join, Named, Project, Scan
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, equality_classes
from warehouse.views.maintenance import counted_keys as module
from warehouse.views.maintenance.counted_keys import counted_keys
from warehouse.views.maintenance.input_facts import Move
from warehouse.views.maintenance.inputs import NodeTable

if TYPE_CHECKING:
    from warehouse.storage.scan import TableFiles
    from warehouse.views.costs.join_order import KeyCounts

MOVE = Move(k0=5, k=6, before=0, now=0, anchor=0, interval=1, first=False)
CROWDED = ["x"] * 100
EVEN = [f"k{number:02d}" for number in range(50) for _ in range(2)]
JOIN = Join((Scan("a"), Scan("b"), Scan("c")), (Equality(0, "a_k", 1, "b_k"), Equality(1, "b_k", 2, "c_k")))


def file_of(path: Path, column: str, keys: list[str], loads: tuple[int, int]) -> DataFile:
    """Write a data file of sorted keys, with its summary, whose rows end after the window time."""
    pq.write_table(pa.table({column: sorted(keys)}), path)
    with limited(summary_share=50.0):
        write_summary(path, [column])
    bounds = {"_load_slot": Bounds(*loads), "_exp_slot": Bounds(9, 9)}
    return DataFile(str(path), path.stat().st_size, len(keys), 1, 1, bounds)


class Tables:
    """Three tables, each with a file of the last epoch, and one that this plan loaded."""

    def __init__(self, place: Path, before: dict[str, list[str]], came: dict[str, list[str]], **changed: Any) -> None:  # noqa: ANN401
        self.held = {name: file_of(place / f"{name}0.parquet", f"{name}_k", keys, (1, 5)) for name, keys in before.items()}
        self.new = {name: file_of(place / f"{name}1.parquet", f"{name}_k", keys, (6, 6)) for name, keys in came.items()}
        files = cast("TableFiles", SimpleNamespace(files=self.files))
        self.tables = {
            name: NodeTable(
                name, [ColumnRecord(f"{name}_k", "string")], self.not_opened, files, MOVE, base=0, version=1, loaded_until=5,
                **{"search_key": (f"{name}_k",), **changed},
            )
            for name in before
        }  # fmt: skip

    @staticmethod
    def not_opened() -> Any:  # noqa: ANN401
        """Open no session."""
        raise AssertionError("no session is opened")

    def files(self, path: str, version: int) -> list[DataFile]:
        """Return the files of a table at a version."""
        name = path.removeprefix("tables/")
        return [self.held[name]] if version == 0 else [self.held[name], self.new[name]]


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORTH", 3)


def asked(tables: Tables, join: Join = JOIN, rows: dict[str, pa.Table] | None = None) -> KeyCounts | None:
    """Return the counts of a join, of which the rows that arrived are in the driver or not."""
    came = [(3, None if rows is None else rows[name]) for name in "abc"]
    return counted_keys(join.inputs, equality_classes(join), tables.tables, came)


@pytest.mark.parametrize("driver", [False, True])
def test_counts_put_a_crowded_join_last(tmp_path: Path, *, driver: bool) -> None:
    """Two inputs share one frequent key. If values were even, all orders would cost the same; by counts their join comes last."""
    batch = {"a": ["x", "x"], "b": ["x", "x"], "c": EVEN}
    tables = Tables(tmp_path, {"a": CROWDED, "b": CROWDED, "c": EVEN}, batch)
    rows = {name: pa.table({f"{name}_k": pa.chunked_array([[*keys, None]], pa.string())}) for name, keys in batch.items()}
    counts = asked(tables, rows=rows if driver else None)
    assert counts is not None
    assert counts.windows["0"] == counts.windows["1"] == {"x": 100}
    assert counts.arrivals == {"0": {"x": 2}, "1": {"x": 2}, "2": dict.fromkeys(EVEN, 2)}
    statistics = [InputStatistics(2, {f"{name}_k": 1 if name < "c" else 50}, 100) for name in "abc"]
    order = chosen_order(JOIN, statistics, counts)
    costs = {
        numbers: counts.cost(tuple(SimpleNamespace(name=str(number)) for number in numbers))  # type: ignore[misc]
        for numbers in ((0, 1, 2), order)
    }
    assert costs[order] < costs[0, 1, 2]


def test_counts_that_are_not_known_leave_the_model(tmp_path: Path) -> None:
    """After a lost summary, with another column, with a condition or with few rows the order is that without summaries."""
    keys = {"a": EVEN, "b": EVEN, "c": EVEN}
    tables = Tables(tmp_path, keys, keys)
    assert asked(tables) is not None
    computed = Project(Scan("c"), (Named("c_k", "upper(`c_k`)"),))
    renamed = Project(Scan("c"), (Named("c_k", "`c_k`"),))
    for last, is_known in ((computed, False), (Filter(Scan("c"), "`c_k` > 'a'"), False), (renamed, True)):
        assert (asked(tables, Join((Scan("a"), Scan("b"), last), JOIN.equal)) is not None) is is_known
    assert asked(Tables(tmp_path, keys, keys, search_key=("v",))) is None
    assert counted_keys(JOIN.inputs, equality_classes(JOIN), tables.tables, [(0, None)] * 3) is None
    two = Join((Scan("a"), Scan("b")), JOIN.equal[:1])
    assert counted_keys(two.inputs, equality_classes(two), tables.tables, [(9, None)] * 2) is None
    summary_path(Path(tables.held["b"].path)).unlink()
    assert asked(tables) is None

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from warehouse.catalog.declaration import ColumnRecord, Declaration, declaration_of, stream_of, table_declaration
from warehouse.catalog.drift import Drift, compare, effective_layout
from warehouse.epochs import records
from warehouse.epochs.following import AnswersRecord
from warehouse.layout import Layout, LayoutError
from warehouse.time import DAY, HOUR

from .project import loaded

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog


@dataclass(frozen=True)
class Table:
    """The part of an epoch's record of a table that drift compares."""

    name: str
    declaration: Declaration
    layout: Layout
    answers: AnswersRecord | None = None

    @property
    def owner(self) -> str:
        """Its own name: streams have no operators' state."""
        return self.name


@dataclass(frozen=True)
class Epoch:
    """The part of an epoch's record of the warehouse that drift compares."""

    anchor: int
    update_interval: int
    tables: tuple[Table, ...]
    lazy: tuple[Table, ...] = ()


def recorded(catalog: Catalog) -> Epoch:
    """Return the epoch that a first update with this catalog makes."""
    interval = catalog.update_interval
    tables = (
        Table(stream.name, declaration_of(stream, catalog.root), effective_layout(stream, None, interval))
        for stream in catalog.streams
    )
    return Epoch(catalog.anchor, interval, tuple(tables))


def drift(directory: Path, changes: dict[str, Any], before: dict[str, Any] | None = None) -> Drift:
    """Return the drift of the tables after a change of the good file's keys."""
    epoch = recorded(loaded(directory, before))
    return compare(loaded(directory, {**(before or {}), **changes}), epoch)


STREAM = "streams.flights"
LAYOUT = f"{STREAM}.layout"


def test_nothing_changed(tmp_path: Path) -> None:
    """The same file fits."""
    assert drift(tmp_path, {}) == Drift()


@pytest.mark.parametrize(
    ("changes", "key", "found", "allowed"),
    [
        ({"warehouse.update_interval": "30m"}, "warehouse.update_interval", '"30m"', '"1h"'),
        ({"warehouse.anchor": "2013-01-02"}, "warehouse.anchor", '"2013-01-02T00:00:00Z"', '"2013-01-01T00:00:00Z"'),
        ({f"{STREAM}.search_key": ["tailnum", "ttl"]}, f"{STREAM}.search_key", '["tailnum", "ttl"]', '["tailnum"]'),
        ({f"{STREAM}.columns.ttl": "bigint"}, f"{STREAM}.columns.ttl", '"bigint"', '"int"'),
        ({f"{STREAM}.columns.ttl": None}, f"{STREAM}.columns.ttl", "nothing", '"int"'),
        ({f"{LAYOUT}.grid": [6, 4]}, f"{LAYOUT}.grid", "[6, 4]", "[5, 4]"),
        ({f"{LAYOUT}.expiry_block": 8, f"{LAYOUT}.grid": [5, 4]}, f"{LAYOUT}.expiry_block", "8", "6"),
        ({f"{LAYOUT}.insertion": "permuted"}, f"{LAYOUT}.insertion", '"permuted"', '"staggered"'),
        ({f"{LAYOUT}.expiration": "round-robin"}, f"{LAYOUT}.expiration", '"round-robin"', '"blocks"'),
        ({f"{LAYOUT}.seed": 1}, f"{LAYOUT}.seed", "1", "0"),
        ({f"{LAYOUT}.technique": "rebuild"}, f"{LAYOUT}.technique", '"rebuild"', '"norebuild"'),
    ],
)
def test_what_tables_depend_on(tmp_path: Path, changes: dict[str, Any], key: str, found: str, allowed: str) -> None:
    """A difference that the tables cannot follow is a problem that names both values and the remedy."""
    (problem,) = drift(tmp_path, changes).problems
    assert (problem.file, problem.key, problem.found) == ("warehouse.toml", key, found)
    assert problem.allowed.startswith(allowed + ": the tables on disk were built with it; restore it")


def test_all_differences_at_once(tmp_path: Path) -> None:
    """Differences of every table are reported together."""
    changes = {"warehouse.update_interval": "2h", f"{STREAM}.search_key": "ttl", f"{LAYOUT}.grid": [2, 2]}
    assert len(drift(tmp_path, changes).problems) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"warehouse.retain": "1d"},
        {"warehouse.vacuum": "manual"},
        {"spark": {}},
        {f"{STREAM}.landing": "elsewhere"},
        {f"{STREAM}.files": "*.csv"},
        {f"{STREAM}.options": {"delimiter": ";"}},
        {f"{STREAM}.timezone": "Europe/Berlin"},
        {f"{STREAM}.over_lifetime": "reject"},
        {f"{STREAM}.max_lifetime": "2d"},
        {f"{STREAM}.max_lifetime": "1h"},
        {f"{STREAM}.max_ahead": "1h"},
        {f"{STREAM}.unknown_columns": "ignore"},
        {f"{STREAM}.landing_settle": "5s"},
        {f"{LAYOUT}.seal": False},
        {f"{LAYOUT}.grid": [5, 4], f"{LAYOUT}.technique": "norebuild"},
    ],
)
def test_what_changes_freely(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A change of keys for reading files, or to the recorded value, gives no notice."""
    assert drift(tmp_path, changes) == Drift()


def test_the_order_of_columns_is_free(tmp_path: Path) -> None:
    """Columns are matched by name, so their order in the file means nothing."""
    catalog = loaded(tmp_path)
    epoch = recorded(catalog)
    stream = catalog.streams[0]
    turned = replace(stream, columns=stream.columns[::-1])
    assert compare(replace(catalog, streams=(turned,)), epoch) == Drift()


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("arrival", "coalesce(departed_at, landed_at)", '"departed_at"', '"coalesce(departed_at, landed_at)"'),
        ("expires", "ts + INTERVAL 1 DAY", '"landed_at"', '"ts + INTERVAL 1 DAY"'),
        ("expires", None, '"landed_at"', "nothing"),
        ("null_expiry", "never", '"reject"', '"never"'),
    ],
)
def test_what_changes_for_new_rows(tmp_path: Path, key: str, value: str | None, old: str, new: str) -> None:
    """New expressions judge the rows to come; the notice names both; the layout stays although the label changes."""
    changes = drift(tmp_path, {f"{STREAM}.{key}": value})
    assert changes.problems == ()
    assert changes.notices == (f"streams.flights.{key} changed from {old} to {new}, for rows loaded from now on",)


def test_an_added_column_is_for_new_rows(tmp_path: Path) -> None:
    """Rows that are there have null in it."""
    changes = drift(tmp_path, {f"{STREAM}.columns.more": "int"})
    assert changes.notices == ("streams.flights.columns.more is added; rows loaded before have null",)
    assert changes.problems == ()


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({"warehouse.update_interval": "30m"}, "`stream-wh migrate --rebuild`"),
        ({f"{LAYOUT}.grid": [6, 4]}, "`stream-wh migrate flights` (--rebuild or --side-by-side)"),
        ({f"{STREAM}.columns.ttl": "bigint"}, "`stream-wh migrate flights --rebuild`"),
        ({f"{STREAM}.columns.ttl": "string"}, "`stream-wh restate flights --since first`"),
        ({f"{STREAM}.columns.ttl": None}, "`stream-wh migrate flights --rename ttl=NEW`"),
    ],
)
def test_the_error_prints_the_command_to_run(tmp_path: Path, changes: dict[str, Any], command: str) -> None:
    """What tables cannot follow by themselves a command makes them follow."""
    (problem,) = drift(tmp_path, changes).problems
    assert command in problem.allowed


def test_a_table_no_longer_declared(tmp_path: Path) -> None:
    """A table without a declaration is kept, and the warning names the command that forgets it."""
    catalog = loaded(tmp_path)
    changes = compare(replace(catalog, streams=()), recorded(catalog))
    assert changes == Drift(
        warnings=('table "flights" is no longer declared: kept, frozen; `stream-wh drop flights` forgets it',),
    )


def test_a_stream_declared_later(tmp_path: Path) -> None:
    """A stream without a table is no difference."""
    catalog = loaded(tmp_path)
    assert compare(catalog, replace(recorded(catalog), tables=())) == Drift()


def test_new_tables_take_the_declared_layout(tmp_path: Path) -> None:
    """Without a record the declaration decides, completed by the defaults."""
    stream = loaded(tmp_path, {f"{LAYOUT}.grid": [3, 2]}).streams[0]
    layout = effective_layout(stream, None, HOUR)
    assert (layout.rows, layout.columns, layout.periods, layout.expiry_block) == (3, 2, 24, 12)


def test_left_out_keys_keep_their_values(tmp_path: Path) -> None:
    """A recorded layout stands when the file leaves its keys out, whatever today's defaults are."""
    catalog = loaded(tmp_path, {LAYOUT: {"technique": "rebuild", "grid": [2, 3]}})
    layout = effective_layout(catalog.streams[0], None, HOUR)
    plain = loaded(tmp_path).streams[0]
    assert effective_layout(plain, layout, HOUR) == layout
    assert compare(loaded(tmp_path), recorded(catalog)).problems == ()


def test_p_is_frozen(tmp_path: Path) -> None:
    """Another max_lifetime judges rows to come; p stays."""
    layout = effective_layout(loaded(tmp_path).streams[0], None, HOUR)
    longer = loaded(tmp_path, {f"{STREAM}.max_lifetime": "3d"}).streams[0]
    assert longer.max_lifetime == 3 * DAY
    assert effective_layout(longer, layout, HOUR).periods == 24


def test_sealing_can_be_switched(tmp_path: Path) -> None:
    """`seal` changes freely; left out, it keeps its value."""
    stream = loaded(tmp_path).streams[0]
    layout = effective_layout(stream, None, HOUR)
    off = effective_layout(loaded(tmp_path, {f"{LAYOUT}.seal": False}).streams[0], layout, HOUR)
    assert (layout.seal, off.seal) == (True, False)
    assert effective_layout(stream, off, HOUR) == off


def test_sealing_what_cannot_be_sealed(tmp_path: Path) -> None:
    """`seal = true` for a table whose recorded axes cannot be sealed is a problem."""
    changes = drift(tmp_path, {LAYOUT: {"seal": True}}, {LAYOUT: {"insertion": "permuted"}})
    assert [problem.key for problem in changes.problems] == [f"{LAYOUT}.seal"]
    catalog = loaded(tmp_path, {LAYOUT: {"insertion": "permuted"}})
    layout = effective_layout(catalog.streams[0], None, HOUR)
    with pytest.raises(LayoutError):
        effective_layout(loaded(tmp_path, {LAYOUT: {"seal": True}}).streams[0], layout, HOUR)


def test_a_declaration_there_and_back(tmp_path: Path) -> None:
    """A recorded declaration gives back its stream under the same root, and moves with a copied root."""
    catalog = loaded(tmp_path, {f"{STREAM}.options": {"delimiter": ";"}})
    stream = catalog.streams[0]
    declaration = declaration_of(stream, catalog.root)
    assert declaration.landing == "../landing/flights"
    assert stream_of(declaration, "flights", catalog.root, stream.layout) == stream
    assert stream_of(declaration, "flights", tmp_path / "copy" / "data").landing == tmp_path / "copy" / "landing" / "flights"


def test_records_hold_declarations(tmp_path: Path) -> None:
    """Epoch records name the same type, and it survives being written."""
    assert records.Declaration is Declaration
    catalog = loaded(tmp_path)
    declaration = declaration_of(catalog.streams[0], catalog.root)
    assert msgspec.json.decode(msgspec.json.encode(declaration), type=Declaration) == declaration


BUSY: dict[str, Any] = {
    "aggregates.busy": {
        "from": "flights",
        "group_by": ["hour(landed_at) AS h"],
        "select": {"n": "count(*)", "total": "sum(weight)", "high": "percentile(weight, 0.9)"},
        "windows": ["1h"],
        "keep": "1d",
    },
}


def of_answers(directory: Path, **changes: Any) -> list[str]:  # noqa: ANN401 - keys of a declaration
    """Return the keys of an aggregate whose change tables cannot follow."""
    catalog = loaded(directory, BUSY)
    (aggregate,) = catalog.aggregates
    epoch = recorded(catalog)
    columns = tuple(ColumnRecord(name, kind) for name, kind in aggregate.definition.columns)
    declaration = table_declaration(columns, aggregate.search_key, label="WKS", max_lifetime=DAY)
    answers = Table("busy", declaration, epoch.tables[0].layout, AnswersRecord(aggregate.definition, 0))
    streams = {key: changes.pop(key) for key in list(changes) if "." in key}
    new = {**BUSY, **streams, "aggregates.busy": {**BUSY["aggregates.busy"], **changes}}
    drift_of_table = compare(loaded(directory, new), replace(epoch, tables=(*epoch.tables, answers)))
    return [problem.key for problem in drift_of_table.problems if problem.key.startswith("aggregates.")]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"select": {"n": "count(*)", "total": "avg(weight)", "high": "percentile(weight, 0.9)"}}, "select"),
        ({"select": {"n": "count(ttl)", "total": "sum(weight)", "high": "percentile(weight, 0.9)"}}, "select"),
        ({"select": {"n": "count(*)", "total": "sum(weight)", "high": "percentile(weight, 0.5)"}}, "select"),
        ({"group_by": ["minute(landed_at) AS h"]}, "group_by"),
        ({"over": "live"}, "over"),
    ],
)
def test_answers_of_another_meaning_are_another_table(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    """Also where their columns have the same names and types: old and new answers would stand side by side."""
    assert of_answers(tmp_path, **changes) == [f"aggregates.busy.{key}"]


@pytest.mark.parametrize(
    "changes",
    [
        {"select": dict(reversed(BUSY["aggregates.busy"]["select"].items())), "group_by": ["hour(landed_at)  AS  h"]},
        {"where": "ttl > 3", "windows": ["1h", "2h"], "every": "2h", "keep": "2d"},
        {"streams.flights.columns.weight": None, "streams.flights.columns.load": "double",
         "select": {"n": "count(*)", "total": "sum(load)", "high": "percentile(load, 0.9)"}},
    ],
)  # fmt: skip
def test_answers_of_the_same_meaning_stay(tmp_path: Path, changes: dict[str, Any]) -> None:
    """In another order, after a column got another name, and with keys that change freely."""
    assert of_answers(tmp_path, **changes) == []

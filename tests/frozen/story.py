"""The history of the frozen warehouses, and their future: the updates that each build which opens them does next.

Times are hours since the anchor of :mod:`tests.operations.projects`; landing files have times of whole seconds, which an archive
of files keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.operations.projects import LATER, Project, StoppedError, at, csv, land_file, row, stop_at, stream
from warehouse.epochs.points import Point
from warehouse.operations.migrate import MigrationRequest
from warehouse.project import Warehouse
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["FROZEN", "FUTURE", "STORED", "answers", "land_future", "land_hour"]

FUTURE = 3
"""How many updates are still to come: the landing files of their hours are not in the archive."""
RELATION: dict[str, object] = {
    "landing": "landing/r",
    "format": "csv",
    "search_key": "k",
    "changed_at": "c",
    "op": "o",
    "columns": {"k": "string", "c": "timestamp", "o": "string", "name": "string"},
}
FEW: dict[str, dict[str, object]] = {
    "pairs": {"sql": "SELECT a.k, a.e, b.e AS be FROM a JOIN b ON a.k = b.k", "search_key": "k"},
    "counts": {"sql": "SELECT k, count(*) AS n, max(e) AS last FROM a GROUP BY k", "search_key": "k"},
}
VIEWS: dict[str, dict[str, object]] = {
    **FEW,
    "once": {"sql": "SELECT DISTINCT k FROM a", "search_key": "k", "short_lived": "report"},
    "lonely": {"sql": "SELECT k, e FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "search_key": "k"},
    "left_join": {"sql": "SELECT a.k, a.e, b.e AS be FROM a LEFT JOIN b ON a.k = b.k", "search_key": "k"},
    "named": {"sql": "SELECT a.k, r.name, a.e FROM a JOIN r ON a.k = r.k", "search_key": "k"},
    "either": {"sql": "SELECT k, e FROM a UNION ALL SELECT k, e FROM b", "search_key": "k"},
    "top": {"sql": "SELECT k, e FROM a ORDER BY e DESC, k LIMIT 3", "search_key": "k"},
    "latest": {"sql": "SELECT k, b FROM row_window(b, 3)", "search_key": "k"},
}

FIELDS: dict[str, dict[str, object]] = {
    "packed": {"sql": "SELECT k, named_struct('e', e, 'k', k) AS st, array(1, 2) AS ar FROM a", "search_key": "k"},
    "fields": {"sql": "SELECT k, st.e AS e FROM packed WHERE st.k <> 'y1'", "search_key": "k"},
    "mapped": {"sql": "SELECT k, transform(ar, x -> x + 1) AS v FROM packed", "search_key": "k"},
    "counted": {"sql": "SELECT st.k AS k, count(*) AS n FROM packed GROUP BY st.k", "search_key": "k"},
    "kept": {"sql": "SELECT k, to_json(struct(k, st.e)) AS v FROM packed", "search_key": "k"},
}
"""Whose nodes this build writes in other words: fields of structures, variables, fields without names."""


def land_hour(project: Path, hour: int, streams: tuple[str, ...] = ("a", "b", "r")) -> None:
    """Land the files of an hour: short-lived and long-lived rows, early, late and waiting rows, and a line that is no row."""
    begin = hour - 1
    lives = (("x", 0.3), ("y", 1.5), ("z", 3.9))
    lines = {
        "a": csv(
            *(row(f"{key}{hour % 3}", begin + 0.5, begin + 0.5 + life) for key, life in lives),
            row("late", max(begin - 1.5, 0), begin + 2.4),
            row("early", begin + 2.5, begin + 4),
            "bad,,",
        ),
        "b": csv(
            *(row(f"{key}{hour % 2}", begin + 0.25, begin + 0.25 + life) for key, life in lives),
            row("own", begin + 0.1, begin + 2.1),
        ),
        "r": "k,c,o,name\n"
        + "".join(
            f"{key}{hour % 3},{row('', begin + 0.1, '').split(',')[1]},{op},{key}-{hour}\n"
            for key, op in (("x", "upsert"), ("y", "upsert"), ("z", "delete" if hour % 4 == 0 else "upsert"))
        ),
    }
    for name in streams:
        land_file(project / "landing" / name / f"{hour:02d}.csv", lines[name], at(hour))


def land_future(project: Path, hour: int) -> None:
    """Land the files of an hour in all directories that a project has."""
    land_hour(project, hour, tuple(sorted(directory.name for directory in (project / "landing").iterdir())))


def _streams(**changes: object) -> dict[str, dict[str, object]]:
    return {"a": stream(on_expiry="archive", **changes), "b": stream(landing="landing/b", **changes)}


def _updates(project: Project, first: int, last: int) -> None:
    for hour in range(first, last + 1):
        land_future(project.directory, hour)
        project.update(hour)
        project.clock += HOUR


def norebuild(project: Project) -> None:
    """Twelve updates: logs have checkpoints."""
    _updates(project, 1, 12)


def rebuild(project: Project) -> None:
    """A few updates of tables whose touched sub-indices are rewritten."""
    _updates(project, 1, 4)


def unfinished(project: Project) -> None:
    """The last update was stopped after it had moved its first table."""
    _updates(project, 1, 3)
    land_future(project.directory, 4)
    try:
        project.update(4, observer=stop_at(Point.STEP_COMMITTED, 1))
    except StoppedError:
        return
    raise AssertionError("it was not stopped")


def past(project: Project) -> None:
    """All verbs: erased keys, a ledger, a retired epoch, an added column, a restatement, a rollback, a layout that ages."""
    _updates(project, 1, 4)
    project.updater().erase("a", ["y1"])
    project.clock += 3 * HOUR
    project.updater().vacuum()
    _updates(project, 5, 6)
    project.land("added.csv", csv(row("more", 5.5, 9) + ",7", header="k,b,e,n"), landing="landing/b", mtime=at(6))
    _updates(project, 7, 8)
    project.updater().restate("b", since=at(7))
    project.updater().rollback(project.numbers[-3])
    project.updater().migrate("a", MigrationRequest(layout=_grid(), side_by_side=True))
    project.updater().reload(str(project.directory / "landing" / "a" / "07.csv"))


def _grid() -> Any:  # noqa: ANN401 - a layout's keys
    from warehouse.catalog.model import LayoutSpec  # noqa: PLC0415 - one use

    return LayoutSpec(grid=(2, 2))


FROZEN: dict[str, tuple[dict[str, dict[str, dict[str, object]]], dict[str, object], Callable[[Project], None]]] = {
    "norebuild": ({"streams": _streams(), "views": VIEWS, "relations": {"r": RELATION}}, {}, norebuild),
    "rebuild": (
        {"streams": _streams(layout={"technique": "rebuild"}), "views": FEW, "relations": {"r": RELATION}},
        {},
        rebuild,
    ),
    "wave": (
        {
            "streams": {
                "a": stream(layout={"technique": "rebuild", "grid": [4, 1]}),
                "b": stream(landing="landing/b", layout={"technique": "norebuild", "grid": [1, 4]}),
            },
            "views": FEW,
        },
        {},
        rebuild,
    ),
    "unfinished": ({"streams": _streams(), "views": FEW}, {}, unfinished),
    "words": ({"streams": {"a": _streams()["a"]}, "views": FIELDS}, {}, rebuild),
    "past": (
        {"streams": {"a": _streams()["a"], "b": stream(landing="landing/b", unknown_columns="add")}, "views": FEW},
        {"retain": "2h"},
        past,
    ),
}
"""Per warehouse its declarations, keys of ``[warehouse]``, and what it has been through."""
STORED = ({"streams": _streams(), "views": FEW}, {"retain": "2h"}, rebuild)
"""The warehouse whose root is in an object store."""


def declared(name: str, directory: Path, spark: SparkSession) -> Project:
    """Return a project with the declarations of a warehouse; nothing is loaded yet."""
    parts, keys, _ = FROZEN[name]
    return Project(directory, spark, warehouse=dict(keys), clock=LATER, **_copied(parts))


def _copied(parts: dict[str, dict[str, dict[str, object]]]) -> dict[str, Any]:
    return {"streams": {}, "views": {}, "relations": {}, **{name: dict(tables) for name, tables in parts.items()}}


def _shown(directory: Path, as_of: int | None) -> Iterator[tuple[str, list[str]]]:
    with Warehouse.open(directory) as house:
        names = house.sql("SHOW TABLES").arrow().column(0).to_pylist()
        for table in sorted(name for name in names if not name.startswith("_")):
            rows = house.scan(table, system_columns=True, as_of=as_of).arrow().to_pylist()
            yield table, sorted(_line(record) for record in rows)


def _line(record: dict[str, Any]) -> str:
    left_out = {"sub_index", "exp_block", "_load_slot", "_exp_slot"}
    return "|".join(f"{name}={record[name]}" for name in sorted(record) if name not in left_out)


def answers(directory: Path, as_of: int | None = None) -> dict[str, list[str]]:
    """Return the rows that readers see of every table: user columns, begin and end, in order."""
    return dict(_shown(directory, as_of))

"""Coalesced tables with ``how = "auto"``: the first build decides by the stored points, a migration decides again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.advice.coalescing import advise_coalesced, switch_signs
from warehouse.cli.coalesced_explanation import coalesced_report
from warehouse.errors import UsageError
from warehouse.operations.migrate import MigrationRequest
from warehouse.serving import Reader
from warehouse.serving.coalesced_explanation import explained_coalesced

from .projects import Project, csv, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def land(project: Project, hour: int, *, restless: bool) -> None:
    """Land sixty points of an hour: ``v`` never changes; ``w`` changes with each point, or never."""
    lines = (f"p,1,{minute if restless else 7},{text(hour - 1 + minute / 60)}" for minute in range(1, 61))
    project.land(f"{hour}.csv", csv(*lines, header="k,v,w,b"))


def test_it_is_decided_and_decided_again(tmp_path: Path, spark: SparkSession) -> None:
    """A table that never coalesces is lazy, one that does is stored; both stay so until a migration finds a cheaper way."""
    columns = {"k": "string", "v": "int", "w": "int", "b": "timestamp"}
    lives = {"columns": columns, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h"}
    project = Project(tmp_path, spark, {"a": stream(**lives)})
    land(project, 1, restless=True)
    project.update(1)
    base = {"from": "a", "group_by": "k", "window": "2h"}
    project.coalesced = {
        "steady": {**base, "values": ["v"]},
        "restless": {**base, "values": ["w"]},
        "shed": {**base, "values": ["w"], "budget": {"rows": 90}},
        "read": {**base, "values": ["w"]},
    }
    project.views = {"top": {"sql": "SELECT k, w, members, 'restless' AS note FROM read WHERE members > 1", "search_key": "k"}}
    project.declare()
    project.update(1)
    assert [(choice.table, choice.how) for choice in project.epoch.choices] == [("steady", "eager"), ("restless", "lazy")]
    assert [table.name for table in project.epoch.lazy] == ["restless"]
    assert {"steady", "shed", "read"} <= {state.name for state in project.epoch.tables}
    catalog = project.updater().catalog
    with Reader.open(project.root) as reader:
        explanation = explained_coalesced(catalog, "restless", reader)
        assert explanation is not None
        assert any(
            line.startswith("  auto: lazy, of 60 points of which 0% go on") for line in coalesced_report(explanation).lines
        )
        assert advise_coalesced(reader, catalog, "restless").better is None
        assert switch_signs(reader, catalog) == ()
        with pytest.raises(UsageError, match='"read" is stored in any case'):
            advise_coalesced(reader, catalog, "read")
    assert project.updater().migrate("restless", MigrationRequest()).epoch is None
    for hour in (2, 3, 4):
        land(project, hour, restless=False)
    project.update(4)
    assert [table.name for table in project.epoch.lazy] == ["restless"]
    with Reader.open(project.root) as reader:
        before = reader.scan("restless").arrow().to_pylist()
        signs = dict(switch_signs(reader, project.updater().catalog))
        assert signs == {"restless": "would cost less if it were stored: `stream-wh migrate restless`"}
    assert project.updater().migrate("restless", MigrationRequest()).switched == (("restless", "eager"),)
    assert project.epoch.lazy == ()
    land(project, 5, restless=False)
    project.update(5)
    assert project.epoch.lazy == ()
    with Reader.open(project.root) as reader:
        assert before
        assert reader.scan("restless").arrow().num_rows == 1

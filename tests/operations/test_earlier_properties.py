"""Tables that an earlier build made get the Delta properties of this build with the next update."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.checking.check import check
from warehouse.epochs.journal import epoch_path, write_record
from warehouse.storage.entries import entry_path
from warehouse.storage.tables import PROPERTIES

from .projects import Project, csv, row, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STATISTICS = "delta.dataSkippingStatsColumns"


def aged(project: Project, table: str) -> None:
    """Make a project's newest epoch and a table's commit 0 as an earlier build made them: the boolean key is named."""
    path = entry_path(project.root / "tables" / table, 0)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            configuration = action["metaData"]["configuration"]
            configuration[STATISTICS] = "`open`," + configuration[STATISTICS]
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    epoch = project.epoch
    epoch_path(project.root, epoch.number).unlink()
    write_record(
        epoch_path(project.root, epoch.number),
        replace(epoch, tables=tuple(replace(state, properties=0) for state in epoch.tables)),
    )


def test_the_next_update_sets_them_and_other_engines_can_alter_the_table(tmp_path: Path, spark: SparkSession) -> None:
    """A table whose boolean key had statistics: check says that the next update mends it; then Delta clones and alters it."""
    columns = {"open": "boolean", "k": "string", "b": "timestamp", "e": "timestamp"}
    project = Project(tmp_path / "project", spark, {"a": stream(search_key=["open", "k"], columns=columns)})
    header = "open,k,b,e"
    project.land("1.csv", csv(*(f"{value},{row('x', 0.5, 3.5)}" for value in ("true", "false", "")), header=header))
    project.update(1)
    aged(project, "a")
    (finding,) = check(project.root).findings
    assert (finding.severity, finding.code, finding.repair) == ("note", "properties", "update")
    project.land("2.csv", csv(f"true,{row('y', 1.5, 3.5)}", header=header))
    project.update(2)
    assert check(project.root).findings == ()
    state = project.epoch.table("a")
    assert state is not None
    assert state.properties == PROPERTIES
    project.update(3)
    assert len(project.live()) == 4
    table, clone = f"delta.`{project.root}/tables/a`", f"delta.`{tmp_path}/clone`"
    shown = dict(spark.sql(f"SHOW TBLPROPERTIES {table}").collect())
    assert shown[STATISTICS] == "`k`,`_ts`,`_exp`,`_load_slot`,`_exp_slot`"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table}")
    spark.sql(f"ALTER TABLE {clone} SET TBLPROPERTIES ('a' = 'b')")
    assert spark.table(clone).where("open").count() == 2

"""Secrets of `[spark]` reach Spark and nothing else: no plan, epoch, log or output, and nobody's list of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.operations.projects import Project, csv, row

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "canary-one",
    "spark.hadoop.fs.s3a.access.key": "canary-two",
    "spark.ssl.keyPassword": "canary-three",
    "spark.my.oauth.token": "canary-four",
}
SCRIPT = """
import json, sys
from pathlib import Path
from warehouse.catalog.load import load_catalog
from warehouse.project import Warehouse
from warehouse.storage.session import spark_session
project = Path(sys.argv[1])
session = spark_session(load_catalog(project).spark, small=True)
Warehouse.open(project).update("2024-01-01T01:00:00Z", spark=session)
lines = {path.parent.name: path.read_bytes().decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")}
conf = session.sparkContext.getConf()
print(json.dumps({"java": [text for text in lines.values() if "spark" in text and str(project) not in text],
                  "arrived": {key: conf.get(key) for key in json.loads(sys.argv[2])}}))
"""


def _texts(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in directory.rglob("*"):
        if path.is_file() and path.name != "warehouse.toml":
            yield str(path), path.read_bytes()


def test_secrets_stay_with_spark(tmp_path: Path) -> None:
    """After an update no secret is in a file of the project, in the output, or on a command line."""
    project = Project(tmp_path / "project", None)
    file = project.directory / "warehouse.toml"
    settings = "\n".join(f'"{key}" = "{value}"' for key, value in SECRETS.items())
    file.write_text(f'{file.read_text()}[spark]\n{settings}\n"spark.master" = "local[2]"\n')
    project.land("a.csv", csv(row("a", 0.5, 4), "short"))
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(project.directory), json.dumps(list(SECRETS))],
        cwd=ROOT,
        env={**os.environ, "STREAM_WH_CLASS_ARCHIVE": "read", "STREAM_WH_DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    assert record["arrived"] == SECRETS
    assert any("java" in text.split("\0")[0] for text in record["java"])
    assert "canary" not in "".join(record["java"])
    assert "canary" not in run.stderr
    assert [path for path, content in _texts(project.directory) if b"canary" in content] == []
    assert project.epoch.slot == 1

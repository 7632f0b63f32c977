"""Makes the frozen warehouses with the build that is checked out: ``python -m tests.frozen.make``.

They are made once for a build and then never changed: later builds must continue with the files of this build. To add the
warehouses of another build, check it out, copy this package into it, and run it there; the archives are named by the commit.
Existing archives are not changed. A second run, with ``STREAM_WH_S3_SERVER`` (README), makes the warehouse in a store.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import SMALL_AND_SHORT
from tests.frozen.story import FROZEN, FUTURE, STORED, answers, declared, land_future
from tests.objects.server import SERVER, StoreProject, made_bucket, running_server
from tests.operations.projects import Project, at
from warehouse.objects.path import ObjectPath
from warehouse.storage.session import spark_session
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
_LEFT_OUT = (".lock", "derby.log")


def commit() -> str:
    """Return the short name of the commit that is checked out."""
    result = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE)
    return result.stdout.strip()


def main() -> None:
    """Make all frozen warehouses that do not exist."""
    target = HERE / commit()
    target.mkdir(exist_ok=True)
    missing = [name for name in FROZEN if not (target / f"{name}.json").exists()]
    with tempfile.TemporaryDirectory() as directory:
        if missing:
            spark = spark_session(SMALL_AND_SHORT)
            for name in missing:
                freeze(name, target, Path(directory) / name, spark)
        elif SERVER and not (target / "store.json").exists():  # in a process of its own: a JVM has one list of jars
            freeze_store(target, Path(directory))


def freeze(name: str, target: Path, work: Path, spark: SparkSession) -> None:
    """Make a warehouse, and write down its answers now and its answers after the files to come are loaded."""
    project = declared(name, work / "project", spark)
    FROZEN[name][2](project)
    pack(project.directory, target / f"{name}.tar.xz")
    after = Path(shutil.copytree(project.directory, work / "after"))
    parts = (dict(keys) for keys in (project.streams, project.views, project.relations))
    streams, views, relations = parts
    twin = Project(after, spark, streams, dict(project.warehouse), project.clock, views, relations)
    write(target / f"{name}.json", project, twin)


def write(path: Path, project: Project, twin: Project) -> None:
    """Write down the expected answers of a warehouse; its twin is updated on."""
    epochs = {str(number): number for number in project.numbers}
    last, hours = project.epoch, round((project.epoch.window_time - at(0)) / HOUR)
    now = answers(project.directory)
    earlier = {}
    for number in project.numbers:
        from warehouse.epochs.journal import read_epoch  # noqa: PLC0415 - one use

        epoch = read_epoch(project.root, number)
        if number == max(n for n in project.numbers if read_epoch(project.root, n).window_time == epoch.window_time):
            earlier[str(epoch.window_time)] = answers(project.directory, epoch.window_time)
    after = []
    for hour in range(hours + 1, hours + FUTURE + 1):
        land_future(twin.directory, hour)
        twin.update(hour)
        after.append(answers(twin.directory))
    expected = {
        "clock": project.clock,
        "epochs": sorted(epochs.values()),
        "newest": last.number,
        "hour": hours,
        "now": now,
        "as_of": earlier,
        "after": after,
    }
    path.write_text(json.dumps(expected, indent=1) + "\n")


def pack(directory: Path, archive: Path) -> None:
    """Pack a directory, without locks."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(directory.rglob("*")):
            if not path.name.endswith(_LEFT_OUT):
                packed.add(path, path.relative_to(directory).as_posix(), recursive=False, filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def freeze_store(target: Path, work: Path) -> None:
    """Make the warehouse in a store: its objects are packed under ``objects/``, the project beside them."""
    import os  # noqa: PLC0415 - one use

    with running_server(work) as environment:
        os.environ.update(environment, STREAM_WH_CACHE=str(work / "cache"))
        root = made_bucket("frozen") / "house"
        spark = spark_session(SMALL_AND_SHORT, root=ObjectPath("s3://any"))
        parts, keys, live = STORED
        project = StoreProject(
            work / "project", spark, dict(parts["streams"]), dict(keys), views=dict(parts["views"]), place=root
        )
        live(project)
        with tarfile.open(target / "store.tar.xz", "w:xz", preset=9) as packed:
            for path in sorted(project.directory.rglob("*")):
                packed.add(path, path.relative_to(project.directory).as_posix(), recursive=False, filter=_anonymous)
            for file in sorted(root.rglob("*"), key=str):
                if file.is_file():
                    content = file.read_bytes()
                    entry = tarfile.TarInfo(f"objects/{file.relative_to(root).as_posix()}")
                    entry.size = len(content)
                    packed.addfile(entry, io.BytesIO(content))
        write(target / "store.json", project, project)
        spark.stop()


if __name__ == "__main__":
    main()

"""Executors: ``python -m benchmarks.cluster --rows 4000000 --executors 1,2`` measures what a second executor brings.

For each number of executors a standalone cluster is started with workers of one core each (:mod:`benchmarks.standalone`), and a
driver process of its own makes the same warehouse below their shared directory: the first build, then updates. Two cores carry
driver, master and two executors, so the figures tell what the work's division costs, not what two machines would do.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.event_log import event_log_settings, tasks
from benchmarks.machine import load, machine, versions
from benchmarks.project import Project
from benchmarks.settings import Settings
from benchmarks.standalone import StandaloneCluster
from warehouse.storage.session import spark_session

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results"
_MINUTES = 60


@click.command(epilog="Example: python -m benchmarks.cluster --rows 4000000 --executors 1,2")
@click.option("--rows", default=4_000_000, type=click.IntRange(1000), show_default=True, help="Live rows.")
@click.option("--batch", default=400_000, type=click.IntRange(100), show_default=True, help="Rows of each update.")
@click.option("--updates", default=4, type=click.IntRange(1), show_default=True, help="Measured updates, after one that is not.")
@click.option("--files", default=8, type=click.IntRange(1), show_default=True, help="Landing files of each update.")
@click.option("--executors", default="1,2", show_default=True, help="Numbers of executors of one core each, in order.")
@click.option("--memory", default="2g", show_default=True, help="Heap of an executor.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON goes.")
@click.option("--driver", nargs=3, hidden=True, help="The driver of one measurement: master, executors, directory.")
def main(
    *, rows: int, batch: int, updates: int, files: int, executors: str, memory: str, results: Path, driver: tuple[str, str, str]
) -> None:
    """Measure the first build and updates on a standalone cluster with 1, 2, ... executors."""
    settings = Settings(rows=rows, batch=batch, updates=updates, warm_up=1, files=files, driver_memory="2g")
    if driver:
        click.echo(json.dumps(_driven(settings, driver[0], int(driver[1]), memory, Path(driver[2]))))
        return
    started, before = datetime.now(UTC), load()
    options = [f"--{name}={value}" for name, value in
               {"rows": rows, "batch": batch, "updates": updates, "files": files, "memory": memory}.items()]  # fmt: skip
    results_by_size = [_measured(int(number), memory, options) for number in executors.split(",")]
    facts = {
        "started": started.isoformat(timespec="seconds"),
        "machine": machine(),
        "load_before": before,
        "load_after": load(),
        "versions": versions(),
        "settings": asdict(settings),
        "executor_memory": memory,
        "measured": results_by_size,
    }
    results.mkdir(parents=True, exist_ok=True)
    (results / f"cluster-{started:%Y%m%dT%H%M%SZ}.json").write_text(json.dumps(facts, indent=1) + "\n")
    click.echo(_table(results_by_size), nl=False)


def _measured(executors: int, memory: str, options: list[str]) -> dict[str, Any]:
    """Start a cluster and a driver, and return the driver's result."""
    with tempfile.TemporaryDirectory(prefix="stream-wh-cluster-", ignore_cleanup_errors=True) as scratch:
        shared = Path(scratch) / "shared"
        shared.mkdir()
        with StandaloneCluster(Path(scratch) / "cluster", [shared], workers=executors, memory=memory) as cluster:
            command = [sys.executable, "-m", "benchmarks.cluster", *options, "--driver", cluster.url, str(executors), scratch]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=30 * _MINUTES)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _driven(settings: Settings, master: str, executors: int, memory: str, scratch: Path) -> dict[str, Any]:
    events = scratch / "events"
    events.mkdir()
    spark_settings = {"spark.master": master, "spark.cores.max": str(executors), "spark.executor.memory": memory,
             "spark.driver.memory": settings.driver_memory, **event_log_settings(events)}  # fmt: skip
    spark = spark_session(spark_settings.items())
    project = Project(scratch / "shared" / "warehouse", settings)
    start = time.perf_counter()
    project.build(settings.rows, spark)
    built = time.perf_counter() - start
    moves = []
    for number in range(settings.warm_up + settings.updates):
        project.land(project.slot + 1)
        epoch, passed = project.update(spark)
        moves.append({**passed, "sealed": epoch.counts[0].rewritten, "warm_up": number < settings.warm_up})
    spark.stop()
    ran = tasks(events)
    shares = {
        name: sum(task.seconds for task in ran if task.executor == name) for name in sorted({task.executor for task in ran})
    }
    return {"executors": executors, "build": built, "updates": moves, "task_seconds": shares}


def _table(results: list[dict[str, Any]]) -> str:
    lines = ["| executors | first build (s) | update (s, median) | task seconds of each executor |", "|--:|--:|--:|---|"]
    for result in results:
        median = statistics.median(move["whole"] for move in result["updates"] if not move["warm_up"])
        shares = ", ".join(f"{seconds:.1f}" for seconds in result["task_seconds"].values())
        lines.append(f"| {result['executors']} | {result['build']:.1f} | {median:.2f} | {shares} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

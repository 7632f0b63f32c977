"""Advice: ``python -m benchmarks.advice`` measures whether ``stream-wh advise`` recommends what is fast.

For each generated workload a warehouse with the default layout runs for p updates, with probes; what its epochs and its
read log tell goes to the advisor, as it would for a user. Then a small set of layouts and the recommended one are
updated in turn with the same files for another p updates, and probed. The cost of a layout is that of an update interval:
a mean update and the workload's probes. The advice is good when the recommended layout costs at most a tenth more than the
best of the measured layouts; the target is nine workloads of ten.

Finished workloads are kept in ``--work`` and not measured again, so that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.data import COLUMNS, key
from benchmarks.machine import load as load_average
from benchmarks.machine import machine, versions
from benchmarks.project import instant
from benchmarks.workloads import Generated, generated, land, land_first
from warehouse import Warehouse
from warehouse.advice.advise import advise_load, without_history
from warehouse.advice.fitting import fit_prices
from warehouse.advice.measurements import measure_table
from warehouse.advice.update_history import recent_epochs, update_history
from warehouse.layout import resolve
from warehouse.layout.advice import DEFAULT_PRICES, evaluate, footprint, in_words, layout_keys
from warehouse.layout.advice.choice import probe_work
from warehouse.serving.read_log import VARIABLE
from warehouse.storage.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.layout import Layout
    from warehouse.layout.advice import LayoutChoice

__all__ = ["main"]

TABLE = "s"
WITHIN = 1.10
TARGET = 0.9
_WARM_UP = 3
_PROBED = 40
_RESULTS = Path(__file__).parent / "results"
_TOML = """\
[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "1h"
retain = "{retain}"

[spark]
"spark.driver.memory" = "{memory}"

[streams.{table}]
landing = "{landing}"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{periods}h"

[streams.{table}.columns]
{columns}

[streams.{table}.layout]
{layout}
"""


@dataclass(frozen=True)
class Cost:
    """Costs of a layout in seconds: a mean update, the table's step in it, a mean probe, an interval."""

    layout: str
    update: float
    step: float
    probe: float
    interval: float
    files: int
    bytes: int
    predicted_update: float
    predicted_probe: float
    predicted_interval: float


class Place:
    """A warehouse of one layout."""

    def __init__(
        self, directory: Path, load: Generated, layout: Layout, landing: Path, memory: str, *, retain: str = "1m"
    ) -> None:
        self.directory, self.load, self.layout = directory, load, layout
        self.works: list[tuple[tuple[float, ...], float]] = []
        directory.mkdir(parents=True)
        text = _TOML.format(
            table=TABLE, landing=landing, periods=load.periods, memory=memory, retain=retain,
            layout="\n".join(layout_keys(layout)),
            columns="\n".join(f'{name} = "{kind}"' for name, kind in COLUMNS.items()),
        )  # fmt: skip
        (directory / "warehouse.toml").write_text(text)

    def update(self, slot: int, spark: SparkSession) -> float:
        """Move to a slot and return the seconds it took."""
        start = time.perf_counter()
        with Warehouse.open(self.directory) as warehouse:
            warehouse.update(at=instant(slot), spark=spark)
            seconds = time.perf_counter() - start
            with warehouse.reader() as reader:
                epochs = recent_epochs(reader.root, reader.epoch, 2)
        past = update_history(epochs, TABLE, spark.sparkContext.defaultParallelism)
        self.works += [(update.work.vector(), update.seconds) for update in past.updates]
        return seconds

    def probe(self, keys: Sequence[str]) -> list[float]:
        """Return the seconds of each probe, all by one warm reader."""
        seconds = []
        with Warehouse.open(self.directory) as warehouse, warehouse.reader() as reader:
            for probed_key in (*keys[:3], *keys):
                start = time.perf_counter()
                reader.probe(TABLE, [probed_key]).all()
                seconds.append(time.perf_counter() - start)
        return seconds[3:]


def compared(periods: int) -> list[Layout]:
    """Return the small set that the recommended layout is compared with."""
    half = max(1, periods // 2)
    return [
        resolve(periods=periods, label="WK"),
        resolve(periods=periods, label="WK", seal=False),
        resolve(periods=periods, label="WK", grid=(2, 2)),
        resolve(periods=periods, label="WK", grid=(max(2, round(periods**0.5)), 1), expiry_block=half),
        resolve(periods=periods, label="WK", grid=(1, 1), expiry_block=half, seal=False),
        resolve(periods=periods, label="WK", technique="rebuild", grid=(2, 2)),
        resolve(periods=periods, label="WK", technique="rebuild"),
    ]


def advised(place: Place, landing: Path, spark: SparkSession, say: Callable[[str], None]) -> LayoutChoice:
    """Run a warehouse for p updates, with a few probes after each, and return the advisor's recommendation."""
    load = place.load
    rng = random.Random(load.seed)  # noqa: S311 - which keys to ask for
    say("a past for the advisor")
    place.update(load.first_slot, spark)
    for slot in range(load.first_slot + 1, load.first_slot + load.periods + 1):
        land(load, landing, slot)
        place.update(slot, spark)
        place.probe([key(rng.randrange(load.keys)) for _ in range(3)])
    with Warehouse.open(place.directory) as warehouse, warehouse.reader() as reader:
        settings, retain = dict(warehouse.catalog.spark), warehouse.catalog.retain
        state = reader.pin.state(TABLE)
        epochs = recent_epochs(reader.root, reader.epoch)
        workers = spark.sparkContext.defaultParallelism
        measured = measure_table(reader, state, epochs, workers=workers, retain=retain, now=time.time_ns() // 1000)
        supposed = replace(measured.load, probes=float(load.probes), cold_probes=0.0, retained=0.0)
        return advise_load(supposed, measured.pricing, spark=settings, table=TABLE, current=state.layout, notes=measured.notes)


def measure(
    load: Generated, others: Sequence[Layout], scratch: Path, spark: SparkSession, memory: str, say: Callable[[str], None]
) -> dict[str, Any]:
    """Return what the advisor recommends for a workload, and what it and other layouts cost."""
    shutil.rmtree(scratch, ignore_errors=True)
    landing = scratch / "landing"
    landing.mkdir(parents=True)
    land_first(load, landing)
    default = resolve(periods=load.periods, label="WK")
    before = Place(scratch / "before", load, default, landing, memory, retain="1d")
    advice = advised(before, landing, spark, say)
    layouts = [*others]
    if without_history(advice.best.layout) not in layouts:
        layouts.append(without_history(advice.best.layout))
    projects = [Place(scratch / f"layout{number}", load, layout, landing, memory) for number, layout in enumerate(layouts)]
    updates, probes = _in_turn(projects, load, spark, say)
    costs = [_cost(project, advice, seconds, probed) for project, seconds, probed in zip(projects, updates, probes, strict=True)]
    best = min(costs, key=lambda cost: cost.interval)
    chosen = next(cost for cost in costs if cost.layout == in_words(advice.best.layout))
    return {
        "workload": asdict(load),
        "recommended": chosen.layout,
        "best": best.layout,
        "ratio": chosen.interval / best.interval,
        "reason": advice.reason,
        "notes": advice.notes,
        "prices": asdict(advice.pricing),
        "costs": [asdict(cost) for cost in costs],
        "work": [line for project in (before, *projects) for line in project.works],
        "probed": [line for project, probed in zip(projects, probes, strict=True) for line in _probed(project, advice, probed)],
    }


def _in_turn(
    projects: Sequence[Place], load: Generated, spark: SparkSession, say: Callable[[str], None]
) -> tuple[list[list[float]], list[list[float]]]:
    say(f"{len(projects)} layouts in turn")
    for project in projects:
        project.update(load.first_slot, spark)
    seconds: list[list[float]] = [[] for _ in projects]
    for number, slot in enumerate(range(load.first_slot + 1, load.first_slot + load.periods + 1)):
        order = list(range(len(projects)))
        for index in order if number % 2 else reversed(order):
            elapsed = projects[index].update(slot, spark)
            if number >= min(_WARM_UP, load.periods // 3):
                seconds[index].append(elapsed)
    rng = random.Random(load.seed + 1)  # noqa: S311 - which keys to ask for
    keys = [key(rng.randrange(load.keys)) for _ in range(_PROBED)]
    probes: list[list[float]] = [[] for _ in projects]
    for turn in range(4):
        for index in range(len(projects)):
            elapsed = projects[index].probe(keys[turn * _PROBED // 4 : (turn + 1) * _PROBED // 4])
            probes[index].extend(elapsed)
    return seconds, probes


def _cost(project: Place, advice: LayoutChoice, seconds: Sequence[float], probes: Sequence[float]) -> Cost:
    update, probe = statistics.fmean(seconds), statistics.median(probes)
    load = advice.load
    predicted = evaluate(project.layout, load, advice.pricing)
    with Warehouse.open(project.directory) as warehouse, warehouse.reader() as reader:
        state = reader.pin.state(TABLE)
    return Cost(
        layout=in_words(project.layout),
        update=update,
        step=statistics.fmean(step_seconds for _, step_seconds in project.works),
        probe=probe,
        interval=update + load.probes * probe,
        files=sum(part.files for part in state.partitions),
        bytes=sum(part.bytes for part in state.partitions),
        predicted_update=predicted.update.value,
        predicted_probe=predicted.probe.value,
        predicted_interval=predicted.interval,
    )


def _probed(project: Place, advice: LayoutChoice, seconds: Sequence[float]) -> list[tuple[tuple[float, ...], float]]:
    """Return one line for a layout: the predicted work of a probe with its current files, and the median seconds."""
    return [(probe_work(footprint(project.layout, advice.load), advice.load).vector(), statistics.median(seconds))]


def prices(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return prices fitted to all layouts of all workloads: what ``DEFAULT_PRICES`` should be on such a machine."""
    lines = [(tuple(work), seconds) for result in results for work, seconds in result["work"]]
    probes = [(tuple(work), seconds) for result in results for work, seconds in result["probed"]]
    return {
        "update": asdict(fit_prices(DEFAULT_PRICES.update, *map(list, zip(*lines, strict=True)))),
        "probe": asdict(fit_prices(DEFAULT_PRICES.probe, *map(list, zip(*probes, strict=True)))),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return the outcome as Markdown."""
    lines = [
        "| workload | recommended | interval | best measured | interval | ratio | holds |",
        "|---|---|---:|---|---:|---:|---|",
    ]
    for result in results:
        load, costs = result["workload"], {cost["layout"]: cost for cost in result["costs"]}
        chosen, best = costs[result["recommended"]], costs[result["best"]]
        rows = f"{load['batch']:,} rows of {load['row_bytes']} bytes"
        workload = f"{load['kind']}, p = {load['periods']}, {rows}, {load['probes']} probes"
        lines.append(
            f"| {workload} | {chosen['layout']} | {chosen['interval']:.3f} s | {best['layout']} | {best['interval']:.3f} s "
            f"| {result['ratio']:.3f} | {'yes' if result['ratio'] <= WITHIN else 'no'} |"
        )
    good = sum(result["ratio"] <= WITHIN for result in results)
    summary = f"{good} of {len(results)} recommendations within {WITHIN - 1:.0%} of the best measured layout."
    return "\n".join([*lines, "", summary])


@click.command(epilog="Example: python -m benchmarks.advice --work /tmp/advice")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="Directory of data and finished workloads; kept.")
@click.option("--count", type=click.IntRange(1), default=10, help="Workloads.  [10]")
@click.option("--seed", type=click.IntRange(0), default=20130101, help="Of workloads and rows.")
@click.option("--driver-memory", default="4g", help="Heap of the JVM.  [4g]")
@click.option("--quick", is_flag=True, help="Small workloads, which show that everything runs; their numbers mean nothing.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON and Markdown go.")
def main(*, work: Path, count: int, seed: int, driver_memory: str, quick: bool, results: Path) -> None:
    """Measure on how many generated workloads the recommended layout is within a tenth of the best measured one."""
    scale, longest = (0.02, 8) if quick else (1.0, 36)
    loads = generated(count, seed=seed, scale=scale, longest=longest)
    work.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = []
    before, started = load_average(), datetime.now(UTC)
    session: list[SparkSession] = []
    for load in loads:
        result_file = work / f"{'quick-' if quick else ''}{seed}-{load.number:02d}.json"
        if not result_file.exists():
            session = session or [spark_session([("spark.driver.memory", driver_memory)])]
            scratch = work / "scratch"
            os.environ[VARIABLE] = str(scratch / "reads")
            _say(f"workload {load.number + 1} of {count}: {load}")
            outcome = measure(load, compared(load.periods), scratch.absolute(), session[0], driver_memory, _say)
            result_file.with_suffix(".part").write_text(json.dumps(outcome))
            result_file.with_suffix(".part").replace(result_file)
            shutil.rmtree(scratch, ignore_errors=True)
        done.append(json.loads(result_file.read_text()))
        _say(f"{done[-1]['recommended']}: {done[-1]['ratio']:.3f} of the best, {done[-1]['best']}")
    facts = {
        "started": started.isoformat(timespec="seconds"),
        "machine": machine(),
        "load_before": before,
        "load_after": load_average(),
        "versions": versions(),
        "prices": prices(done),
        "workloads": done,
    }
    results.mkdir(parents=True, exist_ok=True)
    name = f"{started:%Y%m%dT%H%M%SZ}-advice"
    (results / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    (results / f"{name}.md").write_text(table(done) + "\n")
    click.echo(table(done))
    good = sum(result["ratio"] <= WITHIN for result in done)
    _say(f"{good} of {len(done)} ({'holds' if good >= TARGET * len(done) else 'does not hold'}); written to {name}.json and .md")


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()

"""The one command: ``python -m benchmarks``."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks import coalesced, cold, growing, probing, scanning, sizes, syncing, updating, views
from benchmarks.bench import Bench
from benchmarks.machine import load, machine, versions
from benchmarks.report import save, table
from benchmarks.settings import FULL, PERIODS, QUICK, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.ratio import Ratio

__all__ = ["main"]

MEASUREMENTS: dict[str, Callable[[Bench], list[Ratio]]] = {
    "update": updating.measure,
    "bytes": sizes.measure,
    "probe": probing.measure,
    "scan": scanning.measure,
    "cold-probe": cold.measure_probe,
    "cold-update": cold.measure_update,
    "growth": growing.measure,
    "durability": syncing.measure,
    "views": views.measure,
    "coalesced": coalesced.measure,
}
_BESIDE = {"update", "bytes"}
_APART = {"growth", "durability", "coalesced"}
_RESULTS = Path(__file__).parent / "results"


def _settings(context: click.Context, options: dict[str, Any]) -> Settings:
    chosen = {name: value for name, value in options.items() if value is not None}
    settings = replace(QUICK if context.params["quick"] else FULL, **chosen)
    return replace(settings, warm_up=min(settings.warm_up, settings.updates // 3))


@contextlib.contextmanager
def _scratch(work: Path | None) -> Iterator[Path]:
    if work is not None:
        work.mkdir(parents=True)
        yield work
        return
    with tempfile.TemporaryDirectory(prefix="stream-wh-benchmark-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@click.command(epilog="Example: python -m benchmarks --rows 2000000 --batch 100000 --big")
@click.option("--rows", type=click.IntRange(1000), help="Live rows.  [2 000 000]")
@click.option("--batch", type=click.IntRange(100), help="Rows of each update.  [100 000]")
@click.option("--row-bytes", type=click.IntRange(60), help="Bytes of a row.  [130]")
@click.option("--updates", type=click.IntRange(1), help=f"Measured updates; p is {PERIODS}.  [{PERIODS}]")
@click.option("--files", type=click.IntRange(1), help="Landing files of each update.  [4]")
@click.option("--repeat", type=click.IntRange(1), help="How often each read and each process is timed.  [9]")
@click.option("--keys", type=click.IntRange(1, 100), help="Keys that are probed, of each kind.  [40]")
@click.option("--seed", type=click.IntRange(0), help="Of all data.  [20130101]")
@click.option("--driver-memory", help="Heap of the JVM.  [6g]")
@click.option("--only", multiple=True, type=click.Choice(list(MEASUREMENTS)), help="Only this measurement (repeatable).")
@click.option("--quick", is_flag=True, help="A small run that shows that everything works, and nothing else.")
@click.option("--big/--no-big", help="Measure growth (ten times the live rows) and durability too.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON and Markdown go.")
@click.option("--work", type=click.Path(path_type=Path), help="A new directory for the data, which is kept.")
@click.pass_context
def main(
    context: click.Context,
    /,
    *,
    only: tuple[str, ...],
    quick: bool,
    big: bool,
    results: Path,
    work: Path | None,
    **options: Any,  # noqa: ANN401 - the settings
) -> None:
    """Measure what the speed claims say: ratios of one run, with the target beside each."""
    del quick
    names = [name for name in MEASUREMENTS if (name in only if only else name not in _APART or big)]
    settings = _settings(context, options)
    started, start, before = datetime.now(UTC), time.monotonic(), load()
    ratios: list[Ratio] = []
    with _scratch(work) as scratch:
        bench = Bench(settings, scratch.absolute(), bool(_BESIDE & set(names)), _say)
        for name in names:
            ratios += MEASUREMENTS[name](bench)
    facts = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": time.monotonic() - start,
        "machine": machine(),
        "load_before": before,
        "load_after": load(),
        "versions": versions(),
        "settings": {**asdict(settings), "periods": PERIODS},
        "measurements": names,
        "details": bench.details,
    }
    saved = save(ratios, facts, results, f"{started:%Y%m%dT%H%M%SZ}")
    click.echo(table(ratios), nl=False)
    targets = [ratio.holds for ratio in ratios if ratio.holds is not None]
    _say(f"{targets.count(True)} of {len(targets)} targets hold; written to {saved[0].name} and {saved[1].name}")


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()

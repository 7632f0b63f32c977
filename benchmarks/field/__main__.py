"""The one command: ``python -m benchmarks.field``."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from benchmarks.field.alone import BusyError, alone
from benchmarks.field.facts import facts
from benchmarks.field.job import LIFETIMES, RATES, Job
from benchmarks.field.page import save_page
from benchmarks.field.results import OtherJobError, Results, pack
from benchmarks.field.roster import ROSTER, worker_for
from benchmarks.field.run import Run

__all__ = ["main"]

_RESULTS = Path(__file__).parents[1] / "results" / "field"
_NAMES = [entry.name for entry in ROSTER]


@click.command(epilog="Example: python -m benchmarks.field --rows 1000000 --only norebuild --only duckdb")
@click.option("--rows", type=click.IntRange(1_000, 10_000_000), help="Live rows in a steady state.  [1 000 000]")
@click.option("--row-bytes", type=click.IntRange(60), help="Bytes of a row's values.  [130]")
@click.option("--keys", type=click.IntRange(100), help="Distinct search keys.  [rows / 10]")
@click.option("--updates", type=click.IntRange(1), help="Updates after the build; more of them go on with a run.  [12]")
@click.option("--lifetimes", type=click.Choice(LIFETIMES), help="How long rows live.  [uniform]")
@click.option("--rate", type=click.Choice(RATES), help="How many come with each update.  [constant]")
@click.option("--periods", type=click.IntRange(4), help="p, the longest lifetime in update intervals.  [36]")
@click.option("--seed", type=click.IntRange(0), help="Of all data.  [20130101]")
@click.option("--only", multiple=True, type=click.Choice(_NAMES), help="Only this contender (repeatable).")
@click.option("--without", multiple=True, type=click.Choice(_NAMES), help="Not this contender (repeatable).")
@click.option("--again", multiple=True, type=click.Choice(_NAMES), help="Measure this contender again (repeatable).")
@click.option("--patience", type=click.FloatRange(1), default=600, show_default=True, help="Seconds for one answer.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON lines, page, plots go.")
@click.option("--work", type=click.Path(path_type=Path), help="Where contenders store.  [work, beside the results]")
@click.option("--keep", is_flag=True, help="Keep what contenders stored when all is done.")
def main(
    *,
    only: tuple[str, ...],
    without: tuple[str, ...],
    again: tuple[str, ...],
    patience: float,
    results: Path,
    work: Path | None,
    keep: bool,
    **options: Any,  # noqa: ANN401 - the job
) -> None:
    """Measure this warehouse beside what else could do its job. A run that was stopped goes on when called again."""
    if find_spec("matplotlib") is None:
        raise click.UsageError("the plots need matplotlib; install the extra: pip install -e '.[bench]'")
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen.setdefault("keys", max(100, chosen.get("rows", Job().rows) // 10))
    job = Job(**chosen)
    try:
        recorded = Results((results / "field.jsonl").absolute(), job, facts())
    except OtherJobError as error:
        raise click.UsageError(str(error)) from error
    for name in again:
        recorded.add("again", name)
    entries = [entry for entry in ROSTER if entry.name not in without and (not only or entry.name in only)]
    directory = (work or results / "work").absolute()
    try:
        with alone(directory) as lock:
            Run(job, entries, directory, recorded, lambda entry: worker_for(entry, directory, patience, lock), _say).play()
            if not keep:
                shutil.rmtree(directory, ignore_errors=True)
    except BusyError as error:
        raise click.ClickException(str(error)) from error
    page = save_page(job, recorded, ROSTER, results)
    pack(recorded.path)
    _say(f"written: {page}")


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()

"""The source's experiments in one command: ``python -m benchmarks.source``."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.field.contenders.spark import session
from benchmarks.field.facts import facts
from benchmarks.field.hosts import Here
from benchmarks.field.job import Job
from benchmarks.field.results import OtherJobError, Results, pack
from benchmarks.field.run import Run
from benchmarks.source.claims import Experiment
from benchmarks.source.exact import count
from benchmarks.source.page import page
from benchmarks.source.variants import CLUSTERED, EVERY

__all__ = ["main"]

_RESULTS = Path(__file__).parents[1] / "results" / "source"
_TIMES = 10
_PERIODS = 12
"""p of the counted costs: divided by every side."""
_VARIANTS = {"small": EVERY, "rates": CLUSTERED, "large": CLUSTERED}


@click.command(epilog="Example: python -m benchmarks.source --rows 100000 --only counts --only small")
@click.option("--rows", type=click.IntRange(1_000, 1_000_000), default=50_000, show_default=True, help="Live rows, small.")
@click.option("--row-bytes", type=click.IntRange(60), default=1_000, show_default=True, help="Bytes of a row.")
@click.option("--keys", type=click.IntRange(100), default=100, show_default=True, help="Distinct search keys.")
@click.option("--updates", type=click.IntRange(1), default=12, show_default=True, help="Updates after the build.")
@click.option("--periods", type=click.IntRange(10), default=36, show_default=True, help="p.")
@click.option("--seed", type=click.IntRange(0), default=20130101, show_default=True, help="Of all data.")
@click.option("--only", multiple=True, type=click.Choice(["counts", *_VARIANTS]), help="Only this experiment (repeatable).")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON lines and the page go.")
@click.option("--work", type=click.Path(path_type=Path), help="Where the tables lie.  [work, beside the results]")
def main(*, only: tuple[str, ...], results: Path, work: Path | None, **given: int) -> None:
    """Run section 8 of the source: `counts` (exact costs), `small`, `rates` (random, up to 4 times), `large` (10 times).

    A run that was stopped goes on when called again.
    """
    small = Job(**given)
    jobs = {"small": small, "rates": replace(small, rate="random"), "large": replace(small, rows=_TIMES * small.rows)}
    work_directory = (work or results / "work").absolute()
    experiments = {}
    for name, job in jobs.items():
        lines = (results / f"{name}.jsonl").absolute()
        if only and name not in only and not lines.exists():
            continue
        try:
            recorded = Results(lines, job, facts())
        except OtherJobError as error:
            raise click.UsageError(str(error)) from error
        if not only or name in only:
            Run(job, _VARIANTS[name], work_directory / name, recorded, lambda _: Here(), _say).play()
            shutil.rmtree(work_directory / name, ignore_errors=True)
        if any(recorded.of(entry.name).done for entry in _VARIANTS[name]):
            experiments[name] = Experiment(job, recorded)
            pack(lines)
    counted = None
    if not only or "counts" in only:
        with tempfile.TemporaryDirectory(prefix="stream-wh-counts-") as directory:
            counted = count(Path(directory), session(), periods=_PERIODS, updates=_PERIODS)
    path = results / "README.md"
    path.write_text(page(experiments, _VARIANTS, counted, _PERIODS))
    _say(f"written: {path}")


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()

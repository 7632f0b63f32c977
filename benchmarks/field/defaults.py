"""The defaults, each beside others: ``python -m benchmarks.field.defaults``.

One job, and this warehouse once as it is by default and once with each default replaced by another value: rows of a row
group, Bloom filters of the key, insertion rows, slots of an expiry block (and with them expiration columns), sealing. All take
turns in one JVM, as contenders do, and are checked by the same oracle. The page has figures as ratios to those of the defaults.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import click

from benchmarks.field.alone import BusyError, alone
from benchmarks.field.contenders.ours import Ours
from benchmarks.field.facts import facts
from benchmarks.field.figures import QUANTITIES, beside, spread
from benchmarks.field.hosts import Here
from benchmarks.field.job import LIFETIMES, RATES, Job
from benchmarks.field.page import made_on, markdown_table, spread_text
from benchmarks.field.results import OtherJobError, Results, pack
from benchmarks.field.roster import OURS, ROSTER, Entry
from benchmarks.field.run import Run
from warehouse.layout import resolve
from warehouse.storage.writer import ROW_GROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.field.job import Lifetimes, Rate

__all__ = ["VARIANTS", "defaults_page", "main"]

_RESULTS = Path(__file__).parents[1] / "results" / "defaults"
_SHOWN = ("update", "few", "many", "absent", "scan", "aggregate", "written", "space", "files")
_PERIODS = Job().periods


class _WrittenOtherwise(Ours):
    """stream-wh with other constants of the writer; they are no settings of a user's."""

    constants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the first epoch."""
        with _other(self.constants):
            super().build(files, now)

    def load(self, file: Path, now: int) -> None:
        """Update."""
        with _other(self.constants):
            super().load(file, now)


@contextmanager
def _other(constants: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Give constants of modules other values meanwhile."""
    with ExitStack() as stack:
        for module, values in constants.items():
            stack.enter_context(patch.multiple(module, **values))
        yield


def _variant(title: str, *, layout: str = "", constants: Mapping[str, Mapping[str, Any]] | None = None) -> Entry:
    """Make a contender; its class is found in this module by its name."""
    name = "".join(letter if letter.isalnum() else "_" for letter in title)
    kind = type(
        name, (_WrittenOtherwise,), {"layout": layout, "constants": constants or {}, "__doc__": title, "__module__": __name__}
    )
    globals()[name] = kind
    return Entry(name, f"{__name__}:{name}", title, "spark")


def _grouped(rows: int) -> dict[str, dict[str, Any]]:
    return {"warehouse.storage.writer": {"ROW_GROUP_ROWS": rows}}


_DEFAULT = resolve(periods=_PERIODS, label="WK")
_ROWS, _COLUMNS, _BLOCK = _DEFAULT.rows, _DEFAULT.columns, _DEFAULT.expiry_block

VARIANTS: tuple[Entry, ...] = (
    *(_variant(f"row groups of {rows:,} rows", constants=_grouped(rows)) for rows in (5_000, 20_000, 60_000, 1_000_000)),
    _variant("no Bloom filters, dictionaries for keys", constants={"warehouse.storage.writer": {"_BLOOM_TYPES": ()}}),
    _variant("no sealing", layout="seal = false"),
    _variant(f"grid of {_ROWS // 2} x {_COLUMNS}", layout=f"grid = [{_ROWS // 2}, {_COLUMNS}]"),
    _variant(f"grid of {2 * _ROWS} x {_COLUMNS}", layout=f"grid = [{2 * _ROWS}, {_COLUMNS}]"),
    *(
        _variant(f"expiry blocks of {slots} slots, {-(-_PERIODS // slots)} columns", layout=f"expiry_block = {slots}")
        for slots in (_BLOCK * 2, -(-_BLOCK // 2))
    ),
)  # fmt: skip
"""Each default replaced."""


@click.command(epilog="Example: python -m benchmarks.field.defaults --rows 1000000")
@click.option("--rows", type=click.IntRange(1_000, 10_000_000), default=1_000_000, show_default=True, help="Live rows.")
@click.option("--updates", type=click.IntRange(1), default=9, show_default=True, help="Updates; more of them go on.")
@click.option("--lifetimes", type=click.Choice(LIFETIMES), default="uniform", show_default=True, help="How long rows live.")
@click.option("--rate", type=click.Choice(RATES), default="constant", show_default=True, help="How many come with each update.")
@click.option("--settling", type=click.IntRange(0), default=0, show_default=True, help="Updates before these, not measured.")
@click.option("--only", "chosen", multiple=True, metavar="TITLE", help="Only variants whose titles begin so; again for more.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where JSON lines and the page go.")
@click.option("--work", type=click.Path(path_type=Path), help="Where tables lie until the end.  [work, beside the results]")
def main(
    *,
    rows: int,
    updates: int,
    lifetimes: Lifetimes,
    rate: Rate,
    settling: int,
    chosen: tuple[str, ...],
    results: Path,
    work: Path | None,
) -> None:
    """Measure each default beside other values of it."""
    job = Job(rows=rows, keys=max(100, rows // 10), updates=updates, lifetimes=lifetimes, rate=rate, settling=settling)
    variants = [each for each in VARIANTS if not chosen or each.title.startswith(chosen)]
    if not variants:
        raise click.UsageError(f"no variant begins so; there are: {', '.join(each.title for each in VARIANTS)}")
    try:
        found = Results((results / "defaults.jsonl").absolute(), job, facts())
    except OtherJobError as error:
        raise click.UsageError(str(error)) from error
    place = (work or results / "work").absolute()
    ours = next(entry for entry in ROSTER if entry.name == OURS)
    try:
        with alone(place):
            Run(job, (ours, *variants), place, found, lambda _: Here(), _say).play()
            shutil.rmtree(place, ignore_errors=True)
    except BusyError as error:
        raise click.ClickException(str(error)) from error
    page = results / "README.md"
    page.write_text(defaults_page(job, found))
    pack(found.path)
    _say(f"written: {page}")


def defaults_page(job: Job, results: Results) -> str:
    """Return the figures of the defaults, and of the others as ratios to them, as Markdown."""
    quantities = [each for name in _SHOWN for each in QUANTITIES if each.name == name]
    rows = [["", *(f"{each.title}{', ' if each.unit else ''}{each.unit}" for each in quantities)]]
    own = [spread(results, OURS, quantity, job) for quantity in quantities]
    default = f"defaults: row groups of {ROW_GROUP_ROWS:,}, grid of {_ROWS} x {_COLUMNS}, blocks of {_BLOCK} slots, sealed"
    rows.append([default, *("" if each is None else spread_text(each.median, each.low, each.high) for each in own)])
    out = []
    for entry in VARIANTS:
        failed = results.of(entry.name).failed
        if failed is not None:
            out.append(f"* {entry.title}: {failed['reason']}")
            continue
        if not results.of(entry.name).done:  # not asked for
            continue
        ratios = [beside(results, entry.name, OURS, quantity, job) for quantity in quantities]
        rows.append([entry.title, *("" if each is None else f"x {each.value:.2f}" for each in ratios)])
    return "\n\n".join(["# Defaults", made_on(job, results), markdown_table(rows), *out]) + "\n"


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()

"""The output of ``advise``: the workload, a line for each layout of the front, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from warehouse.advice.advise import plain
from warehouse.cli.outcome import Report
from warehouse.layout.advice import in_words, layout_keys
from warehouse.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.advice import Advice
    from warehouse.layout.advice import Estimate, Evaluation

__all__ = ["of_advice"]

_HEADS = ("", "layout", "update", "probe", "on disk", "files")


def of_advice(found: Advice) -> Report:
    """Return advice as lines for people and as a record."""
    return Report(_record(found), tuple(_lines(found)), data=True, warnings=found.notes)


def _lines(found: Advice) -> Iterator[str]:
    load = found.load
    yield (
        f"{found.table or 'supposed'}: {load.rate:,.0f} rows inserted an update, {load.live:,.0f} live, "
        f"which live for {load.mean_lifetime:.1f} updates on average, {load.periods:,} at the most; "
        f"probes an update: {load.probes:,.3g}, rows of each: {load.rows_per_key:,.3g}"
    )
    yield f"prices of {_source(found.pricing.update.samples, 'update')} and {_source(found.pricing.probe.samples, 'probe')}"
    yield ""
    yield from _table(found)
    yield "> recommended" + ("; * what the table has" if found.current else "")
    yield ""
    answer = found.decision
    yield (
        f"the source's decision table: {answer.window} window, {answer.queries} queries: {answer.choice} ({answer.note}); "
        f"predicted here: update {_seconds(found.decided.update)}, probe {_seconds(found.decided.probe)}, "
        f"{size_text(found.decided.disk)}"
    )
    if found.fits:
        yield f"keep {in_words(found.best.layout)}: {found.reason}"
        return
    yield f"recommended: {in_words(found.best.layout)}: {found.reason}"
    section = f"[streams.{found.table or 'NAME'}.layout]"
    yield "" if found.table else f"in {section}:"
    if found.table:
        yield f"to move the table, declare this in its layout section and run `stream-wh migrate {found.table}`:"
    yield from (f"  {line}" for line in layout_keys(found.best.layout))


def _table(found: Advice) -> Iterator[str]:
    rows = [_HEADS, *(_cells(found, each) for each in found.front)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(found: Advice, each: Evaluation) -> tuple[str, ...]:
    mark = (">" if each is found.best else " ") + ("*" if each is found.current else " ")
    return (
        mark, in_words(each.layout), _seconds(each.update, 2), _seconds(each.probe, 2), size_text(each.disk),
        f"{each.footprint.files:.0f}",
    )  # fmt: skip


def _record(found: Advice) -> Mapping[str, object]:
    load = found.load
    return {
        "table": found.table,
        "workload": {**msgspec.to_builtins(load), "live": load.live, "mean_lifetime": load.mean_lifetime},
        "prices": {kind: _prices(getattr(found.pricing, kind)) for kind in ("update", "probe")},
        "compared": found.compared,
        "recommended": _evaluation(found, found.best),
        "current": None if found.current is None else _evaluation(found, found.current),
        "keep": found.fits,
        "reason": found.reason,
        "front": [_evaluation(found, each) for each in found.front],
        "decision_table": {
            "window": found.decision.window,
            "queries": found.decision.queries,
            "choice": found.decision.choice,
            "note": found.decision.note,
            "predicted": _evaluation(found, found.decided),
        },
    }


def _prices(prices: object) -> Mapping[str, object]:
    known = msgspec.to_builtins(prices)
    return {"measurements": known["samples"], "seconds": dict(zip(known["names"], known["values"], strict=True))}


def _evaluation(found: Advice, each: Evaluation) -> Mapping[str, object]:
    print_of = each.footprint
    return {
        "name": in_words(each.layout),
        "layout": plain(each.layout).to_json(),
        "recommended": each is found.best,
        "current": each is found.current,
        "update_seconds": msgspec.to_builtins(each.update),
        "probe_seconds": msgspec.to_builtins(each.probe),
        "interval_seconds": each.interval,
        "bytes": each.bytes,
        "disk_bytes": each.disk,
        "files": print_of.files,
        "key_files": print_of.key_files,
        "dead_share": print_of.rows / found.load.live - 1 if found.load.live else 0.0,
        "times_written": print_of.written / found.load.rate if found.load.rate else 0.0,
    }


def _source(samples: int, word: str) -> str:
    return f"{samples} {word}s measured here" if samples else f"{word}s from the benchmarks' machine"


def _seconds(estimate: Estimate, digits: int = 3) -> str:
    """Return a time with its bounds; the bounds have ``digits`` digits, or all digits before the point."""
    scale, unit = (1000, "ms") if estimate.value < 1 else (1, "s")
    low, high = (_rounded(each * scale, digits) for each in (estimate.low, estimate.high))
    return f"{estimate.value * scale:.3g} {unit} ({low} to {high})"


def _rounded(value: float, digits: int) -> str:
    return f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"

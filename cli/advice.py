"""The output of ``advise``: the workload, a line for each layout of the front, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from warehouse.advice.advise import without_history
from warehouse.cli.outcome import Report
from warehouse.layout.advice import in_words, layout_keys
from warehouse.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.advice import Advice
    from warehouse.layout.advice import Estimate, Evaluation

__all__ = ["advice_report"]

_HEADINGS = ("", "layout", "update", "probe", "on disk", "files")


def advice_report(advice: Advice) -> Report:
    """Return advice as lines for people and as a record."""
    return Report(_record(advice), tuple(_lines(advice)), data=True, warnings=advice.notes)


def _lines(advice: Advice) -> Iterator[str]:
    load = advice.load
    yield (
        f"{advice.table or 'supposed'}: {load.rate:,.0f} rows inserted an update, {load.live:,.0f} live, "
        f"which live for {load.mean_lifetime:.1f} updates on average, {load.periods:,} at the most; "
        f"probes an update: {load.probes:,.3g}, rows of each: {load.rows_per_key:,.3g}"
    )
    yield f"prices of {_source(advice.pricing.update.samples, 'update')} and {_source(advice.pricing.probe.samples, 'probe')}"
    yield ""
    yield from _table(advice)
    yield "> recommended" + ("; * what the table has" if advice.current else "")
    yield ""
    answer = advice.decision
    yield (
        f"the source's decision table: {answer.window} window, {answer.queries} queries: {answer.choice} ({answer.note}); "
        f"predicted here: update {_seconds(advice.decided.update)}, probe {_seconds(advice.decided.probe)}, "
        f"{size_text(advice.decided.disk)}"
    )
    if advice.fits:
        yield f"keep {in_words(advice.best.layout)}: {advice.reason}"
        return
    yield f"recommended: {in_words(advice.best.layout)}: {advice.reason}"
    section = f"[streams.{advice.table or 'NAME'}.layout]"
    yield "" if advice.table else f"in {section}:"
    if advice.table:
        yield f"to move the table, declare this in its layout section and run `stream-wh migrate {advice.table}`:"
    yield from (f"  {line}" for line in layout_keys(advice.best.layout))


def _table(advice: Advice) -> Iterator[str]:
    rows = [_HEADINGS, *(_cells(advice, evaluation) for evaluation in advice.front)]
    widths = [max(len(row[number]) for row in rows) for number in range(len(_HEADINGS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(advice: Advice, evaluation: Evaluation) -> tuple[str, ...]:
    mark = (">" if evaluation is advice.best else " ") + ("*" if evaluation is advice.current else " ")
    return (
        mark, in_words(evaluation.layout), _seconds(evaluation.update, 2), _seconds(evaluation.probe, 2),
        size_text(evaluation.disk), f"{evaluation.footprint.files:.0f}",
    )  # fmt: skip


def _record(advice: Advice) -> Mapping[str, object]:
    load = advice.load
    return {
        "table": advice.table,
        "workload": {**msgspec.to_builtins(load), "live": load.live, "mean_lifetime": load.mean_lifetime},
        "prices": {kind: _prices(getattr(advice.pricing, kind)) for kind in ("update", "probe")},
        "compared": advice.compared,
        "recommended": _evaluation(advice, advice.best),
        "current": None if advice.current is None else _evaluation(advice, advice.current),
        "keep": advice.fits,
        "reason": advice.reason,
        "front": [_evaluation(advice, evaluation) for evaluation in advice.front],
        "decision_table": {
            "window": advice.decision.window,
            "queries": advice.decision.queries,
            "choice": advice.decision.choice,
            "note": advice.decision.note,
            "predicted": _evaluation(advice, advice.decided),
        },
    }


def _prices(prices: object) -> Mapping[str, object]:
    fields = msgspec.to_builtins(prices)
    return {"measurements": fields["samples"], "seconds": dict(zip(fields["names"], fields["values"], strict=True))}


def _evaluation(advice: Advice, evaluation: Evaluation) -> Mapping[str, object]:
    footprint = evaluation.footprint
    return {
        "name": in_words(evaluation.layout),
        "layout": without_history(evaluation.layout).to_json(),
        "recommended": evaluation is advice.best,
        "current": evaluation is advice.current,
        "update_seconds": msgspec.to_builtins(evaluation.update),
        "probe_seconds": msgspec.to_builtins(evaluation.probe),
        "interval_seconds": evaluation.interval,
        "bytes": evaluation.bytes,
        "disk_bytes": evaluation.disk,
        "files": footprint.files,
        "key_files": footprint.key_files,
        "dead_share": footprint.rows / advice.load.live - 1 if advice.load.live else 0.0,
        "times_written": footprint.written / advice.load.rate if advice.load.rate else 0.0,
    }


def _source(samples: int, word: str) -> str:
    return f"{samples} {word}s measured here" if samples else f"{word}s from the benchmarks' machine"


def _seconds(estimate: Estimate, digits: int = 3) -> str:
    """Return a time with its bounds; the bounds have ``digits`` digits, or all digits before the point."""
    scale, unit = (1000, "ms") if estimate.value < 1 else (1, "s")
    low, high = (_rounded(bound * scale, digits) for bound in (estimate.low, estimate.high))
    return f"{estimate.value * scale:.3g} {unit} ({low} to {high})"


def _rounded(value: float, digits: int) -> str:
    return f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"

"""Reports of an erasure, planned or done: a few lines for people, the receipt for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from warehouse.cli.outcome import Report
from warehouse.operations.erasure.receipt import receipt_path
from warehouse.planning.steps import EraseRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.operations.erasure.outlook import Outlook
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.operations.erasure.store import StoreReceipt

__all__ = ["erasure_plan_report", "erasure_report"]

_SHOWN = 10
CHECK_FAILED = 4


def erasure_plan_report(outlook: Outlook) -> Report:
    """Return the report of a planned erasure; exit code 4 while landing files have a key."""
    steps = [step for step in outlook.plan.steps if isinstance(step, EraseRows)]
    views = outlook.plan.erasure.views if outlook.plan.erasure else ()
    ended = dict(outlook.plan.erasure.ended) if outlook.plan.erasure else {}
    files = [str(path) for path in outlook.landing]
    lines = [f"would erase {step.rows} rows of {step.path}" for step in steps]
    if outlook.nothing:
        lines = _nothing_found(outlook)
    else:
        lines += [f"would build view {view} again" for view in views]
        lines += [f"would give up {_ended(view, rows)}; `stream-wh complete {view}` reports them" for view, rows in ended.items()]
        other_files = len({trace.path for trace in outlook.before.traces})
        lines += [f"would remove {other_files} files that show a key, those of older epochs included"] if other_files else []
        lines.append("would retire all older epochs: they can no longer be read")
    return Report(
        {
            "dry_run": True,
            "nothing": outlook.nothing,
            "rows": outlook.rows,
            "tables": [{"path": step.path, "rows": step.rows} for step in steps],
            "views_built_anew": list(views),
            "ended_rows_given_up": ended,
            "files": [trace.path for trace in outlook.before.traces],
            "elsewhere": msgspec.to_builtins(outlook.before.elsewhere),
            "landing": files,
        },
        (*lines, *_landing_lines(files)),
        data=True,
        exit_code=CHECK_FAILED if files else 0,
        warnings=tuple(_elsewhere([trace.path for trace in outlook.before.elsewhere])),
    )


def erasure_report(root: Path, outlook: Outlook, receipt: Receipt | None) -> Report:
    """Return the report of an erasure; exit code 4 while any file has a key."""
    if receipt is None:
        files = [str(path) for path in outlook.landing]
        record = {"rows": 0, "receipt": None, "landing": files}
        return Report(record, (*_nothing_found(outlook), *_landing_lines(files)), exit_code=CHECK_FAILED if files else 0)
    path = receipt_path(root, receipt.epoch)
    lines = [
        f"erased {receipt.rows} rows (epoch {receipt.epoch}); {receipt.epochs_retired} older epochs retired",
        *(f"  {table.path}: {table.rows} rows, {len(table.files_removed)} files" for table in receipt.tables if table.rows),
        *(f"  view {view} rebuilt" for view in receipt.views_built_anew),
        *(f"  gave up {_ended(view, rows)}" for view, rows in receipt.ended_rows_given_up.items()),
        f"read again: {receipt.proof.files} files, {receipt.proof.bytes} bytes; {len(receipt.proof.traces)} show a key",
        *(f"  {trace.path}: {trace.found}" for trace in receipt.proof.traces[:_SHOWN]),
        *_store_lines(receipt.store),
        *([receipt.beyond_reach] if receipt.beyond_reach else []),
        f"receipt: {path}",
    ]
    return Report(
        {**msgspec.to_builtins(receipt), "whole": receipt.whole, "receipt": str(path)},
        (*lines, *_landing_lines(receipt.landing)),
        exit_code=0 if receipt.whole else CHECK_FAILED,
        warnings=tuple(_elsewhere([trace.path for trace in receipt.proof.elsewhere])),
    )


def _nothing_found(outlook: Outlook) -> list[str]:
    """Return lines that name the keys as they were understood: a mistyped key is found nowhere, either."""
    keys = outlook.plan.erasure.keys if outlook.plan.erasure else ()
    texts = [json.dumps(key[0] if len(key) == 1 else key, ensure_ascii=False) for key in keys[:_SHOWN]]
    others = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    text = "nothing to erase: no file under the root holds such a row"
    return [text, f"looked for the key {', '.join(texts)}{others}"] if texts else [text]


def _ended(view: str, rows: int) -> str:
    return f"what view {view} owes of {rows} rows that have ended, of all keys"


def _store_lines(store: StoreReceipt | None) -> Iterator[str]:
    if store is not None:
        aborted = f", {store.uploads_aborted} unfinished uploads aborted" if store.uploads_aborted else ""
        yield f"{store.copies_removed} copies in your cache removed{aborted}; those of other users and machines are theirs"
        yield from (f"  not proved: {item}" for item in store.unproved)


def _landing_lines(files: Sequence[str]) -> Iterator[str]:
    if files:
        yield f"{len(files)} landing files still hold a key; remove or correct them, then run again:"
        yield from (f"  {path}" for path in files[:_SHOWN])
        if len(files) > _SHOWN:
            yield f"  and {len(files) - _SHOWN} more; -o json lists all"


def _elsewhere(paths: Sequence[str]) -> Iterator[str]:
    names = sorted({"/".join(path.split("/")[:2]) for path in paths})
    if names:
        yield f"rows of other tables hold the same value and stay: {', '.join(names)}"

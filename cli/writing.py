"""The calls of commands that write, or plan what they would write: each calls one verb of the library and reports the result.

Every import that takes time is inside a function.
"""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a dry run starts fast

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from warehouse.cli.outcome import Report, render_turn
from warehouse.cli.reading import open_project
from warehouse.errors import NoEpochError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from logging import LogRecord
    from pathlib import Path
    from threading import Event

    from warehouse.epochs.points import Observer
    from warehouse.operations.run import Turn
    from warehouse.project import Warehouse
    from warehouse.serving.keys import KeyColumn

    Step = Callable[[str], None]
    MakeKeys = Callable[[Sequence[KeyColumn]], list[tuple[Any, ...]]]

__all__ = [
    "back_up",
    "complete",
    "drop",
    "erase",
    "migrate",
    "open_for_work",
    "plan",
    "plan_erasure",
    "rebuild",
    "reload",
    "repair",
    "restate",
    "restore",
    "rollback",
    "run",
    "sample",
    "undo_foreign",
    "update",
    "vacuum",
]


def open_for_work(directory: Path, *, compared: bool = True) -> Warehouse:
    """Open a project for a verb that may start Spark.

    Without ``compared`` the declarations are not compared with the tables, which a damaged warehouse does not allow.
    """
    import logging

    # py4j logs a traceback at the root logger when Ctrl-C meets a call into the JVM; the command says it in one line
    logging.getLogger().addFilter(_is_not_of_py4j)
    return open_project(directory) if compared else _open_uncompared(directory)


def _open_uncompared(directory: Path) -> Warehouse:
    from warehouse.project import Warehouse

    return Warehouse.open(directory, compared=False)


def _is_not_of_py4j(record: LogRecord) -> bool:
    return "py4j" not in record.pathname


def update(directory: Path, options: Mapping[str, Any], step: Step | None) -> Report:
    """Update the warehouse: load what arrived, and remove what expired."""
    from warehouse.cli.reports import update_report

    warehouse = open_for_work(directory)
    done = warehouse.update(**options, observer=_step_observer(step))
    with suppress(NoEpochError):
        return update_report(done, warehouse.health(landing=done.landing_now, layouts=False))
    return update_report(done)


def run(directory: Path, *, delay: int, each: bool, stop: Event) -> Report:
    """Update at every grid point until the event is set."""
    import time

    from warehouse.cli.reports import run_report, turn_report
    from warehouse.operations.run import WallClock

    warehouse = open_for_work(directory)

    def report_turn(turn: Turn) -> None:
        health = None
        if turn.report is not None:
            with suppress(NoEpochError):
                health = warehouse.health(landing=turn.report.landing_now, layouts=False)
        render_turn(turn_report(turn, health))

    began = time.monotonic()
    succeeded = warehouse.run(delay=delay, each=each, clock=WallClock(stop), report_turn=report_turn)
    return run_report(succeeded, time.monotonic() - began)


def _step_observer(step: Step | None) -> Observer:
    from warehouse.epochs.points import nobody
    from warehouse.operations.watching import in_words

    return in_words(step) if step else nobody


def _foreign_messages(warehouse: Warehouse) -> tuple[str, ...]:
    from warehouse.epochs.journal import newest_epoch
    from warehouse.operations.standing_still import foreign_notes

    last = newest_epoch(warehouse.root)
    return () if last is None else tuple(note.message for note in foreign_notes(warehouse.root, last))


def plan(directory: Path, options: Mapping[str, Any]) -> Report:
    """Report the plan of an update."""
    from warehouse.cli.reports import plan_report, verdicts_report

    warehouse = open_for_work(directory, compared=False)  # differences are reported key by key
    verdicts = warehouse.verdicts()
    if any(verdict.stops for verdict in verdicts):
        return verdicts_report(verdicts)
    return plan_report(*warehouse.plan(**options), verdicts, _foreign_messages(warehouse))


def sample(directory: Path, rows: int, *, at: int | None, future: bool) -> Report:
    """Report what an update would do with some waiting rows."""
    from warehouse.cli.samples import samples_report

    return samples_report(open_for_work(directory).sample(rows, at=at, future=future))


def reload(directory: Path, file: str, step: Step | None) -> Report:
    """Mark a landing file to be loaded again."""
    from warehouse.cli.reports import epoch_report

    del step
    epoch = open_for_work(directory).reload(file)
    commands = " and ".join(f"`stream-wh restate {entry.stream} --since first`" for entry in epoch.files if entry.reload)
    return epoch_report(
        epoch,
        f"{file} will be loaded by the next update that moves the window. Rows that it gave before stay in the table, too: "
        f"{commands} after that update reads each file once",
    )


def drop(directory: Path, table: str, step: Step | None) -> Report:
    """Forget a table that is no longer declared."""
    from warehouse.cli.reports import epoch_report

    del step
    return epoch_report(open_for_work(directory).drop(table), f'forgot table "{table}"')


def rollback(directory: Path, to_epoch: int, step: Step | None) -> Report:
    """Go back to an epoch's contents."""
    from warehouse.cli.reports import rollback_report

    return rollback_report(open_for_work(directory).rollback(to_epoch, observer=_step_observer(step)))


def restate(
    directory: Path, table: str, step: Step | None, *, since: int | str | None, rejected: bool, allow_lost: bool
) -> Report:
    """Load landing files of a table again."""
    from warehouse.cli.reports import restatement_report

    observer = _step_observer(step)
    warehouse = open_for_work(directory, compared=False)  # the declaration may differ from the table's: the verb applies it
    done = warehouse.restate(table, since=since, rejected=rejected, allow_lost=allow_lost, observer=observer)
    return restatement_report(table, done)


def rebuild(directory: Path, view: str, step: Step | None) -> Report:
    """Rebuild a view."""
    from warehouse.cli.reports import rebuild_report

    return rebuild_report(view, open_for_work(directory).rebuild(view, observer=_step_observer(step)))


def complete(directory: Path, view: str, step: Step | None, *, within: int | None, dry_run: bool = False) -> Report:
    """Make the results that a view owes under its budget."""
    from warehouse.cli.reports import completion_report

    done = open_for_work(directory).complete(view, within=within, dry_run=dry_run, observer=_step_observer(step))
    return completion_report(done, dry_run=dry_run)


def migrate(
    directory: Path, table: str | None, options: Mapping[str, Any], step: Step | None, *, dry_run: bool = False
) -> Report:
    """Give tables another layout, other columns or another grid of times."""
    from warehouse.cli.reports import migration_report

    observer = _step_observer(step)
    warehouse = open_for_work(directory, compared=False)  # the declaration may differ from the table's: the verb applies it
    return migration_report(warehouse.migrate(table, **options, dry_run=dry_run, observer=observer), dry_run=dry_run)


def vacuum(directory: Path, step: Step | None, *, dry_run: bool) -> Report:
    """Remove the files that no readable epoch needs."""
    from warehouse.cli.reports import vacuum_report

    del step
    return vacuum_report(open_for_work(directory).vacuum(dry_run=dry_run), dry_run=dry_run)


def back_up(directory: Path, target: Path, *, copy: bool) -> Report:
    """Copy the newest epoch to a directory."""
    from warehouse.cli.reports import backup_report

    return backup_report(open_for_work(directory, compared=False).backup(target, copy=copy), f"backed up to {target}")


def restore(directory: Path, backup: Path, *, replace: bool) -> Report:
    """Restore a backup."""
    from warehouse.cli.reports import backup_report
    from warehouse.project import Warehouse

    return backup_report(Warehouse.restore(directory, backup, replace=replace), f"restored {backup} to {directory}")


def repair(directory: Path, step: Step | None) -> Report:
    """Make the repairs that need no decision."""
    del step
    done = open_for_work(directory, compared=False).repair()
    return Report({"done": list(done)}, done or ("nothing to repair",))


def undo_foreign(directory: Path, table: str | None, step: Step | None, *, dry_run: bool) -> Report:
    """Revert commits of outsiders."""
    del step
    changes = open_for_work(directory, compared=False).undo_foreign(table, dry_run=dry_run)
    lines = [f"would: {change.message}" if dry_run and not change.open else change.message for change in changes]
    record = [
        {"path": change.path, "how": change.how, "to_version": change.to_version, "message": change.message}
        for change in changes
    ]
    messages = tuple(lines) or ("nobody else committed to these tables",)
    return Report({"dry_run": dry_run, "done": record}, messages, exit_code=1 if any(change.open for change in changes) else 0)


def plan_erasure(directory: Path, table: str | None, keys: MakeKeys | None) -> Report:
    """Report the plan of an erasure."""
    from warehouse.cli.erasure import erasure_plan_report

    outlook, _ = open_for_work(directory).erase(table, keys, dry_run=True)
    return erasure_plan_report(outlook)


def erase(directory: Path, table: str | None, keys: MakeKeys | None, step: Step | None) -> Report:
    """Erase the rows of keys, or expired rows."""
    from warehouse.cli.erasure import erasure_report

    warehouse = open_for_work(directory)
    outlook, receipt = warehouse.erase(table, keys, observer=_step_observer(step))
    return erasure_report(warehouse.root, outlook, receipt)

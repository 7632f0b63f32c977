"""The calls of the commands into the library, in one place; every import of it that takes time is inside a function."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.cli.accuracy import Asked
from warehouse.cli.outcome import AnswerTime, Report, Rows, render_turn
from warehouse.errors import NoEpochError
from warehouse.time import rough

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from logging import LogRecord
    from pathlib import Path
    from threading import Event

    from warehouse.epochs.points import Observer
    from warehouse.operations.run import Turn
    from warehouse.project import Warehouse
    from warehouse.serving import Answer, Reader
    from warehouse.serving.keys import KeyColumn

    Step = Callable[[str], None]
    MakeKeys = Callable[[Sequence[KeyColumn]], list[tuple[Any, ...]]]

__all__ = [
    "CONFIGURATION",
    "advised",
    "backed_up",
    "changed",
    "completed",
    "connected",
    "dropped",
    "erased",
    "erasure_foreseen",
    "explained",
    "foreign_undone",
    "kept_up_to_date",
    "migrated",
    "opened",
    "opened_to_work",
    "pictured",
    "planned",
    "probed",
    "queried",
    "rebuilt",
    "reloaded",
    "repaired",
    "restated",
    "restored_backup",
    "rolled_back",
    "sampled",
    "scanned",
    "updated",
    "vacuumed",
    "validated",
]

CONFIGURATION = "warehouse.toml"


def opened(directory: Path) -> Warehouse:
    """Open a project."""
    from warehouse.project import Warehouse

    return Warehouse.open(directory)


def opened_to_work(directory: Path, *, compared: bool = True) -> Warehouse:
    """Open a project for a verb that may start Spark; a damaged warehouse without comparing declarations."""
    import logging

    # py4j logs a traceback at the root logger when Ctrl-C meets a call into the JVM; the command says it in one line
    logging.getLogger().addFilter(_not_of_py4j)
    return opened(directory) if compared else _uncompared(directory)


def _uncompared(directory: Path) -> Warehouse:
    from warehouse.project import Warehouse

    return Warehouse.open(directory, compared=False)


def _not_of_py4j(record: LogRecord) -> bool:
    return "py4j" not in record.pathname


# --- reading ---


def probed(
    directory: Path,
    table: str,
    select: Callable[[Reader], Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    as_of: int | None,
    explain: bool,
    asked: Asked,
) -> Rows:
    """Return the rows of the selection that ``select`` makes for a reader."""
    reader = opened(directory).reader(as_of)
    selection = select(reader)
    answer = reader.probe(table, **selection, **options)

    def why_empty() -> str | None:
        from warehouse.serving.absence import why_no_key

        return None if options["limit"] == 0 else why_no_key(reader, table, selection)

    return replace(_answered(answer, options["now"], asked, explain=explain), why_empty=why_empty)


def scanned(
    directory: Path, table: str, options: Mapping[str, Any], *, as_of: int | None, memory: int | None, timeout: int | None
) -> Rows:
    """Return the live rows of a table."""
    asked, options = Asked.of(options)
    reader = _bounded(directory, as_of, memory, timeout)

    def why_empty() -> str | None:
        from warehouse.serving.absence import why_no_row

        return None if options["limit"] == 0 else why_no_row(reader, table)

    return replace(_answered(reader.scan(table, **options), options["now"], asked), why_empty=why_empty)


def queried(
    directory: Path, query: str, options: Mapping[str, Any], *, as_of: int | None, memory: int | None, timeout: int | None
) -> Rows:
    """Return the answer to a query."""
    asked, options = Asked.of(options)
    return _answered(_bounded(directory, as_of, memory, timeout).sql(query, **options), options["now"], asked)


def changed(directory: Path, table: str, options: Mapping[str, Any]) -> Rows:
    """Return the changes of a table, and the epoch to go on from."""
    answer = opened(directory).reader().changes(table, **options)
    notes = () if options["limit"] is not None else (f"go on with --since {answer.epoch}",)
    return Rows(answer, AnswerTime(answer.epoch, answer.window_time), notes=notes)


def _bounded(directory: Path, as_of: int | None, memory: int | None, timeout: int | None) -> Reader:
    from warehouse.cli.bounds import bounded, for_a_process

    warehouse = opened(directory)
    bounds = bounded(warehouse.sql_bounds, memory, timeout)
    return warehouse.reader(as_of, resources=for_a_process(warehouse.resources(bounds), bounds))


def _answered(answer: Answer, now: int | None, asked: Asked, *, explain: bool = False) -> Rows:
    def explained() -> Mapping[str, object]:
        explain = answer.explain
        if explain is None:
            return {}
        plan = {name: value for name, value in vars(explain.plan).items() if name not in ("table", "tau", "milliseconds")}
        return {
            **plan,
            "rows": explain.rows,
            "planning_milliseconds": round(explain.plan.milliseconds, 3),
            "milliseconds": round(explain.milliseconds, 3),
            "sql": explain.sql,
            "parameters": list(explain.parameters),
        }

    notes: tuple[str, ...] = ()
    if answer.is_renewed:
        answer = answer.held()  # the first rows written fix the epoch of all rows
        behind = "" if answer.newest else ": updates come faster than this answer"
        notes = (f"committed {rough(answer.staleness)} ago{behind}",)
    if answer.within is not None:
        notes = (*notes, str(answer.within))
    moment = AnswerTime(answer.epoch, answer.window_time, now, answer.committed_at)
    notes += asked.notes(answer)
    return Rows(answer, moment, explained if explain else None, notes=notes)


def connected(directory: Path, tool: str, table: str) -> Report:
    """Return the snippet with which a tool reads a table."""
    text = opened(directory).connect(tool, table)
    return Report({"tool": tool, "table": table, "text": text}, tuple(text.splitlines()), data=True)


def pictured(directory: Path, file: Path) -> None:
    """Write the page that shows the warehouse."""
    from warehouse.cli.output.sink import opened as opened_file

    text = opened(directory).report()
    with opened_file(file) as sink:
        sink.write(text.encode())


# --- verbs ---


def validated(directory: Path) -> Report:
    """Check a project's declarations, its views' queries too, and whether they still fit the tables."""
    warehouse = opened(directory)
    catalog = warehouse.catalog
    names = {
        "streams": [stream.name for stream in catalog.streams],
        "relations": [relation.name for relation in catalog.relations],
        "views": [view.name for view in catalog.views],
        "aggregates": [aggregate.name for aggregate in catalog.aggregates],
        "coalesced": [table.name for table in (*catalog.coalesced, *catalog.lazy)],
    }
    warnings = warehouse.validate()
    kinds = {**names, "coalesced tables": names["coalesced"]}
    kinds.pop("coalesced")
    counts = [f"{len(each)} {kind if len(each) != 1 else kind[:-1]}: {', '.join(each)}" for kind, each in kinds.items() if each]
    line = f"{catalog.file}: ok; {'; '.join(counts)}"
    return Report({"file": str(catalog.file), **names}, (line,), warnings=warnings)


def explained(directory: Path, view: str) -> Report:
    """Explain a view, an aggregate or a coalesced table."""
    from warehouse.cli.aggregate_explanation import of_aggregate
    from warehouse.cli.coalesced_explanation import of_coalesced
    from warehouse.cli.explanation import of_view

    warehouse = opened(directory)
    if warehouse.catalog.coalesced_table(view) is not None:
        return of_coalesced(warehouse.explain_coalesced(view))
    if warehouse.catalog.aggregate(view) is not None:
        return of_aggregate(warehouse.explain_aggregate(view))
    return of_view(warehouse.explain(view))


def advised(directory: Path, table: str | None, what_if: str | None) -> Report:
    """Compare layouts."""
    from warehouse.advice import suppose
    from warehouse.cli.advice import of_advice
    from warehouse.errors import UsageError

    if table is not None and what_if is None and opened(directory).catalog.coalesced_table(table) is not None:
        from warehouse.cli.coalesced_explanation import of_choice

        return of_choice(opened(directory).advise_coalesced(table))
    if table is not None:
        return of_advice(opened(directory).advise(table, what_if=what_if))
    if what_if is None:
        raise UsageError("name a table, or suppose one: --what-if lifetimes=1d,rate=100000")
    return of_advice(suppose(what_if, opened(directory).catalog if (directory / CONFIGURATION).is_file() else None))


def updated(directory: Path, options: Mapping[str, Any], step: Step | None) -> Report:
    """Move the windows."""
    from warehouse.cli.reports import of_update

    warehouse = opened_to_work(directory)
    done = warehouse.update(**options, observer=_observer(step))
    with suppress(NoEpochError):
        return of_update(done, warehouse.health(landing=done.landing_now, layouts=False))
    return of_update(done)


def kept_up_to_date(directory: Path, *, delay: int, each: bool, stop: Event) -> Report:
    """Update at every grid point until the event is set."""
    import time

    from warehouse.cli.reports import of_run, of_turn
    from warehouse.operations.run import WallClock

    warehouse = opened_to_work(directory)

    def report_turn(turn: Turn) -> None:
        health = None
        if turn.report is not None:
            with suppress(NoEpochError):
                health = warehouse.health(landing=turn.report.landing_now, layouts=False)
        render_turn(of_turn(turn, health))

    began = time.monotonic()
    succeeded = warehouse.run(delay=delay, each=each, clock=WallClock(stop), report_turn=report_turn)
    return of_run(succeeded, time.monotonic() - began)


def _observer(step: Step | None) -> Observer:
    from warehouse.epochs.points import nobody
    from warehouse.operations.watching import in_words

    return in_words(step) if step else nobody


def _foreign(warehouse: Warehouse) -> tuple[str, ...]:
    from warehouse.epochs.journal import newest_epoch
    from warehouse.operations.standing_still import foreign_notes

    last = newest_epoch(warehouse.root)
    return () if last is None else tuple(each.message for each in foreign_notes(warehouse.root, last))


def planned(directory: Path, options: Mapping[str, Any]) -> Report:
    """Report the plan of an update."""
    from warehouse.cli.reports import of_plan, of_verdicts

    warehouse = opened_to_work(directory, compared=False)  # differences are reported key by key
    changed = warehouse.verdicts()
    if any(verdict.stops for verdict in changed):
        return of_verdicts(changed)
    return of_plan(*warehouse.plan(**options), changed, _foreign(warehouse))


def sampled(directory: Path, rows: int, *, at: int | None, future: bool) -> Report:
    """Report the expected fate of waiting rows."""
    from warehouse.cli.samples import of_samples

    return of_samples(opened_to_work(directory).sample(rows, at=at, future=future))


def reloaded(directory: Path, file: str, step: Step | None) -> Report:
    """Mark a landing file to be loaded again."""
    from warehouse.cli.reports import of_epoch

    del step
    made = opened_to_work(directory).reload(file)
    restated = " and ".join(f"`stream-wh restate {entry.stream} --since first`" for entry in made.files if entry.reload)
    return of_epoch(
        made,
        f"{file} will be loaded by the next update that moves the window. Rows that it gave before stay in the table, too: "
        f"{restated} after that update reads each file once",
    )


def dropped(directory: Path, table: str, step: Step | None) -> Report:
    """Forget a table."""
    from warehouse.cli.reports import of_epoch

    del step
    return of_epoch(opened_to_work(directory).drop(table), f'forgot table "{table}"')


def rolled_back(directory: Path, to_epoch: int, step: Step | None) -> Report:
    """Go back to an epoch's contents."""
    from warehouse.cli.reports import of_rollback

    return of_rollback(opened_to_work(directory).rollback(to_epoch, observer=_observer(step)))


def restated(
    directory: Path, table: str, step: Step | None, *, since: int | str | None, rejected: bool, allow_lost: bool
) -> Report:
    """Read landing files of a table once more."""
    from warehouse.cli.reports import of_restatement

    observer = _observer(step)
    warehouse = opened_to_work(directory, compared=False)  # the declaration may be another than the table's: that is the point
    done = warehouse.restate(table, since=since, rejected=rejected, allow_lost=allow_lost, observer=observer)
    return of_restatement(table, done)


def rebuilt(directory: Path, view: str, step: Step | None) -> Report:
    """Rebuild a view."""
    from warehouse.cli.reports import of_rebuild

    return of_rebuild(view, opened_to_work(directory).rebuild(view, observer=_observer(step)))


def completed(directory: Path, view: str, step: Step | None, *, within: int | None, dry_run: bool = False) -> Report:
    """Make the results that a view owes under its budget."""
    from warehouse.cli.reports import of_completion

    done = opened_to_work(directory).complete(view, within=within, dry_run=dry_run, observer=_observer(step))
    return of_completion(done, dry_run=dry_run)


def migrated(
    directory: Path, table: str | None, options: Mapping[str, Any], step: Step | None, *, dry_run: bool = False
) -> Report:
    """Give tables another layout, other columns or another grid of times."""
    from warehouse.cli.reports import of_migration

    observer = _observer(step)
    warehouse = opened_to_work(directory, compared=False)  # the declaration may be another than the table's: that is the point
    return of_migration(warehouse.migrate(table, **options, dry_run=dry_run, observer=observer), dry_run=dry_run)


def vacuumed(directory: Path, step: Step | None, *, dry_run: bool) -> Report:
    """Remove the files that no readable epoch needs."""
    from warehouse.cli.reports import of_vacuum

    del step
    return of_vacuum(opened_to_work(directory).vacuum(dry_run=dry_run), dry_run=dry_run)


def backed_up(directory: Path, target: Path, *, copy: bool) -> Report:
    """Copy the newest epoch to a directory."""
    from warehouse.cli.reports import of_backup

    return of_backup(opened_to_work(directory, compared=False).backup(target, copy=copy), f"backed up to {target}")


def restored_backup(directory: Path, backup: Path, *, replace: bool) -> Report:
    """Bring a backup back."""
    from warehouse.cli.reports import of_backup
    from warehouse.project import Warehouse

    return of_backup(Warehouse.restore(directory, backup, replace=replace), f"restored {backup} to {directory}")


def repaired(directory: Path, step: Step | None) -> Report:
    """Make the repairs that need no decision."""
    from warehouse.cli.outcome import Report

    del step
    done = opened_to_work(directory, compared=False).repair()
    return Report({"done": list(done)}, done or ("nothing to repair",))


def foreign_undone(directory: Path, table: str | None, step: Step | None, *, dry_run: bool) -> Report:
    """Revert commits of outsiders."""
    from warehouse.cli.outcome import Report

    del step
    done = opened_to_work(directory, compared=False).undo_foreign(table, dry_run=dry_run)
    lines = [f"would: {each.message}" if dry_run and not each.open else each.message for each in done]
    record = [{"path": each.path, "how": each.how, "to_version": each.to_version, "message": each.message} for each in done]
    said = tuple(lines) or ("nobody else committed to these tables",)
    return Report({"dry_run": dry_run, "done": record}, said, exit_code=1 if any(each.open for each in done) else 0)


def erasure_foreseen(directory: Path, table: str | None, keys: MakeKeys | None) -> Report:
    """Report the plan of an erasure."""
    from warehouse.cli.erasure import of_foreseen

    found, _ = opened_to_work(directory).erase(table, keys, dry_run=True)
    return of_foreseen(found)


def erased(directory: Path, table: str | None, keys: MakeKeys | None, step: Step | None) -> Report:
    """Erase."""
    from warehouse.cli.erasure import of_receipt

    warehouse = opened_to_work(directory)
    found, receipt = warehouse.erase(table, keys, observer=_observer(step))
    return of_receipt(warehouse.root, found, receipt)

"""Reports of verbs that write: a few lines for people, and a record with the same facts for programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.cli.epochs import epoch_lines, epoch_record
from warehouse.cli.outcome import Report
from warehouse.planning.wording import table_text
from warehouse.serving.owed_results import cost_of
from warehouse.time import SECOND, format_duration, format_instant, rough
from warehouse.units import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.verdicts import Verdict
    from warehouse.epochs.records import Epoch
    from warehouse.health import Health
    from warehouse.layout import Layout
    from warehouse.operations.backup import Backup
    from warehouse.operations.complete import CompletionReport
    from warehouse.operations.migrate import MigrationReport
    from warehouse.operations.rebuild import RebuildReport
    from warehouse.operations.restate import RestateReport
    from warehouse.operations.rollback import RollbackReport
    from warehouse.operations.run import Turn
    from warehouse.operations.unneeded_files import VacuumReport
    from warehouse.operations.update import UpdateReport
    from warehouse.planning.inputs import LandingFacts
    from warehouse.planning.plan_record import Plan
    from warehouse.steps.kind import StepExplanation

__all__ = [
    "completion_report",
    "epoch_report",
    "migration_report",
    "plan_report",
    "restatement_report",
    "rollback_report",
    "run_report",
    "turn_report",
    "update_report",
    "vacuum_report",
    "verdicts_report",
]

USAGE = 2
_MAX_FILES = 10
_WAY_TEXTS = {"driver": "few rows, in the driver", "spark": "by Spark"}
_MILLISECOND = 1000


def update_report(done: UpdateReport, health: Health | None = None) -> Report:
    """Return the report of an update, with the verdict after it; exit code 1 if landing files or views need a person."""
    problems = list(_update_problems(done))
    lines = [
        *(line for epoch in done.finished for line in _finished_lines(epoch)),
        *(line for epoch in done.epochs for line in epoch_lines(epoch)),
    ]
    if not done.epochs:
        lines.append("nothing to do: the windows are already there")
    lines.extend(_settling_lines(done))
    if done.vacuum.landing:
        lines.append(f"archived {counted(done.vacuum.landing, 'loaded landing file')}")
    if done.vacuum.files:
        lines.append(f"removed {counted(done.vacuum.files, 'file')} no epoch needs, {size_text(done.vacuum.bytes)}")
    problem_lines = [f"{problem['stream']}: {problem['file']}: {problem['message']}" for problem in problems[:_MAX_FILES]]
    if len(problems) > _MAX_FILES:
        problem_lines.append(f"and {len(problems) - _MAX_FILES} more; `stream-wh status` counts them")
    problem_lines += [f'table "{name}" stands still: {why}' for name, why in done.stopped]
    problem_lines += [f'view "{view}" could not be maintained: {why}' for view, why in done.failed_views]
    if health is not None and health.level != "ok":
        problem_lines.append(f"{health.headline}: `stream-wh health`")
    return Report(
        {
            "epochs": [epoch_record(epoch) for epoch in done.epochs],
            "health": health.level if health else None,
            "concerns": msgspec.to_builtins(health.concerns) if health else [],
            "completed": [epoch_record(epoch) for epoch in done.finished],
            "problems": problems,
            "failed_views": [{"view": view, "message": why} for view, why in done.failed_views],
            "stopped": [{"table": name, "message": why} for name, why in done.stopped],
            "removed": msgspec.to_builtins(done.vacuum),
        },
        (*lines, *problem_lines),
        exit_code=1 if problems or done.failed_views or done.stopped else 0,
        warnings=tuple(
            dict.fromkeys(
                (
                    *done.warnings,
                    *_vanished_warnings(done.landing),
                    *_case_warnings(done.landing),
                    *(text for epoch in (*done.finished, *done.epochs) for text in epoch.warnings),
                )
            )
        ),
    )


def turn_report(turn: Turn, health: Health | None) -> Report:
    """Report one update of a run: its result or error, its duration, and the time of the next one."""
    following = max(turn.ended, turn.following)
    took = format_duration((turn.ended - turn.began) // _MILLISECOND * _MILLISECOND)
    times = f"{took}; next update {format_instant(following // SECOND * SECOND)}"
    facts = {"seconds": (turn.ended - turn.began) / SECOND, "next": format_instant(following)}
    if turn.report is None:
        record = {**facts, "code": turn.error.code if turn.error else None, "message": str(turn.error)}
        return Report(record, (f"the update failed: {turn.error}", times), exit_code=1)
    update = update_report(turn.report, health)
    return replace(update, record={**update.record, **facts}, lines=(*update.lines, times))


def run_report(succeeded: int, seconds: float) -> Report:
    """Report the end of a run."""
    text = f"stopped after {counted(succeeded, 'update')} in {rough(int(seconds * SECOND))}"
    return Report({"updates": succeeded, "seconds": round(seconds, 3)}, (text,))


def _finished_lines(epoch: Epoch) -> Iterator[str]:
    if epoch.cause == "adopt":
        yield f"took in what was committed from outside and changed no row (epoch {epoch.number})"
    else:
        yield from ("completed what was begun:", *epoch_lines(epoch))


def epoch_report(epoch: Epoch, text: str) -> Report:
    """Return the report of a verb that wrote one epoch without moving the windows."""
    return Report({"epoch": epoch_record(epoch)}, (f"{text} (epoch {epoch.number})",))


def rollback_report(done: RollbackReport) -> Report:
    """Report the result of a rollback, and when the landing files that it undid are loaded again."""
    epoch, target = done.epoch, done.target
    loaded_again = [file for file in done.forgotten if file.there]
    lost = [file for file in done.forgotten if not file.there]
    former_time, window_time = format_instant(target.window_time), format_instant(epoch.window_time)
    lines = [f"epoch {epoch.number}: what epoch {target.number} (window time {former_time}) held and is live at {window_time}"]
    if loaded_again:
        files = counted(len(loaded_again), "landing file")
        lines.append(f"  {files} loaded since: the next update that moves the windows loads them again")
    if lost:
        names = ", ".join(f"{file.stream}: {file.path}" for file in lost[:_MAX_FILES])
        files = counted(len(lost), "landing file")
        lines.append(f"  {files} loaded since not there any more, so not loaded again: {names}")
    record = {
        "epoch": epoch_record(epoch),
        "contents_of": target.number,
        "forgotten": [{"stream": file.stream, "file": file.path, "there": file.there} for file in done.forgotten],
        "completed": [epoch_record(finished) for finished in done.finished],
    }
    return Report(record, tuple(lines), warnings=(*done.warnings, *epoch.warnings))


def rebuild_report(view: str, done: RebuildReport) -> Report:
    """Report the rebuilt views; exit code 4 if a view differs from its query, or fails."""
    failed = dict(done.failed_views)
    lines = [*epoch_lines(done.epoch), f"{view} rebuilt over the live rows" if view not in failed else f"{view} stands still"]
    record = {
        "view": view,
        "epoch": epoch_record(done.epoch),
        "failed_views": failed,
        "completed": [epoch_record(finished) for finished in done.finished],
    }
    messages = [f'view "{name}" stands still: {reason}' for name, reason in failed.items()]
    return Report(record, tuple(lines), exit_code=4 if failed else 0, warnings=(*messages, *done.epoch.warnings))


def completion_report(done: CompletionReport, *, dry_run: bool) -> Report:
    """Report the owed results that were made, and those still owed; exit code 4 if a view stands still now."""
    failed, ledger = dict(done.failed_views), done.ledger
    lines = [line for epoch in done.epochs for line in epoch_lines(epoch)]
    chunks = f" in {counted(len(done.epochs), 'epoch')}" if done.epochs else ""
    if not dry_run:
        lines.append(f"{counted(done.made, 'result')} of {done.view} made{chunks}")
    count = f"{ledger.most}" if ledger.least == ledger.most else f"{ledger.least} to {ledger.most}"
    lines.append(f"{count} results are owed: `stream-wh complete {done.view}` goes on" if ledger.ranges else "nothing is owed")
    units = sum(1 for _ in ledger.units())
    if units:
        lines.append(f"  {cost_of(units, ledger.rows, ledger.incomplete)}")
    record = {
        "dry_run": dry_run,
        "view": done.view,
        "made": done.made,
        "owed": {
            "least": ledger.least,
            "most": ledger.most,
            "units": units,
            "rows": ledger.rows,
            "incomplete": ledger.incomplete,
        },
        "epochs": [epoch_record(epoch) for epoch in done.epochs],
        "failed_views": failed,
        "completed": [epoch_record(finished) for finished in done.finished],
    }
    messages = [f'view "{name}" stands still: {reason}' for name, reason in failed.items()]
    warnings = (*messages, *(text for epoch in done.epochs for text in epoch.warnings))
    return Report(record, tuple(lines), exit_code=4 if failed else 0, warnings=warnings)


def restatement_report(table: str, done: RestateReport) -> Report:
    """Report the files that a restatement loaded again, and the files that it could not load."""
    lines = [line for epoch in done.epochs for line in epoch_lines(epoch)]
    if not done.epochs:
        lines.append(f"nothing of {table} to try again")
    else:
        stayed = f"; rows of epoch {done.since.number} and before stay" if done.since else ""
        lines.append(f"{counted(len(done.files), 'file')} of {table} read once more{stayed}")
    if done.put_back:
        lines.append(f"{counted(len(done.put_back), 'archived file')} moved back into the landing directory")
    if done.lost:
        lines.append(f"{counted(len(done.lost), 'file')} not there as loaded: {', '.join(done.lost[:_MAX_FILES])}")
    problems = [
        {"stream": entry.stream, "file": left.file.path, "reason": left.reason, "message": left.message}
        for epoch in done.epochs for entry in epoch.files for left in entry.left_out
    ]  # fmt: skip
    lines += [f"{problem['stream']}: {problem['file']}: {problem['message']}" for problem in problems[:_MAX_FILES]]
    record = {
        "table": table,
        "epochs": [epoch_record(epoch) for epoch in done.epochs],
        "since_epoch": done.since.number if done.since else None,
        "files": list(done.files),
        "lost": list(done.lost),
        "put_back": list(done.put_back),
        "problems": problems,
        "completed": [epoch_record(finished) for finished in done.finished],
    }
    messages = tuple(dict.fromkeys((*done.warnings, *(text for epoch in done.epochs for text in epoch.warnings))))
    return Report(record, tuple(lines), exit_code=1 if problems else 0, warnings=messages)


def migration_report(done: MigrationReport, *, dry_run: bool) -> Report:
    """Report the result or the plan of a migration."""
    lines = []
    for table in done.tables:
        written = f"{'to be ' if dry_run else ''}written again"
        rows = f"{counted(table.rows, 'row')} {'stay where they are until they expire' if done.side_by_side else written}"
        lines.append(f"{table.name}: {_layout_text(table.before)} -> {_layout_text(table.after)}; {rows}")
    if done.views:
        lines.append(f"views rebuilt: {', '.join(done.views)}")
    for name, mode in done.switched:
        becomes = "made by each read" if mode == "lazy" else "stored"
        lines.append(f'{name}: {"to be " if dry_run else ""}{becomes} (how = "{mode}")')
    if not done.tables and not done.switched:
        lines.append("nothing to migrate: the tables are as they are declared")
    elif done.epoch is not None:
        lines.insert(0, f"epoch {done.epoch.number}: window time {format_instant(done.epoch.window_time)}, as before")
    record = {
        "epoch": epoch_record(done.epoch) if done.epoch else None,
        "side_by_side": done.side_by_side,
        "dry_run": dry_run,
        "tables": [
            {"table": table.name, "before": table.before.to_json(), "after": table.after.to_json(), "rows": table.rows}
            for table in done.tables
        ],
        "views": list(done.views),
        "switched": dict(done.switched),
        "completed": [epoch_record(finished) for finished in done.finished],
    }
    return Report(record, tuple(lines), data=dry_run, warnings=done.epoch.warnings if done.epoch else ())


def _layout_text(layout: Layout) -> str:
    width = f", blocks of {layout.expiry_block}" if layout.technique == "norebuild" else ""
    axes = f"{layout.insertion} x {layout.expiration}"
    return f"{layout.technique} {layout.rows}x{layout.columns}, {axes}{width}, p = {layout.periods}"


def backup_report(backup: Backup, done: str) -> Report:
    """Report the contents of a backup."""
    record = {
        "epoch": backup.epoch,
        "window_time": format_instant(backup.window_time),
        "made_at": format_instant(backup.made_at),
        "files": len(backup.files),
        "bytes": backup.bytes,
        "linked": backup.linked,
    }
    shared = f", {backup.linked} of them links to the warehouse's own" if backup.linked else ""
    text = f"epoch {backup.epoch}, {counted(len(backup.files), 'file')}, {size_text(backup.bytes)}{shared}"
    return Report(record, (f"{done}: {text}",))


def vacuum_report(freed: VacuumReport, *, dry_run: bool) -> Report:
    """Report the files that a vacuum removed or would remove."""
    verb = "would remove" if dry_run else "removed"
    text = f"{verb} {counted(freed.files, 'file')}, {size_text(freed.bytes)}; {counted(freed.epochs, 'epoch')} out of retain"
    archived = f"; {'would put' if dry_run else 'put'} away {counted(freed.landing, 'landing file')}" if freed.landing else ""
    return Report({"dry_run": dry_run, **msgspec.to_builtins(freed)}, (text + archived,))


def plan_report(
    plan: Plan | None,
    steps: Sequence[StepExplanation],
    landing: Sequence[LandingFacts],
    verdicts: Sequence[Verdict] = (),
    foreign: Sequence[str] = (),
) -> Report:
    """Report the plan of an update, the verdicts on changed keys of the file, and outsiders' commits."""
    problems, keys = list(_landing_problems(landing)), msgspec.to_builtins(verdicts)
    messages = tuple(f"{problem['stream']}: {problem['file']}: {problem['message']}" for problem in problems[:_MAX_FILES])
    verdict_lines = tuple(_verdict_lines(verdicts))
    if plan is None:
        record = {"epoch": None, "steps": [], "problems": problems, "changed_keys": keys}
        return Report(record, ("nothing to do", *verdict_lines, *messages), data=True, warnings=tuple(foreign))
    lines = [f"epoch {plan.epoch}: window time {format_instant(plan.window_time)}"]
    for step in steps:
        size = f" ({size_text(step.bytes)})" if step.bytes else ""
        way = f"; {_WAY_TEXTS[step.way]}" if step.way else ""
        lines.append(f"  {step.step + 1}. {step.action} {table_text(step.table)}: {step.detail}{size}{way}")
    if not steps:
        lines.append("  no table changes")
    lines += [f'  view "{view}" cannot be maintained and stands still: {why}' for view, why in plan.refused]
    lines += [f'  table "{name}" stands still: {why}' for name, why in plan.stopped]
    return Report(
        {
            "epoch": plan.epoch,
            "window_time": format_instant(plan.window_time),
            "slot": plan.slot,
            "previous_slot": plan.previous_slot,
            "steps": msgspec.to_builtins(steps),
            "stopped": [{"table": name, "message": why} for name, why in plan.stopped],
            "problems": problems,
            "changed_keys": keys,
        },
        (*lines, *verdict_lines, *messages),
        data=True,
        warnings=(*plan.warnings, *_case_warnings(landing)),
    )


def verdicts_report(verdicts: Sequence[Verdict]) -> Report:
    """Report the effects of changed keys of the file, if an update cannot follow some of them."""
    record = {"epoch": None, "steps": [], "problems": [], "changed_keys": msgspec.to_builtins(verdicts)}
    lines = ("no update: warehouse.toml does not fit the tables on disk", *_verdict_lines(verdicts))
    return Report(record, lines, data=True, exit_code=USAGE)


def _verdict_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    if verdicts:
        yield "changed in warehouse.toml:"
    for verdict in verdicts:
        values = f"{verdict.before or 'nothing'} -> {verdict.now or 'nothing'}"
        yield f"  {verdict.verdict}: {verdict.key}: {values}: {verdict.why}"


def _update_problems(done: UpdateReport) -> Iterator[Mapping[str, str]]:
    """Yield each landing file that needs a person, once."""
    seen = set()
    for stream, unread in done.left_out:
        seen.add((stream, unread.file.path))
        yield {"stream": stream, "file": unread.file.path, "reason": unread.reason, "message": unread.message}
    for problem in _landing_problems(done.landing):
        if (problem["stream"], problem["file"]) not in seen:
            yield problem


def _landing_problems(landing: Sequence[LandingFacts]) -> Iterator[Mapping[str, str]]:
    for facts in landing:
        for problem in facts.unreadable:
            yield {"stream": facts.stream, "file": problem.file.path, "reason": problem.reason, "message": problem.message}
        for file in facts.changed:
            message = "changed after it was loaded; restore the former file, or load it again as `stream-wh health` says"
            yield {"stream": facts.stream, "file": file.path, "reason": "changed", "message": message}


def _settling_lines(done: UpdateReport) -> Iterator[str]:
    for facts in done.landing:
        if facts.settling:
            yield f"  {facts.stream}: {counted(facts.settling, 'file')} younger than landing_settle wait"


def _case_warnings(landing: Sequence[LandingFacts]) -> Iterator[str]:
    for facts in landing:
        if facts.ignoring_case:
            names = ", ".join(f'"{source}" from "{name}"' for source, name in facts.ignoring_case)
            yield f"{facts.stream}: no name in the files is written as declared, so the case of letters is ignored: {names}"


def _vanished_warnings(landing: Sequence[LandingFacts]) -> Iterator[str]:
    for facts in landing:
        if facts.vanished:
            yield (
                f"{facts.stream}: the landing directory is empty, and {counted(facts.vanished, 'file')} of before gone from it; "
                "should they come back, as from a disk that is mounted again, they are new and loaded once more"
            )

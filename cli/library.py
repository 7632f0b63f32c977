"""The calls of the commands into the library, in one place; every import of it that takes time is inside a function."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.outcome import Moment, Report, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from warehouse.project import Warehouse
    from warehouse.serving import Answer, Reader

    Step = Callable[[str], None]

CONFIGURATION = "warehouse.toml"


def opened(directory: Path) -> Warehouse:
    """Open a project."""
    from warehouse.project import Warehouse

    return Warehouse.open(directory)


# --- reading ---


def probed(
    directory: Path,
    table: str,
    select: Callable[[Reader], Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    as_of: int | None,
    explain: bool,
) -> Rows:
    """Return the rows of what ``select`` makes of the key columns."""
    reader = opened(directory).reader(as_of)
    answer = reader.probe(table, **select(reader), **options)
    return _answered(answer, options["now"], explain=explain)


def scanned(directory: Path, table: str, options: Mapping[str, Any], *, as_of: int | None) -> Rows:
    """Return the live rows of a table."""
    return _answered(opened(directory).reader(as_of).scan(table, **options), options["now"])


def queried(directory: Path, query: str, *, as_of: int | None, now: int | None) -> Rows:
    """Return the answer to a query."""
    return _answered(opened(directory).reader(as_of).sql(query, now=now), now)


def _answered(answer: Answer, now: int | None, *, explain: bool = False) -> Rows:
    def explained() -> Mapping[str, object]:
        told = answer.explain
        if told is None:
            return {}
        plan = {name: value for name, value in vars(told.plan).items() if name not in ("table", "tau", "milliseconds")}
        return {
            **plan,
            "rows": told.rows,
            "planning_milliseconds": round(told.plan.milliseconds, 3),
            "milliseconds": round(told.milliseconds, 3),
            "sql": told.sql,
            "parameters": list(told.parameters),
        }

    moment = Moment(answer.epoch, answer.window_time, now)
    return Rows(answer, moment, explained if explain else None)


# --- verbs ---


def initialised(directory: Path, example: str | None, source: Path | None) -> Report:
    """Write a project."""
    from warehouse.catalog.initialise import write_project

    written = write_project(directory, example, source)
    landing = len(written) - 1
    enter = "" if directory.name in ("", ".") else f"cd {directory} && "
    lines = (
        f"wrote {directory / CONFIGURATION}" + (f" and {landing} landing files" if landing else ""),
        f"next: {enter}stream-wh validate, then stream-wh update",
    )
    record = {"directory": str(directory), "files": [path.relative_to(directory).as_posix() for path in written]}
    return Report(record, lines)


def validated(directory: Path) -> Report:
    """Check a project's declarations, and whether they still fit the tables."""
    catalog = opened(directory).catalog
    names = [stream.name for stream in catalog.streams]
    line = f"{catalog.file}: ok; {len(names)} {'stream' if len(names) == 1 else 'streams'}: {', '.join(names)}"
    return Report({"file": str(catalog.file), "streams": names}, (line,), warnings=catalog.warnings)


def updated(directory: Path, options: Mapping[str, Any], step: Step | None) -> Report:
    """Move the windows."""
    from cli.reports import of_update
    from warehouse.updates.points import nobody

    warehouse = opened(directory)
    if step is None:
        return of_update(warehouse.update(**options, observer=nobody))
    step("starting Spark")
    return of_update(warehouse.update(**options, observer=lambda moment: step(_told(moment))))


def _told(moment: Any) -> str:  # noqa: ANN401 - a moment of the update
    text = f": {moment.text}" if moment.text else ""
    return f"epoch {moment.epoch}: {moment.point.value}{text}" if moment.epoch >= 0 else moment.point.value


def planned(directory: Path, options: Mapping[str, Any]) -> Report:
    """Return what an update would do."""
    from cli.reports import of_plan

    return of_plan(*opened(directory).plan(**options))


def reloaded(directory: Path, file: str, step: Step | None) -> Report:
    """Mark a landing file to be loaded again."""
    from cli.reports import of_epoch

    del step
    return of_epoch(opened(directory).reload(file), f"{file} will be loaded by the next update that moves the window")


def dropped(directory: Path, table: str, step: Step | None) -> Report:
    """Forget a table."""
    from cli.reports import of_epoch

    del step
    return of_epoch(opened(directory).drop(table), f'forgot table "{table}"')


def vacuumed(directory: Path, step: Step | None, *, dry_run: bool) -> Report:
    """Remove what no readable epoch needs."""
    from cli.reports import of_vacuum

    del step
    return of_vacuum(opened(directory).vacuum(dry_run=dry_run), dry_run=dry_run)

"""The calls of commands that read: each opens the project and returns what one method of the library answers.

Every import that takes time is inside a function.
"""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.cli.accuracy import AccuracyOptions
from warehouse.cli.outcome import AnswerTime, Report, Rows
from warehouse.time import rough

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from warehouse.project import Warehouse
    from warehouse.serving import Answer, Reader

__all__ = [
    "CONFIGURATION",
    "advise",
    "changes",
    "connect",
    "explain",
    "open_project",
    "probe",
    "scan",
    "sql",
    "validate",
    "write_report",
]

CONFIGURATION = "warehouse.toml"


def open_project(directory: Path) -> Warehouse:
    """Open a project."""
    from warehouse.project import Warehouse

    return Warehouse.open(directory)


def probe(
    directory: Path,
    table: str,
    select: Callable[[Reader], Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    as_of: int | None,
    explain: bool,
    accuracy: AccuracyOptions,
) -> Rows:
    """Return the rows of the selection that ``select`` makes for a reader."""
    reader = open_project(directory).reader(as_of)
    selection = select(reader)
    answer = reader.probe(table, **selection, **options)

    def why_empty() -> str | None:
        from warehouse.serving.absence import why_no_key

        return None if options["limit"] == 0 else why_no_key(reader, table, selection)

    return replace(_answer_rows(answer, options["now"], accuracy, with_explanation=explain), why_empty=why_empty)


def scan(
    directory: Path, table: str, options: Mapping[str, Any], *, as_of: int | None, memory: int | None, timeout: int | None
) -> Rows:
    """Return the live rows of a table."""
    accuracy, options = AccuracyOptions.of(options)
    reader = _bounded_reader(directory, as_of, memory, timeout)

    def why_empty() -> str | None:
        from warehouse.serving.absence import why_no_row

        return None if options["limit"] == 0 else why_no_row(reader, table)

    return replace(_answer_rows(reader.scan(table, **options), options["now"], accuracy), why_empty=why_empty)


def sql(
    directory: Path, query: str, options: Mapping[str, Any], *, as_of: int | None, memory: int | None, timeout: int | None
) -> Rows:
    """Return the answer to a query."""
    accuracy, options = AccuracyOptions.of(options)
    return _answer_rows(_bounded_reader(directory, as_of, memory, timeout).sql(query, **options), options["now"], accuracy)


def changes(directory: Path, table: str, options: Mapping[str, Any]) -> Rows:
    """Return the changes of a table, and the epoch to go on from."""
    answer = open_project(directory).reader().changes(table, **options)
    notes = () if options["limit"] is not None else (f"go on with --since {answer.epoch}",)
    return Rows(answer, AnswerTime(answer.epoch, answer.window_time), notes=notes)


def _bounded_reader(directory: Path, as_of: int | None, memory: int | None, timeout: int | None) -> Reader:
    from warehouse.cli.bounds import single_query_resources, with_options

    warehouse = open_project(directory)
    bounds = with_options(warehouse.sql_bounds, memory, timeout)
    return warehouse.reader(as_of, resources=single_query_resources(warehouse.resources(bounds), bounds))


def _answer_rows(answer: Answer, now: int | None, accuracy: AccuracyOptions, *, with_explanation: bool = False) -> Rows:
    def explanation_facts() -> Mapping[str, object]:
        explanation = answer.explain
        if explanation is None:
            return {}
        plan = {name: value for name, value in vars(explanation.plan).items() if name not in ("table", "tau", "milliseconds")}
        return {
            **plan,
            "rows": explanation.rows,
            "planning_milliseconds": round(explanation.plan.milliseconds, 3),
            "milliseconds": round(explanation.milliseconds, 3),
            "sql": explanation.sql,
            "parameters": list(explanation.parameters),
        }

    notes: tuple[str, ...] = ()
    if answer.is_renewed:
        answer = answer.held()  # the first rows written fix the epoch of all rows
        behind = "" if answer.newest else ": updates come faster than this answer"
        notes = (f"committed {rough(answer.staleness)} ago{behind}",)
    if answer.within is not None:
        notes = (*notes, str(answer.within))
    answer_time = AnswerTime(answer.epoch, answer.window_time, now, answer.committed_at)
    notes += accuracy.notes(answer)
    return Rows(answer, answer_time, explanation_facts if with_explanation else None, notes=notes)


def connect(directory: Path, tool: str, table: str) -> Report:
    """Return the snippet with which a tool reads a table."""
    text = open_project(directory).connect(tool, table)
    return Report({"tool": tool, "table": table, "text": text}, tuple(text.splitlines()), data=True)


def write_report(directory: Path, file: Path) -> None:
    """Write the page that shows the warehouse."""
    from warehouse.cli.output.sink import open_sink

    text = open_project(directory).report()
    with open_sink(file) as sink:
        sink.write(text.encode())


def validate(directory: Path) -> Report:
    """Check a project's declarations, its views' queries too, and whether they still fit the tables."""
    warehouse = open_project(directory)
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
    counts = [
        f"{len(listed)} {kind if len(listed) != 1 else kind[:-1]}: {', '.join(listed)}"
        for kind, listed in kinds.items()
        if listed
    ]
    line = f"{catalog.file}: ok; {'; '.join(counts)}"
    return Report({"file": str(catalog.file), **names}, (line,), warnings=warnings)


def explain(directory: Path, view: str) -> Report:
    """Explain a view, an aggregate or a coalesced table."""
    from warehouse.cli.aggregate_explanation import aggregate_report
    from warehouse.cli.coalesced_explanation import coalesced_report
    from warehouse.cli.explanation import view_report

    warehouse = open_project(directory)
    if warehouse.catalog.coalesced_table(view) is not None:
        return coalesced_report(warehouse.explain_coalesced(view))
    if warehouse.catalog.aggregate(view) is not None:
        return aggregate_report(warehouse.explain_aggregate(view))
    return view_report(warehouse.explain(view))


def advise(directory: Path, table: str | None, what_if: str | None) -> Report:
    """Compare layouts."""
    from warehouse.advice import advise_what_if
    from warehouse.cli.advice import advice_report
    from warehouse.errors import UsageError

    if table is not None and what_if is None and open_project(directory).catalog.coalesced_table(table) is not None:
        from warehouse.cli.coalesced_explanation import choice_report

        return choice_report(open_project(directory).advise_coalesced(table))
    if table is not None:
        return advice_report(open_project(directory).advise(table, what_if=what_if))
    if what_if is None:
        raise UsageError("name a table, or suppose one: --what-if lifetimes=1d,rate=100000")
    catalog = open_project(directory).catalog if (directory / CONFIGURATION).is_file() else None
    return advice_report(advise_what_if(what_if, catalog))

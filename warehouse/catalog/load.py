"""Loads ``warehouse.toml`` as a :class:`Catalog`, or reports all of its faults at once."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from warehouse.catalog.aggregates import AggregateDraft, definition_of
from warehouse.catalog.allowed_settings import spark_fault
from warehouse.catalog.archives import archive_name_faults
from warehouse.catalog.checks import (
    RELATION_RULES,
    STREAM_RULES,
    RelationDraft,
    StreamDraft,
    layout_warnings,
    view_faults,
)
from warehouse.catalog.coalesced import CoalescedDraft, coalesced_of
from warehouse.catalog.config import (
    AggregateSection,
    CoalescedSection,
    HealthSection,
    RelationSection,
    SqlSection,
    StreamSection,
    ViewSection,
    WarehouseSection,
    read_section,
)
from warehouse.catalog.declared_paths import landing_at, landing_faults, local_path, move_to_faults, root_path
from warehouse.catalog.model import Aggregate, Catalog, Coalesced
from warehouse.catalog.model_from_config import relation_from_section, stream_from_section, view_from_section
from warehouse.catalog.patterns import split_landing
from warehouse.catalog.problem_report import ProblemReport
from warehouse.catalog.retention import DEFAULT_RETAIN, bound_faults, derived_retain, widest_block
from warehouse.catalog.sizes import SqlBounds
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.catalog.values import name_fault, spark_settings
from warehouse.catalog.verdicts import declared_keys
from warehouse.errors import ConfigurationError, Problem
from warehouse.health import Shares, Thresholds
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pydantic import BaseModel

    from warehouse.aggregates.definition import AggregateDefinition
    from warehouse.catalog.view_facts import ViewFacts

__all__ = ["FILE_NAME", "load_catalog"]

FILE_NAME = "warehouse.toml"
_TABLES = ("streams", "relations", "views", "aggregates", "coalesced")
_KINDS = {kind: kind.removesuffix("s") for kind in _TABLES} | {"coalesced": "coalesced table"}
_SECTIONS = ("warehouse", "spark", "sql", "health", *_TABLES)
_Section = TypeVar("_Section", bound="BaseModel")
_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)")


def load_catalog(
    directory: Path, file: Path | None = None, *, facts_of_views: Callable[[Catalog], Mapping[str, ViewFacts]] | None = None
) -> Catalog:
    """Return the declarations of a project.

    Parameters
    ----------
    directory
        The project: where ``warehouse.toml`` is. Paths in the file are relative to it.
    file
        A file to read instead of the project's ``warehouse.toml``.
    facts_of_views
        Returns the facts about a catalog's views that aggregates need. None: an aggregate over a view is refused.

    Raises
    ------
    ConfigurationError
        With every fault of the file.

    """
    file = file or directory / FILE_NAME
    content, raw = _read(file)
    report = ProblemReport(str(file))
    _top_level(raw, report)
    base = Path(os.path.abspath(directory))  # noqa: PTH100 - symbolic links are the user's names for places
    warehouse, root = _warehouse(raw.get("warehouse", {}), base, report)
    _namespace(raw, report)
    drafts = {
        name: StreamDraft(section, faulty, names, warehouse.update_interval)
        for name, section, faulty, names in _sections("streams", StreamSection, raw, report)
    }
    relations = {
        name: RelationDraft(section, faulty, names)
        for name, section, faulty, names in _sections("relations", RelationSection, raw, report)
    }
    views = {name: (section, faulty) for name, section, faulty, _ in _sections("views", ViewSection, raw, report)}
    for name, draft in drafts.items():
        for rule in STREAM_RULES:
            report.add_each(f"streams.{name}", rule(draft))
    over_views = () if facts_of_views is None else _aggregates_over_views(raw)
    aggregates = _aggregates(raw, drafts, warehouse, report, left_out=over_views)
    coalesced = _coalesced(raw, drafts, warehouse, report)
    archived = [name for name, draft in drafts.items() if draft.section.on_expiry == "archive"]
    for name, fault in archive_name_faults(archived, (*drafts, *relations, *views, *aggregates, *coalesced)):
        report.add(f"streams.{name}.on_expiry", fault)
    for name, changes in relations.items():
        for check in RELATION_RULES:
            report.add_each(f"relations.{name}", check(changes))
    for name, (section, faulty) in views.items():
        report.add_each(f"views.{name}", view_faults(section, faulty))
    landings, patterns = _landings(drafts, relations, base, root, report)
    move_to = _move_to(drafts, relations, landings, base, root, report)
    retain = _retention(warehouse, drafts, views, report)
    spark = _spark(raw.get("spark", {}), report)
    sql, faults = read_section(SqlSection, _table(raw.get("sql", {}), "sql", report))
    report.add_section("sql", faults)
    health, faults = read_section(HealthSection, _table(raw.get("health", {}), "health", report))
    report.add_section("health", faults)
    if report.problems or root is None or warehouse.anchor is None or warehouse.update_interval is None:
        raise ConfigurationError(report.problems)
    catalog = Catalog(
        file=base / FILE_NAME,
        root=root,
        anchor=warehouse.anchor,
        update_interval=warehouse.update_interval,
        retain=retain,
        vacuum=warehouse.vacuum,
        spark=spark,
        streams=tuple(
            stream_from_section(
                name,
                draft.section,
                landing_at(landings[f"streams.{name}"], root, patterns[f"streams.{name}"]),
                move_to.get(f"streams.{name}"),
                widest_block(draft.section.erase_within, retain, warehouse.update_interval),
                warehouse,
            )
            for name, draft in drafts.items()
        ),
        relations=tuple(
            relation_from_section(
                name,
                changes.section,
                landing_at(landings[f"relations.{name}"], root, patterns[f"relations.{name}"]),
                move_to.get(f"relations.{name}"),
                warehouse,
            )
            for name, changes in relations.items()
        ),
        views=tuple(
            view_from_section(name, section, widest_block(section.erase_within, retain, warehouse.update_interval), warehouse)
            for name, (section, _) in views.items()
        ),
        digest=hashlib.sha256(content).hexdigest(),
        warnings=_warnings(drafts),
        sql=SqlBounds(sql.memory, sql.spill, sql.timeout),
        read_log=warehouse.read_log == "on",
        keys=declared_keys(raw),
        target_file_size=warehouse.target_file_size,
        verify_views=warehouse.verify_views,
        health=Thresholds(
            **health.model_dump(),
            tables=tuple(
                (name, Shares(**draft.section.health.model_dump()))
                for name, draft in {**drafts, **relations}.items()
                if draft.section.health.model_fields_set
            ),
        ),
        aggregates=tuple(Aggregate(name, definition) for name, definition in aggregates.items() if definition is not None),
        aggregate_time=warehouse.aggregate_time,
        coalesced=tuple(table for table in coalesced.values() if table is not None and table.how != "lazy"),
        lazy=tuple(table for table in coalesced.values() if table is not None and table.how == "lazy"),
    )
    if facts_of_views is None or not over_views:
        return catalog
    aggregates |= _aggregates(
        raw, drafts, warehouse, report, left_out=aggregates.keys() - over_views, views=facts_of_views(catalog)
    )
    if report.problems:
        raise ConfigurationError(report.problems)
    all_aggregates = (Aggregate(name, definition) for name, definition in aggregates.items() if definition is not None)
    return replace(catalog, aggregates=tuple(all_aggregates))


def _read(file: Path) -> tuple[bytes, dict[str, object]]:
    try:
        content = file.read_bytes()
    except OSError as error:
        cause = "no such file" if isinstance(error, FileNotFoundError) else f"an unreadable file ({error.strerror})"
        allowed = "a project directory; `stream-wh init` writes one, -C names another"
        raise ConfigurationError([Problem(str(file), FILE_NAME, cause, allowed)]) from None
    try:
        return content, tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = Problem(str(file), f"line {line}", "bytes that are not UTF-8", "UTF-8 text")
        raise ConfigurationError([problem]) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _LINE.search(message)
        key = f"line {position[1]}, column {position[2]}" if position else "the end of the file"
        cause = _LINE.sub("", message).removesuffix(" (at end of document)")
        raise ConfigurationError([Problem(str(file), key, f"not TOML: {cause}", "TOML 1.0")]) from None
    except RecursionError:
        problem = Problem(str(file), "the file", "values nested too deeply to be read", "the keys that the documentation lists")
        raise ConfigurationError([problem]) from None
    except ValueError as error:  # Python's bound on the digits of an integer
        problem = Problem(str(file), "the file", f"a value that cannot be read ({error})", "numbers below 2^63")
        raise ConfigurationError([problem]) from None


def _top_level(raw: dict[str, object], report: ProblemReport) -> None:
    for key in raw:
        if key not in _SECTIONS:
            allowed = ", ".join(f"[{section}.NAME]" if section in _TABLES else f"[{section}]" for section in _SECTIONS)
            report.add(key, FaultError(f'the unknown key "{key}"', allowed, nearest(key, _SECTIONS)))


def _namespace(raw: dict[str, object], report: ProblemReport) -> None:
    owners: dict[str, str] = {}
    for kind in _TABLES:
        section = raw.get(kind)
        for name in section if isinstance(section, dict) else ():
            owner = owners.setdefault(name, kind)
            if owner != kind:
                found = f'the name "{name}", which a {_KINDS[owner]} has'
                allowed = "one namespace for streams, relations, views, aggregates and coalesced tables"
                report.add(f"{kind}.{name}", FaultError(found, allowed))


def _table(value: object, key: str, report: ProblemReport) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    report.add(key, FaultError(as_written(value), f"a table, [{key}]"))
    return {}


def _warehouse(value: object, base: Path, report: ProblemReport) -> tuple[WarehouseSection, Path | None]:
    section, faults = read_section(WarehouseSection, _table(value, "warehouse", report))
    report.add_section("warehouse", faults)
    for key in ("anchor", "update_interval"):
        if getattr(section, key) is None and key not in faults:
            allowed = WarehouseSection.model_fields[key].description
            report.add(f"warehouse.{key}", FaultError("nothing", f"{allowed} (required)"))
    if section.update_interval == 0:
        report.add("warehouse.update_interval", FaultError('"0s"', "a duration longer than zero"))
        section = section.model_copy(update={"update_interval": None})
    root = None if "root" in faults else root_path(section.root, base, "warehouse.root", report)
    return section, root


def _sections(
    kind: str, model: type[_Section], raw: dict[str, object], report: ProblemReport
) -> Iterator[tuple[str, _Section, frozenset[str], tuple[str, ...]]]:
    """Yield (name, valid keys, faulty keys, all columns) of each ``[kind.NAME]``."""
    for name, content in _table(raw.get(kind, {}), kind, report).items():
        if fault := name_fault(name):
            report.add(f"{kind}.{name}", fault)
        table = _table(content, f"{kind}.{name}", report)
        if not isinstance(content, dict):
            continue
        section, faults = read_section(model, table)
        report.add_section(f"{kind}.{name}", faults)
        columns = table.get("columns")
        yield name, section, frozenset(faults), tuple(columns) if isinstance(columns, dict) else ()


def _aggregates(
    raw: dict[str, object],
    drafts: dict[str, StreamDraft],
    warehouse: WarehouseSection,
    report: ProblemReport,
    *,
    left_out: Collection[str] = (),
    views: Mapping[str, ViewFacts] | None = None,
) -> dict[str, AggregateDefinition | None]:
    """Return the definition of each aggregate; None if it has a fault or is ``left_out``.

    With ``views``, the result does not contain the aggregates that are left out.
    """
    sections = raw.get("aggregates", {})
    definitions: dict[str, AggregateDefinition | None] = (
        dict.fromkeys(sections) if isinstance(sections, dict) and views is None else {}
    )
    asked = {name: keys for name, keys in sections.items() if name not in left_out} if isinstance(sections, dict) else sections
    kinds = _kinds_of_names(raw)
    for name, section, faulty, _ in _sections("aggregates", AggregateSection, {**raw, "aggregates": asked}, report):
        draft = AggregateDraft(section, faulty, drafts, kinds, warehouse.update_interval, views or {})
        definitions[name], faults = definition_of(draft)
        report.add_each(f"aggregates.{name}", faults)
    return definitions


def _aggregates_over_views(raw: dict[str, object]) -> tuple[str, ...]:
    """Return the names of the aggregates that read a view: they are checked after the views."""
    aggregates, kinds = raw.get("aggregates"), _kinds_of_names(raw)
    sections = aggregates.items() if isinstance(aggregates, dict) else ()
    return tuple(name for name, keys in sections if isinstance(keys, dict) and kinds.get(str(keys.get("from"))) == "view")


def _coalesced(
    raw: dict[str, object], drafts: dict[str, StreamDraft], warehouse: WarehouseSection, report: ProblemReport
) -> dict[str, Coalesced | None]:
    """Return each declared coalesced table; None if it has a fault."""
    tables: dict[str, Coalesced | None] = {}
    for name, section, faulty, _ in _sections("coalesced", CoalescedSection, raw, report):
        draft = CoalescedDraft(section, faulty, drafts, _kinds_of_names(raw), warehouse.update_interval)
        definition, faults = coalesced_of(draft)
        tables[name] = None if definition is None else Coalesced(name, definition, section.how)
        report.add_each(f"coalesced.{name}", faults)
    return tables


def _kinds_of_names(raw: dict[str, object]) -> dict[str, str]:
    """Return the kind of each declared name."""
    sections = {kind: raw.get(kind) for kind in _TABLES}
    return {name: _KINDS[kind] for kind, section in sections.items() if isinstance(section, dict) for name in section}


def _landings(
    drafts: dict[str, StreamDraft], relations: dict[str, RelationDraft], base: Path, root: Path | None, report: ProblemReport
) -> tuple[dict[str, Path], dict[str, str | None]]:
    """Return the landing directories, and the patterns in `landing`, by section."""
    sections: dict[str, StreamSection | RelationSection] = {
        **{f"streams.{name}": draft.section for name, draft in drafts.items()},
        **{f"relations.{name}": draft.section for name, draft in relations.items()},
    }
    split_landings = {name: split_landing(section.landing) for name, section in sections.items() if section.landing is not None}
    paths = {name: root_path(location, base, f"{name}.landing", report) for name, (location, _) in split_landings.items()}
    landings = {name: path for name, path in paths.items() if path}
    patterns = {name: pattern for name, (_, pattern) in split_landings.items()}
    shared = {name for name, pattern in patterns.items() if pattern and sections[name].after_load == "keep"}
    for name, fault in landing_faults(landings, root, shared):
        report.add(f"{name}.landing", fault)
    return landings, patterns


def _move_to(
    drafts: dict[str, StreamDraft],
    relations: dict[str, RelationDraft],
    landings: dict[str, Path],
    base: Path,
    root: Path | None,
    report: ProblemReport,
) -> dict[str, Path]:
    """Return the directory for each section's loaded files: the declared one, else ``loaded`` next to the landing directory."""
    declared: list[tuple[str, StreamSection | RelationSection]] = [
        *((f"streams.{name}", draft.section) for name, draft in drafts.items()),
        *((f"relations.{name}", draft.section) for name, draft in relations.items()),
    ]
    move_to: dict[str, Path] = {}
    for name, section in declared:
        if section.after_load != "move" or name not in landings:
            continue
        landing = landings[name]
        if isinstance(landing, ObjectPath):
            continue  # `STREAM_RULES` reports it
        declared_path = section.move_to
        directory = (
            landing.parent / "loaded" / landing.name
            if declared_path is None
            else local_path(declared_path, base, f"{name}.move_to", report)
        )
        if directory is not None:
            move_to[name] = directory
    for name, fault in move_to_faults(move_to, landings, root):
        report.add(f"{name}.move_to", fault)
    return move_to


def _retention(
    warehouse: WarehouseSection,
    drafts: dict[str, StreamDraft],
    views: dict[str, tuple[ViewSection, frozenset[str]]],
    report: ProblemReport,
) -> int:
    """Return ``retain``, derived if it is left out, and report bounds that cannot be kept."""
    bounded = {f"streams.{name}": draft.section.erase_within for name, draft in drafts.items()}
    bounded |= {f"views.{name}": section.erase_within for name, (section, _) in views.items()}
    bounds = {name: bound for name, bound in bounded.items() if bound is not None}
    interval = warehouse.update_interval
    if interval is None:
        return DEFAULT_RETAIN if warehouse.retain is None else warehouse.retain
    retain = derived_retain(warehouse.retain, bounds.values(), interval)
    for name, bound in bounds.items():
        kind, _, short = name.partition(".")
        block = drafts[short].section.layout.expiry_block if kind == "streams" else views[short][0].layout.expiry_block
        reports = kind == "views" and views[short][0].short_lived == "report"
        for fault in bound_faults(
            bound, retain, interval, declared=warehouse.retain is not None, vacuum=warehouse.vacuum, block=block, reports=reports
        ):
            report.add(f"{name}.erase_within", fault)
    return retain


def _spark(value: object, report: ProblemReport) -> tuple[tuple[str, str], ...]:
    try:
        settings = spark_settings(value)
    except FaultError as fault:
        report.add("spark", fault)
        return ()
    for key, _ in settings:
        if setting_fault := spark_fault(key):
            report.add(f"spark.{key}" if not key.startswith("spark.") else key, setting_fault)
    return settings


def _warnings(drafts: dict[str, StreamDraft]) -> tuple[str, ...]:
    if not drafts:
        return ("no [streams.NAME] is declared, so nothing will be loaded",)
    return tuple(f"streams.{name}.layout.{text}" for name, draft in drafts.items() for text in layout_warnings(draft))

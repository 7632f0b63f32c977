"""``warehouse.toml`` to a :class:`Catalog`, or to every fault it has at once."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

from warehouse.catalog.checks import RULES, Draft, layout_spec, layout_warnings
from warehouse.catalog.config import StreamSection, WarehouseSection, read_section
from warehouse.catalog.model import Catalog, Column, Stream
from warehouse.catalog.owned import spark_fault
from warehouse.catalog.places import landing_faults, local_path
from warehouse.catalog.report import Report
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.catalog.types import canonical, parse_type
from warehouse.catalog.values import name_fault, settings
from warehouse.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from warehouse.catalog.model import Format

__all__ = ["FILE_NAME", "load_catalog"]

FILE_NAME = "warehouse.toml"
_SECTIONS = ("warehouse", "spark", "streams")
_LATER = ("views", "relations")
_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)")


def load_catalog(directory: Path) -> Catalog:
    """Return what a project declares.

    Parameters
    ----------
    directory
        The project: where ``warehouse.toml`` is. Paths in the file are relative to it.

    Raises
    ------
    ConfigurationError
        With every fault of the file.

    """
    file = directory / FILE_NAME
    content, raw = _read(file)
    report = Report(str(file))
    _top_level(raw, report)
    base = Path(os.path.abspath(directory))  # noqa: PTH100 - symbolic links are the user's names for places
    warehouse, root = _warehouse(raw.get("warehouse", {}), base, report)
    drafts = _drafts(raw.get("streams", {}), warehouse.update_interval, report)
    for name, draft in drafts.items():
        for rule in RULES:
            for key, fault in rule(draft):
                report.add(f"streams.{name}.{key}", fault)
    landings = {
        name: local_path(draft.section.landing, base, f"streams.{name}.landing", report)
        for name, draft in drafts.items()
        if draft.section.landing is not None
    }
    for name, fault in landing_faults({name: path for name, path in landings.items() if path}, root):
        report.add(f"streams.{name}.landing", fault)
    spark = _spark(raw.get("spark", {}), report)
    if report.problems or root is None or warehouse.anchor is None or warehouse.update_interval is None:
        raise ConfigurationError(report.problems)
    return Catalog(
        file=base / FILE_NAME,
        root=root,
        anchor=warehouse.anchor,
        update_interval=warehouse.update_interval,
        retain=warehouse.retain,
        vacuum=warehouse.vacuum,
        spark=spark,
        streams=tuple(_stream(name, draft.section, cast("Path", landings[name])) for name, draft in drafts.items()),
        digest=hashlib.sha256(content).hexdigest(),
        warnings=_warnings(drafts),
    )


def _read(file: Path) -> tuple[bytes, dict[str, object]]:
    try:
        content = file.read_bytes()
    except OSError as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"an unreadable file ({error.strerror})"
        allowed = "a project directory; `stream-wh init` writes one, -C names another"
        raise ConfigurationError([Problem(str(file), FILE_NAME, found, allowed)]) from None
    try:
        return content, tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = Problem(str(file), f"line {line}", "bytes that are not UTF-8", "UTF-8 text")
        raise ConfigurationError([problem]) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _LINE.search(message)
        key = f"line {place[1]}, column {place[2]}" if place else "the end of the file"
        found = _LINE.sub("", message).removesuffix(" (at end of document)")
        raise ConfigurationError([Problem(str(file), key, f"not TOML: {found}", "TOML 1.0")]) from None


def _top_level(raw: dict[str, object], report: Report) -> None:
    for key in raw:
        if key in _LATER:
            report.add(key, FaultError(f"[{key}]", f"nothing; {key} are not supported by this version"))
        elif key not in _SECTIONS:
            allowed = ", ".join(f"[{section}]" for section in ("warehouse", "spark", "streams.NAME"))
            report.add(key, FaultError(f'the unknown key "{key}"', allowed, nearest(key, _SECTIONS)))


def _table(value: object, key: str, report: Report) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    report.add(key, FaultError(as_written(value), f"a table, [{key}]"))
    return {}


def _warehouse(value: object, base: Path, report: Report) -> tuple[WarehouseSection, Path | None]:
    section, faults = read_section(WarehouseSection, _table(value, "warehouse", report))
    report.add_section("warehouse", faults)
    for key in ("anchor", "update_interval"):
        if getattr(section, key) is None and key not in faults:
            allowed = WarehouseSection.model_fields[key].description
            report.add(f"warehouse.{key}", FaultError("nothing", f"{allowed} (required)"))
    if section.update_interval == 0:
        report.add("warehouse.update_interval", FaultError('"0s"', "a duration longer than zero"))
        section = section.model_copy(update={"update_interval": None})
    root = None if "root" in faults else local_path(section.root, base, "warehouse.root", report)
    return section, root


def _drafts(value: object, interval: int | None, report: Report) -> dict[str, Draft]:
    drafts = {}
    for name, raw in _table(value, "streams", report).items():
        if fault := name_fault(name):
            report.add(f"streams.{name}", fault)
        table = _table(raw, f"streams.{name}", report)
        if not isinstance(raw, dict):
            continue
        section, faults = read_section(StreamSection, table)
        report.add_section(f"streams.{name}", faults)
        columns = table.get("columns")
        names = tuple(columns) if isinstance(columns, dict) else ()
        drafts[name] = Draft(section, frozenset(faults), names, interval)
    return drafts


def _spark(value: object, report: Report) -> tuple[tuple[str, str], ...]:
    try:
        given = settings(value)
    except FaultError as fault:
        report.add("spark", fault)
        return ()
    for key, _ in given:
        if found := spark_fault(key):
            report.add(f"spark.{key}" if not key.startswith("spark.") else key, found)
    return given


def _stream(name: str, section: StreamSection, landing: Path) -> Stream:
    return Stream(
        name=name,
        landing=landing,
        files=section.files,
        format=cast("Format", section.format),
        options=section.options,
        timezone=section.timezone,
        columns=tuple(Column(column, canonical(parse_type(text))) for column, text in section.columns.items()),
        search_key=section.search_key or (),
        arrival=cast("str", section.arrival).strip(),
        expires=section.expires.strip() if section.expires is not None else None,
        max_lifetime=section.max_lifetime,
        over_lifetime=section.over_lifetime,
        max_ahead=section.max_lifetime if section.max_ahead is None else section.max_ahead,
        null_expiry=section.null_expiry,
        unknown_columns=section.unknown_columns,
        landing_settle=section.landing_settle,
        layout=layout_spec(section.layout),
    )


def _warnings(drafts: dict[str, Draft]) -> tuple[str, ...]:
    if not drafts:
        return ("no [streams.NAME] is declared, so nothing will be loaded",)
    return tuple(f"streams.{name}.layout.{text}" for name, draft in drafts.items() for text in layout_warnings(draft))

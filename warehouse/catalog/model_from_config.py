"""Converts checked sections into the frozen values of the catalog, with the defaults of missing keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from warehouse.catalog.checks import layout_spec
from warehouse.catalog.model import Relation, Stream, View
from warehouse.promise.units import ViewBudget

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.config import RelationSection, StreamSection, ViewBudgetSection, ViewSection, WarehouseSection
    from warehouse.catalog.declared_paths import Landing
    from warehouse.catalog.model import Column, Format
    from warehouse.catalog.source_columns import DeclaredColumn

__all__ = ["relation_from_section", "stream_from_section", "view_from_section"]


def stream_from_section(
    name: str, section: StreamSection, landing: Landing, move_to: Path | None, widest: int | None, whole: WarehouseSection
) -> Stream:
    """Return the stream of a valid ``[streams.NAME]``; paths are absolute, ``widest`` is the widest block of a new table.

    ``whole`` is ``[warehouse]``, whose keys apply if the stream's section does not have them.
    """
    return Stream(
        name=name,
        landing=landing.local,
        store=landing.store,
        listing=section.listing,
        files=landing.files or section.files,
        format=cast("Format", section.format),
        options=section.options,
        timezone=section.timezone,
        columns=_columns(section.columns),
        sources=_columns(section.sources),
        partitions=section.partitions,
        search_key=section.search_key or (),
        arrival=cast("str", section.arrival).strip(),
        expires=section.expires.strip() if section.expires is not None else None,
        max_lifetime=section.max_lifetime,
        over_lifetime=section.over_lifetime,
        max_ahead=section.max_lifetime if section.max_ahead is None else section.max_ahead,
        null_expiry=section.null_expiry,
        unknown_columns=section.unknown_columns,
        landing_settle=section.landing_settle,
        stale_after=section.stale_after,
        layout=layout_spec(section.layout),
        max_record=section.max_record,
        max_expansion=section.max_expansion,
        after_load=section.after_load,
        move_to=move_to,
        erase_within=section.erase_within,
        widest_block=widest,
        on_expiry=section.on_expiry,
        publish=section.publish or whole.publish,
        keep=_kept(section.keep, whole),
    )


def relation_from_section(
    name: str, section: RelationSection, landing: Landing, move_to: Path | None, whole: WarehouseSection
) -> Relation:
    """Return the relation of a valid ``[relations.NAME]``; paths and ``whole`` as for a stream."""
    return Relation(
        name=name,
        landing=landing.local,
        store=landing.store,
        listing=section.listing,
        files=landing.files or section.files,
        format=cast("Format", section.format),
        options=section.options,
        timezone=section.timezone,
        columns=_columns(section.columns),
        sources=_columns(section.sources),
        partitions=section.partitions,
        search_key=section.search_key or (),
        changed_at=cast("str", section.changed_at).strip(),
        op=section.op.strip(),
        retroactive=section.retroactive,
        max_ahead=section.max_ahead,
        unknown_columns=section.unknown_columns,
        landing_settle=section.landing_settle,
        stale_after=section.stale_after,
        max_record=section.max_record,
        max_expansion=section.max_expansion,
        after_load=section.after_load,
        move_to=move_to,
        publish=section.publish or whole.publish,
        keep=_kept(section.keep, whole),
    )


def view_from_section(name: str, section: ViewSection, widest: int | None, whole: WarehouseSection) -> View:
    """Return the view of a valid ``[views.NAME]``; ``widest`` and ``whole`` as of a stream."""
    length, rows = section.output_window or (None, None)
    return View(
        name=name,
        sql=cast("str", section.sql),
        search_key=section.search_key or (),
        short_lived=section.short_lived,
        output_length=length,
        output_rows=rows,
        layout=layout_spec(section.layout),
        stale_after=section.stale_after,
        erase_within=section.erase_within,
        widest_block=widest,
        short_lived_declared="short_lived" in section.model_fields_set,
        publish=section.publish or whole.publish,
        keep=_kept(section.keep, whole),
        budget=_budget(section.budget),
    )


def _budget(section: ViewBudgetSection | None) -> ViewBudget | None:
    if section is None:
        return None
    return ViewBudget(section.pairs, section.prefer, section.complete, section.rows, section.seconds)


def _kept(section_keep: int | str | None, warehouse_section: WarehouseSection) -> int | None:
    keep = warehouse_section.keep if section_keep is None else section_keep
    return keep if isinstance(keep, int) else None


def _columns(columns: dict[str, DeclaredColumn]) -> tuple[Column, ...]:
    return tuple(column.named(name) for name, column in columns.items())

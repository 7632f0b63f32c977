"""The sections of ``warehouse.toml`` as they are written: configuration, not yet behaviour.

Every key is optional in these models: each key is validated separately, so that all faults are reported together.
:mod:`warehouse.catalog.checks` decides which keys are required and which fit together. Error messages use a field's description
to say what is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from warehouse.catalog.model import (
    MAX_EXPANSION,
    MAX_RECORD,
    AfterLoad,
    Format,
    How,
    NullExpiry,
    OnExpiry,
    OverLifetime,
    Publish,
    ShortLived,
    UnknownColumns,
    WhichListed,
)
from warehouse.catalog.retention import DEFAULT_KEEP
from warehouse.catalog.sizes import SqlBounds
from warehouse.catalog.source_columns import ColumnValue, SourceValue  # noqa: TC001 - pydantic looks at them, as below
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.catalog.values import (  # noqa: TC001 - pydantic looks at them when the classes are made
    Duration,
    Durations,
    Grid,
    Instant,
    Keep,
    Names,
    Options,
    OutputWindow,
    Partitions,
    SearchKey,
    Selected,
    Size,
    SqlText,
    TimeZone,
    Windows,
)
from warehouse.coalescing.definition import Shed
from warehouse.health import Kind, Thresholds
from warehouse.layout import Expiration, Insertion, Technique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = [
    "AggregateSection",
    "BudgetSection",
    "CoalescedSection",
    "FrequentSection",
    "HealthSection",
    "LayoutSection",
    "RelationHealthSection",
    "RelationSection",
    "SqlSection",
    "StreamHealthSection",
    "StreamSection",
    "ViewSection",
    "WarehouseSection",
    "keys_of",
    "read_section",
]

_Section = TypeVar("_Section", bound=BaseModel)
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


def _words(literal: object) -> str:
    return " | ".join(f'"{word}"' for word in get_args(literal))


class WarehouseSection(BaseModel):
    """``[warehouse]``."""

    model_config = _STRICT

    root: str = Field(default="data", description='a local path such as "data", relative to this file, or s3://BUCKET/PREFIX')
    anchor: Instant | None = Field(default=None, description='an instant such as "2013-01-01T00:00:00Z"')
    update_interval: Duration | None = Field(default=None, description='a duration such as "1h"')
    retain: Duration | None = Field(default=None, description='a duration such as "7d", or "0s"')
    keep: Keep = Field(default=DEFAULT_KEEP, description='a duration such as "90d", or "forever"')
    vacuum: Literal["auto", "manual"] = Field(default="auto", description='"auto" | "manual"')
    read_log: Literal["on", "off"] = Field(default="on", description='"on" | "off"')
    publish: Publish = Field(default="off", description=_words(Publish))
    verify_views: Duration | None = Field(default=None, description='a duration such as "1d"')
    aggregate_time: Duration | None = Field(default=None, description='a duration such as "20s"')
    target_file_size: Size | None = Field(default=None, description='a size such as "256MB", from "1MB" to "1TB"', ge=10**6)


class SqlSection(BaseModel):
    """``[sql]``."""

    model_config = _STRICT

    memory: Size = Field(default=SqlBounds.memory, description='a size such as "2GB"')
    spill: Size = Field(default=SqlBounds.spill, description='a size such as "10GB"')
    timeout: Duration = Field(default=SqlBounds.timeout, description='a duration such as "10m", or "0s" for none')


class HealthSection(BaseModel):
    """``[health]``."""

    model_config = _STRICT

    rejected: Share = Field(default=Thresholds.rejected, description="a share of the rows, from 0 to 1")
    dead_on_arrival: Share = Field(default=Thresholds.dead_on_arrival, description="a share of the rows, from 0 to 1")
    late: Share = Field(default=Thresholds.late, description="a share of the rows, from 0 to 1")
    overdue: Duration | None = Field(default=None, description='a duration such as "2h"')
    disk_free: Size | None = Field(default=None, description='a size such as "20GB"')
    ignore: tuple[Kind, ...] = Field(default=(), description="a list of " + _words(Kind), strict=False)


class RelationHealthSection(BaseModel):
    """``[relations.NAME.health]``: shares of the rows of one table; they replace the shares in ``[health]``."""

    model_config = _STRICT

    rejected: Share | None = Field(default=None, description="a share of the rows, from 0 to 1")
    late: Share | None = Field(default=None, description="a share of the rows, from 0 to 1")


class StreamHealthSection(RelationHealthSection):
    """``[streams.NAME.health]``."""

    dead_on_arrival: Share | None = Field(default=None, description="a share of the rows, from 0 to 1")


class LayoutSection(BaseModel):
    """``[streams.NAME.layout]`` and ``[views.NAME.layout]``."""

    model_config = _STRICT

    technique: Technique | None = Field(default=None, description=_words(Technique))
    grid: Grid | None = Field(default=None, description="[G, E], two whole numbers")
    insertion: Insertion | None = Field(default=None, description=_words(Insertion))
    expiration: Expiration | None = Field(default=None, description=_words(Expiration))
    expiry_block: int | None = Field(default=None, description="a whole number of update intervals, from 1")
    seal: bool | None = Field(default=None, description="true | false")
    seed: int | None = Field(default=None, description="a whole number, from 0", ge=0, le=2**63 - 1)


class StreamSection(BaseModel):
    """``[streams.NAME]``."""

    model_config = _STRICT

    landing: str | None = Field(default=None, description='a directory such as "landing/flights"')
    files: str = Field(default="*", description='a pattern of file names such as "*.csv.gz"', min_length=1)
    listing: WhichListed = Field(default="all", description=_words(WhichListed))
    format: Format | None = Field(default=None, description=_words(Format))
    options: Options = Field(default=(), description='a table such as { delimiter = ";" }')
    partitions: Partitions = Field(default=(), description='a list of columns, such as ["day"], that folders give')
    timezone: TimeZone = Field(default="UTC", description='a time zone such as "UTC"')
    search_key: SearchKey | None = Field(default=None, description="a column, or a list of columns")
    arrival: str | None = Field(default=None, description="a Spark SQL expression that gives ts, e.g. a column")
    expires: str | None = Field(default=None, description="a Spark SQL expression that gives exp; left out: never")
    max_lifetime: Duration | None = Field(default=None, description='a duration such as "1d"')
    over_lifetime: OverLifetime = Field(default="accept", description=_words(OverLifetime))
    max_ahead: Duration | None = Field(default=None, description='a duration such as "1d"')
    null_expiry: NullExpiry = Field(default="reject", description=_words(NullExpiry))
    unknown_columns: UnknownColumns = Field(default="reject", description=_words(UnknownColumns))
    landing_settle: Duration = Field(default=0, description='a duration such as "10s"')
    stale_after: Duration | None = Field(default=None, description='a duration such as "2h"')
    max_record: Size = Field(default=MAX_RECORD, description='a size such as "16MB", at most "1GB"', le=10**9)
    max_expansion: int = Field(default=MAX_EXPANSION, description="a whole number from 1", ge=1, le=10**6)
    after_load: AfterLoad = Field(default="keep", description=_words(AfterLoad))
    move_to: str | None = Field(default=None, description='a directory such as "loaded/flights", with after_load = "move"')
    erase_within: Duration | None = Field(default=None, description='a duration such as "30d"')
    on_expiry: OnExpiry = Field(default="drop", description=_words(OnExpiry))
    keep: Keep | None = Field(default=None, description='a duration such as "90d", or "forever"')
    publish: Publish | None = Field(default=None, description=_words(Publish))
    columns: dict[str, ColumnValue] = Field(default={}, description='a table of columns: name = "Spark SQL type"')
    sources: dict[str, SourceValue] = Field(default={}, description='a table of names in the files: name = "Spark SQL type"')
    layout: LayoutSection = Field(default=LayoutSection(), description="a table of layout keys")
    health: StreamHealthSection = Field(default=StreamHealthSection(), description="a table such as { dead_on_arrival = 0.5 }")


class RelationSection(BaseModel):
    """``[relations.NAME]``: as a stream, with ``changed_at`` and ``op`` in place of arrival and expiry.

    Versions are looked up by key and end when the next change comes. So a relation has no bounded lifetime and no grid, and the
    keys for them, such as ``layout``, do not exist here.
    """

    model_config = _STRICT

    landing: str | None = Field(default=None, description='a directory such as "landing/planes"')
    files: str = Field(default="*", description='a pattern of file names such as "*.csv.gz"', min_length=1)
    listing: WhichListed = Field(default="all", description=_words(WhichListed))
    format: Format | None = Field(default=None, description=_words(Format))
    options: Options = Field(default=(), description='a table such as { delimiter = ";" }')
    partitions: Partitions = Field(default=(), description='a list of columns, such as ["day"], that folders give')
    timezone: TimeZone = Field(default="UTC", description='a time zone such as "UTC"')
    search_key: SearchKey | None = Field(default=None, description="the column, or the columns, that identify a row")
    changed_at: str | None = Field(default=None, description="a Spark SQL expression that gives the time of the change")
    op: str = Field(default="'upsert'", description="a Spark SQL expression that gives 'upsert' or 'delete'")
    retroactive: bool = Field(default=False, description="true | false")
    max_ahead: Duration | None = Field(default=None, description='a duration such as "1d"')
    unknown_columns: Literal["reject", "ignore"] = Field(default="reject", description='"reject" | "ignore"')
    landing_settle: Duration = Field(default=0, description='a duration such as "10s"')
    stale_after: Duration | None = Field(default=None, description='a duration such as "2h"')
    max_record: Size = Field(default=MAX_RECORD, description='a size such as "16MB", at most "1GB"', le=10**9)
    max_expansion: int = Field(default=MAX_EXPANSION, description="a whole number from 1", ge=1, le=10**6)
    after_load: AfterLoad = Field(default="keep", description=_words(AfterLoad))
    move_to: str | None = Field(default=None, description='a directory such as "loaded/flights", with after_load = "move"')
    keep: Keep | None = Field(default=None, description='a duration such as "90d", or "forever"')
    publish: Publish | None = Field(default=None, description=_words(Publish))
    columns: dict[str, ColumnValue] = Field(default={}, description='a table of columns: name = "Spark SQL type"')
    sources: dict[str, SourceValue] = Field(default={}, description='a table of names in the files: name = "Spark SQL type"')
    health: RelationHealthSection = Field(default=RelationHealthSection(), description="a table such as { rejected = 0.5 }")


class ViewBudgetSection(BaseModel):
    """``[views.NAME.budget]``."""

    model_config = _STRICT

    pairs: int | None = Field(default=None, description="a number of results such as 200_000, from 1", ge=1, le=10**12)
    rows: int | None = Field(default=None, description="a number of rows such as 1_000_000, from 2", ge=2, le=10**12)
    seconds: float | None = Field(default=None, description="a number of seconds such as 60, above 0", gt=0, le=10**6)
    prefer: str = Field(default="desc", description='"desc" | "weighted" | "asc", or an expression')
    complete: Literal["later", "never"] = Field(default="later", description='"later" | "never"')


class ViewSection(BaseModel):
    """``[views.NAME]``."""

    model_config = _STRICT

    sql: SqlText | None = Field(default=None, description="a query in Spark SQL")
    search_key: SearchKey | None = Field(default=None, description="an output column, or a list of them")
    short_lived: ShortLived = Field(default="drop", description=_words(ShortLived))
    keep: Keep | None = Field(default=None, description='a duration such as "90d", or "forever"')
    output_window: OutputWindow | None = Field(
        default=None, description='a duration such as "1h", or a whole number of rows from 1'
    )
    stale_after: Duration | None = Field(default=None, description='a duration such as "2h"')
    erase_within: Duration | None = Field(default=None, description='a duration such as "30d"')
    publish: Publish | None = Field(default=None, description=_words(Publish))
    layout: LayoutSection = Field(default=LayoutSection(), description="a table of layout keys")
    budget: ViewBudgetSection | None = Field(default=None, description="a table such as { pairs = 200_000 }")


class FrequentSection(BaseModel):
    """``frequent`` of ``[aggregates.NAME]``."""

    model_config = _STRICT

    item: str | None = Field(default=None, description="a column of the stream")
    above: float | None = Field(default=None, description="a share of the rows between 0 and 1, such as 0.01", gt=0, lt=1)
    top: int | None = Field(default=None, description="how many items, from 1", ge=1, le=10_000)
    k: int | None = Field(default=None, description="how many items the list of a slot has, from 1", ge=1, le=1_000_000)
    exact: bool = Field(default=False, description="true | false")


class AggregateSection(BaseModel):
    """``[aggregates.NAME]``; ``from`` is a keyword of Python, so its field is ``source``."""

    model_config = _STRICT

    source: str | None = Field(default=None, alias="from", description='the name of a stream or view such as "flights"')
    where: SqlText | None = Field(default=None, description="a Spark SQL condition over columns of the stream or view")
    group_by: Names = Field(default=(), description='a column, or a list of them such as ["origin", "year(day) AS year"]')
    select: Selected = Field(default=(), description='a table of values such as { flights = "count(*)", late = "max(delay)" }')
    windows: Windows = Field(default=(), description='a list of durations such as ["1h", "1d"], or of pairs of them')
    every: Durations = Field(default=(), description='a duration such as "6h", or a list with one for each window')
    frequent: FrequentSection | None = Field(default=None, description='a table such as { item = "host", above = 0.01 }')
    over: Literal["arrivals", "live"] = Field(default="arrivals", description='"arrivals" | "live"')
    error: float | None = Field(default=None, description="a share from 0.002 to 0.5, such as 0.01", ge=0.002, le=0.5)
    keep: Duration | None = Field(default=None, description='a duration such as "90d"')
    search_key: SearchKey | None = Field(default=None, description="a column of the answers, or a list of them")


class BudgetSection(BaseModel):
    """``budget`` of ``[coalesced.NAME]``."""

    model_config = _STRICT

    rows: int | None = Field(default=None, description="a number of points such as 50_000", ge=1)
    bytes: Size | None = Field(default=None, description='a size such as "64MB"')
    keep: float | None = Field(default=None, description="a share of the points above 0 and up to 1, such as 0.5", gt=0, le=1)
    accuracy: float | None = Field(default=None, description="a share above 0 and up to 1, such as 0.95", gt=0, le=1)


class CoalescedSection(BaseModel):
    """``[coalesced.NAME]``; ``from`` is a keyword of Python, so its field is ``source``."""

    model_config = _STRICT

    source: str | None = Field(default=None, alias="from", description='the name of a stream such as "readings"')
    group_by: Names = Field(default=(), description='a column of the stream, or a list of them such as ["station"]')
    values: Names = Field(default=(), description='a column of the stream, or a list of them such as ["humidity"]')
    same: SqlText | None = Field(default=None, description='a Spark SQL condition such as "abs(v - previous.v) <= 0.5"')
    of: SqlText | None = Field(default=None, description='a Spark SQL condition over columns of the stream such as "v > 60"')
    window: Duration | None = Field(default=None, description='a duration such as "1d"')
    rows: int | None = Field(default=None, description="a number of points such as 100_000", ge=1)
    how: How = Field(default="auto", description=_words(How))
    search_key: SearchKey | None = Field(default=None, description="a column of the table, or a list of them")
    budget: BudgetSection | None = Field(default=None, description="a table such as { rows = 50_000 }")
    shed: Shed | None = Field(default=None, description=_words(Shed))


_ENDS = "nothing: a version of a relation ends when its key changes next"
_NOT_FOR_RELATIONS = {
    "arrival": "changed_at, the time of the change",
    "expires": _ENDS,
    "max_lifetime": _ENDS,
    "over_lifetime": _ENDS,
    "null_expiry": _ENDS,
    "on_expiry": "nothing: versions that ended stay for as long as they may be looked up",
    "erase_within": "nothing: versions may be looked up after their end; `stream-wh erase NAME --key KEY` removes those of a key",
    "layout": "nothing: a relation is cut by its search key, not on a grid of lifetimes",
}
_NESTED: dict[str, type[BaseModel]] = {
    "layout": LayoutSection,
    "frequent": FrequentSection,
    "budget": BudgetSection,
    "health": StreamHealthSection,
}
_USER_NAMED = frozenset({"columns", "sources"})
"""Tables whose keys are the user's names."""
_SECTIONS: dict[str, type[BaseModel]] = {
    "[warehouse]": WarehouseSection,
    "[sql]": SqlSection,
    "[health]": HealthSection,
    "[streams.NAME]": StreamSection,
    "[streams.NAME.layout]": LayoutSection,
    "[streams.NAME.health]": StreamHealthSection,
    "[relations.NAME]": RelationSection,
    "[views.NAME]": ViewSection,
    "[views.NAME.budget]": ViewBudgetSection,
    "[aggregates.NAME]": AggregateSection,
    "frequent of [aggregates.NAME]": FrequentSection,
    "[coalesced.NAME]": CoalescedSection,
    "budget of [coalesced.NAME]": BudgetSection,
}


def read_section(kind: type[_Section], raw: dict[str, object]) -> tuple[_Section, dict[str, FaultError]]:
    """Return a section without its faulty keys, and the fault of each of these by dotted key.

    Parameters
    ----------
    kind
        The section's model.
    raw
        The section's table as TOML gives it.

    """
    try:
        return kind.model_validate(raw), {}
    except ValidationError as error:
        details = error.errors(include_url=False)
    faults = {".".join(map(str, path)): fault for path, fault in (_fault(kind, detail) for detail in details)}
    valid = _without(raw, set(faults))
    return kind.model_validate(valid), faults


def _without(raw: dict[str, object], dropped: set[str], prefix: str = "") -> dict[str, object]:
    return {
        name: _without(value, dropped, f"{prefix}{name}.") if isinstance(value, dict) else value
        for name, value in raw.items()
        if prefix + name not in dropped
    }


def _nested(kind: type[BaseModel], name: str) -> type[BaseModel]:
    """Return the model of a table within a section; tables of one name have different keys in some sections."""
    if kind is ViewSection and name == "budget":
        return ViewBudgetSection
    return RelationHealthSection if kind is RelationSection else _NESTED[name]


def _fault(kind: type[BaseModel], detail: ErrorDetails) -> tuple[tuple[str, ...], FaultError]:
    first, *rest = (str(part) for part in detail["loc"])
    owner, name = kind, first
    if first in _NESTED and rest:
        owner, name = _nested(kind, first), rest[0]
    path = (first, rest[0]) if rest and (first in _NESTED or first in _USER_NAMED) else (first,)
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, FaultError):
        return path, cause
    fields = keys_of(owner)
    if detail["type"] == "extra_forbidden":
        if owner is RelationSection and name in _NOT_FOR_RELATIONS:
            return path, FaultError(f'the key "{name}"', _NOT_FOR_RELATIONS[name])
        if owner is ViewBudgetSection:
            allowed = f"{', '.join(fields)}: a budget counts results, rows or seconds"
            return path, FaultError(f'the unknown key "{name}"', allowed, nearest(name, fields))
        return path, FaultError(f'the unknown key "{name}"', _where_it_belongs(name, fields), nearest(name, fields))
    allowed = fields[name].description or ""
    value = detail["input"]
    words = [word.strip('"') for word in allowed.split(" | ")] if detail["type"] == "literal_error" else []
    return path, FaultError(as_written(value), allowed, nearest(value, words) if isinstance(value, str) else None)


def keys_of(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a section by their keys in the file."""
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _where_it_belongs(name: str, fields: Iterable[str]) -> str:
    sections = [section for section, kind in _SECTIONS.items() if name in keys_of(kind)]
    return f"in {sections[0]}, where it belongs" if sections else ", ".join(fields)

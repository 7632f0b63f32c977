"""Which tables are published as Delta tables of exactly their live rows, by what is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.publishing.live.publish import LiveRules

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog

__all__ = ["live_rules"]


def live_rules(catalog: Catalog) -> LiveRules:
    """Return what a catalog says of live tables."""
    return LiveRules(catalog.published, tuple(catalog.erase_within), catalog.retain, frees=catalog.vacuum == "auto")

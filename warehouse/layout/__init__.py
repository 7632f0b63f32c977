"""Grid and assignments, techniques, plans of the cells that an update touches, sealing: all pure functions of slots.

The size oracle is in `warehouse.layout.oracle`.
"""

from warehouse.layout.assignment import OVERFLOW_BLOCK, column, exp_block, expired_below, how_long_dead, row, sub_index
from warehouse.layout.layout import Expiration, Insertion, Label, Layout, Technique, warnings
from warehouse.layout.migration import migrated, remaining_share, same_cells
from warehouse.layout.planned import accessed, deleted_columns, inserted_rows, planned_cells
from warehouse.layout.problems import LayoutError, LayoutProblem
from warehouse.layout.resolution import BUCKETS, keyed_layout, resolve
from warehouse.layout.sealing import Seal, closing_cells, sealable, seals
from warehouse.layout.sql import exp_block_sql, slot_sql, sub_index_sql

__all__ = [
    "BUCKETS",
    "OVERFLOW_BLOCK",
    "Expiration",
    "Insertion",
    "Label",
    "Layout",
    "LayoutError",
    "LayoutProblem",
    "Seal",
    "Technique",
    "accessed",
    "closing_cells",
    "column",
    "deleted_columns",
    "exp_block",
    "exp_block_sql",
    "expired_below",
    "how_long_dead",
    "inserted_rows",
    "keyed_layout",
    "migrated",
    "planned_cells",
    "remaining_share",
    "resolve",
    "row",
    "same_cells",
    "sealable",
    "seals",
    "slot_sql",
    "sub_index",
    "sub_index_sql",
    "warnings",
]

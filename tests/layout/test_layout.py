from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from warehouse.errors import WarehouseError
from warehouse.layout import Layout, LayoutError, resolve

from .strategies import layouts


def test_derived_numbers() -> None:
    """F is the slots of a row, rounded up; sub-indices are numbered after the sub-indices of earlier layout versions."""
    layout = resolve(periods=24, label="WK", base=16, version=1)
    assert (layout.rows, layout.columns, layout.rows_span) == (5, 4, 5)
    assert (layout.cells, layout.first_cell, layout.last_cell) == (20, 17, 36)


@settings(max_examples=50)
@given(layout=layouts())
def test_json_round_trip(layout: Layout) -> None:
    """A layout written as JSON and read again is the same layout."""
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"rows": None}, "rows"),
        ({"rows": "4"}, "rows"),
        ({"rows": True}, "rows"),
        ({"seal": 1}, "seal"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_stored_layouts_are_never_guessed(change: dict[str, object], names: str) -> None:
    """A stored layout with a missing, unknown or mistyped key is an error that names the key."""
    stored = resolve(periods=8, label="WK").to_json() | change
    with pytest.raises(ValueError, match=names):
        Layout.from_json({key: value for key, value in stored.items() if value is not None})


def test_a_layout_that_cannot_exist_is_not_made() -> None:
    """Values that cannot stand raise one error, a ValueError of the warehouse, whose text names the allowed values."""
    with pytest.raises(LayoutError, match=r"grid = \[9, 2\]: .* Allowed: G from 1 to 8") as caught:
        replace(resolve(periods=8, label="WK", grid=(2, 2)), rows=9)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, WarehouseError)

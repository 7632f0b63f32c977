"""The layout of a table: how its rows are cut into sub-indices and expiry blocks.

A sub-index of the table holds `{ r : sub_index(layout, r.load_slot, r.exp_slot) = s }`. The layout is frozen with the
table: membership is a pure function of the two slots and of the values here, so it never changes while a row lives.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from warehouse.layout.problems import LayoutError
from warehouse.layout.validity import problems_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Expiration", "Insertion", "Label", "Layout", "Technique"]

Technique: TypeAlias = Literal["norebuild", "rebuild"]
Insertion: TypeAlias = Literal["round-robin", "chronological", "permuted", "staggered"]
Expiration: TypeAlias = Literal["round-robin", "chronological", "permuted", "blocks"]
Label: TypeAlias = Literal["WK", "WKS", "MON", "STR"]


@dataclass(frozen=True)
class Layout:
    """A grid, its two assignments and the technique that keeps it, doubly-partitioned-index sheet, section 3.

    Parameters
    ----------
    technique
        `rebuild` rewrites the touched sub-indices, `norebuild` appends runs and removes past expiry blocks.
    rows, columns
        G insertion rows and E expiration columns, at least 1 each.
    insertion, expiration
        How load slots map to rows and expiration slots to columns.
    periods
        p, the bound on lifetimes in update intervals.
    expiry_block
        w, expiration slots per expiry block; 0 for `rebuild`.
    seal
        Whether runs are merged once when their row closes; False for `rebuild`.
    seed
        Of the `permuted` assignments.
    base
        Cells of all earlier layout versions of the table; its own are numbered `base + 1 .. base + G*E`.
    version
        Number of the layout version, from 0.

    Raises
    ------
    LayoutError
        With every problem, when the values cannot stand together.

    Examples
    --------
    >>> wave = Layout("rebuild", 4, 1, "chronological", "chronological", periods=8, expiry_block=0, seal=False)
    >>> wave.rows_span, wave.cells, wave.last_cell
    (2, 4, 4)
    """

    technique: Technique
    rows: int
    columns: int
    insertion: Insertion
    expiration: Expiration
    periods: int
    expiry_block: int
    seal: bool
    seed: int = 0
    base: int = 0
    version: int = 0

    def __post_init__(self) -> None:
        if found := problems_of(self):
            raise LayoutError(found)

    @property
    def rows_span(self) -> int:
        """F = ceil(p / G): the consecutive load slots of a staggered row."""
        return -(-self.periods // self.rows)

    @property
    def cells(self) -> int:
        """G * E: the number of sub-indices."""
        return self.rows * self.columns

    @property
    def first_cell(self) -> int:
        """The smallest sub-index number."""
        return self.base + 1

    @property
    def last_cell(self) -> int:
        """The largest sub-index number."""
        return self.base + self.cells

    def to_json(self) -> dict[str, object]:
        """The values as a JSON object, keyed by field name."""
        return asdict(self)

    @classmethod
    def from_json(cls, mapping: Mapping[str, object]) -> Layout:
        """The layout that `to_json` wrote.

        Raises
        ------
        ValueError
            When a key is missing, unknown, or its value is of another type: a stored layout is never guessed.
        """
        types = {each.name: _JSON_TYPES.get(str(each.type), str) for each in fields(cls)}
        if odd := sorted(types.keys() ^ mapping.keys()):
            raise ValueError(
                f"a stored layout has exactly the keys {', '.join(types)}; missing or unknown here: {', '.join(odd)}"
            )
        for name, kind in types.items():
            if type(mapping[name]) is not kind:
                raise ValueError(f"{name} of a stored layout is of type {kind.__name__}, found {mapping[name]!r}")
        return cls(
            technique=cast("Technique", mapping["technique"]),
            rows=cast("int", mapping["rows"]),
            columns=cast("int", mapping["columns"]),
            insertion=cast("Insertion", mapping["insertion"]),
            expiration=cast("Expiration", mapping["expiration"]),
            periods=cast("int", mapping["periods"]),
            expiry_block=cast("int", mapping["expiry_block"]),
            seal=cast("bool", mapping["seal"]),
            seed=cast("int", mapping["seed"]),
            base=cast("int", mapping["base"]),
            version=cast("int", mapping["version"]),
        )


_JSON_TYPES: dict[str, type] = {"int": int, "bool": bool}

"""The layout of a table: how its rows are cut into sub-indices and expiry blocks.

A sub-index of the table holds `{ r : sub_index(layout, r.load_slot, r.exp_slot) = s }`. The layout is frozen with the table:
membership is a pure function of the two slots and of the layout, so it never changes while a row lives.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from warehouse.layout.problems import LayoutError, LayoutProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Expiration", "Insertion", "Label", "Layout", "Technique", "warnings"]


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
        if problems := tuple(problem for rule in _RULES for problem in rule(self)):
            raise LayoutError(problems)

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
        """Return the values as a JSON object, keyed by field name."""
        return asdict(self)

    @classmethod
    def from_json(cls, mapping: Mapping[str, object]) -> Layout:
        """Return the layout that `to_json` wrote.

        Raises
        ------
        ValueError
            When a key is missing or unknown, or its value has another type: a stored layout is never guessed.
        """
        types = {field.name: _JSON_TYPES.get(str(field.type), str) for field in fields(cls)}
        if wrong_keys := sorted(types.keys() ^ mapping.keys()):
            raise ValueError(
                f"a stored layout has exactly the keys {', '.join(types)}; missing or unknown here: {', '.join(wrong_keys)}"
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


def _words(layout: Layout) -> Iterator[LayoutProblem]:
    for key, word, words in (
        ("technique", layout.technique, get_args(Technique)),
        ("insertion", layout.insertion, get_args(Insertion)),
        ("expiration", layout.expiration, get_args(Expiration)),
    ):
        if word not in words:
            yield LayoutProblem(key, f'"{word}"', " | ".join(words), f"there is no such {key}.")


def _periods(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.periods < 1:
        yield LayoutProblem(
            "periods", str(layout.periods), "1 or more", "max_lifetime is at least one update interval."
        )


def _numbering(layout: Layout) -> Iterator[LayoutProblem]:
    for key, number in (("base", layout.base), ("version", layout.version)):
        if number < 0:
            yield LayoutProblem(key, str(number), "0 or more", "cells and layout versions are counted up.")


def _grid(layout: Layout) -> Iterator[LayoutProblem]:
    value = f"[{layout.rows}, {layout.columns}]"
    for letter, number, axis in (("G", layout.rows, "rows"), ("E", layout.columns, "columns")):
        if not 1 <= number <= max(1, layout.periods):
            message = f"{letter} = {number} {axis}, and a window of p = {layout.periods} slots has 1 to p of them."
            yield LayoutProblem("grid", value, f"{letter} from 1 to {max(1, layout.periods)}", message)


def _rebuild(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.technique != "rebuild":
        return
    if layout.insertion == "staggered":
        message = "rows are staggered only where runs are appended."
        yield LayoutProblem("insertion", '"staggered"', 'another assignment, or technique = "norebuild"', message)
    if layout.expiration == "blocks":
        message = "columns are expiry blocks only where runs are appended."
        yield LayoutProblem("expiration", '"blocks"', 'another assignment, or technique = "norebuild"', message)
    if layout.expiry_block:
        message = "a rewritten sub-index is one run and has no expiry blocks."
        yield LayoutProblem("expiry_block", str(layout.expiry_block), 'leave it out, or technique = "norebuild"', message)
    if layout.seal:
        message = "a rewritten sub-index is one run already, there is nothing to seal."
        yield LayoutProblem("seal", "true", 'leave it out, or technique = "norebuild"', message)


def _norebuild(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.technique != "norebuild":
        return
    width, columns, periods = layout.expiry_block, layout.columns, layout.periods
    if not 1 <= width <= max(1, periods):
        message = f"an expiry block has at least 1 and at most p = {periods} expiration slots."
        yield LayoutProblem("expiry_block", str(width), f"1 to {max(1, periods)}", message)
    elif layout.expiration == "blocks" and 1 < columns <= periods and width * columns < periods:
        message = f"w * E = {width * columns} is below p = {periods}: the columns do not span a window."
        yield LayoutProblem("expiry_block", str(width), f"{-(-periods // columns)} or more with {columns} columns", message)
    if layout.seal and (layout.insertion, layout.expiration) != ("staggered", "blocks"):
        message = "only staggered rows of block columns close for good; other assignments cannot be sealed."
        allowed = 'false, or insertion = "staggered" with expiration = "blocks"'
        yield LayoutProblem("seal", "true", allowed, message)


_RULES: tuple[Callable[[Layout], Iterator[LayoutProblem]], ...] = (
    _words,
    _periods,
    _numbering,
    _grid,
    _rebuild,
    _norebuild,
)
"""The conditions for a possible layout; each yields every problem that it finds."""


# --- warnings about layouts that can exist but cost more than their owner may expect ---


def warnings(layout: Layout, *, grid_declared: bool = True) -> tuple[str, ...]:
    """Return warnings about costs that the owner of a layout may not expect: doubly-partitioned-index sheet, 10 (row 11) and 11.

    Parameters
    ----------
    layout
        A layout that can exist.
    grid_declared
        False when the grid is a default: small windows then have more than p/2 columns by default.
    """
    return (*(_coarse(layout) if grid_declared else ()), *_append_axes(layout))


def _coarse(layout: Layout) -> Iterator[str]:
    for letter, number, axis in (("G", layout.rows, "insertion"), ("E", layout.columns, "expiration")):
        if number > 1 and 2 * number > layout.periods:
            yield (
                f"grid: {letter} = {number} {axis} parts over p = {layout.periods} update intervals leave fewer than"
                f" two slots in a part; {letter} <= {layout.periods // 2} updates fewer sub-indices for the same size."
            )


def _append_axes(layout: Layout) -> Iterator[str]:
    if layout.technique == "rebuild":
        return
    runs = layout.periods + layout.periods**2 // (2 * layout.expiry_block)
    if layout.insertion != "staggered":
        yield (
            f'insertion = "{layout.insertion}": rows of the grid do not fill in one stretch, so their runs cannot'
            f' be sealed; about {runs} runs stay and every probe looks at them. Use "staggered".'
        )
    if layout.expiration != "blocks":
        spread = min(layout.columns, layout.expiry_block)
        yield (
            f'expiration = "{layout.expiration}": a column holds expiration slots from the whole window, so each update'
            f" writes up to {spread} runs for every expiry block instead of one, and none can be sealed;"
            f' about {runs * spread} runs stay. Use "blocks".'
        )

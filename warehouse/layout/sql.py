"""The same formulas as Spark SQL text, exact on 64-bit integers of any sign, ANSI mode on.

Spark's `div` and `%` truncate towards zero, so floor division is written `(x - pmod(x, n)) div n`; where the dividend
cannot be negative plain `div` is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from warehouse.layout.assignment import OVERFLOW_BLOCK

if TYPE_CHECKING:
    from warehouse.layout.assignment import Tag
    from warehouse.layout.layout import Layout

__all__ = ["exp_block_sql", "slot_sql", "sub_index_sql"]


def slot_sql(instant: str, anchor_us: int, interval_us: int) -> str:
    """Return the slot of an instant, `ceil((t - A) / Δ)`, doubly-partitioned-index sheet, section 3.2.

    Parameters
    ----------
    instant
        Spark SQL expression of type timestamp.
    anchor_us, interval_us
        A and Δ in microseconds.
    """
    since = f"(unix_micros({instant}) - ({_literal(anchor_us)}))"
    return f"(({since} + pmod(-{since}, {_literal(interval_us)})) div {_literal(interval_us)})"


def sub_index_sql(layout: Layout, load_slot: str, exp_slot: str, never: str) -> str:
    """Return `sub_index` as Spark SQL of type int.

    Parameters
    ----------
    layout
        The layout of the table.
    load_slot, exp_slot
        Expressions of type bigint.
    never
        Boolean expression, true for rows that never expire.
    """
    a, b = f"({load_slot})", f"({exp_slot})"
    e = _expiration_column(layout, b)
    if layout.technique == "norebuild":
        e = f"(CASE WHEN ({never}) OR {b} > {a} + {_literal(layout.periods)} THEN 0L ELSE {e} END)"
    g = _row(layout, a, e)
    return f"CAST({_literal(layout.base + 1)} + {g} * {_literal(layout.columns)} + {e} AS INT)"


def exp_block_sql(layout: Layout, load_slot: str, exp_slot: str, never: str) -> str:
    """`exp_block` as Spark SQL of type bigint; its parameters are the same as for `sub_index_sql`."""
    if layout.technique == "rebuild":
        return "0L"
    a, b = f"({load_slot})", f"({exp_slot})"
    forever = f"{_literal(OVERFLOW_BLOCK + 1)} + {_floor_div(f'{a} - 1L', layout.rows * layout.rows_span)}"
    is_overflow = f"{b} > {a} + {_literal(layout.periods)}"
    block = _floor_div(f"{b} - 1L", layout.expiry_block)
    return f"(CASE WHEN ({never}) THEN {forever} WHEN {is_overflow} THEN {_literal(OVERFLOW_BLOCK)} ELSE {block} END)"


def _row(layout: Layout, a: str, e: str) -> str:
    match layout.insertion:
        case "round-robin":
            return f"pmod({a} - 1L, {_literal(layout.rows)})"
        case "chronological":
            return _segment(a, layout.rows, layout.periods)
        case "permuted":
            return _permuted(layout.seed, "ins", a, layout.rows)
        case "staggered":
            span = layout.rows_span
            ahead = f"({e} * {_literal(span)}) div {_literal(layout.columns)}"
            return f"(pmod({a} - 1L + ({ahead}), {_literal(layout.rows * span)}) div {_literal(span)})"
        case _:
            assert_never(layout.insertion)


def _expiration_column(layout: Layout, b: str) -> str:
    match layout.expiration:
        case "round-robin":
            return f"pmod({b} - 1L, {_literal(layout.columns)})"
        case "chronological":
            return _segment(b, layout.columns, layout.periods)
        case "permuted":
            return _permuted(layout.seed, "exp", b, layout.columns)
        case "blocks":
            return f"pmod({_floor_div(f'{b} - 1L', layout.expiry_block)}, {_literal(layout.columns)})"
        case _:
            assert_never(layout.expiration)


def _segment(slot: str, parts: int, periods: int) -> str:
    return f"((pmod({slot} - 1L, {_literal(periods)}) * {_literal(parts)}) div {_literal(periods)})"


def _permuted(seed: int, tag: Tag, slot: str, size: int) -> str:
    # `_part` cannot be a user's column: names that begin with an underscore are reserved.
    cycle = _floor_div(f"{slot} - 1L", size)
    text = f"concat('{seed}:{tag}:', CAST({cycle} AS STRING), ':', CAST(_part AS STRING))"
    pair = f"named_struct('digest', sha2({text}, 256), 'part', _part)"
    keyed = f"transform(sequence(0L, {_literal(size - 1)}), _part -> {pair})"
    return f"element_at(array_sort({keyed}), CAST(pmod({slot} - 1L, {_literal(size)}) + 1L AS INT)).part"


def _floor_div(dividend: str, divisor: int) -> str:
    return f"((({dividend}) - pmod({dividend}, {_literal(divisor)})) div {_literal(divisor)})"


def _literal(number: int) -> str:
    return f"{number}L"

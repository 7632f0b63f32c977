"""The size oracle: how many live rows each sub-index is expected to hold.

Sizes are in units u = λ/p, the rows expected for one pair of load slot and expiration slot under uniform lifetimes. The
live rows after update k are the pairs `{ (a, b) : k-p < a <= k < b <= a+p }`, and a pair counts by its distance b - a;
this holds for every layout, so the oracle is the model that other sizes are tested against; doubly-partitioned-index
sheet, section 6.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from warehouse.layout.assignment import sub_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.layout.layout import Layout

__all__ = ["Model", "expected_size", "expected_sizes", "lifetime_weights", "uniform_weights"]

Model: TypeAlias = Literal["C", "W"]
"""C: lifetimes continuous and uniform on (0, S], instants uniform in their slot. W: whole slots, uniform on 1..p."""


def uniform_weights(periods: int, model: Model = "C") -> tuple[Fraction, ...]:
    """Return the weight of each distance b - a = 1..p in units u; in model C half of distance p is dead on arrival instead.

    Examples
    --------
    >>> [str(weight) for weight in uniform_weights(3)]
    ['1', '1', '1/2']
    """
    match model:
        case "C":
            return (*(Fraction(1),) * (periods - 1), Fraction(1, 2))
        case "W":
            return (Fraction(1),) * periods
        case _:
            assert_never(model)


def lifetime_weights(integral: Callable[[float], float], periods: int) -> tuple[float, ...]:
    """Return the weight of each distance 1..p in units u for any lifetimes; instants are uniform in their slot.

    A row at distance v before the end of its slot has b - a = d iff d-1+v < L <= d+v, so the share of distance d is the
    second difference of the integrated distribution function.

    Parameters
    ----------
    integral
        H(x), the integral from 0 to x of P(L <= t) dt, with lifetimes in slots; 0 for x <= 0.
    periods
        p, the bound on lifetimes.
    """
    return tuple(periods * (integral(d + 1) - 2 * integral(d) + integral(d - 1)) for d in range(1, periods + 1))


def expected_sizes(
    layout: Layout,
    k: int,
    weights: Sequence[Fraction | float],
    rate: Callable[[int], float] | None = None,
) -> dict[int, Fraction | float]:
    """Return the expected live rows of every sub-index after update k, in units u.

    Parameters
    ----------
    layout
        The layout; its p bounds the load slots that still have live rows.
    k
        Update number.
    weights
        Weight of the distances b - a = 1, 2, .., at most p.
    rate
        Rows of a load slot relative to λ; constant 1 when left out.
    """
    sizes: dict[int, Fraction | float] = dict.fromkeys(range(layout.first_cell, layout.last_cell + 1), 0)
    for a in range(k - layout.periods + 1, k + 1):
        scale = 1 if rate is None else rate(a)
        for distance, weight in enumerate(weights, start=1):
            if a + distance > k:
                sizes[sub_index(layout, a, a + distance)] += scale * weight
    return sizes


def expected_size(layout: Layout, g: int, e: int, k: int, model: Model = "C") -> Fraction:
    """Return the expected live rows of cell (g, e) after update k under uniform lifetimes, in units u.

    Examples
    --------
    >>> from warehouse.layout import resolve
    >>> layout = resolve(periods=8, label="WK", technique="rebuild", grid=(2, 2))
    >>> [int(expected_size(layout, g, e, 8, "W")) for g in range(2) for e in range(2)]
    [10, 6, 10, 10]
    """
    sizes = expected_sizes(layout, k, uniform_weights(layout.periods, model))
    return Fraction(sizes[layout.base + g * layout.columns + e + 1])

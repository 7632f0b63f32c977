"""Chooses the order in which the inputs of a window join are probed, by its cost: window-joins sheet, section 8.

An order is a tuple of inputs, the outermost loop first. A new row of an input is a one-row window placed before all others: it
probes the other inputs in the order's sequence. Costs are rows compared per unit of time in steady state; work that is the same
for all orders (inserting, expiring) is left out. Numbers are exact fractions, so that equal costs are recognised as equal.

The estimates assume arrivals at constant rates; evenly distributed values; *containment* (the input with fewer values has a
subset of the other's values); and, for joins on several attributes, *independence* of the attributes. Rows with a null key have
no partner and are not counted. Skewed keys break this: :class:`KeyCounts` then gives the same figures from counted keys.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, permutations
from math import inf, prod
from typing import TypeAlias

__all__ = [
    "BestOrder",
    "Cost",
    "JoinInput",
    "KeyCounts",
    "Order",
    "PartialResult",
    "all_costs",
    "base_order",
    "batch_cost",
    "best_order",
    "candidate_orders",
    "fast_inputs",
    "grouped_cost",
    "grouping_factor",
    "matches",
    "new_rows_cost",
    "partial_results",
    "probe_sequence",
    "probing_cost",
    "selectivity",
]

Number: TypeAlias = float | Fraction

_ONE_CLASS = ""


@dataclass(frozen=True)
class JoinInput:
    """An input of a join as the cost model sees it: section 1 of the sheet.

    Any of the numbers may be zero; an input without rows makes every estimate that it takes part in zero.

    Parameters
    ----------
    name
        The name of the input, unique in a join.
    rate
        λ: rows that arrive per unit of time.
    lifetime
        T: how long a row lives, in the same unit; if lifetimes vary, their mean, which gives the same window.
        ``math.inf`` for an input that never expires, together with `rows`.
    distinct
        v: distinct values of the join attribute in the window. For a join on several attributes a mapping from equality
        class (the columns that must all be equal, under one name) to distinct values; a class that an input does not
        name does not restrict it. Less than 1 counts as 1.
    rows
        W: rows in the window if they were counted; ``rate * lifetime`` if not.
    buckets
        b: hash buckets of the window; 1 is a list that is scanned completely.

    Raises
    ------
    ValueError
        When a number is negative or not a number, `rows` is missing for an infinite lifetime, or `buckets` is below 1.
    """

    name: str
    rate: Number
    lifetime: Number
    distinct: Number | Mapping[str, Number]
    rows: Number | None = None
    buckets: int = 1

    def __post_init__(self) -> None:
        counts = self.distinct.values() if isinstance(self.distinct, Mapping) else [self.distinct]
        rows = self.lifetime if self.rows is None else self.rows
        if not (all(0 <= number < inf for number in (self.rate, rows, *counts)) and self.lifetime >= 0):
            raise ValueError(f"{self}: give numbers of 0 or more, and the rows of an input whose rows never expire")
        if self.buckets < 1:
            raise ValueError(f"{self}: give 1 bucket or more")

    @cached_property
    def window(self) -> Fraction:
        """W: the rows in the window."""
        return Fraction(self.rate) * Fraction(self.lifetime) if self.rows is None else Fraction(self.rows)

    @cached_property
    def values(self) -> Mapping[str, Fraction]:
        """Distinct values for each equality class, each at least 1."""
        classes = self.distinct if isinstance(self.distinct, Mapping) else {_ONE_CLASS: self.distinct}
        return {name: max(Fraction(count), Fraction(1)) for name, count in classes.items()}


Order: TypeAlias = tuple[JoinInput, ...]
Cost: TypeAlias = Callable[[Order], Fraction]


@dataclass(frozen=True)
class PartialResult:
    """The expected partial result of a join: its rows, and for each equality class the remaining distinct values."""

    rows: Fraction
    values: Mapping[str, Fraction]

    def probe(self, window: JoinInput) -> PartialResult:
        """Return the result joined with one more window: φ·W / max(V, v), then V = min(V, v), for each common class."""
        remaining = {name: min(self.values.get(name, count), count) for name, count in window.values.items()}
        rows = self.rows * window.window * selectivity(self.values, window.values)
        return PartialResult(rows, {**self.values, **remaining})


def selectivity(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> Fraction:
    """Return the share of all pairs that join: the product of 1/max(v, v') over the common classes; 1 without a common class.

    Parameters
    ----------
    one, other
        Distinct values for each equality class, as in `JoinInput.values` and `PartialResult.values`.
    """
    return 1 / prod((max(one[name], other[name]) for name in one.keys() & other.keys()), start=Fraction(1))


def matches(inputs: Sequence[JoinInput]) -> Fraction:
    """Return φ of a set of windows, the rows of their join: ΠW / (Πv / min v), the quotient taken for each equality class.

    It does not depend on the order, and equals the steps of :meth:`PartialResult.probe` together.
    """
    rows = prod((join_input.window for join_input in inputs), start=Fraction(1))
    for name in {name for join_input in inputs for name in join_input.values}:
        counts = [join_input.values[name] for join_input in inputs if name in join_input.values]
        rows *= min(counts) / prod(counts, start=Fraction(1))
    return rows


def probe_sequence(order: Order, new: JoinInput) -> Order:
    """Return the inputs that a new row of one input probes: the order without that input, section 3."""
    return tuple(join_input for join_input in order if join_input.name != new.name)


def partial_results(new: JoinInput, probes: Order) -> tuple[PartialResult, ...]:
    """Return the results of one new row before any probe and after each: M_0 = 1, M_1, ..."""
    results = [PartialResult(Fraction(1), new.values)]
    for window in probes:
        results.append(results[-1].probe(window))
    return tuple(results)


def new_rows_cost(new: JoinInput, probes: Order) -> Fraction:
    """Return X_i: rows compared per unit of time for new rows of one input, λ·ΣM·W, with a hash index λ·ΣM·W/b.

    A bucket is never taken for smaller than the matches in it. So W/b, which assumes no more buckets than values, ends
    where each value has a bucket of its own.
    """
    compared = Fraction(0)
    for window, (before, after) in zip(probes, pairwise(partial_results(new, probes)), strict=True):
        compared += max(before.rows * window.window / window.buckets, after.rows)
    return Fraction(new.rate) * compared


def probing_cost(order: Order) -> Fraction:
    """Return ΣX: rows compared per unit of time by eager evaluation (Algorithm 2): nested loops, or hash by the inputs' buckets.

    Raises
    ------
    ValueError
        When there are fewer than two inputs, or two have one name.

    Examples
    --------
    >>> slow, fast = JoinInput("slow", rate=1, lifetime=60, distinct=20), JoinInput("fast", rate=10, lifetime=60, distinct=5)
    >>> probing_cost((slow, fast))
    Fraction(1200, 1)
    """
    _check(order)
    return sum((new_rows_cost(new, probe_sequence(order, new)) for new in order), start=Fraction(0))


def batch_cost(interval: Number) -> Cost:
    """Return the cost of a batch of hash joins: rows of all intermediate results and of the result, Σλ·Δ·ΣM.

    The result's own rows are the same for every order.
    """

    def cost(order: Order) -> Fraction:
        _check(order)
        total = Fraction(0)
        for new in order:
            _, *joined = partial_results(new, probe_sequence(order, new))
            total += Fraction(new.rate) * sum(result.rows for result in joined)
        return Fraction(interval) * total

    return cost


def grouping_factor(new: JoinInput, interval: Number) -> Fraction:
    """Return the share of probes that remain if a batch probes once for each distinct value: E[distinct] / (λΔ).

    E[distinct] = v·(1 - (1 - 1/v)^(λΔ)), v being the combinations of values where there are several attributes. It is
    the expectation for whole rows only: up to one row a batch nothing is grouped, and the factor is 1.
    """
    batch = float(new.rate * Fraction(interval))
    if batch <= 1:
        return Fraction(1)
    values = float(prod(new.values.values(), start=Fraction(1)))
    return Fraction(values * (1 - (1 - 1 / values) ** batch) / batch)


def grouped_cost(interval: Number) -> Cost:
    """Return the cost of lazy evaluation (Algorithms 4 and 5), which probes once for the equal values of a batch."""

    def cost(order: Order) -> Fraction:
        _check(order)
        factors = {new.name: grouping_factor(new, interval) for new in order}
        return sum((factors[new.name] * new_rows_cost(new, probe_sequence(order, new)) for new in order), start=Fraction(0))

    return cost


@dataclass(frozen=True)
class KeyCounts:
    """The model without its assumptions, from rows counted for each key: section 12, last lines.

    ``best_order(inputs, cost=counts.cost, size=counts.matches)`` orders by it. It uses the names of the inputs,
    and the rates of the fast inputs. Keys belong to one equality class.

    Parameters
    ----------
    windows
        For each input, rows in the window for each key.
    arrivals
        For each input, rows of one batch for each key.
    """

    windows: Mapping[str, Mapping[Hashable, int]]
    arrivals: Mapping[str, Mapping[Hashable, int]]

    def matches(self, inputs: Sequence[JoinInput]) -> Fraction:
        """Return the rows of the join of these windows: Σ over the keys of the product of the counts."""
        first, *other_windows = (self.windows[join_input.name] for join_input in inputs)
        return Fraction(sum(count * prod(counts.get(key, 0) for counts in other_windows) for key, count in first.items()))

    def cost(self, order: Order) -> Fraction:
        """Return :func:`batch_cost` as counted: rows of all intermediate and final results if a batch of each input probes."""
        _check(order)
        total = 0
        for new in order:
            joined = dict(self.arrivals[new.name])
            for window in probe_sequence(order, new):
                counts = self.windows[window.name]
                joined = {key: count * counts[key] for key, count in joined.items() if key in counts}
                total += sum(joined.values())
        return Fraction(total)


@dataclass(frozen=True)
class BestOrder:
    """The cheapest candidate, its cost, and every candidate with its cost; the base order is the first of them."""

    order: Order
    cost: Fraction
    candidates: tuple[tuple[Order, Fraction], ...]


def best_order(
    inputs: Sequence[JoinInput], cost: Cost = probing_cost, size: Callable[[Sequence[JoinInput]], Fraction] = matches
) -> BestOrder:
    """Choose an order by the heuristic of section 8.3: most selective joins first, then fast inputs at other places.

    With f fast inputs of n, n!/(n-f)! orders are costed. Of equally cheap ones the lexicographically smallest is taken,
    by the places of `inputs`.

    Parameters
    ----------
    inputs
        Two or more, with different names.
    cost
        The cost to minimise: :func:`probing_cost`, ``batch_cost(Δ)``, ``grouped_cost(Δ)`` or ``KeyCounts.cost``.
    size
        Rows of the join of some windows, for the base order: :func:`matches` or ``KeyCounts.matches``.

    Raises
    ------
    ValueError
        When there are fewer than two inputs, or two have one name.
    """
    _check(inputs)
    base = base_order(inputs, size)
    candidates = tuple((order, cost(order)) for order in candidate_orders(base, fast_inputs(inputs)))
    position = {join_input.name: number for number, join_input in enumerate(inputs)}
    order, least = min(candidates, key=lambda costed: (costed[1], [position[join_input.name] for join_input in costed[0]]))
    return BestOrder(order, least, candidates)


def base_order(inputs: Sequence[JoinInput], size: Callable[[Sequence[JoinInput]], Fraction] = matches) -> Order:
    """Step 1: the pair with the smallest join, then always the input that keeps the join smallest; of equals the earlier.

    Within the pair the input with more distinct values (in the classes that both have) comes first.
    """
    _check(inputs)
    first, second = min(combinations(inputs, 2), key=size)
    shared = first.values.keys() & second.values.keys()
    swap = prod(second.values[name] for name in shared) > prod(first.values[name] for name in shared)
    order = [second, first] if swap else [first, second]
    rest = [join_input for join_input in inputs if join_input.name not in {first.name, second.name}]
    while rest:
        order.append(min(rest, key=lambda join_input: size([*order, join_input])))
        rest.remove(order[-1])
    return tuple(order)


def fast_inputs(inputs: Sequence[JoinInput]) -> tuple[JoinInput, ...]:
    """Step 2: the inputs whose rate is above the mean of all rates; never all of them."""
    mean = sum((Fraction(join_input.rate) for join_input in inputs), start=Fraction(0)) / len(inputs)
    return tuple(join_input for join_input in inputs if join_input.rate > mean)


def candidate_orders(base: Order, fast: Sequence[JoinInput]) -> tuple[Order, ...]:
    """Step 3: the base order, then all orders in which only fast inputs have moved between the slow ones."""
    names = {join_input.name for join_input in fast}
    slow = [join_input for join_input in base if join_input.name not in names]
    orders = [base]
    for positions in permutations(range(len(base)), len(fast)):
        fast_at, remaining = dict(zip(positions, fast, strict=True)), iter(slow)
        order = tuple(fast_at[position] if position in fast_at else next(remaining) for position in range(len(base)))
        orders += [order] if order != base else []
    return tuple(orders)


def all_costs(inputs: Sequence[JoinInput], cost: Cost = probing_cost) -> tuple[tuple[Order, Fraction], ...]:
    """Return all n! orders with their costs, in lexicographic order; tests compare the heuristic with it."""
    return tuple((order, cost(order)) for order in permutations(inputs))


def _check(inputs: Sequence[JoinInput]) -> None:
    names = [join_input.name for join_input in inputs]
    if len(names) < 2 or len({*names}) < len(names):  # noqa: PLR2004 - a join has two inputs
        raise ValueError(f"{names}: a join has two or more inputs with different names; name each use of a table apart")

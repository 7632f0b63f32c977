from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from math import factorial, inf, nan, prod
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.views.costs.join_order import (
    JoinInput,
    KeyCounts,
    all_costs,
    base_order,
    batch_cost,
    best_order,
    candidate_orders,
    fast_inputs,
    grouped_cost,
    grouping_factor,
    matches,
    new_rows_cost,
    partial_results,
    probe_sequence,
    probing_cost,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.costs.join_order import Order


def table(*rows: tuple[int, int, int]) -> Order:
    """Inputs S1, S2, ... of (rate, lifetime, distinct)."""
    return tuple(JoinInput(str(number), *row) for number, row in enumerate(rows, start=1))


TABLE_5_3 = table((10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5))
TABLE_5_5 = table((10, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5))
TABLE_5_6 = table((11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20))
TABLES = {"5.3": TABLE_5_3, "5.5": TABLE_5_5, "5.6": TABLE_5_6}


def ordered(inputs: Order, digits: int) -> Order:
    """The inputs in the order of the digits, 2134: S2, S1, S3, S4."""
    return tuple(inputs[int(digit) - 1] for digit in str(digits))


def digits(order: Sequence[JoinInput]) -> int:
    """Return the number that `ordered` takes for an order."""
    return int("".join(join_input.name for join_input in order))


def test_new_rows_probe_the_others_in_order() -> None:
    """For order 1,2,3 new rows of S1 probe 2,3, those of S2 probe 1,3, those of S3 probe 1,2 (Table 5.2)."""
    order = TABLE_5_3[:3]
    assert [digits(probe_sequence(order, new)) for new in order] == [23, 13, 12]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        *[(12, 200), (13, 400), (14, 600), (23, 400), (24, 600), (34, 1500)],
        *[(123, 800), (124, 1200), (134, 3000), (234, 3000), (1234, 6000)],
    ],
)
def test_rows_of_joins(members: int, expected: int) -> None:
    """Every figure of Table 5.4 is right, by the closed form and step by step from each end."""
    inputs = ordered(TABLE_5_3, members)
    assert matches(inputs) == expected
    for order in permutations(inputs):
        first, *rest = order
        assert first.window * partial_results(first, tuple(rest))[-1].rows == expected


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ("5.3", 1234, 16000),
        ("5.3", 1243, 16400),
        ("5.3", 2134, 19600),
        ("5.3", 1342, 20300),
        ("5.3", 1432, 21500),
        ("5.3", 4321, 86850),
        ("5.5", 2134, 16200),
        ("5.5", 2143, 16200),
        ("5.5", 2341, 42600),
        ("5.5", 1234, 21000),
        ("5.5", 3412, 135150),
        ("5.5", 4312, 135150),
        ("5.6", 3412, 49542.31),
        ("5.6", 3142, 47976.92),
        ("5.6", 4132, 47976.92),
        ("5.6", 3124, 51953.85),
        ("5.6", 1234, 68200),
        ("5.6", 2134, 79000),
    ],
)
def test_plan_costs(name: str, order: int, expected: float) -> None:
    """Every plan cost of section 8.2 and of section 11, item 11."""
    assert float(probing_cost(ordered(TABLES[name], order))) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("name", "best", "worst", "mean"),
    [
        ("5.3", {1234}, {4321}, 45325),
        ("5.5", {2134, 2143}, {3412, 4312}, 60266.67),
        ("5.6", {3142, 4132}, {2134, 2143}, 63361.54),
    ],
)
def test_best_and_worst_of_all_orders(name: str, best: set[int], worst: set[int], mean: float) -> None:
    """Of the 24 orders those of section 8.2 are the best and the worst, exact ties included, and the mean agrees."""
    costs = {digits(order): cost for order, cost in all_costs(TABLES[name])}
    assert len(costs) == 24
    assert {order for order, cost in costs.items() if cost == min(costs.values())} == best
    assert {order for order, cost in costs.items() if cost == max(costs.values())} == worst
    assert float(sum(costs.values()) / 24) == pytest.approx(mean, abs=0.005)


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [("5.3", 1234, {1: 3800, 2: 3800, 3: 2400, 4: 6000}), ("5.5", 2134, {2: 4500, 1: 4500, 3: 3600, 4: 3600})],
)
def test_cost_of_each_input(name: str, order: int, expected: dict[int, int]) -> None:
    """The total is made of the X_i of section 8.2."""
    inputs = ordered(TABLES[name], order)
    assert {int(new.name): new_rows_cost(new, probe_sequence(inputs, new)) for new in inputs} == expected


def test_cost_of_each_input_as_written_out() -> None:
    """For order 1,2,3,4 the X_i are the four formulas of section 8, for any numbers."""
    s1, s2, s3, s4 = order = table((7, 30, 11), (2, 90, 13), (5, 20, 3), (1, 70, 17))
    phi = {digits(members): matches(members) for size in (2, 3) for members in combinations(order, size)}
    w1, w2, w3, w4 = (join_input.window for join_input in order)
    written = (
        s1.rate * w2 + (phi[12] * w3 + phi[123] * w4) / s1.lifetime,
        s2.rate * w1 + (phi[12] * w3 + phi[123] * w4) / s2.lifetime,
        s3.rate * w1 + (phi[13] * w2 + phi[123] * w4) / s3.lifetime,
        s4.rate * w1 + (phi[14] * w2 + phi[124] * w3) / s4.lifetime,
    )
    assert tuple(new_rows_cost(new, probe_sequence(order, new)) for new in order) == written


@pytest.mark.parametrize(
    ("name", "base", "fast", "candidates", "best", "cost"),
    [
        ("5.3", 1234, 1, {1234, 2134, 2314, 2341}, 1234, 16000),
        ("5.5", 2341, 1, {1234, 2134, 2314, 2341}, 2134, 16200),
        (
            "5.6",
            3412,
            12,
            {int("".join(order)) for order in permutations("1234") if order.index("3") < order.index("4")},
            3142,
            47976.92,
        ),
    ],
)
def test_heuristic(name: str, base: int, fast: int, candidates: set[int], best: int, cost: float) -> None:
    """Base order, fast set, candidates and the choice are those of section 8.3, and the choice is the best of all."""
    inputs = TABLES[name]
    assert digits(base_order(inputs)) == base
    assert digits(fast_inputs(inputs)) == fast
    choice = best_order(inputs)
    assert digits(choice.candidates[0][0]) == base
    assert sorted(digits(order) for order, _ in choice.candidates) == sorted(candidates)
    assert all(order_cost == probing_cost(order) for order, order_cost in choice.candidates)
    assert digits(choice.order) == best
    assert float(choice.cost) == pytest.approx(cost, abs=0.005)
    assert choice.cost == min(order_cost for _, order_cost in all_costs(inputs))


def test_ties_are_broken_by_place() -> None:
    """Inputs that do not differ keep their places; of equally cheap candidates the first in lexicographic order wins."""
    same = table(*[(1, 10, 5)] * 4)
    assert digits(best_order(same).order) == 1234
    assert digits(best_order(same[::-1]).order) == 4321
    choice = best_order(table((9, 10, 5), (9, 10, 5), (1, 10, 5)))
    assert {digits(order) for order, cost in choice.candidates if cost == choice.cost} == {312, 321}
    assert digits(choice.candidates[0][0]) == 132
    assert digits(choice.order) == 312


@pytest.mark.parametrize("fast", [0, 1, 2, 3, 4])
def test_number_of_candidates(fast: int) -> None:
    """n!/(n-f)! different orders are candidates, and in each the slow inputs keep their order."""
    inputs = table(*[(1, 10, 5)] * 5)
    names = [join_input.name for join_input in inputs[:fast]]
    candidates = candidate_orders(inputs[::-1], inputs[:fast])
    assert len({digits(order) for order in candidates}) == len(candidates) == factorial(5) // factorial(5 - fast)
    assert candidates[0] == inputs[::-1]
    for order in candidates:
        slow = [join_input.name for join_input in order if join_input.name not in names]
        assert slow == sorted(slow, reverse=True)


NUMBERS = st.integers(0, 40) | st.fractions(0, 40, max_denominator=7)
INPUTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 6)), min_size=2, max_size=5).map(
    lambda rows: tuple(
        JoinInput(str(number), rate, lifetime, distinct, buckets=buckets)
        for number, (rate, lifetime, distinct, buckets) in enumerate(rows, start=1)
    )
)


@settings(max_examples=60, deadline=None)
@given(INPUTS)
def test_heuristic_on_any_inputs(inputs: Order) -> None:
    """With any inputs, zeros included, the choice is the cheapest candidate, between the best order and the base order."""
    choice = best_order(inputs)
    costs = {digits(order): cost for order, cost in all_costs(inputs)}
    assert len(choice.candidates) == prod(range(len(inputs) - len(fast_inputs(inputs)) + 1, len(inputs) + 1))
    assert costs[digits(choice.order)] == choice.cost == min(cost for _, cost in choice.candidates)
    assert min(costs.values()) <= choice.cost <= probing_cost(base_order(inputs))
    least = [digits(order) for order, cost in choice.candidates if cost == choice.cost]
    assert digits(choice.order) == min(least)


@settings(max_examples=60, deadline=None)
@given(INPUTS)
def test_rows_of_a_join_do_not_depend_on_the_order(inputs: Order) -> None:
    """Step by step, from any input and in any order, the rows are the rows of the closed form."""
    for order in permutations(inputs):
        first, *rest = order
        assert first.window * partial_results(first, tuple(rest))[-1].rows == matches(inputs)


@pytest.mark.parametrize("inputs", [(), TABLE_5_3[:1], (TABLE_5_3[0], TABLE_5_3[0])])
def test_what_is_no_join(inputs: Order) -> None:
    """No input, one input, or two of one name are an error that says so, whatever is asked."""
    for ask in (best_order, base_order, probing_cost, batch_cost(1), grouped_cost(1), KeyCounts({}, {}).cost):
        with pytest.raises(ValueError, match="two or more inputs with different names"):
            ask(inputs)


@pytest.mark.parametrize(
    "wrong",
    [
        *[(-1, 1, 1), (1, -1, 1), (1, 1, -1), (nan, 1, 1), (1, nan, 1), (1, inf, 1), (1, 1, {"a": -1})],
        *[(1, 1, 1, -1), (1, inf, 1, inf), (1, 1, 1, 1, 0)],
    ],
)
def test_wrong_numbers(wrong: tuple[float, ...]) -> None:
    """Negative, missing or infinite figures are errors; a lifetime may be infinite when the rows are given."""
    with pytest.raises(ValueError, match="give"):
        JoinInput("s", *wrong)
    assert JoinInput("s", 1, inf, 3, rows=20).window == 20


def test_nothing_arrives() -> None:
    """Inputs without rate, rows or values cost nothing, join nothing and divide nothing."""
    empty = JoinInput("empty", 0, 0, 0)
    order = (empty, *TABLE_5_3[:2])
    assert matches(order) == 0
    assert probing_cost(order) == 0
    assert probing_cost((*TABLE_5_3[:2], empty)) == 10 * 100 + 1 * 1000
    assert grouped_cost(10)((*TABLE_5_3[:2], empty)) > 0
    assert batch_cost(10)(order) == 0
    assert probing_cost((empty, JoinInput("other", 0, 0, 0))) == 0
    assert best_order((empty, JoinInput("other", 0, 0, 0))).cost == 0
    assert KeyCounts({"empty": {}, "1": {0: 3}}, {"empty": {}, "1": {0: 1}}).cost((TABLE_5_3[0], empty)) == 0


def test_counted_rows_stand_for_rate_times_lifetime() -> None:
    """An input that changes rarely, or never forgets, is given by its rows; they cost what a window of that size costs."""
    moving, still = JoinInput("moving", 3, 20, 10), JoinInput("still", 0, inf, 10, rows=500)
    assert probing_cost((moving, still)) == 3 * 500
    assert matches((moving, still)) == 60 * 500 / 10


def test_hash_index() -> None:
    """A bucket holds W/b rows, so that all costs are divided by b while no input has fewer values than buckets."""
    inputs = table((10, 100, 40), (1, 100, 100), (2, 100, 20))
    hashed = tuple(JoinInput(stream.name, stream.rate, stream.lifetime, stream.distinct, buckets=5) for stream in inputs)
    assert [cost * 5 for _, cost in all_costs(hashed)] == [cost for _, cost in all_costs(inputs)]
    assert matches(hashed) == matches(inputs)


@pytest.mark.parametrize(("probing", "stored"), [*product([5, 8, 10, 40], repeat=2)])
def test_bucket_is_not_smaller_than_its_matches(probing: int, stored: int) -> None:
    """Rows in the bucket of a random probe, values modulo b, are max(W/b, W/max(v, v')) where these divide evenly."""
    for buckets in (1, 5, 10, 1000):
        window = [value for value in range(stored) for _ in range(3)]
        looked_at = [sum(row % buckets == value % buckets for row in window) for value in range(probing)]
        new_input, stored_input = JoinInput("new", 1, 1, probing), JoinInput("held", 1, len(window), stored, buckets=buckets)
        if max(probing, stored) % buckets == 0 or buckets >= max(probing, stored):
            assert new_rows_cost(new_input, (stored_input,)) == Fraction(sum(looked_at), probing)


def test_batch_cost_counts_intermediate_rows() -> None:
    """A batch costs λΔΣM: all rows that its hash joins hand on; the result is among them in every order."""
    order = TABLE_5_3[:3]
    first, second, third = order
    pairs = matches((first, second)) * 2 / first.lifetime + matches((first, third)) / third.lifetime
    results = matches(order) * sum(Fraction(1, join_input.lifetime) for join_input in order)
    assert batch_cost(7)(order) == 7 * (pairs + results)
    assert digits(best_order(TABLE_5_3, cost=batch_cost(7)).order) == digits(best_order(TABLE_5_3, cost=batch_cost(1)).order)
    assert second.lifetime == first.lifetime


def test_grouping_factor() -> None:
    """A batch of one row or less is not grouped; v values are probed once each when a batch has far more rows."""
    assert grouping_factor(JoinInput("s", Fraction(1, 30), 60, 4), 10) == 1
    assert grouping_factor(JoinInput("s", 1, 60, 4), 1) == 1
    assert float(grouping_factor(JoinInput("s", 100, 60, 4), 10)) == pytest.approx(4 / 1000)
    assert float(grouping_factor(JoinInput("s", 1, 60, 1), 10)) == pytest.approx(1 / 10)
    assert float(grouping_factor(JoinInput("s", 1, 60, {"a": 2, "b": 3}), 2)) == pytest.approx((6 - 25 / 6) / 2)


@pytest.mark.parametrize(("values", "batch"), [(1, 3), (2, 4), (3, 3), (5, 2)])
def test_grouping_factor_is_the_mean_over_all_batches(values: int, batch: int) -> None:
    """E[distinct] is the mean number of distinct values over all equally likely batches."""
    batches = list(product(range(values), repeat=batch))
    mean = Fraction(sum(len(set(drawn)) for drawn in batches), len(batches))
    assert float(grouping_factor(JoinInput("s", batch, 60, values), 1)) == pytest.approx(float(mean / batch))


def test_grouped_cost() -> None:
    """Lazy evaluation costs ΣX with each X multiplied by its input's factor."""
    factors = {join_input.name: grouping_factor(join_input, 10) for join_input in TABLE_5_5}
    expected = sum(factors[new.name] * new_rows_cost(new, probe_sequence(TABLE_5_5, new)) for new in TABLE_5_5)
    assert grouped_cost(10)(TABLE_5_5) == expected
    assert expected < probing_cost(TABLE_5_5)


def test_one_class_is_the_single_attribute() -> None:
    """If the one attribute has a name, no figure changes."""
    for inputs in TABLES.values():
        named = tuple(JoinInput(stream.name, stream.rate, stream.lifetime, {"a": stream.distinct}) for stream in inputs)
        assert [cost for _, cost in all_costs(named)] == [cost for _, cost in all_costs(inputs)]
        assert digits(best_order(named).order) == digits(best_order(inputs).order)


def test_several_attributes() -> None:
    """Attributes are independent, each divides by its larger count; inputs without a common attribute are a cross product."""
    left = JoinInput("left", 1, 60, {"a": 4, "b": 10})
    right = JoinInput("right", 1, 40, {"a": 6, "b": 5})
    end = JoinInput("end", 1, 30, {"b": 3, "c": 7})
    far = JoinInput("far", 1, 20, {"c": 2})
    assert matches((left, right)) == Fraction(60 * 40, 6 * 10)
    assert matches((left, right, end)) == Fraction(60 * 40 * 30, 6 * 10 * 5)
    assert matches((left, far)) == 60 * 20
    assert matches((left, right, end, far)) == Fraction(60 * 40 * 30 * 20, 6 * 10 * 5 * 7)
    for order in permutations((left, right, end, far)):
        first, *rest = order
        assert first.window * partial_results(first, tuple(rest))[-1].rows == matches(order)
    assert probing_cost((far, left)) == 20 + 60
    assert base_order((far, end, right, left)) == (left, right, end, far)


def test_several_attributes_of_independent_data() -> None:
    """Over the full grid of two attributes the estimate is the number of joined rows."""
    left = list(product(range(4), range(10)))
    right = list(product(range(6), range(5))) * 2
    counted = sum(left_row == right_row for left_row in left for right_row in right)
    inputs = JoinInput("l", 1, len(left), {"a": 4, "b": 10}), JoinInput("r", 1, len(right), {"a": 6, "b": 5})
    assert matches(inputs) == counted


def evenly(rows: int, values: int) -> dict[int, int]:
    """A window of `rows` spread over the first `values` keys."""
    return dict.fromkeys(range(values), rows // values)


def test_counted_keys_that_are_even_give_the_model() -> None:
    """With evenly spread, contained keys the counts give exactly what the formulas give."""
    inputs = table((10, 100, 500), (1, 100, 50), (2, 100, 40), (3, 100, 5))
    windows = {join_input.name: evenly(int(join_input.window), int(join_input.distinct)) for join_input in inputs}
    counts = KeyCounts(windows, windows)
    for size in (2, 3, 4):
        for members in combinations(inputs, size):
            assert counts.matches(members) == matches(members)
    assert [cost for _, cost in all_costs(inputs, counts.cost)] == [cost for _, cost in all_costs(inputs, batch_cost(100))]
    assert best_order(inputs, counts.cost, counts.matches).order == best_order(inputs, batch_cost(100)).order


def test_counted_keys_against_rows() -> None:
    """Counts give the rows of a join of real rows, for keys that are neither even nor contained."""
    keys = {"1": "aaabx", "2": "aabbby", "3": "abbbbbz"}
    new = {"1": "ab", "2": "bby", "3": "azz"}
    counts = KeyCounts(
        {name: {key: text.count(key) for key in text} for name, text in keys.items()},
        {name: {key: text.count(key) for key in text} for name, text in new.items()},
    )
    inputs = table((1, 1, 1), (1, 1, 1), (1, 1, 1))
    assert counts.matches(inputs) == sum(len(set(row)) == 1 for row in product(*keys.values()))
    for order in permutations(inputs):
        expected = 0
        for join_input in order:
            second, third = (keys[other.name] for other in probe_sequence(order, join_input))
            pairs = [key for key, other_key in product(new[join_input.name], second) if key == other_key]
            expected += len(pairs) + sum(key == other_key for key, other_key in product(pairs, third))
        assert counts.cost(order) == expected


def test_counted_keys_change_the_order() -> None:
    """One key that two inputs share often makes their join large: counts put the join last, the model does not."""
    inputs = table((1, 100, 50), (1, 100, 50), (1, 100, 40))
    crowded = {0: 100}
    counts = KeyCounts({"1": crowded, "2": crowded, "3": evenly(100, 50)}, {"1": {0: 1}, "2": {0: 1}, "3": evenly(50, 50)})
    assert digits(best_order(inputs).order) == 123
    choice = best_order(inputs, counts.cost, counts.matches)
    assert digits(choice.order[:2]) in {13, 31}
    assert choice.cost < counts.cost(inputs)

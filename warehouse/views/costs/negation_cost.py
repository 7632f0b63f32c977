"""Compares the places of a negation in a plan, and the structures for its answer: update-patterns sheet, sections 5.4 and 6.3.

The query is ``S1 JOIN S2 ON a WHERE S1.a NOT IN S3``, an anti-join. It does not apply to bag difference, for which the answers of
the two plans differ (section 6.1, rule 5).

    pull-up      (S1 JOIN S2) - S3     no operator but the last sees a negative tuple; the whole join is kept
    push-down    (S1 - S3) JOIN S2     less is joined and kept; the join has to process negative tuples

Rates are rows per unit of time in steady state; prices are in any unit of cost. The estimates are floats, since they depend on
measured figures, and no tie between plans must be exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Literal, TypeAlias

from warehouse.views.costs.join_order import selectivity

if TYPE_CHECKING:
    from warehouse.views.costs.join_order import JoinInput

__all__ = [
    "ActPrices",
    "Negation",
    "Placement",
    "PlanCost",
    "Structure",
    "StructureCost",
    "negation_placement",
    "structure_cost",
    "uniform_negation",
]

Structure: TypeAlias = Literal["calendar", "hash"]


@dataclass(frozen=True)
class ActPrices:
    """The costs of single acts, all in one unit; only their ratios matter.

    Parameters
    ----------
    compare
        To look at one row when a join probes.
    count
        To look up and change the multiplicity of one value in a negation.
    scan
        c_scan: to look at one row of a calendar queue, in search of the row that a negative tuple cancels.
    look_up
        c_hash: to find and delete one row of a hash table.
    negative
        c_extra_negatives: to create and pass on one negative tuple.
    keep
        To put one row into any buffer and, if it is a queue, to drop it with its day.
    """

    compare: float = 1
    count: float = 1
    scan: float = 1
    look_up: float = 1
    negative: float = 1
    keep: float = 1


@dataclass(frozen=True)
class StructureCost:
    """The costs of both structures for a strict result per unit of time; if they are equal, the calendar queue is preferred."""

    calendar: float
    hash: float

    @property
    def cheaper(self) -> Structure:
        """The structure to keep the result in."""
        return "calendar" if self.calendar <= self.hash else "hash"

    @property
    def least(self) -> float:
        """The cost of the cheaper structure."""
        return min(self.calendar, self.hash)


def structure_cost(
    rows: float, expirations: float, premature: float, *, extra_negatives: float | None = None, prices: ActPrices | None = None
) -> StructureCost:
    """Compare a calendar queue with a hash table on the key for a result labelled STR, section 5.4.

    The calendar queue needs a negative tuple for premature expirations only, and scans the result for each: e·π·R·c_scan.
    The hash table needs one for every expiration: e·c_hash + rate·c_extra_negatives.

    Parameters
    ----------
    rows
        R: rows of the result.
    expirations
        e: rows that leave it per unit of time.
    premature
        π, 0 to 1: the share of these that leaves before its own time; measured for each view.
    extra_negatives
        Negative tuples per unit of time that exist because natural expirations are announced, too. By default e·(1 - π), for
        this result; a plan that also announces the expirations of its windows adds them.
    prices
        Of single acts; by default each is 1.

    Raises
    ------
    ValueError
        When `premature` is no share.

    Examples
    --------
    >>> structure_cost(rows=1000, expirations=10, premature=0.001).cheaper
    'calendar'
    >>> structure_cost(rows=1000, expirations=10, premature=0.4).cheaper
    'hash'
    """
    if not 0 <= premature <= 1:
        raise ValueError(f"premature = {premature}: give the share of expirations that are premature, 0 to 1")
    price = prices or ActPrices()
    extra = expirations * (1 - premature) if extra_negatives is None else extra_negatives
    return StructureCost(
        calendar=expirations * premature * rows * price.scan,
        hash=expirations * price.look_up + extra * price.negative,
    )


@dataclass(frozen=True)
class Negation:
    """How S3 acts on the rows of S1, measured or from :func:`uniform_negation`.

    Parameters
    ----------
    kept
        The share of the live rows of S1 without a live partner in S3, 0 to 1. It is assumed to be the same for rows with a
        partner in S2, and for rows that just arrived.
    cancelled
        Rows of S1 per unit of time that get their first partner. As many lose their last one and return to the answer.
    """

    kept: float
    cancelled: float


def uniform_negation(left: JoinInput, negated: JoinInput) -> Negation:
    """Return the expected negation for evenly distributed values, if one input has a subset of the other's values [derived].

    The live rows of S3 with one value are Poisson with mean W3/v3, so a value that S3 has is absent with probability
    exp(-W3/v3); an absent one is met by λ3/v3 arrivals per unit of time. A share min(1, v3/v1) of the rows of S1 has such
    values.

    Raises
    ------
    ValueError
        When the inputs do not have exactly one common equality class, the class of the negation.
    """
    common = left.values.keys() & negated.values.keys()
    if len(common) != 1:
        raise ValueError(f"{sorted(common)}: give one attribute in common, or a measured Negation")
    (name,) = common
    of_left, of_negated = left.values[name], negated.values[name]
    reached = min(1.0, float(of_negated / of_left))
    absent = exp(-float(negated.window / of_negated))
    met = float(negated.rate) / float(of_negated)
    return Negation(kept=1 - reached * (1 - absent), cancelled=float(left.window) * reached * absent * met)


@dataclass(frozen=True)
class PlanCost:
    """The three sums of section 6.3, per unit of time.

    Parameters
    ----------
    operators
        Over the operators: positive rate x work.
    negatives
        Over the edges labelled STR: negative rate x (look-up, and for the join the probe).
    buffers
        Over the buffers: rows that enter.
    """

    operators: float
    negatives: float
    buffers: float

    @property
    def total(self) -> float:
        """The cost by which plans are compared."""
        return self.operators + self.negatives + self.buffers


@dataclass(frozen=True)
class Placement:
    """The cost of both plans; if they are equal, pull-up is preferred, since fewer of its edges are strict."""

    pull_up: PlanCost
    push_down: PlanCost

    @property
    def cheaper(self) -> Literal["pull-up", "push-down"]:
        """The cheaper plan."""
        return "pull-up" if self.pull_up.total <= self.push_down.total else "push-down"


def negation_placement(
    left: JoinInput,
    right: JoinInput,
    negated: JoinInput,
    negation: Negation | None = None,
    *,
    joining: float | None = None,
    prices: ActPrices | None = None,
) -> Placement:
    """Compare the negation above the join with the negation below it, section 6.3.

    Parameters
    ----------
    left, right, negated
        S1, S2, S3 after their own selections: rates, windows, distinct values, buckets.
    negation
        How S3 acts on S1; by default :func:`uniform_negation`.
    joining
        The share of all pairs of S1 and S2 that join; by default the :func:`~warehouse.views.costs.join_order.selectivity`.
    prices
        Of single acts; by default each is 1.

    Returns
    -------
    Placement
        Both costs. The kept answer is the same in both plans and is counted in both. A strict buffer takes the cheaper
        structure of :func:`structure_cost`.
    """
    price = prices or ActPrices()
    acts = negation or uniform_negation(left, negated)
    pairs = float(selectivity(left.values, right.values)) if joining is None else joining
    rate, window = float(left.rate), float(left.window)
    other_rate, other_window = float(right.rate), float(right.window)
    partners = pairs * other_window  # of one row of S1
    joined = pairs * (rate * other_window + other_rate * window)
    born = rate * acts.kept + acts.cancelled  # of S1 - S3, comebacks included
    answered = joined * acts.kept + acts.cancelled * partners
    counted = float(negated.rate)
    right_probe, left_probe = _compared(right, pairs), _compared(left, pairs)

    answer_edge = _negatives(answered, partners * window * acts.kept, acts.cancelled * partners, price)
    inner_edge = _negatives(born, window * acts.kept, acts.cancelled, price) + acts.cancelled * right_probe * price.compare
    return Placement(
        pull_up=PlanCost(
            operators=(rate * right_probe + other_rate * left_probe) * price.compare + (joined + counted) * price.count,
            negatives=answer_edge,
            buffers=(rate + other_rate + joined + counted + answered) * price.keep,
        ),
        push_down=PlanCost(
            operators=(born * right_probe + other_rate * left_probe * acts.kept) * price.compare + (rate + counted) * price.count,
            negatives=inner_edge + answer_edge,
            buffers=(rate + other_rate + counted + born + answered) * price.keep,
        ),
    )


def _negatives(entering: float, rows: float, cancelled: float, prices: ActPrices) -> float:
    """Return the cost of a strict edge: making its negative tuples, and finding the leaving rows in the cheaper structure.

    In steady state as many rows leave as enter.
    """
    premature = min(1.0, cancelled / entering) if entering else 0.0
    return cancelled * prices.negative + structure_cost(rows, entering, premature, prices=prices).least


def _compared(window: JoinInput, pairs: float) -> float:
    """Return the rows compared by one probe: a bucket, which has at least the matches."""
    return float(window.window) * max(1 / window.buckets, pairs)

"""Which member to shed first: the greedy objectives of temporal-load-shedding, section 4.

Of a candidate, delta is 1 if its removal cuts a fragment in two and rho the share of its row's length that is lost. CALS sheds
the member with the least ``delta + rho``, CALS-V looks at delta only, CALS-I at rho only, RAND at neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import xxhash

if TYPE_CHECKING:
    from warehouse.coalescing.runs import Run

__all__ = ["CALS", "CALS_I", "CALS_V", "METHODS", "RANDOM", "Basis", "Method"]

Basis = Literal["exact", "retained"]
"""The row to whose length rho relates: the exact run in the window, or the fragment that remains."""


@dataclass(frozen=True)
class Method:
    """A shedding method: the weights of delta and rho, and the basis of rho.

    ``at_least`` is the threshold theta (microseconds) that the query is known to have: an end of a fragment costs nothing if the
    fragment is too short already, and all of the fragment if it becomes too short (section 6, the theta-aware variant).
    With ``seed`` the choice is random.
    """

    delta: float = 1.0
    rho: float = 1.0
    basis: Basis = "exact"
    at_least: int = 0
    seed: int | None = None

    def __post_init__(self) -> None:
        if min(self.delta, self.rho) < 0 or self.delta == self.rho == 0:
            raise ValueError("the weights of delta and rho are at least 0, and not both are 0")

    @property
    def ends_only(self) -> bool:
        """Whether a member between two kept ones is never the first to shed (the structure theorem of section 4)."""
        return self.seed is None and self.delta > 0 and self.delta >= self.rho

    @property
    def static(self) -> bool:
        """Whether the score of a member does not depend on which others were shed."""
        return self.seed is not None or (self.delta == 0 and self.basis == "exact" and not self.at_least)

    def score(self, run: Run, first: int, last: int, number: int) -> float:
        """Return the score of a closed member of a fragment, given by its first and last member; the least is shed."""
        if self.seed is not None:
            return chance(self.seed, run, number)
        fragment = run.end_of(last) - run.stamps[first]
        length = run.length_of(number)
        whole = run.length if self.basis == "exact" else fragment
        if self.at_least:
            length = 0 if fragment < self.at_least else fragment if fragment - length < self.at_least else length
        middle = first < number < last
        return self.delta * middle + self.rho * (length / whole if whole else 0.0)


def chance(seed: int, run: Run, number: int) -> float:
    """Return a number from 0 to 1 that looks random, the same whenever a batch is replayed."""
    return xxhash.xxh64_intdigest(f"{run.group!r}:{run.stamps[number]}".encode(), seed) / 2**64


CALS = Method()
CALS_V = Method(rho=0.0)
CALS_I = Method(delta=0.0)
RANDOM = Method(seed=0)
METHODS: dict[str, Method] = {"cals": CALS, "cals-v": CALS_V, "cals-i": CALS_I, "random": RANDOM}
"""By the words of ``shed`` in the configuration."""

"""The permuted assignment: in each cycle of slots every part is used once, in an order drawn by a hash.

It keeps the balance of round-robin where the rate has a period that shares a factor with the number of parts, and it
stays a pure function of the slot, so that a deletion finds the column; doubly-partitioned-index sheet, section 7.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Literal, TypeAlias

__all__ = ["Tag", "permutation", "permuted"]

Tag: TypeAlias = Literal["ins", "exp"]


@lru_cache(maxsize=4096)
def permutation(seed: int, tag: Tag, cycle: int, size: int) -> tuple[int, ...]:
    """The order of the parts 0..size-1 in one cycle: sorted by the hex SHA-256 of `seed:tag:cycle:part`.

    Examples
    --------
    >>> permutation(0, "ins", 0, 4)
    (1, 3, 0, 2)
    """
    return tuple(sorted(range(size), key=lambda part: sha256(f"{seed}:{tag}:{cycle}:{part}".encode()).hexdigest()))


def permuted(seed: int, tag: Tag, slot: int, size: int) -> int:
    """The part of a slot, doubly-partitioned-index sheet, section 7."""
    cycle, position = divmod(slot - 1, size)
    return permutation(seed, tag, cycle, size)[position]

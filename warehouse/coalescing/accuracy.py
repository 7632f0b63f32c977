"""How much of an exact answer shedding has left (temporal-load-shedding sheet, section 3).

``Acc = sum(PQI) / sum(max(1, |A|))`` over the exact rows, where A are the fragments that are left of a row and PQI is their share
of its length. With a threshold only rows, and fragments, of at least that length count. Rows of length 0 take no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.coalescing.runs import Run

__all__ = ["Accuracy", "Tally", "accuracy", "jaccard", "pqi"]


def pqi(length: int, fragments: Iterable[int]) -> float:
    """Return Eq. 4: the share of a row's length that its fragments cover.

    >>> pqi(13, [4, 7])
    0.8461538461538461
    """
    return sum(fragments) / length


def jaccard(counts: Sequence[int]) -> float:
    """Return Eq. 2 for the numbers of fragments of the exact rows: the Jaccard coefficient of the values, as multisets.

    >>> jaccard([1, 2, 0])
    0.5
    """
    return sum(min(1, count) for count in counts) / sum(max(1, count) for count in counts) if counts else 1.0


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of an answer over shed rows (section 7).

    ``share`` is Eq. 6, ``values`` Eq. 2, ``mean_kept`` the mean of Eq. 4; ``rows`` exact rows count, and ``lost`` of them have no
    fragment; ``extraneous`` counts the fragments beyond the first of each row; ``length_lost`` is in microseconds.
    """

    share: float
    values: float
    mean_kept: float
    rows: int
    lost: int
    extraneous: int
    length_lost: int


def accuracy(runs: Iterable[Run], at_least: int = 0) -> Accuracy:
    """Return the accuracy of the fragments that remain of exact rows.

    Parameters
    ----------
    runs
        The exact rows of the window, all groups together.
    at_least
        The threshold theta of the query: the least length of a row, in microseconds.

    """
    shares, counts, lost_length = [], [], 0
    for run in runs:
        if run.length < max(1, at_least):
            continue
        lengths = [fragment.length for fragment in run.fragments if fragment.length >= max(1, at_least)]
        shares.append(pqi(run.length, lengths))
        counts.append(len(lengths))
        lost_length += run.length - sum(lengths)
    return Accuracy(
        share=fsum(shares) / sum(max(1, count) for count in counts) if counts else 1.0,
        values=jaccard(counts),
        mean_kept=fsum(shares) / len(shares) if shares else 1.0,
        rows=len(counts),
        lost=counts.count(0),
        extraneous=sum(max(0, count - 1) for count in counts),
        length_lost=lost_length,
    )


class Tally:
    """N and D of Eq. 6, kept up to date while members are shed one by one; no other row is read (section 3, incremental)."""

    def __init__(self, runs: Sequence[Run], at_least: int = 0) -> None:
        self._least = max(1, at_least)
        self._left = []
        for run in runs:
            lengths = [fragment.length for fragment in run.fragments if fragment.length >= self._least]
            self._left.append((len(lengths), sum(lengths)))
        self._lengths = [run.length for run in runs]
        counted = [number for number, length in enumerate(self._lengths) if length >= self._least]
        self._numerator = fsum(self._left[number][1] / self._lengths[number] for number in counted)
        self._denominator = sum(max(1, self._left[number][0]) for number in counted)

    @property
    def share(self) -> float:
        """Eq. 6."""
        return self._numerator / self._denominator if self._denominator else 1.0

    def after(self, run: int, before: int, pieces: Sequence[int]) -> float:
        """Return Eq. 6 for the case that a fragment of a run, of length ``before``, is split into ``pieces``."""
        numerator, denominator, _ = self._changed(run, before, pieces)
        return numerator / denominator if denominator else 1.0

    def split(self, run: int, before: int, pieces: Sequence[int]) -> None:
        """Split a fragment of a run, of length ``before``, into ``pieces``."""
        self._numerator, self._denominator, self._left[run] = self._changed(run, before, pieces)

    def _changed(self, run: int, before: int, pieces: Sequence[int]) -> tuple[float, int, tuple[int, int]]:
        count, total = self._left[run]
        lengths = [length for length in pieces if length >= self._least]
        counted = before >= self._least
        changed = (count - counted + len(lengths), total - before * counted + sum(lengths))
        if self._lengths[run] < self._least:
            return self._numerator, self._denominator, changed
        numerator = self._numerator + (changed[1] - total) / self._lengths[run]
        return numerator, self._denominator + max(1, changed[0]) - max(1, count), changed

"""Labels of chart axes: values in the unit of the largest one, round ticks, times without the part that all have in common."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10
from typing import TYPE_CHECKING

from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COUNT", "Scale", "TimeLabels", "bytes_scale", "labels_of_times", "seconds_scale", "ticks"]

_TICKS = 4
_THREE_DIGITS = 3


@dataclass(frozen=True)
class Scale:
    """A unit: its size in the measured unit, its name, the name of an axis in it, and whether its numbers are whole."""

    size: float
    name: str
    axis: str = ""
    whole: bool = False

    def text(self, value: float) -> str:
        """Return a value with its unit: three digits, or all before the point.

        >>> Scale(1000, "kB").text(8123), Scale(1, "s").text(1234.5), Scale(1, "ms").text(0.25)
        ('8.12 kB', '1,234 s', '0.25 ms')
        """
        return f"{self.number(value)} {self.name}".rstrip()

    def number(self, value: float) -> str:
        """Return a value in this unit, without its name."""
        scaled = value / self.size
        is_whole = self.whole or abs(scaled) >= 10**_THREE_DIGITS
        return f"{scaled:,.0f}" if is_whole else f"{scaled:.{_THREE_DIGITS}g}"


COUNT = Scale(1, "", whole=True)
"""The scale of counts; the axis has the name of the counted things."""


def seconds_scale(largest: float) -> Scale:
    """Return the unit for durations up to ``largest`` seconds.

    >>> [seconds_scale(most).name for most in (0.3, 90, 4000, 40_000, 4e6)]
    ['ms', 's', 'min', 'h', 'd']
    """
    units = (
        (1, Scale(0.001, "ms", "milliseconds")),
        (600, Scale(1, "s", "seconds")),
        (7200, Scale(60, "min", "minutes")),
        (172_800, Scale(3600, "h", "hours")),
    )
    return next((scale for most, scale in units if largest < most), Scale(86_400, "d", "days"))


def bytes_scale(largest: float) -> Scale:
    """Return the unit for sizes up to ``largest`` bytes, as :func:`warehouse.units.size_text` says sizes.

    >>> [bytes_scale(most).name for most in (1023, 1024, 3 * 2**30)]
    ['bytes', 'KiB', 'GiB']
    """
    size, names = 1, ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while largest >= 1024 * size and len(names) > 1:
        size, names = size * 1024, names[1:]
    return Scale(size, names[0], names[0], whole=size == 1)


def ticks(largest: float, scale: Scale) -> tuple[float, ...]:
    """Return values for the ticks of an axis from 0 to at least ``largest``: round numbers of the unit.

    >>> ticks(6.5, COUNT), ticks(0, COUNT), ticks(2600, Scale(1000, "kB"))
    ((0, 2, 4, 6, 8), (0, 1, 2, 3, 4), (0.0, 1000.0, 2000.0, 3000.0, 4000.0))
    """
    step = _round_up(largest / scale.size / _TICKS) if largest > 0 else 1
    if scale.whole:
        step = ceil(step)
    return tuple(step * tick * scale.size for tick in range(_TICKS + 1))


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** ceil(log10(value) - 1)
    return next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value), 10 * power)


@dataclass(frozen=True)
class TimeLabels:
    """Short labels of instants, and the name of their axis with their common part."""

    labels: tuple[str, ...]
    axis: str


def labels_of_times(instants: Sequence[int], name: str) -> TimeLabels:
    """Return labels for instants (microseconds); a day or year that all have in common is part of the axis's name instead.

    >>> noon = 1_356_998_400_000_000
    >>> labels_of_times([noon, noon + 3_600_000_000], "window time")
    TimeLabels(labels=('00:00', '01:00'), axis='window time on 2013-01-01 (UTC)')
    >>> labels_of_times([noon, noon + 86_400_000_000], "window time").labels
    ('01-01 00:00', '01-02 00:00')
    """
    texts = [format_instant(instant).replace("T", " ").removesuffix("Z") for instant in instants]
    if all(text.endswith(":00") for text in texts):
        texts = [text.removesuffix(":00") for text in texts]
    for length, preposition in ((10, "on "), (4, "in ")):
        shared = {text[:length] for text in texts}
        if len(shared) == 1:
            return TimeLabels(tuple(text[length + 1 :] for text in texts), f"{name} {preposition}{shared.pop()} (UTC)")
    return TimeLabels(tuple(text[:10] for text in texts), f"{name} (UTC)")

"""The pictures of the page, as PNG: bars with quartiles on a logarithmic axis, and how updates went one after another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from benchmarks.field.figures import Spread

__all__ = ["bars", "by_size", "courses", "scatter"]

_DPI = 110
_OURS = "#c0392b"
_OTHERS = "#4a6fa5"


def bars(path: Path, title: str, unit: str, spreads: Mapping[str, Spread], ours: str) -> None:
    """Draw a bar for each contender, the smallest on top, whiskers from quartile to quartile.

    Parameters
    ----------
    path
        The PNG file.
    title, unit
        What is drawn.
    spreads
        By the contender's title.
    ours
        The title that is coloured.

    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    names = sorted(spreads, key=lambda name: spreads[name].median, reverse=True)
    medians = [spreads[name].median for name in names]
    whiskers = [
        [spreads[name].median - spreads[name].low for name in names],
        [spreads[name].high - spreads[name].median for name in names],
    ]
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots()
    colours = [_OURS if name == ours else _OTHERS for name in names]
    axes.barh(names, medians, xerr=whiskers, color=colours, ecolor="#333333", capsize=3)
    if min(medians) > 0:
        axes.set_xscale("log")
        _plainly(axes.xaxis)
    for position, median in enumerate(medians):
        axes.annotate(f"{median:.3g}", (median, position), (5, 7), textcoords="offset points", fontsize=8)
    axes.set_title(title)
    axes.set_xlabel(unit or "ratio")
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def courses(path: Path, title: str, unit: str, spreads: Mapping[str, Spread], ours: str) -> None:
    """Draw how a quantity went from update to update, a line for each contender."""
    with _axes(path, title, ("update", unit)) as axes:
        styles = ("-", "--", ":", "-.")
        for position, (name, course) in enumerate(spreads.items()):
            numbers = range(1, len(course.values) + 1)
            axes.plot(numbers, course.values, styles[position // 10 % len(styles)], label=name, **_stroke(name == ours))
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def scatter(path: Path, title: str, labels: Sequence[str], points: Mapping[str, tuple[float, float]], ours: str) -> None:
    """Draw contenders by two quantities, both logarithmic; lower left is better."""
    with _axes(path, title, labels, across="log") as axes:
        for name, (across, up) in points.items():
            axes.plot(across, up, "o", color=_OURS if name == ours else _OTHERS)
            axes.annotate(name, (across, up), (5, 4), textcoords="offset points", fontsize=8)
        axes.margins(0.15)


def by_size(path: Path, title: str, unit: str, lines: Mapping[str, Mapping[int, float]], ours: str) -> None:
    """Draw how a quantity grows with the live rows, a line for each contender, both logarithmic."""
    with _axes(path, title, ("live rows", unit), across="log") as axes:
        for name, values in lines.items():
            axes.plot(sorted(values), [values[rows] for rows in sorted(values)], "o-", label=name, **_stroke(name == ours))
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


@contextmanager
def _axes(path: Path, title: str, labels: Sequence[str], across: str = "linear") -> Iterator[Axes]:
    """Yield the axes of a picture and write it. The y-axis is logarithmic; ``labels`` name the x-axis and the y-axis."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    yield axes
    axes.set_yscale("log")
    _plainly(axes.yaxis)
    if across == "log":
        axes.set_xscale("log")
        _plainly(axes.xaxis)
    axes.set_title(title)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def _stroke(is_ours: bool) -> dict[str, Any]:
    return {"linewidth": 2.5, "color": _OURS} if is_ours else {"linewidth": 1.2, "color": None}


def _plainly(axis: Axis) -> None:
    """Write 0.03, not a power of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="minor", labelsize=7)

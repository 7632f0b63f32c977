"""The pictures of the page, as PNG: bars with quartiles on a logarithmic axis, and how updates went one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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
    for place, median in enumerate(medians):
        axes.annotate(f"{median:.3g}", (median, place), (5, 7), textcoords="offset points", fontsize=8)
    axes.set_title(title)
    axes.set_xlabel(unit or "ratio")
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def courses(path: Path, title: str, unit: str, spreads: Mapping[str, Spread], ours: str) -> None:
    """Draw how a quantity went from update to update, a line for each contender."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - same

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    styles = ("-", "--", ":", "-.")
    for place, (name, each) in enumerate(spreads.items()):
        width, colour = (2.5, _OURS) if name == ours else (1.2, None)
        numbers = range(1, len(each.values) + 1)
        axes.plot(numbers, each.values, styles[place // 10 % len(styles)], label=name, linewidth=width, color=colour)
    axes.set_yscale("log")
    _plainly(axes.yaxis)
    axes.set_title(title)
    axes.set_xlabel("update")
    axes.set_ylabel(unit)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=_DPI)


def scatter(path: Path, title: str, labels: Sequence[str], points: Mapping[str, tuple[float, float]], ours: str) -> None:
    """Draw contenders by two quantities, both logarithmic; lower left is better."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - same

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots()
    for name, (across, up) in points.items():
        axes.plot(across, up, "o", color=_OURS if name == ours else _OTHERS)
        axes.annotate(name, (across, up), (5, 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plainly(axes.xaxis)
    _plainly(axes.yaxis)
    axes.set_title(title)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.margins(0.15)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def by_size(path: Path, title: str, unit: str, lines: Mapping[str, Mapping[int, float]], ours: str) -> None:
    """Draw how a quantity grows with the live rows, a line for each contender, both logarithmic."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - same

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    for name, values in lines.items():
        width, colour = (2.5, _OURS) if name == ours else (1.2, None)
        axes.plot(sorted(values), [values[rows] for rows in sorted(values)], "o-", label=name, linewidth=width, color=colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plainly(axes.yaxis)
    axes.set_title(title)
    axes.set_xlabel("live rows")
    axes.set_ylabel(unit)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=_DPI)


def _plainly(axis: Axis) -> None:
    """Write 0.03, not a power of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="minor", labelsize=7)

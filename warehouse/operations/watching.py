"""The progress of an update, in words for a person who waits: on a terminal, and automatically in a notebook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from warehouse.epochs.points import Point, nobody

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.epochs.points import Moment, Observer

__all__ = ["in_words", "shown_in_notebooks"]

_WORDS = {
    Point.LOCKED: "looking for files and starting Spark",
    Point.PLANNED: "planned",
    Point.STEPS_DONE: "making it durable",
    Point.EPOCH_WRITTEN: "written",
}


def in_words(step: Callable[[str], None]) -> Observer:
    """Return an observer that gives ``step`` a text at the moments at which a person waits."""

    def observe(moment: Moment) -> None:
        text = moment.text if moment.point is Point.STEP_STARTED else _WORDS.get(moment.point)
        if text:
            step(f"epoch {moment.epoch}: {text}" if moment.epoch >= 0 else text)

    return observe


def shown_in_notebooks(observer: Observer) -> Observer:
    """Return the observer to call: in a notebook, by default one that shows each step in the cell's output.

    The line is one display that each step replaces. It uses the notebook's modules, and imports nothing outside of notebooks.
    """
    shell = _shell()
    if observer is not nobody or shell is None:
        return observer
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text}
        if handle is None:
            handle = sys.modules["IPython"].display.display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return in_words(show)


def _shell() -> object | None:
    """Return the shell of a notebook that runs this process; None elsewhere, also in IPython on a terminal."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None

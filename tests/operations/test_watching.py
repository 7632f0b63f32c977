"""A waiting person sees what an update is doing, in a notebook too."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from warehouse.epochs.points import Moment, Point, nobody
from warehouse.operations.watching import in_words, shown_in_notebooks

if TYPE_CHECKING:
    import pytest

MOMENTS = (
    Moment(Point.LOCKED, -1),
    Moment(Point.PLANNED, 3),
    Moment(Point.STEP_STARTED, 3, 0, "flights: append 66 rows"),
    Moment(Point.STEP_COMMITTED, 3, 0, "flights: append 66 rows"),
    Moment(Point.EPOCH_WRITTEN, 3),
)
SAID = ["looking for files and starting Spark", "epoch 3: planned", "epoch 3: flights: append 66 rows", "epoch 3: written"]


class Display:
    """The display of a notebook: its line, and all lines that it has shown."""

    def __init__(self) -> None:
        self.displays = 0
        self.lines: list[str] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Display:
        """Show a first line."""
        assert (raw, display_id) == (True, True)
        self.displays += 1
        self.lines.append(content["text/plain"])
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        """Replace the line."""
        assert raw
        self.lines.append(content["text/plain"])


def _notebook(monkeypatch: pytest.MonkeyPatch, kernel: object) -> Display:
    shown = Display()
    shell: Any = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=shown))
    return shown


def test_moments_in_words() -> None:
    """Only the moments at which a person waits."""
    messages: list[str] = []
    observe = in_words(messages.append)
    for moment in MOMENTS:
        observe(moment)
    assert messages == SAID


def test_a_notebook_shows_each_step_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step replaces the line; nothing is shown before the first."""
    shown = _notebook(monkeypatch, object())
    observe = shown_in_notebooks(nobody)
    assert shown.displays == 0
    for moment in MOMENTS:
        observe(moment)
    assert (shown.displays, shown.lines) == (1, SAID)


def test_elsewhere_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without IPython, with IPython on a terminal, and if the caller has its own observer."""
    _notebook(monkeypatch, None)
    assert shown_in_notebooks(nobody) is nobody
    _notebook(monkeypatch, object())
    own = in_words(print)
    assert shown_in_notebooks(own) is own
    monkeypatch.delitem(sys.modules, "IPython")
    assert shown_in_notebooks(nobody) is nobody

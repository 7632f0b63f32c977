"""Work on several files at a time: in order, with its errors, and in a forked process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from warehouse.storage import side_by_side
from warehouse.storage.side_by_side import begun, each, ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

_FEW, _MANY = 2, 50


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return the event that lets work continue."""
    event = threading.Event()
    yield event
    event.set()


def test_results_stand_in_the_order_of_their_items() -> None:
    """With no item, one item and many items."""
    for count in (0, 1, _MANY):
        assert each(lambda item: item * 2, range(count)) == [item * 2 for item in range(count)]


def test_an_error_is_raised_once_nothing_is_at_work(gate: threading.Event) -> None:
    """A caller that undoes the work after an error finds no thread that still does it."""
    done = []

    def work(item: int) -> None:
        if item == 0:
            gate.set()
            raise OSError("the first")
        gate.wait()
        done.append(item)

    with pytest.raises(OSError, match="the first"):
        each(work, range(_FEW))
    assert done == [1]


def test_an_interrupt_waits_for_no_other_work(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the call while all threads are busy with the work of another thread."""
    started = threading.Barrier(side_by_side._WORKERS + 1)

    def held(_: int) -> None:
        started.wait(60)
        gate.wait()

    other = threading.Thread(target=each, args=(held, range(side_by_side._WORKERS)))
    other.start()
    started.wait(60)
    done: list[int] = []
    plain, interrupts = side_by_side.wait, [KeyboardInterrupt]

    def interrupted(futures: list[Future[object]]) -> object:
        if threading.current_thread() is threading.main_thread() and interrupts:
            raise interrupts.pop()
        return plain(futures)

    monkeypatch.setattr(side_by_side, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        each(done.append, range(_FEW))
    assert not gate.is_set()
    monkeypatch.setattr(side_by_side, "wait", plain)
    gate.set()
    other.join()
    each(str, range(_FEW))
    assert done == []


def test_a_forked_process_has_threads_of_its_own() -> None:
    """The threads of the other process do not exist in it."""
    each(str, range(_FEW))
    begun(lambda: each(str, range(_FEW))).result()
    child = os.fork()
    if not child:
        os._exit(0 if begun(lambda: each(str, range(_FEW))).result() == ["0", "1"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_work_that_was_begun_is_not_done_any_more_once_it_is_ended(gate: threading.Event) -> None:
    """Begun work may raise an error, which its result then raises."""
    done, started = [], threading.Event()

    def work() -> None:
        started.set()
        gate.wait()
        done.extend(each(str, range(_FEW)))
        raise OSError("of no interest")

    begins = begun(work)
    assert started.wait(60)
    threading.Timer(0.05, gate.set).start()
    ended(begins)
    assert done == ["0", "1"]
    with pytest.raises(OSError, match="of no interest"):
        begins.result()

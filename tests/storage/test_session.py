"""What the JVM of a session says is passed on, and never in its way."""

from __future__ import annotations

import errno
import os
import sys
import threading

import pytest

from warehouse.storage.session import _forward


class _FullDisk:
    """A standard error on a disk that is full."""

    def __init__(self) -> None:
        self.asked = 0

    def write(self, _: str) -> int:
        """Fail."""
        self.asked += 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.timeout(30)
def test_what_cannot_be_said_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe holds 64 KiB: if nobody read on, the JVM would wait for ever."""
    full = _FullDisk()
    monkeypatch.setattr(sys, "stderr", full)
    read_end, write_end = os.pipe()
    forwarding = threading.Thread(target=_forward, args=(read_end,), daemon=True)
    forwarding.start()
    for _ in range(3000):
        os.write(write_end, b"WARN something that the JVM has to say, in some more words than this\n")
    os.close(write_end)
    forwarding.join(10)
    assert not forwarding.is_alive()
    assert full.asked == 3000

"""Where contenders are run and timed: in this process, or in a worker that is told by messages.

A message and its reply are JSON values. Times are seconds of wall clock, taken around the contender's own call; digests of
answers are made after the clock has stopped.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.field.contender import NotHereError
from benchmarks.field.digest import digest_of
from benchmarks.field.job import Job
from benchmarks.field.written import bytes_written

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.field.contender import Contender

__all__ = ["Station"]


class Station:
    """The contenders of one process."""

    def __init__(self) -> None:
        self._contenders: dict[str, Contender] = {}

    def do(self, message: dict[str, Any]) -> dict[str, Any]:
        """Carry out a message; a failure is a reply with ``error``, and ``missing`` if the contender cannot run here."""
        try:
            verb: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{message['do']}")
            return verb(message)
        except NotHereError as error:
            return {"error": str(error), "missing": True}
        except Exception as error:  # noqa: BLE001 - a contender's failure, of whatever kind, is a result
            return {"error": f"{type(error).__name__}: {_first_lines(error)}", "missing": False}

    def _open(self, message: dict[str, Any]) -> dict[str, Any]:
        module, _, name = message["spec"].partition(":")
        kind: type[Contender] = getattr(importlib.import_module(module), name)
        contender = kind(Path(message["place"]), Job(**message["job"]))
        contender.open()
        self._contenders[message["contender"]] = contender
        return {}

    def _build(self, message: dict[str, Any]) -> dict[str, Any]:
        contender = self._contenders[message["contender"]]
        return {"seconds": _timed(lambda: contender.build([Path(file) for file in message["files"]], message["now"]))[0]}

    def _update(self, message: dict[str, Any]) -> dict[str, Any]:
        contender, now = self._contenders[message["contender"]], message["now"]
        contender.ready(now)
        before = bytes_written()
        return {
            "load": _timed(lambda: contender.load(Path(message["file"]), now))[0],
            "expire": _timed(lambda: contender.expire(now))[0],
            "tidy": _timed(lambda: contender.tidy(now))[0],
            "written": bytes_written() - before,
        }

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        contender, now = self._contenders[message["contender"]], message["now"]
        probes = []
        for key in message["keys"]:
            timed = [_timed(lambda: contender.probe(key, now)) for _ in range(message["repeat"])]  # noqa: B023 - called at once
            probes.append({"key": key, "seconds": [seconds for seconds, _ in timed], "digest": digest_of(timed[-1][1])})
        scan, rows = _timed(lambda: contender.scan(now))
        digest = digest_of(rows)
        del rows
        aggregate, value = _timed(lambda: contender.aggregate(now))
        files, size = contender.footprint()
        return {
            "probes": probes,
            "scan": scan,
            "digest": digest,
            "aggregate": aggregate,
            "value": value,
            "files": files,
            "bytes": size,
            "stored": contender.stored(),
            "counted": contender.counted(),
        }

    def _close(self, message: dict[str, Any]) -> dict[str, Any]:
        contender = self._contenders.pop(message["contender"], None)
        if contender is not None:
            contender.close()
        return {}

    def close(self) -> None:
        """Close all contenders."""
        for name in tuple(self._contenders):
            self.do({"do": "close", "contender": name})


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:400]

"""A ``stream-wh`` that answers what it is told to, for tests of what its callers make of the answers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """#!{python}
import json, os, pathlib, signal, sys, time
place = pathlib.Path(__file__).parent
verb = sys.argv[3]
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
with (place / "formats").open("a") as formats:
    formats.write(os.environ.get("STREAM_WH_LOG_FORMAT", "") + "\\n")
answers = sorted(place.glob(verb + ".*.json"))
answer = json.loads(answers[0].read_text())
if len(answers) > 1:
    answers[0].unlink()
print(answer["err"], file=sys.stderr, flush=True)
print(answer["out"], flush=True)
if answer["holds"]:
    if answer["holds"] == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        (place / "holding").write_text(str(os.getpid()))  # its reader may interrupt at once
        time.sleep(600)
    except KeyboardInterrupt:
        sys.exit(130)
if answer["code"] < 0:
    os.kill(os.getpid(), -answer["code"])
sys.exit(answer["code"])
"""

CONFIGURATION = """
[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "1h"

[streams.cars]
landing = "landing/cars"
files = "*.csv"
landing_settle = "10s"

[relations.owners]
landing = "landing/owners"

[views.parked]
"""


class Fake:
    """A project and the command that pretends to serve it.

    The answers to a verb are given in turn, the last of them for ever.
    """

    def __init__(self, directory: Path) -> None:
        self.project = directory / "garage"
        for name in ("cars", "owners"):
            (self.project / "landing" / name).mkdir(parents=True)
        (self.project / "warehouse.toml").write_text(CONFIGURATION)
        self._place = directory / "bin"
        self._place.mkdir()
        program = self._place / "stream-wh"
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        self.executable = str(program)
        self._given = 0

    def answers(self, verb: str, out: object = "", *, code: int = 0, err: str = "", holds: str = "") -> None:
        """Answer a verb so; ``holds`` waits for a signal first, a ``deaf`` one for more than Ctrl-C."""
        text = out if isinstance(out, str) else json.dumps(out)
        answer = {"out": text, "err": err, "code": code, "holds": holds}
        (self._place / f"{verb}.{self._given:04}.json").write_text(json.dumps(answer))
        self._given += 1

    def fails(self, verb: str, code: int, name: str, message: str, *, retry: bool = False) -> None:
        """End a verb with an error as ``-o json`` writes it."""
        error = {"code": name, "message": message, "exit_code": code, "retry": retry}
        self.answers(verb, code=code, err=json.dumps(error))

    def stands(self, window_time: str, epoch: int, **rows: int) -> None:
        """Be at an epoch, with so many live rows in each table."""
        self.answers("history", [{"number": epoch, "window_time": window_time}])
        self.answers("status", [{"table": name, "live_rows": count, "waiting_files": 0} for name, count in rows.items()])

    def waits(self, **files: int | None) -> None:
        """Have so many landing files that are not loaded yet, whatever was said of the tables before."""
        for path in self._place.glob("status.*.json"):
            path.unlink()
        self.answers("status", [{"table": name, "live_rows": 0, "waiting_files": count} for name, count in files.items()])

    def empty(self) -> None:
        """Have no epoch."""
        for verb in ("history", "status"):
            self.fails(verb, 1, "no_epoch", "nothing has been loaded yet")

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call but ``-C`` and the project."""
        path = self._place / "calls"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        assert all(line[:2] == ["-C", str(self.project)] for line in lines)
        return [line[2:] for line in lines]

    @property
    def log_formats(self) -> list[str]:
        """What each call was told of the format of its log."""
        return (self._place / "formats").read_text().splitlines()

    @property
    def holding(self) -> Path:
        """A file that is there while a held call waits."""
        return self._place / "holding"


def moved(epoch: int, window_time: str, **inserted: int) -> dict[str, Any]:
    """Return the record of an update that made one epoch."""
    counts = [{"stream": name, "inserted": count, "expired": 1} for name, count in inserted.items()]
    record = {"epoch": epoch, "window_time": window_time, "counts": counts}
    return {"epochs": [record], "completed": [], "problems": [], "failed_views": [], "stopped": [], "removed": {}}


NOTHING: dict[str, Any] = {"epochs": [], "completed": [], "problems": [], "failed_views": [], "stopped": [], "removed": {}}
"""The record of an update that had nothing to do."""

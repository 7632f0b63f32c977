"""What the exit code of a command means for its task: done, to be retried, or failed for good."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_stream_wh.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_stream_wh.process import CommandResult

__all__ = [
    "Judgement",
    "TaskOutcome",
    "WarehouseHealth",
    "error_of",
    "faults_of",
    "health_of",
    "judge",
    "record_of",
    "table_lines",
]

RETRY_CODES = frozenset({3, 130})
"""A held lock or a busy store; an interrupted command."""
_COUNT_NAMES = ("inserted", "expired", "rejected", "dead", "deferred", "lost")
_MAX_NAMED_FAULTS = 3
_SIGNAL_BASE = 128
"""Shells and containers report the death by signal n as 128 + n."""


class TaskOutcome(Enum):
    """What happens to the task."""

    DONE = "done"
    PROBLEMS = "problems"
    """The work was committed, but landing files or views need a person."""
    RETRY = "retry"
    FAIL = "fail"


@dataclass(frozen=True)
class Judgement:
    """A verdict and why."""

    verdict: TaskOutcome
    reason: str


def judge(ended: CommandResult) -> Judgement:
    """Return what an exit code of ``stream-wh`` means (docs/commands.md), with the command's own message.

    A command that was killed is retried in any case: the next update completes what was begun.
    """
    error = error_of(ended.errors)
    text = error.get("message") or (message_of(ended.errors[-1]).text if ended.errors else "")
    reason = f"stream-wh ended with exit code {ended.code}" + (f": {text}" if text else "")
    if ended.code == 0:
        return Judgement(TaskOutcome.DONE, "done")
    if ended.code in RETRY_CODES or error.get("retry") is True:
        return Judgement(TaskOutcome.RETRY, reason)
    if ended.code < 0 or ended.code > _SIGNAL_BASE:
        number = -ended.code if ended.code < 0 else ended.code - _SIGNAL_BASE
        return Judgement(TaskOutcome.RETRY, f"stream-wh was killed by signal {number}; the next try completes what was begun")
    if ended.code == 1 and not error and record_of(ended):
        return Judgement(TaskOutcome.PROBLEMS, _problems(record_of(ended)))
    return Judgement(TaskOutcome.FAIL, reason)


def error_of(errors: Sequence[str]) -> dict[str, Any]:
    """Return the last error that ``-o json`` wrote to standard error; an empty dictionary if there is none."""
    for line in reversed(errors):
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if "code" in record:
                return dict(record)
    return {}


def record_of(ended: CommandResult) -> dict[str, Any]:
    """Return the record that ``-o json`` wrote to standard output; an empty dictionary if there is none."""
    try:
        record = json.loads(ended.output)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def faults_of(ended: CommandResult) -> str:
    """Return the faults that a check wrote to standard output as one sentence; an empty text if there is none."""
    try:
        findings = json.loads(ended.output)
    except ValueError:
        return ""
    faults = [finding for finding in findings if isinstance(finding, dict) and finding.get("severity") == "fault"]
    if not faults:
        return ""
    named = [f"{fault.get('subject')}: {fault.get('message')} ({fault.get('remedy')})" for fault in faults[:_MAX_NAMED_FAULTS]]
    more = f"; and {len(faults) - _MAX_NAMED_FAULTS} more, in the log" if len(faults) > _MAX_NAMED_FAULTS else ""
    return f"the check found {len(faults)} fault{'' if len(faults) == 1 else 's'}: {'; '.join(named)}{more}"


@dataclass(frozen=True)
class WarehouseHealth:
    """The health of a warehouse after an update: its level, and each concern as a sentence with the command that helps."""

    level: str
    concerns: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The reason why a task fails."""
        return f"the warehouse {'is broken' if self.level == 'broken' else 'needs attention'}: " + "; ".join(self.concerns)


def health_of(record: Mapping[str, Any]) -> WarehouseHealth:
    """Return the health in an update's record; a record of an older command has none, which counts as ok."""
    concerns = []
    for concern in record.get("concerns", ()):
        table = f"{concern['table']}: " if concern["table"] else ""
        concerns.append(f"{table}{concern['text']}" + (f" (`{concern['command']}`)" if concern["command"] else ""))
    return WarehouseHealth(record.get("health") or "ok", tuple(concerns))


def table_lines(epoch: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line of the task's log about what an epoch did to each table."""
    for counts in epoch["counts"]:
        changes = ", ".join(f"{counts[name]} {name}" for name in _COUNT_NAMES if counts.get(name))
        yield f"epoch {epoch['epoch']}, {counts['stream']}: {changes or 'nothing came, nothing ended'}"


def _problems(record: dict[str, Any]) -> str:
    files = [f"{problem['stream']}: {problem['file']}: {problem['message']}" for problem in record.get("problems", ())]
    views = [f"view {view['view']}: {view['message']}" for view in record.get("failed_views", ())]
    tables = [f"table {table['table']}: {table['message']}" for table in record.get("stopped", ())]
    problems = [*files, *tables, *views]
    return f"committed, but {len(problems)} need a person: " + "; ".join(problems)

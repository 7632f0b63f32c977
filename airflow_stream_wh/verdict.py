"""What the end of a command means for its task: done, worth a retry, or a failure that a retry cannot repair."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_stream_wh.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_stream_wh.process import Ended

__all__ = ["HealthThere", "Judgement", "TaskOutcome", "error_of", "faults_of", "health_of", "judge", "record_of", "table_lines"]

RETRY_CODES = frozenset({3, 130})
"""A held lock or a busy store; an interrupted command."""
_COUNTED = ("inserted", "expired", "rejected", "dead", "deferred", "lost")
_NAMED_FAULTS = 3
_SIGNALLED = 128
"""Shells and containers report the death by signal n as 128 + n."""


class TaskOutcome(Enum):
    """What becomes of the task."""

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


def judge(ended: Ended) -> Judgement:
    """Return what an exit code of ``stream-wh`` means (docs/commands.md), with the command's own words.

    A command that was killed, by whom and when ever, is worth a retry: the next update completes what was begun.
    """
    error = error_of(ended.errors)
    text = error.get("message") or (message_of(ended.errors[-1]).text if ended.errors else "")
    told = f"stream-wh ended with exit code {ended.code}" + (f": {text}" if text else "")
    if ended.code == 0:
        return Judgement(TaskOutcome.DONE, "done")
    if ended.code in RETRY_CODES or error.get("retry") is True:
        return Judgement(TaskOutcome.RETRY, told)
    if ended.code < 0 or ended.code > _SIGNALLED:
        number = -ended.code if ended.code < 0 else ended.code - _SIGNALLED
        return Judgement(TaskOutcome.RETRY, f"stream-wh was killed by signal {number}; the next try completes what was begun")
    if ended.code == 1 and not error and record_of(ended):
        return Judgement(TaskOutcome.PROBLEMS, _problems(record_of(ended)))
    return Judgement(TaskOutcome.FAIL, told)


def error_of(errors: Sequence[str]) -> dict[str, Any]:
    """Return the error that ``-o json`` wrote to standard error, the last one, or None."""
    for line in reversed(errors):
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if "code" in record:
                return dict(record)
    return {}


def record_of(ended: Ended) -> dict[str, Any]:
    """Return the record that ``-o json`` wrote to standard output, or None if it wrote no record."""
    try:
        record = json.loads(ended.output)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def faults_of(ended: Ended) -> str:
    """Return the faults that a check wrote to standard output as one sentence with the remedy; None if there is no fault."""
    try:
        findings = json.loads(ended.output)
    except ValueError:
        return ""
    found = [each for each in findings if isinstance(each, dict) and each.get("severity") == "fault"]
    if not found:
        return ""
    named = [f"{each.get('subject')}: {each.get('message')} ({each.get('remedy')})" for each in found[:_NAMED_FAULTS]]
    more = f"; and {len(found) - _NAMED_FAULTS} more, in the log" if len(found) > _NAMED_FAULTS else ""
    return f"the check found {len(found)} fault{'' if len(found) == 1 else 's'}: {'; '.join(named)}{more}"


@dataclass(frozen=True)
class HealthThere:
    """The health of a warehouse after an update: its level, and each concern as one readable sentence with the way on."""

    level: str
    concerns: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why a task fails for it."""
        return f"the warehouse {'is broken' if self.level == 'broken' else 'needs attention'}: " + "; ".join(self.concerns)


def health_of(record: Mapping[str, Any]) -> HealthThere:
    """Return the health in an update's record; a record of an older command has none, which counts as ok."""
    concerns = []
    for each in record.get("concerns", ()):
        table = f"{each['table']}: " if each["table"] else ""
        concerns.append(f"{table}{each['text']}" + (f" (`{each['command']}`)" if each["command"] else ""))
    return HealthThere(record.get("health") or "ok", tuple(concerns))


def table_lines(epoch: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an epoch did to each table, in a line of the task's log."""
    for counts in epoch["counts"]:
        told = ", ".join(f"{counts[name]} {name}" for name in _COUNTED if counts.get(name))
        yield f"epoch {epoch['epoch']}, {counts['stream']}: {told or 'nothing came, nothing ended'}"


def _problems(record: dict[str, Any]) -> str:
    files = [f"{each['stream']}: {each['file']}: {each['message']}" for each in record.get("problems", ())]
    views = [f"view {each['view']}: {each['message']}" for each in record.get("failed_views", ())]
    tables = [f"table {each['table']}: {each['message']}" for each in record.get("stopped", ())]
    told = [*files, *tables, *views]
    return f"committed, but {len(told)} need a person: " + "; ".join(told)

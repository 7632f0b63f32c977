"""What the end of a command means."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from airflow_stream_wh.messages import message_of
from airflow_stream_wh.process import CommandResult
from airflow_stream_wh.verdict import TaskOutcome, faults_of, judge, record_of
from warehouse import errors

from .fake import NOTHING

KINDS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.WarehouseError)]
OPERATIONS = Path(__file__).parent.parent.parent / "docs" / "operations.md"


def ended(code: int, output: str = "", *lines: str) -> CommandResult:
    """Return the end of a command."""
    return CommandResult(code, output, lines)


def test_exit_codes_mean_what_the_documentation_says() -> None:
    """The table of exit codes tells a scheduler to retry exactly those that are retried."""
    rows = re.findall(r"^\| (\d+) \|[^|]*\| ([^|]*) \|$", OPERATIONS.read_text(), re.MULTILINE)
    advice = {int(code): text.strip() for code, text in rows}
    expected = {
        "continue": TaskOutcome.DONE,
        "tell a person": TaskOutcome.FAIL,
        "retry": TaskOutcome.RETRY,
        "run again": TaskOutcome.RETRY,
    }
    assert {code: judge(ended(code)).verdict for code in advice} == {code: expected[text] for code, text in advice.items()}
    assert set(advice) == {0, 1, 2, 3, 4, 130}


@pytest.mark.parametrize("kind", KINDS)
def test_transient_errors_are_retried_and_others_are_not(kind: type[errors.WarehouseError]) -> None:
    """Each error of the library is judged as its type says."""
    record = {"code": kind.code, "message": "m", "exit_code": kind.exit_code, "retry": issubclass(kind, errors.Transient)}
    verdict = judge(ended(kind.exit_code, "", "a warning", json.dumps(record))).verdict
    assert verdict is (TaskOutcome.RETRY if issubclass(kind, errors.Transient) else TaskOutcome.FAIL)


@pytest.mark.parametrize("code", [-9, -15, 137, 143])
def test_a_killed_command_is_tried_again(code: int) -> None:
    """Killed as itself, or inside a shell or container."""
    judgement = judge(ended(code))
    assert judgement.verdict is TaskOutcome.RETRY
    assert f"signal {-code if code < 0 else code - 128};" in judgement.reason


def test_a_reason_is_the_commands_own() -> None:
    """The reason is the message of the error, not the warnings around it."""
    error = json.dumps({"code": "lock_held", "message": "being updated by process 7", "exit_code": 3, "retry": True})
    assert "being updated by process 7" in judge(ended(3, "", "WARN Utils: hello", error, '{"not": "an error"}')).reason
    assert "Segmentation" in judge(ended(2, "", "Segmentation fault")).reason


def test_committed_work_with_problems_is_no_failed_update() -> None:
    """Exit code 1 with a record: the epoch is there, and files or views need a person, who is told which."""
    record = {
        **NOTHING,
        "problems": [{"stream": "cars", "file": "bad.csv", "message": "truncated"}],
        "failed_views": [{"view": "parked", "message": "division by zero"}],
        "stopped": [{"table": "trips", "message": "changed from outside; `stream-wh repair --undo-foreign trips`"}],
    }
    judgement = judge(ended(1, json.dumps(record)))
    assert judgement.verdict is TaskOutcome.PROBLEMS
    assert "3 need a person: cars: bad.csv: truncated; table trips: changed from outside" in judgement.reason
    assert "--undo-foreign trips`; view parked: division by zero" in judgement.reason


@pytest.mark.parametrize("output", ["", "Killed", "[1]", "null"])
def test_output_that_is_no_record_is_none(output: str) -> None:
    """Then exit code 1 is a failure."""
    assert record_of(ended(1, output)) == {}
    assert judge(ended(1, output)).verdict is TaskOutcome.FAIL


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"level": "warning", "message": "slow"}', (logging.WARNING, "slow")),
        ('{"level": "error", "message": "full", "code": "disk"}', (logging.ERROR, "full")),
        ('{"level": "info", "no": "message"}', (logging.INFO, '{"level": "info", "no": "message"}')),
        ("{broken", (logging.INFO, "{broken")),
        ("Killed", (logging.INFO, "Killed")),
    ],
)
def test_lines_of_the_commands_log_have_their_level(line: str, message: tuple[int, str]) -> None:
    """A line that is no JSON object, such as a shell's last word, is reported as it is."""
    assert tuple(message_of(line)) == message


def test_faults_of_a_check_are_one_sentence() -> None:
    """The sentence has the first three faults with their remedies, and counts the others; notes give no sentence."""
    fault = {"severity": "fault", "subject": "x", "message": "is missing", "remedy": "restore it"}
    sentence = faults_of(CommandResult(4, json.dumps([fault] * 5), ()))
    assert sentence == f"the check found 5 faults: {'; '.join(['x: is missing (restore it)'] * 3)}; and 2 more, in the log"
    assert faults_of(CommandResult(4, json.dumps([{**fault, "severity": "note"}]), ())) == ""
    assert faults_of(CommandResult(4, "killed", ())) == ""

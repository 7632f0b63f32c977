"""Every message that gives advice has a case that executes it: who writes a new one adds the case."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from . import test_changes, test_damage, test_erasing, test_reading, test_starting  # noqa: F401 - their cases
from .executed import EXECUTED
from .messages import messages

MESSAGES = messages()
_TESTS = Path(__file__).parents[1]

ELSEWHERE = {
    "stream-wh complete ○": "operations/test_budget.py::test_an_update_makes_its_budget_and_complete_the_rest",
    "stream-wh rebuild ○": "views/test_verification.py::test_a_view_that_went_wrong_is_named_until_it_is_rebuilt",
    "makes it again from the table, once that": (
        "publishing/live/test_publish.py::test_a_repair_makes_a_file_with_other_bytes_of_the_same_size_again"
    ),
    "have its files from when it was stored": (
        "operations/test_lazy.py::test_a_table_is_stored_again_once_its_former_files_are_gone"
    ),
    "and this order is lost once ": (
        "operations/test_lazy.py::test_a_table_is_stored_again_once_its_former_files_are_gone"
    ),
    "was dropped, and epochs that are still readable": (
        "operations/test_unusual_updates.py::test_a_table_that_was_dropped_and_is_declared_again_loads_its_files"
    ),
    "has an accuracy of ○, and ○ was asked for": "operations/test_shed.py::test_commands_tell_the_accuracy",
    "its column": "operations/test_columns.py::test_columns_that_no_table_can_have",
    "`stream-wh rollback --to-epoch ○` goes back to before": "checking/test_check.py::test_a_file_loaded_twice_is_a_fault",
    "go back to an epoch before": "checking/test_check.py::test_a_missing_commit_is_a_fault",
    "are left of an aggregate over the view": (
        "operations/test_aggregates_over_views.py::test_erasing_tells_what_an_aggregate_over_a_view_still_has"
    ),
    "are left of an aggregate that is not declared any more": (
        "operations/test_aggregates.py::test_what_a_dropped_aggregate_alone_used_leaves_shared_synopses"
    ),
    "Spark does not start (○); run `stream-wh doctor`": "cli/test_verbs.py::test_doctor_says_ok_or_what_to_do",
}
"""Parts of messages whose verbs other tests execute after bringing the same trouble about, or which they show to be found."""

NO_ADVICE = {
    "stream-wh demo": "an example of `--help`, which the docs' tests execute",
    "stream-wh init w --example flights && cd w": "same",
    "stream-wh probe flights N14228": "same",
    "stream-wh update --at 2013-01-01T12:00:00Z": "same",
    'name = "Spark SQL type"': "says what a key is",
    'such as "loaded/flights"': "says what a key is",
    '"○" with after_load': "what was found, of an error whose advice is beside it",
    '`budget` with how = "lazy"': "same",
    '○ with short_lived = "report"': "same",
    '○ with vacuum = "manual"': "same",
    'a coalesced table with how = "lazy"': "same",
    'the view "○" with short_lived = "drop"': "same",
    '○, with over = "arrivals"': "same",
    'false, or insertion = "staggered"': "the pairs of layout keys, which the tests of layouts go through",
    "--rebuild or --side-by-side": "two options of a command that is executed",
    'null_expiry = "never"': "says what a key would do",
    "or with your own figures now": "goes on in the next line, which is executed",
    "`stream-wh advise ○`": "a look, executed by the tests of advice",
    "`stream-wh status` counts them": "a look at more of the same",
    "`stream-wh health`": "same",
    "as `stream-wh health` says": "`health` names the command, which is executed",
    "`stream-wh history` lists them)": "a look; of the library alone, where the command line takes a number only",
    "stream-wh check": "a look, which finds what is missing",
    "`stream-wh check --repair` repairs it if": "of records that no reader takes for torn; else it says to restore",
    "stream-wh vacuum": "space that this disk lacks",
    "`stream-wh migrate ○`": "after a change of the layout that a person has to choose; executed where the layout is changed",
    "stop that `stream-wh run`": "names a process",
    "ahead of the clock": "restores a backup, which is executed, after the clock was wrong",
    "no key was given": "of the library; the command line asks for its options itself",
    "--from says where --each starts": "same",
    "pip install": "of packages, which tests do not install",
    "by an extension of DuckDB": "of a root in an object store, where tests/objects runs the snippets",
    "its archive was made for these": "a stream that is not to be archived any more; forgetting it is executed",
}
"""Parts of texts that look like advice, with the reason why no case executes them."""


def _case(text: str) -> str | None:
    """Return the longest part of a message that a table names."""
    return max((part for part in (*EXECUTED, *ELSEWHERE, *NO_ADVICE) if part in text), key=len, default=None)


@pytest.mark.parametrize("text", sorted(MESSAGES))
def test_advice_is_executed(text: str) -> None:
    """By a case here, by a test that is named, or it is none, for a reason."""
    assert _case(text), f"no case of tests/remedies executes the advice of {MESSAGES[text]}: {text!r}"


def test_the_tables_name_messages_that_are_there() -> None:
    """A message that was changed takes its case along."""
    texts = list(MESSAGES)
    for part in (*ELSEWHERE, *NO_ADVICE):
        assert any(part in text for text in texts), part


@pytest.mark.parametrize("place", sorted(ELSEWHERE.values()))
def test_tests_of_other_files_are_there(place: str) -> None:
    """By file and name."""
    file, _, name = place.partition("::")
    tree = ast.parse((_TESTS / file).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_most_is_executed() -> None:
    """The rest is counted, so that it does not grow unseen."""
    cases = [_case(text) for text in MESSAGES]
    assert sum(case in EXECUTED for case in cases) >= 60

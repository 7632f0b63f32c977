"""Tables on disk and the steps that change them, in words for people; records, paths and JSON keep their names.

A side table of a stream or view is named after it: `flights.synopsis0_1`, `destinations.spare`, `busiest.2`.
"""

from __future__ import annotations

import re

__all__ = ["STEP_WORDS", "step_text", "table_text"]

STEP_WORDS = {
    "create-table": "create",
    "add-columns": "add columns to",
    "move-window": "load and expire",
    "rewrite-cells": "rewrite",
    "migrate-table": "change the layout of",
    "move-deferred": "update",
    "store-rejected": "keep",
    "drop-overdue": "drop what is too old of",
    "set-properties": "set the properties of",
    "move-relation": "take changes into",
    "restore-table": "restore",
    "replace-table": "empty, for its new declaration,",
    "rewrite-buckets": "replace what changed of",
    "store-restored": "keep",
    "erase-rows": "erase rows of",
    "cut-log": "shorten the log of",
}
"""The work of a step on its table, in words, by its tag."""
_FOLDERS = {
    "deferred": "waiting rows of {}",
    "rejected": "rejected rows of {}",
    "restored": "short-lived results of {}",
}
_BESIDE = (
    (re.compile(r"(.+)\.synopsis\d+_\d+"), "counts of {} for its aggregates"),
    (re.compile(r"(.+)\.spare"), "spare rows of {}"),
    (re.compile(r"(.+)\.owed"), "ended rows that {} owes"),
    (re.compile(r"(.+)\.(\d+)"), "part {1} of {0}"),
)


def table_text(path: str) -> str:
    """Return the contents of a table below the root in words; a path of unknown form stays as it is.

    >>> table_text("tables/flights"), table_text("rejected/flights"), table_text("tables/flights.synopsis0_1")
    ('flights', 'rejected rows of flights', 'counts of flights for its aggregates')
    >>> table_text("tables/busiest.2"), table_text("destinations.spare")
    ('part 2 of busiest', 'spare rows of destinations')
    """
    folder, _, name = path.rpartition("/")
    name = next((words.format(*match.groups()) for form, words in _BESIDE if (match := form.fullmatch(name))), name)
    if folder in ("", "tables"):
        return name
    return _FOLDERS[folder].format(name) if folder in _FOLDERS else path


def step_text(step: str) -> str:
    """Return a step as an epoch's record names it, `PATH: TAG`, in words.

    >>> step_text("tables/flights: move-window"), step_text("rejected/flights: store-rejected")
    ('load and expire flights', 'keep rejected rows of flights')
    """
    path, separator, tag = step.rpartition(": ")
    return f"{STEP_WORDS[tag]} {table_text(path)}" if separator and tag in STEP_WORDS else step

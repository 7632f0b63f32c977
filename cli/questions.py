"""The questions of ``init --from`` on a terminal; each offers the proposal as its default.

No file is written before all questions are answered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from warehouse.cli.output.visible import visible
from warehouse.errors import UsageError
from warehouse.time import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.catalog.init_options import InitOptions
    from warehouse.catalog.proposal import Proposal

__all__ = ["ask"]

_NEVER = "never"
_QUESTIONS: tuple[tuple[str, str, Callable[[Proposal], str]], ...] = (
    ("key", "Key that probes look for: a column, or several with commas", lambda proposed: ",".join(proposed.key.columns)),
    ("arrival", "Arrival of a row: a column or SQL", lambda proposed: proposed.arrival),
    ("expires", "End of a row: a column, SQL, a duration's column, or never", lambda proposed: proposed.expires or _NEVER),
    ("interval", "Time between two updates", lambda proposed: format_duration(proposed.interval)),
)


def ask(source: Path, choices: InitOptions) -> InitOptions:
    """Return the options, completed by the user's answers; a default answer changes no option.

    If the file does not allow an answer, the question is asked again with a message.

    Raises
    ------
    UsageError
        When the file is not usable, or does not have a column that an option names.

    """
    from warehouse.catalog.proposal import proposal  # noqa: PLC0415 - it needs DuckDB, help does without

    proposed = proposal(source, choices)
    for name, question, default in _QUESTIONS:
        while not getattr(choices, name):
            offered = default(proposed)
            answer = click.prompt(visible(question), default=offered, err=True).strip()
            if answer == offered:
                break
            try:
                changed = _with_answer(choices, name, answer)
                proposed = proposal(source, changed)
            except UsageError as error:
                click.echo(visible(str(error)), err=True)
                continue
            choices = changed
    return choices


def _with_answer(choices: InitOptions, name: str, answer: str) -> InitOptions:
    if name == "key":
        return replace(choices, key=tuple(part.strip() for part in answer.split(",") if part.strip()))
    if name == "arrival":
        return replace(choices, arrival=answer)
    if name == "expires":
        return replace(choices, expires=answer)
    try:
        return replace(choices, interval=parse_duration(answer))
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from error

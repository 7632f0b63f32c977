"""``init``: writes a project, prints the proposals for a file, and the commands to run next."""
# ruff: noqa: PLC0415 - help does without the engine that looks at a file

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from warehouse.catalog.load import FILE_NAME
from warehouse.cli.outcome import Report
from warehouse.time import format_duration, format_instant
from warehouse.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.init_options import InitOptions
    from warehouse.catalog.proposal import Proposal

__all__ = ["from_example", "from_file"]

_COMMAND = re.compile(r"^#     (stream-wh .+?)(?:  +\(.*\))?$", re.MULTILINE)


def from_example(directory: Path, example: str | None) -> Report:
    """Write the project of an example, by default of the one that shows every key."""
    from warehouse.catalog.initialise import write_project

    written = write_project(directory, example)
    return Report(*_written_project(directory, written, (), _suggested_commands(written[0])))


def _suggested_commands(file: Path) -> tuple[str, ...]:
    """Return the commands that an example's comment at the top of its file suggests."""
    intro, _, _ = file.read_text(encoding="utf-8").partition("\n\n")
    return tuple(_COMMAND.findall(intro))


def from_file(directory: Path, source: Path, choices: InitOptions, now: int) -> Report:
    """Write the project that is proposed for a file; ``now`` is the clock instant, in microseconds."""
    from warehouse.catalog.initialise import write_files
    from warehouse.catalog.proposal import proposal

    proposed = proposal(source, choices, now)
    written = write_files(directory, proposed.files)
    first = proposed.first
    # rows of a past sample that end have mostly expired by now; without ends all rows are live now
    past = first is not None and proposed.expires is not None and first.at <= now
    update = f"stream-wh update --at {format_instant(first.at)}" if first and past else "stream-wh update"
    probe = None if first is None else first.probe(proposed.stream)
    following = (update, probe) if probe else (update,)
    record, lines = _written_project(directory, written, _findings(written[0]), following)
    return Report(record | _proposal_record(proposed), lines)


def _written_project(
    directory: Path, written: list[Path], findings: tuple[str, ...], following: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    landing = len(written) - 1
    commands = [] if directory.name in ("", ".") else [shlex.join(["cd", str(directory)])]
    commands += ["stream-wh validate", *following]
    lines = (
        f"wrote {directory / FILE_NAME}" + (f" and {counted(landing, 'landing file')}" if landing else ""),
        *findings,
        "next:",
        *(f"  {line}" for line in commands),
    )
    files = [path.relative_to(directory).as_posix() for path in written]
    return {"directory": str(directory), "files": files, "next": commands}, lines


def _proposal_record(proposed: Proposal) -> dict[str, Any]:
    first = proposed.first
    first_update = first and {
        "at": format_instant(first.at),
        **{name: getattr(first, name) for name in ("live", "waiting", "dead", "rejected")},
    }
    return {
        "stream": proposed.stream,
        "key": list(proposed.key.columns),
        "arrival": proposed.arrival,
        "expires": proposed.expires,
        "update_interval": format_duration(proposed.interval),
        "first_update": first_update,
    }


def _findings(file: Path) -> tuple[str, ...]:
    """Return the findings about the file: the comments of the configuration between its introduction and its first section."""
    _, _, after_introduction = file.read_text(encoding="utf-8").partition("\n#\n")
    return tuple(line.removeprefix("# ") for line in after_introduction.partition("\n\n")[0].splitlines())

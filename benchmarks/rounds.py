"""One p of updates, each beside plain writes of the same rows, in turn: what the update and bytes lines are made of."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.plain import measured

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.plain import Cost, PlainWrites
    from benchmarks.project import Project
    from warehouse.epochs.records import Epoch

__all__ = ["Round", "play"]


_NOW_AND_THEN = 3


@dataclass(frozen=True)
class Round:
    """An update and the plain writes of its rows.

    ``sealed`` are merged (sub-index, expiry block) pairs; ``inserted`` and ``rewritten`` rows; ``written`` the bytes of
    added data files, ``records`` the bytes of the commit, the plan and the epoch; ``with_system`` and ``user_only`` the
    bytes of the plain writes; ``held`` the bytes of the newest epoch's files, ``live_alone`` those of its live rows in files of
    their own, with the system's columns and without (now and then); ``phases`` seconds up to each point of the update.
    """

    slot: int
    timed: bool
    sealed: int
    inserted: int
    rewritten: int
    files: int
    written: int
    records: int
    with_system: int
    user_only: int
    held: int
    live_alone: tuple[int, int] | None
    update: Cost
    plain: Cost | None
    tuned: Cost | None
    cached: Cost | None
    phases: dict[str, float]


def play(project: Project, session: SparkSession, plain: PlainWrites, *, beside: bool) -> list[Round]:
    """Update a project once for each slot of a p; ``beside`` makes the plain writes too."""
    rounds = []
    for number in range(project.settings.updates):
        slot = project.slot + 1
        landed = project.land(slot)
        written_first = beside and number % 2 == 1  # neither side always finds the files in a warmer cache
        costs = _plain_costs(plain, landed) if written_first else None
        done: list[tuple[Epoch, dict[str, float]]] = []
        update = measured(session, lambda: done.append(project.update(session)))  # noqa: B023 - called at once
        if beside and costs is None:
            costs = _plain_costs(plain, landed)
        epoch, phases = done[0]
        counts = epoch.counts[0]
        rounds.append(
            Round(
                slot=slot,
                timed=number >= project.settings.warm_up,
                sealed=counts.sealed,
                inserted=counts.inserted,
                rewritten=counts.rewritten,
                files=counts.files_added,
                written=counts.bytes_written,
                records=_record_bytes(project.root, epoch),
                with_system=plain.bytes_of(landed, slot, system_columns=True) if beside else 0,
                user_only=plain.bytes_of(landed, slot, system_columns=False) if beside else 0,
                held=sum(part.bytes for part in epoch.tables[0].partitions),
                live_alone=_live_alone(project, plain, slot) if beside and number % _NOW_AND_THEN == 0 else None,
                update=update,
                plain=costs[0] if costs else None,
                tuned=costs[1] if costs else None,
                cached=costs[2] if costs else None,
                phases=phases,
            ),
        )
        shutil.rmtree(landed)
    return rounds


def _live_alone(project: Project, plain: PlainWrites, slot: int) -> tuple[int, int]:
    with_system, user_only = (plain.bytes_of_live(project.files(), slot, system_columns=system) for system in (True, False))
    return with_system, user_only


def _plain_costs(plain: PlainWrites, landed: Path) -> tuple[Cost, Cost, Cost]:
    return plain.write(landed), plain.write_tuned(landed), plain.write_cached(landed)


def _record_bytes(root: Path, epoch: Epoch) -> int:
    """Return the bytes that an update writes beside data files, including a checkpoint if it made one."""
    records = list((root / "epochs").glob(f"{epoch.number:020d}.*"))
    for table in epoch.tables:
        records += (root / table.path / "_delta_log").glob(f"{table.version:020d}.*")
    return sum(file.stat().st_size for file in records)

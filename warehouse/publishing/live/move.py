"""Plans how a live table is moved from its rows to the live rows of an epoch (pure).

Invariant of a live table at an epoch of slot k: its files hold `{ r in the table's files at the epoch : r._exp_slot > k }`, each
row once. If all rows of a table's file are live, the file is *shared*. If some are dead, the others are in *pieces*: they are cut
by the highest bit in which their expiration slot differs from k, as in a timing wheel. Later a piece either dies as a whole or is
cut again, so a row is written at most once for each bit of the distance to its end.

A piece may have rows of several files, and later cuts join pieces of several cuts. If a source file of pieces leaves the table
(it was sealed, rewritten or erased), all pieces that share a file with them, directly or not, are void.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Cut", "LiveFile", "LiveMove", "TableFile", "plan_move"]


@dataclass(frozen=True)
class TableFile:
    """A data file of the table: its identity, absolute path, and bounds of ``_exp_slot``.

    Rows of files of one ``group`` leave together. An unknown bound is None: then the file may have dead rows.
    """

    identity: str
    path: str
    group: str
    min_exp_slot: int | None
    max_exp_slot: int | None


@dataclass(frozen=True)
class LiveFile:
    """A file of the live table: its path, and the table's files with its rows; a piece also has the slots of its cut.

    ``cut_slot`` is the slot at which the piece was cut; it is None for a shared file, which is whole. ``min_exp_slot`` and
    ``max_exp_slot`` are the smallest and the largest ``_exp_slot`` of the piece's rows.
    """

    path: str
    sources: frozenset[str]
    group: str = ""
    cut_slot: int | None = None
    min_exp_slot: int = 0
    max_exp_slot: int = 0


@dataclass(frozen=True)
class Cut:
    """Rows to write into pieces: the live rows of some of the table's files and of some pieces."""

    group: str
    sources: frozenset[str]
    files: tuple[TableFile, ...]
    pieces: tuple[LiveFile, ...]


@dataclass(frozen=True)
class LiveMove:
    """The files that stay, the table's files that are shared from now on, and the cut rows; all other files leave."""

    kept: tuple[LiveFile, ...]
    shared: tuple[TableFile, ...]
    cuts: tuple[Cut, ...]


def plan_move(table_files: Sequence[TableFile], live_files: Sequence[LiveFile], slot: int) -> LiveMove:
    """Return the move of a live table to an epoch.

    Parameters
    ----------
    table_files
        The table's files at the epoch.
    live_files
        The live table's files before the move; empty if they are not trusted.
    slot
        The epoch's slot k: rows with ``_exp_slot`` at or below it are dead.

    """
    identities = {file.identity for file in table_files}
    with_live_rows = [file for file in table_files if file.max_exp_slot is None or file.max_exp_slot > slot]
    all_live = {file.identity: file for file in with_live_rows if file.min_exp_slot is not None and file.min_exp_slot > slot}
    shared_before = {next(iter(live_file.sources)): live_file for live_file in live_files if live_file.cut_slot is None}
    kept_files = [share for identity, share in shared_before.items() if identity in all_live]
    pieces = _valid_pieces([live_file for live_file in live_files if live_file.cut_slot is not None], identities, slot)
    kept_files += [piece for piece in pieces if piece.min_exp_slot > slot]
    covered = frozenset[str]().union(*(piece.sources for piece in pieces))
    mixed = [file for file in with_live_rows if file.identity not in all_live and file.identity not in covered]
    shared = tuple(file for identity, file in all_live.items() if identity not in shared_before and identity not in covered)
    with_dead_rows = [piece for piece in pieces if piece.min_exp_slot <= slot < piece.max_exp_slot]
    return LiveMove(tuple(kept_files), shared, tuple(_cuts(mixed, with_dead_rows)))


def _valid_pieces(pieces: Sequence[LiveFile], present: set[str], slot: int) -> list[LiveFile]:
    """Return the valid pieces: they share no source, directly or through others, with a piece that lost one or was cut later."""
    invalid: set[str] = set()
    for piece in pieces:
        if not piece.sources <= present or piece.cut_slot is None or piece.cut_slot > slot:
            invalid |= piece.sources
    while True:
        valid = [piece for piece in pieces if not piece.sources & invalid]
        further = {source for piece in pieces if piece.sources & invalid for source in piece.sources}
        if further <= invalid:
            return valid
        invalid |= further


def _cuts(files: Iterable[TableFile], pieces: Iterable[LiveFile]) -> Iterator[Cut]:
    groups: dict[str, tuple[list[TableFile], list[LiveFile]]] = {}
    for file in files:
        groups.setdefault(file.group, ([], []))[0].append(file)
    for piece in pieces:
        groups.setdefault(piece.group, ([], []))[1].append(piece)
    for group, (group_files, group_pieces) in sorted(groups.items()):
        sources = {file.identity for file in group_files}.union(*(piece.sources for piece in group_pieces))
        yield Cut(group, frozenset(sources), tuple(group_files), tuple(group_pieces))


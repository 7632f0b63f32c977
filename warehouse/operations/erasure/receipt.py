"""The receipt of an erasure: the number of rows, the time, the files, and the result of reading everything again.

It is a JSON document under ``root/erasures``, named by the epoch. It has hashes of the keys: a known key can be found in it
(:meth:`ErasedKeys.hashes`), but the receipt alone does not reveal the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.operations.erasure.proof import Proof
    from warehouse.operations.erasure.store import StoreReceipt

__all__ = ["Receipt", "TableReceipt", "beyond_reach", "receipt_path", "write_receipt"]


@dataclass(frozen=True)
class TableReceipt:
    """One table's directory: rows erased, files removed (with the copies in older epochs), log files removed."""

    path: str
    rows: int
    files_removed: tuple[str, ...]
    log_files_removed: int
    log_starts_at: int


@dataclass(frozen=True)
class Receipt:
    """The facts of one erasure; instants are ISO 8601 texts.

    ``keys`` are hashes, empty if expired rows were erased. ``landing`` are landing files that still have a key: the erasure is
    complete once there are no such files, and no such file arrives later. ``ended_rows_given_up`` counts, by view, the rows of
    all keys that had ended while their results were owed: these results will not be reported. ``store`` has the facts of a root
    in an object store. ``beyond_reach`` describes where the rows may still be, and what to do about it.
    """

    format: int
    kind: str
    table: str | None
    keys: tuple[str, ...]
    salt: str
    asked_at: str
    completed_at: str
    epoch: int
    window_time: str
    rows: int
    tables: tuple[TableReceipt, ...]
    views_built_anew: tuple[str, ...]
    epochs_retired: int
    proof: Proof
    landing: tuple[str, ...] = ()
    store: StoreReceipt | None = None
    beyond_reach: str = ""
    ended_rows_given_up: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether nothing is left under the root, in landing files, and in former versions in a store."""
        return not self.landing and not self.proof.traces and not (self.store and self.store.unproved)


def beyond_reach(epoch: int) -> str:
    """Return a text about the data that the erasure of this epoch cannot reach, and what to do about it."""
    return (
        f"backups and other copies of the root that were made before epoch {epoch} hold the rows still; delete them "
        "(a backup's backup.json names its epoch), then take a new one with `stream-wh backup DIR`"
    )


def receipt_path(root: Path, epoch: int) -> Path:
    """Return where the receipt of the erasure that made an epoch is."""
    return root / "erasures" / f"{epoch:020d}.json"


def write_receipt(root: Path, receipt: Receipt) -> Path:
    """Write a receipt durably; it replaces the receipt of a killed attempt."""
    path = receipt_path(root, receipt.epoch)
    store_of(path).write_replacing(path, msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n")
    return path

"""The storage of a warehouse as an interface: a disk of this machine, or an object store.

Paths of both kinds have pathlib's methods to read, list and delete. The store of a path has the methods that the kinds implement
in different ways: write a name that must be free, make durable, stage a table's files. A flag says whether a store has an
ability, so that code asks for the ability instead of the kind of store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from warehouse.objects.path import ObjectPath
from warehouse.storage.local_disk import LocalDisk
from warehouse.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path, PurePath

__all__ = ["Store", "store_of"]


class Store(Protocol):
    """Operations that the two kinds of stores do in different ways; all path arguments belong to the store.

    Attributes
    ----------
    local_paths
        Whether the operating system and other libraries open its paths: files there are renamed, linked and locked.
    cheap_requests
        Whether it is cheap to look at each of many files, or to read all bytes of one.
    late_commits
        Whether a process that lost the writer lock may still commit: no lock dies with its JVM.
    keeps_deleted
        Whether it may keep deleted data, as former versions or parts of uploads.

    """

    local_paths: bool
    cheap_requests: bool
    late_commits: bool
    keeps_deleted: bool

    def entry_names(self, directory: Path) -> list[str]:
        """Return the names in a directory, in no order; an empty list if it is not there."""

    def write_exclusive(self, path: Path, content: bytes) -> None:
        """Write a file durably; readers see the whole file or nothing.

        Raises
        ------
        FileExistsError
            When the name is taken.
        NotDurableError
            When the disk does not confirm it; the name is free again then.

        """

    def write_replacing(self, path: Path, content: bytes) -> None:
        """Write a file durably and replace a file of that name; readers see either the complete old or the complete new file.

        Raises
        ------
        NotDurableError
            When the disk does not confirm it; the name has the old or the new file: write it again.

        """

    def link_or_copy(self, source: Path, target: Path) -> bool:
        """Give a file that is never changed a further name, and return whether it is a link.

        Raises
        ------
        FileExistsError, FileNotFoundError
            When the name is taken, or the file is not there.

        """

    def writing_into(self, directory: Path) -> AbstractContextManager[Path]:
        """Yield a directory of this machine; the files written there lie in ``directory`` when the block ends."""

    def scratch_directory(self, table: Path) -> AbstractContextManager[Path]:
        """Yield an empty directory of this machine for files that are then given to the table; it is deleted at the end."""

    def bring(self, files: Iterable[Path], scratch: Path) -> None:
        """Give files that are never changed names in a scratch directory of their table: links, or copies.

        Raises
        ------
        FileNotFoundError
            When one of them is not there.

        """

    def publish(self, scratch: Path, names: Iterable[str], directory: Path) -> None:
        """Give finished files of a scratch directory their names in a directory of the table; readers see whole files or no file.

        A file of that name that another writer has made may stay: it is as good.

        Raises
        ------
        NotDurableError
            When the disk does not confirm one of them.

        """

    def present(self, top: Path, files: Iterable[str]) -> set[str]:
        """Return the files (names below ``top``) that exist."""

    def make_directory(self, directory: Path) -> None:
        """Make a directory and those above it that are not there."""

    def staging_directory(self, table: Path) -> Path:
        """Return where a table's next data files are written, before a commit names them."""

    def take_back(self, table: Path, files: Iterable[PurePath]) -> None:
        """Remove files (relative to the table) of a commit that failed, where another attempt could meet them."""

    def remove_tree(self, directory: Path, *, ignore_errors: bool = False) -> None:
        """Delete a directory with its content; with ``ignore_errors``, as much as possible."""

    def remove_file(self, path: Path) -> None:
        """Delete a file of a table, and directories and companion files that are empty or useless without it."""

    def sync_tree(self, top: Path, files: Iterable[PurePath]) -> None:
        """Make files (relative to ``top``) and all directories from them up to ``top`` durable.

        Raises
        ------
        NotDurableError
            When the disk does not confirm one of them; then none can be trusted.

        """

    def sync_file(self, path: Path) -> None:
        """Make a file's content durable."""

    def sync_directory(self, directory: Path) -> None:
        """Make a directory's entries durable."""

    def named_since(self, path: Path) -> int:
        """Return since when a file has its name, in microseconds."""

    def free_bytes(self, directory: Path) -> int | None:
        """Return how many bytes can still be written; None where there is no bound."""

    def overtaken(self, error: OSError) -> bool:
        """Whether an error says that another process, which has the lock by now, wrote first."""


_LOCAL_DISK: Store = LocalDisk()
_OBJECTS: Store = ObjectStore()


def store_of(path: Path) -> Store:
    """Return the store in which a path is."""
    return _OBJECTS if isinstance(path, ObjectPath) else _LOCAL_DISK

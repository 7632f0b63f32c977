"""A store of objects (S3, Google, Azure), by conditional puts.

A put is durable when the store has answered: the object is complete or does not exist. A conditional put (``If-None-Match: *``)
fails if the name is taken. So nothing must be synced to a disk, and no file must be removed after a failed sync. A file is one
object.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from warehouse.objects.path import object_path
from warehouse.storage.side_by_side import each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import PurePath

__all__ = ["ObjectStore"]


class ObjectStore:
    """Objects in a bucket; see :class:`warehouse.storage.store.Store`."""

    local_paths = False
    cheap_requests = False
    late_commits = True
    keeps_deleted = True

    def entry_names(self, directory: Path) -> list[str]:
        """Return the names directly below a prefix."""
        try:
            return [entry.name for entry in directory.iterdir()]
        except FileNotFoundError:
            return []

    # --- writing ---

    def write_exclusive(self, path: Path, content: bytes) -> None:
        """Put an object under a name that must be free."""
        object_path(path).put(content, "create")

    def write_replacing(self, path: Path, content: bytes) -> None:
        """Put an object in place of one of that name."""
        object_path(path).put(content)

    def link_or_copy(self, source: Path, target: Path) -> bool:
        """Copy an object in the store."""
        object_path(source).copy_to(object_path(target))
        return False

    @contextmanager
    def writing_into(self, directory: Path) -> Iterator[Path]:
        """Yield a directory of this machine whose files are put into the store at the end."""
        with TemporaryDirectory(prefix="stream-wh-") as scratch:
            yield Path(scratch)
            for file in sorted(Path(scratch).iterdir()):
                object_path(directory / file.name).upload(file)

    @contextmanager
    def scratch_directory(self, table: Path) -> Iterator[Path]:  # noqa: ARG002 - as the protocol has it
        """Yield a temporary directory."""
        with TemporaryDirectory(prefix="stream-wh-") as scratch:
            yield Path(scratch)

    def bring(self, files: Iterable[Path], scratch: Path) -> None:
        """Copy the objects, several at a time."""
        each(lambda file: object_path(file).download(scratch / file.name), files)

    def publish(self, scratch: Path, names: Iterable[str], directory: Path) -> None:
        """Put the files; each replaces an object of its name."""
        for name in names:
            object_path(directory / name).upload(scratch / name)

    def present(self, top: Path, files: Iterable[str]) -> set[str]:
        """List the objects below the prefix, a thousand in each request, instead of a request for each file."""
        names = {name for name, _, _ in object_path(top).tagged()}
        return names.intersection(files)

    def make_directory(self, directory: Path) -> None:
        """Do nothing: a prefix is there with its first object."""

    # --- a table's new files ---

    def staging_directory(self, table: Path) -> Path:
        """Return a new prefix, in which the files stay: no other process takes or overwrites them."""
        return table / f"staged-{uuid.uuid4().hex}"

    def take_back(self, table: Path, files: Iterable[PurePath]) -> None:
        """Do nothing: vacuum removes uncommitted files."""

    # --- removing ---

    def remove_tree(self, directory: Path, *, ignore_errors: bool = False) -> None:  # noqa: ARG002 - as the protocol has it
        """Delete all objects below a prefix."""
        object_path(directory).unlink_below()

    def remove_file(self, path: Path) -> None:
        """Delete an object."""
        path.unlink()

    # --- making durable ---

    def sync_tree(self, top: Path, files: Iterable[PurePath]) -> None:
        """Do nothing: an object is durable once it was put."""

    def sync_file(self, path: Path) -> None:
        """Do nothing: an object is durable once it was put."""

    def sync_directory(self, directory: Path) -> None:
        """Do nothing: an object is durable once it was put."""

    # --- facts ---

    def named_since(self, path: Path) -> int:
        """Return when the object was put."""
        return path.stat().st_mtime_ns // 1000

    def free_bytes(self, directory: Path) -> int | None:  # noqa: ARG002 - as the protocol has it
        """Return None: a store does not fill up."""
        return None

    def overtaken(self, error: OSError) -> bool:
        """Whether a name that must be free was taken: only another process that carries out the same plan writes it."""
        return isinstance(error, FileExistsError)

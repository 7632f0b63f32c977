"""Finds the format of a file for ``init --from``: by the ending of its name, else by its first bytes."""

from __future__ import annotations

import re
import shlex
import zlib
from typing import TYPE_CHECKING

from warehouse.catalog.avro_files import is_avro
from warehouse.catalog.codecs import CODECS, is_compressed, open_decompressed
from warehouse.catalog.json_arrays import begins_array
from warehouse.catalog.log_lines import log_format_of
from warehouse.catalog.model import COLUMNAR
from warehouse.catalog.zeek import is_zeek
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Format

__all__ = ["format_of"]

_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
    ".avro": "avro",
}
_REFUSED_ENDINGS = {
    ".pkl": "write its rows as Parquet or CSV",
    ".xls": "save its sheet as CSV",
    ".xlsx": "save its sheet as CSV",
    ".ods": "save its sheet as CSV",
    ".xml": "write its records as JSON lines",
    ".zip": "take the files out of it",
    ".tar": "take the files out of it",
    ".db": "write its table as CSV or Parquet",
    ".sqlite": "write its table as CSV or Parquet",
    ".pcap": "let Zeek make a log of it",
}
"""Endings of formats that are not read, each with the remedy."""
_CONVERTING_COMMANDS = {
    ".feather": "import pyarrow.feather, pyarrow.parquet; "
    "pyarrow.parquet.write_table(pyarrow.feather.read_table({source!r}), {target!r})",
}
_CONVERTING_COMMANDS[".arrow"] = (
    "import pyarrow.ipc, pyarrow.parquet; file = pyarrow.memory_map({source!r}); "
    "opened = pyarrow.ipc.open_file if file.read(6) == b'ARROW1' else pyarrow.ipc.open_stream; file.seek(0); "
    "pyarrow.parquet.write_table(opened(file).read_all(), {target!r})"
)
"""Commands that convert a file to Parquet, by its ending; Arrow has a format of files and one of streams."""
_BEGINNING_BYTES = 1 << 16
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes of no text; in UTF-16 half of them are zeros."""
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MOST_SUFFIX = 11


def format_of(source: Path) -> tuple[Format, str]:
    """Return the format of a file, and the ending of the names of such files (an empty text: any ending).

    Raises
    ------
    UsageError
        When it does not exist, or has none of the formats; the message says what to do.

    """
    if not source.is_file():
        raise UsageError(f"{source} is not a file; name one of the files to load")
    if any("\ud800" <= sign <= "\udfff" for sign in source.name):
        raise UsageError(f"the name {source.name!r} is no UTF-8, so updates would leave the file out; rename it")
    suffixes = source.suffixes[-2:] if is_compressed(source.name) else source.suffixes[-1:]
    ending = suffixes[0].lower() if suffixes else ""
    kind = _ENDINGS.get(ending)
    if ending in _CONVERTING_COMMANDS:
        target = f"{source.name.split('.')[0]}.parquet"
        command = f"python -c {shlex.quote(_CONVERTING_COMMANDS[ending].format(source=str(source), target=target))}"
        raise UsageError(f"{source} cannot be read as it is; `{command}` writes it as Parquet, for --from {target}")
    if ending in _REFUSED_ENDINGS:
        raise UsageError(f"{source} cannot be read as it is: {_REFUSED_ENDINGS[ending]}")
    if kind is None or (kind in COLUMNAR and len(suffixes) > 1):
        kind = _format_by_beginning(source)
    elif kind == "csv" and is_zeek(source):
        kind = "zeek"
    is_number = len(suffixes) == 1 and (ending[1:].isdigit() or len(ending) > _MOST_SUFFIX or not ending[1:].isalnum())
    return kind, "" if is_number else "".join(suffixes)


def _format_by_beginning(source: Path) -> Format:
    try:
        with source.open("rb") as raw:
            beginning = open_decompressed(raw, source.name).read(_BEGINNING_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"{source} cannot be read ({error}): it is damaged, or not compressed as its name says; "
            "get it again, or rename it"
        ) from error
    if beginning.startswith(b"PAR1"):
        return "parquet"
    if is_avro(beginning):
        return "avro"
    # A log may have zeros where its machine lost power.
    if _CONTROL_BYTES.search(beginning) and not beginning.startswith(_UTF_16_MARKS) and log_format_of(source) is None:
        formats = f"{', '.join(_ENDINGS)}, or text compressed by {', '.join(CODECS)}"
        raise UsageError(f"{source} is no text, and its name has no ending of a file that can be read: {formats}; convert it")
    if is_zeek(source):
        return "zeek"
    if begins_array(beginning) or beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return "json"
    return "csv"

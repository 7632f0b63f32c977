"""The read log: what probes and scans looked at, outside the root, without keys, and never in anyone's way."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from warehouse.serving import Reader
from warehouse.serving.read_log import VARIABLE, Read, log_file, reads_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .house import House


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state directory of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(VARIABLE, "")
    return tmp_path / "state"


def ask(root: Path) -> None:
    """Probe a key twice, many keys, a range, and scan."""
    with Reader.open(root, logged=True) as reader:
        reader.probe("names", ["a"]).all()
        reader.probe("names", ["a"]).arrow()
        reader.probe("names", ["a", "b"]).all()
        reader.probe("names", from_="a").all()
        list(reader.scan("names").batches())
        reader.scan("names", where="name > 'a'").all()
        reader.sql("SELECT count(*) FROM names").all()


def test_each_read_is_noted_once_it_was_read_to_its_end(house: House, state: Path) -> None:
    """The log has kind, number of keys, files considered and opened, rows and seconds; SQL queries are not logged."""
    ask(house.root)
    reads = reads_of(house.root)
    assert [(read.kind, read.keys, read.first) for read in reads] == [
        ("probe", 1, True), ("probe", 1, False), ("probe", 2, False), ("range", 0, False), ("scan", 0, False), ("scan", 0, False),
    ]  # fmt: skip
    assert {read.table for read in reads} == {"names"}
    assert reads[0].rows == reads[1].rows == len(house["names"].probed(lambda key: key == ("a",), 4))
    assert 0 < reads[1].opened < reads[1].files
    assert all(read.seconds > 0 for read in reads)
    assert [path.parent for path in state.rglob("*.jsonl")] == [state / "stream-wh" / "reads"]


def test_no_key_stands_in_the_log(own: House, state: Path) -> None:
    """Keys are people's; the log has only numbers and the table's name."""
    with Reader.open(own.root, logged=True) as reader:
        reader.probe("names", ["it's"]).all()
    (file,) = state.rglob("*.jsonl")
    assert "it's" not in file.read_text()
    assert set(Read.__struct_fields__) == {"at", "table", "kind", "seconds", "keys", "first", "files", "opened", "rows"}


def test_it_can_be_turned_off_or_put_elsewhere(
    house: House, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`STREAM_WH_READ_LOG=off` writes nothing; a directory takes it."""
    monkeypatch.setenv(VARIABLE, "off")
    ask(house.root)
    assert not state.exists()
    assert (log_file(house.root), reads_of(house.root)) == (None, ())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    ask(house.root)
    assert not state.exists()
    assert len(reads_of(house.root)) == 6


def test_a_reader_that_is_not_asked_to_notes_nothing(house: House, state: Path) -> None:
    """Only a project's readers log."""
    with Reader.open(house.root) as reader:
        reader.probe("names", ["a"]).all()
    assert not state.exists()


def test_a_directory_that_takes_nothing_is_no_error(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the directory should be: reads go on, and there is no log."""
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "taken"))
    ask(house.root)
    assert reads_of(house.root) == ()
    assert (tmp_path / "taken").read_text() == ""


def test_the_log_is_bounded(house: House, state: Path, set_limits: Callable[..., object]) -> None:
    """A log that is full becomes the older of two; the one before goes."""
    set_limits(read_log_bytes=500)
    for _ in range(5):
        ask(house.root)
    files = sorted(state.rglob("*.jsonl"))
    assert len(files) == 1
    assert files[0].name.endswith(".older.jsonl")
    assert len(reads_of(house.root)) == 6


def test_lines_that_are_damaged_are_passed_over(house: House, state: Path) -> None:
    """A process that died while it wrote, or another version."""
    ask(house.root)
    (file,) = state.rglob("*.jsonl")
    impossible = b'{"at":1,"table":"names","kind":"probe","seconds":-1.0}\n'
    impossible += b'{"at":1,"table":"names","kind":"probe","seconds":1,"opened":3}\n'
    file.write_bytes(b'{"at": 1, "ta\n[]\n\xff\xfe\n' + impossible + file.read_bytes() + b'{"at"')
    assert len(reads_of(house.root)) == 6


def test_a_process_that_closes_nothing_leaves_its_entries(house: House, state: Path) -> None:
    """As the command line does: the reader goes with the process."""
    program = (
        "import sys; from pathlib import Path; from warehouse.serving import Reader; "
        "reader = Reader.open(Path(sys.argv[1]), logged=True); reader.probe('names', ['a']).all()"
    )
    process = subprocess.run([sys.executable, "-c", program, str(house.root)], env=dict(os.environ), check=False, timeout=60)
    assert process.returncode == 0
    assert [(read.kind, read.first) for read in reads_of(house.root)] == [("probe", True)]
    assert any(state.rglob("*.jsonl"))

"""``init --from``: its options, its questions on a terminal, and that it ends with what a first update would show."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import command_line
from tests.everyday.made import MADE
from warehouse.catalog.load import load_catalog
from warehouse.time import HOUR, MINUTE, format_instant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ended
    from warehouse.catalog.model import Catalog


@pytest.fixture
def leases(tmp_path: Path) -> Path:
    """A file of leases of four hours; each of 40 hosts takes one every 40 minutes."""
    path = tmp_path / "leases.csv"
    MADE[path.name](path)
    return path


def test_it_ends_with_what_to_run(invoke: Callable[..., Ended], tmp_path: Path, leases: Path) -> None:
    """What was seen, what a first update would show, and the commands for exactly that."""
    ended = invoke("-C", str(tmp_path), "init", "new", "--from", str(leases))
    assert (ended.code, ended.out) == (0, "")
    messages = ended.err.splitlines()
    assert "A first update of this sample at 2024-05-01T10:00:00Z would show 120 rows." in messages
    assert [line.strip() for line in messages[messages.index("next:") + 1 :]] == [
        f"cd {tmp_path / 'new'}",
        "stream-wh validate",
        "stream-wh update --at 2024-05-01T10:00:00Z",
        "stream-wh probe leases 00:16:3e:00:00:00",
    ]


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        (["--key", "Hostname"], {"search_key": ("Hostname",)}),
        (["--key", "hostname,MAC Address"], {"search_key": ("Hostname", "mac_address")}),
        (["--arrival", "Lease End", "--expires", "never"], {"arrival": "lease_end", "expires": None}),
        (["--expires", "ts + INTERVAL 2 HOURS"], {"expires": "ts + INTERVAL 2 HOURS", "max_lifetime": 2 * HOUR}),
        (["--interval", "30m"], {"update_interval": 30 * MINUTE}),
        (["--columns", "Hostname,lease_start,lease_end"], {"columns": ["Hostname", "lease_start", "lease_end"]}),
    ],
)
def test_each_option_is_declared(
    invoke: Callable[..., Ended], tmp_path: Path, leases: Path, options: list[str], declared: dict[str, Any]
) -> None:
    """An option replaces a guess; the lifetime of an expression is computed from the sample."""
    assert invoke("-C", str(tmp_path), "init", "new", "--from", str(leases), *options).code == 0
    catalog_facts = facts(load_catalog(tmp_path / "new"))
    assert {name: catalog_facts[name] for name in declared} == declared


def facts(catalog: Catalog) -> dict[str, Any]:
    """Return what the options set."""
    (stream,) = catalog.streams
    names = ("search_key", "arrival", "expires", "max_lifetime")
    return {
        **{name: getattr(stream, name) for name in names},
        "update_interval": catalog.update_interval,
        "columns": [column.name for column in stream.columns],
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--key", "Hostname"], "--key is about the file of --from; give both"),
        (["--from", "leases.csv", "--example", "flights"], "--example and --from are two ways to start; give one"),
        (["--from", "leases.csv", "--interval", "soon"], "--interval"),
        (["--from", "leases.csv", "--key", "Hostnam"], 'Did you mean "Hostname"?'),
        (["--from", "leases.csv", "--expires", "hostname"], "--expires"),
    ],
)
def test_what_cannot_be_is_refused(
    invoke: Callable[..., Ended], leases: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    """With the option's name; nothing is written."""
    monkeypatch.chdir(leases.parent)
    ended = invoke("init", "new", *arguments)
    assert (ended.code, (leases.parent / "new").exists()) == (2, False)
    assert words in ended.err


def test_its_record(invoke: Callable[..., Ended], tmp_path: Path, leases: Path) -> None:
    """`-o json` has what is proposed, what is foreseen and the next commands."""
    end = "lease_start + INTERVAL 90 MINUTES"
    ended = invoke("-C", str(tmp_path), "init", "new", "--from", str(leases), "--expires", end, "-o", "json")
    record = ended.json()
    assert isinstance(record, dict)
    assert record["first_update"] == {"at": "2024-05-01T10:00:00Z", "live": 89, "waiting": 0, "dead": 31, "rejected": 0}
    assert (record["key"], record["arrival"], record["files"][0]) == (["mac_address"], "lease_start", "warehouse.toml")
    assert record["next"][2] == f"stream-wh update --at {record['first_update']['at']}"


def test_what_only_spark_knows_is_not_foreseen(invoke: Callable[..., Ended], tmp_path: Path, leases: Path) -> None:
    """An expression of Spark's own is declared; nothing is said of what it would show."""
    arrival = "to_timestamp(date_format(lease_start, 'yyyy-MM-dd HH:mm:ss'))"
    ended = invoke("-C", str(tmp_path), "init", "new", "--from", str(leases), "--arrival", arrival)
    assert ended.code == 0, ended.err
    assert "A first update" not in ended.err
    assert load_catalog(tmp_path / "new").streams[0].arrival == arrival


def test_a_terminal_is_asked(tmp_path: Path, leases: Path, environment: dict[str, str]) -> None:
    """The command asks for values that no option gives, again after a wrong answer; an empty answer takes the default."""
    controller, terminal = os.openpty()
    os.write(controller, b"hostnam\nHostname\n\n\n30m\n")
    arguments = [*command_line(), "-C", str(tmp_path), "init", "new", "--from", str(leases)]
    process = subprocess.run(arguments, stdin=terminal, capture_output=True, env=environment, timeout=120, check=False)
    os.close(controller)
    os.close(terminal)
    printed = process.stderr.decode() + process.stdout.decode()
    assert process.returncode == 0, printed
    offers = ("several with commas [mac_address]", "SQL [lease_start]", "or never [lease_end]", "two updates [15m]")
    assert [offer for offer in offers if offer not in printed] == []
    assert 'Did you mean "Hostname"?' in printed
    declared = facts(load_catalog(tmp_path / "new"))
    assert (declared["search_key"], declared["expires"], declared["update_interval"]) == (("Hostname",), "lease_end", 30 * MINUTE)
    assert format_instant(load_catalog(tmp_path / "new").anchor) == "2024-05-01T00:00:00Z"


def test_a_project_among_the_files_to_load_is_refused(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """Its tables would lie in the landing directory; in another directory it is written, with what to run next."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text("host,at\n" + "".join(f"h{i % 3},2024-07-01T00:00:0{i}Z\n" for i in range(9)))
    for inside in ("logs", "logs/new"):
        refused = invoke("init", str(tmp_path / inside), "--from", str(tmp_path / "logs"))
        assert (refused.code, "name another DIRECTORY" in refused.err) == (2, True)
    written = invoke("init", str(tmp_path / "new"), "--from", str(tmp_path / "logs"), "-o", "json")
    record = written.json()
    assert isinstance(record, dict)
    assert (record["files"], record["stream"], record["key"]) == (["warehouse.toml"], "logs", ["host"])

"""What the library takes and says where a person calls it: instants as datetimes, names that do not exist."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from warehouse import Warehouse
from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.cli.main import COMMANDS
from warehouse.errors import NoEpochError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

ROOMS = """
[coalesced.gusts]
from = "weather"
group_by = ["origin"]
values = ["wind_dir"]
window = "1d"

[aggregates.movements]
from = "flights"
group_by = ["origin"]
select = { flights = "count(*)" }
windows = ["1h"]
keep = "30d"
"""


def test_a_datetime_is_an_instant(tmp_path: Path) -> None:
    """One with a time zone is; one without is refused, with what would be right."""
    write_project(tmp_path, "flights")
    with Warehouse.open(tmp_path) as warehouse:
        for aware in (datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=timezone(timedelta(hours=2)))):
            with pytest.raises(NoEpochError):
                warehouse.probe("flights", ["N14228"], as_of=aware)
        with pytest.raises(UsageError, match=r"12:00:00 has no time zone; .* datetime\(2013, 1, 1, \.\.\., tzinfo=UTC\)"):
            warehouse.probe("flights", ["N14228"], as_of=datetime(2013, 1, 1, 12))  # noqa: DTZ001 - the fault that is refused
        with pytest.raises(UsageError, match="has no time zone"):
            warehouse.update(at=datetime(2013, 1, 1, 12))  # noqa: DTZ001 - as above


def test_explain_knows_all_that_can_be_explained(tmp_path: Path) -> None:
    """Aggregates and coalesced tables are among the names that are listed, and the nearest of all is offered."""
    write_project(tmp_path, "flights")
    file = tmp_path / "warehouse.toml"
    file.write_text(file.read_text() + ROOMS)
    with Warehouse.open(tmp_path) as warehouse:
        for meant in ("gusts", "movements", "by_carrier"):
            with pytest.raises(UnknownNameError, match=f'Did you mean "{meant}"') as refused:
                warehouse.explain(f"{meant}s")
            assert {"gusts", "movements", "with_weather"} <= set(refused.value.known)


OF_THE_MACHINE = {"demo", "doctor"}
"""Commands about no warehouse: a show, and what is installed."""


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - OF_THE_MACHINE))
def test_every_command_is_a_method_with_a_typed_signature(command: str) -> None:
    """Each parameter has a name and a type, and the result has a type."""
    signature = inspect.signature(getattr(Warehouse, command))
    parameters = [parameter for name, parameter in signature.parameters.items() if name != "self"]
    assert [
        parameter.name for parameter in parameters if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ] == []
    assert [parameter.name for parameter in parameters if parameter.annotation in (parameter.empty, "Any")] == []
    assert signature.return_annotation not in (signature.empty, "Any")


def test_init_takes_what_the_command_takes(tmp_path: Path) -> None:
    """Key, arrival, end, interval and columns of a file, and says where one is wrong."""
    file = tmp_path / "leases.csv"
    file.write_text("mac,seen,x\n" + "".join(f"m{n % 9},2024-05-01 08:{n:02}:00,{n}\n" for n in range(60)))
    wished = {"key": ["mac"], "arrival": "seen", "expires": "ts + INTERVAL 2 HOURS", "interval": "5m", "columns": ["mac", "seen"]}
    Warehouse.init(tmp_path / "project", source=file, **wished)  # type: ignore[arg-type]
    catalog = load_catalog(tmp_path / "project")
    (stream,) = catalog.streams
    assert (stream.search_key, stream.expires, catalog.update_interval) == (("mac",), "ts + INTERVAL 2 HOURS", 300 * 10**6)
    refused = (({"interval": "soon"}, "interval: "), ({"key": ["nope"]}, "there is no column"), ({"source": None}, "source= too"))
    for wrong, message in refused:
        with pytest.raises(UsageError, match=message):
            Warehouse.init(tmp_path / "other", **({"source": file, "key": ["mac"]} | wrong))  # type: ignore[arg-type]

"""What an update would still wait for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from airflow_stream_wh.project_file import read_project
from airflow_stream_wh.waiting import ExpectedFiles, expected_files, missing_tables
from warehouse.errors import LandingError, Transient, UnknownNameError, UsageError, WarehouseError
from warehouse.time import SECOND, parse_instant

if TYPE_CHECKING:
    from .fake import Fake

LANDED = 1_000_000 * SECOND
"""When the files of these tests landed."""
LATER = LANDED + 11 * SECOND


def _expect(fake: Fake, at: str = "2024-01-01T05:00:00Z", **files: str | None) -> ExpectedFiles:
    return ExpectedFiles(fake.executable, str(fake.project), {}, files, parse_instant(at))


def _land(fake: Fake, name: str) -> None:
    path = fake.project / "landing" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    os.utime(path, ns=(LANDED * 1000, LANDED * 1000))


def test_every_table_that_an_update_moves_has_an_asset(fake: Fake) -> None:
    """Streams, relations, views and aggregates."""
    with (fake.project / "warehouse.toml").open("a") as file:
        file.write('\n[aggregates.hourly]\nfrom = "cars"\n')
    assert read_project(fake.project).tables == ("cars", "owners", "parked", "hourly")


def test_any_file_that_is_not_loaded_ends_the_wait(fake: Fake) -> None:
    """Asked of the warehouse, which knows what it has loaded."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0, owners=1)
    assert missing_tables(_expect(fake, cars=None, owners=None), LATER) == ("cars",)


def test_before_the_first_epoch_every_file_is_new(fake: Fake) -> None:
    """There is no warehouse to ask yet."""
    fake.empty()
    assert missing_tables(_expect(fake, cars=None, owners=None), LATER) == ("cars", "owners")
    _land(fake, "cars/1.csv")
    assert missing_tables(_expect(fake, cars=None, owners=None), LATER) == ("owners",)


def test_a_glob_is_on_names_or_on_paths(fake: Fake) -> None:
    """A glob with a slash matches the relative path; the stream's own glob must match, too."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    for name in ("cars/2024/a-05.csv", "cars/b-05.json", "owners/_c-05.csv"):
        _land(fake, name)
    for pattern, matches in (("*-05.csv", True), ("2024/*", True), ("2023/*", False), ("b-*", False), ("*-04*", False)):
        assert missing_tables(_expect(fake, cars=pattern), LATER) == (() if matches else ("cars",)), pattern
    assert missing_tables(_expect(fake, owners="*-05.csv"), LATER) == ("owners",)


def test_a_file_that_is_loaded_already_is_there(fake: Fake) -> None:
    """A glob asks for a file, not for a new one: a retried wait ends at once."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    _land(fake, "cars/5.csv")
    assert missing_tables(_expect(fake, cars="5.csv"), LATER) == ()


def test_a_file_that_settles_is_not_there_yet(fake: Fake) -> None:
    """The update would leave it alone too."""
    fake.empty()
    _land(fake, "cars/5.csv")
    assert missing_tables(_expect(fake, cars="5.csv"), LANDED + 9 * SECOND) == ("cars",)
    assert missing_tables(_expect(fake, cars="5.csv"), LANDED + 10 * SECOND) == ()


@pytest.mark.parametrize(("at", "waits"), [("03:00:00", False), ("05:00:00", False), ("05:59:59", False), ("06:00:00", True)])
def test_windows_that_are_there_already_need_no_file(fake: Fake, at: str, *, waits: bool) -> None:
    """Up to the next grid point nothing would be loaded; the files may have been moved away since."""
    fake.stands("2024-01-01T05:00:00Z", 3)
    assert missing_tables(_expect(fake, f"2024-01-01T{at}Z", cars="no-such.csv"), LATER) == (("cars",) if waits else ())


def test_names_and_places_are_checked(fake: Fake) -> None:
    """A view has no landing files; a directory that is not there is an error, not an endless wait."""
    fake.empty()
    with pytest.raises(UnknownNameError, match=r'"parked".*cars, owners'):
        missing_tables(_expect(fake, parked=None), LATER)
    (fake.project / "landing" / "cars").rmdir()
    with pytest.raises(LandingError, match="does not exist"):
        missing_tables(_expect(fake, cars=None), LATER)
    (fake.project / "warehouse.toml").unlink()
    with pytest.raises(UsageError, match="cannot be read here"):
        missing_tables(_expect(fake, cars=None), LATER)


def test_what_the_warehouse_cannot_tell_now_it_may_tell_later(fake: Fake) -> None:
    """Told apart by the exit code."""
    fake.fails("history", 3, "epoch_vacuumed", "gone", retry=True)
    fake.fails("history", 1, "record_damaged", "broken")
    with pytest.raises(Transient, match="gone"):
        missing_tables(_expect(fake, cars="x"), LATER)
    with pytest.raises(WarehouseError, match="broken") as damaged:
        missing_tables(_expect(fake, cars="x"), LATER)
    assert not isinstance(damaged.value, Transient)


def test_what_is_expected_survives_the_way_to_the_triggerer(fake: Fake) -> None:
    """As plain values."""
    expected = _expect(fake, cars=None, owners="*.csv")
    assert ExpectedFiles.of_json(expected.to_json()) == expected
    assert expected_files(["cars"]) == {"cars": None}

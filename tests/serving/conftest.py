from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.serving import Reader

from .house import House, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A warehouse that tests only read, moved after it was written."""
    directory = tmp_path_factory.mktemp("house")
    built = build(directory / "root")
    built.root = built.root.rename(directory / "a root, with 'odd' [characters]*")
    return built


@pytest.fixture(scope="session", params=["files", "memory"])
def reader(request: pytest.FixtureRequest, house: House) -> Iterator[Reader]:
    """A reader of its newest epoch, from files and with every table in memory."""
    with Reader.open(house.root, hot=house.tables if request.param == "memory" else ()) as opened:
        yield opened


@pytest.fixture
def own(tmp_path: Path) -> House:
    """A warehouse of the test's own."""
    return build(tmp_path / "root")

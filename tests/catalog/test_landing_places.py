"""Where files land: which places and keys go together, and how each misfit is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, stream
from warehouse.catalog.declaration import declaration, stream_of
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("changes", "key", "told"),
    [
        ({"landing": "s3://b/in", "after_load": "delete"}, "after_load", "a rule of the bucket"),
        ({"landing": "s3://b/in", "after_load": "move", "move_to": "done"}, "after_load", "a rule of the bucket"),
        ({"landing": "s3://b/in", "landing_settle": "10s"}, "landing_settle", "whole when it is there"),
        ({"listing": "after_last"}, "listing", "a landing in an object store"),
        ({"landing": "s3://b/a%2Fb"}, "landing", "of plain names"),
        ({"landing": "https://b/in"}, "landing", "s3://BUCKET/PREFIX"),
    ],
)
def test_what_does_not_go_with_a_store_is_told_with_its_key(
    tmp_path: Path, changes: dict[str, object], key: str, told: str
) -> None:
    """Nothing is asked of a store for that."""
    project = Project(tmp_path / "project", None, {"a": stream(**changes)})
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(project.directory)
    assert [problem.key for problem in caught.value.problems] == [f"streams.a.{key}"]
    assert told in str(caught.value)


def test_landings_in_a_store_may_not_meet_each_other_or_the_root(tmp_path: Path) -> None:
    """As directories may not."""
    streams = {name: stream(landing=f"s3://b/{place}") for name, place in (("a", "in"), ("b", "in/b"), ("c", "house/c"))}
    project = Project(tmp_path / "project", None, streams, {"root": "s3://b/house"})
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(project.directory)
    assert {problem.key for problem in caught.value.problems} == {"streams.b.landing", "streams.c.landing"}


def test_a_landing_in_a_store_is_recorded_as_it_is(tmp_path: Path) -> None:
    """An epoch's record gives the same stream again; its copies are this warehouse's alone."""
    places = []
    for name in ("one", "two"):
        project = Project(tmp_path / name, None, {"a": stream(landing="s3://b/in")})
        catalog = load_catalog(project.directory)
        declared = catalog.streams[0]
        again = stream_of(declaration(declared, catalog.root), "a", catalog.root)
        assert (again.store, again.landing) == (declared.store, declared.landing) == (ObjectPath("s3://b/in"), again.landing)
        places.append(again.landing)
    assert places[0] != places[1]

"""Where files land: which places and keys go together, and how each misfit is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.declared import write_declarations
from tests.operations.projects import Project, stream
from warehouse.catalog.declaration import declaration_of, stream_of
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError
from warehouse.ingest.landing import list_landing
from warehouse.objects.path import ObjectPath

HEAD: dict[str, dict[str, object]] = {"warehouse": {"anchor": "2024-01-01T00:00:00Z", "update_interval": "1h"}}

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
    streams = {name: stream(landing=f"s3://b/{path}") for name, path in (("a", "in"), ("b", "in/b"), ("c", "house/c"))}
    project = Project(tmp_path / "project", None, streams, {"root": "s3://b/house"})
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(project.directory)
    assert {problem.key for problem in caught.value.problems} == {"streams.b.landing", "streams.c.landing"}


def test_a_landing_in_a_store_is_recorded_as_it_is(tmp_path: Path) -> None:
    """An epoch's record gives the same stream again; its copies are this warehouse's alone."""
    directories = []
    for name in ("one", "two"):
        project = Project(tmp_path / name, None, {"a": stream(landing="s3://b/in")})
        catalog = load_catalog(project.directory)
        declared = catalog.streams[0]
        reread = stream_of(declaration_of(declared, catalog.root), "a", catalog.root)
        assert (reread.store, reread.landing) == (declared.store, declared.landing) == (ObjectPath("s3://b/in"), reread.landing)
        directories.append(reread.landing)
    assert directories[0] != directories[1]


def test_streams_share_a_folder_by_patterns(tmp_path: Path) -> None:
    """Each stream gets its own files; folders that cannot hold its files are not listed."""
    logs = {name: stream(landing=f"logs/2026-*/**/{name}.*.csv") for name in ("dns", "conn")}
    project = Project(tmp_path / "project", None, {})
    project.streams = logs
    other_files = ("dns.3.csv", "2025-12/dns.4.csv", "2026-01/o.csv")
    for name in ("2026-01/dns.1.csv", "2026-01/eu/x/dns.2.csv", "2026-02/conn.1.csv", *other_files):
        project.land(name, "", landing="logs")
    write_declarations(project.directory, {**HEAD, "streams": logs})
    seen: list[str] = []
    scan = os.scandir
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", lambda directory: seen.append(Path(directory).name) or scan(directory))
        listed = {
            declared.name: [file.path for file in list_landing(declared.landing_path, declared.files)]
            for declared in load_catalog(project.directory).streams
        }
    assert listed == {"dns": ["2026-01/dns.1.csv", "2026-01/eu/x/dns.2.csv"], "conn": ["2026-02/conn.1.csv"]}
    assert "2025-12" not in seen


@pytest.mark.parametrize(
    ("dns", "conn", "keys"),
    [
        ({"landing": "logs/*.csv", "files": "*.csv"}, {}, ["streams.dns.files"]),
        ({"landing": "logs/*.csv"}, {"landing": "logs"}, ["streams.conn.landing"]),
        ({"landing": "logs/*.csv"}, {"landing": "logs/*.txt", "after_load": "delete"}, ["streams.conn.landing"]),
        ({"landing": "**/*.csv"}, {}, ["streams.conn.landing", "streams.dns.landing"]),
    ],
)
def test_which_patterns_are_refused(
    tmp_path: Path, dns: dict[str, object], conn: dict[str, object], keys: list[str]
) -> None:
    """Beside `files`, beside a stream that takes the whole folder or takes files away, above the root."""
    streams = {"dns": stream(**dns), "conn": stream(**{"landing": "landing/conn", **conn})}
    write_declarations(tmp_path, {**HEAD, "streams": streams})
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(tmp_path)
    assert sorted({problem.key for problem in caught.value.problems}) == keys

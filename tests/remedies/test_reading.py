"""What reading commands, and commands in a project without epochs, say to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, csv, row
from warehouse.epochs.journal import epoch_path

from .executed import advised, executes, typed

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

_FIRST = "nothing has been loaded under ○ yet○; run `stream-wh update` first"


@executes(_FIRST)
def test_before_the_first_update(tmp_path: Path, spark: SparkSession) -> None:
    """Reading, checking, comparing views and erasing all want one."""
    project = Project(tmp_path / "project", spark, views={"v": {"sql": "SELECT k FROM a", "search_key": "k"}})
    lines = [f"stream-wh {line}" for line in ("scan a", "check", "check --views", "erase a --key x --yes")]
    (command,) = {advised(typed(project.directory, line, code=1), _FIRST) for line in lines}
    typed(project.directory, command)
    for line in lines:
        typed(project.directory, line)


@executes("a project directory; `stream-wh init` writes one")
def test_no_project(tmp_path: Path) -> None:
    """The command writes a project."""
    printed = typed(tmp_path, "stream-wh validate", code=2)
    typed(tmp_path, advised(printed, "a project directory; `stream-wh init` writes one"))
    typed(tmp_path, "stream-wh validate")


@executes(
    "there is no epoch ○; the newest is ○, and `stream-wh history` lists the epochs",
    "epoch ○ cannot be read (any more); `stream-wh history` lists the epochs that can",
    '"○" is a ○, not a view or aggregate; `stream-wh describe ○` shows it',
    "`stream-wh describe ○` lists its columns",
    "only views are rebuilt; `stream-wh restate ○` reads its landing files once more",
)
def test_names_of_other_things(past: Project) -> None:
    """An unknown epoch, a stream in place of a view, and rows without ends in place of intervals."""
    printed = typed(past.directory, "stream-wh changes a --since 0 --to 9", code=2)
    command = advised(printed, "there is no epoch ○; the newest is ○, and `stream-wh history` lists the epochs")
    typed(past.directory, command)
    printed = typed(past.directory, "stream-wh check --views --epoch 9", code=3)
    assert advised(printed, "epoch ○ cannot be read (any more); `stream-wh history` lists the epochs that can") == command
    printed = typed(past.directory, "stream-wh explain a", code=2)
    part = '"○" is a ○, not a view or aggregate; `stream-wh describe ○` shows it'
    assert "search_key" in typed(past.directory, advised(printed, part))
    printed = typed(past.directory, 'stream-wh sql "SELECT duration(a) FROM a"', code=2)
    assert "timestamp" in typed(past.directory, advised(printed, "`stream-wh describe ○` lists its columns")).lower()
    printed = typed(past.directory, "stream-wh rebuild a", code=2)
    part = "only views are rebuilt; `stream-wh restate ○` reads its landing files once more"
    typed(past.directory, advised(printed, part))


@executes(
    "Take the whole table once (`stream-wh scan ○`, now of epoch ○) and go on from the epoch it is of (--since ○)",
    "go on with --since ○",
)
def test_a_lost_place_in_the_changes(past: Project) -> None:
    """The reader takes the whole table, and its changes from then on."""
    epoch_path(past.root, 0).unlink()
    printed = typed(past.directory, "stream-wh changes a --since 0", code=1)
    part = "Take the whole table once (`stream-wh scan ○`, now of epoch ○) and go on from the epoch it is of (--since ○)"
    typed(past.directory, advised(printed, part))
    since = printed.rpartition("--since ")[2].partition(")")[0]
    printed = typed(past.directory, f"stream-wh changes a --since {since}")
    typed(past.directory, f"stream-wh changes a {advised(printed, 'go on with --since ○').removeprefix('go on with ')}")


@executes("the same with --as-of ○ looks at older ones")
def test_a_key_of_long_ago(past: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no time to look further, the message says where to go on by hand."""
    monkeypatch.setattr("warehouse.serving.absence._SECONDS", -1.0)
    printed = typed(past.directory, "stream-wh probe a gone -o table")
    part = "the same with --as-of ○ looks at older ones"
    moment = advised(printed, part).split("--as-of ")[1].split()[0]
    printed = typed(past.directory, f"stream-wh probe a gone --as-of {moment} -o table")
    assert "expired" in printed or "gone" in printed


@executes(
    "stream-wh drop ○",
    "stream-wh reload ○",
    "stream-wh rejected ○",
    "stream-wh update",
    "`stream-wh drop ○` forgets it",
)
def test_the_commands_of_the_verdict(past: Project) -> None:
    """Rejected rows are shown, an undeclared table is dropped, a changed file is loaded although two landings have its name."""
    health = "stream-wh health"
    assert "no" in typed(past.directory, advised(typed(past.directory, health, code=4), "stream-wh rejected ○"))
    past.land("2.csv", csv(row("later", 2.5, 7)), landing="landing/b")
    printed = typed(past.directory, health, code=4)
    command = advised(printed, "stream-wh reload ○")
    assert "landing/b/2.csv" in command
    typed(past.directory, command)
    del past.views["once"]
    past.declare()
    printed = typed(past.directory, health, code=4)
    forget = advised(printed, "stream-wh drop ○")
    assert advised(typed(past.directory, "stream-wh plan"), "`stream-wh drop ○` forgets it") == forget
    typed(past.directory, forget)
    printed = typed(past.directory, health, code=4)
    assert "stream-wh drop" not in printed
    assert "stream-wh reload" not in printed
    past.declare()
    advised(printed + "; stream-wh update", "stream-wh update")


@executes("stream-wh reload ○", "too: `stream-wh restate ○ --since first`")
def test_a_file_that_grew_after_it_was_loaded(tmp_path: Path, spark: SparkSession) -> None:
    """After `reload` the file's former rows are there twice; after `restate` each row is there once."""
    project = Project(tmp_path / "project", spark)
    project.land("1.csv", csv(row("p", 0.5, 20)))
    project.update(1)
    project.land("1.csv", csv(row("p", 0.5, 20), row("added", 0.6, 20)))
    printed = typed(project.directory, advised(typed(project.directory, "stream-wh health", code=4), "stream-wh reload ○"))
    project.update(2)
    assert project.keys("a") == "added p p"
    typed(project.directory, advised(printed, "too: `stream-wh restate ○ --since first`"))
    assert project.keys("a") == "added p"


@executes("several landings have a file ○; say which one: ○ or ○")
def test_a_name_that_two_landings_have(past: Project) -> None:
    """Each of the offered names is accepted."""
    past.land("2.csv", csv(row("later", 2.5, 7)), landing="landing/b")
    printed = typed(past.directory, "stream-wh reload 2.csv", code=2)
    advised(printed, "several landings have a file ○; say which one: ○ or ○")
    for name in printed.rpartition(": ")[2].split(" or "):
        typed(past.directory, f"stream-wh reload {name.strip()}")




@executes(
    '`short_lived = "report"` in [views.○] keeps them',
    "versions may be looked up after their end; `stream-wh erase NAME --key KEY` removes those of a key",
    "nothing was loaded. Choose an earlier --at, ○accept the loss with --allow-dead",
)
def test_options_and_keys(past: Project, tmp_path: Path) -> None:
    """The commands accept the proposed options and keys."""
    assert "recomputed" in typed(past.directory, "stream-wh restored counts")
    printed = typed(past.directory, "stream-wh restored named")
    advised(printed, '`short_lived = "report"` in [views.○] keeps them')
    past.views["named"] = {**past.views["named"], "short_lived": "report"}
    past.declare()
    typed(past.directory, "stream-wh validate")
    past.relations["r"]["erase_within"] = "1d"
    past.declare()
    part = "versions may be looked up after their end; `stream-wh erase NAME --key KEY` removes those of a key"
    command = advised(typed(past.directory, "stream-wh validate", code=2), part)
    del past.relations["r"]["erase_within"]
    past.declare()
    typed(past.directory, f"{command} --yes", code=4, NAME="r", KEY="bad")  # landing files have it still
    other = Project(tmp_path / "other", past.spark)
    other.land("1.csv", csv(row("x", 0.5, 1.5)))
    printed = typed(other.directory, "stream-wh update --at 2024-01-01T05:00:00Z", code=1)
    advised(printed, "nothing was loaded. Choose an earlier --at, ○accept the loss with --allow-dead")
    typed(other.directory, "stream-wh update --at 2024-01-01T05:00:00Z --allow-dead")

"""The command that measures the first hour judges what it sees: commands, questions, seconds, what is declared and found."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from . import hour
from .hour import Walk, as_row, commands_of, walked
from .test_everyday import ROADS, landed

if TYPE_CHECKING:
    from pathlib import Path


def test_what_init_prints_is_run() -> None:
    """But where to go, and what looks without doing anything."""
    printed = "wrote x\nnext:\n  cd x\n  stream-wh validate\n  stream-wh update --at 2024\n  stream-wh probe a 'b c'\n"
    assert commands_of(printed) == [["update", "--at", "2024"], ["probe", "a", "b c"]]
    assert commands_of("wrote x\n") == []


@pytest.mark.parametrize(
    ("walk", "verdict"),
    [
        (Walk(1, (1.0, 170.0, 9.0), 5), "reached"),
        (Walk(0, (1.0, 171.0, 9.0), 5), "too much"),
        (Walk(0, (1.0, 1.0, 1.0, 1.0), 5), "too much"),
        (Walk(2, (1.0, 1.0, 1.0), 5), "too much"),
        (Walk(0, (1.0, 1.0), 0), "the probe found nothing"),
        (Walk(0, (1.0,), 0, "init ended with 2: x"), "init ended with 2: x"),
    ],
)
def test_verdicts(walk: Walk, verdict: str) -> None:
    """Each of the bounds counts, and a fault of any command."""
    assert walk.verdict == verdict
    assert as_row("x.csv", walk)[-1] == verdict


def test_a_walk_with_the_commands_that_init_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``init`` is the real one; of the others it is looked at how they are called. A wrong key ends the walk."""
    real, called = subprocess.run, []

    def run(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        called.append(words[3:])
        if words[3] == "init":
            return real(words, **options)  # type: ignore[call-overload, no-any-return]
        return subprocess.CompletedProcess(words, 0, '{"id_orig_h": "a"}\n' * 6 if words[3] == "probe" else "", "")

    monkeypatch.setattr(hour.subprocess, "run", run)
    source = landed("dns.log", tmp_path)
    walk = walked(source, ROADS["dns.log"], tmp_path / "p")
    assert (walk.verdict, walk.rows, len(walk.seconds), walk.questions) in [("reached", 6, 3, 0), ("too much", 6, 3, 0)]
    assert [words[0] for words in called] == ["init", "update", "probe"]
    assert called[2] == ["probe", "dns", "10.0.0.0", "-o", "jsonl"]
    assert walked(source, ROADS["jwt.csv"], tmp_path / "other").verdict.startswith("key id_orig_h, arrival ts")

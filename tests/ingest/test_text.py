"""Lines with a pattern: fields by its groups, typed as in CSV; a line that does not match is rejected with its reason."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from tests.operations.erasure.test_landing import _found
from tests.operations.projects import Project, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PATTERN = r'(?P<b>\S+) (?P<e>\S+) \[(?P<k>[^\]]*)\](?: n=(?P<n>\S+))?(?: "(?P<what>[^"\\]*(?:\\.[^"\\]*)*+)")?'


def test_lines_become_rows(tmp_path: Path, spark: SparkSession) -> None:
    """A field that is not there, or stands for a missing value, is null; a row keeps its line and its number."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "int", "what": "string"}
    options = {"pattern": PATTERN, "nullValue": "-"}
    project = Project(tmp_path, spark, {"a": stream(format="text", columns=columns, options=options, max_record="1KB")})
    times = f"{text(0.9)} {text(3)}"
    lines = [f'{times} [a] n=7 "x \\"y\\" z"', "", f"{times} [é] n=-", f"{times} [c] n=x", "\tat some.where"]
    project.land("x.log", "\r\n".join(lines) + "\n")
    project.land("y.log.gz", gzip.compress(f"{times} [d]\n".encode()))
    project.land("long.log", f"{times} [{'x' * 2000}]\n")
    report = project.update(1)
    assert [(entry.file.path, entry.reason) for _, entry in report.left_out] == [("long.log", "record_too_long")]
    assert sorted((row["k"], row["n"], row["what"]) for row in project.live()) == [
        ("a", 7, 'x \\"y\\" z'), ("d", None, None), ("é", None, None),
    ]  # fmt: skip
    rejected = {row["record"]: (row["reason"], row["message"], row["raw"]) for row in project.rejected()}
    assert rejected[3] == ("mistyped", 'column "n": "x" is no int', lines[3])
    assert rejected[4] == ("malformed", "the line does not match `pattern`", "\tat some.where")
    assert rejected.keys() == {3, 4}


def test_keys_in_lines_are_found(tmp_path: Path) -> None:
    """Erasure finds them: as a field where the line matches, else anywhere in the line."""
    files = {"held.log": b"at=1 N1 x\n", "other.log": b"at=1 N2 N1\n", "doubt.log": b"N1\n"}
    pattern = r"(?P<at>\S+) (?P<tailnum>\S+) (?P<what>.*)"
    assert sorted(_found(tmp_path, files, format="text", options={"pattern": pattern})) == ["doubt.log", "held.log"]

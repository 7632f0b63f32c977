"""Logs as Zeek writes them: read with their sets, unset and empty fields; from ``init --from`` to the right first probe."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.ingest.records import declared, left_out, read
from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.sniff import sniff
from warehouse.errors import UsageError
from warehouse.ingest.headers import zeek_header
from warehouse.operations.context import WriteContext
from warehouse.operations.update import UpdateOptions, update
from warehouse.project import Warehouse
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HEAD = """#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tdns
#open\t2012-03-16-12-30-00
#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tquery\tAA\tanswers\tTTLs
#types\ttime\tstring\taddr\tport\taddr\tstring\tbool\tvector[string]\tvector[interval]
"""
BEGIN = 1331901000


def record(number: int, ttls: str) -> str:
    """Return a record: one request every second, forty clients."""
    fields = (
        f"{BEGIN + number}.{number % 1000:03}000", f"CWGtK{number}", f"192.168.202.{number % 40}",
        str(2000 + number), "192.168.207.4", f"host{number % 7}.example", "T" if number % 2 else "F",
        "10.0.0.1,10.0.0.2" if ttls != "-" else "-", ttls,
    )  # fmt: skip
    return "\t".join(fields) + "\n"


def log(count: int = 400) -> str:
    """Return a whole log: TTLs of some minutes, every fifth request without an answer."""
    records = (
        record(second, "-" if second % 5 == 4 else f"{600 + second}.000000,{300 + second % 300}.500000")
        for second in range(count)
    )
    return HEAD + "".join(records) + "#close\t2012-03-16-13-00-00\n"


COLUMNS = {
    "client": {"type": "string", "from": "id.orig_h"},
    "b": {"type": "timestamp", "from": "ts", "format": "epoch_seconds"},
    "AA": "boolean",
    "answers": "array<string>",
    "TTLs": "array<double>",
    "least": {"type": "double", "expr": "array_min(TTLs)"},
}


def zeek(directory: Path) -> dict[str, object]:
    """Return the declaration of a stream of such logs."""
    keys = {"format": "zeek", "search_key": "client", "arrival": "b", "unknown_columns": "ignore"}
    return {"directory": directory, "columns": COLUMNS, "expires": None, "max_lifetime": None, **keys}


def test_fields_as_zeek_writes_them(tmp_path: Path, spark: SparkSession) -> None:
    """The lines that begin with # are no records; a set is a list, ``-`` is null, ``(empty)`` is an empty list."""
    target = declared(**zeek(tmp_path))  # type: ignore[arg-type]
    odd = ["(empty)", "-,30.500000", "x", "-", '"quo']
    content = HEAD + "".join(record(number, ttls) for number, ttls in enumerate(odd)) + "short\t1\n#close\t2012\n"
    rows = read(spark, target, {"dns.log": content, "dns.log.gz": gzip.compress(log(3).encode())})
    plain = [row for row in rows if "fault" not in row]
    expected = {"client": "192.168.202.0", "AA": False, "answers": ["10.0.0.1", "10.0.0.2"], "TTLs": []}
    assert {name: value for name, value in plain[0].items() if name != "b"} == expected
    assert plain[0]["b"] == "2012-03-16 12:30:00.000000"
    assert (plain[1]["TTLs"], plain[1]["least"], plain[1]["AA"]) == ([None, 30.5], 30.5, True)
    assert [row["fault"] for row in rows if "fault" in row] == ["mistyped", "mistyped", "malformed"]
    assert len(plain) == 3 + 3


def test_logs_that_are_written_otherwise_are_left_out(tmp_path: Path) -> None:
    """Another separator, another sign for nothing, no names: each is said."""
    target = declared(**zeek(tmp_path))  # type: ignore[arg-type]
    out = left_out(
        target,
        {
            "spaces.log": HEAD.replace("\\x09", "\\x20") + "x\n",
            "null.log": HEAD.replace("#unset_field\t-", "#unset_field\tNULL") + "x\n",
            "plain.log": "ts\tuid\n1\t2\n",
            "keyless.log": HEAD.replace("id.orig_h", "id.other"),
        },
    )
    assert {name: reason for name, (reason, _) in out.items()} == {
        "spaces.log": "unreadable", "null.log": "unreadable", "plain.log": "unreadable", "keyless.log": "header",
    }  # fmt: skip
    assert "#separator" in out["spaces.log"][1]
    assert "#fields" in out["plain.log"][1]


ODD = {
    "lines of another system": (HEAD, None),
    "a mark of byte order": ("\ufeff" + HEAD, None),
    "no types": (HEAD[: HEAD.index("#types")], None),
    "another empty field": (HEAD.replace("(empty)", "EMPTY"), '#empty_field is "EMPTY"'),
    "another separator of elements": (HEAD.replace("#set_separator\t,", "#set_separator\t;"), '#set_separator is ";"'),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_proposed_is_what_is_loaded(tmp_path: Path, odd: str) -> None:
    """``init --from`` sees the fields that an update sees in a header, or refuses the log for the reason of the update."""
    header, refused = ODD[odd]
    source = tmp_path / "dns.log"
    source.write_text(header + record(1, "5.0"), newline="\r\n" if odd.startswith("lines") else "")
    if refused is None:
        assert tuple(column.source or column.name for column in sniff(source).columns) == zeek_header(source)
    else:
        for reads in (sniff, zeek_header):
            with pytest.raises((UsageError, ValueError), match=refused):
                reads(source)


def test_from_a_log_to_the_first_probe(tmp_path: Path, spark: SparkSession) -> None:
    """``init --from``, ``update``, ``probe``: the rows of a client that are live then, without a line written by hand."""
    source = tmp_path / "dns.log"
    source.write_text(log())
    directory = tmp_path / "project"
    write_project(directory, source=source)
    catalog = load_catalog(directory)
    stream = catalog.streams[0]
    assert (stream.format, stream.search_key, stream.arrival) == ("zeek", ("id_orig_h",), "ts")
    assert stream.expires == "timestampadd(MICROSECOND, CAST(round(array_min(TTLs) * 1000000) AS bigint), ts)"
    moment = parse_instant("2012-03-16T12:36:00Z")
    done = update(WriteContext(catalog, lambda _: spark, lambda: moment), UpdateOptions(at=moment))
    assert done.left_out == ()
    window = done.epochs[-1].window_time
    with Warehouse.open(directory) as opened:
        shown = opened.probe(stream.name, ["192.168.202.3"]).arrow().to_pylist()
    live = [
        number
        for number in range(400)
        if number % 40 == 3 and number % 5 != 4
        and (BEGIN + number) * 10**6 <= window < (BEGIN + number + 300.5 + number % 300) * 10**6
    ]  # fmt: skip
    assert sorted(row["uid"] for row in shown) == sorted(f"CWGtK{number}" for number in live)
    assert len(live) > 3

"""Eighteen invented files of every day, as the programs that write such files spell them."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["MADE"]

_ROWS = 120
_START = 1_714_550_400
"""2024-05-01T08:00:00Z."""


def _clock(minutes: int) -> str:
    return f"{8 + minutes // 60:02}:{minutes % 60:02}"


def _lines(path: Path, header: str, rows: Sequence[str], encoding: str = "utf-8") -> None:
    path.write_text("\n".join([header, *rows]) + "\n", encoding=encoding)


def _zeek(path: Path) -> None:
    head = ["#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-", "#path\tdns"]
    head += ["#fields\tts\tuid\tid.orig_h\tid.orig_p\tquery\tTTLs", "#types\ttime\tstring\taddr\tport\tstring\tvector[interval]"]
    rows = [
        f"{_START + i * 2}.{i:06}\tC{i}x\t10.0.0.{i % 20}\t{40_000 + i}\thost{i % 30}.example\t{300 + i % 60}.000000,{900 + i}.0"
        for i in range(_ROWS)
    ]
    path.write_text("\n".join([*head, *rows, "#close\t2024-05-01-09-00-00"]) + "\n")


def _leases(path: Path) -> None:
    day = "2024-05-01"
    rows = [f"00:16:3e:00:00:{i % 40:02x},pc-{i % 40},{day} {_clock(i)}:00,{day} {_clock(i + 240)}:00" for i in range(_ROWS)]
    _lines(path, "MAC Address,Hostname,Lease Start,Lease End", rows)


def _tokens(path: Path) -> None:
    rows = [
        json.dumps({"userId": f"u{i % 25}", "scope": "read", "issuedAt": _START + i * 30, "expiresIn": 3600 if i % 3 else 7200})
        for i in range(_ROWS)
    ]
    path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode(), mtime=0))


def _sessions(path: Path) -> None:
    moment = f"make_timestamp({_START} * 1000000::BIGINT + i * 60000000)"
    duckdb.connect().execute(
        f"COPY (SELECT 's' || i AS session_id, 'user-' || i % 30 AS username, {moment} AS session_start,"
        f" {moment} + to_minutes(20 + i % 40) AS session_end, i % 9 AS pages FROM range({_ROWS}) t(i)) TO '{path}'"
    )


def _readings(path: Path) -> None:
    rows = [
        json.dumps({"sensor": f"t-{i % 8}", "ts": (_START + i * 15) * 1000 + i, "celsius": 20 + i / 10, "ttl_ms": 600_000})
        for i in range(_ROWS)
    ]
    path.write_text("\n".join(rows) + "\n")


def _tickets(path: Path) -> None:
    rows = [
        f"{70_000 + i};Müller {i % 15};0{1 + i % 5}.05.2024 {_clock(i)};{10 + i % 5}.05.2024 18:00;offen;{i % 4},50"
        for i in range(_ROWS)
    ]
    _lines(path, "Vorgang;Kunde;Eröffnet;Fällig bis;Zustand;Aufwand (h)", rows, "cp1252")


def _bookings(path: Path) -> None:
    days = [f"5/{1 + i % 20}/2024" for i in range(_ROWS)]
    rows = [f'Room {i % 12},"Doe, J{i % 5}",{day} {9 + i % 3}:00 AM,{day} {1 + i % 3}:30 PM' for i, day in enumerate(days)]
    _lines(path, "Room,Booked by,Starts at,Ends at", rows)


def _trips(path: Path) -> None:
    rows = [
        f"A{i:07X},classic_bike,2024-05-01 {_clock(i)}:07,2024-05-01 {_clock(i + 5 + i % 30)}:41,{3000 + i % 18},Pier {i % 18}"
        for i in range(_ROWS)
    ]
    _lines(path, "ride_id,rideable_type,started_at,ended_at,start_station_id,start_station_name", rows)


def _cookies(path: Path) -> None:
    rows = [
        {"domain": f".site{i % 30}.example", "name": "sid", "creationDate": at, "expirationDate": at + 86_400.25}
        for i, at in enumerate(_START + number + 0.5 for number in range(_ROWS))
    ]
    path.write_text(json.dumps(rows, indent=1))


def _cache(path: Path) -> None:
    rows = [f"https://a.example/{i % 50}\t{_START + i}\t{60 * (1 + i % 10)}\t{1000 + i}" for i in range(_ROWS)]
    _lines(path, "url\tfetched\tmax-age\tbytes", rows)


def _access(path: Path) -> None:
    line = '10.0.0.{} - - [01/May/2024:{}:00 +0200] "GET /{} HTTP/1.1" 200 {} "-" "curl \\"8\\""\n'
    path.write_text("".join(line.format(i % 30, _clock(i), i % 9, i) for i in range(_ROWS)))


def _pods(path: Path) -> None:
    rows = [
        {"metadata": {"namespace": "shop", "podId": f"p{i % 15}", "creationTimestamp": f"2024-05-01T{_clock(i)}:00Z"},
         "spec": {"image": "nginx", "ttlSecondsAfterFinished": 900}} for i in range(_ROWS)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _appointments(path: Path) -> None:
    rows = [f"{1 + i % 28:02}.05.24;{_clock(i)};{1 + i % 28:02}.05.24;{_clock(i + 30)};Raum {i % 6}" for i in range(_ROWS)]
    _lines(path, "Beginn Datum;Beginn Zeit;Ende Datum;Ende Zeit;Raum", rows, "utf-8-sig")


def _prices(path: Path) -> None:
    rows = [f"SKU{i % 50}|{i / 10:.2f}|2024-05-{1 + i % 20:02}|2024-06-{1 + i % 20:02}" for i in range(_ROWS)]
    _lines(path, "# written by the shop\nSKU|PRICE|VALID_FROM|VALID_TO", rows)


def _jwt(path: Path) -> None:
    _lines(path, "token_hash,user,iat,exp", [f"{i:08x},u{i % 40},{_START + i},{_START + i + 3600}" for i in range(_ROWS)])


def _queue(path: Path) -> None:
    rows = [f'Q{i},u{i % 9}@a.example,"Wed, 01 May 2024 {_clock(i)}:00 +0200",{600 + i}' for i in range(_ROWS)]
    _lines(path, "queue_id,sender,arrival_time,retry_timeout_s", rows)


def _syslog(path: Path) -> None:
    rows = [f"May  1 {_clock(i)}:07 web{i % 6} sshd[{900 + i}]: Accepted key for user from 10.0.0.{i}" for i in range(_ROWS)]
    path.write_text("\n".join(rows) + "\n")
    os.utime(path, (_START + 86_400, _START + 86_400))  # by which the year is told


def _logfmt(path: Path) -> None:
    rows = [
        f'time=2024-05-01T{_clock(i)}:00Z level=info host=web-{i % 5} msg="GET \\"/items/{i}\\"" status=200 took={3 + i % 9}ms'
        for i in range(_ROWS)
    ]
    path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode(), mtime=0))


MADE: dict[str, Callable[[Path], None]] = {
    "access.log": _access,
    "appointments.csv": _appointments,
    "dns.log": _zeek,
    "jwt.csv": _jwt,
    "pods.ndjson": _pods,
    "prices.txt": _prices,
    "queue.csv": _queue,
    "leases.csv": _leases,
    "tokens.jsonl.gz": _tokens,
    "sessions.parquet": _sessions,
    "readings.jsonl": _readings,
    "tickets.csv": _tickets,
    "bookings.csv": _bookings,
    "trips.csv": _trips,
    "cookies.json": _cookies,
    "cache.tsv": _cache,
    "messages": _syslog,
    "service.log.gz": _logfmt,
}
"""What writes each file, by its name."""

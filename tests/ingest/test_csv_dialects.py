"""CSV as it comes: encodings, decimal commas and comment lines, as an update reads them."""

from __future__ import annotations

import codecs
import gzip
from typing import TYPE_CHECKING

from tests.ingest.records import declared, left_out, read
from warehouse.catalog.encodings import _JAVA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"ä": "string", "n": "double", "d": "decimal(9,2)", "i": "int", "b": {"type": "timestamp", "format": "epoch_seconds"}}


def numbers(directory: Path, **options: str) -> dict[str, object]:
    """Return the declaration of a stream of such files."""
    keys = {"search_key": "ä", "expires": None, "max_lifetime": None, "null_expiry": None}
    return {"directory": directory, "columns": COLUMNS, "options": {"delimiter": ";", "decimal": ",", **options}, **keys}


def test_decimal_commas_and_comments_in_windows_1252(tmp_path: Path, spark: SparkSession) -> None:
    """Points stand between thousands; a point where a comma should be is rejected, not taken for either."""
    target = declared(**numbers(tmp_path, encoding="cp1252", comment="#"))  # type: ignore[arg-type]
    lines = [
        "# ä note; before the header", "ä;n;d;i;b", "„a“;1.234,5;0,25;1.000;1367366400,5", "# between", "b;-,5e3;7;;1367366400",
        "c;NaN;;12;1367366400", "d;1.5;;;1367366400", "e;;1.23,4;;1367366400", "f;1,2,3;;;1367366400", "g;;;1,5;1367366400",
    ]  # fmt: skip
    rows = read(spark, target, {"1.csv": ("\n".join(lines) + "\n").encode("cp1252")})
    good = [(row["ä"], row.get("n"), row.get("d"), row.get("i"), row["b"][-9:]) for row in rows if "fault" not in row]
    assert good == [
        ("„a“", 1234.5, 0.25, 1000, "00.500000"), ("b", -500.0, 7.0, None, "00.000000"), ("c", "NaN", None, 12, "00.000000"),
    ]  # fmt: skip
    assert [row["ä"] for row in rows if row.get("fault") == "mistyped"] == ["d", "e", "f", "g"]
    assert rows[3]["why"] == 'column "n": "1.5" is no double with a decimal comma'


def test_utf_16(tmp_path: Path, spark: SparkSession) -> None:
    """Either byte order, either end of a line, plain or in gzip; empty last fields are null."""
    target = declared(**numbers(tmp_path, encoding="UTF-16", nullValue="-"))  # type: ignore[arg-type]
    text = 'ä;n;b;i\r\nGਊx;1,5;1367366400;\r\n"y";;1367366400;-\r\nz;;1367366400;"7"\r\nshort;1\r\n'
    little, big = codecs.BOM_UTF16_LE + text.encode("utf-16-le"), codecs.BOM_UTF16_BE + text.encode("utf-16-be")
    feeds = codecs.BOM_UTF16_LE + text.replace("\r", "").encode("utf-16-le")
    rows = read(spark, target, {"1.csv": little, "2.csv": big, "3.csv": feeds, "4.csv.gz": gzip.compress(little)})
    expected = [("Gਊx", 1.5, None, None), ("y", None, None, None), ("z", None, 7, None), (None, None, None, "malformed")]
    assert [(row.get("ä") if "fault" not in row else None, row.get("n") if "fault" not in row else None, row.get("i"),
             row.get("fault")) for row in rows] == expected * 4  # fmt: skip
    plain = {"5.csv": text.encode("utf-16-le"), "6.csv": codecs.BOM_UTF16_LE + ("# x\n" + text).encode("utf-16-le")}
    out = left_out(declared(**numbers(tmp_path / "other", encoding="UTF-16", comment="#")), plain)  # type: ignore[arg-type]
    assert 'declare encoding = "UTF-16LE" or "UTF-16BE"' in out["5.csv"][1]
    assert "save the file as UTF-8" in out["6.csv"][1]


def test_files_without_a_header(tmp_path: Path, spark: SparkSession) -> None:
    """The names are the option's, every line is a record, and one of another number of fields is rejected."""
    moment = {"type": "timestamp", "format": "dd/MMM/yyyy:HH:mm:ssZ", "from": "moment"}
    columns = {"client": "string", "at": moment, "bytes": "int"}
    options = {"delimiter": " ", "escape": "\\", "names": "client,moment,request,bytes", "nullValue": "-", "comment": "#"}
    keys = {"search_key": "client", "arrival": "at", "expires": None, "max_lifetime": None, "null_expiry": None}
    target = declared(tmp_path, columns=columns, options=options, unknown_columns="ignore", **keys)
    text = '# a note\n::1 01/Jul/2024:08:00:00+0200 "GET /\\"x\\" HTTP/1.1" -\n::2 01/Jul/2024:08:00:01+0200 "" 12\n::3 short\n'
    rows = read(spark, target, {"a.csv": b"\xef\xbb\xbf" + text.encode()[9:], "b.csv.gz": gzip.compress(text.encode())})
    expected = [("::1", "2024-07-01 06:00:00.000000", None, None), ("::2", "2024-07-01 06:00:01.000000", 12, None)]
    shown = [(row.get("client"), row.get("at"), row.get("bytes"), row.get("fault")) for row in rows]
    assert (shown[:2], shown[3:5]) == (expected, expected)
    assert [shown[2][3], shown[5][3]] == ["malformed", "malformed"]


def test_names_of_several_zones_are_no_time(tmp_path: Path, spark: SparkSession) -> None:
    """Unless the format has the name in quotes and the column says which zone it is."""
    moments = ["2024-07-10 08:00:00 BST", "2024-07-10 08:00:00 CEST", "2024-07-10T08:00:00 IST ", "2024-07-10 08:00:00 UTC"]
    named = {"type": "timestamp", "format": "yyyy-MM-dd HH:mm:ss 'BST'", "timezone": "Europe/London"}
    by_name = {"type": "timestamp", "format": "yyyy-MM-dd HH:mm:ss z"}
    read_as = []
    for number, kind in enumerate(("timestamp", named, by_name)):
        columns = {"k": "string", "b": kind}
        target = declared(tmp_path / str(number), columns=columns, expires=None, max_lifetime=None)
        rows = read(spark, target, {"1.csv": "\n".join(["k,b", *(f"k,{moment}" for moment in moments), ""])})
        read_as.append([None if "fault" in row else row["b"][11:19] for row in rows])
        if number == 0:
            assert "such a name means several zones" in rows[0]["why"]
    hour, summer = "08:00:00", "06:00:00"
    assert read_as == [[None, None, None, hour], ["07:00:00", None, None, None], [None, summer, None, hour]]
    lines = {"1.jsonl": "".join(f'{{"k": "a", "b": "{moment}"}}\n' for moment in moments)}
    columns = {"k": "string", "b": "timestamp"}
    target = declared(tmp_path / "lines", format="json", columns=columns, expires=None, max_lifetime=None)
    assert [row.get("fault") for row in read(spark, target, lines)] == ["mistyped", "mistyped", "mistyped", None]


def test_names_of_several_zones_in_the_middle_of_a_time(tmp_path: Path, spark: SparkSession) -> None:
    """As the command `date` writes them, in any case; an offset or the name of one zone beside them is read."""
    columns = {"k": "string", "b": {"type": "timestamp", "format": ["MMM dd HH:mm:ss z yyyy", "yyyy HH:mm:ss XXX 'BST' MM dd"]}}
    target = declared(tmp_path, columns=columns, expires=None, max_lifetime=None)
    refused = ["Jul 10 08:00:00 BST 2024", "Jul 10 08:00:00gst 2024"]
    sound = ["Jul 10 08:00:00 CEST 2024", "2024 08:00:00 +02:00 BST 07 10"]
    rows = read(spark, target, {"1.csv": "\n".join(["k,b", *(f"k,{value}" for value in (*refused, *sound)), ""])})
    assert [row.get("b") for row in rows] == [None, None, *["2024-07-10 06:00:00.000000"] * 2]
    assert ["such a name means several zones" in (row.get("why") or "") for row in rows] == [True, True, False, False]


def test_a_header_in_another_encoding(tmp_path: Path) -> None:
    """A name that is not UTF-8 is no declared name: the message says to declare the encoding."""
    target = declared(tmp_path, columns={"k": "string", "b": "timestamp", "Größe": "int"}, expires=None, max_lifetime=None)
    reasons = left_out(target, {"1.csv": "k,b,Größe\nx,2024-07-10 08:00:00,1\n".encode("cp1252"), "2.csv": "k,b,More\n"})
    assert {name: 'encoding = "windows-1252"' in text for name, (_, text) in reasons.items()} == {"1.csv": True, "2.csv": False}


def test_java_knows_every_encoding(spark: SparkSession) -> None:
    """By the name that it is given."""
    charset = spark._jvm.java.nio.charset.Charset  # type: ignore[union-attr]
    assert [name for name in set(_JAVA.values()) if not charset.isSupported(name)] == []
